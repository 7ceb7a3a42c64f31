"""Special tokens: the ids that our vocabularies reserve, and those of an imported model."""

from dataclasses import dataclass
from typing import Any

import numpy as np

PAD, UNKNOWN, BOS, EOS = range(4)


@dataclass(frozen=True)
class SpecialTokens:
    """Ids of a model's special tokens, the same on both sides."""

    pad: int = PAD
    unknown: int = UNKNOWN
    start: int = BOS  # the decoder's first input
    eos: int = EOS
    source_tags: tuple[int, ...] = ()  # before every source sentence, such as a language
    target_tags: tuple[int, ...] = ()  # what every translation begins with
    # Numbers of embeddings where the tokeniser has pieces beyond them, which are unknown; 0: it has none.
    source_size: int = 0
    target_size: int = 0

    def tags(self, side: str) -> tuple[int, ...]:
        """The tags before the pieces of a sentence; side: source or target."""
        return self.source_tags if side == "source" else self.target_tags

    def known(self, ids: np.ndarray, side: str) -> np.ndarray:
        """Ids from a tokeniser; ids without an embedding become that of the unknown token."""
        size = self.source_size if side == "source" else self.target_size
        return np.where(ids < size, ids, np.int32(self.unknown)) if size else ids

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "SpecialTokens":
        """Inverse of `dataclasses.asdict`; missing ids get their defaults."""
        return cls(**{name: tuple(ids) if isinstance(ids, list | tuple) else ids for name, ids in values.items()})


OURS = SpecialTokens()  # of vocabularies made here
