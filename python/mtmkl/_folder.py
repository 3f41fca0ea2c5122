"""A folder of models: the machines of many tasks in several files, each read when it is asked for.

Each of the files is a model by itself, of the problem in which its tasks have the weights that they have here. ``index.json`` says which
tasks are where, and what is certified of the whole. It is replaced last and as a whole, by one that names other files: a folder is what
it was until the new one is complete.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._fitted import Fitted
from ._kernels import Matrix
from ._table import Table

INDEX = "index.json"
#: Of the index; later ones are refused.
FORMAT = 1


class Writer:
    """Writes a folder; what it has written goes away again unless it comes to its end."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._run = secrets.token_hex(4)
        self._machines: list[dict[str, Any]] = []
        self._written: list[Path] = []

    def __enter__(self) -> Writer:
        self.folder.mkdir(parents=True, exist_ok=True)
        if any(self.folder.iterdir()):
            _index(self.folder)
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is not None:
            for path in self._written:
                path.unlink(missing_ok=True)

    def add(self, model: _core.Model, sets: Sequence[int]) -> None:
        """The machines of some sample sets, by their numbers in the whole."""
        name = f"machines-{self._run}-{len(self._machines):05}.mtmkl"
        self._save(name, model)
        self._machines.append({"file": name, "tasks": _core.Frame.of(model).tasks(model), "sets": list(sets)})

    def end(self, weights: _core.Model) -> None:
        """The weights of all tasks and the certificate; with this the folder is another one."""
        name = f"weights-{self._run}.mtmkl"
        self._save(name, weights)
        certificate = {word: getattr(weights, word) for word in ("objective", "bound", "gap", "tolerance", "status")}
        index = {"format": FORMAT, "mtmkl": _core.__version__, "certificate": certificate, "weights": name, "machines": self._machines}
        before = _index(self.folder) if (self.folder / INDEX).exists() else {"machines": []}
        temporary = self.folder / f".{INDEX}.{self._run}.tmp"
        self._written.append(temporary)
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(index, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.folder / INDEX)
        for old in [*(own["file"] for own in before["machines"]), before.get("weights")]:
            if old is not None:
                with contextlib.suppress(OSError):
                    (self.folder / old).unlink()

    def _save(self, name: str, model: _core.Model) -> None:
        self._written.append(self.folder / name)
        model.save(self.folder / name)


def _index(folder: Path) -> dict[str, Any]:
    path = folder / INDEX
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
        files = [index["weights"], *(own["file"] for own in index["machines"])]
        known = int(index["format"])
    except FileNotFoundError:
        raise ValueError(f"{folder} has no {INDEX}: it is no folder of models; name another one") from None
    except (ValueError, LookupError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error!r}") from None
    if known > FORMAT:
        raise ValueError(f"{path} has format {known}, this mtmkl reads up to {FORMAT}; use a newer mtmkl")
    for name in files:
        if not isinstance(name, str) or Path(name).name != name:
            raise ValueError(f"{path} is damaged: {name!r} is not the name of a file beside it")
    return dict(index)


class Folder:
    """The files of a folder, for an estimator whose machines are there."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        index = _index(self.folder)
        self.weights = self.folder / index["weights"]
        self._files: list[str] = [own["file"] for own in index["machines"]]
        #: For each sample set of the whole, its file and its number there.
        self._places = {int(set): (at, number) for at, own in enumerate(index["machines"]) for number, set in enumerate(own["sets"])}
        #: The file that was read last: one task after the other reads its file once.
        self._last: tuple[int, _core.Model] | None = None

    def model(self) -> _core.Model:
        """Weights, names and certificate of all tasks."""
        model = _core.Model.from_bytes(self.weights.read_bytes())
        if sorted(self._places) != sorted(set(model.task_sets)):
            raise ValueError(f"{self.folder / INDEX} is damaged: it does not say where the machines of every task are")
        return model

    def _read(self, at: int) -> _core.Model:
        if self._last is None or self._last[0] != at:
            self._last = (at, _core.Model.load(self.folder / self._files[at]))
        return self._last[1]

    def decisions(self, estimator: Fitted, table: Table, parts: Sequence[tuple[int, NDArray[np.intp]]]) -> list[Matrix]:
        """The decision values of the machines of sample sets on rows of a table, file by file."""
        found: dict[int, Matrix] = {}
        for at, (set, _) in sorted(enumerate(parts), key=lambda part: self._places[part[1][0]]):
            file, number = self._places[set]
            found[at] = self._read(file).decisions(number, estimator._input(table, parts[at][1], set))
        return [found[at] for at in range(len(parts))]

    def home(self, model: _core.Model) -> _core.Model:
        """The model with the machines of all files."""
        order = [self._places[set] for set in range(len(self._places))]
        return model.with_machines([self._read(at) for at in range(len(self._files))], order)
