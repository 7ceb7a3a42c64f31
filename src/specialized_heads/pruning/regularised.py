"""Stage: train with the pruning objective from random initialisation, a control of pruning a trained model (footnote 8).

The model starts from the baseline's initial weights and is trained as the baseline, but with a gate on each head of the
scope and the penalty of a pruned model; closed heads are then removed. All weights are trained, whatever the scope.
"""

from specialized_heads import stage
from specialized_heads.model.checkpoint import architecture_of
from specialized_heads.model.transformer import Transformer, initialise
from specialized_heads.pruning.prune import Settings, train_gates


@stage.command("like", "train", "dev", "output", "records", "state", "gates", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    model = Transformer(architecture_of(files.like), dropout=settings.dropout)
    initialise(model, seed=settings.seed)
    train_gates(model, settings, files, updates_key="pruning.retrain_updates")
