"""The package as it is shipped: documentation that runs, types that hold, the wheel in an empty environment."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import matplotlib
import pytest

import mtmkl

ROOT = Path(__file__).resolve().parents[2]
MODULES = [f"mtmkl.{module.name}" for module in pkgutil.iter_modules(mtmkl.__path__) if module.name != "_core"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0


def test_every_public_estimator_has_an_example():
    for name in ("MKLClassifier", "MKLRegressor", "MKLOneClassSVM", "MKLSVDD", "MKLSearchCV", "KernelStack", "load", "kernel_specs"):
        assert ">>>" in getattr(mtmkl, name).__doc__


def test_the_guide_runs_and_prints_what_it_says(tmp_path, monkeypatch):
    """Python blocks in order, in one namespace; a text block after one of them is what it prints."""
    matplotlib.use("Agg")
    text = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, flags=re.DOTALL)
    assert len(blocks) > 10
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "guide"}
    for code, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "guide.md", "exec"), namespace)
        assert printed.getvalue() == expected, code
    assert {path.name for path in tmp_path.iterdir()} == {"weights.png", "path.png", "report.html", "hospitals.mtmkl"}


def run(*command, cwd, **options):
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_types_hold_strictly():
    run(sys.executable, "-m", "mypy", "--cache-dir", ROOT / "target" / "mypy", cwd=ROOT)


def test_stubs_are_what_the_package_has(tmp_path):
    options = ["--allowlist", Path(__file__).with_name("stubtest-allow.txt"), "--ignore-unused-allowlist"]
    run(sys.executable, "-m", "mypy.stubtest", "mtmkl", "--mypy-config-file", ROOT / "pyproject.toml", *options, cwd=tmp_path)


def test_users_see_types(tmp_path):
    (tmp_path / "user.py").write_text(
        "import numpy as np\n"
        "from mtmkl import Common, Group, MKLClassifier\n"
        "model = MKLClassifier(['rbf'], sharing=Common(p=1.1) + Group(q=1), C=2.0).fit(np.eye(4), [0, 1, 0, 1])\n"
        "reveal_type(model)\n"
        "reveal_type(model.decision_function(np.eye(4)))\n"
        "MKLClassifier(C='one')\n"
    )
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "user.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 'Revealed type is "mtmkl._classifier.MKLClassifier"' in done.stdout
    assert "float64" in done.stdout
    assert 'Argument "C" to "MKLClassifier" has incompatible type "Literal[' in done.stdout
    assert done.stdout.count("error:") == 1, done.stdout


@pytest.fixture(scope="module")
def wheel() -> Path:
    path = os.environ.get("MTMKL_WHEEL")
    if path is None:
        pytest.skip("MTMKL_WHEEL is not set; `cargo xtask test` builds the wheel and sets it")
    return Path(path)


@pytest.fixture(scope="module")
def empty(wheel, tmp_path_factory) -> Path:
    """An interpreter with nothing but the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=folder)
    return python


def test_the_wheel_is_small_and_for_every_python(wheel):
    assert wheel.stat().st_size < 15e6
    assert "-abi3-" in wheel.name


def test_an_empty_environment_is_enough(empty, tmp_path):
    asked = run(empty, "-c", "import importlib.metadata as m; print('\\n'.join(m.requires('mtmkl')))", cwd=tmp_path)
    assert {re.split(r"[<>= ]", line)[0] for line in asked.splitlines() if "extra ==" not in line} == {"numpy", "scikit-learn"}
    code = (
        "import numpy as np, mtmkl\n"
        "X = np.random.default_rng(0).normal(size=(60, 3)); y = X[:, 0] * X[:, 1] > 0\n"
        "assert mtmkl.MKLClassifier(C=10).fit(X, y).score(X, y) > 0.9\n"
        "assert mtmkl.MKLRegressor().fit(X, X[:, 0]).predict(X).shape == (60,)\n"
        "assert set(mtmkl.MKLOneClassSVM().fit_predict(X)) == set(mtmkl.MKLSVDD().fit_predict(X)) == {1, -1}\n"
    )
    run(empty, "-c", code, cwd=tmp_path)


def test_readme_runs_as_printed(empty, tmp_path):
    said = run(empty, ROOT / "python" / "tests" / "smoke.py", ROOT / "README.md", cwd=tmp_path)
    assert "run as printed" in said


def test_import_is_quick(empty, tmp_path, capsys):
    """Beyond scikit-learn's own import, here that of an SVM."""
    code = "import time, sklearn.svm; t = time.perf_counter(); import mtmkl; mtmkl.MKLClassifier; print(time.perf_counter() - t)"
    seconds = min(float(run(empty, "-c", code, cwd=tmp_path)) for _ in range(5))
    with capsys.disabled():
        print(f"\nimport mtmkl: {1000 * seconds:.0f} ms beyond scikit-learn's")
    assert seconds < 0.3


def test_the_wheel_brings_the_program(empty, tmp_path):
    (tmp_path / "t.csv").write_text("a,b,label\n" + "".join(f"{at},{at % 7},{'x' if at % 7 > 3 else 'y'}\n" for at in range(60)))
    program = empty.with_name("mtmkl")
    assert run(program, "--version", cwd=tmp_path).startswith("mtmkl ")
    said = run(program, "fit", "t.csv", "--target", "label", "-o", "m", cwd=tmp_path)
    assert "Certified" in said and (tmp_path / "m").exists()


def test_the_program_ends_as_it_does_without_python(tmp_path):
    """Exit codes, closed pipes, and Ctrl-C before there is something to keep."""
    command = [sys.executable, "-m", "mtmkl"]

    def code(*arguments):
        return subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, check=False).returncode

    assert code("--version") == 0
    assert code("fit", "nowhere.csv", "--target", "y") == 2
    assert code("nonsense") == 2
    # It waits for standard input, where Python's handler would be waiting with it.
    waiting = subprocess.Popen([*command, "fit", "-", "--target", "y"], cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    time.sleep(1.0)
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(timeout=20) == -signal.SIGINT
    # Nothing of scikit-learn is loaded for it.
    loaded = run(sys.executable, "-c", "import sys, mtmkl._program; print('sklearn' in sys.modules)", cwd=tmp_path)
    assert loaded == "False\n"
