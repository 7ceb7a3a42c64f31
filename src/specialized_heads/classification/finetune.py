"""Stage: fine-tune a pre-trained BERT on a task.

The classifier is new, and so is the pooler unless the pre-trained model has one. With `--checkpoints`, the weights after the
updates `moments` are also written, as `training.train` does.
"""

from dataclasses import replace

from specialized_heads import stage
from specialized_heads.experiment.sections import Training
from specialized_heads.model.bert import Bert, initialise
from specialized_heads.model.checkpoint import load, set_weights, weights_of
from specialized_heads.training.train import train_and_save


class Settings(stage.Section):
    seed: int
    labels: int
    dropout: float
    training: Training
    device: str
    moments: list[int] = []


def classifier(pretrained: Bert, *, labels: int, dropout: float, seed: int) -> Bert:
    """The encoder of a pre-trained model below a new classifier."""
    model = Bert(replace(pretrained.architecture, labels=labels), dropout=dropout)
    new = ("classifier",) if pretrained.architecture.labels else ("classifier", "transform")
    set_weights(model, {name: weight for name, weight in weights_of(pretrained).items() if not name.startswith(new)})
    initialise(model, seed=seed, only=new)
    return model


@stage.command("pretrained", "train", "dev", "output", "records", "checkpoints", "state", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    model = classifier(load(files.pretrained), **settings.model_dump(include={"labels", "dropout", "seed"}))
    job = settings.model_dump(include={"seed", "device", "moments"})
    train_and_save(model, settings.training, files, **job)
