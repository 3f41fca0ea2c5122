"""Whether every link inside the site leads somewhere: files, and places within pages.

python docs/site/links.py FOLDER [--without SUBFOLDER]      # links to a subfolder that this build has not are left out
"""

from __future__ import annotations

import argparse
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the places that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.add(value)
            if name in ("id", "name") and value:
                self.places.add(value)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("site", type=Path)
    parser.add_argument("--without", default=None)
    arguments = parser.parse_args()
    site = arguments.site.resolve()
    # Rust's own pages are checked by rustdoc.
    own = [path for path in site.rglob("*.html") if path.relative_to(site).parts[0] not in ("rust", "_static")]
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in own}
    dead, checked = [], 0
    for path, page in sorted(pages.items()):
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("javascript:"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if arguments.without and target.is_relative_to(site / arguments.without):
                continue
            checked += 1
            if target.is_dir():
                target /= "index.html"
            if not target.is_relative_to(site) or not target.exists():
                dead.append(f"{path.relative_to(site)}: {link}: no such page")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                dead.append(f"{path.relative_to(site)}: {link}: no such place in the page")
    print(f"{len(pages)} pages, {checked} links inside the site, {len(dead)} of them dead")
    print("\n".join(dead), file=sys.stderr)
    return 1 if dead or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
