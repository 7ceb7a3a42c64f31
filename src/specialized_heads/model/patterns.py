"""Fixed attention patterns of encoder heads (Raganato et al. 2020, section 3): a positive control for the analysis of heads.

Seven heads of each encoder layer do not learn where to look; only their values and outputs are trained. What the analysis has
to find in them is known beforehand (`LABELS`). The rest of the heads learn as always.

A row of a pattern that has no key (the first token has no previous one) is zero: the head then passes nothing on.

Shapes: B sentences, S tokens (EOS counted, padding not), P patterns.
"""

import torch
from torch import Tensor

# In the order of the heads, with the offset at which the head's largest weight lies wherever there is such a token, or None
# where it lies at one end of the sentence.
LABELS: dict[str, int | None] = {
    "current token": 0,
    "previous token": -1,
    "next token": 1,
    "left context": -2,
    "right context": 2,
    "end of the sentence": None,
    "start of the sentence": None,
}


def fixed_weights(keys: Tensor) -> Tensor:
    """The weights (B, P, S, S), from query to key, of all patterns, zero for padding; `keys` are the real tokens (B, S)."""
    size = keys.shape[1]
    place = torch.arange(size, device=keys.device)
    offset = place[None, :] - place[:, None]  # key minus query
    length = keys.sum(1)[:, None, None]
    rising = (place + 1.0) ** 3  # the nearer to the end, the larger
    falling = (length - place).clamp(min=0.0) ** 3  # (B, 1, S)
    patterns = [
        (offset == 0).float(),
        (offset == -1).float(),
        (offset == 1).float(),
        (offset <= -2) * rising,
        (offset >= 2) * falling,
        rising.expand(size, size),
        falling,
    ]
    weights = torch.stack([pattern.expand(len(keys), size, size) for pattern in patterns], dim=1)
    weights = weights * keys[:, None, None] * keys[:, None, :, None]
    return weights / weights.sum(-1, keepdim=True).clamp(min=1.0)  # a row without keys stays zero
