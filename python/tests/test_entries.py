"""What Python says about machines and sharings is what the core's entries say; `cargo xtask python` writes the arguments."""

from __future__ import annotations

import json

import pytest

import mtmkl
from mtmkl import _core
from mtmkl._sharing import sharing_spec

NUMBERS = {"p": 2.0, "q": 1.0, "radius": 1.0}


@pytest.mark.parametrize(("name", "numbers", "required"), _core.sharings())
def test_every_sharing_of_the_core_can_be_asked_for(name, numbers, required):
    if required:
        with pytest.raises(ValueError, match=f"sharing='{name}' has a parameter of its own: write sharing=mtmkl\\.(\\w+)\\("):
            sharing_spec(name, NUMBERS, {"name": "svc"}, 2, False)
    else:
        assert sharing_spec(name, NUMBERS, {"name": "svc"}, 2, False) == {"name": name, **{number: NUMBERS[number] for number in numbers}}


def test_objects_have_the_defaults_of_the_names():
    assert mtmkl.PSCS().spec() == sharing_spec("pscs", NUMBERS, {"name": "svc"}, 2, False)
    assert mtmkl.Uniform().spec() == sharing_spec("uniform", NUMBERS, {"name": "svc"}, 2, False)


@pytest.mark.parametrize(
    ("machine", "tasks", "of_classes", "sharing"),
    [("svc", 1, False, "lp"), ("svc", 3, True, "common"), ("krr", 3, False, "pscs"), ("svdd", 1, False, "uniform")],
)
def test_what_is_shared_where_nothing_is_said_is_the_core_s_choice(machine, tasks, of_classes, sharing):
    assert _core.usual_sharing(json.dumps({"name": machine}), tasks, of_classes) == sharing
    assert sharing_spec("auto", NUMBERS, {"name": machine}, tasks, of_classes)["name"] == sharing


def test_an_estimator_without_kernels_has_the_core_s():
    X = [[0.0], [1.0], [2.0], [3.0]]
    model = mtmkl.MKLClassifier().fit(X, [0, 0, 1, 1])
    assert model.kernel_names_ == [name for spec in _core.usual_kernels() for name in mtmkl.kernel_specs(spec)]
