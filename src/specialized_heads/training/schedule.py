"""The learning rate at each update (appendix B.3)."""


def learning_rate(update: int, *, schedule: str, factor: float, warmup: int, updates: int, width: int) -> float:
    """Learning rate of an update, counted from 1.

    "inverse_sqrt": factor · d^-½ · min(t^-½, t · warmup^-1.5), with d the width; the paper omits d^-½, its code has it (factor 4,
    warmup 16000, d 512: peak 1.40e-3). "linear": rises to `factor` at `warmup`, then falls to zero after the last of `updates`.
    """
    if schedule == "inverse_sqrt":
        return factor * width**-0.5 * min(update**-0.5, update * warmup**-1.5)
    return factor * min(update / warmup, (updates + 1 - update) / max(updates + 1 - warmup, 1))
