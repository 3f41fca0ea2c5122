"""The page, the notebook view and the plots."""

from __future__ import annotations

import builtins
import html
import re

import matplotlib
import numpy as np
import pytest

from mtmkl import MKLClassifier, MKLOneClassSVM, MKLRegressor, plot_boundary, plot_path, plot_weights

matplotlib.use("Agg")


@pytest.fixture
def model(sites):
    X, y = sites
    return MKLClassifier(["linear", "rbf:sigma=1|2"], task="site").fit(X, y)


def test_the_report_is_one_page(model, tmp_path):
    page = model.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert page.startswith("<!DOCTYPE html>") and "MKLClassifier" in page
    for word in (*model.tasks_, *model.kernel_names_, "pscs"):
        assert word in page
    assert not re.search(r"(src|href)=\"https?:", page)


def test_a_model_of_two_features_has_a_picture_of_the_plane(model, rng):
    X = rng.normal(size=(40, 2))
    assert "The decision boundary over" in MKLClassifier(["rbf"]).fit(X, X[:, 0] > 0).report()
    assert "Which class is predicted" in MKLClassifier(["rbf"]).fit(X, np.digitize(X[:, 0], [-0.5, 0.5])).report()
    assert "The prediction over" in MKLRegressor(["rbf"]).fit(X, X[:, 0]).report()
    assert "What counts as inside" in MKLOneClassSVM(["rbf"]).fit(X).report()
    assert 'id="pictures"' not in MKLOneClassSVM(["rbf"]).fit(rng.normal(size=(40, 3))).report()


def test_a_notebook_shows_the_report_of_a_fitted_model_and_a_diagram_before(model):
    view = model._repr_html_()
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', view)[1]) == model.report()
    bundle = model._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"} and bundle["text/html"] == view
    assert "iframe" not in MKLClassifier()._repr_html_() and "MKLClassifier" in MKLClassifier()._repr_html_()


def test_weights(model):
    ax = plot_weights(model)
    shown = ax.get_images()[0].get_array()
    np.testing.assert_array_equal(shown, np.vstack([model.kernel_weights_, model.common_weights_]))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["north", "south", "west", "shared"]
    assert [label.get_text() for label in ax.get_xticklabels()] == model.kernel_names_


def test_path(model):
    ax = plot_path(model)
    objective, bound = (line.get_ydata() for line in ax.get_lines())
    np.testing.assert_array_equal(objective, model.trace_["objective"])
    assert np.all(bound <= objective[-1])


@pytest.mark.parametrize("make", [MKLClassifier, MKLRegressor, MKLOneClassSVM])
def test_boundary(make, rng):
    X = rng.normal(size=(40, 2))
    y = {"MKLClassifier": X[:, 0] * X[:, 1] > 0, "MKLRegressor": X[:, 0]}.get(make.__name__)
    figure = matplotlib.figure.Figure()
    ax = plot_boundary(make(["rbf"]).fit(X, y), X, y, ax=figure.subplots(), resolution=30)
    assert len(ax.collections) >= 2


def test_boundaries_of_classes_and_of_one_task(rng, sites):
    X = rng.normal(size=(60, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    assert plot_boundary(MKLClassifier(["rbf"]).fit(X, y), X, y, resolution=30)
    frame, sick = sites
    frame = frame[["a", "b", "site"]]
    model = MKLClassifier(["rbf"], task="site").fit(frame, sick)
    north = frame[frame["site"] == "north"]
    ax = plot_boundary(model, north, sick[north.index], resolution=30)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")
    with pytest.raises(ValueError, match="rows of 3 tasks; draw them one at a time"):
        plot_boundary(model, frame)
    with pytest.raises(ValueError, match="two features, not of 3 features"):
        plot_boundary(MKLOneClassSVM(["rbf"]).fit(rng.normal(size=(20, 3))), rng.normal(size=(20, 3)))


def test_without_matplotlib_the_message_says_what_to_install(model, monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'mtmkl\[plot\]'"):
        plot_weights(model)
