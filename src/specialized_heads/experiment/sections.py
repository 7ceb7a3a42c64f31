"""The sections of an experiment configuration: every key with its unit, range and default (the
paper's value)."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from specialized_heads.experiment.names import CONTINUED, SCOPES, Criterion, Target
from specialized_heads.experiment.sources import Distinct, FilePath
from specialized_heads.stage import Section

Mode = Literal["none", "paper"]  # of preprocessing: `vocabulary.preprocess`


class Filters(Section):
    """Choice of sentence pairs. Words are separated by white space."""

    max_words: int = Field(100, ge=1, description="maximum length, words")
    max_ratio: float = Field(
        3.0,
        ge=1,
        description="maximum ratio of the two lengths, in characters; Chinese, Japanese and Korean "
        "ones count 2.5",
    )


class Split(Section):
    """Held-out sets, in sentence pairs; the rest is the training set."""

    dev: int = Field(
        500, ge=1, description="pairs for the development set (loss curves, relevance)"
    )
    test: int = Field(1000, ge=1, description="pairs for the test set (BLEU)")
    analysis: int = Field(
        1000, ge=1, description="pairs whose source side is parsed and analysed (sections 4 and 5)"
    )


class Vocabulary(Section):
    """BPE vocabularies, separate for source and target (appendix B.1)."""

    source: int = Field(32000, ge=16, le=1_000_000, description="source vocabulary, subwords")
    target: int = Field(32000, ge=16, le=1_000_000, description="target vocabulary, subwords")
    preprocess: Mode = Field(
        "none", description="text before BPE; paper: lower-case Moses tokens, as in its code"
    )


class Model(Section):
    """Transformer size and regularisation (appendix B.2: Transformer base)."""

    layers: int = Field(6, ge=1, le=1000, description="layers in the encoder")
    decoder_layers: int | None = Field(
        None, ge=1, le=1000, description="in the decoder; null: as in the encoder"
    )
    heads: int = Field(8, ge=1, le=1000, description="heads per attention sub-layer")
    width: int = Field(512, ge=2, le=100_000, description="d_model")
    head_width: int | None = Field(
        None, ge=1, le=100_000, description="dimensions of a head; null: width / heads"
    )
    feed_forward: int = Field(
        2048, ge=1, le=1_000_000, description="inner width of the feed-forward sub-layer"
    )
    dropout: float = Field(
        0.1, ge=0, le=0.99, description="on residual, ReLU, attention weights and embeddings"
    )
    position_frequency: float = Field(
        1.0, gt=0, le=3.15, description="highest of the position sinusoids, radians per token"
    )
    position_base: float = Field(
        1e4, gt=1, le=1e6, description="ratio of their highest to their lowest frequency"
    )
    position_scale: float = Field(
        1.0, gt=0, le=1e3, description="factor of the sinusoids; embeddings have unit size"
    )
    fixed_patterns: bool = Field(
        False,
        description="heads 1 to 7 of each encoder layer have the fixed patterns of Raganato et al. "
        "(2020): a control",
    )

    @model_validator(mode="after")
    def _divisible(self) -> "Model":
        if self.width % 2:
            raise ValueError(
                f"width {self.width} must be even: half of the position channels are sines, half "
                f"cosines"
            )
        if self.head_width is None and self.width % self.heads:
            raise ValueError(
                f"width {self.width} must be a multiple of heads {self.heads}; or set head_width"
            )
        return self


class Training(Section):
    """Optimisation of a model (appendix B.3)."""

    updates: int = Field(100_000, ge=1, description="parameter updates")
    batch_tokens: int = Field(16_000, ge=1, description="source tokens per update")
    join: int = Field(
        1,
        ge=1,
        le=100,
        description="a training example joins 1 to this many pairs, drawn anew each epoch",
    )
    micro_batch_tokens: int = Field(
        4_000,
        ge=1,
        description="maximum tokens per forward pass on either side, padding included; gradients "
        "accumulate",
    )
    schedule: Literal["inverse_sqrt", "linear"] = Field(
        "inverse_sqrt",
        description="after warm-up: decay with t^-1/2 (the paper), or linearly to zero after the "
        "last update",
    )
    learning_rate: float = Field(
        4.0,
        gt=0,
        description="linear: the peak; else the factor of d^-1/2 * min(t^-1/2, t * warmup^-3/2)",
    )
    warmup: int = Field(16_000, ge=1, description="updates of linear warm-up")
    optimizer: Literal["adam", "muon"] = Field(
        "adam",
        description="adam: the paper's; muon: Muon for the weight matrices of the layers, Adam for "
        "the rest",
    )
    muon_learning_rate: float = Field(
        0.02, gt=0, le=100, description="muon: peak learning rate of these matrices"
    )
    label_smoothing: float = Field(
        0.1, ge=0, lt=1, description="probability mass spread over all tokens"
    )
    precision: Literal["fp32", "bf16"] = Field(
        "fp32",
        description="of matrix products; fp32 is used where a processor or GPU has no instructions "
        "for bf16",
    )
    log_every: int = Field(50, ge=1, description="updates between lines of the log")
    evaluate_every: int = Field(
        500, ge=1, description="updates between evaluations on the development set"
    )

    @model_validator(mode="after")
    def _ends_at_zero(self) -> "Training":
        if self.schedule == "linear" and self.warmup >= self.updates:
            raise ValueError(
                f"warmup {self.warmup} takes all of the {self.updates} updates: the rate would end "
                f"at its peak"
            )
        return self


# The name of a dependency becomes part of column names.
RELATION = r"^[A-Za-z0-9_~-]+([:@][A-Za-z0-9_~-]+)*$"

# λ per head, in nats per target token: every gate closes far below it, and the squares in the
# optimiser overflow far above it.
LARGEST_LAMBDA = 1e6
Lambda = Annotated[float, Field(ge=0, le=LARGEST_LAMBDA), AfterValidator(abs)]  # zero has no sign
HeadCount = Annotated[int, Field(ge=0)]
Control = Literal["count", "regularised", "continued", "continued_count", "continued_regularised"]


class Pruning(Section):
    """Fine-tuning with Hard Concrete gates on the heads (section 6)."""

    encoder: Distinct[Lambda] = Field(
        [], description="λ per head, one model each: encoder heads, the decoder frozen"
    )
    all: Distinct[Lambda] = Field(
        [], description="λ per head, one model each: heads of all three attention types"
    )
    heads: Distinct[HeadCount] = Field(
        [], description="numbers of encoder heads to keep, by a λ that adapts"
    )
    heads_all: Distinct[HeadCount] = Field(
        [], description="numbers of heads of all three attention types together"
    )
    updates: int = Field(20_000, ge=1, description="parameter updates of fine-tuning")
    learning_rate: float = Field(
        0.4, gt=0, description="as training.learning_rate; 0.4: where 100 000 updates end"
    )
    warmup: int = Field(1_000, ge=1, description="updates of linear warm-up")
    optimizer: Literal["adam", "muon"] = Field(
        "adam", description="as training.optimizer, for fine-tuning"
    )
    muon_learning_rate: float = Field(
        0.02, gt=0, le=100, description="as training.muon_learning_rate, for fine-tuning"
    )
    gate_learning_rate: float = Field(
        0.05, gt=0, description="peak learning rate of log α; same shape of schedule"
    )
    gate_seed: int | None = Field(
        None, description="of the gates' noise alone; null: the model's own seed"
    )
    retrain: Distinct[str] = Field(
        ["all"],
        description="pruned configurations that are also trained from scratch (table 2): whole "
        "scopes but for λ 0 (encoder, all) or single models (all_lambda0.01, encoder_heads6)",
    )
    retrain_updates: int | None = Field(
        None, ge=1, description="of from-scratch training; null: training.updates"
    )
    controls: Distinct[Control] = Field(
        [],
        description="further from-scratch models for the configurations in retrain (footnote 8); "
        "count: as many heads, spread evenly over the layers; regularised: with gates and penalty "
        "from random initialisation; continued, continued_count, continued_regularised: the "
        "models of retrain and these two, trained as the baseline and then for as long as "
        "pruning, with its schedule",
    )

    @model_validator(mode="after")
    def _together(self) -> "Pruning":
        for name in self.retrain:
            if name not in self.configurations() and name not in SCOPES:
                pruned = ", ".join(self.configurations()) or "none"
                raise ValueError(
                    f"retrain: {name} is neither a scope ({', '.join(SCOPES)}) nor a pruned "
                    f"configuration ({pruned})"
                )
        if self.controls and not any(map(self.retrained, SCOPES)):
            raise ValueError(
                "controls need configurations in retrain, but it names none that prunes"
            )
        if self.retrain_updates and (
            twice := [kind for kind in self.controls if kind in CONTINUED]
        ):
            raise ValueError(
                f"controls: {twice[0]} first trains for as long as the baseline; remove "
                f"retrain_updates"
            )
        return self

    def targets(self, scope: str) -> list[Target]:
        """What the pruned models of a scope aim at: each λ, then each number of heads."""
        lambdas, counts = (
            (self.encoder, self.heads) if scope == "encoder" else (self.all, self.heads_all)
        )
        return [Target(lam=value) for value in lambdas] + [Target(heads=n) for n in counts]

    def configurations(self) -> list[str]:
        """The pruned models, as `retrain` names them: scope and target."""
        return [f"{scope}_{target}" for scope in SCOPES for target in self.targets(scope)]

    def retrained(self, scope: str) -> list[Target]:
        """The targets of a scope whose pruned configurations are also trained from scratch."""
        whole = scope in self.retrain
        return [
            t for t in self.targets(scope) if (whole and t.prunes) or f"{scope}_{t}" in self.retrain
        ]


class Ablation(Section):
    """Ablation of single heads, and pruning in order of importance (Michel et al. 2019)."""

    single: bool = Field(
        False, description="BLEU without each single head, and with each head alone in its layer"
    )
    systematic: bool = Field(
        False, description="BLEU as heads are removed in order of importance, step by step"
    )
    moments: Distinct[Annotated[int, Field(ge=1)]] = Field(
        [], description="updates of the baseline after which systematic pruning is measured too"
    )

    @model_validator(mode="after")
    def _together(self) -> "Ablation":
        if self.moments and not self.systematic:
            raise ValueError(
                "moments need systematic pruning, which is off; set systematic: true or leave them "
                "empty"
            )
        return self


class Comparison(Section):
    """Criteria for choosing the heads to keep: each keeps as many as each pruned model has left."""

    criteria: Distinct[Criterion] = Field(
        [],
        description="gates: the heads that pruning with gates keeps; random: the median of "
        "several draws; the others: the heads with the largest value in the baseline",
    )
    draws: int = Field(
        20,
        ge=1,
        le=10_000,
        description="random sets of heads per model, each scored by its development loss; BLEU: "
        "the median's",
    )
    finetune: bool = Field(
        True, description="also fine-tune the remaining model, for as many updates as pruning"
    )


class Decoding(Section):
    """Beam search."""

    beam: int = Field(4, ge=1, le=1000, description="hypotheses per sentence")
    max_length_ratio: float = Field(
        2.0,
        gt=0,
        le=1000,
        description="longest output: this many times the source, plus 10 subwords",
    )


class Parser(Section):
    """Where dependency trees come from (section 5.2)."""

    engine: Literal["embedded", "stanza", "conllu"] = Field(
        "embedded",
        description="embedded: the trees in resources/; stanza: parse; conllu: trees from a file",
    )
    directory: str | None = Field(
        None, description="Stanza: resources directory; null: Stanza's own default"
    )
    package: str = Field("default", description="Stanza: package of models")
    download: bool = Field(
        True, description="Stanza: fetch missing models in one job before parsing"
    )
    path: FilePath | None = Field(None, description="conllu: file of trees, plain or compressed")

    @model_validator(mode="after")
    def _path(self) -> "Parser":
        if self.engine == "conllu" and self.path is None:
            raise ValueError("engine conllu reads trees from a file: set parser.path")
        if self.engine != "conllu" and self.path is not None:
            raise ValueError(
                f"engine {self.engine} reads no path: set parser.engine to conllu, or parser.path "
                f"to null"
            )
        return self


class Heads(Section):
    """Analysis of heads (sections 4 and 5)."""

    relations: Distinct[Annotated[str, Field(pattern=RELATION)]] = Field(
        ["nsubj", "obj", "amod", "advmod"],
        min_length=1,
        description="Universal (obj) or Stanford Dependencies (dobj); a main type includes its "
        "subtypes, nsubj:pass only itself",
    )
    rare_cutoff: int = Field(
        500, ge=0, description="tokens outside this many most frequent ones are rare (sec. 5.3)"
    )
    relevance_rules: Distinct[Literal["z_plus", "alpha_beta", "epsilon"]] = Field(
        ["z_plus"],
        min_length=1,
        description="the first for all results, all for the table relevance; z_plus: positive "
        "contributions only, as in the code of 2019; epsilon: weight ratios (appendix A)",
    )
    relevance_predictions: int = Field(
        3000,
        ge=1,
        description="predictions for the development set, drawn by seed, over which relevance is "
        "averaged",
    )
    checkpoints: Distinct[Annotated[int, Field(ge=1)]] = Field(
        [], description="updates of the baseline's training at which its heads are analysed too"
    )
    viewer_sentences: int = Field(
        20, ge=0, description="sentences per model in the attention viewer; 0: no viewer"
    )
