"""Models on disk: exact round trips, and one clear line for every kind of damage."""

import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hostile import Payload
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from specialized_heads.model.checkpoint import load, save
from specialized_heads.model.transformer import Transformer
from specialized_heads.stage import UserError, read_json, write_json


@pytest.fixture
def saved(tmp_path: Path, tiny_model) -> tuple[Transformer, Path]:
    model = tiny_model(heads=4)
    model.keep_heads({"encoder": [[1, 3], []], "cross": [[2], [0, 1]]})
    path = tmp_path / "folder" / "model.safetensors"
    save(model, path, training={"seed": 7, "λ": 0.01})
    return model, path


def test_round_trip(saved: tuple[Transformer, Path]) -> None:
    model, path = saved
    again = load(path, dropout=0.3)
    assert again.architecture == model.architecture
    assert again.architecture.encoder == ((1, 3), ())
    assert (again.dropout, again.training) == (0.3, False)
    theirs = dict(again.named_parameters())
    assert theirs.keys() == dict(model.named_parameters()).keys()
    for name, parameter in model.named_parameters():
        assert parameter.detach().numpy().tobytes() == theirs[name].detach().numpy().tobytes(), name
    source, target = torch.tensor([[5, 9, 3]]), torch.tensor([[2, 4]])
    assert torch.equal(model(source, target), again(source, target))


def test_the_same_model_gives_the_same_bytes(saved: tuple[Transformer, Path], tmp_path: Path) -> None:
    model, path = saved
    save(load(path), tmp_path / "again.safetensors", training={"seed": 7, "λ": 0.01})
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()
    assert (tmp_path / "again.json").read_bytes() == path.with_suffix(".json").read_bytes()


def test_models_of_earlier_versions_load(saved: tuple[Transformer, Path]) -> None:
    model, path = saved
    with safe_open(path, "pt") as stored:
        assert {"softmax_embedding", "source_embedding"} < set(stored.keys())
    description = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    for key in ("position_frequency", "position_base", "position_scale"):
        del description["architecture"][key]
    path.with_suffix(".json").write_text(json.dumps(description))
    again = load(path)
    assert again.architecture == model.architecture
    assert torch.equal(again.output_embedding, model.output_embedding)


def tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    """Other weights, without a hash."""

    def apply(path: Path) -> None:
        values = load_file(path)
        change(values)
        save_file(values, path)

    return apply


def described(**values: object) -> Callable[[Path], None]:
    """Another architecture in the description."""

    def apply(path: Path) -> None:
        description = read_json(path.with_suffix(".json"))
        write_json(path.with_suffix(".json"), {"architecture": description["architecture"] | values})

    return apply


def written(content: bytes, *, suffix: str = ".safetensors") -> Callable[[Path], None]:
    return lambda path: path.with_suffix(suffix).write_bytes(content)


def one_bit(place: int) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[place] ^= 1
        path.write_bytes(content)

    return apply


def cut(size: int) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(path.read_bytes()[:size])


WEIGHT = "encoder.0.feed_forward.expand.weight"
ABSURD = b'{"weight": {"dtype": "F32", "shape": [4611686018427387904], "data_offsets": [0, 4611686018427387904]}}'
READABLE = r"model\.safetensors: cannot read the weights .*; delete the file and run again"
OTHERS = r"model\.safetensors: the weights do not fit model\.json; delete both"
DAMAGED = r"model\.safetensors: the weights are damaged .*; delete the file and run again"
INFINITE = f"{WEIGHT} contains NaN or infinity"
CARD = r"model\.json: not the description of a model"
REFUSED = {
    "no weights": (Path.unlink, READABLE),
    "no description": (lambda path: path.with_suffix(".json").unlink(), r"model\.json: no such file"),
    "weights cut by a byte": (cut(-1), READABLE),
    "another bit at the end": (one_bit(-1), DAMAGED),
    "pickle": (written(pickle.dumps(Payload())), READABLE),
    "header beyond the file": (written(struct.pack("<Q", 2**63) + b"{}"), READABLE),
    "tensor beyond the file": (written(struct.pack("<Q", len(ABSURD)) + ABSURD), READABLE),
    "missing tensor": (tensors(lambda values: values.pop(WEIGHT)), OTHERS),
    "other shape": (tensors(lambda values: values.update({WEIGHT: torch.zeros(3, 3)})), OTHERS),
    "one tensor more": (tensors(lambda values: values.update({"../payload": torch.zeros(1)})), OTHERS),
    "NaN": (tensors(lambda values: values[WEIGHT].fill_(float("nan"))), INFINITE),
    "layers of one type alone": (described(cross=[]), OTHERS),
    "sizes beyond 64 bits": (described(feed_forward=2**63 - 1, width=2**40), OTHERS),
    "other heads": (described(encoder=[[1], []]), OTHERS),
    "more than any memory": (described(width=10**12, head_width=10**12), OTHERS),
    "path for a size": (described(width="../../payload"), rf"{CARD} \(architecture\.width"),
    "description without sizes": (written(b'{"architecture": {"width": 8}}', suffix=".json"), CARD),
    "empty description": (written(b"", suffix=".json"), r"model\.json: not valid JSON"),
    "description nested deeply": (written(b"[" * 100_000, suffix=".json"), r"model\.json: not valid JSON"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_damaged_foreign_or_hostile_files_are_refused(saved: tuple[Transformer, Path], monkeypatch, name: str) -> None:
    _, path = saved
    monkeypatch.chdir(path.parent)
    change, said = REFUSED[name]
    change(path)
    with pytest.raises(UserError, match=said):
        load(path)
    assert {file.name for file in path.parent.iterdir()} <= {"model.safetensors", "model.json"}
