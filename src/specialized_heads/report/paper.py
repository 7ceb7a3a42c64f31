"""The numbers that the two papers report, to be shown beside ours.

Voita et al. (2019), "Analyzing Multi-Head Self-Attention: Specialized Heads Do the Heavy Lifting,
the Rest Can Be Pruned", ACL; and Michel et al. (2019), "Are Sixteen Heads Really Better than One?",
NeurIPS. Sections, tables and figures are given beside each number. Accuracies are fractions;
directions have the names used in the rest of the project.
"""

from collections import namedtuple
from typing import NamedTuple

from specialized_heads.parsing.relations import canonical

WMT = "Voita et al. 2019, WMT EN-RU"  # 2.5M sentence pairs, news
SUBTITLES = "Voita et al. 2019, OpenSubtitles EN-RU"  # 6M sentence pairs
MARKERS = {WMT: "x", SUBTITLES: "+"}  # in figures: crosses, which do not hide our results
HEADS_PER_TYPE = 48  # 6 layers of 8 heads, appendix B.2


# Rows of table 1 (section 5.2.2): the best head's accuracy and the positional baseline's.
Dependency = namedtuple("Dependency", "corpus relation direction best baseline")
TABLE1 = tuple(
    Dependency(corpus, relation, direction, best, baseline)
    for corpus, relation, head_to_dependent, dependent_to_head, baseline in (
        (WMT, "nsubj", 0.45, 0.52, 0.35),
        (WMT, "obj", 0.78, 0.73, 0.41),
        (WMT, "amod", 0.74, 0.82, 0.72),
        (WMT, "advmod", 0.48, 0.52, 0.46),
        (SUBTITLES, "nsubj", 0.77, 0.70, 0.45),
        (SUBTITLES, "obj", 0.61, 0.84, 0.46),
        (SUBTITLES, "amod", 0.81, 0.81, 0.80),
        (SUBTITLES, "advmod", 0.38, 0.42, 0.33),
    )
    for direction, best in (
        ("head_to_dependent", head_to_dependent),
        ("dependent_to_head", dependent_to_head),
    )
)

# The letters of table 1 for the two ends of a relation: verb, subject, object, noun, adjective or
# adverb.
ENDS = {"nsubj": ("v", "s"), "obj": ("v", "o"), "amod": ("n", "a"), "advmod": ("v", "a")}


class Pruned(NamedTuple):
    """A row of table 2 (section 6.3.1): heads left of 48 per attention type, BLEU after pruning and
    from scratch."""

    corpus: str
    encoder: int
    decoder: int
    cross: int
    pruned: float
    scratch: float

    @property
    def heads(self) -> int:
        return self.encoder + self.decoder + self.cross

    @property
    def difference(self) -> float:
        """BLEU after pruning minus that of the unpruned model."""
        return round(self.pruned - BASELINE_BLEU[self.corpus], 2)


BASELINE_BLEU = {WMT: 29.6, SUBTITLES: 32.4}  # table 2
TABLE2 = (
    Pruned(WMT, 14, 31, 30, 29.62, 29.47),
    Pruned(WMT, 12, 21, 25, 29.36, 28.95),
    Pruned(WMT, 8, 13, 15, 29.06, 28.56),
    Pruned(WMT, 5, 9, 12, 28.90, 28.41),
    Pruned(SUBTITLES, 27, 31, 46, 32.24, 32.23),
    Pruned(SUBTITLES, 13, 17, 31, 32.23, 31.98),
    Pruned(SUBTITLES, 6, 9, 13, 32.27, 31.84),
)


# What section 6.2.1 states with figure 7: encoder heads left, and the loss in BLEU.
EncoderOnly = namedtuple("EncoderOnly", "corpus heads loss")
FIGURE7 = (EncoderOnly(WMT, 10, 0.15), EncoderOnly(SUBTITLES, 4, 0.25))

SIGNIFICANT = 0.01  # the level at which Michel et al. mark differences (paired bootstrap)
# Michel et al.: shares of heads that can be removed in order of importance without a loss (their
# section 4.2), the share of cross-attention heads beyond which BLEU collapses (5), and the loss
# with one head in the last cross-attention layer (3.3).
PRUNING_SHARES = {"WMT": 0.2, "BERT": 0.4, "cross": 0.6}
PRUNING = (
    "Michel et al. 2019: no loss up to 20% (WMT) or 40% (BERT), collapse of cross-attention "
    "beyond 60%"
)
ALONE = "Michel et al. (2019) lose 13.6 BLEU with one head in the last cross-attention layer."
# Their BERT: with one head in a layer no change of accuracy on MNLI is significant by a t-test
# (table 3); and the gain in speed without half of the heads, by sentences per batch (table 4).
BERT_ALONE = (
    "In Michel et al. (2019) no layer of BERT changes its accuracy on MNLI significantly "
    "(t-test); the worst by −0.96."
)
BERT_SPEED = {1: 0.019, 4: 0.027, 16: 0.175, 64: 0.175}


def direction_label(relation: str, direction: str) -> str:
    """The label of a direction: as in table 1 for its relations (`v→s`), in words for any other."""
    head, dependent = ENDS.get(canonical(relation), ("head", "dep."))
    return f"{head}→{dependent}" if direction == "head_to_dependent" else f"{dependent}→{head}"
