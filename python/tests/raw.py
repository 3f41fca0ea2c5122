"""The decision values of a model's machines, as `mtmkl predict --decision` prints them."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np


def decisions(model, X, task=None):
    """Samples × machines of all classes; nan where a sample's task has no such machine."""
    count, answers = model._answers(X, task)
    goal = json.loads(model._frame.to_json())["goal"]
    about = goal.get("multiclass") if isinstance(goal, dict) else None
    if about is None:
        values = np.empty((count, 1))
        for answer in answers:
            values[answer.rows] = answer.decisions
        return values
    number = len(about["classes"])
    pairs = about["scheme"] == "ovo"
    places = list(combinations(range(number), 2)) if pairs else [(at,) for at in range(number)]
    values = np.full((count, len(places)), np.nan)
    for answer in answers:
        own = about["present"][answer.set]["classes"] if about.get("present") else range(number)
        machines = combinations(own, 2) if pairs else ((at,) for at in own)
        columns = [places.index(machine) for machine in machines]
        values[np.ix_(answer.rows, columns)] = answer.decisions
    return values
