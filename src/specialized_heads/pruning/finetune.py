"""Stage: fine-tune a cut model, or a control from scratch, exactly as pruning does, but without gates and penalty.

Updates, schedule and frozen weights are those of pruning. So a model pruned by gates differs from one whose heads another
criterion chose only by the choice, by gates that train while they choose, and by draws of its own for order and dropout. A
control that was trained as the baseline ends with the schedule of pruned models: as many updates, in as many decays.
"""

from specialized_heads import stage
from specialized_heads.model.checkpoint import load
from specialized_heads.pruning.prune import FineTuning, freeze
from specialized_heads.training.train import train_and_save


class Settings(FineTuning):
    before: int = 0  # updates of a control's first part, for its description


@stage.command("model", "train", "dev", "output", "records", "state", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    model = load(files.model, dropout=settings.dropout)
    described = stage.read_json(files.model.with_suffix(".json"))["training"]
    cut = {"cut": described["cut"]} if "cut" in described else {}
    freeze(model, scope=settings.scope)
    train_and_save(model, settings.training, files, seed=settings.seed, device=settings.device, **cut)
