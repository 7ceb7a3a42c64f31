"""The learning rate at each update (appendix B.3)."""


def learning_rate(update: int, *, schedule: str, factor: float, warmup: int, updates: int, width: int) -> float:
    """Learning rate of one update.

    Args:
        update: its index, from 1.
        schedule: "inverse_sqrt": factor · d^-½ · min(t^-½, t · warmup^-1.5); the paper omits d^-½, its code has it (factor
            4, warmup 16000, d 512: peak 1.40e-3). "linear": rises to `factor` at `warmup`, then falls to zero after the last
            update.
        factor: see `schedule`.
        warmup: updates until the peak.
        updates: length of the run (for "linear").
        width: d, the model's width (for "inverse_sqrt").
    """
    if schedule == "inverse_sqrt":
        return factor * width**-0.5 * min(update**-0.5, update * warmup**-1.5)
    return factor * min(update / warmup, (updates + 1 - update) / max(updates + 1 - warmup, 1))
