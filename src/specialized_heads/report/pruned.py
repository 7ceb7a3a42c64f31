"""What the path of a baseline or of a model pruned with gates says of it: scope, target and seed (figures 8, drift, survival)."""

from typing import NamedTuple

import pandas as pd

from specialized_heads.report.experiment import NAME
from specialized_heads.stage import UserError

SCOPES = {"encoder": "encoder heads pruned", "all": "heads of all types pruned"}


class Pruned(NamedTuple):
    """A model: `scope` is "" for a baseline; of `lam` and `asked` (heads asked for) one is a number, the other NaN."""

    scope: str
    lam: float
    asked: float
    seed: int


def of_name(name: str) -> Pruned:
    """Read `baseline/seed1`, `pruned/encoder_lambda0.01/seed1` or `pruned/all_heads12/seed1`.

    Raises:
        UserError: it is another kind of model.
    """
    model, _, seed = name.rpartition("/seed")
    found = NAME.fullmatch(model)
    kind = found and not found["criterion"] and (found["kind"] or found["made"])
    if kind not in ("baseline", "pruned") or not seed.isdecimal():
        raise UserError(f"settings: names: {name!r} is neither a baseline nor a model pruned with gates")
    return Pruned(found["scope"] or "", float(found["lam"] or "nan"), float(found["asked"] or "nan"), int(seed))


def label(lam: float, asked: float) -> str:
    """What a model aimed at, as the label of a column; below it stands how many heads it has."""
    if pd.notna(lam):
        return f"λ {lam:g}"
    return f"asked: {asked:.0f}" if pd.notna(asked) else "none pruned"
