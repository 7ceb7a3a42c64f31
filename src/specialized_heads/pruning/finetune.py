"""Stage: fine-tune a cut model exactly as pruning does, but without gates and penalty.

Updates, schedule and frozen weights are those of pruning. So a model pruned by gates differs from one whose heads another
criterion chose only by the choice, by gates that train while they choose, and by draws of its own for order and dropout.
"""

from specialized_heads import stage
from specialized_heads.model.checkpoint import load
from specialized_heads.pruning.prune import FineTuning, freeze
from specialized_heads.training.train import train_and_save


@stage.command("model", "train", "dev", "output", "records", "state", settings=FineTuning)
def main(files: stage.Files, settings: FineTuning) -> None:
    model = load(files.model, dropout=settings.dropout)
    cut = stage.read_json(files.model.with_suffix(".json"))["training"]["cut"]
    freeze(model, scope=settings.scope)
    train_and_save(model, settings.training, files, seed=settings.seed, device=settings.device, cut=cut)
