"""Models on disk: exact round trips, and one clear line for every kind of damage."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from specialized_heads.model.checkpoint import architecture_of, load, save
from specialized_heads.model.transformer import Transformer
from specialized_heads.stage import UserError


@pytest.fixture
def saved(tmp_path: Path, tiny_model: Callable[..., Transformer]) -> tuple[Transformer, Path]:
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


def test_description(saved: tuple[Transformer, Path]) -> None:
    model, path = saved
    description = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert description["parameters"] == sum(p.numel() for p in model.parameters())
    assert description["training"] == {"seed": 7, "λ": 0.01}
    assert description["architecture"]["cross"] == [[2], [0, 1]]
    assert architecture_of(path) == model.architecture


def test_models_of_earlier_versions_load(saved: tuple[Transformer, Path]) -> None:
    model, path = saved
    with safe_open(path, "pt") as stored:
        assert {"softmax_embedding", "source_embedding"} < set(stored.keys())
    description = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    for key in ("position_base", "position_scale"):
        del description["architecture"][key]
    path.with_suffix(".json").write_text(json.dumps(description))
    again = load(path)
    assert again.architecture == model.architecture
    assert torch.equal(again.output_embedding, model.output_embedding)


@pytest.mark.parametrize("size", [0, 5, 100, -1])
def test_damaged_weights(saved: tuple[Transformer, Path], size: int) -> None:
    _, path = saved
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(UserError, match=r"model\.safetensors: cannot read the weights"):
        load(path)


@pytest.mark.parametrize("place", [-1, -100, -3000])
def test_a_weight_with_another_bit_is_no_other_model(saved: tuple[Transformer, Path], place: int) -> None:
    _, path = saved
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(
        UserError, match=r"model\.safetensors: the weights are damaged .*; delete the file and run again"
    ):
        load(path)


def test_missing_files(saved: tuple[Transformer, Path], tmp_path: Path) -> None:
    _, path = saved
    with pytest.raises(UserError, match=r"none\.json: no such file"):
        load(tmp_path / "none.safetensors")
    path.unlink()
    with pytest.raises(UserError, match=r"model\.safetensors: cannot read the weights"):
        load(path)


@pytest.mark.parametrize(
    "key, value", [("encoder", [[1], []]), ("width", 6), ("target_vocabulary", 22), ("decoder", [])]
)
def test_description_of_another_model(saved: tuple[Transformer, Path], key: str, value: object) -> None:
    _, path = saved
    description = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    description["architecture"][key] = value
    path.with_suffix(".json").write_text(json.dumps(description))
    with pytest.raises(UserError, match=r"do not fit model\.json"):
        load(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"architecture": {"width": 8}}', '{"architecture": null}'])
def test_damaged_description(saved: tuple[Transformer, Path], text: str) -> None:
    _, path = saved
    path.with_suffix(".json").write_text(text)
    with pytest.raises(UserError, match=r"model\.json: not"):
        load(path)
