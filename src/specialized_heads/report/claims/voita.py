"""The claims of Voita et al. (2019), in the order of their paper.

Their models have 48 heads per attention type; ours may have fewer. So a number of heads is read as a share, and BLEU at that
share is interpolated between the two nearest models. Scores can only be compared on the paper's own data, differences of
scores on any.
"""

from math import inf, isnan, nan

from specialized_heads.report.claims import of_heads, of_scores
from specialized_heads.report.claims.claim import Claim, Unit
from specialized_heads.report.voita import paper

BLEU = 0.5  # tolerance of differences of BLEU
SHARE = 0.2  # tolerance of shares of layers and gates that the paper says are all
DATA = {paper.WMT: ("wmt", "WMT"), paper.SUBTITLES: ("opensubtitles", "OpenSubtitles")}
POSITIONAL = 0.9  # section 5.1: minimum share of maxima at one relative position
CONFIDENT = 0.8  # section 5.1: the confidence of positional heads
RAREST = {paper.SUBTITLES: (0.66, 0.83), paper.WMT: (nan, 0.5)}  # section 5.3: on the rarest token, on one of two
KEPT = 17  # section 6.2.2: of 48 heads; this model still has every function
BETTER = (0.2, 0.6)  # footnote 8: BLEU by which pruned models are better than other models from scratch
GAINS = [round(row.pruned - row.scratch, 2) for row in paper.TABLE2]
CONTROLS = {  # models from scratch, section, and BLEU by which pruned models are better
    "scratch": ("the same heads trained from scratch", "6.3.1, table 2", (min(GAINS), max(GAINS))),
    "count": ("as many heads trained from scratch", "6.2, footnote 8", BETTER),
    "regularised": ("gates and penalty trained from scratch", "6.2, footnote 8", BETTER),
}


def claims() -> list[Claim]:
    """All claims of the paper."""
    heads = [*_relevance(), *_positional(), *_syntactic(), *_rare_words()]
    return [*_baselines(), *heads, *_gates(), *_encoder(), *_survivors(), *_all_types(), *_order(), *_controls()]


def _baselines() -> list[Claim]:
    return [
        Claim(
            name=f"baseline_{data}",
            section="6.3.1, table 2",
            text=f"BLEU of the baseline on {title} EN-RU",
            reported=f"{paper.BASELINE_BLEU[corpus]:.1f}",
            unit=Unit.BLEU,
            accepted=(paper.BASELINE_BLEU[corpus] - 1, paper.BASELINE_BLEU[corpus] + 1),
            tolerance="1 BLEU",
            measure=of_scores.baseline_bleu(data),
            of_pruning=False,
        )
        for corpus, (data, title) in DATA.items()
    ]


def _relevance() -> list[Claim]:
    return [
        Claim(
            name="relevance_dominated",
            section="4, figure 1",
            text="encoder layers in which a few heads are far more relevant than the others: the top quarter of the heads has "
            f"at least {of_heads.DOMINANT:.0%} of the relevance",
            reported="all",
            unit=Unit.SHARE,
            accepted=(1 - SHARE, 1.0),
            tolerance="20 points",
            measure=of_heads.dominated_layers,
            of_pruning=False,
        ),
        Claim(
            name="relevance_confidence",
            section="4, figure 1",
            text="relevance agrees with confidence: rank correlation within encoder layers, without the top head of the first",
            reported="to a reasonable extent",
            unit=Unit.CORRELATION,
            accepted=(0.01, inf),
            tolerance="any positive correlation, with its interval",
            measure=of_heads.relevance_and_confidence,
            of_pruning=False,
            directed=True,
        ),
        Claim(
            name="relevance_exception",
            section="4, figure 1",
            text="the exception: the most relevant head of the first layer is less confident than the layer's other heads",
            reported="yes",
            unit=Unit.POINTS,
            accepted=(-inf, -0.01),
            tolerance=f"at least 1 point, with its interval; the same sign in at least {of_heads.MIN_SEEDS} seeds",
            measure=of_heads.exception_of_layer_1,
            of_pruning=False,
            directed=True,
        ),
    ]


def _positional() -> list[Claim]:
    return [
        Claim(
            name="positional",
            section="5.1",
            text="an encoder head has its maxima at one relative position, of the queries with a token there",
            reported=f"at least {POSITIONAL:.0%}",
            unit=Unit.SHARE,
            accepted=(POSITIONAL, 1.0),
            tolerance="none",
            measure=of_heads.positional_share,
            of_pruning=False,
        ),
        Claim(
            name="positional_confidence",
            section="5.1",
            text="confidence of the least confident positional head",
            reported=f"above {CONFIDENT:.0%}",
            unit=Unit.SHARE,
            accepted=(CONFIDENT - 0.05, 1.0),
            tolerance="5 points",
            measure=of_heads.positional_confidence,
            of_pruning=False,
        ),
    ]


def _syntactic() -> list[Claim]:
    claims = []
    for relation, direction in dict.fromkeys((row.relation, row.direction) for row in paper.TABLE1):
        rows = [row for row in paper.TABLE1 if (row.relation, row.direction) == (relation, direction)]
        margins = [row.best - row.baseline for row in rows]
        values = [f"{Unit.POINTS.text(row.best - row.baseline)} ({DATA[row.corpus][1]})" for row in rows]
        claim = Claim(
            name=f"{relation}_{direction}",
            section="5.2, table 1",
            text=f"{relation} {paper.direction_label(relation, direction)}: accuracy of the best head above a fixed offset's",
            reported=", ".join(values),
            unit=Unit.POINTS,
            accepted=(max(0.0, min(margins) - 0.05), max(margins) + 0.05),
            tolerance="5 points beyond both, above the offset",
            measure=of_heads.margin(relation, direction),
            of_pruning=False,
        )
        claims.append(claim)
    return claims


def _rare_words() -> list[Claim]:
    names = {"rarest": "the rarest token", "two_rarest": "one of the two rarest tokens"}
    claims = []
    for corpus, shares in RAREST.items():
        data, title = DATA[corpus]
        for (column, name), share in zip(names.items(), shares, strict=True):
            bound = corpus == paper.WMT  # for WMT the paper gives a bound only
            claim = Claim(
                name=f"{column}_{data}",
                section="5.3",
                text=f"a head of the first layer has its maxima on {name} ({title})",
                reported=f"above {share:.0%}" if bound else f"{share:.0%}",
                unit=Unit.SHARE,
                accepted=(share if bound else share - 0.1, 1.0),
                tolerance="none" if bound else "at most 10 points less",
                measure=of_heads.rare_words(column),
                of_pruning=False,
            )
            claims += [] if isnan(share) else [claim]
    return claims


def _loss(*, name: str, section: str, text: str, scope: str, share: float, change: float) -> Claim:
    """BLEU may be better than the paper's, and a little worse."""
    return Claim(
        name=name,
        section=section,
        text=text,
        reported=Unit.DIFFERENCE.text(change),
        unit=Unit.DIFFERENCE,
        accepted=(change - BLEU, inf),
        tolerance=f"at most {BLEU} BLEU worse",
        measure=of_scores.difference(scope, share),
    )


def _gates() -> list[Claim]:
    return [
        Claim(
            name="gates_decided",
            section="6.1",
            text="gates that end almost fully closed or almost fully open, with probability above 0.9",
            reported="nearly all",
            unit=Unit.SHARE,
            accepted=(1 - SHARE, 1.0),
            tolerance="20 points",
            measure=of_scores.gates_decided,
        )
    ]


def _encoder() -> list[Claim]:
    return [
        _loss(
            name=f"encoder_{DATA[row.corpus][0]}",
            section="abstract; 6.2.1, figure 7",
            text=f"BLEU with {row.heads} of 48 encoder heads ({DATA[row.corpus][1]}) against the reference",
            scope="encoder",
            share=row.heads / paper.HEADS_PER_TYPE,
            change=-row.loss,
        )
        for row in paper.FIGURE7
    ]


def _survivors() -> list[Claim]:
    return [
        Claim(
            name="specialised_survive",
            section="abstract; 6.2.2, figure 8",
            text="heads with a function survive encoder pruning more often than heads of the same layer without",
            reported="yes",
            unit=Unit.POINTS,
            accepted=(0.01, inf),
            tolerance="at least 1 point, with its interval",
            measure=of_heads.specialised_survive,
            directed=True,
        ),
        Claim(
            name="functions_kept",
            section="6.2.2, figure 8",
            text=f"functions kept with {KEPT} of 48 encoder heads",
            reported="all",
            unit=Unit.SHARE,
            accepted=(1.0, 1.0),
            tolerance="none; 10 points more or fewer heads",
            measure=of_heads.functions_kept(KEPT / paper.HEADS_PER_TYPE),
        ),
    ]


def _all_types() -> list[Claim]:
    return [
        _loss(
            name=f"all_{DATA[row.corpus][0]}_{row.encoder}_{row.decoder}_{row.cross}",
            section="6.3.1, table 2",
            text=f"BLEU with {row.encoder}/{row.decoder}/{row.cross} of 48/48/48 heads ({DATA[row.corpus][1]}) against the "
            "reference",
            scope="all",
            share=(row.encoder + row.decoder + row.cross) / (3 * paper.HEADS_PER_TYPE),
            change=round(row.pruned - paper.BASELINE_BLEU[row.corpus], 2),
        )
        for row in paper.TABLE2
    ]


def _order() -> list[Claim]:
    first = sum(row.encoder < min(row.decoder, row.cross) for row in paper.TABLE2)
    last = sum(row.cross > max(row.encoder, row.decoder) for row in paper.TABLE2)
    models = len(paper.TABLE2)
    table, figure = "6.3.2, table 2, figure 9", "6.3.2, figure 10"
    later, earlier = (
        "survival, heads of the next type minus encoder heads",
        "survival, cross-attention minus the next type",
    )
    orders = [  # name, section, text, reported, accepted sign, measure
        ("encoder_first", table, f"the encoder loses its heads first: {later}", f"{first} of {models} models", 1,
         of_heads.type_order("encoder", last=False)),
        ("cross_last", table, f"cross-attention keeps its heads longest: {earlier}", f"{last} of {models} models", 1,
         of_heads.type_order("cross", last=True)),
        ("decoder_low", figure, "decoder self-attention survives in low layers: survival per layer", "all models", -1,
         of_heads.layer_order("decoder", sign=-1)),
        ("cross_high", figure, "cross-attention survives in high layers: survival per layer", "all models", 1,
         of_heads.layer_order("cross", sign=1)),
    ]  # fmt: skip
    return [
        Claim(
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
        for name, section, text, reported, sign, measure in orders
    ]


def _controls() -> list[Claim]:
    claims = []
    for control, (name, section, (low, high)) in CONTROLS.items():
        shared = {"section": section, "unit": Unit.DIFFERENCE, "measure": of_scores.better_than(control)}
        claims += [
            Claim(
                name=f"{control}_worse",
                text=f"BLEU of pruned models against {name}: better",
                reported="yes",
                accepted=(0.01, inf),
                tolerance="any advantage that two digits show, with its interval",
                directed=True,
                **shared,
            ),
            Claim(
                name=f"{control}_size",
                text=f"BLEU of pruned models against {name}: by how much",
                reported=f"{Unit.DIFFERENCE.text(low)} to {Unit.DIFFERENCE.text(high)}",
                accepted=(low - BLEU, high + BLEU),
                tolerance=f"{BLEU} BLEU beyond both",
                **shared,
            ),
        ]
    return claims
