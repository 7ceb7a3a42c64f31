"""What a training is given: its settings, its text, and the penalty on its gates."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torch import Tensor

from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.model.gates import HardConcrete
from specialized_heads.stage import file_hash


@dataclass(frozen=True)
class Plan:
    """Training settings; `config.sections.Training` and `Pruning` explain the fields."""

    seed: int
    updates: int
    batch_tokens: int
    micro_batch_tokens: int
    schedule: str
    learning_rate: float
    warmup: int
    label_smoothing: float
    precision: str
    log_every: int
    evaluate_every: int
    join: int = 1
    optimizer: str = "adam"
    muon_learning_rate: float = 0.02  # peak; follows the same schedule as Adam's
    average: int = 1
    average_every: int = 1000
    compile: bool = False
    gate_learning_rate: float = 0.0  # peak, for log α; follows the same schedule
    checkpoints: tuple[int, ...] = ()  # updates whose weights are kept, see `state`


class Penalty(Protocol):
    """Sparsity penalty on the gates. Its attributes are plain numbers, which are saved with the state of the run."""

    weight: float  # λ at the next update

    def expected(self, gates: list[HardConcrete]) -> Tensor:
        """What λ multiplies, differentiable in log α."""

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
