"""The claims of Voita et al. (2019), in the order of their paper.

Their models have 48 heads per attention type; ours may have fewer. So a number of heads is read as a share of them, and BLEU
there lies on the straight line between the two models of ours beside it. Scores themselves can be compared on the paper's own
data alone, differences of scores on any.
"""

from math import inf, isnan, nan

from specialized_heads.report import paper
from specialized_heads.report.claims import of_heads, of_scores
from specialized_heads.report.claims.claim import Claim, Unit

BLEU = 0.5  # tolerance of differences of BLEU
SHARE = 0.2  # tolerance of shares of models, of which there are few
DATA = {paper.WMT: ("wmt", "WMT"), paper.SUBTITLES: ("opensubtitles", "OpenSubtitles")}
POSITIONAL = 0.9  # section 5.1: least share of maxima at one relative position
CONFIDENT = 0.8  # section 5.1: the confidence of positional heads
RAREST = {paper.SUBTITLES: (0.66, 0.83), paper.WMT: (nan, 0.5)}  # section 5.3: on the rarest, on one of two
KEPT = 17  # section 6.2.2: of 48 heads, the model that still has every function
BETTER = (0.2, 0.6)  # footnote 8: by how much pruned models are better than other models from scratch, BLEU
GAINS = [round(row.pruned - row.scratch, 2) for row in paper.TABLE2]
CONTROLS = {  # what is trained from scratch, where the paper says so, and by how much pruned models are better
    "scratch": ("the same heads trained from scratch", "6.3.1, table 2", (min(GAINS), max(GAINS))),
    "count": ("as many heads trained from scratch", "6.2, footnote 8", BETTER),
    "regularised": ("gates and penalty trained from scratch", "6.2, footnote 8", BETTER),
}


def claims() -> list[Claim]:
    """All claims of the paper."""
    functions = [*_positional(), *_syntactic(), *_rare_words()]
    return [*_baselines(), *functions, *_encoder(), *_survivors(), *_all_types(), *_order(), *_controls()]


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


def _positional() -> list[Claim]:
    return [
        Claim(
            name="positional",
            section="5.1",
            text="an encoder head has its maxima at one relative position",
            reported=f"at least {POSITIONAL:.0%}",
            unit=Unit.SHARE,
            accepted=(POSITIONAL, 1.0),
            tolerance="none",
            measure=of_heads.positional_share(POSITIONAL),
            of_pruning=False,
        ),
        Claim(
            name="positional_confidence",
            section="5.1",
            text="positional heads are confident, the least of them too",
            reported=f"above {CONFIDENT:.0%}",
            unit=Unit.SHARE,
            accepted=(CONFIDENT - 0.05, 1.0),
            tolerance="5 points",
            measure=of_heads.positional_confidence,
            of_pruning=False,
        ),
    ]


def _syntactic() -> list[Claim]:
    found = []
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
        found.append(claim)
    return found


def _rare_words() -> list[Claim]:
    names = {"rarest": "the rarest token", "two_rarest": "one of the two rarest tokens"}
    found = []
    for corpus, shares in RAREST.items():
        data, title = DATA[corpus]
        for (column, name), share in zip(names.items(), shares, strict=True):
            bound = corpus == paper.WMT  # of WMT the paper says no more than this
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
            found += [] if isnan(share) else [claim]
    return found


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


def _encoder() -> list[Claim]:
    return [
        _loss(
            name=f"encoder_{DATA[row.corpus][0]}",
            section="abstract; 6.2.1, figure 7",
            text=f"BLEU with {row.heads} of 48 encoder heads ({DATA[row.corpus][1]}) against the baseline",
            scope="encoder",
            share=row.heads / paper.HEADS_PER_TYPE,
            change=-row.loss,
        )
        for row in paper.FIGURE7
    ]


def _survivors() -> list[Claim]:
    return [
        Claim(
            name="specialised_last",
            section="abstract; 6.2.2, figure 8",
            text="heads with a function survive encoder pruning oftener than heads without",
            reported="yes",
            unit=Unit.POINTS,
            accepted=(0.01, 1.0),
            tolerance="at least 1 point, with its interval",
            measure=of_heads.specialised_last,
            directed=True,
        ),
        Claim(
            name="functions_kept",
            section="6.2.2, figure 8",
            text=f"functions that are kept with {KEPT} of 48 encoder heads",
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
            "baseline",
            scope="all",
            share=(row.encoder + row.decoder + row.cross) / (3 * paper.HEADS_PER_TYPE),
            change=round(row.pruned - paper.BASELINE_BLEU[row.corpus], 2),
        )
        for row in paper.TABLE2
    ]


def _order() -> list[Claim]:
    least = [row.encoder < min(row.decoder, row.cross) for row in paper.TABLE2]
    most = [row.cross > max(row.encoder, row.decoder) for row in paper.TABLE2]
    shares = {
        "encoder_first": ("the encoder has the smallest share of its heads left", least, lambda e, d, c: e < min(d, c)),
        "cross_last": ("cross-attention has the largest share of its heads left", most, lambda e, d, c: c > max(e, d)),
    }
    layers = {
        "decoder_low": ("decoder self-attention is left in the lower layers", of_scores.centre("decoder", low=True)),
        "cross_high": ("cross-attention is left in the higher layers", of_scores.centre("cross", low=False)),
    }
    return [
        Claim(
            name=name,
            section="6.3.2, table 2, figure 9",
            text=f"models pruned in all types in which {text}",
            reported=f"{sum(cases)} of {len(cases)}",
            unit=Unit.SHARE,
            accepted=(sum(cases) / len(cases) - SHARE, 1.0),
            tolerance="20 points",
            measure=of_scores.order(holds),
        )
        for name, (text, cases, holds) in shares.items()
    ] + [
        Claim(
            name=name,
            section="6.3.2, figure 10",
            text=f"models pruned in all types in which {text}",
            reported="all",
            unit=Unit.SHARE,
            accepted=(1.0 - SHARE, 1.0),
            tolerance="20 points",
            measure=measure,
        )
        for name, (text, measure) in layers.items()
    ]


def _controls() -> list[Claim]:
    found = []
    for control, (name, section, (low, high)) in CONTROLS.items():
        shared = {"section": section, "unit": Unit.DIFFERENCE, "measure": of_scores.better_than(control)}
        found += [
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
    return found
