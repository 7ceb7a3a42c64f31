"""Models on disk: exact round trips, and one clear line for every kind of damage."""

import json
import pickle
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


def test_round_trip(saved: tuple[Transformer, Path], tmp_path: Path) -> None:
    model, path = saved
    again = load(path, dropout=0.3)
    assert again.architecture == model.architecture
    assert (again.dropout, again.training) == (0.3, False)
    torch.testing.assert_close(
        dict(again.named_parameters()), dict(model.named_parameters()), rtol=0, atol=0
    )
    source, target = torch.tensor([[5, 9, 3]]), torch.tensor([[2, 4]])
    assert torch.equal(model(source, target), again(source, target))
    # The same model gives the same bytes.
    save(again, tmp_path / "again.safetensors", training={"seed": 7, "λ": 0.01})
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
        path = path.with_suffix(".json")
        write_json(path, {"architecture": read_json(path)["architecture"] | values})

    return apply


def written(content: bytes, *, suffix: str = ".safetensors") -> Callable[[Path], None]:
    return lambda path: path.with_suffix(suffix).write_bytes(content)


def damaged(damage: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(damage(path.read_bytes()))


WEIGHT = "encoder.0.feed_forward.expand.weight"
READABLE = r"model\.safetensors: cannot read the weights .*; delete the file and run again"
OTHERS = r"model\.safetensors: the weights do not fit model\.json; delete both"
DAMAGED = r"model\.safetensors: the weights are damaged .*; delete the file and run again"
INFINITE = f"{WEIGHT} contains NaN or infinity; train with a lower rate, or delete both"
CARD = r"model\.json: not the description of a model"
REFUSED = {
    "no weights": (Path.unlink, READABLE),
    "no description": (lambda path: path.with_suffix(".json").unlink(), r"json: no such file"),
    "weights cut by a byte": (damaged(lambda content: content[:-1]), READABLE),
    "another bit at the end": (damaged(lambda c: c[:-1] + bytes([c[-1] ^ 1])), DAMAGED),
    "pickle": (written(pickle.dumps(Payload())), READABLE),
    "missing tensor": (tensors(lambda values: values.pop(WEIGHT)), OTHERS),
    "NaN": (tensors(lambda values: values[WEIGHT].fill_(float("nan"))), INFINITE),
    "layers of one type alone": (described(cross=[]), OTHERS),
    "one layer more of a type": (described(cross=[[0]] * 9), OTHERS),
    "other heads": (described(encoder=[[1], []]), OTHERS),
    "more than any memory": (described(width=10**12, head_width=10**12), OTHERS),
    "path for a size": (described(width="../../payload"), rf"{CARD} \(architecture\.width"),
    "description without sizes": (written(b'{"architecture": {"width": 8}}', suffix=".json"), CARD),
    "empty description": (written(b"", suffix=".json"), r"model\.json: not valid JSON"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_damaged_foreign_or_hostile_files_are_refused(saved, monkeypatch, name) -> None:
    _, path = saved
    monkeypatch.chdir(path.parent)
    change, said = REFUSED[name]
    change(path)
    with pytest.raises(UserError, match=said):
        load(path)
    assert {file.name for file in path.parent.iterdir()} <= {"model.safetensors", "model.json"}
