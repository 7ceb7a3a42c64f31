"""Remarks on pruning that failed: gates that all stayed open, all closed, hardly moved or ended undecided, and what to do.

The common causes are a λ that is off by a small factor and gates that are too slow, or too fast for the weights to follow.
"""

from collections.abc import Iterable
from typing import Any

from specialized_heads.stage import heads_text

MIN_MOVE = 0.2  # of log α; a smaller change has decided nothing
MIN_DECIDED = 0.8  # share of decided gates; with fewer, the model is a rounding of its soft gates


def decided_share(rows: Iterable[dict[str, Any]]) -> float:
    """The share of gates with max(P(g = 0), P(g = 1)) > 0.9, from the rows of `prune.gate_rows`; 1 without gates."""
    decisions = [row["decided"] for row in rows]
    return sum(decisions) / len(decisions) if decisions else 1.0


def chosen_by_order(rows: list[dict[str, Any]], *, target_heads: int | None) -> bool:
    """Whether the gates that were open differ so much from the number of heads that the order of log α alone chose them."""
    if target_heads in (None, 0, len(rows)):
        return False
    open_ = sum(row["log_alpha"] > 0 for row in rows)
    return abs(open_ - target_heads) > max(2, len(rows) // 10)


def remark(
    rows: list[dict[str, Any]], *, scope: str, lam: float | None, target_heads: int | None, init: float, updates: str
) -> str | None:
    """What went wrong with the gates, and what to do about it; None if nothing did.

    `rows` are those of `prune.gate_rows`, `init` is log α at the start, `updates` the configuration key of their number.
    """
    if not rows or target_heads in (0, len(rows)):
        return None
    said, rate, number = [], "pruning.gate_learning_rate", len(rows)
    if (farthest := max(abs(row["log_alpha"] - init) for row in rows)) < MIN_MOVE:
        return f"the gates hardly moved: log α is at most {farthest:.2f} from its start; raise {rate} or {updates}"
    open_, decided = sum(row["log_alpha"] > 0 for row in rows), sum(row["decided"] for row in rows)
    if chosen_by_order(rows, target_heads=target_heads):
        said.append(
            f"{open_} of {number} gates were open when {heads_text(target_heads)} had to be chosen, so the order of log α alone "
            f"decided; raise {updates}"
        )
    kinds = dict.fromkeys(row["type"] for row in rows)
    gone = [kind for kind in kinds if not any(row["kept"] for row in rows if row["type"] == kind)]
    key = "pruning.heads" if scope == "encoder" else "pruning.heads_all"
    if lam is not None and all(row["kept"] for row in rows):
        said.append(f"no gate closed at λ {lam:g}; try a larger λ, a higher {rate} or more {updates}, or set {key}")
    elif lam is not None and gone:
        closed = f"all {number} gates" if len(gone) == len(kinds) else f"all gates of type {' and '.join(gone)}"
        said.append(
            f"{closed} closed at λ {lam:g}; if that is not wanted, try a smaller λ or a lower {rate}, or set {key}"
        )
    if decided_share(rows) < MIN_DECIDED:
        said.append(
            f"{decided} of {number} gates are decided (closed or fully open with probability above 0.9), so the choice of heads "
            f"is a rounding; raise {updates} or {rate}"
        )
    return "; ".join(said) or None
