"""Table functions says how many heads have a function and, if none has, why."""

import pandas as pd

from specialized_heads.report.beyond import functions


def test_heads_without_a_function_get_a_reason() -> None:
    rows = pd.DataFrame({"corpus": "mine", "seed": [1, 2], "updates": [400, 8000], "heads": 48, "labelled": [0, 7]})
    few, many = functions.notes(rows)
    assert few.startswith("mine, seed 1: 0 of 48 encoder heads have a function; most likely 400 updates")
    assert many == "mine, seed 2: 7 of 48 encoder heads have a function."
