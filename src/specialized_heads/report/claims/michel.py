"""The claims of Michel et al. (2019), in the order of their paper.

Their model is a large Transformer of 6 layers with 16 heads each, trained on WMT EN-FR. Numbers of heads are read as shares, and
large losses as shares of BLEU, or for BERT as shares of what it has learned above the most frequent label.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import inf

from specialized_heads.report.claims import of_ablation
from specialized_heads.report.claims.claim import Claim, Measured, Unit
from specialized_heads.report.claims.evidence import Evidence, NotTestable
from specialized_heads.report.voita import paper

SINGLE = (8, 96)  # section 3.2: encoder heads whose removal alone changes BLEU at p < 0.01
CORRELATION = 0.56  # section 3.4: of single heads' effects on two test sets
BERT_ALONE = -0.96  # table 3: points of accuracy, of the layer of BERT that loses most with one head
BERT_CORRELATION = 0.68  # the same of BERT, on the matched and the mismatched set of MNLI
ALONE = -13.56  # section 3.3, table 2: BLEU, with one head left in the last layer of cross-attention
WHOLE = 36.05  # section 3.2: BLEU before
REDUNDANT = 0.4  # section 6: of the heads, late in training
WITHIN = 0.9  # section 6: share of BLEU that is kept then; the paper says 85 to 90%
FEW = 0.2  # section 5: heads left of a type
STILL = 30  # section 5: about the BLEU of self-attention then


def claims() -> Iterator[Claim]:
    """All claims of the paper."""
    share_of = partial(Claim, unit=Unit.SHARE)
    share = SINGLE[0] / SINGLE[1]
    yield share_of(
        name="single",
        section="3.2, table 1",
        text="encoder heads whose removal alone changes BLEU (p < 0.01)",
        reported=f"{SINGLE[0]} of {SINGLE[1]} ({share:.0%})",
        accepted=(0.0, share + 0.1),
        tolerance="at most 10 points more",
        measure=of_ablation.significant,
    )
    yield share_of(
        name="last_cross",
        section="3.3, table 2",
        text="relative change of BLEU with one head in the last layer of cross-attention",
        reported=f"{Unit.DIFFERENCE.text(ALONE)} of {WHOLE} ({Unit.SHARE.text(ALONE / WHOLE)})",
        accepted=(-1.0, round(ALONE / WHOLE + 0.1, 2)),
        tolerance="at most 10 points less is lost",
        measure=partial(of_ablation.one_left, rank=False),
    )
    yield Claim(
        name="last_cross_rank",
        section="3.3, table 2",
        text="rank of that loss among all layers and types",
        reported="1",
        unit=Unit.RANK,
        accepted=(1, 1),
        tolerance="none",
        measure=partial(of_ablation.one_left, rank=True),
    )
    yield Claim(
        name="two_sets",
        section="3.4, figure 2",
        text="correlation of the effects of single heads on two test sets",
        reported=f"{CORRELATION:.2f}",
        unit=Unit.CORRELATION,
        accepted=(CORRELATION - 0.2, 1.0),
        tolerance="at most 0.2 less",
        measure=of_ablation.two_sets,
    )
    no_loss = partial(share_of, section="4.2, figure 3", reported="no noticeable loss", accepted=(-0.02, inf))
    wmt, bert = paper.PRUNING_SHARES["WMT"], paper.PRUNING_SHARES["BERT"]
    yield no_loss(
        name="no_loss_wmt",
        text=f"relative change of BLEU without the {wmt:.0%} least important heads",
        tolerance="2% of BLEU",
        measure=partial(of_ablation.removed, pruned="all", share=wmt),
    )
    yield no_loss(
        name="no_loss_bert",
        text=f"relative change of what BERT has learned without the {bert:.0%} least important heads",
        tolerance="2% of what was learned",
        measure=partial(_of_bert, partial(of_ablation.removed, pruned="all", share=bert)),
        judged_on=("translation", "classification"),
    )
    # Models still translate with a fifth of their self-attention heads, but not of cross-attention.
    change = STILL / WHOLE - 1
    still = {
        "reported": f"around {STILL} of {WHOLE} ({Unit.SHARE.text(change)})",
        "accepted": (round(change - 0.1, 2), inf),
        "tolerance": "at most 10 points more is lost",
    }
    collapse = {"reported": "collapse", "accepted": (-1.0, -0.5), "tolerance": "half of BLEU or more"}
    names = {"encoder": "encoder self-attention", "decoder": "decoder self-attention", "cross": "cross-attention"}
    for kind, name in names.items():
        yield share_of(
            name=f"few_{kind}",
            section="5, figure 4",
            text=f"relative change of BLEU with {FEW:.0%} of the heads of {name}",
            measure=partial(of_ablation.removed, pruned=kind, share=1 - FEW),
            **collapse if kind == "cross" else still,
        )
    yield share_of(
        name="redundant_late",
        section="6, figure 5",
        text=f"heads that can be removed at the end of training with {WITHIN:.0%} of BLEU kept",
        reported=f"{REDUNDANT:.0%}",
        accepted=(REDUNDANT - 0.105, 1.0),  # half a point, since steps are whole heads
        tolerance="at most 10 points less",
        measure=partial(of_ablation.redundant_at_the_end, kept=WITHIN),
    )
    yield Claim(
        name="redundant_later",
        section="6, figure 5",
        text="more heads than early in training",
        reported="yes",
        unit=Unit.POINTS,
        accepted=(0.01, 1.0),
        tolerance="at least 1 point",
        measure=partial(of_ablation.more_redundant_than_early, kept=WITHIN),
    )


def claims_of_bert() -> Iterator[Claim]:
    """The claims on BERT that only an experiment with tasks has; `no_loss_bert` is in every table."""
    share = partial(Claim, unit=Unit.SHARE, judged_on=("classification",))
    yield share(
        name="bert_single",
        section="3.2, figure 1",
        text="heads of BERT whose removal alone changes its score (p < 0.01)",
        reported="the majority can go without much deviation",
        accepted=(0.0, 0.5),
        tolerance="at most half",
        measure=of_ablation.noticed,
    )
    yield Claim(
        name="bert_alone",
        section="3.3, table 3",
        text="change of BERT's accuracy with only the best head of a layer, in the layer that loses most",
        reported=f"{Unit.DIFFERENCE.text(BERT_ALONE)} points (not significant)",
        unit=Unit.DIFFERENCE,
        accepted=(-1.5, inf),
        tolerance="at most about half a point more is lost",
        measure=of_ablation.worst_layer,
        judged_on=("classification",),
    )
    yield Claim(
        name="bert_two_sets",
        section="3.4, figure 2",
        text="correlation of the effects of single heads of BERT on matched and mismatched sets",
        reported=f"{BERT_CORRELATION:.2f}",
        unit=Unit.CORRELATION,
        accepted=(round(BERT_CORRELATION - 0.2, 2), 1.0),
        tolerance="at most 0.2 less",
        measure=of_ablation.two_sets,
        judged_on=("classification",),
    )
    yield share(
        name="bert_few",
        section="4.2, figure 3",
        text="relative change of what BERT has learned with 10% of its heads",
        reported="a sharp drop",
        accepted=(-inf, -0.2),
        tolerance="a fifth of what was learned or more",
        measure=partial(of_ablation.removed, pruned="all", share=0.9),
    )
    yield share(
        name="bert_speed",
        section="4.3, table 4",
        text=f"gain in speed without half of BERT's heads, {of_ablation.LARGEST_BATCH} sentences per batch",
        reported=f"{paper.BERT_SPEED[64]:+.1%}",
        accepted=(round(paper.BERT_SPEED[64] - 0.1, 3), inf),
        tolerance="at most 10 points less",
        measure=of_ablation.faster,
    )


def _of_bert(measure: Callable[[Evidence], Measured], evidence: Evidence) -> Measured:
    if evidence.of == "translation":
        raise NotTestable("this is no BERT (classification)")
    return measure(evidence)
