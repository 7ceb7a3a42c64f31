"""Model folders that are damaged, absurd or not supported: each is one clear line, in ten seconds
of computing and 1 GB."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from published import marian, write_tokeniser
from safetensors.torch import load_file, save_file
from small import WORDS

from specialized_heads.classification import wordpiece

READ = """
import json, resource, signal, sys
from pathlib import Path
from specialized_heads.classification import wordpiece
from specialized_heads.exchange.huggingface import load_bert, read_vocabulary

from specialized_heads.exchange.import_model import read_model
from specialized_heads.stage import UserError

def bert(folder):
    wordpiece.write_vocabulary(folder / "out", *read_vocabulary(folder))
    load_bert(folder, vocabulary=wordpiece.read_vocabulary(folder / "out"))

resource.setrlimit(resource.RLIMIT_DATA, (10**9, 10**9))
for folder in map(Path, sys.argv[1:]):
    signal.setitimer(signal.ITIMER_PROF, 10)  # of computing
    signal.alarm(300)  # and of waiting, on a busy machine
    said = "nothing"
    try:
        {"marian": read_model, "bert": bert}[folder.name.partition(": ")[0]](folder)
    except UserError as error:
        said = str(error)
    print(json.dumps([folder.name, said]), flush=True)
"""


def changed(name: str, **values: object) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / name
        before = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(before | values))

    return apply


def configured(**values: object) -> Callable[[Path], None]:
    return changed("config.json", **values)


def replaced(name: str, make: Callable[[Path], object] = str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return apply


def written(name: str, content: bytes) -> Callable[[Path], None]:
    return replaced(name, lambda path: path.write_bytes(content))


def table(ids: dict[str, int]) -> Callable[[Path], None]:
    return written("vocab.json", json.dumps(ids).encode())


def stored(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        tensors, name = load_file(folder / WEIGHTS), "model.encoder.layers.0.fc1.weight"
        tensors[name] = change(tensors[name])
        save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})

    return apply


def outside(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "x")
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../x"}}')


def linked(name: str, target: str) -> Callable[[Path], None]:
    return replaced(name, lambda path: path.symlink_to(target))


WEIGHTS, PICKLE = "model.safetensors", "pytorch_model.bin"
FC1 = "model.safetensors: model.encoder.layers.0.fc1.weight"
SPECIAL, SETTINGS, ADDED = "special_tokens_map.json", "tokenizer_config.json", "added_tokens.json"
MANY, UNKNOWN = 10**7, {"<unk>": 1}
CASES = {
    "marian: no configuration": (replaced("config.json"), "no model; it must hold config.json"),
    "marian: kind": (configured(model_type="t5"), "'t5' is not supported, only 'marian' or"),
    "marian: no size": (configured(d_model=None), "Field 'd_model' expected int, got NoneType"),
    "marian: stacks": (configured(decoder_attention_heads=2), "they must be equal"),
    "marian: pieces": (configured(vocab_size=MANY), f"[1, 60], but [1, {MANY}] by config.json"),
    "marian: layers": (configured(encoder_layers=10**5), "2 layers encoder.layers.*, but 10000"),
    "marian: more layers": (configured(decoder_layers=900), "layers decoder.layers.*, but 900 by"),
    "marian: fewer layers": (configured(decoder_layers=1), "have 2 layers decoder.layers.*, but 1"),
    "marian: gelu_new": (configured(activation_function="gelu_new"), "'gelu_new' is not supported"),
    "marian: no weights": (replaced(WEIGHTS), "model.safetensors: no such file"),
    "marian: pickle": (lambda f: (f / WEIGHTS).rename(f / PICKLE), "weights are not loaded"),
    "marian: outside": (outside, "names a file outside its folder"),
    "marian: dangling": (linked(WEIGHTS, "../0"), "a link to a file that does not exist; fetch"),
    "marian: pointer": (written(WEIGHTS, b"version https://git-lfs."), "run `git lfs pull`"),
    "marian: cut": (lambda f: os.truncate(f / WEIGHTS, 9999), "not complete weights"),
    "marian: int8": (stored(lambda tensor: tensor.to(torch.int8)), f"{FC1} is quantised (I8)"),
    "marian: shape": (stored(lambda tensor: tensor[1:].clone()), f"{FC1} has the shape [47, 32]"),
    "marian: NaN": (stored(lambda tensor: tensor * torch.nan), f"{FC1} contains NaN or infinity"),
    "marian: loop": (linked("source.spm", "source.spm"), "cannot be read (Too many levels"),
    "marian: bytes": (written("target.spm", b"\xff" * 99), "target.spm: not a SentencePiece model"),
    "marian: pipe": (replaced("vocab.json", os.mkfifo), "vocab.json: not a file"),
    "marian: twice": (table(UNKNOWN | {"a": 1}), "vocab.json: not a table from tokens to ids of"),
    "marian: unknown": (table({"a": 1}), "tokeniser ('<unk> token must be in the vocab')"),
    "marian: beyond": (table(UNKNOWN | {"</s>": 0, "x": 999}), "belongs to another model"),
    "marian: others": (table(UNKNOWN | {"</s>": 0, "xyz": 2}), "shares no piece with vocab.json"),
    "marian: separate": (changed(SETTINGS, separate_vocabs=True), "separate_vocabs is True, but"),
    "marian: eos": (changed(SPECIAL, eos_token="<unk>"), "'<unk>', which is not that of the model"),
    "marian: listed": (changed(SPECIAL, additional_special_tokens=["<e>"]), "adds '<e>' for text"),
    "marian: list": (written("tokenizer.json", b"[]"), "tokenizer.json: not JSON of a model"),
    "marian: added": (changed(ADDED, **{"<e>": 60}), "adds '<e>' for text, which is not supported"),
    "bert: pieces": (configured(vocab_size=MANY), f"shape [7, 8], but [{MANY}, 8]"),
    "bert: layers": (configured(num_hidden_layers=MANY), f"1 layers encoder.layer.*, but {MANY}"),
    "bert: pruned": (configured(pruned_heads={"0": [1]}), "has pruned_heads, which"),
    "bert: short": (written("vocab.txt", b"[PAD]\n[UNK]\n"), "there is no token [CLS]"),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What reading each folder says."""
    root = tmp_path_factory.mktemp("folders")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    marian().save_pretrained(root / "marian")
    words = list(WORDS[:200])
    write_tokeniser(root / "marian", {"source": words, "target": [word[::-1] for word in words]})
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 7}
    sizes |= {"hidden_size": 8, "intermediate_size": 12, "max_position_embeddings": 32}
    config = transformers.BertConfig(**sizes)
    transformers.BertModel(config).save_pretrained(root / "bert")
    (root / "bert" / "vocab.txt").write_text("\n".join([*wordpiece.SPECIAL, "a", "b"]))
    for name, (damage, _) in CASES.items():
        damage(shutil.copytree(root / name.partition(": ")[0], root / name))
    folders = [str(root / name) for name in ("marian", "bert", *CASES)]
    command = [sys.executable, "-c", READ, *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return dict(map(json.loads, done.stdout.splitlines())) | {"stderr": done.stderr}


@pytest.mark.parametrize("name", CASES)
def test_a_folder_that_cannot_be_read_is_one_clear_line(name: str, said: dict[str, str]) -> None:
    assert name in said, said["stderr"]
    assert CASES[name][1] in said[name]
    assert "\n" not in said[name]
    assert "delete" not in said[name] and "weights_only" not in said[name]


def test_undamaged_folders_are_read(said: dict[str, str]) -> None:
    assert said["marian"] == said["bert"] == "nothing"
