"""Hostile models: weights, descriptions, vocabularies and saved states that are damaged, of others, or meant to run code."""

import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hostile import Payload
from safetensors.torch import load_file, save_file

from specialized_heads.config.sections import Model, Training, Vocabulary
from specialized_heads.corpus.bpe import learn, sealed
from specialized_heads.stage import file_hash, read_json

DECODING = {"beam": 1, "length_penalty": 1.0, "max_length_ratio": 1.0}


def tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        values = load_file(path)
        change(values)
        save_file(values, path)

    return apply


def described(**values: Any) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        card = read_json(path.with_suffix(".json"))
        path.with_suffix(".json").write_text(json.dumps(card | {"architecture": card["architecture"] | values}))

    return apply


def written(content: bytes, *, suffix: str = ".safetensors") -> Callable[[Path], None]:
    return lambda path: path.with_suffix(suffix).write_bytes(content)


def header(values: Any, data: bytes = b"") -> bytes:
    text = json.dumps(values).encode()
    return struct.pack("<Q", len(text)) + text + data


WEIGHT = "encoder.0.feed_forward.expand.weight"
ABSURD = {"weight": {"dtype": "F32", "shape": [2**62], "data_offsets": [0, 2**62]}}
READABLE = "model.safetensors: cannot read the weights"
OTHERS = "model.safetensors: the weights do not fit model.json; delete both"
CARD = "model.json: not the description of a model"
MODELS = {
    "pickle_for_weights": (written(pickle.dumps(Payload())), READABLE, "delete the file and run again"),
    "torch_file_for_weights": (lambda path: torch.save({"x": torch.zeros(1)}, path), READABLE),
    "header_beyond_the_file": (written(struct.pack("<Q", 2**63) + b"{}"), READABLE),
    "tensor_beyond_the_file": (written(header(ABSURD)), READABLE),
    "header_that_is_no_json": (written(struct.pack("<Q", 4) + b"oops"), READABLE),
    "missing_tensor": (tensors(lambda values: values.pop(WEIGHT)), OTHERS),
    "other_shape": (tensors(lambda values: values.update({WEIGHT: torch.zeros(3, 3)})), OTHERS),
    "one_tensor_more": (tensors(lambda values: values.update({"../payload": torch.zeros(1)})), OTHERS),
    "no_number": (tensors(lambda values: values[WEIGHT].fill_(float("nan"))), f"{WEIGHT} contains NaN or infinity"),
    "infinite": (tensors(lambda values: values[WEIGHT][0].fill_(float("inf"))), f"{WEIGHT} contains NaN or infinity"),
    "as_large_as_no_memory": (described(width=10**12, head_width=10**12), OTHERS),
    "sizes_beyond_64_bits": (described(feed_forward=2**63 - 1, width=2**40), OTHERS),
    "path_for_a_size": (described(width="../../payload"), CARD, "architecture.width"),
    "heads_that_are_text": (described(encoder="ab"), CARD, "architecture.encoder"),
    "unknown_size": (described(path="payload"), CARD, "architecture.path"),
    "layers_of_one_kind_alone": (described(cross=[]), OTHERS),
    "description_of_nothing": (written(b"null", suffix=".json"), CARD),
    "description_without_end": (written(b"[" * 100_000, suffix=".json"), "model.json: not valid JSON"),
    "description_that_is_no_text": (written(b"\xff\xfe{", suffix=".json"), "model.json: not valid JSON"),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(run, refused, trained, name: str) -> None:
    change, *said = MODELS[name]
    store = trained.tokens(["ai qa"])
    change(trained.weights)
    refused(translate(run, trained, store), *said)


def translate(run: Callable, trained: Any, store: Path) -> Any:
    """The stage that every model goes through."""
    settings = {"decoding": DECODING, "preprocess": "none", "language": "fr", "device": "cpu"}
    files = {"model": trained.weights, "tokens": store, "bpe": trained.bpe}
    return run(
        "evaluation.translate", settings=settings, **files, output="out/translation.txt", tokenised="out/tokens.txt"
    )


VOCABULARIES = {
    "garbage": b"no model",
    "empty": b"",
    "pickle": pickle.dumps(Payload()),
    "sealed_garbage": sealed(b"\x0a\xff\xff\xff\xff\x0fno model"),
    "half": learn([f"{a}{b}" for a in "abcdefgh" for b in "ijklmnop"], size=30, name="source")[:200],
}


@pytest.mark.parametrize("name", VOCABULARIES)
def test_vocabularies(run, refused, trained, name: str) -> None:
    store = trained.tokens(["ai qa"])
    trained.bpe.write_bytes(VOCABULARIES[name])
    refused(translate(run, trained, store), "bpe.model: damaged, or not a BPE model", "delete it and run again")


INT, LONG = np.int32, np.int64


def token_file(source: list[int], offsets: list[int]) -> bytes:
    """Tokens of one side, and the same of the other, whatever the offsets say."""
    arrays = {"source_offsets": np.array(offsets, LONG), "target_offsets": np.array([0, 1], LONG)}
    arrays |= {"source": np.array(source, INT), "target": np.array([5], INT)}
    places, data = {}, b""
    for name, array in arrays.items():
        end = len(data) + array.nbytes
        kind = {INT: "I32", LONG: "I64"}[array.dtype.type]
        places[name] = {"dtype": kind, "shape": [len(array)], "data_offsets": [len(data), end]}
        data += array.tobytes()
    return header(places, data)


TOKENS = {
    "pickle": pickle.dumps(Payload()),
    "header_beyond_the_file": struct.pack("<Q", 2**62) + b"{}",
    "list_for_a_header": header([1, 2]),
    "header_nested_too_deeply": struct.pack("<Q", 100_000) + b"[" * 100_000,
    "tensor_beyond_the_file": header({"source": {"data_offsets": [0, 2**40]}}),
    "negative_place": header({"source": {"data_offsets": [-8, -4]}}),
    "offsets_beyond_the_ids": token_file([5, 6], [0, 1000]),
    "offsets_that_go_back": token_file([5, 6], [0, 2, 1, 2]),
    "no_offsets": token_file([5, 6], []),
    "negative_ids": token_file([5, -3], [0, 2]),
}


@pytest.mark.parametrize("name", TOKENS)
def test_tokens(run, refused, trained, name: str) -> None:
    store = trained.folder / "tokens.safetensors"
    store.write_bytes(TOKENS[name])
    refused(translate(run, trained, store), "tokens.safetensors: ", "delete it and run again")


def replaced(path: Path, content: bytes) -> None:
    """Change a member of an archive of torch: its pickle."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, old in members.items():
            archive.writestr(name, content if name.endswith("data.pkl") else old)


def state(kind: str, path: Path) -> None:
    match kind:
        case "pickle":
            path.write_bytes(pickle.dumps(Payload(), protocol=2))
        case "torch_file_with_a_payload":
            torch.save({"x": torch.zeros(1)}, path)
            replaced(path, pickle.dumps(Payload(), protocol=2))
        case "list":
            torch.save([1, 2], path)
        case "other_keys":
            torch.save({"fingerprint": "x"}, path)


@pytest.mark.parametrize("kind", ["pickle", "torch_file_with_a_payload", "list", "other_keys"])
def test_a_saved_state_is_never_run_but_thrown_away(run, trained, caplog, kind: str) -> None:
    """A state can be done without: training starts over, says so, and ends with the model it would have made."""
    sizes = Model(layers=1, heads=2, width=8, feed_forward=8, dropout=0.0).model_dump()
    plan = Training(updates=2, batch_tokens=10, micro_batch_tokens=10, warmup=1, log_every=1, evaluate_every=2)
    settings = {"seed": 1, "vocabulary": Vocabulary(source=40, target=40).model_dump(), "model": sizes}
    settings |= {"training": plan.model_dump(), "device": "cpu"}
    store = trained.tokens(["ai qa", "bj rb", "ck sc"])
    weights = []
    for name in ("clean", "hostile"):
        folder = trained.folder / name
        if name == "hostile":
            folder.mkdir()
            state(kind, folder / "state.pt")
        out = {"output": trained.folder / f"{name}.safetensors", "records": trained.folder / f"{name}.jsonl"}
        outcome = run("training.train", settings=settings, train=store, dev=store, state=folder, **out)
        assert (outcome.status, outcome.said) == (0, "")
        weights.append(file_hash(out["output"]))
    assert weights[0] == weights[1]
    assert "state.pt cannot be read" in caplog.text
    assert not (trained.folder / "payload").exists()


@pytest.fixture
def exported(run, trained) -> Path:
    """The model as the rule `export` writes it."""
    (trained.folder / "target.model").write_bytes(
        learn([f"{a}{b} {c}{a}" for a in "abcdefgh" for b in "ijklmnop" for c in "qrstuvwx"], size=41, name="target")
    )
    score = dict.fromkeys(("bleu", "bleu_low", "bleu_high", "chrf", "p_value"), 1.0) | {
        "sentences": 1,
        "signature": "s",
    }
    (trained.folder / "score.json").write_text(json.dumps(score))
    settings = {"experiment": "e", "corpus": "c", "model": "baseline", "seed": 1, "preprocess": "none"}
    settings |= {"source_language": "en", "target_language": "fr", "decoding": DECODING}
    files = {"model": trained.weights, "source_model": trained.bpe, "target_model": trained.folder / "target.model"}
    folder = trained.folder / "exported"
    outcome = run(
        "export", settings=settings, **files, score=trained.folder / "score.json", output=folder / "model.json"
    )
    assert (outcome.status, outcome.said) == (0, "")
    return folder


def consistent(name: str, content: bytes) -> Callable[[Path], None]:
    """Another file, with the hash of it in the description."""

    def apply(folder: Path) -> None:
        (folder / name).write_bytes(content)
        card = read_json(folder / "model.json")
        card["sha256"][name] = file_hash(folder / name)
        (folder / "model.json").write_text(json.dumps(card))

    return apply


def card(**values: Any) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / "model.json").write_text(json.dumps(read_json(folder / "model.json") | values))

    return apply


EXPORTS = {
    "other_vocabulary": (consistent("source.model", VOCABULARIES["half"]), "source.model: not a SentencePiece model"),
    "smaller_vocabulary": (
        consistent("source.model", learn([f"{a}{b}" for a in "abcdefgh" for b in "ijklmnop"], size=30, name="source")),
        "source.model: not the vocabulary of this model",
    ),
    "pickle_for_weights": (consistent("model.safetensors", pickle.dumps(Payload())), "cannot read the weights"),
    "path_that_leads_out": (card(sha256={"../../../payload": "0"}), "not the file that model.json describes"),
    "other_format": (card(format="$(touch payload)"), "format '$(touch payload)' is not 1"),
    "no_number_for_a_score": (card(scores={"bleu": float("nan")}), "model.json: scores"),
    "line_feeds_in_a_key": (card(**{"a\nerror: b\x1b[2J": 1}), r"model.json: a\nerror: b\x1b[2J: Extra inputs"),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_exported_models(run, refused, exported: Path, name: str) -> None:
    change, *said = EXPORTS[name]
    change(exported)
    refused(run.command("cli", ["specialized-heads", "translate", str(exported)]), *said)
