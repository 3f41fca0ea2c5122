"""Models that anybody could have written, forks, files that cannot be written: an error by name, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import mtmkl
from mtmkl import MKLClassifier, MKLRegressor, MKLSearchCV

# Lines for a process of its own.
FITS = """
import sys, numpy as np
from mtmkl import MKLClassifier
X = np.random.default_rng(0).normal(size=(60, 3))
model = MKLClassifier(["linear", "rbf"]).fit(X, X[:, 0] > 0)
"""


def taken_apart(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    container = json.loads(data[8 : 8 + length])
    return container, json.loads(container["__metadata__"]["mtmkl"]), data[8 + length :]


def put_together(path, container, model, numbers):
    container["__metadata__"]["mtmkl"] = json.dumps(model)
    text = json.dumps(container).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + numbers)


@pytest.fixture
def saved(tmp_path, rng):
    """A saved classifier of named classes, its rows, and what changes its notes."""
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] > 0, "in", "out")
    path = tmp_path / "m"
    MKLClassifier(["linear", "rbf"]).fit(X, y).save(path)
    container, model, numbers = taken_apart(path)

    def change(**notes):
        changed = json.loads(json.dumps(model))
        for name, value in notes.items():
            changed["notes"][name.replace("_", "-")] = value if isinstance(value, str) else json.dumps(value)
        put_together(path, container, changed, numbers)
        return path

    change.about = json.loads(model["notes"]["python"])
    change.X = X
    return change


def about(change, **values):
    return change.about | values


BAD = {
    "not JSON": lambda own: {"python": "{"},
    "a list": lambda own: {"python": [1]},
    "a number": lambda own: {"python": 7},
    "a text": lambda own: {"python": '"x"'},
    "nested without end": lambda own: {"python": "[" * 100_000},
    "no features": lambda own: {"python": {name: value for name, value in own.about.items() if name != "features"}},
    "features that are no number": lambda own: {"python": about(own, features="many")},
    "features that are a list": lambda own: {"python": about(own, features=[3])},
    "names that are a number": lambda own: {"python": about(own, names=3)},
    "parameters that nobody knows": lambda own: {"python": about(own, parameters={"colour": 1})},
    "parameters that are a list": lambda own: {"python": about(own, parameters=["C"])},
    "classes that are a number": lambda own: {"python": about(own, classes=2)},
    "classes of an unknown type": lambda own: {"python": about(own, class_type="q9")},
    "classes that are no integers": lambda own: {"python": about(own, class_type="<i8")},
    "classes of a gigabyte each": lambda own: {"python": about(own, class_type="<U250000000")},
    "classes of code": lambda own: {"python": about(own, class_type="__import__('os').system('false')")},
    "weights of more classes": lambda own: {"python": about(own, class_weight=[1.0, 2.0, 3.0])},
    "transfer that is a list": lambda own: {"python": about(own, transfer=[])},
    "training rows that are no list": lambda own: {"training_rows": 7},
    "training rows that are not there": lambda own: {"training_rows": [[1, 2]]},
    "training rows beyond counting": lambda own: {"training_rows": [[10**30] * 40]},
    "scores that are no JSON": lambda own: {"scores": "{"},
    "a frame that is no JSON": lambda own: {"frame": "{"},
    "a frame of other machines": lambda own: {"frame": "{}"},
}


@pytest.mark.parametrize("name", BAD)
def test_notes_that_do_not_hold_together(saved, name):
    path = saved(**BAD[name](saved))
    with pytest.raises(ValueError, match=r"m: |m "):
        mtmkl.load(path)


def mutated(rng, text):
    """A text with a few characters changed, left out or put twice."""
    letters = list(text)
    for _ in range(rng.integers(1, 6)):
        at = int(rng.integers(len(letters)))
        match rng.integers(4):
            case 0:
                letters[at] = chr(int(rng.integers(32, 127)))
            case 1:
                letters[at] = str(rng.integers(10))
            case 2:
                del letters[at]
            case _:
                letters.insert(at, letters[at])
    return "".join(letters)


def test_changed_notes_are_refused_or_still_sensible(saved, tmp_path, rng):
    """As often as ``MTMKL_SOAK_LOADS`` says."""
    path = saved()
    container, model, numbers = taken_apart(path)
    whole = mtmkl.load(path)
    refused = 0
    rounds = int(os.environ.get("MTMKL_SOAK_LOADS", "200"))
    for _ in range(rounds):
        changed = json.loads(json.dumps(model))
        name = str(rng.choice(sorted(changed["notes"])))
        changed["notes"][name] = mutated(rng, changed["notes"][name])
        put_together(path, container, changed, numbers)
        try:
            found = mtmkl.load(path)
            found.decision_function(saved.X[:, : whole.n_features_in_])
        except ValueError:
            refused += 1
    assert 0 < refused < rounds


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/null", "."])
def test_what_is_no_model(place):
    with pytest.raises((ValueError, OSError)):
        mtmkl.load(place)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_forked_process_fits_searches_and_saves(rng, tmp_path, threads):
    X = rng.normal(size=(120, 3))
    y = X[:, 0] + X[:, 1] ** 2
    model = MKLRegressor(["linear", "rbf"], n_jobs=threads).fit(X, y)
    search = MKLSearchCV(MKLRegressor(["rbf"], n_jobs=threads), {"alpha": [0.1, 1.0]}, cv=2)
    best = search.fit(X, y).best_params_
    child = os.fork()
    if child == 0:
        # A process that waits for threads that are not there would wait for ever.
        signal.alarm(60)
        again = MKLRegressor(["linear", "rbf"], n_jobs=threads).fit(X, y)
        same = np.array_equal(again.predict(X), model.predict(X)) and search.fit(X, y).best_params_ == best
        again.save(tmp_path / "m")
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(mtmkl.load(tmp_path / "m").predict(X), model.predict(X))


def test_a_model_that_cannot_be_written_costs_nothing(tmp_path):
    """The write fails at the first byte, in the middle, and near the end."""
    whole = tmp_path / "whole"
    subprocess.run([sys.executable, "-c", f"{FITS}model.save(sys.argv[1])", whole], check=True)
    before = whole.read_bytes()
    place = tmp_path / "m"
    for part in (0, 4, 7):
        place.write_bytes(before)
        most = len(before) * part // 8
        code = FITS + (
            "import resource\n"
            f"resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))\n"
            "try:\n    model.save(sys.argv[1])\nexcept OSError as error:\n    sys.exit(7 if error.errno == 27 else 8)\n"
        )
        done = subprocess.run([sys.executable, "-c", code, place], check=False)
        assert done.returncode == 7
        assert place.read_bytes() == before
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["m", "whole"]


def test_a_killed_save_leaves_the_old_model(tmp_path):
    place = tmp_path / "m"
    subprocess.run([sys.executable, "-c", f"{FITS}model.save(sys.argv[1])", place], check=True)
    code = FITS + "print('ready', flush=True)\nwhile True:\n    model.save(sys.argv[1])\n"
    rng = np.random.default_rng(5)
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", code, place], stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"ready\n"
        for _ in range(3):
            signal.sigtimedwait([], rng.uniform(0, 0.02))
            assert mtmkl.load(place).status_ == "converged"
        child.kill()
        child.wait()
        assert mtmkl.load(place).status_ == "converged"
    # What the killed left is removed by the next that writes there.
    mtmkl.load(place).save(place)
    assert [entry.name for entry in tmp_path.iterdir()] == ["m"]
