"""The experiment configuration as a whole: consistency between sections, overrides per corpus, and
error messages.

Together with `sections`, this is the only definition of every key, its unit, its range and its
default. `config.yaml` and the files in `config/` are instances of `Experiment`. The JSON schema in
`workflow/schemas/` is generated from it (`python -m specialized_heads.experiment.configuration`).
An unknown key is an error that names the nearest known one.
"""

import difflib
import json
import re
import sys
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from specialized_heads.experiment import sections
from specialized_heads.experiment.classification import LABELS, SIZES, Classification, Task
from specialized_heads.experiment.names import SCOPES
from specialized_heads.experiment.sources import Distinct, Downloads, Source, Title
from specialized_heads.languages import known
from specialized_heads.stage import NO_MPS, Section, UserError, heads_text

SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{,99}")  # file systems take 255 bytes
# Folders of an experiment, beside those of its corpora.
FOLDERS = ("benchmarks", "bert", "data", "figures", "logs", "tables", "viewer")
# The code of a language becomes part of addresses and paths.
Language = Annotated[
    str, Field(pattern=r"^[A-Za-z]{2,3}([_-][A-Za-z0-9]{1,8})*$"), AfterValidator(known)
]
# Suffixes of the files beside these folders, and under results/.
FILES = (".csv", ".html", ".json", ".md", ".pdf", ".png", ".svg", ".yaml", ".zip")


class Baseline(Section):
    """A baseline that is not trained: given, by another experiment of this project, or imported
    from elsewhere."""

    model: str = Field(
        description="given: folder with one folder per seed; imported: folder of one model, or its "
        "name on the Hugging Face hub; "
        "relative to the working directory or to the project"
    )
    revision: str | None = Field(
        None, description="branch, tag or commit of a model on the hub; null: the newest"
    )
    source_tag: str | None = Field(
        None, description="imported: token before every source sentence, such as eng_Latn"
    )
    target_tag: str | None = Field(None, description="imported: first token of every translation")


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
    override: dict[str, dict[str, Any]] = Field(
        {}, description="keys of other sections that differ for this corpus"
    )


class Experiment(Section):
    """A whole study: corpora, model, training, pruning, analysis."""

    experiment: str = Field(description="name of the folder under results/")
    seeds: Distinct[Annotated[int, Field(ge=0, lt=2**32)]] = Field(
        [1], min_length=1, description="a set of models each"
    )
    corpora: dict[str, Corpus] = Field(
        {}, description="figures 1, 3 and 5 show the first, 8 to 10 the first pruned one"
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

    @model_validator(mode="after")
    def _names(self) -> "Experiment":
        if not self.studies:
            raise ValueError(
                "corpora: required key is missing; name a corpus, or tasks in classification.tasks"
            )
        if both := set(self.corpora) & set(self.tasks):
            raise ValueError(
                f"classification.tasks.{min(both)}: a corpus has this name too; give the task "
                f"another one"
            )
        for name in (self.experiment, *self.studies):
            if not SLUG.fullmatch(name):
                rule = (
                    "use at most 100 letters, digits, '_', '.' and '-', and a letter or digit first"
                )
                raise ValueError(f"the name {name[:120]!r} becomes a folder: {rule}")
            if name.endswith(FILES):
                raise ValueError(
                    f"the name {name} becomes a folder, beside files with such names; remove its "
                    f"suffix"
                )
        for name in self.studies:
            if name in FOLDERS:
                place, kind = (
                    ("corpora", "corpus")
                    if name in self.corpora
                    else ("classification.tasks", "task")
                )
                raise ValueError(
                    f"{place}.{name}: results/{self.experiment}/{name} is reserved; rename the "
                    f"{kind}"
                )
        titles = [study.title for study in self.studies.values()]
        for title in titles:
            if titles.count(title) > 1:
                raise ValueError(
                    f"corpora: two have the title {title!r}; figures could not tell them apart"
                )
        for name, corpus in self.corpora.items():
            if (
                corpus.source.kind != "embedded"
                and self.for_corpus(name).parser.engine == "embedded"
            ):
                remedy = "set parser.engine: stanza or conllu, or override it for this corpus"
                raise ValueError(
                    f"corpora.{name}: only embedded corpora have embedded parses; {remedy}"
                )
        return self

    @model_validator(mode="after")
    def _possible(self) -> "Experiment":
        for name, corpus in self.corpora.items():
            values = self.for_corpus(name)
            # its heads may be others; pruning checks their number
            given = corpus.baseline is not None
            if not given:
                _within(
                    "heads.checkpoints",
                    values.heads.checkpoints,
                    values.training,
                    f"the baseline of {name}",
                )
            if not corpus.prune:
                continue
            values.fine_tuning()
            values.retraining()
            encoder, decoder = (
                values.model.layers,
                values.model.decoder_layers or values.model.layers,
            )
            for key, layers in (("heads", encoder), ("heads_all", encoder + 2 * decoder)):
                if not given:
                    _enough(key, values.pruning, most=layers * values.model.heads, whose=name)
            _within(
                "ablation.moments",
                values.ablation.moments,
                values.training,
                f"the baseline of {name}",
            )
            if values.comparison.criteria and not any(
                t.prunes for s in SCOPES for t in values.pruning.targets(s)
            ):
                raise ValueError(
                    f"comparison.criteria: nothing says how many heads of {name} to keep; name "
                    f"models to prune in "
                    f"pruning.encoder, all, heads or heads_all, or leave the criteria empty"
                )
        return self

    @model_validator(mode="after")
    def _possible_tasks(self) -> "Experiment":
        bert = self.classification
        if bert and bert.pretraining.join > 1:
            raise ValueError(
                "classification.pretraining.join: BERT reads single sentences; set it to 1"
            )
        for key in SIZES:
            if (
                bert
                and bert.model
                and getattr(bert, key) != Classification.model_fields[key].default
            ):
                remedy = "remove this key, or classification.model to pre-train one"
                raise ValueError(f"classification.{key}: {bert.model} has its own; {remedy}")
        for name in self.tasks:
            values = self.for_corpus(name)
            values.fine_tuning()
            if values.pruning.encoder or values.pruning.heads:
                raise ValueError(
                    f"classification.tasks.{name}: BERT has encoder heads alone; set pruning.all "
                    f"or heads_all for it, and "
                    "empty encoder and heads in its override"
                )
            if not bert.model:
                _enough("heads_all", values.pruning, most=bert.layers * bert.heads, whose=name)
            if values.training.join > 1:
                where = f"classification.tasks.{name}.override.training.join"
                raise ValueError(
                    f"training.join: {name} is a task, which reads single examples; set {where}: 1"
                )
            _within("ablation.moments", values.ablation.moments, values.training, name)
        return self

    def fine_tuning(self) -> sections.Training:
        """The settings of fine-tuning: the baseline's training with the schedule in `pruning`."""
        names = {"updates", "learning_rate", "warmup", "optimizer", "muon_learning_rate"}
        changed = self.pruning.model_dump(include=names)
        return _validate(sections.Training, self.training.model_dump() | changed, prefix="pruning")

    def retraining(self) -> sections.Training:
        """The settings of training from scratch: the baseline's, but for `pruning.retrain_updates`.

        A linear schedule is scaled as a whole: its warm-up keeps its share of the updates.
        """
        updates = self.pruning.retrain_updates or self.training.updates
        changed = {"updates": updates}
        if self.training.schedule == "linear":
            changed["warmup"] = max(
                1, round(self.training.warmup * updates / self.training.updates)
            )
        return _validate(
            sections.Training,
            self.training.model_dump() | changed,
            prefix="pruning.retrain_updates",
        )

    def for_corpus(self, name: str) -> "Experiment":
        """The configuration of one corpus or task, its `override` merged in."""
        override = self.studies[name].override
        place = f"corpora.{name}" if name in self.corpora else f"classification.tasks.{name}"
        for section in override:
            if section not in OVERRIDABLE:
                raise ValueError(
                    f"{place}.override.{section}: only {', '.join(OVERRIDABLE)} can differ by "
                    f"corpus"
                )
        update = {}
        for section in OVERRIDABLE:
            common = getattr(self, section)
            merged = common.model_dump() | override.get(section, {})
            update[section] = _validate(type(common), merged, prefix=f"{place}.override.{section}")
        return self.model_copy(update=update)


SOURCES = typing.get_args(typing.get_args(Source)[0])
CORPUS_KINDS = [
    kind for source in SOURCES for kind in typing.get_args(source.model_fields["kind"].annotation)
]

OVERRIDABLE = (
    "vocabulary",
    "model",
    "training",
    "pruning",
    "ablation",
    "comparison",
    "decoding",
    "parser",
    "heads",
)


def load(
    values: dict[str, Any], *, origin: str = "config", places: Mapping[str, str] | None = None
) -> Experiment:
    """Validate the content of a file, whose name is `origin` in error messages; a `UserError` names
    every wrong key.

    `places` says where keys are, as `experiment.file.places` does.
    """
    try:
        return Experiment.model_validate(values)
    except ValidationError as error:
        problems = [_describe(Experiment, problem, "") for problem in error.errors()]
        located = [f"{_place(problem, places or {})}{problem}" for problem in problems]
        raise UserError(f"{origin}: {'; '.join(located)}") from None


def _place(problem: str, places: Mapping[str, str]) -> str:
    """Where the key is that a problem begins with, or the nearest one around it."""
    key = problem.partition(": ")[0]
    while key and key not in places:
        key = key.rpartition(".")[0]
    return f"{places[key]}: " if key else ""


def _within(key: str, moments: list[int], training: sections.Training, whose: str) -> None:
    if late := [moment for moment in moments if moment > training.updates]:
        raise ValueError(
            f"{key}: {late[0]} is after the last of the {training.updates} updates of {whose}"
        )


def _enough(key: str, pruning: sections.Pruning, *, most: int, whose: str) -> None:
    wanted = max(getattr(pruning, key), default=0)
    if wanted > most:
        raise ValueError(
            f"pruning.{key}: {heads_text(wanted)} requested, but the model of {whose} has {most}"
        )


def _validate(kind: type[Section], values: dict[str, Any], *, prefix: str) -> Any:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problems = [_describe(kind, problem, prefix) for problem in error.errors()]
        raise ValueError("; ".join(problems)) from None


def _describe(kind: type[Section], problem: Any, prefix: str) -> str:
    """Describe one problem as `path.of.key: what is wrong`; for an unknown key, name the nearest
    known one."""
    # A discriminated union puts its tag into the location, behind the key `source`; it is no key of
    # the file.
    parts = problem["loc"]
    kinds = list(LABELS) if parts[:1] == ("classification",) else CORPUS_KINDS
    location = [
        part
        for part, before in zip(parts, (None, *parts))
        if before != "source" or part not in kinds
    ]
    where = ".".join(filter(None, [prefix, *map(str, location)]))
    if problem["type"] == "union_tag_invalid":
        given = problem["ctx"]["tag"]
        near = difflib.get_close_matches(given, kinds, n=1, cutoff=0.0)
        return f"{where}.kind: {given!r} is none of {', '.join(kinds)}; nearest: {near[0]}"
    if problem["type"] == "extra_forbidden":
        known = _known_keys(kind, problem["loc"][:-1])
        near = difflib.get_close_matches(str(problem["loc"][-1]), known, n=1, cutoff=0.0)
        return f"{where}: unknown key; nearest known key: {near[0]}"
    message = problem["msg"].removeprefix("Value error, ")
    if where == "device" and problem["input"] == "mps":
        return f"device: {NO_MPS}"
    if problem["type"] == "missing":
        return f"{where}: required key is missing"
    if problem["type"] == "union_tag_not_found":
        return f"{where}.kind: required key is missing; it is one of {', '.join(kinds)}"
    if problem["type"] == "invalid_key" or (problem["loc"] and problem["loc"][-1] == "[key]"):
        return (
            f"{where.removesuffix('.[key]')}: a key that is not text; quote it (no, yes, on and "
            f"off need them too)"
        )
    if problem["type"] == "list_type":
        if problem["input"] is None:
            return f"{where}: no list; write its values in brackets, or remove the key"
        return f"{where}: not a list; write it in brackets, as in [{problem['input']}]"
    if problem["type"] == "string_type":
        return f"{where}: {str(problem['input'])[:50]!r} is not text; quote it"
    if problem["type"] in ("model_type", "dict_type") and problem["input"] is None:
        return f"{where}: the section is empty; give it keys or remove it"
    if problem["type"] == "int_parsing":
        return (
            f"{where}: {problem['input'][:50]!r} is not a whole number; write it out, as in 100000"
        )
    if problem["type"] == "string_pattern_mismatch":
        return f"{where}: {problem['input'][:50]!r} is not of the form {problem['ctx']['pattern']}"
    return f"{where}: {message}" if where else message


def _known_keys(kind: Any, location: Iterable[str | int]) -> list[str]:
    """The keys that exist at a location of an error, following nested sections, dicts and
    unions."""
    for part in location:
        members = typing.get_args(kind)
        if isinstance(kind, type) and issubclass(kind, Section):
            kind = kind.model_fields[str(part)].annotation
        # the tag of a discriminated union
        elif typing.get_origin(kind) in (typing.Union, types.UnionType):
            kind = next(
                m for m in members if part in typing.get_args(m.model_fields["kind"].annotation)
            )
        else:  # dict[str, X] or list[X]
            kind = members[-1]
        if types.NoneType in (members := typing.get_args(kind)):  # an optional section
            kind = members[0]
    return list(kind.model_fields)


def schema_text() -> str:
    """The text of `workflow/schemas/config.schema.json`, the JSON schema of a configuration file.

    A file that extends another one may leave out all but its name, and set sections to null.
    """
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Experiment.model_json_schema(),
    }
    extends = (
        "file that this one starts from, relative to its own folder; this one has what differs"
    )
    whole = {}
    for place, kind in (("corpora", "Corpus"), ("tasks", "Task")):
        definition = schema["$defs"][kind]
        whole[place] = {"additionalProperties": {"required": definition.pop("required")}}
        _nullable(definition)
    tasks = {
        "required": schema["$defs"]["Classification"].pop("required"),
        "properties": {"tasks": whole["tasks"]},
    }
    _nullable(schema)
    schema["properties"] = {
        "extends": {"type": "string", "description": extends},
        **schema["properties"],
    }
    schema["if"] = {"not": {"required": ["extends"]}}
    schema["then"] = {"properties": {"corpora": whole["corpora"], "classification": tasks}}
    text = json.dumps(schema, indent=2, ensure_ascii=False)
    return text.replace("\\n", " ") + "\n"  # of docstrings


def _nullable(definition: dict[str, Any]) -> None:
    """Let the sections of a definition be null."""
    for key, value in definition["properties"].items():
        if "$ref" in value or value.get("type") == "object":
            definition["properties"][key] = {"anyOf": [value, {"type": "null"}]}


if __name__ == "__main__":
    if not sys.argv[1:] or Path(sys.argv[1]).suffix != ".json":
        sys.exit(
            "error: name the .json file for the schema; specialized_heads.experiment.file checks a "
            "configuration"
        )
    Path(sys.argv[1]).write_text(schema_text(), encoding="utf-8")
