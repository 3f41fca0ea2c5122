"""A reader's test: what users ask, put to the site's own search in a browser; the page that answers must be among the first results.

    python docs/site/questions.py target/site

Needs Chromium; skips with a message where there is none.
"""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from urllib.parse import quote

#: What somebody types, and the pages that answer it: one of them must be among the first results.
QUESTIONS = {
    "how do I give each view its own kernel": ["questions.html", "guide.html"],
    "view kernel columns": ["guide.html", "gallery/plot_views_of_digits.html", "user/program.html"],
    "what does gap mean": ["user/reading.html", "questions.html"],
    "predict for a new site": ["user/new-data.html", "gallery/plot_transfer.html"],
    "which C": ["user/choosing.html", "questions.html"],
    "how to cite": ["citing.html"],
    "50,000 rows": ["user/samples.html", "speed.html"],
    "memory n = 50,000": ["user/samples.html"],
    "which sharing": ["user/sharing.html"],
    "probabilities": ["user/machines.html", "probability.html"],
    "precomputed kernel": ["guide.html", "gallery/plot_strings.html", "reference/made/kernels.html"],
    "read a report": ["user/reading.html"],
    "model file versions": ["reference/files.html"],
    "logistic regression": ["logistic.html", "user/machines.html"],
    "MKLClassifier": ["reference/made/python/mtmkl.MKLClassifier.html"],
    "cluster dask": ["cluster.html"],
    "mistakes in the paper": ["theory.html"],
    "missing values": ["reference/made/cli.html", "guide.html", "user/limits.html"],
}
FIRST = 5
FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync --disable-background-networking"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def results(browser: str, address: str, question: str) -> list[str]:
    """Addresses of pages in the order in which the search shows them, each once."""
    with tempfile.TemporaryDirectory() as profile:
        page = f"{address}/search.html?q={quote(question)}"
        command = [browser, *FLAGS.split(), f"--user-data-dir={profile}", "--virtual-time-budget=20000", "--dump-dom", page]
        text = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = text[text.index('id="search-results"') :]
    links = re.findall(r'<li[^>]*>\s*<a href="([^"#?]*)', found)
    return list(dict.fromkeys(links))


def main() -> int:
    site = Path(sys.argv[1]).resolve()
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        print("skipped: there is no Chromium to search with")
        return 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    missed = 0
    for question, pages in QUESTIONS.items():
        found = results(browser, address, question)
        place = next((at for at, page in enumerate(found, 1) if page in pages), None)
        is_good = place is not None and place <= FIRST
        missed += not is_good
        shown = f"{found[place - 1]}, result {place} of {len(found)}" if place else "not there"
        print(f"{'found ' if is_good else 'MISSED'}  {question!r}: {shown}")
        if not is_good:
            print("        first are", ", ".join(found[:FIRST]))
    server.shutdown()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
