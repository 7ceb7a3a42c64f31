"""The experiment configuration as a whole: corpora, tasks, and consistency between sections.

Together with `sections` and `sources`, this is the only definition of every key, its unit, its
range and its default. `config.yaml` and the files in `config/` are instances of `Experiment`.
`file` reads them and describes errors.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from specialized_heads.experiment import sections
from specialized_heads.experiment.names import SCOPES
from specialized_heads.experiment.sources import Distinct, Downloads, Source, TaskSource, Title
from specialized_heads.languages import known
from specialized_heads.stage import Section, heads_text

# A name becomes a folder; file systems take 255 bytes.
SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{,99}")
NAMES = "use at most 100 letters, digits, '_', '.' and '-', and a letter or digit first"
# Folders of an experiment, beside those of its corpora.
FOLDERS = ("benchmarks", "bert", "data", "figures", "logs", "tables", "viewer")
# Suffixes of the files beside these folders, and under results/.
FILES = (".csv", ".html", ".json", ".md", ".pdf", ".png", ".svg", ".txt", ".yaml", ".zip")
# The code of a language becomes part of addresses and paths.
Language = Annotated[
    str, Field(pattern=r"^[A-Za-z]{2,3}([_-][A-Za-z0-9]{1,8})*$"), AfterValidator(known)
]
Overrides = dict[str, dict[str, Any]]  # keys by section
OVERRIDABLE = (
    *("vocabulary", "model", "training", "pruning", "ablation"),
    *("comparison", "decoding", "parser", "heads"),
)
SIZES = ("layers", "heads", "width", "feed_forward", "vocabulary")  # of a BERT that is pre-trained


class Baseline(Section):
    """A baseline that is not trained: given, by another experiment of this project, or imported
    from elsewhere."""

    model: str = Field(
        description="given: folder with one folder per seed; imported: folder of one model, or "
        "its name on the Hugging Face hub; relative to the working directory or to the project"
    )
    revision: str | None = Field(
        None, description="branch, tag or commit of a model on the hub; null: the newest"
    )
    source_tag: str | None = Field(
        None, description="imported: token before every source sentence, such as eng_Latn"
    )
    target_tag: str | None = Field(None, description="imported: first token of every translation")


FACTS = "baseline.json"
SPLITTING = ("source", "source_language", "target_language", "filters", "split")


class Facts(Section):
    """How a given baseline was trained: the content of `FACTS` in its folder, which is otherwise
    that of an exported model."""

    format: Literal[2]
    corpus: dict[str, Any]  # the keys `SPLITTING`, which decide the splits, as configured
    settings: dict[str, Any]  # seed, vocabulary, model and training, as configured
    tokens: dict[str, str]  # SHA-256 of the token file of each split
    hours: float  # of training
    machine: str  # that trained it
    matmul_precision: Literal["bf16", "fp32"]  # that it was trained with


class Corpus(Section):
    """One parallel corpus and the part of the study that runs on it."""

    source: Source
    source_language: Language = Field("en", description="of the side that is parsed and analysed")
    target_language: Language = Field(description="language code, such as ru, pt_BR or zh-Hant")
    title: Title = Field(description="display name in figures and tables")
    filters: sections.Filters = sections.Filters()
    split: sections.Split = sections.Split()
    baseline: Baseline | None = Field(
        None, description="a baseline that was trained earlier; null: train one"
    )
    prune: bool = Field(True, description="false: only train the baseline and analyse its heads")
    override: Overrides = Field(
        {}, description="keys of other sections that differ for this corpus"
    )


class Task(Section):
    """One classification task."""

    title: Title = Field(description="display name in figures and tables")
    source: TaskSource
    override: Overrides = Field({}, description="keys of other sections that differ for this task")


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
    pretraining: sections.Training = sections.Training()
    tasks: dict[str, Task] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> "Classification":
        if self.width % self.heads:
            raise ValueError(f"width {self.width} must be a multiple of heads {self.heads}")
        if self.revision and self.model is None:
            raise ValueError("revision without a model; name it in model, or remove revision")
        return self


class Experiment(Section):
    """A whole study: corpora, model, training, pruning, analysis."""

    experiment: str = Field(description="name of the folder under results/")
    seeds: Distinct[Annotated[int, Field(ge=0, lt=2**32)]] = Field(
        [1], min_length=1, description="a set of models each"
    )
    corpora: dict[str, Corpus] = Field(
        {}, description="figures 1, 3 and 5 show the first, 8 the first pruned one"
    )
    classification: Classification | None = Field(None, description="tasks of a BERT; null: none")
    vocabulary: sections.Vocabulary = sections.Vocabulary()
    model: sections.Model = sections.Model()
    training: sections.Training = sections.Training()
    pruning: sections.Pruning = sections.Pruning()
    ablation: sections.Ablation = sections.Ablation()
    comparison: sections.Comparison = sections.Comparison()
    decoding: sections.Decoding = sections.Decoding()
    parser: sections.Parser = sections.Parser()
    heads: sections.Heads = sections.Heads()
    downloads: Downloads = Downloads()
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="auto: a GPU if there is one"
    )

    @property
    def tasks(self) -> dict[str, Task]:
        return self.classification.tasks if self.classification else {}

    @property
    def studies(self) -> dict[str, Corpus | Task]:
        """All that has a folder with models: corpora and tasks."""
        return {**self.corpora, **self.tasks}

    def for_corpus(self, name: str) -> "Experiment":
        """The configuration of one corpus or task, its `override` merged in."""
        place, update = self._place(name), {}
        for section, values in self.studies[name].override.items():
            if section not in OVERRIDABLE:
                only = f"only {', '.join(OVERRIDABLE)} can differ by corpus"
                raise ValueError(f"{'.'.join(place)}.override.{section}: {only}")
            update[section] = _with(getattr(self, section), values, *place, "override", section)
        return self.model_copy(update=update)

    def _place(self, name: str) -> tuple[str, ...]:
        return ("corpora", name) if name in self.corpora else ("classification", "tasks", name)

    def fine_tuning(self) -> sections.Training:
        """The settings of fine-tuning: the baseline's training with the schedule in `pruning`."""
        names = {"updates", "learning_rate", "warmup", "optimizer", "muon_learning_rate"}
        return _with(self.training, self.pruning.model_dump(include=names), "pruning")

    def retraining(self) -> sections.Training:
        """The settings of training from scratch: the baseline's, but for `pruning.retrain_updates`.

        A linear schedule is scaled as a whole: its warm-up keeps its share of the updates.
        """
        whole = self.training.updates
        updates = self.pruning.retrain_updates or whole
        changed = {"updates": updates}
        if self.training.schedule == "linear":
            changed["warmup"] = max(1, round(self.training.warmup * updates / whole))
        return _with(self.training, changed, "pruning", "retrain_updates")

    @model_validator(mode="after")
    def _names(self) -> "Experiment":
        if not self.studies:
            raise ValueError(
                "corpora: required key is missing; name a corpus, or tasks in classification.tasks"
            )
        for name in (self.experiment, *self.studies):
            if not SLUG.fullmatch(name):
                raise ValueError(f"the name {name[:120]!r} becomes a folder: {NAMES}")
            if name.endswith(FILES):
                said = "becomes a folder, beside files with such names; remove its suffix"
                raise ValueError(f"the name {name} {said}")
        titles: set[str] = set()
        for name, study in self.studies.items():
            if name in self.corpora and name in self.tasks:
                said = "a corpus has this name too; give the task another one"
                raise ValueError(f"classification.tasks.{name}: {said}")
            if name in FOLDERS:
                folder = f"results/{self.experiment}/{name}"
                place = ".".join(self._place(name))
                raise ValueError(f"{place}: {folder} is reserved; choose another name")
            if study.title in titles:
                said = f"two have the title {study.title!r}; figures could not tell them apart"
                raise ValueError(f"corpora: {said}")
            titles.add(study.title)
        return self

    @model_validator(mode="after")
    def _possible(self) -> "Experiment":
        for name, corpus in self.corpora.items():
            values, whose = self.for_corpus(name), f"the baseline of {name}"
            if corpus.source.kind != "embedded" and values.parser.engine == "embedded":
                remedy = "set parser.engine: stanza or conllu, or override it for this corpus"
                raise ValueError(
                    f"corpora.{name}: only embedded corpora have embedded parses; {remedy}"
                )
            trained = corpus.baseline is None  # others have heads and updates of their own
            if trained:
                _within("heads.checkpoints", values.heads.checkpoints, values.training, whose)
            if not corpus.prune:
                continue
            values.fine_tuning()
            values.retraining()
            if trained:
                enough_heads(values, whose=name)
            _within("ablation.moments", values.ablation.moments, values.training, whose)
            targets = [target for scope in SCOPES for target in values.pruning.targets(scope)]
            if values.comparison.criteria and not any(target.prunes for target in targets):
                raise ValueError(
                    f"comparison.criteria: nothing says how many heads of {name} to keep; name "
                    f"models to prune in pruning.encoder, all, heads or heads_all, or leave the "
                    f"criteria empty"
                )
        return self

    @model_validator(mode="after")
    def _possible_tasks(self) -> "Experiment":
        if not (bert := self.classification):
            return self
        if bert.pretraining.join > 1:
            raise ValueError(
                "classification.pretraining.join: BERT reads single sentences; set it to 1"
            )
        for key in SIZES if bert.model else ():
            if getattr(bert, key) != Classification.model_fields[key].default:
                remedy = "remove this key, or classification.model to pre-train one"
                raise ValueError(f"classification.{key}: {bert.model} has its own; {remedy}")
        for name in bert.tasks:
            values, place = self.for_corpus(name), f"classification.tasks.{name}"
            values.fine_tuning()
            if values.pruning.encoder or values.pruning.heads:
                raise ValueError(
                    f"{place}: BERT has encoder heads alone; set pruning.all or heads_all for it, "
                    f"and empty encoder and heads in its override"
                )
            if not bert.model:
                _enough("heads_all", values.pruning, most=bert.layers * bert.heads, whose=name)
            if values.training.join > 1:
                remedy = f"set {place}.override.training.join: 1"
                raise ValueError(
                    f"training.join: {name} is a task, which reads single examples; {remedy}"
                )
            _within("ablation.moments", values.ablation.moments, values.training, name)
        return self


def _within(key: str, moments: list[int], training: sections.Training, whose: str) -> None:
    if late := [moment for moment in moments if moment > training.updates]:
        last = f"the last of the {training.updates} updates of {whose}"
        raise ValueError(f"{key}: {late[0]} is after {last}")


def enough_heads(values: Experiment, *, whose: str) -> None:
    """Raise a `ValueError` if pruning asks for more heads than the model of a corpus has."""
    encoder, heads = values.model.layers, values.model.heads
    layers = encoder + 2 * (values.model.decoder_layers or encoder)
    _enough("heads", values.pruning, most=encoder * heads, whose=whose)
    _enough("heads_all", values.pruning, most=layers * heads, whose=whose)


def _enough(key: str, pruning: sections.Pruning, *, most: int, whose: str) -> None:
    wanted = max(getattr(pruning, key), default=0)
    if wanted > most:
        said = f"{heads_text(wanted)} requested, but the model of {whose} has {most}"
        raise ValueError(f"pruning.{key}: {said}")


def _with(section: Any, values: dict[str, Any], *place: str) -> Any:
    """A section with other values; its errors are located at `place`."""
    try:
        return type(section).model_validate(section.model_dump() | values)
    except ValidationError as error:
        problems: Any = [{**each, "loc": (*place, *each["loc"])} for each in error.errors()]
        raise ValidationError.from_exception_data(error.title, problems) from None
