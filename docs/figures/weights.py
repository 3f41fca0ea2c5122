"""The picture of README.md: the weights of the fit that stands there, as the report shows them, on a light and on a dark page.

python docs/figures/weights.py      # with mtmkl and Chromium installed; writes weights.png and weights-dark.png beside this file
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from sklearn.datasets import load_digits

from mtmkl import MKLClassifier

HERE = Path(__file__).resolve().parent
FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync --disable-background-networking"
#: The report's own style decides colours by what the reader's system asks for; a picture has no reader.
DARK = re.compile(r"@media screen and \(prefers-color-scheme: dark\) \{\s*(:root \{.*?\})\s*\}", re.DOTALL)


def section() -> str:
    """The first table of weights of the report, with the report's style."""
    X, y = load_digits(return_X_y=True)
    strips = [
        ("top", "rbf:sigma=median*0.5", slice(0, 24)),
        ("middle", "rbf:sigma=median*0.5", slice(24, 40)),
        ("bottom", "rbf:sigma=median*0.5", slice(40, 64)),
    ]
    model = MKLClassifier(strips, multiclass="ova", sharing="pscs", p=1, C=10).fit(X[::2], y[::2])
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        model.report(str(page))
        text = page.read_text(encoding="utf-8")
    head = text[: text.index("<body")]
    body = text[text.index('<section id="weights"') :]
    # Total and parts side by side: a picture is wider than a page.
    side = (
        "section { columns: 2; column-gap: 2.5rem; border: 0 } h2, h2 + p, h2 + p + * { column-span: all } "
        "h3 { margin-top: 0 } h3 ~ h3 { break-before: column }"
    )
    head = head.replace("</style>", f"{side}</style>")
    return f"{head}<body><main>{body[: body.index('</section>')]}</section></main></body></html>"


def main() -> None:
    text = section()
    dark = DARK.search(text)
    assert dark is not None, "the report's style has no dark page"
    light = DARK.sub("", text)
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert browser is not None, "Chromium is needed to draw the page"
    for name, page in (("weights.png", light), ("weights-dark.png", light.replace("</style>", f"{dark.group(1)}</style>"))):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "page.html").write_text(page, encoding="utf-8")
            shot = f"--screenshot={HERE / name} --window-size=860,580 --hide-scrollbars --force-device-scale-factor=1.5"
            command = [browser, *FLAGS.split(), *shot.split(), f"--user-data-dir={folder}/profile", f"file://{folder}/page.html"]
            subprocess.run(command, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main()
