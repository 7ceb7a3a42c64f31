"""Stage: the baseline as it was at one moment of its training, as a model of its own.

The weights are those of that update, taken from the file that the baseline's training writes (`ablation.moments`).
"""

from safetensors import SafetensorError, safe_open

from specialized_heads import stage
from specialized_heads.model.checkpoint import architecture_of, save
from specialized_heads.model.transformer import Transformer
from specialized_heads.stage import Section


class Settings(Section):
    update: int


def main() -> None:
    files = stage.arguments(__doc__, files=("baseline", "checkpoints", "output"))
    update = Settings.model_validate(files.settings).update
    model = Transformer(architecture_of(files.baseline), dropout=0.0)
    try:
        with safe_open(files.checkpoints, framework="pt") as stored:
            prefix = f"update{update}/"
            names = [name for name in stored.keys() if name.startswith(prefix)]  # noqa: SIM118 (it is no dictionary)
            weights = {name.removeprefix(prefix): stored.get_tensor(name) for name in names}
    except (OSError, SafetensorError) as error:
        raise stage.UserError(f"{files.checkpoints}: cannot read it ({error}); delete it and run again") from None
    if not weights:
        raise stage.UserError(
            f"{files.checkpoints}: holds no weights of update {update}; name it in ablation.moments and train again"
        )
    model.load_state_dict(weights)
    training = stage.read_json(files.baseline.with_suffix(".json"))["training"]
    save(model, files.output, training={**training, "moment": update})


if __name__ == "__main__":
    stage.run(main)
