"""Stage: turn one checkpoint of the baseline's training into a model of its own.

The weights come from the file of checkpoints that the baseline's training writes (`ablation.moments`,
`heads.checkpoints`).
"""

from specialized_heads import stage
from specialized_heads.model.checkpoint import architecture_of, assemble, read_tensors, save


class Settings(stage.Section):
    update: int


@stage.command("baseline", "checkpoints", "output", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    update = settings.update
    prefix, stored = f"update{update}/", read_tensors(files.checkpoints)
    weights = {name.removeprefix(prefix): tensor for name, tensor in stored.items() if name.startswith(prefix)}
    if not weights:
        raise stage.UserError(
            f"{files.checkpoints}: no weights of update {update}; add it to ablation.moments or heads.checkpoints, and "
            "train again"
        )
    model = assemble(architecture_of(files.baseline), weights, weights=files.checkpoints, like=files.baseline)
    training = stage.read_json(files.baseline.with_suffix(".json"))["training"]
    save(model, files.output, training={**training, "moment": update})
