"""The experiment configuration: the one source of truth for every key, its unit, its range and its default.

`config.yaml` and the files in `config/` are instances of `Experiment`. The JSON schema in `workflow/schemas/` is generated
from it (`python -m specialized_heads.config`). An unknown key is an error that names the nearest known one.
"""

import difflib
import json
import re
import sys
import types
import typing
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from specialized_heads.corpus.preprocess import Mode
from specialized_heads.corpus.sources import Downloads, Source
from specialized_heads.stage import Section, UserError

SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class Filters(Section):
    """How text is normalised, and which sentence pairs are kept. Words are separated by white space."""

    entities: bool = Field(True, description="write the characters that HTML entities such as &quot; stand for")
    min_words: int = Field(1, ge=1, description="shortest sentence, words")
    max_words: int = Field(100, ge=1, description="longest sentence, words")
    max_characters: int = Field(1000, ge=1, description="longest sentence, characters")
    max_ratio: float = Field(3.0, ge=1, description="largest ratio of the two lengths in characters")
    copies: bool = Field(
        False, description="keep pairs whose target is the source, but for case, digits and punctuation"
    )
    script: float = Field(
        0.0, ge=0, le=1, description="least share of letters in a script of the language, on both sides; 0: no check"
    )
    near_duplicates: bool = Field(
        True, description="keep pairs that equal an earlier one on both sides, but for case, digits and punctuation"
    )


class Split(Section):
    """Held-out sets, in sentence pairs; the rest is the training set."""

    dev: int = Field(500, ge=1, description="pairs for the development set (loss curves, relevance)")
    test: int = Field(1000, ge=1, description="pairs for the test set (BLEU)")
    analysis: int = Field(1000, ge=1, description="pairs whose English side is parsed and analysed (sections 4 and 5)")


class Vocabulary(Section):
    """BPE vocabularies, separate for source and target (appendix B.2)."""

    source: int = Field(32000, ge=16, description="source vocabulary, subwords")
    target: int = Field(32000, ge=16, description="target vocabulary, subwords")
    preprocess: Mode = Field(
        "none", description="before BPE; none: raw text; paper: Moses tokens in lower case, as the paper's code has it"
    )


class Model(Section):
    """Transformer size and regularisation (appendix B.2: Transformer base)."""

    layers: int = Field(6, ge=1, description="layers of the encoder and of the decoder")
    heads: int = Field(8, ge=1, description="heads per attention sub-layer")
    width: int = Field(512, ge=2, description="d_model")
    feed_forward: int = Field(2048, ge=1, description="inner width of the feed-forward sub-layer")
    dropout: float = Field(0.1, ge=0, lt=1, description="on residual, ReLU, attention weights and embeddings")

    @model_validator(mode="after")
    def _divisible(self) -> "Model":
        if self.width % self.heads or self.width % 2:
            raise ValueError(f"width {self.width} must be even and a multiple of heads {self.heads}")
        return self


class Training(Section):
    """Optimisation of a model (appendix B.3)."""

    updates: int = Field(100_000, ge=1, description="parameter updates")
    batch_tokens: int = Field(16_000, ge=1, description="source tokens per update")
    micro_batch_tokens: int = Field(
        4_000, ge=1, description="source or target tokens, padding included, per forward pass; gradients accumulate"
    )
    schedule: Literal["inverse_sqrt", "linear"] = Field(
        "inverse_sqrt",
        description="after warm-up: decay with t^-1/2 (the paper) or linearly to zero at the last update (short runs)",
    )
    learning_rate: float = Field(
        4.0,
        gt=0,
        description="inverse_sqrt: the factor in factor * d^-1/2 * min(t^-1/2, t * warmup^-3/2); linear: the peak",
    )
    warmup: int = Field(16_000, ge=1, description="updates of linear warm-up")
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    precision: Literal["fp32", "bf16"] = Field("fp32", description="of matrix products; weights and sums stay fp32")
    log_every: int = Field(50, ge=1, description="updates per line of the log")
    evaluate_every: int = Field(500, ge=1, description="updates per evaluation on the development set")
    average: int = Field(1, ge=1, description="the model is the mean of its weights at so many moments; 1: the last")
    average_every: int = Field(1000, ge=1, description="updates between these moments, the last update being one")
    compile: bool = Field(False, description="torch.compile the layers: for GPUs; on a CPU it was measured slower")

    @model_validator(mode="after")
    def _moments(self) -> "Training":
        if (self.average - 1) * self.average_every >= self.updates:
            raise ValueError(
                f"average {self.average} moments, {self.average_every} updates apart, do not fit into {self.updates} updates"
            )
        if self.schedule == "linear" and self.warmup >= self.updates:
            raise ValueError(
                f"warmup {self.warmup} takes all of the {self.updates} updates: the learning rate would end at its peak"
            )
        return self


# λ per head, in nats per target token: far below it every gate closes, far above it the optimiser's squares overflow.
LARGEST_PENALTY = 1e6


class Pruning(Section):
    """Fine-tuning with Hard Concrete gates on the heads (section 6)."""

    encoder: list[float] = Field([], description="λ per head, one model each: prune encoder heads, decoder frozen")
    all: list[float] = Field([], description="λ per head, one model each: prune heads of all three attention types")
    heads: list[int] = Field(
        [], description="numbers of encoder heads, one model each, found by a penalty that is steered; decoder frozen"
    )
    heads_all: list[int] = Field(
        [], description="numbers of heads of all three attention types together, found in the same way"
    )
    updates: int = Field(20_000, ge=1, description="parameter updates of fine-tuning")
    learning_rate: float = Field(
        0.4,
        gt=0,
        description="as training.learning_rate, for the fine-tuning schedule; 0.4 peaks where 100 000 updates of training end",
    )
    warmup: int = Field(1_000, ge=1, description="updates of linear warm-up")
    gate_learning_rate: float = Field(0.05, gt=0, description="peak learning rate of log α; same schedule shape")
    gate_init: float = Field(2.0, allow_inf_nan=False, description="log α at the start; 2 means P(open) = 0.94")
    penalty_warmup: int = Field(
        0, ge=0, description="updates over which λ grows from zero; 0: whole from the start; not for numbers of heads"
    )
    soft: bool = Field(False, description="score each pruned model also with soft gates, before they become 0 or 1")
    retrain: list[Literal["encoder", "all"]] = Field(
        ["all"], description="scopes whose pruned configurations are also trained from scratch (table 2)"
    )
    retrain_updates: int | None = Field(
        None, ge=1, description="updates of training from scratch; null: training.updates"
    )
    controls: list[Literal["regularised", "count"]] = Field(
        [],
        description="more models from scratch, for the scopes in retrain (footnote 8); regularised: with gates and penalty "
        "from random initialisation; count: as many heads, spread evenly over the layers",
    )

    speed: list[Annotated[int, Field(ge=1)]] = Field(
        [], description="sentences per batch at which the speed of encoder-pruned models is measured"
    )

    @field_validator("encoder", "all")
    @classmethod
    def _lambdas(cls, values: list[float]) -> list[float]:
        for value in values:
            if not 0 <= value <= LARGEST_PENALTY:
                raise ValueError(f"λ {value:g} must be a number from 0 to {LARGEST_PENALTY:g}")
        values = [value + 0.0 for value in values]  # zero has no sign
        if len({lambda_name(value) for value in values}) != len(values):
            raise ValueError("a λ occurs twice")
        return values

    @field_validator("retrain", "controls")
    @classmethod
    def _once(cls, values: list[str]) -> list[str]:
        if len(set(values)) != len(values):
            raise ValueError("a name occurs twice")
        return values

    @model_validator(mode="after")
    def _together(self) -> "Pruning":
        if self.penalty_warmup >= self.updates:
            raise ValueError(f"penalty_warmup {self.penalty_warmup} takes all of the {self.updates} updates")
        if self.controls and not self.retrain:
            raise ValueError("controls are trained for the scopes in retrain, which is empty")
        return self

    @field_validator("heads", "heads_all")
    @classmethod
    def _counts(cls, values: list[int]) -> list[int]:
        if any(value < 0 for value in values):
            raise ValueError(f"{min(values)} heads: a number of heads must be zero or more")
        if len(set(values)) != len(values):
            raise ValueError("a number of heads occurs twice")
        return values


class Ablation(Section):
    """What heads are worth, one by one and in order of importance (Michel et al. 2019)."""

    single: bool = Field(
        False,
        description="BLEU without each single head, and with each head alone in its layer, for all attention types",
    )
    second: str = Field(
        "dev",
        description="another set on which single heads are ablated: dev, or a corpus of the same languages (its test set)",
    )
    systematic: bool = Field(False, description="BLEU as heads are removed in order of importance, step by step")
    step: float = Field(0.1, gt=0, le=1, description="share of the heads removed in each of these steps")
    normalise: bool = Field(
        True, description="order heads by importance divided by its L2 norm over the heads of a layer and type"
    )
    moments: list[int] = Field(
        [], description="updates of the baseline's training after which systematic pruning is measured too"
    )

    @field_validator("moments")
    @classmethod
    def _moments(cls, values: list[int]) -> list[int]:
        if any(value < 1 for value in values) or sorted(set(values)) != values:
            raise ValueError("updates must be positive, ascending, and different")
        return values

    @model_validator(mode="after")
    def _together(self) -> "Ablation":
        if self.moments and not self.systematic:
            raise ValueError(
                "moments are for systematic pruning, which is off; set systematic: true or leave them empty"
            )
        return self


class Comparison(Section):
    """Which criterion chooses the heads to keep best: all at the head counts of `pruning.heads` and `heads_all`."""

    criteria: list[Literal["gates", "importance", "relevance", "confidence", "random"]] = Field(
        [],
        description="how the heads to keep are chosen: as pruning with gates did, by the largest importance (see ablation), "
        "relevance or confidence in the baseline, or at random by seed; empty: no comparison",
    )
    finetune: bool = Field(True, description="also fine-tune what is left, for as many updates as pruning with gates")

    @field_validator("criteria")
    @classmethod
    def _criteria(cls, values: list[str]) -> list[str]:
        if len(set(values)) != len(values):
            raise ValueError("a criterion occurs twice")
        return values


class Decoding(Section):
    """Beam search."""

    beam: int = Field(4, ge=1, description="hypotheses per sentence")
    length_penalty: float = Field(1.0, ge=0, description="α in log P / length^α; 0: no normalisation")
    max_length_ratio: float = Field(2.0, gt=0, description="longest output, as a multiple of source subwords (plus 10)")


class Parser(Section):
    """Where dependency trees come from (section 5.2)."""

    engine: Literal["embedded", "stanza", "spacy", "conllu"] = Field(
        "embedded", description="the parses in resources/, Stanza, spaCy (an optional extra), or a CoNLL-U file"
    )
    directory: str | None = Field(None, description="Stanza: resources directory; null: Stanza's own default")
    package: str = Field(
        "default", description="Stanza: package of models; spaCy: name of a model, default: en_core_web_sm for English"
    )
    download: bool = Field(True, description="Stanza: fetch missing models, in one job before parsing")
    path: str | None = Field(
        None, description="conllu: the file of trees, plain or packed, relative to the working directory"
    )

    @model_validator(mode="after")
    def _path(self) -> "Parser":
        if self.engine == "conllu" and self.path is None:
            raise ValueError("engine conllu reads trees from a file: set parser.path")
        return self


class Heads(Section):
    """Analysis of heads (sections 4 and 5)."""

    relations: list[str] = Field(
        ["nsubj", "obj", "amod", "advmod"],
        min_length=1,
        description="Universal (obj) or Stanford Dependencies (dobj); a main type counts its subtypes, nsubj:pass itself",
    )
    positional_share: float = Field(0.9, gt=0, le=1, description="argmaxes at one relative position (section 5.1)")
    syntactic_margin: float = Field(0.1, ge=0, description="accuracy above the baseline, as a fraction (section 5.2)")
    rare_cutoff: int = Field(500, ge=0, description="a token outside so many most frequent ones is rare (section 5.3)")
    rare_share: float = Field(
        0.5, gt=0, le=1, description="share of argmaxes on the least frequent token that makes a rare-words head"
    )
    from_word: Literal["mean", "first"] = Field(
        "mean", description="attention from a word: mean over its pieces, or first"
    )
    bootstrap: int = Field(1000, ge=1, description="resamples of sentences for intervals")
    similarity_sentences: int = Field(
        1000,
        ge=1,
        description="sentences of the analysis set on which heads are compared with each other, evenly spread",
    )
    relevance_rules: list[Literal["epsilon", "z_plus", "alpha_beta", "attention", "gradient_input"]] = Field(
        ["epsilon"],
        min_length=1,
        description="rules of relevance propagation; epsilon: the paper's. Figures and criteria show the first",
    )
    viewer_sentences: int = Field(
        20, ge=0, description="sentences in the attention viewer, a page per model; 0: no pages"
    )
    relevance_epsilon: float = Field(
        0.1,
        gt=0,
        description="stabiliser of the weight ratios (appendix A), in units of activations; epsilon, attention",
    )
    relevance_absorbed: Literal["returned", "lost"] = Field(
        "returned",
        description="the stabiliser's share of relevance: back to the inputs by size, or lost; epsilon, attention",
    )
    relevance_alpha: float = Field(
        1.5, ge=1, description="weight of positive contributions, negative ones having this less 1; alpha_beta"
    )
    relevance_bias: Literal["none", "share"] = Field(
        "none", description="share: biases take theirs, which leaves the network; all rules but gradient_input"
    )

    @field_validator("relevance_rules", "relations")
    @classmethod
    def _distinct(cls, names: list[str]) -> list[str]:
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"{repeated[0]} stands there more than once; name it once")
        return names


class Corpus(Section):
    """One parallel corpus and the part of the study that runs on it."""

    source: Source
    source_language: str = Field("en", min_length=2)
    target_language: str = Field(min_length=2)
    title: str = Field(min_length=1, description="how figures and tables call it")
    filters: Filters = Filters()
    split: Split = Split()
    prune: bool = Field(True, description="run the pruning part on it too; false: baseline and its heads only")
    override: dict[str, dict[str, Any]] = Field({}, description="keys of other sections that differ for this corpus")


class Experiment(Section):
    """A whole study: corpora, model, training, pruning, analysis."""

    experiment: str = Field(description="name of the folder under results/")
    seeds: list[Annotated[int, Field(ge=0)]] = Field([1], min_length=1, description="one set of models per seed")
    corpora: dict[str, Corpus] = Field(
        min_length=1, description="the first one is shown in figures 1, 3 and 5, the first pruned one in 8 to 10"
    )
    vocabulary: Vocabulary = Vocabulary()
    model: Model = Model()
    training: Training = Training()
    pruning: Pruning = Pruning()
    ablation: Ablation = Ablation()
    comparison: Comparison = Comparison()
    decoding: Decoding = Decoding()
    parser: Parser = Parser()
    heads: Heads = Heads()
    downloads: Downloads = Downloads()
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="auto: a GPU where there is one")

    @model_validator(mode="after")
    def _names(self) -> "Experiment":
        for name in (self.experiment, *self.corpora):
            if not SLUG.fullmatch(name):
                raise ValueError(
                    f"the name {name!r} becomes a folder: use letters, digits, '_', '.' and '-', and start with a letter or digit"
                )
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError("seeds: a seed occurs twice")
        titles = [corpus.title for corpus in self.corpora.values()]
        for title in titles:
            if titles.count(title) > 1:
                raise ValueError(f"corpora: two have the title {title!r}; figures could not tell them apart")
        for name, corpus in self.corpora.items():
            if self.for_corpus(name).parser.engine == "embedded" and corpus.source.kind != "embedded":
                raise ValueError(
                    f"corpora.{name}: only embedded corpora have embedded parses; set parser.engine: stanza, "
                    f"spacy or conllu, or override it for this corpus"
                )
        return self

    @model_validator(mode="after")
    def _possible(self) -> "Experiment":
        for name in (name for name, corpus in self.corpora.items() if corpus.prune):
            values = self.for_corpus(name)
            values.fine_tuning()
            values.retraining()
            per_type = values.model.layers * values.model.heads
            for key, most in (("heads", per_type), ("heads_all", 3 * per_type)):
                for wanted in getattr(values.pruning, key):
                    if wanted > most:
                        raise ValueError(
                            f"pruning.{key}: {wanted} heads were asked for, but the model of {name} has {most}"
                        )
            late = [moment for moment in values.ablation.moments if moment > values.training.updates]
            if late:
                raise ValueError(
                    f"ablation.moments: {late[0]} is after the last of the {values.training.updates} updates that "
                    f"the baseline of {name} is trained for"
                )
            if values.comparison.criteria and not (values.pruning.heads or values.pruning.heads_all):
                raise ValueError(
                    f"comparison.criteria: nothing says how many heads of {name} to keep; set pruning.heads or "
                    f"pruning.heads_all, or leave the criteria empty"
                )
            self._check_second_set(name, values.ablation)
        return self

    def _check_second_set(self, name: str, ablation: Ablation) -> None:
        """The other set on which the heads of a corpus are ablated exists, differs from its own, and has its languages."""
        second = ablation.second
        if second == "dev" or not (ablation.single and self.corpora[name].prune):
            return
        if second not in self.corpora:
            raise ValueError(f"ablation.second: {second!r} is neither dev nor a corpus of this experiment")
        if second == name:
            raise ValueError(f"ablation.second: {name} itself is no other set; override the key for this corpus")
        own, other = self.corpora[name], self.corpora[second]
        if (own.source_language, own.target_language) != (other.source_language, other.target_language):
            raise ValueError(
                f"ablation.second: {second} is {other.source_language}-{other.target_language}, the models of {name} "
                f"translate {own.source_language}-{own.target_language}; name a corpus of these languages, or dev"
            )

    def fine_tuning(self) -> Training:
        """The baseline's training with what `pruning` says of fine-tuning.

        The weights at the end belong to the gates at the end: there is no average over earlier ones.
        """
        pruning = self.pruning
        changed = {"updates": pruning.updates, "learning_rate": pruning.learning_rate, "warmup": pruning.warmup}
        return _validate(Training, self.training.model_dump() | changed | {"average": 1}, prefix="pruning")

    def retraining(self) -> Training:
        """The baseline's training, for as many updates as `pruning.retrain_updates` says.

        A linear schedule shrinks as a whole: its warm-up takes the same share of the updates.
        """
        updates = self.pruning.retrain_updates or self.training.updates
        changed = {"updates": updates}
        if self.training.schedule == "linear":
            changed["warmup"] = max(1, round(self.training.warmup * updates / self.training.updates))
        return _validate(Training, self.training.model_dump() | changed, prefix="pruning.retrain_updates")

    def for_corpus(self, name: str) -> "Experiment":
        """The configuration as it holds for one corpus: its `override` merged in."""
        override = self.corpora[name].override
        for section in override:
            if section not in OVERRIDABLE:
                raise ValueError(
                    f"corpora.{name}.override.{section}: only {', '.join(OVERRIDABLE)} can differ by corpus"
                )
        sections = {}
        for section, kind in OVERRIDABLE.items():
            merged = getattr(self, section).model_dump() | override.get(section, {})
            sections[section] = _validate(kind, merged, prefix=f"corpora.{name}.override.{section}")
        return self.model_copy(update=sections)


SOURCE_KINDS = [
    typing.get_args(kind.model_fields["kind"].annotation)[0] for kind in typing.get_args(typing.get_args(Source)[0])
]

OVERRIDABLE: dict[str, type[Section]] = {
    "vocabulary": Vocabulary,
    "model": Model,
    "training": Training,
    "pruning": Pruning,
    "ablation": Ablation,
    "comparison": Comparison,
    "decoding": Decoding,
    "parser": Parser,
    "heads": Heads,
}


def lambda_name(value: float) -> str:
    """λ as it stands in paths: the shortest decimal that reads back as the same number."""
    text = repr(float(value))
    return text.removesuffix(".0")


def load(values: dict[str, Any], *, origin: str = "config") -> Experiment:
    """Validate a decoded configuration.

    Args:
        values: what the YAML file holds.
        origin: how error messages call it.

    Raises:
        UserError: a key is unknown (with the nearest known one), missing, or its value is out of range.
    """
    try:
        return _validate(Experiment, values, prefix="")
    except ValueError as error:
        raise UserError(f"{origin}: {error}") from None


def _validate(kind: type[Section], values: dict[str, Any], *, prefix: str) -> Any:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problems = [_describe(kind, problem, prefix) for problem in error.errors()]
        raise ValueError("; ".join(problems)) from None


def _describe(kind: type[Section], problem: Any, prefix: str) -> str:
    """One problem as `path.of.key: what is wrong`, with the nearest known key for an unknown one."""
    # A discriminated union puts its tag into the location; it is no key of the file.
    location = [part for part in problem["loc"] if part not in SOURCE_KINDS]
    where = ".".join(filter(None, [prefix, *map(str, location)]))
    if problem["type"] == "extra_forbidden":
        known = _known_keys(kind, list(problem["loc"][:-1]))
        near = difflib.get_close_matches(str(problem["loc"][-1]), known, n=1, cutoff=0.0)
        return f"{where}: unknown key; nearest known key: {near[0]}"
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "missing":
        return f"{where}: required key is missing"
    return f"{where}: {message}" if where else message


def _known_keys(kind: Any, location: list[str | int]) -> list[str]:
    """The keys that exist at a location of an error, following nested sections, dicts and unions."""
    for part in location:
        kind = _child(kind, part)
    return list(kind.model_fields)


def _child(kind: Any, part: str | int) -> Any:
    if isinstance(kind, type) and issubclass(kind, Section):
        return kind.model_fields[str(part)].annotation
    origin, members = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):  # the tag of a discriminated union
        return next(m for m in members if typing.get_args(m.model_fields["kind"].annotation)[0] == part)
    return members[-1]  # dict[str, X] or list[X]


def schema() -> dict[str, Any]:
    """The JSON schema of a configuration file, as `snakemake.utils.validate` needs it."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Experiment.model_json_schema()}


def schema_text() -> str:
    """The text of `workflow/schemas/config.schema.json`."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(schema_text(), encoding="utf-8")
