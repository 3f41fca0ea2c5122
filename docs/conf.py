"""The site: `cargo xtask docs` builds it into target/site, without the network.

The gallery is run unless MTMKL_GALLERY is 0. Pages under reference/made come from the program's own entries (the example `reference` of
crates/mtmkl-cli).
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

ROOT = Path(__file__).resolve().parents[1]

project = "mtmkl"
author = "The mtmkl developers"
copyright = "2026, the mtmkl developers"
version = release = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]

suppress_warnings = ["config.cache"]
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
]
exclude_patterns = ["examples", "site", "figures/README.md", "gallery/*.ipynb", "gallery/*.py", "gallery/*.json", "gallery/*.zip"]
smartquotes = False

# Markdown as it stands in the repository: links between files become links between pages.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
templates_path = ["site/templates"]

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "plot_gallery": os.environ.get("MTMKL_GALLERY", "1") != "0",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "capture_repr": (),
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "reference_url": {"mtmkl": None},
    "doc_module": (),
    "backreferences_dir": None,
    "image_srcset": ["2x"],
    "nested_sections": False,
}
ORDER = [
    "plot_views_of_digits.py",
    "plot_sites_of_a_clinic.py",
    "plot_transfer.py",
    "plot_related_targets.py",
    "plot_hierarchy.py",
    "plot_anomalies.py",
    "plot_model_selection.py",
    "plot_own_kernel.py",
    "plot_strings.py",
    "plot_certificate.py",
]
sphinx_gallery_conf["within_subsection_order"] = ExplicitOrder(ORDER)

html_theme = "pydata_sphinx_theme"
html_title = f"mtmkl {release}"
html_static_path = ["site/static"]
html_css_files = ["mtmkl.css"]
html_search_scorer = str(ROOT / "docs/site/scorer.js")
html_favicon = "site/static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "mtmkl", "image_light": "site/static/mark.svg", "image_dark": "site/static/mark.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {name: [] for name in ("index", "theory", "speed", "questions", "citing", "changelog")}


def only_pages_that_are_there(app, name, source):
    """Patterns of tables of contents that match nothing are left out: their pages are being written."""
    folder = Path(app.srcdir, name).parent
    lines = source[0].split("\n")
    source[0] = "\n".join(line for line in lines if not line.endswith("*") or not line.startswith("../") or any(folder.glob(line + ".md")))


def skip(app, what, name, obj, is_skipped, options):
    """scikit-learn's routing of metadata is scikit-learn's to document."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app):
    app.connect("source-read", only_pages_that_are_there)
    app.connect("autodoc-skip-member", skip)
