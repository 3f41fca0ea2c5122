"""What each constant and rescue path of the solvers is worth: each is changed, one at a time, and the suite of problems is run again.

    python bench/ablations.py [--only NAME,…] [--seeds 1,2,3] [--jobs 2] [--page docs/ablations.md]

Works in a checkout of its own under target/ablation, so that nothing here is touched. There every constant becomes a function that
looks for another value in the environment, so that one build serves all changes. A change is a number tenfold and a tenth (counts
double and half; a share near one: its distance to one double and half), or what is listed in OFF, which takes a path away. Reported
beside the suite as it is: fits that no longer reach the tolerance, passes, inner steps, processor seconds. Results are kept in
target/ablation.json as they come; a second run goes on from there.
"""

import argparse
import json
import os
import re
import subprocess
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "ablation"
SOURCE = Path("crates/mtmkl/src")
KEPT = ROOT / "target" / "ablation.json"
FOLDERS = ("solver", "inner", "engine", "problem")
CONSTANT = re.compile(r"^(pub(?:\([a-z: ]+\))? )?const ([A-Z_]+): (f64|usize|\[f64; \d\]) = ([^;]+);", re.M)
NEAR_ONE = 0.5

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
    ("solver/interior/barrier_method.rs", "MOST_BARRIERS", "=0", "the barrier method"),
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
        let Some(change) = asked.strip_prefix(name) else { return value };
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
    built = run(["cargo", "build", "--quiet", "--release", "-p", "mtmkl-bench", "--bin", "suite"], cwd=WORK)
    if built.returncode != 0:
        raise SystemExit(built.stderr)
    return found


def measured(change: str, seeds: list[int]) -> dict[str, float] | None:
    """The suite with one change; None where it breaks down or does not end."""
    total: dict[str, float] = {"fits": 0, "converged": 0, "passes": 0, "steps": 0, "seconds": 0.0}
    environment = {**os.environ, "MTMKL_ABLATION": change}
    for seed in seeds:
        command = ["timeout", "120", str(WORK / "target/release/suite"), str(seed)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment) as running:
            assert running.stdout is not None
            lines = running.stdout.readlines()
            _, status, used = os.wait4(running.pid, 0)
            running.returncode = os.waitstatus_to_exitcode(status)
        if running.returncode != 0:
            return None
        total["seconds"] += used.ru_utime
        for line in lines:
            group = json.loads(line)
            for key in ("fits", "converged", "passes", "steps"):
                total[key] += group[key]
    return total


def page(base: dict[str, float], results: dict[str, dict[str, float] | None], seeds: list[int]) -> str:
    text = (
        "What each constant and rescue path of the solvers is worth, by `python bench/ablations.py`: one at a time is changed, and the "
        f"suite of problems (`crates/mtmkl-bench/src/bin/suite.rs`, seeds {', '.join(map(str, seeds))}: {base['fits']:.0f} fits of every "
        f"kind) is run again on one thread. As it is: {base['converged']:.0f} reach the tolerance, {base['passes']:.0f} passes, "
        f"{base['steps']:.0f} inner steps, {base['seconds']:.1f} processor seconds. Rows are sorted by what is lost. Seconds say little "
        "below a tenth."
    )
    lines = [
        "# Ablations",
        "",
        *textwrap.wrap(text, 118),
        "",
        "| file | constant | changed | not reached | passes | inner steps | seconds |",
        "|---|---|---|---|---|---|---|",
    ]

    def worth(item: tuple[str, dict[str, float] | None]) -> float:
        return -1e9 if item[1] is None else -item[1]["passes"] - 1e4 * (base["converged"] - item[1]["converged"])

    for key, result in sorted(results.items(), key=worth):
        file, constant, words = key.split("|")
        if result is None:
            lines.append(f"| `{file}` | `{constant}` | {words} | breaks down, or does not end | | | |")
            continue
        lost = base["converged"] - result["converged"]

        def part(name: str, result: dict[str, float] = result) -> str:
            return f"{100 * (result[name] / base[name] - 1):+.1f} %"

        row = (f"{lost:.0f}", part("passes"), part("steps"), part("seconds"))
        lines.append(f"| `{file}` | `{constant}` | {words} | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="constants, separated by commas")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "ablations.md")
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    wanted = set(filter(None, arguments.only.split(",")))
    variants = [(f"{one.key}|{words}", f"{one.key}{change}") for one in build() for change, words in one.changes()]
    variants += [(f"{file}|{constant}|without {words}", f"{file}|{constant}{value}") for file, constant, value, words in OFF]
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"results": {}}
    results = kept["results"]
    kept.setdefault("base", measured("", seeds))
    print(kept["base"], flush=True)

    def ablate(variant: tuple[str, str]) -> None:
        key, change = variant
        if key in results or (wanted and key.split("|")[1] not in wanted):
            return
        results[key] = measured(change, seeds)
        KEPT.write_text(json.dumps(kept))
        print(key, results[key], flush=True)

    with ThreadPoolExecutor(arguments.jobs) as jobs:
        list(jobs.map(ablate, variants))
    known = {key: results[key] for key, _ in variants if key in results}
    arguments.page.write_text(page(kept["base"], known, seeds))


if __name__ == "__main__":
    main()
