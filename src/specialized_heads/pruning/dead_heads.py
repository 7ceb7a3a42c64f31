"""Stage: collect the heads that pruning removed from every pruned model of a corpus, and how decided the gates were.

An attention type that the scope does not prune has no dead heads. Layers and heads are numbered from 1.
"""

from specialized_heads import stage
from specialized_heads.model.architecture import KINDS

COPIED = ("scope", "penalty", "heads", "expected", "decided", "loss_hard", "loss_soft", "collapse")


class Row(stage.Section):
    """The name and seed of a model, in the order of `--gates`."""

    model: str
    seed: int


class Settings(stage.Section):
    rows: list[Row]


@stage.command("output", many=("gates",), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    models = []
    for row, path in zip(settings.rows, files.gates, strict=True):
        gates = stage.read_json(path)
        model = row.model_dump() | {key: gates[key] for key in COPIED} | {"gated": {}, "dead": {}}
        for kind in KINDS:
            heads = [head for head in gates["rows"] if head["type"] == kind]
            model["gated"][kind] = len(heads)
            model["dead"][kind] = [{key: head[key] for key in ("layer", "head")} for head in heads if not head["kept"]]
        models.append(model)
    stage.write_json(files.output, models)
    stage.log.info("%d models", len(models))
