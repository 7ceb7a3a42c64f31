"""What a training is given: its settings and its text."""

from dataclasses import dataclass
from pathlib import Path

from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.experiment.sections import Training
from specialized_heads.stage import file_hash


class Plan(Training):
    """Settings of one training; checkpoints: the updates whose weights are kept, see `state`."""

    seed: int  # order of the text, dropout
    gate_learning_rate: float = 0.0  # peak, for log α; follows the same schedule
    gate_seed: int | None = None  # noise of the gates; None: as `seed`
    checkpoints: tuple[int, ...] = ()


@dataclass(frozen=True)
class Data:
    """Token stores and a hash of their content."""

    train: TokenStore
    dev: TokenStore
    hash: str


def load_data(train: Path, dev: Path) -> Data:
    """Open the token files of a training and a development set."""
    return Data(load_tokens(train), load_tokens(dev), f"{file_hash(train)} {file_hash(dev)}")
