"""Which functions a head has: positional, syntactic, rare words, several of them, or none (section 5).

The paper labels encoder heads. Here heads of the decoder can be positional too, and those of cross-attention diagonal: on the
diagonal or right beside it, not at a fixed distance from it.
"""

from collections.abc import Mapping

POSITIONAL, SYNTACTIC, RARE_WORDS, DIAGONAL = "positional", "syntactic", "rare words", "diagonal"
FUNCTIONS = (POSITIONAL, SYNTACTIC, RARE_WORDS)  # of encoder heads
BESIDE = 1  # source tokens between the diagonal and the position that a diagonal head prefers, at most


def functions_of(
    *,
    positional_share: float,
    accuracies: Mapping[str, float],
    baselines: Mapping[str, float],
    rarest: float,
    positional_threshold: float,
    margin: float,
    rare_threshold: float,
) -> tuple[list[str], list[str]]:
    """Label an encoder head.

    Args:
        positional_share: share of argmaxes at the most frequent relative position.
        accuracies: per relation and direction; NaN where the relation does not occur.
        baselines: accuracy of the best fixed offset, for the same keys.
        rarest: share of argmaxes on the least frequent token; NaN where no sentence qualifies.
        positional_threshold, margin, rare_threshold: see `sections.Heads`.

    Returns:
        the functions, in the order of `FUNCTIONS`, and the relations that make the head syntactic.
    """
    # A hair's breadth of tolerance, so that exactly ten points above the baseline is "at least ten points".
    relations = [name for name, value in accuracies.items() if value >= baselines[name] + margin - 1e-12]
    labels = {
        POSITIONAL: positional_share >= positional_threshold,
        SYNTACTIC: bool(relations),
        RARE_WORDS: rarest >= rare_threshold,
    }
    return [name for name in FUNCTIONS if labels[name]], relations


def decoder_functions_of(
    kind: str, *, offset: int | None, positional_share: float, positional_threshold: float
) -> list[str]:
    """Label a head of the decoder or of cross-attention by the offset it prefers; a share of NaN makes no function."""
    if not positional_share >= positional_threshold:
        return []
    if kind == "cross":
        return [DIAGONAL] if abs(offset) <= BESIDE else []
    return [POSITIONAL]
