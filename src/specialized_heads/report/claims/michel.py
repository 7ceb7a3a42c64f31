"""The claims of Michel et al. (2019), in the order of their paper.

Their models are a large Transformer of 6 layers with 16 heads each, trained on WMT EN-FR, BERT, and in section 6 a smaller
Transformer with 8 heads per layer, trained on the German-English talks of IWSLT 2014. Numbers of heads are read as shares, and
large losses as shares of BLEU, or for BERT as shares of what it has learned above the most frequent label.
"""

from collections.abc import Callable
from functools import partial
from math import inf

from specialized_heads.report.claims import of_ablation
from specialized_heads.report.claims.claim import Claim, Measured, Unit
from specialized_heads.report.claims.evidence import Evidence, require
from specialized_heads.report.claims.of_heads import MIN_SEEDS
from specialized_heads.report.voita import paper

SINGLE = (8, 96)  # section 3.2: encoder heads whose removal alone changes BLEU at p < 0.01
GAIN = 4  # section 3.2: of these, heads whose removal raises BLEU
CORRELATION = 0.56  # section 3.4: of single heads' effects on two test sets
BERT_ENOUGH = 12  # table 3: layers of BERT that lose no accuracy at p < 0.01 with their best head alone; all
BERT_CORRELATION = 0.68  # the same of BERT, on the matched and the mismatched set of MNLI
ENOUGH = (14, 18)  # section 3.3, table 2: layers that lose no BLEU at p < 0.01 with their best head alone
ALONE = -13.56  # section 3.3, table 2: BLEU, with one head left in the last layer of cross-attention
WHOLE = 36.05  # section 3.2: BLEU before
REDUNDANT = 0.4  # section 6: of the heads, late in training
WITHIN = 0.9  # section 6: share of BLEU that is kept then; the paper says 85 to 90%
DROPPED = 0.6  # section 4.2: of the heads; the drop of BLEU has become sharp by then
FEW = 0.2  # section 5: heads left of a type
STILL = 30  # section 5: about the BLEU of self-attention then


def claims() -> list[Claim]:
    """All claims of the paper but those of `claims_of_bert`, each in the order of the fields of `Claim`."""
    share, change = SINGLE[0] / SINGLE[1], STILL / WHOLE - 1
    wmt, bert = paper.PRUNING_SHARES["WMT"], paper.PRUNING_SHARES["BERT"]
    # Models still translate with a fifth of their self-attention heads, but not of cross-attention.
    still = (f"around {STILL} of {WHOLE} ({Unit.SHARE.text(change)})", (round(change - 0.1, 2), inf),
             "at most 10 points more lost")  # fmt: skip
    collapse = ("collapse", (-1.0, -0.5), "half of BLEU or more")
    return [
        Claim("single", "3.2, table 1", "single encoder heads whose removal changes BLEU (p < 0.01)",
              f"{SINGLE[0]} of {SINGLE[1]} ({share:.0%})", (0.0, share + 0.1), "at most 10 points more",
              Unit.SHARE, of_ablation.significant),
        Claim("single_gain", "3.2, table 1", "of these heads, those whose removal raises BLEU",
              f"half ({GAIN} of {SINGLE[0]})", (GAIN / SINGLE[0] - 0.2, GAIN / SINGLE[0] + 0.2), "20 points",
              Unit.SHARE, of_ablation.gains),
        Claim("one_enough", "3.3, table 2", "layers that lose no BLEU at p < 0.01 with only their best head",
              f"{ENOUGH[0]} of {ENOUGH[1]} ({ENOUGH[0] / ENOUGH[1]:.0%})", (round(ENOUGH[0] / ENOUGH[1] - 0.2, 2), 1.0),
              "at most 20 points less", Unit.SHARE, of_ablation.one_is_enough),
        Claim("last_cross", "3.3, table 2", "relative change in BLEU with one head in the last layer of cross-attention",
              f"{Unit.DIFFERENCE.text(ALONE)} of {WHOLE} ({Unit.SHARE.text(ALONE / WHOLE)})",
              (-1.0, round(ALONE / WHOLE + 0.1, 2)), "at most 10 points less lost",
              Unit.SHARE, partial(of_ablation.one_left, rank=False)),
        Claim("last_cross_rank", "3.3, table 2", "rank of that loss among all layers and types",
              "1", (1, 1), "none",
              Unit.RANK, partial(of_ablation.one_left, rank=True)),
        Claim("two_sets", "3.4, figure 2", "correlation of the effects of single heads on two test sets",
              f"{CORRELATION:.2f}", (CORRELATION - 0.2, 1.0), "at most 0.2 less",
              Unit.CORRELATION, of_ablation.two_sets),
        Claim("no_loss_wmt", "4.2, figure 3",
              f"relative change in BLEU as up to {wmt:.0%} of the heads go, least important first",
              "no noticeable loss", (-0.02, inf), "2% of BLEU",
              Unit.SHARE, partial(of_ablation.removed, pruned="all", share=wmt, up_to=True)),
        Claim("sharp_drop_wmt", "4.2, figure 3",
              f"relative change in BLEU as {DROPPED:.0%} of the heads go, least important first",
              "a sharp drop", (-inf, -0.2), "a fifth of BLEU or more",
              Unit.SHARE, partial(of_ablation.removed, pruned="all", share=DROPPED)),
        Claim("no_loss_bert", "4.2, figure 3",
              f"relative change in what BERT has learned as up to {bert:.0%} of the heads go, least important first",
              "no noticeable loss", (-0.02, inf), "2% of what was learned",
              Unit.SHARE, partial(_of_bert, partial(of_ablation.removed, pruned="all", share=bert, up_to=True)),
              judged_on=("translation", "classification")),
        *(Claim(f"few_{kind}", "5, figure 4", f"relative change in BLEU with {FEW:.0%} of the heads of {name}",
                *reported, Unit.SHARE, partial(of_ablation.removed, pruned=kind, share=1 - FEW))
          for kind, name, reported in [("encoder", "encoder self-attention", still),
                                       ("decoder", "decoder self-attention", still),
                                       ("cross", "cross-attention", collapse)]),
        # Half a point more, since steps are whole heads.
        Claim("redundant_late", "6, figure 5",
              f"heads that can be removed at the end of training with {WITHIN:.0%} of BLEU kept",
              f"up to {REDUNDANT:.0%}, with 85 to 90%", (REDUNDANT - 0.105, 1.0), "at most 10 points less",
              Unit.SHARE, partial(of_ablation.redundant_at_the_end, kept=WITHIN)),
        Claim("redundant_later", "6, figure 5", "the same share minus that early in training",
              "yes", (0.01, inf), f"at least 1 point, with its interval; the same sign in each of {MIN_SEEDS} seeds or more",
              Unit.POINTS, partial(of_ablation.more_redundant_than_early, kept=WITHIN),
              directed=True, least_seeds=MIN_SEEDS),
    ]  # fmt: skip


def claims_of_bert() -> list[Claim]:
    """The claims on BERT that only an experiment with tasks has; `no_loss_bert` is in every table."""
    claim = partial(Claim, judged_on=("classification",))
    return [
        claim("bert_single", "3.2, figure 1", "single heads of BERT whose removal changes its score (p < 0.01)",
              "the majority can go without much deviation", (0.0, 0.5), "at most half",
              Unit.SHARE, of_ablation.significant),
        claim("bert_alone", "3.3, table 3",
              "layers of BERT that lose no accuracy at p < 0.01 with only their best head",
              f"{BERT_ENOUGH} of {BERT_ENOUGH}", (0.75, 1.0), "at most 25 points less", Unit.SHARE, of_ablation.one_is_enough),
        claim("bert_two_sets", "3.4, figure 2",
              "correlation of the effects of single heads of BERT on matched and mismatched sets",
              f"{BERT_CORRELATION:.2f}", (round(BERT_CORRELATION - 0.2, 2), 1.0), "at most 0.2 less",
              Unit.CORRELATION, of_ablation.two_sets),
        claim("bert_few", "4.2, figure 3", "relative change in what BERT has learned with 10% of its heads",
              "a sharp drop", (-inf, -0.2), "a fifth of what was learned or more",
              Unit.SHARE, partial(of_ablation.removed, pruned="all", share=0.9)),
        *(claim(f"bert_speed_{batch}", "4.3, table 4", f"gain in speed without half of BERT's heads, {sentences} per batch",
                f"{paper.BERT_SPEED[batch]:+.1%}", accepted, tolerance, Unit.SHARE, partial(of_ablation.faster, batch=batch),
                of_trained=False)
          for batch, sentences, accepted, tolerance in [
              (1, "one sentence", (-inf, round(paper.BERT_SPEED[1] + 0.1, 3)), "at most 10 points more"),
              (64, "64 sentences", (round(paper.BERT_SPEED[64] - 0.1, 3), inf), "at most 10 points less")]),
    ]  # fmt: skip


def _of_bert(measure: Callable[[Evidence], Measured], evidence: Evidence) -> Measured:
    require(evidence.of == "classification", "applies to BERT only (section classification)")
    return measure(evidence)
