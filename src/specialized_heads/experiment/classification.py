"""The section `classification`: a BERT, how it is pre-trained or where it comes from, and the tasks
that it is fine-tuned on.

The sections `training`, `pruning` and `ablation` say how the tasks are trained, pruned and ablated,
as they do for corpora.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from specialized_heads.experiment.sections import Training
from specialized_heads.experiment.sources import Title
from specialized_heads.stage import Section

# Folders of resources/ with text for learning, and for the second test set; a BERT is pre-trained
# on both.
MATCHED, MISMATCHED = ("tatoeba_en_fr", "tatoeba_en_de"), ("libreoffice_en_ru",)
DROPOUT = 0.1  # in pre-training and fine-tuning
# sentences per batch at which the speed without half of the heads is measured
SPEED = (1, 4, 16, 64)


LABELS = {  # names of the labels of each kind of task, in the order of their ids
    "shift": ("original", "shifted"),
    "halves": ("different", "same"),
    "mnli": ("entailment", "neutral", "contradiction"),
    "sst2": ("negative", "positive"),
    "cola": ("unacceptable", "acceptable"),
    "mrpc": ("not_equivalent", "equivalent"),
}


class _Examples(Section):
    """Where the examples of a task come from."""

    kind: str

    @property
    def labels(self) -> tuple[str, ...]:
        return LABELS[self.kind]

    @property
    def metric(self) -> str:
        """As in GLUE; MRPC has accuracy beside F1, of which the paper's script takes the latter."""
        return {"cola": "matthews", "mrpc": "f1"}.get(self.kind, "accuracy")

    @property
    def second(self) -> bool:
        """Whether there is a second test set: LibreOffice help, or MNLI's mismatched one."""
        return self.kind in ("shift", "halves", "mnli")


class Made(_Examples):
    """A task made from the English sentences of the embedded corpora, by a published recipe
    (`classification/tasks.py`)."""

    kind: Literal["shift", "halves"] = Field(
        description="are two neighbouring words swapped? (Conneau et al. 2018); are the segments "
        "halves of one sentence?"
    )
    train: int = Field(60_000, ge=2, description="most examples to train on")
    test: int = Field(2_000, ge=2, description="most examples of each test set")


class Glue(_Examples):
    """A task of GLUE (Wang et al. 2019), in the files that its mirror serves."""

    kind: Literal["mnli", "sst2", "cola", "mrpc"]
    dev: int = Field(
        2_000, ge=2, description="training examples held out for the loss and for importance"
    )


TaskSource = Annotated[Made | Glue, Field(discriminator="kind")]


class Task(Section):
    """One classification task."""

    title: Title = Field(description="display name in figures and tables")
    source: TaskSource
    override: dict[str, dict[str, Any]] = Field(
        {}, description="keys of other sections that differ for this task"
    )


SIZES = ("layers", "heads", "width", "feed_forward", "vocabulary")  # of a BERT that is pre-trained


class Classification(Section):
    """A BERT and its tasks (Michel et al. 2019)."""

    model: str | None = Field(
        None,
        description="folder of a BERT in the format of transformers, or its name on the hub; null: "
        "pre-train one",
    )
    revision: str | None = Field(
        None, description="of a model on the hub: branch, tag or commit; null: the newest"
    )
    max_length: int = Field(
        128, ge=8, le=512, description="longest input in subwords; longer ones are cut"
    )
    layers: int = Field(
        4, ge=1, le=1000, description="of the model that is pre-trained, as the next four keys"
    )
    heads: int = Field(8, ge=1, le=1000, description="heads per layer")
    width: int = Field(192, ge=2, le=100_000)
    feed_forward: int = Field(768, ge=1, le=1_000_000)
    vocabulary: int = Field(8_000, ge=300, description="WordPiece subwords")
    pretraining: Training = Training()
    tasks: dict[str, Task] = Field(min_length=1)

    @model_validator(mode="after")
    def _divisible(self) -> "Classification":
        if self.width % self.heads:
            raise ValueError(f"width {self.width} must be a multiple of heads {self.heads}")
        return self
