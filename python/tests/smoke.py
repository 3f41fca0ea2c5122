"""Whether README's blocks run and print what stands there, with nothing but what `pip install mtmkl` brings.

    python python/tests/smoke.py README.md

The Python block must print the text block after it. Of the console block every line that begins with `$` is run, in an empty folder,
with the program that came with the package; the lines shown must be printed in that order. Lines of dots stand for more, and seconds
differ.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def python_block(text: str) -> None:
    code, expected = re.search(r"^```python\n(.*?)^```\n+```text\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert printed.getvalue() == expected, f"README says\n{expected}\nit prints\n{printed.getvalue()}"


def steady(line: str) -> str:
    return re.sub(r"[0-9.]+ s\b", "_ s", line.rstrip())


def console_block(text: str) -> int:
    block = blocks(text, "console")[0]
    scripts = Path(sys.executable).parent
    paths = os.pathsep.join([str(scripts), os.environ["PATH"]])
    commands = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    with tempfile.TemporaryDirectory() as folder:
        for command in commands:
            line, *shown = command.splitlines()
            done = subprocess.run(
                line,
                shell=True,
                cwd=folder,
                env={**os.environ, "PATH": paths},
                capture_output=True,
                text=True,
                encoding="utf-8",
                check=False,
            )
            assert done.returncode == 0, f"{line}\n{done.stderr}"
            printed = iter(map(steady, (done.stdout + done.stderr).splitlines()))
            for wanted in map(steady, shown):
                if wanted in ("", "…"):
                    continue
                assert wanted in printed, f"{line}\nREADME says `{wanted}`, which is not printed there:\n{done.stdout}{done.stderr}"
    return len(commands)


def main() -> None:
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    python_block(text)
    count = console_block(text)
    print(f"{sys.argv[1]}: the Python block and {count} commands run as printed")


if __name__ == "__main__":
    main()
