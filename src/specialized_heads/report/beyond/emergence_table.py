"""The order in which the functions of heads emerge in training: when each curve of the figure passes its midpoint."""

import numpy as np
import pandas as pd

from specialized_heads.report.beyond import emergence
from specialized_heads.report.data import Tables

CAPTION = (
    "The update of the baseline's training at which each curve of figure emergence passes, for good, the midpoint between its "
    "values at the first checkpoint and in the finished model (geometric mean over seeds). A development loss that was not "
    "measured at the first checkpoint is left out."
)
COLUMNS = ["corpus", "measure", "name", "seeds", "first", "last", "half"]


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per corpus and curve of the figure, the earliest first.

    first and last: its ends, means over seeds; half: the update by which it has gone half of the way between them, for good;
    geometric mean over seeds.
    """
    points = emergence.numbers(tables)
    first = points[points["measure"] != "loss"].groupby("corpus")["update"].min()  # checkpoint
    rows = []
    for curve, own in points.groupby(["corpus", "measure", "name"], sort=False):
        ends, halves = [], []
        for _, same in own.sort_values("update").groupby("seed"):
            start = first.get(curve[0], same["update"].min())
            same = same[same["update"] >= start]
            if start not in set(same["update"]):  # the curve does not show where it began
                continue
            values = same["value"].to_numpy()
            ends.append((values[0], values[-1]))
            way = (values - values[0]) * np.sign(values[-1] - values[0])
            below = np.flatnonzero(way < way[-1] / 2)
            halves.append(same["update"].to_numpy()[below[-1] + 1 if len(below) else 0])
        if ends:
            rows.append([*curve, len(ends), *np.mean(ends, axis=0), round(np.exp(np.mean(np.log(halves))))])
    return pd.DataFrame(rows, columns=COLUMNS).sort_values(["corpus", "half"], kind="stable", ignore_index=True)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text, the earliest curve of each corpus first."""
    names = rows["name"].map(lambda name: f": {name}" if name else "")
    table = rows[["corpus"]].assign(curve=rows["measure"].map(emergence.PANELS) + names)
    for column in ("first", "last"):
        table[column] = rows[column].map("{:.2f}".format)
    table["half-way update"] = rows["half"].map("{:,.0f}".format)
    return table.assign(seeds=rows["seeds"].map(str))
