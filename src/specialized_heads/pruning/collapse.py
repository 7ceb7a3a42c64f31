"""Whether pruning with gates came to nothing, and what to do about it, in one sentence.

Gates that all stay open or all close are the common mishap: λ is off by a small factor, or log α moves too slowly, or too
fast for the weights to follow. A λ of zero is meant to keep all heads.
"""

from typing import Any

STILL = 0.2  # log α that moved less than this did not decide anything


def remark(
    rows: list[dict[str, Any]], *, scope: str, penalty: float | None, heads: int | None, init: float, updates: str
) -> str | None:
    """What a user should know of the gates' decisions; None where there is nothing to say.

    Args:
        rows: one per gated head, with type, log_alpha and kept.
        scope: "encoder" or "all".
        penalty: λ, or None where a number of heads was asked for.
        heads: that number, or None.
        init: log α at the start.
        updates: the key that says for how long the gates were trained.
    """
    if not rows or penalty == 0 or heads == len(rows):
        return None
    ask = f"ask for a number of heads (pruning.{'heads' if scope == 'encoder' else 'heads_all'})"
    farthest = max(abs(row["log_alpha"] - init) for row in rows)
    if farthest < STILL:
        return (
            f"the gates hardly moved: log α is at most {farthest:.2f} from its start; raise pruning.gate_learning_rate "
            f"or {updates}"
        )
    if heads is not None:
        open_ = sum(row["log_alpha"] > 0 for row in rows)
        if abs(open_ - heads) <= max(2, len(rows) // 10):
            return None
        faster = "pruning.gate_learning_rate or " if open_ > heads else ""
        return (
            f"{open_} of {len(rows)} gates were open when {heads} heads were chosen: the penalty had not led them there, "
            f"and the order of log α alone decided; raise {faster}{updates}"
        )
    kept: dict[str, list[bool]] = {}
    for row in rows:
        kept.setdefault(row["type"], []).append(row["kept"])
    if all(map(all, kept.values())):
        return (
            f"no gate closed at λ {penalty:g}; try a larger λ, a higher pruning.gate_learning_rate or more "
            f"{updates}, or {ask}"
        )
    gone = [kind for kind, decisions in kept.items() if not any(decisions)]
    if gone:
        what = f"all {len(rows)} gates" if len(gone) == len(kept) else f"all gates of type {' and '.join(gone)}"
        return (
            f"{what} closed at λ {penalty:g}; if that is not wanted, try a smaller λ, a longer pruning.penalty_warmup "
            f"or a lower pruning.gate_learning_rate, or {ask}"
        )
    return None
