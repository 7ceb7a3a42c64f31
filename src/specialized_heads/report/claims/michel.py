"""The claims of Michel et al. (2019), in the order of their paper.

Their model is a large Transformer of 6 layers with 16 heads each, trained on WMT EN-FR. Numbers of heads are read as shares, and
large losses as shares of BLEU.
"""

from math import inf

from specialized_heads.report.claims import of_ablation
from specialized_heads.report.claims.claim import Claim, Measured, Unit
from specialized_heads.report.claims.evidence import Evidence, NotTestable
from specialized_heads.report.voita import paper

SINGLE = (8, 96)  # section 3.2: encoder heads whose removal alone changes BLEU at p < 0.01
CORRELATION = 0.56  # section 3.4: of single heads' effects on two test sets
ALONE = -13.56  # section 3.3, table 2: BLEU, with one head left in the last layer of cross-attention
WHOLE = 36.05  # section 3.2: BLEU before
REDUNDANT = 0.4  # section 6: of the heads, late in training
WITHIN = 0.9  # section 6: share of BLEU that is kept then; the paper says 85 to 90%
FEW = 0.2  # section 5: heads left of a type
STILL = 30  # section 5: about the BLEU of self-attention then


def claims() -> list[Claim]:
    """All claims of the paper."""
    share = SINGLE[0] / SINGLE[1]
    return [
        Claim(
            name="single",
            section="3.2, table 1",
            text="encoder heads whose removal alone changes BLEU (p < 0.01)",
            reported=f"{SINGLE[0]} of {SINGLE[1]} ({share:.0%})",
            unit=Unit.SHARE,
            accepted=(0.0, share + 0.1),
            tolerance="at most 10 points more",
            measure=of_ablation.significant,
        ),
        Claim(
            name="last_cross",
            section="3.3, table 2",
            text="relative change of BLEU with one head in the last layer of cross-attention",
            reported=f"{Unit.DIFFERENCE.text(ALONE)} of {WHOLE} ({Unit.SHARE.text(ALONE / WHOLE)})",
            unit=Unit.SHARE,
            accepted=(-1.0, round(ALONE / WHOLE + 0.1, 2)),
            tolerance="at most 10 points less is lost",
            measure=of_ablation.one_left(rank=False),
        ),
        Claim(
            name="last_cross_rank",
            section="3.3, table 2",
            text="rank of that loss among all layers and types",
            reported="1",
            unit=Unit.RANK,
            accepted=(1, 1),
            tolerance="none",
            measure=of_ablation.one_left(rank=True),
        ),
        Claim(
            name="two_sets",
            section="3.4, figure 2",
            text="correlation of the effects of single heads on two test sets",
            reported=f"{CORRELATION:.2f}",
            unit=Unit.CORRELATION,
            accepted=(CORRELATION - 0.2, 1.0),
            tolerance="at most 0.2 less",
            measure=of_ablation.two_sets,
        ),
        Claim(
            name="no_loss_wmt",
            section="4.2, figure 3",
            text=f"relative change of BLEU without the {paper.PRUNING_SHARES['WMT']:.0%} least important heads",
            reported="no noticeable loss",
            unit=Unit.SHARE,
            accepted=(-0.02, inf),
            tolerance="2% of BLEU",
            measure=of_ablation.removed("all", paper.PRUNING_SHARES["WMT"]),
        ),
        Claim(
            name="no_loss_bert",
            section="4.2, figure 3",
            text=f"accuracy of BERT without the {paper.PRUNING_SHARES['BERT']:.0%} least important heads",
            reported="no noticeable loss",
            unit=Unit.SHARE,
            accepted=(-0.02, inf),
            tolerance="2%",
            measure=_bert,
        ),
        *_types(),
        Claim(
            name="redundant_late",
            section="6, figure 5",
            text=f"heads that can be removed at the end of training with {WITHIN:.0%} of BLEU kept",
            reported=f"{REDUNDANT:.0%}",
            unit=Unit.SHARE,
            accepted=(REDUNDANT - 0.105, 1.0),  # half a point, since steps are whole heads
            tolerance="at most 10 points less",
            measure=of_ablation.redundant_at_the_end(WITHIN),
        ),
        Claim(
            name="redundant_later",
            section="6, figure 5",
            text="more heads than early in training",
            reported="yes",
            unit=Unit.POINTS,
            accepted=(0.01, 1.0),
            tolerance="at least 1 point",
            measure=of_ablation.more_redundant_than_early(WITHIN),
        ),
    ]


def _types() -> list[Claim]:
    """Section 5: models still translate with a fifth of their self-attention heads, but not of cross-attention."""
    change = STILL / WHOLE - 1
    names = {"encoder": "encoder self-attention", "decoder": "decoder self-attention", "cross": "cross-attention"}
    return [
        Claim(
            name=f"few_{kind}",
            section="5, figure 4",
            text=f"relative change of BLEU with {FEW:.0%} of the heads of {name}",
            reported="collapse" if kind == "cross" else f"around {STILL} of {WHOLE} ({Unit.SHARE.text(change)})",
            unit=Unit.SHARE,
            accepted=(-1.0, -0.5) if kind == "cross" else (round(change - 0.1, 2), inf),
            tolerance="half of BLEU or more" if kind == "cross" else "at most 10 points more is lost",
            measure=of_ablation.removed(kind, 1 - FEW),
        )
        for kind, name in names.items()
    ]


def _bert(evidence: Evidence) -> Measured:
    raise NotTestable("there is no BERT in this project")
