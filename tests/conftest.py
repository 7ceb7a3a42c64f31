"""Small models with fixed weights and small token stores that all tests share, and a stage's `main`
called in this process."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.model.architecture import Architecture
from specialized_heads.model.transformer import Transformer

ROOT = Path(__file__).parents[1]

# The smoke experiment, run once for the tests of all folders that look at it; an exported model.
pytest_plugins = ["workflows", "exporting"]

# What was started in the background ignores Ctrl-C, and so would every process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

Ids = Sequence[Sequence[int]]

# folders: whole workflows, hostile input, a browser
SLOW = {"cluster", "faults", "hostile", "pipeline", "viewer"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test` leaves to `make test-all`: the slow folders, except for what looks at
    the smoke experiment."""
    for item in items:
        # which runs it again
        reads_smoke = item.path.name == "test_smoke.py" and "finished" not in item.fixturenames
        if item.path.parent.name in SLOW and not reads_smoke:
            item.add_marker("slow")
    items.sort(key=lambda item: item.path.name != "test_smoke.py")  # first, since it takes longest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with test data; SPECIALIZED_HEADS_SHARED, or `shared` beside the repository."""
    folder = Path(os.environ.get("SPECIALIZED_HEADS_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no test data in {folder}; set SPECIALIZED_HEADS_SHARED")
    return folder / "data"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Sums of floats depend on how they are divided among threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def tiny_model() -> Callable[..., Transformer]:
    """`tiny_model(seed=1, width=8, ...)`: a model whose weights depend on nothing but the
    arguments.

    Unlike after `initialise`, biases are not zero and norms are not the identity, so that
    forgetting one shows.
    """

    def build(
        *, seed: int = 1, vocabulary: int = 20, dropout: float = 0.0, **sizes: float
    ) -> Transformer:
        sizes = {"layers": 2, "heads": 2, "width": 8, "feed_forward": 12} | sizes
        architecture = Architecture.full(
            source_vocabulary=vocabulary, target_vocabulary=vocabulary + 1, **sizes
        )
        model = Transformer(architecture, dropout=dropout)
        random = np.random.default_rng(seed)
        for name, parameter in model.named_parameters():
            noise = torch.from_numpy(random.standard_normal(tuple(parameter.shape))).float()
            if parameter.dim() == 2:
                parameter.data = noise * 1.5 * parameter.shape[1] ** -0.5
            else:
                parameter.data = 0.2 * noise + float("norm" in name and name.endswith("weight"))
        return model.eval()

    return build


@pytest.fixture
def store() -> Callable[[Ids, Ids], TokenStore]:
    """`store([[5, 6], [7]], [[8], [9, 4]])`: these sentences as a token store in memory."""

    def build(sources: Ids, targets: Ids) -> TokenStore:
        return TokenStore(**_tensors(sources, targets))

    return build


@pytest.fixture
def token_file(tmp_path: Path) -> Callable[[str, Ids, Ids], Path]:
    """`token_file("train", sources, targets)`: the same as a file."""

    def write(name: str, sources: Ids, targets: Ids) -> Path:
        path = tmp_path / f"{name}.safetensors"
        save_file(_tensors(sources, targets), path)
        return path

    return write


@pytest.fixture
def tokens(token_file, sentences) -> dict[str, Path]:
    """A training set of 60 sentences and a development set of 10."""
    return {
        "train": token_file("train", *sentences(60)),
        "dev": token_file("dev", *sentences(10, seed=2)),
    }


def _tensors(sources: Ids, targets: Ids) -> dict[str, np.ndarray]:
    arrays = {}
    for name, rows in (("source", sources), ("target", targets)):
        arrays[name] = np.array([token for row in rows for token in row], dtype=np.int32)
        arrays[f"{name}_offsets"] = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return arrays


@pytest.fixture
def sentences() -> Callable[..., tuple[list[list[int]], list[list[int]]]]:
    """`sentences(40, seed=1)`: random sources of 1 to 6 ids from 4 on, each with its own reversal
    as target."""

    def draw(
        number: int, *, seed: int = 1, vocabulary: int = 20
    ) -> tuple[list[list[int]], list[list[int]]]:
        random = np.random.default_rng(seed)
        lengths = random.integers(1, 7, number)
        sources = [random.integers(4, vocabulary, length).tolist() for length in lengths]
        return sources, [source[::-1] for source in sources]

    return draw


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`call(train, settings={...}, output=path, ...)`: a stage, or a module's `main`, with its
    command line, in this process."""

    def run(
        stage: ModuleType | Callable[[], None],
        *,
        settings: dict | None = None,
        **files: Path | list[Path],
    ) -> None:
        arguments = [stage.__name__, "--settings", json.dumps(settings or {})]
        for name, paths in files.items():
            arguments += [
                f"--{name.replace('_', '-')}",
                *map(str, paths if isinstance(paths, list) else [paths]),
            ]
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", arguments)
            getattr(stage, "main", stage)()

    return run
