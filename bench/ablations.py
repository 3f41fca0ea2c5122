"""What each constant and rescue path of the solvers is worth: each is changed, one at a time, and the suite of problems is run again.

    python bench/ablations.py [--only NAME,…] [--seeds 1,2,3] [--page docs/ablations.md]

Works in a checkout of its own under target/ablation, so that nothing here is touched. A change is a number tenfold and a tenth (counts
double and half), or what is listed in OFF, which takes a path away. What is reported beside the suite as it is: fits that no longer
reach the tolerance, passes, inner steps, seconds. Results are kept in target/ablation.json as they come; a second run goes on from
there.
"""

import argparse
import json
import re
import subprocess
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "ablation"
KEPT = ROOT / "target" / "ablation.json"
FOLDERS = ("solver", "inner", "engine", "problem")
CONSTANT = re.compile(r"^(?:pub(?:\([a-z: ]+\))? )?const ([A-Z_]+): (f64|usize) = ([^;]+);", re.M)

# Paths that a value takes away: file, constant, value, what is gone then.
OFF = [
    ("solver/bundle/history.rs", "REMEMBERED", "0", "what other evaluations said"),
    ("solver/bundle/history.rs", "SCALES", "[1.0; 5]", "cuts of scaled α"),
    ("solver/newton/damping.rs", "MOST", "0.0", "damping"),
    ("solver/newton/block.rs", "MOST_MODELS", "0", "models aimed anew after a refusal"),
    ("solver/newton/aim.rs", "BEHIND", "0.0", "the flat model for the bound"),
    ("solver/newton/aim.rs", "UNSOLVED", "f64::INFINITY", "another try where the model is not solved"),
    ("solver/newton/aim.rs", "DONE", "0.0", "blocks that are done"),
    ("solver/interior/kkt/mod.rs", "MOST_REFINEMENTS", "0", "refinement of the Newton system"),
    ("solver/interior/barrier_method.rs", "MOST_BARRIERS", "0", "the barrier method"),
    ("solver/interior/model.rs", "SNAPPED", "[0.0; 4]", "exact zeros"),
    ("solver/interior/term.rs", "FREE_RESIDUAL", "1e300", "steps shortened for a norm"),
    ("inner/box_qp/policy.rs", "DELICATE", "0.0", "Kβ made anew near rounding"),
    ("inner/box_qp/policy.rs", "EXACT", "0.0", "sums with twice the digits"),
    ("inner/box_qp/policy.rs", "NEXT_TO_BOUND", "[0.0; 2]", "snapping after interior points"),
    ("inner/box_qp/interior.rs", "MOST_SAMPLES", "0", "interior points"),
    ("inner/box_qp/free_set.rs", "CHANGED", "usize::MAX / 4096", "factors that follow the free set"),
    ("inner/box_qp/kept_factor.rs", "NEAR", "0.0", "curvature from an old factor"),
    ("inner/rounding.rs", "OWN_ACCURACY", "1e300", "accuracy for tasks of little weight"),
    ("inner/ridge.rs", "REFINEMENTS", "1", "refinement of ridge"),
    ("engine/coarse.rs", "FEWEST", "usize::MAX", "the start from fewer samples"),
]


def variants() -> list[tuple[str, str, str, str]]:
    """File, constant, value, in words."""
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / "crates/mtmkl/src" / folder).rglob("*.rs")):
            name = str(path.relative_to(ROOT / "crates/mtmkl/src"))
            if "tests" in name:
                continue
            for constant, kind, value in CONSTANT.findall(path.read_text()):
                if kind == "f64":
                    changes = [(f"10.0 * ({value})", "× 10"), (f"0.1 * ({value})", "÷ 10")]
                else:
                    changes = [(f"2 * ({value})", "× 2"), (f"({value}) / 2", "÷ 2")]
                found += [(name, constant, changed, words) for changed, words in changes]
    return [*found, *OFF]


def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload,no-any-return]


def measured(seeds: list[int]) -> dict[str, float] | None:
    """The suite with what stands in the checkout; None where it does not build or breaks down."""
    built = run(["cargo", "build", "--quiet", "--release", "-p", "mtmkl-bench", "--bin", "suite"], cwd=WORK)
    if built.returncode != 0:
        return None
    total: dict[str, float] = {"fits": 0, "converged": 0, "passes": 0, "steps": 0, "seconds": 0.0}
    for seed in seeds:
        try:
            ran = run([str(WORK / "target/release/suite"), str(seed)], timeout=120)
        except subprocess.TimeoutExpired:
            return None
        if ran.returncode != 0:
            return None
        for line in ran.stdout.splitlines():
            group = json.loads(line)
            for key in total:
                total[key] += group[key]
    return total


def changed(file: str, constant: str, value: str) -> str:
    path = WORK / "crates/mtmkl/src" / file
    text = path.read_text()
    pattern = re.compile(rf"^((?:pub(?:\([a-z: ]+\))? )?const {constant}: [^=]+ = )[^;]+;", re.M)
    new, count = pattern.subn(lambda match: f"{match.group(1)}{value};", text, count=1)
    if count != 1:
        raise SystemExit(f"{file} has no constant {constant}")
    path.write_text(new)
    return text


def page(base: dict[str, float], results: dict[str, dict[str, float] | None], seeds: list[int]) -> str:
    text = (
        "What each constant and rescue path of the solvers is worth, by `python bench/ablations.py`: one at a time is changed, and the "
        f"suite of problems (`crates/mtmkl-bench/src/bin/suite.rs`, seeds {', '.join(map(str, seeds))}: {base['fits']:.0f} fits of every "
        f"kind) is run again on one thread. As it is: {base['converged']:.0f} reach the tolerance, {base['passes']:.0f} passes, "
        f"{base['steps']:.0f} inner steps. Rows are sorted by what is lost. Seconds say little below a tenth."
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
            lines.append(f"| `{file}` | `{constant}` | {words} | does not build, or breaks down | | | |")
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
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "ablations.md")
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    wanted = set(filter(None, arguments.only.split(",")))
    if not WORK.exists():
        run(["git", "worktree", "add", "--detach", str(WORK)], cwd=ROOT).check_returncode()
    run(["git", "checkout", "--quiet", "--force", run(["git", "rev-parse", "HEAD"], cwd=ROOT).stdout.strip()], cwd=WORK)
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if "base" not in kept:
        kept["base"] = measured(seeds)
    results = kept.setdefault("results", {})
    for file, constant, value, words in variants():
        key = f"{file}|{constant}|{words}"
        if key in results or (wanted and constant not in wanted):
            continue
        before = changed(file, constant, value)
        results[key] = measured(seeds)
        (WORK / "crates/mtmkl/src" / file).write_text(before)
        KEPT.write_text(json.dumps(kept))
        print(key, results[key], flush=True)
    arguments.page.write_text(page(kept["base"], results, seeds))


if __name__ == "__main__":
    main()
