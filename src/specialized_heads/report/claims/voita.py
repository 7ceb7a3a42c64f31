"""The claims of Voita et al. (2019), in the order of their paper.

Their models have 48 heads per attention type; ours may have fewer. So a number of heads is read as a share, and BLEU at that
share is interpolated between the two nearest models. Scores can only be compared on the paper's own data; differences of
scores can be compared on any data.
"""

from collections.abc import Iterator
from functools import partial
from math import inf

from specialized_heads.report.claims import of_heads, of_scores
from specialized_heads.report.claims.claim import Claim, Unit
from specialized_heads.report.voita import paper

BLEU = 0.5  # tolerance of differences of BLEU
SHARE = 0.2  # tolerance of shares of layers and gates that the paper says are all
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
CONTROLS = {  # models from scratch, section, and BLEU by which pruned models are better
    "scratch": ("the same heads trained from scratch", "6.3.1, table 2", (min(GAINS), max(GAINS))),
    "count": ("as many heads trained from scratch", "6.2, footnote 8", BETTER),
    "regularised": ("gates and penalty trained from scratch", "6.2, footnote 8", BETTER),
}
NEXT, EARLIER = "survival, heads of the next type minus encoder heads", "survival, cross-attention minus the next type"


def claims() -> Iterator[Claim]:
    """All claims of the paper."""
    of_baseline = partial(Claim, of_pruning=False)
    for corpus, (data, title) in DATA.items():
        bleu = paper.BASELINE_BLEU[corpus]
        yield of_baseline(
            name=f"baseline_{data}",
            section="6.3.1, table 2",
            text=f"BLEU of the baseline on {title} EN-RU",
            reported=f"{bleu:.1f}",
            unit=Unit.BLEU,
            accepted=(bleu - 1, bleu + 1),
            tolerance="1 BLEU",
            measure=partial(of_scores.baseline_bleu, data=data),
        )
    relevance = partial(of_baseline, section="4, figure 1")
    yield relevance(
        name="relevance_dominated",
        text="encoder layers in which a few heads are far more relevant than the others: the top quarter of the heads has "
        f"at least {of_heads.DOMINANT:.0%} of the relevance",
        reported="all",
        unit=Unit.SHARE,
        accepted=(1 - SHARE, 1.0),
        tolerance="20 points",
        measure=of_heads.dominated_layers,
    )
    yield relevance(
        name="relevance_confidence",
        text="relevance agrees with confidence: rank correlation within encoder layers, without the top head of the first",
        reported="to a reasonable extent",
        unit=Unit.CORRELATION,
        accepted=(0.01, inf),
        tolerance="any positive correlation, with its interval",
        measure=of_heads.relevance_and_confidence,
        directed=True,
    )
    yield relevance(
        name="relevance_exception",
        text="the exception: the most relevant head of the first layer is less confident than the layer's other heads",
        reported="yes",
        unit=Unit.POINTS,
        accepted=(-inf, -0.01),
        tolerance=f"at least 1 point, with its interval; the same sign in at least {of_heads.MIN_SEEDS} seeds",
        measure=of_heads.exception_of_layer_1,
        directed=True,
    )
    positional = partial(of_baseline, section="5.1", unit=Unit.SHARE)
    yield positional(
        name="positional",
        text="an encoder head has its maxima at one relative position, of the queries with a token there",
        reported=f"at least {POSITIONAL:.0%}",
        accepted=(POSITIONAL, 1.0),
        tolerance="none",
        measure=of_heads.positional_share,
    )
    yield positional(
        name="positional_confidence",
        text="confidence of the least confident positional head",
        reported=f"above {CONFIDENT:.0%}",
        accepted=(CONFIDENT - 0.05, 1.0),
        tolerance="5 points",
        measure=of_heads.positional_confidence,
    )
    for relation, direction in dict.fromkeys((row.relation, row.direction) for row in paper.TABLE1):
        rows = [row for row in paper.TABLE1 if (row.relation, row.direction) == (relation, direction)]
        margins = [row.best - row.baseline for row in rows]
        values = [f"{Unit.POINTS.text(margin)} ({DATA[row.corpus][1]})" for row, margin in zip(rows, margins)]
        yield of_baseline(
            name=f"{relation}_{direction}",
            section="5.2, table 1",
            text=f"{relation} {paper.direction_label(relation, direction)}: accuracy of the best head above a fixed offset's",
            reported=", ".join(values),
            unit=Unit.POINTS,
            accepted=(max(0.0, min(margins) - 0.05), max(margins) + 0.05),
            tolerance="5 points beyond both, above the offset",
            measure=partial(of_heads.margin, relation=relation, direction=direction),
        )
    for corpus, column, name, share in RAREST:
        data, title = DATA[corpus]
        bound = corpus == paper.WMT
        yield of_baseline(
            name=f"{column}_{data}",
            section="5.3",
            text=f"a head of the first layer has its maxima on {name} ({title})",
            reported=f"above {share:.0%}" if bound else f"{share:.0%}",
            unit=Unit.SHARE,
            accepted=(share if bound else share - 0.1, 1.0),
            tolerance="none" if bound else "at most 10 points less",
            measure=partial(of_heads.rare_words, column=column),
        )
    yield Claim(
        name="gates_decided",
        section="6.1",
        text="gates that end almost fully closed or almost fully open, with probability above 0.9",
        reported="nearly all",
        unit=Unit.SHARE,
        accepted=(1 - SHARE, 1.0),
        tolerance="20 points",
        measure=of_scores.gates_decided,
    )
    for row in paper.FIGURE7:
        data, title = DATA[row.corpus]
        yield _loss(
            -row.loss,
            name=f"encoder_{data}",
            section="abstract; 6.2.1, figure 7",
            text=f"BLEU with {row.heads} of 48 encoder heads ({title}) against the reference",
            measure=partial(of_scores.difference, scope="encoder", left=row.heads / paper.HEADS_PER_TYPE),
        )
    yield Claim(
        name="specialised_survive",
        section="abstract; 6.2.2, figure 8",
        text="heads with a function survive encoder pruning more often than heads of the same layer without one",
        reported="yes",
        unit=Unit.POINTS,
        accepted=(0.01, inf),
        tolerance="at least 1 point, with its interval",
        measure=of_heads.specialised_survive,
        directed=True,
    )
    yield Claim(
        name="functions_kept",
        section="6.2.2, figure 8",
        text=f"functions kept with {KEPT} of 48 encoder heads",
        reported="all",
        unit=Unit.SHARE,
        accepted=(1.0, 1.0),
        tolerance="none; 10 points more or fewer heads",
        measure=partial(of_heads.functions_kept, left=KEPT / paper.HEADS_PER_TYPE),
    )
    for row in paper.TABLE2:
        data, title = DATA[row.corpus]
        heads = (row.encoder, row.decoder, row.cross)
        yield _loss(
            round(row.pruned - paper.BASELINE_BLEU[row.corpus], 2),
            name="_".join(map(str, ["all", data, *heads])),
            section="6.3.1, table 2",
            text=f"BLEU with {'/'.join(map(str, heads))} of 48/48/48 heads ({title}) against the reference",
            measure=partial(of_scores.difference, scope="all", left=sum(heads) / (3 * paper.HEADS_PER_TYPE)),
        )
    yield from _order()
    for control, (name, section, (low, high)) in CONTROLS.items():
        measure = partial(of_scores.better_than, control=control)
        better = partial(Claim, section=section, unit=Unit.DIFFERENCE, measure=measure)
        yield better(
            name=f"{control}_worse",
            text=f"BLEU of pruned models against {name}: better",
            reported="yes",
            accepted=(0.01, inf),
            tolerance="any advantage that two digits show, with its interval",
            directed=True,
        )
        yield better(
            name=f"{control}_size",
            text=f"BLEU of pruned models against {name}: by how much",
            reported=f"{Unit.DIFFERENCE.text(low)} to {Unit.DIFFERENCE.text(high)}",
            accepted=(low - BLEU, high + BLEU),
            tolerance=f"{BLEU} BLEU beyond both",
        )


def _loss(change: float, **about: object) -> Claim:
    """BLEU may be better than the paper's, and a little worse."""
    reported = {"reported": Unit.DIFFERENCE.text(change), "tolerance": f"at most {BLEU} BLEU worse"}
    return Claim(unit=Unit.DIFFERENCE, accepted=(change - BLEU, inf), **reported, **about)


def _order() -> Iterator[Claim]:
    """The order in which types and layers lose their heads."""
    models = len(paper.TABLE2)
    first = f"{sum(row.encoder < min(row.decoder, row.cross) for row in paper.TABLE2)} of {models} models"
    last = f"{sum(row.cross > max(row.encoder, row.decoder) for row in paper.TABLE2)} of {models} models"
    table, figure = "6.3.2, table 2, figure 9", "6.3.2, figure 10"
    of_type, of_layer = of_heads.type_order, of_heads.layer_order
    for name, section, text, reported, sign, measure in [
        ("encoder_first", table, f"the encoder loses its heads first: {NEXT}", first, 1,
         partial(of_type, kind="encoder", last=False)),
        ("cross_last", table, f"cross-attention keeps its heads longest: {EARLIER}", last, 1,
         partial(of_type, kind="cross", last=True)),
        ("decoder_low", figure, "decoder self-attention survives in low layers: survival per layer", "all models", -1,
         partial(of_layer, kind="decoder", sign=-1)),
        ("cross_high", figure, "cross-attention survives in high layers: survival per layer", "all models", 1,
         partial(of_layer, kind="cross", sign=1)),
    ]:  # fmt: skip
        yield Claim(
            name=name,
            section=section,
            text=text,
            reported=reported,
            unit=Unit.POINTS,
            accepted=(0.01, inf) if sign > 0 else (-inf, -0.01),
            tolerance=f"at least 1 point, with its interval; the same sign in each of {of_heads.MIN_SEEDS} seeds or more; "
            f"{of_heads.MIN_REMOVED} removed heads or more",
            measure=measure,
            directed=True,
        )
