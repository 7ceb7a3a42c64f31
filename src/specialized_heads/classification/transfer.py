"""Stages of transfer learning: a BERT is pre-trained on text, or imported by
`exchange.huggingface`, and fine-tuned on each task.

`vocabulary` learns one from the text of pre-training, and writes this text as token ids. `pretrain`
is masked language modelling (Devlin et al. 2019), without next-sentence prediction. In `finetune`
the classifier is new, and so is the pooler unless the pre-trained model has one; the weights after
the updates `moments` are also written, as `training.train` does.
"""

from dataclasses import replace

from specialized_heads import stage
from specialized_heads.classification import wordpiece
from specialized_heads.classification.tasks import read_sentences
from specialized_heads.experiment.sections import Training
from specialized_heads.model.bert import Bert, BertArchitecture, initialise
from specialized_heads.model.checkpoint import load, set_weights, weights_of
from specialized_heads.training.train import train_and_save

DEV = 2_000  # sentences of pre-training's development set at most


class VocabularySettings(stage.Section):
    size: int
    longest: int  # subwords of an input


@stage.command("vocabulary", "train", "dev", many=("text",), settings=VocabularySettings)
def vocabulary(files: stage.Files, settings: VocabularySettings) -> None:
    sets = read_sentences(files.text)
    learned = wordpiece.learn(sets["train"], size=settings.size)
    wordpiece.write_vocabulary(files.vocabulary, learned, wordpiece.Cleaning())
    tokeniser = wordpiece.read_vocabulary(files.vocabulary)
    for name, texts in (("train", sets["train"]), ("dev", sets["dev"][:DEV])):
        segments = texts, [None] * len(texts)
        path = getattr(files, name)
        wordpiece.write_inputs(path, tokeniser, *segments, longest=settings.longest)
    stage.log.info("%d tokens from %d sentences", tokeniser.size, len(sets["train"]))


class PretrainSettings(stage.Section):
    seed: int
    layers: int
    heads: int
    width: int
    feed_forward: int
    longest: int  # subwords of an input
    dropout: float
    training: Training
    device: str


TRAINING = ("train", "dev", "output", "records", "state")


@stage.command("vocabulary", *TRAINING, settings=PretrainSettings)
def pretrain(files: stage.Files, settings: PretrainSettings) -> None:
    tokeniser = wordpiece.read_vocabulary(files.vocabulary)
    architecture = BertArchitecture.full(
        **settings.model_dump(include={"layers", "heads", "width", "feed_forward"}),
        vocabulary=tokeniser.size,
        positions=settings.longest,
        labels=0,
        pad=tokeniser.special.pad,
        separator=tokeniser.special.eos,
        mask=tokeniser.mask,
    )
    model = Bert(architecture, dropout=settings.dropout)
    initialise(model, seed=settings.seed)
    train_and_save(model, settings.training, files, seed=settings.seed, device=settings.device)


class FinetuneSettings(stage.Section):
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
    weights = weights_of(pretrained)
    set_weights(model, {name: weights[name] for name in weights if not name.startswith(new)})
    initialise(model, seed=seed, only=new)
    return model


@stage.command("pretrained", *TRAINING, "checkpoints", settings=FinetuneSettings)
def finetune(files: stage.Files, settings: FinetuneSettings) -> None:
    new = settings.model_dump(include={"labels", "dropout", "seed"})
    model = classifier(load(files.pretrained), **new)
    job = settings.model_dump(include={"seed", "device", "moments"})
    train_and_save(model, settings.training, files, **job)


stage.no_stage(__name__)
