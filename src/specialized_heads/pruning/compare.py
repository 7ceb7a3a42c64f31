"""Stage: one table of what every criterion gives each head of a baseline, and at which numbers of heads it is kept.

The value of "gates" is log α of one pruning run, that with the (lower) median of the head counts, at the update at which the
heads were chosen (`pruning.penalty`: after 30% of the updates), since gates are fixed from then on. With more heads nearly all
gates are open, with fewer nearly all are closed, and their order says little. The value of "random" is the position in its
order, counted down; there is one draw per seed.
"""

from typing import Literal

import pyarrow as pa

from specialized_heads import stage
from specialized_heads.model.checkpoint import architecture_of
from specialized_heads.pruning.criteria import at_random, values_of
from specialized_heads.pruning.scopes import Head, heads_of
from specialized_heads.tables import write_table

COLUMNS = {
    "seed": pa.int64(),
    **dict.fromkeys(("scope", "criterion", "type"), pa.string()),
    **dict.fromkeys(("layer", "head"), pa.int64()),
    "value": pa.float64(),
    "counts": pa.list_(pa.int64()),
}


class Cut(stage.Section):
    """A cut model, in the order of `--cut`."""

    criterion: str
    scope: Literal["encoder", "all"]
    heads: int


class Settings(stage.Section):
    seed: int
    criteria: list[str]
    cut: list[Cut]
    gates: list[str]  # the scopes of `--gates`, in its order
    column: str  # of importance


@stage.command("model", "output", optional=("heads", "importance"), many=("gates", "cut"), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    architecture = architecture_of(files.model)
    gates = dict(zip(settings.gates, files.gates, strict=True))
    kept: dict[tuple[str, str, Head], list[int]] = {}
    for cut, path in zip(settings.cut, files.cut, strict=True):
        for head in heads_of(architecture_of(path), scope=cut.scope):
            kept.setdefault((cut.scope, cut.criterion, head), []).append(cut.heads)

    rows = []
    for scope in sorted({cut.scope for cut in settings.cut}, reverse=True):  # encoder, then all
        heads = heads_of(architecture, scope=scope)
        for criterion in settings.criteria:
            match criterion:
                case "gates":
                    gated = stage.read_json(gates[scope])["rows"]
                    values = {(row["type"], row["layer"], row["head"]): row["log_alpha"] for row in gated}
                case "random":
                    order = at_random(heads, seed=settings.seed)
                    values = {head: float(len(order) - place) for place, head in enumerate(order)}
                case "importance":
                    values = values_of(files.importance, heads, column=settings.column)
                case _:
                    values = values_of(files.heads, heads, column=criterion)
            for head in heads:
                row = {"seed": settings.seed, "scope": scope, "criterion": criterion}
                row |= dict(zip(("type", "layer", "head"), head, strict=True)) | {"value": values[head]}
                rows.append(row | {"counts": kept.get((scope, criterion, head), [])})
    write_table(files.output, pa.Table.from_pylist(rows, schema=pa.schema(COLUMNS)))
    stage.log.info("%d criteria", len(settings.criteria))
