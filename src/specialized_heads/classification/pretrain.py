"""Stage: pre-train a BERT by masked language modelling (Devlin et al. 2019), without next-sentence prediction."""

from specialized_heads import stage
from specialized_heads.corpus.wordpiece import read_vocabulary
from specialized_heads.experiment.sections import Training
from specialized_heads.model.bert import Bert, BertArchitecture, initialise
from specialized_heads.training.train import train_and_save


class Settings(stage.Section):
    seed: int
    layers: int
    heads: int
    width: int
    feed_forward: int
    longest: int  # subwords of an input
    dropout: float
    training: Training
    device: str


@stage.command("vocabulary", "train", "dev", "output", "records", "state", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    vocabulary = read_vocabulary(files.vocabulary)
    architecture = BertArchitecture.full(
        **settings.model_dump(include={"layers", "heads", "width", "feed_forward"}),
        vocabulary=vocabulary.size,
        positions=settings.longest,
        labels=0,
        pad=vocabulary.special.pad,
        separator=vocabulary.special.eos,
        mask=vocabulary.mask,
    )
    model = Bert(architecture, dropout=settings.dropout)
    initialise(model, seed=settings.seed)
    train_and_save(model, settings.training, files, seed=settings.seed, device=settings.device)
