"""Stage: keep n heads of a scope of the baseline, chosen by a criterion, and remove the others; nothing is trained.

Criterion "gates" keeps the heads that pruning with gates to the same number kept, with the baseline's weights; the others
keep the n best heads of a table or, for "random", of a random order. Everything outside the scope stays bit for bit the same.
"""

from typing import Literal

from specialized_heads import stage
from specialized_heads.model.checkpoint import architecture_of, load, save
from specialized_heads.pruning.criteria import at_random, best_first, values_of
from specialized_heads.pruning.scopes import heads_of, remove_heads


class Settings(stage.Section):
    criterion: Literal["gates", "importance", "relevance", "confidence", "random"]
    scope: Literal["encoder", "all"]
    heads: int  # number of heads of the scope to keep
    column: str | None  # of the table that ranks them; None: gates and random
    seed: int  # of the random order


@stage.command("model", "output", optional=("table", "like"), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    model = load(files.model)
    heads = heads_of(model.architecture, scope=settings.scope)
    if settings.heads > len(heads):
        raise stage.UserError(f"{files.model}: {settings.heads} heads were asked for, but the scope has {len(heads)}")
    if settings.criterion == "gates":
        kept = heads_of(architecture_of(files.like), scope=settings.scope)
        if len(kept) != settings.heads or not set(kept) <= set(heads):
            raise stage.UserError(
                f"{files.like}: its {len(kept)} heads are not {settings.heads} of the model; prune again"
            )
    elif settings.criterion == "random":
        kept = at_random(heads, seed=settings.seed)[: settings.heads]
    else:
        values = values_of(files.table, heads, column=settings.column)
        undefined = sum(value != value for value in values.values())
        if undefined:
            stage.log.info("%d heads without %s rank last", undefined, settings.criterion)
        kept = best_first(values, origin=f"{files.table}: {settings.column}")[: settings.heads]
    remove_heads(model, set(heads) - set(kept))
    baseline = stage.read_json(files.model.with_suffix(".json"))["training"]
    save(model, files.output, training={**baseline, "cut": files.settings})
    stage.log.info("%d of %d heads kept", len(kept), len(heads))
