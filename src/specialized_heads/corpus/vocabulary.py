"""Special tokens: the ids that our vocabularies reserve, and those of an imported model."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import ConfigDict, Field

PAD, UNKNOWN, BOS, EOS = range(4)


STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)  # of a dataclass that is validated when it is read from a file
Id = Annotated[int, Field(ge=0)]


@dataclass(frozen=True)
class SpecialTokens:
    """Ids of a model's special tokens, the same on both sides."""

    __pydantic_config__ = STRICT

    pad: Id = PAD
    unknown: Id = UNKNOWN
    start: Id = BOS  # the decoder's first input
    eos: Id = EOS
    source_tags: tuple[Id, ...] = ()  # before every source sentence, such as a language
    target_tags: tuple[Id, ...] = ()  # what every translation begins with
    # Numbers of embeddings where the tokeniser has pieces beyond them, which are unknown; 0: it has none.
    source_size: Id = 0
    target_size: Id = 0

    def tags(self, side: str) -> tuple[int, ...]:
        """The tags before the pieces of a sentence; side: source or target."""
        return self.source_tags if side == "source" else self.target_tags

    def known(self, ids: np.ndarray, side: str) -> np.ndarray:
        """Ids from a tokeniser; ids without an embedding become that of the unknown token."""
        size = self.source_size if side == "source" else self.target_size
        return np.where(ids < size, ids, np.int32(self.unknown)) if size else ids


OURS = SpecialTokens()  # of vocabularies made here
