"""The claims of Voita et al. (2019), in the order of their paper.

Their models have 48 heads per attention type; ours may have fewer. So a number of heads is read as a share, and BLEU at that
share is interpolated between the two nearest models. Scores can only be compared on the paper's own data; differences of
scores can be compared on any data. Where the paper reports both of its corpora, scores, losses and rare words are compared with
the same corpus; margins over fixed offsets and advantages over models from scratch, with the range that both span.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import inf

from specialized_heads.experiment.names import SCOPES
from specialized_heads.report.claims import of_heads, of_scores
from specialized_heads.report.claims.claim import Claim, Measured, Unit
from specialized_heads.report.claims.evidence import Evidence, require
from specialized_heads.report.voita import paper

BLEU = 0.5  # tolerance of differences of BLEU
SHARE = 0.2  # tolerance of shares of layers, gates and functions that the paper says are all
DATA = {paper.WMT: ("wmt", "WMT"), paper.SUBTITLES: ("opensubtitles", "OpenSubtitles")}
POSITIONAL = 0.9  # section 5.1: minimum share of maxima at one relative position
CONFIDENT = 0.8  # section 5.1: the confidence of positional heads
RAREST = [  # section 5.3: on the rarest token, on one of two; for WMT the paper gives a bound only
    (paper.SUBTITLES, "rarest", "the rarest token", 0.66),
    (paper.SUBTITLES, "two_rarest", "one of the two rarest tokens", 0.83),
    (paper.WMT, "two_rarest", "one of the two rarest tokens", 0.5),
]
KEPT = 17  # section 6.2.2: of 48 heads; this model still has every function
BETTER = (0.2, 0.6)  # footnote 8: BLEU by which pruned models are better than other models from scratch
GAINS = [round(row.pruned - row.scratch, 2) for row in paper.TABLE2]
CONTROLS = {  # models from scratch, section, BLEU by which pruned models are better, and the scope that the paper compares
    "scratch": ("the same heads trained from scratch", "6.3.1, table 2", (min(GAINS), max(GAINS)), "all"),
    "count": ("models from scratch with as many heads", "6.2, footnote 8", BETTER, "encoder"),
    "regularised": ("models from scratch with gates and penalty", "6.2, footnote 8", BETTER, "encoder"),
}


def claims() -> list[Claim]:
    """All claims of the paper, each in the order of the fields of `Claim`."""
    of_baseline = partial(Claim, of_pruning=False)
    return [
        *(of_baseline(f"baseline_{DATA[corpus][0]}", "6.3.1, table 2", f"BLEU of the baseline on {DATA[corpus][1]} EN-RU",
                      f"{bleu:.1f}", (bleu - 1, bleu + 1), "1 BLEU",
                      Unit.BLEU, partial(of_scores.baseline_bleu, data=DATA[corpus][0]), of_trained=False)
          for corpus, bleu in paper.BASELINE_BLEU.items()),
        *_relevance(),
        of_baseline("relevance_exception", "4, figure 1",
                    "the exception: in a first layer with a rare-words head, the most relevant head is less confident than the "
                    "others",
                    "yes", (-inf, -0.01),
                    f"at least 1 point, with its interval; the same sign in at least {of_heads.MIN_SEEDS} seeds",
                    Unit.POINTS, of_heads.exception_of_layer_1, directed=True, least_seeds=of_heads.MIN_SEEDS),
        of_baseline("positional", "5.1",
                    "best head's share of maxima at one relative position, among queries with a token there",
                    f"at least {POSITIONAL:.0%}", (POSITIONAL, 1.0), "none", Unit.SHARE, of_heads.positional_share),
        of_baseline("positional_next", "5.1", "the same share at the next token; the paper has such a head",
                    f"at least {POSITIONAL:.0%}", (POSITIONAL, 1.0), "none",
                    Unit.SHARE, partial(of_heads.positional_share, offset=1)),
        of_baseline("positional_confidence", "5.1", "confidence of the least confident positional head",
                    f"above {CONFIDENT:.0%}", (CONFIDENT, 1.0), "none", Unit.SHARE, of_heads.positional_confidence),
        *_relations(),
        *_rare_words(),
        Claim("gates_decided", "6.1",
              "gates that end almost fully closed or almost fully open, with probability above 0.9 (our threshold)",
              "all, P ≈ 1", (0.9, 1.0), "10 points", Unit.SHARE, of_scores.gates_decided, scopes=SCOPES),
        *(_loss(f"encoder_{DATA[row.corpus][0]}", f"{'abstract; ' if row.corpus == paper.WMT else ''}6.2.1, figure 7",
                f"change in BLEU with {row.heads} of 48 encoder heads ({DATA[row.corpus][1]})",
                -row.loss, data=DATA[row.corpus][0], scope="encoder", left=row.heads / paper.HEADS_PER_TYPE)
          for row in paper.FIGURE7),
        Claim("specialised_survive", "abstract; 6.2.2, figure 8",
              "heads with a function survive encoder pruning more often than heads of the same layer without one",
              "yes", (0.01, inf), "at least 1 point, with its interval",
              Unit.POINTS, of_heads.specialised_survive, scopes=("encoder",), directed=True),
        Claim("functions_kept", "6.2.2, figure 8", f"functions kept with {KEPT} of 48 encoder heads (OpenSubtitles)",
              "all", (1 - SHARE, 1.0), "20 points; 10 points more or fewer heads",
              Unit.SHARE, partial(of_heads.functions_kept, left=KEPT / paper.HEADS_PER_TYPE), scopes=("encoder",)),
        Claim("taken_over", "6.2.2, figure 8",
              "functions drift to the heads left: pruned models in which a head takes over the function of a pruned one",
              "some", (0.01, 1.0), "any", Unit.SHARE, of_heads.taken_over, scopes=("encoder",)),
        Claim("drift", "6.2.2, figure 8",
              "the paper's example: pruned models in which a head is both positional and syntactic",
              "some", (0.01, 1.0), "any", Unit.SHARE, of_heads.two_functions, scopes=("encoder",)),
        *(_loss(f"all_{DATA[row.corpus][0]}_{row.encoder}_{row.decoder}_{row.cross}", "6.3.1, table 2",
                f"change in BLEU with {row.encoder}/{row.decoder}/{row.cross} of 48/48/48 heads ({DATA[row.corpus][1]})",
                row.difference, data=DATA[row.corpus][0], scope="all", left=row.heads / (3 * paper.HEADS_PER_TYPE))
          for row in paper.TABLE2),
        *_order(),
        *_controls(),
    ]  # fmt: skip


def _relevance() -> Iterator[Claim]:
    """What the most relevant heads are: by the rule of the experiment, and by the weight ratios of the paper's appendix."""
    for column, name, rule in (("relevance", "", ""), ("relevance_epsilon", "_weight_ratios", ", by weight ratios")):
        yield Claim(
            f"relevance_dominated{name}", f"4, figure 1{'; A' if name else ''}",
            f"encoder layers in which a few heads are far more relevant than the others{rule}: the top quarter of the heads has "
            f"at least {of_heads.DOMINANT:.0%} of the relevance (our threshold; the paper gives no number)",
            "all", (1 - SHARE, 1.0), "20 points",
            Unit.SHARE, partial(of_heads.dominated_layers, column=column), of_pruning=False,
        )  # fmt: skip
        yield Claim(
            f"relevance_functions{name}", f"abstract; 5{'; A' if name else ''}",
            f"the most relevant heads have functions{rule}: probability (AUC) that a head with a function is more relevant than "
            "an encoder head of the same layer without one",
            "yes", (0.51, inf), "above chance (0.5), with its interval",
            Unit.AREA, partial(of_heads.relevant_heads_have_functions, column=column), of_pruning=False, directed=True,
        )  # fmt: skip
        yield Claim(
            f"relevance_confidence{name}", f"4, figure 1{'; A' if name else ''}",
            f"relevance agrees with confidence{rule}: rank correlation within encoder layers, without a top rare-words head in "
            "layer 1",
            "to a reasonable extent", (0.01, inf), "any positive correlation, with its interval",
            Unit.CORRELATION, partial(of_heads.relevance_and_confidence, column=column), of_pruning=False, directed=True,
        )  # fmt: skip
    yield Claim(
        "relevance_first", "5.3",
        "relevance of the second most relevant head of the first layer, as a share of that of the most relevant one",
        "far less", (0.0, 0.5), "at most half (our threshold; the paper gives no number)",
        Unit.SHARE, of_heads.second_of_layer_1, of_pruning=False,
    )  # fmt: skip


def _relations() -> Iterator[Claim]:
    """Syntactic heads: one claim per relation and direction, with the margins that the paper has on its two corpora."""
    for relation, direction in dict.fromkeys((row.relation, row.direction) for row in paper.TABLE1):
        rows = [row for row in paper.TABLE1 if (row.relation, row.direction) == (relation, direction)]
        margins = [row.best - row.baseline for row in rows]
        values = [f"{Unit.POINTS.text(margin)} ({DATA[row.corpus][1]})" for row, margin in zip(rows, margins)]
        label = paper.direction_label(relation, direction)
        yield Claim(
            f"{relation}_{direction}", "5.2, table 1",
            f"{relation} {label}: margin of the best head over the best fixed offset", ", ".join(values),
            (max(0.0, min(margins) - 0.05), max(margins) + 0.05), "5 points beyond both, but above 0",
            Unit.POINTS, partial(of_heads.margin, relation=relation, direction=direction), of_pruning=False,
        )  # fmt: skip


def _rare_words() -> Iterator[Claim]:
    """The head of the first layer that attends to rare words."""
    for corpus, column, name, share in RAREST:
        data, title = DATA[corpus]
        bound = corpus == paper.WMT
        yield Claim(
            f"{column}_{data}", "5.3", f"a head of the first layer has its maxima on {name} ({title})",
            f"above {share:.0%}" if bound else f"{share:.0%}", (share if bound else share - 0.1, 1.0),
            "none" if bound else "at most 10 points less",
            Unit.SHARE, _on(data, partial(of_heads.rare_words, column=column)), of_pruning=False,
        )  # fmt: skip


def _loss(name: str, section: str, text: str, change: float, *, data: str, scope: str, left: float) -> Claim:
    """BLEU with this share of heads may be better than the paper's, and a little worse."""

    def measure(evidence: Evidence) -> Measured:
        found = of_scores.difference(evidence, scope=scope, left=left)
        outside = not found.low <= change <= found.high
        beyond = f"; the interval excludes the paper's {Unit.DIFFERENCE.text(change)}" if outside else ""
        return replace(found, note=found.note + beyond)

    return Claim(
        name, section, text, Unit.DIFFERENCE.text(change), (change - BLEU, inf), f"at most {BLEU} BLEU worse",
        Unit.DIFFERENCE, _on(data, measure), scopes=(scope,),
    )  # fmt: skip


def _on(data: str, measure: Callable[[Evidence], Measured]) -> Callable[[Evidence], Measured]:
    """The measure, for all data but those of the paper's other corpus, for which the paper has a value of its own."""

    def measured(evidence: Evidence) -> Measured:
        require(evidence.stands_for in ("", data), "the paper gives this corpus a value of its own")
        return measure(evidence)

    return measured


def _order() -> Iterator[Claim]:
    """The order in which types and layers lose their heads."""
    models = len(paper.TABLE2)
    first = f"{sum(row.encoder < min(row.decoder, row.cross) for row in paper.TABLE2)} of {models} models"
    last = f"{sum(row.cross > max(row.encoder, row.decoder) for row in paper.TABLE2)} of {models} models"
    table, figure = "6.3.2, table 2, figure 9", "6.3.2, figure 10"
    more, less, both = (0.01, inf), (-inf, -0.01), "yes, in both corpora"
    tolerance = (
        f"at least 1 point, with its interval; the same sign in each of {of_heads.MIN_SEEDS} seeds or more; "
        f"{of_heads.MIN_REMOVED} removed heads or more"
    )
    for name, section, text, reported, accepted, measure in [
        ("encoder_first", table, "the encoder loses its heads first: survival of the next type minus that of the encoder",
         first, more, partial(of_heads.type_order, kind="encoder", last=False)),
        ("cross_last", table, "cross-attention keeps its heads longest: survival of cross-attention minus that of the next type",
         last, more, partial(of_heads.type_order, kind="cross", last=True)),
        ("decoder_low", figure, "decoder self-attention survives in low layers: change in survival per layer",
         both, less, partial(of_heads.layer_order, kind="decoder", sign=-1)),
        ("cross_high", figure, "cross-attention survives in high layers: change in survival per layer",
         both, more, partial(of_heads.layer_order, kind="cross", sign=1)),
    ]:  # fmt: skip
        yield Claim(
            name, section, text, reported, accepted, tolerance, Unit.POINTS, measure,
            scopes=("all",), directed=True, least_seeds=of_heads.MIN_SEEDS,
        )  # fmt: skip


def _controls() -> Iterator[Claim]:
    """Pruned models against models trained from scratch."""
    for control, (name, section, (low, high), scope) in CONTROLS.items():
        text = f"BLEU of pruned models minus that of {name}"
        measure = partial(of_scores.better_than, control=control, scope=scope)
        yield Claim(
            f"{control}_worse", section, f"{text}: above 0",
            "yes", (0.01, inf), "any advantage that two digits show, with its interval",
            Unit.DIFFERENCE, measure, scopes=SCOPES, control=control, directed=True,
        )  # fmt: skip
        yield Claim(
            f"{control}_size", section, f"{text}: how large",
            f"{Unit.DIFFERENCE.text(low)} to {Unit.DIFFERENCE.text(high)}",
            (max(0.01, low - BLEU), high + BLEU), f"{BLEU} BLEU beyond both, but better", Unit.DIFFERENCE, measure,
            scopes=SCOPES, control=control,
        )  # fmt: skip
