"""A small model with real vocabularies, and the folder that the stage `export` makes of it."""

import json
from pathlib import Path

import pytest
from small import WORDS

from specialized_heads.corpus.tokens import learn
from specialized_heads.exchange import export
from specialized_heads.model.checkpoint import save
from specialized_heads.model.transformer import Transformer

DECODING = {"beam": 3, "max_length_ratio": 2.0}
SETTINGS = {
    "experiment": "tiny",
    "corpus": "words",
    "model": "pruned/encoder_heads2",
    "seed": 7,
    "source_language": "en",
    "target_language": "de",
    "preprocess": "none",
    "decoding": DECODING,
}
SCORE = {
    "bleu": 12.34,
    "bleu_low": 11.0,
    "bleu_high": 13.0,
    "chrf": 30.0,
    "p_value": None,
    "sentences": 1000,
}
SCORE |= {"signature": "sig", "bleu_tokenised": 1.0}


def written(folder: Path, model: Transformer, source: bytes, target: bytes) -> dict[str, Path]:
    """What the stage reads, in this folder."""
    folder.mkdir()
    files = {
        name: folder / f"made.{name}" for name in ("model", "source_model", "target_model", "score")
    }
    save(model, files["model"], training={"data_hash": "of the data"})
    files["source_model"].write_bytes(source)
    files["target_model"].write_bytes(target)
    files["score"].write_text(json.dumps(SCORE))
    return files


@pytest.fixture
def model_files(tiny_model, tmp_path: Path) -> dict[str, Path]:
    """What the stage reads: a model with one encoder layer without heads, its vocabularies and its
    score."""
    model = tiny_model(vocabulary=60, width=16, heads=4)
    model.keep_heads({"encoder": [[], [3, 1]]})
    target = learn([word[::-1] for word in WORDS], size=61, name="target")
    return written(tmp_path / "files", model, learn(WORDS, size=60, name="source"), target)


@pytest.fixture
def exported(call, model_files: dict[str, Path], tmp_path: Path) -> Path:
    """The exported folder."""
    call(export, settings=SETTINGS, **model_files, output=tmp_path / "exported" / "model.json")
    return tmp_path / "exported"
