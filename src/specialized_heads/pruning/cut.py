"""Stage: the baseline without all but n heads of a scope, chosen by a criterion and removed for good; nothing is trained.

Criterion "gates" keeps the heads that pruning with gates kept when as many were asked for, with the baseline's weights; the
others keep the n best heads of a table or, for "random", of a random order. What is outside of the scope stays as it is,
bit for bit.
"""

from typing import Literal

from specialized_heads import stage
from specialized_heads.model.checkpoint import architecture_of, load, save
from specialized_heads.model.transformer import Transformer
from specialized_heads.pruning.criteria import at_random, best_first, values_of
from specialized_heads.pruning.scopes import SCOPES, Head, heads_of
from specialized_heads.stage import Section


class Settings(Section):
    criterion: Literal["gates", "importance", "relevance", "confidence", "random"]
    scope: Literal["encoder", "all"]
    heads: int  # how many of the scope's heads to keep
    column: str | None  # of the table that ranks them; None: gates and random
    seed: int  # of the random order


def keep(model: Transformer, kept: list[Head], *, scope: str) -> None:
    """Remove the heads of a scope that are not among `kept`; the other types keep theirs."""
    positions = {
        kind: [
            [position for position, head in enumerate(layer) if (kind, number, head + 1) in kept]
            for number, layer in enumerate(getattr(model.architecture, kind), start=1)
        ]
        for kind in SCOPES[scope]
    }
    model.keep_heads(positions)


def main() -> None:
    files = stage.arguments(__doc__, files=("model", "output"), optional=("table", "like"))
    settings = Settings.model_validate(files.settings)
    model = load(files.model)
    heads = heads_of(model.architecture, scope=settings.scope)
    if settings.heads > len(heads):
        raise stage.UserError(f"{files.model}: {settings.heads} heads were asked for, but the scope has {len(heads)}")
    if settings.criterion == "gates":
        kept = heads_of(architecture_of(files.like), scope=settings.scope)
        if len(kept) != settings.heads or not set(kept) <= set(heads):
            raise stage.UserError(
                f"{files.like}: its {len(kept)} heads are not {settings.heads} of {files.model}; prune again"
            )
    elif settings.criterion == "random":
        kept = at_random(heads, seed=settings.seed)[: settings.heads]
    else:
        values = values_of(files.table, heads, column=settings.column)
        undefined = sum(value != value for value in values.values())
        if undefined:
            stage.log.info("%d heads without %s count as the worst", undefined, settings.criterion)
        kept = best_first(values, origin=f"{files.table}: {settings.column}")[: settings.heads]
    keep(model, kept, scope=settings.scope)
    baseline = stage.read_json(files.model.with_suffix(".json"))["training"]
    save(model, files.output, training={**baseline, "cut": files.settings})
    stage.log.info("%d of %d heads kept", len(kept), len(heads))


if __name__ == "__main__":
    stage.run(main)
