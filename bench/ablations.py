"""What each constant and rescue path of the solvers is worth: each is changed, one at a time, and the suite of problems is run again.

    python bench/ablations.py [--only NAME,…] [--jobs 2]

Works in a checkout of its own under target/ablation, so that nothing here is touched. There every constant becomes a function that
looks for another value in the environment, so that one build serves all changes. A change is a number tenfold and a tenth (counts
double and half; a share near one: its distance to one double and half), or what is listed in OFF, which takes a path away. Reported
beside the suite as it is, for problems as people have them and for random ones at the edges: fits that no longer reach the tolerance,
passes, inner steps. Written into docs/development/ablations.md between its marks; what follows from it stands there by hand. Results are in
target/ablation.json as they come; a second run goes on from there.

`MTMKL_ABLATION='solver/newton/damping.rs|MOST=0' target/ablation/target/release/passes …` asks the same of another benchmark.
"""

import argparse
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "ablation"
SOURCE = Path("crates/mtmkl/src")
KEPT = ROOT / "target" / "ablation.json"
PAGE = ROOT / "docs" / "development" / "ablations.md"
FOLDERS = ("solver", "inner", "engine", "problem")
CONSTANT = re.compile(r"^(pub(?:\([a-z: ]+\))? )?const ([A-Z_]+): (f64|usize|\[f64; \d\]) = ([^;]+);", re.M)
NEAR_ONE = 0.5
# What is run for each change: arguments of `suite`.
KINDS = {"usual": [["1"], ["2"], ["3"]], "edges": [[str(seed), "edges"] for seed in range(1, 9)]}
COUNTED = ("fits", "converged", "passes", "steps")

# Paths that a value takes away: file, constant, value, what is gone then.
OFF = [
    ("solver/bundle/history.rs", "MOST_KERNELS", "=0", "what other evaluations said"),
    ("solver/bundle/history.rs", "SCALES", "=1", "cuts of scaled α"),
    ("solver/newton/damping.rs", "MOST", "=0", "damping"),
    ("solver/newton/block.rs", "MOST_MODELS", "=0", "models aimed anew after a refusal"),
    ("solver/newton/aim.rs", "BEHIND", "=0", "the flat model for the bound"),
    ("solver/newton/aim.rs", "UNSOLVED", "=inf", "another try where the model is not solved"),
    ("solver/newton/aim.rs", "DONE", "=0", "blocks that are done"),
    ("solver/interior/kkt/mod.rs", "MOST_REFINEMENTS", "=0", "refinement of the Newton system"),
    ("solver/interior/model.rs", "SNAPPED", "=0", "exact zeros"),
    ("solver/interior/term.rs", "FREE_RESIDUAL", "=1e300", "steps shortened for a norm"),
    ("inner/box_qp/policy.rs", "DELICATE", "=0", "Kβ made anew near rounding"),
    ("inner/box_qp/policy.rs", "EXACT", "=0", "sums with twice the digits"),
    ("inner/box_qp/policy.rs", "NEXT_TO_BOUND", "=0", "snapping after interior points"),
    ("inner/box_qp/interior.rs", "MOST_SAMPLES", "=0", "interior points"),
    ("inner/box_qp/free_set.rs", "CHANGED", "=1e15", "factors that follow the free set"),
    ("inner/box_qp/kept_factor.rs", "NEAR", "=0", "curvature from an old factor"),
    ("inner/rounding.rs", "OWN_ACCURACY", "=1e300", "accuracy for tasks of little weight"),
    ("inner/ridge.rs", "REFINEMENTS", "=1", "refinement of ridge"),
    ("engine/coarse.rs", "FEWEST", "=1e15", "the start from fewer samples"),
]

# How a constant is looked up in the checkout: `NAME=v`, or `NAME*v`, or `NAME^v` for 1 − v(1 − value).
LOOKUP = """
pub(crate) mod ablation {
    pub(crate) fn f64(name: &str, value: f64) -> f64 {
        let Ok(asked) = std::env::var("MTMKL_ABLATION") else { return value };
        let Some(change) = asked.strip_prefix(name).filter(|rest| rest.starts_with(['=', '*', '^'])) else { return value };
        let number: f64 = change[1..].parse().expect("a number");
        match change.as_bytes()[0] {
            b'=' => number,
            b'*' => number * value,
            _ => 1.0 - number * (1.0 - value),
        }
    }

    pub(crate) fn usize(name: &str, value: usize) -> usize {
        f64(name, value as f64) as usize
    }
}
"""


class Constant(NamedTuple):
    """One constant of a solver."""

    file: str
    public: str
    name: str
    kind: str
    value: str

    @property
    def key(self) -> str:
        return f"{self.file}|{self.name}"

    def function(self) -> str:
        """The constant as a function of the environment."""
        looked = f'crate::ablation::{"usize" if self.kind == "usize" else "f64"}("{self.key}", '
        made = f"({self.value}).map(|value| {looked}value))" if self.kind.startswith("[") else f"{looked}{self.value})"
        return (
            f"#[allow(non_snake_case)] {self.public}fn {self.name}() -> {self.kind} "
            f"{{ static VALUE: std::sync::OnceLock<{self.kind}> = std::sync::OnceLock::new(); *VALUE.get_or_init(|| {made}) }}"
        )

    def changes(self) -> list[tuple[str, str]]:
        """How it is changed, and in words."""
        if self.kind == "usize":
            return [("*2", "× 2"), ("*0.5", "÷ 2")]
        if re.fullmatch(r"0\.\d+", self.value) and float(self.value) > NEAR_ONE:
            return [("^2", "twice as far from 1"), ("^0.5", "half as far from 1")]
        return [("*10", "× 10"), ("*0.1", "÷ 10")]


def constants() -> list[Constant]:
    found = []
    for folder in FOLDERS:
        for path in sorted((WORK / SOURCE / folder).rglob("*.rs")):
            file = str(path.relative_to(WORK / SOURCE))
            if "tests" not in file:
                found += [Constant(file, *groups) for groups in CONSTANT.findall(path.read_text())]
    return found


def call(text: str, name: str) -> str:
    """Each use of a constant becomes a call; comments and imports stay."""
    lines = []
    importing = False
    for line in text.split("\n"):
        importing = importing or re.match(r"\s*(pub(\([a-z: ]+\))? )?use ", line) is not None
        if not importing and not line.lstrip().startswith("//") and f"fn {name}()" not in line:
            line = re.sub(rf"\b{name}\b(?!\()", f"{name}()", line)
        importing = importing and ";" not in line
        lines.append(line)
    return "\n".join(lines)


def open_the_constants(found: list[Constant]) -> None:
    """Makes the checkout one whose constants can be changed from outside."""
    for constant in found:
        path = WORK / SOURCE / constant.file
        text = path.read_text()
        defined = re.compile(rf"^{re.escape(constant.public)}const {constant.name}: [^=]+ = [^;]+;", re.M)
        path.write_text(call(defined.sub(lambda _: constant.function(), text, count=1), constant.name))  # noqa: B023
        for other in (WORK / SOURCE).rglob("*.rs"):
            text = other.read_text()
            if constant.public and other != path and re.search(rf"(use [^;]*|::){constant.name}\b", text):
                other.write_text(call(text, constant.name))
    library = WORK / SOURCE / "lib.rs"
    library.write_text(library.read_text() + LOOKUP)


def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload,no-any-return]


def build() -> list[Constant]:
    if not WORK.exists():
        run(["git", "worktree", "add", "--detach", str(WORK)], cwd=ROOT).check_returncode()
    run(["git", "checkout", "--quiet", "--force", run(["git", "rev-parse", "HEAD"], cwd=ROOT).stdout.strip()], cwd=WORK)
    found = constants()
    open_the_constants(found)
    built = run(["cargo", "build", "--quiet", "--release", "-p", "mtmkl-bench", "--bin", "suite", "--bin", "passes"], cwd=WORK)
    if built.returncode != 0:
        raise SystemExit(built.stderr)
    return found


def measured(change: str, kind: str) -> dict[str, int] | None:
    """The suite with one change; None where it breaks down or does not end."""
    total = dict.fromkeys(COUNTED, 0)
    for arguments in KINDS[kind]:
        try:
            environment = {**os.environ, "MTMKL_ABLATION": change}
            ran = run([str(WORK / "target/release/suite"), *arguments], timeout=300, env=environment)
        except subprocess.TimeoutExpired:
            return None
        if ran.returncode != 0:
            return None
        for line in ran.stdout.splitlines():
            group = json.loads(line)
            for key in total:
                total[key] += group[key]
    return total


def page(kept: dict[str, dict[str, dict[str, int] | None]], here: set[str]) -> str:
    """The tables: all that was measured, also of constants that are no longer `here`."""
    base = kept[""]

    def words(kind: str) -> str:
        found = base[kind]
        assert found is not None
        return f"{found['fits']} fits, {found['converged']} to the tolerance, {found['passes']} passes, {found['steps']} inner steps"

    lines = [
        f"As it is: {words('usual')}; at the edges {words('edges')}.",
        "",
        "| file | constant | changed | not reached | passes | inner steps | edges: not reached | passes | inner steps |",
        "|---|---|---|---|---|---|---|---|---|",
    ]

    def lost(key: str) -> float:
        parts = [(kept[key][kind], base[kind]) for kind in KINDS]
        return -sum(1e9 if one is None else 1e4 * (old["converged"] - one["converged"]) + one["passes"] for one, old in parts if old)

    without: dict[str, list[str]] = {}
    complete = [key for key in kept if key and len(kept[key]) == len(KINDS)]
    for key in sorted(complete, key=lost):
        file, constant, how = key.split("|")
        if key not in here:
            how += " (gone)"
        if kept[key] == base:
            without.setdefault(f"`{file}` `{constant}`", []).append(how)
            continue
        cells = []
        for kind in KINDS:
            one, old = kept[key][kind], base[kind]
            if one is None or old is None:
                cells += ["breaks down, or does not end", "", ""]
                continue
            parts = [f"{100 * (one[name] / old[name] - 1):+.1f} %" for name in ("passes", "steps")]
            cells += [str(old["converged"] - one["converged"]), *parts]
        lines.append(f"| `{file}` | `{constant}` | {how} | {' | '.join(cells)} |")
    lines += ["", "No difference in any of them:", ""]
    lines += [f"- {name}: {', '.join(sorted(ways))}" for name, ways in sorted(without.items())]
    return "\n".join(lines) + "\n"


def write(made: str) -> None:
    before, rest = PAGE.read_text().split("<!-- ablations -->\n")
    after = rest.split("<!-- /ablations -->\n")[1]
    PAGE.write_text(f"{before}<!-- ablations -->\n{made}<!-- /ablations -->\n{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="constants, separated by commas")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    wanted = set(filter(None, arguments.only.split(",")))
    variants = {f"{one.key}|{words}": f"{one.key}{change}" for one in build() for change, words in one.changes()}
    variants |= {f"{file}|{constant}|without {words}": f"{file}|{constant}{value}" for file, constant, value, words in OFF}
    kept: dict[str, dict[str, dict[str, int] | None]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}

    def ablate(key: str) -> None:
        if wanted and key and key.split("|")[1] not in wanted:
            return
        found = kept.setdefault(key, {})
        for kind in KINDS:
            if kind not in found:
                found[kind] = measured(variants.get(key, ""), kind)
        KEPT.write_text(json.dumps(kept))
        print(key, found, flush=True)

    with ThreadPoolExecutor(arguments.jobs) as jobs:
        list(jobs.map(ablate, ["", *variants]))
    write(page(kept, set(variants)))


if __name__ == "__main__":
    main()
