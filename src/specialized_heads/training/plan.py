"""What a training is given: its settings, its text, and the penalty on its gates."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.experiment.sections import Training
from specialized_heads.model.gates import HardConcrete
from specialized_heads.stage import file_hash


class Plan(Training):
    """Settings of one training; checkpoints: the updates whose weights are kept, see `state`."""

    seed: int  # order of the text, dropout
    gate_learning_rate: float = 0.0  # peak, for log α; follows the same schedule
    gate_seed: int | None = None  # noise of the gates; None: as `seed`
    checkpoints: tuple[int, ...] = ()


class Penalty(Protocol):
    """Sparsity penalty on the gates. Its attributes are plain numbers, which are saved with the state of the run."""

    lam: float  # λ at the next update

    def advance(self, update: int, gates: list[HardConcrete]) -> None:
        """Set the weight for the next update, after update number `update`."""


@dataclass(frozen=True)
class Data:
    """Token stores and a hash of their content."""

    train: TokenStore
    dev: TokenStore
    hash: str


def load_data(train: Path, dev: Path) -> Data:
    """Open the token files of a training and a development set."""
    return Data(load_tokens(train), load_tokens(dev), f"{file_hash(train)} {file_hash(dev)}")
