"""Remarks on pruning that failed: gates that all stayed open, all closed, hardly moved or ended undecided, and what to do.

The common causes are a λ that is off by a small factor and gates that are too slow, or too fast for the weights to follow.
"""

from collections.abc import Iterable
from typing import Any

MIN_MOVE = 0.2  # of log α; a smaller change has decided nothing
MIN_DECIDED = 0.8  # share of decided gates; with fewer, the model is a rounding of its soft gates


def decided_share(rows: Iterable[dict[str, Any]]) -> float:
    """The share of gates with max(P(g = 0), P(g = 1)) > 0.9, from the rows of `prune.gate_rows`; 1 without gates."""
    decisions = [row["decided"] for row in rows]
    return sum(decisions) / len(decisions) if decisions else 1.0


def remark(
    rows: list[dict[str, Any]], *, scope: str, lam: float | None, target_heads: int | None, init: float, updates: str
) -> str | None:
    """What went wrong with the gates, and what to do about it; None if nothing did.

    `rows` are those of `prune.gate_rows`, `init` is log α at the start, `updates` the configuration key of their number.
    """
    if not rows or target_heads == len(rows):
        return None
    farthest = max(abs(row["log_alpha"] - init) for row in rows)
    if farthest < MIN_MOVE:
        return (
            f"the gates hardly moved: log α is at most {farthest:.2f} from its start; raise pruning.gate_learning_rate "
            f"or {updates}"
        )
    heads = None if target_heads is None else _wrong_number(rows, target_heads, updates)
    penalty = None if lam is None else _all_or_none(rows, scope, lam, updates)
    return "; ".join(filter(None, [heads, penalty, _undecided(rows, updates)])) or None


def _undecided(rows: list[dict[str, Any]], updates: str) -> str | None:
    if decided_share(rows) >= MIN_DECIDED:
        return None
    return (
        f"{sum(row['decided'] for row in rows)} of {len(rows)} gates are decided (closed or fully open with "
        f"probability above 0.9), so the choice of heads is a rounding; raise {updates} or pruning.gate_learning_rate"
    )


def _wrong_number(rows: list[dict[str, Any]], target_heads: int, updates: str) -> str | None:
    open_ = sum(row["log_alpha"] > 0 for row in rows)
    if abs(open_ - target_heads) <= max(2, len(rows) // 10):
        return None
    faster = "pruning.gate_learning_rate or " if open_ > target_heads else ""
    return (
        f"{open_} of {len(rows)} gates were open when {target_heads} heads were chosen: the penalty had not reached that "
        f"number, and the order of log α alone decided; raise {faster}{updates}"
    )


def _all_or_none(rows: list[dict[str, Any]], scope: str, lam: float, updates: str) -> str | None:
    target = f"set a number of heads (pruning.{'heads' if scope == 'encoder' else 'heads_all'})"
    kept: dict[str, list[bool]] = {}
    for row in rows:
        kept.setdefault(row["type"], []).append(row["kept"])
    if all(map(all, kept.values())):
        return (
            f"no gate closed at λ {lam:g}; try a larger λ, a higher pruning.gate_learning_rate or more "
            f"{updates}, or {target}"
        )
    gone = [kind for kind, decisions in kept.items() if not any(decisions)]
    if not gone:
        return None
    closed = f"all {len(rows)} gates" if len(gone) == len(kept) else f"all gates of type {' and '.join(gone)}"
    return (
        f"{closed} closed at λ {lam:g}; if that is not wanted, try a smaller λ or a lower "
        f"pruning.gate_learning_rate, or {target}"
    )
