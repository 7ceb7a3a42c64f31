"""Exported models: complete, the same translations as the pipeline's, and safe to read wherever
they are from."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exporting import DECODING, SCORE, SETTINGS
from hostile import PAYLOAD, Payload
from safetensors.torch import load_file
from small import WORDS

from specialized_heads import __version__, stage
from specialized_heads.corpus import tokens
from specialized_heads.corpus.normalise import normalise
from specialized_heads.corpus.tokens import learn
from specialized_heads.exchange import export
from specialized_heads.exchange.export import load_exported
from specialized_heads.exchange.folder import read_card
from specialized_heads.model.decoding import main as translate
from specialized_heads.stage import UserError


def test_the_folder_is_complete_and_says_what_the_model_is(
    exported: Path, model_files: dict[str, Path]
) -> None:
    names = {"model.safetensors", "model.json", "source.model", "target.model", "README.md"}
    assert {path.name for path in exported.iterdir()} == names
    assert (exported / "model.safetensors").read_bytes() == model_files["model"].read_bytes()
    card = read_card(exported)
    assert card.architecture.encoder == ((), (3, 1))
    assert (card.version, card.data_hash) == (__version__, "of the data")
    assert {name: card.model_dump()[name] for name in SETTINGS} == SETTINGS
    weights = exported / "model.safetensors"
    assert card.parameters == sum(tensor.numel() for tensor in load_file(weights).values())
    assert card.bytes == weights.stat().st_size
    assert card.scores.model_dump() | {"bleu_tokenised": 1.0} == SCORE
    assert "from en to de" in (exported / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("preprocess", ["none", "paper"])
def test_translations_are_those_of_the_pipeline(
    call, model_files: dict[str, Path], tmp_path, preprocess: str
) -> None:
    settings, folder = SETTINGS | {"preprocess": preprocess}, tmp_path / "folder"
    call(export, settings=settings, **model_files, output=folder / "model.json")
    lengths = enumerate([1, 7, 3, 12, 2, 5] * 4)
    texts = [" ".join(WORDS[start : start + length]) for start, length in lengths]
    pairs, ids = tmp_path / "test.parquet", tmp_path / "test.tokens"
    pq.write_table(pa.table({"source": texts, "target": texts}), pairs)
    bpe = {name: model_files[name] for name in ("source_model", "target_model")}
    settings = {"preprocess": preprocess, "source_language": "en", "target_language": "de"}
    call(tokens, settings=settings, text=pairs, output=ids, **bpe)
    settings = {"decoding": DECODING, "preprocess": preprocess, "language": "de", "device": "cpu"}
    files = {"model": model_files["model"], "tokens": ids, "bpe": model_files["target_model"]}
    files |= {"output": tmp_path / "text.txt", "tokenised": tmp_path / "tokenised.txt"}
    call(translate, settings=settings, **files)
    expected = (tmp_path / "text.txt").read_text(encoding="utf-8").splitlines()
    translator = load_exported(tmp_path / "folder", device="cpu")
    assert translator(texts) == expected
    assert translator(texts[3]) == expected[3]
    assert len(set(expected)) > 10


def test_text_is_normalised_as_that_of_training_and_nothing_stays_nothing(exported: Path) -> None:
    translator = load_exported(exported, device="cpu")
    assert translator("ai  qa\t\u00a0bj \n") == translator("ai qa bj") != ""
    blank = ["", " \t ", "ai", "\u200b", "\u200b \u200b"]
    assert translator(blank) == ["", "", translator("ai"), "", ""] and translator([]) == []
    for text in ("a&#x69; qa", "\u200eai \u00ad qa\ufeff"):
        assert translator(text) == translator(normalise(text)[0]) == translator("ai qa")


def test_a_description_of_an_earlier_version_is_read(exported: Path) -> None:
    text, decoding = "ai qa bj", DECODING | {"length_penalty": 1.0}
    before = load_exported(exported, device="cpu")(text)
    described(entities=True, decoding=decoding)(exported)
    assert load_exported(exported, device="cpu")(text) == before
    described(decoding=decoding | {"length_penalty": 0.5})(exported)
    with pytest.raises(UserError, match="length_penalty: Extra inputs"):
        load_exported(exported, device="cpu")


def test_the_beam_can_be_chosen(exported: Path) -> None:
    assert load_exported(exported, device="cpu").decoding.beam == 3
    texts = WORDS[:40]
    greedy = load_exported(exported, device="cpu", beam=1)
    assert greedy(texts) != load_exported(exported, device="cpu")(texts)


def test_a_long_text_is_translated_in_parts_and_a_warning_says_so(
    exported: Path, monkeypatch, caplog
) -> None:
    translator = load_exported(exported, device="cpu")
    monkeypatch.setattr(export, "LONGEST", 6)
    text, short = " ".join(WORDS[:9]), WORDS[0].split()[0]
    ids = translator.source.encode(text)
    parts = translator._parts(ids)
    assert [number for part in parts for number in part] == ids
    assert sum(map(len, translator._parts(ids * 2000))) == 2000 * len(ids)
    assert translator._parts([]) == []
    assert all(0 < len(part) <= 6 for part in parts)
    assert all(translator.source.id_to_piece(part[0]).startswith("\u2581") for part in parts)
    with caplog.at_level("WARNING"):
        long, alone = translator([text, short])
    assert alone == translator(short)
    assert long == " ".join(translator([translator.source.decode(part) for part in parts]))
    assert f"{len(ids)} subwords are translated in {len(parts)} parts: {text[:40]}" in caplog.text
    assert max(map(len, translator._parts(translator.source.encode("abcdefgh" * 10)))) == 6


def described(**values: object) -> Callable[[Path], None]:
    """Other values in the description."""

    def change(folder: Path) -> None:
        stage.write_json(folder / "model.json", stage.read_json(folder / "model.json") | values)

    return change


def written(
    name: str, content: Callable[[bytes], bytes], *, hashed: bool = True
) -> Callable[[Path], None]:
    """Another file, with its hash in the description, as one who means harm would do it."""

    def change(folder: Path) -> None:
        (folder / name).write_bytes(content((folder / name).read_bytes()))
        if hashed:
            names = ("model.safetensors", "source.model", "target.model")
            described(sha256={name: stage.file_hash(folder / name) for name in names})(folder)

    return change


WEIGHTS, CARD, PICKLE = "model.safetensors", "model.json", pickle.dumps(Payload())
OTHER = learn(WORDS, size=30, name="source")
BEAM = DECODING | {"beam": -1}
REFUSED = {
    "weights cut": (written(WEIGHTS, lambda old: old[:-8], hashed=False), "not the file that"),
    "no weights": (lambda folder: (folder / WEIGHTS).unlink(), "safetensors: no such file"),
    "pickle for weights": (written(WEIGHTS, lambda _: PICKLE), "cannot read the weights"),
    "pickle for a vocabulary": (written("source.model", lambda _: PICKLE), "not a SentencePiece"),
    "other vocabulary": (written("source.model", lambda _: OTHER), "not the vocabulary of this"),
    "other format": (described(format="$(touch payload)"), r"format: Input should be 1"),
    "negative beam": (described(decoding=BEAM), r"decoding\.beam: .* greater than or equal to 1"),
    "unknown key": (described(**{"a\nerror: b": 1}), "error: b: Extra inputs"),
    "path that leads out": (described(sha256={"../../payload": "0"}), "not the file that"),
    "NaN for a score": (described(scores={"bleu": float("nan")}), "scores.bleu"),
    "no description": (lambda folder: (folder / CARD).unlink(), "name the folder of a model that"),
    "not JSON": (written(CARD, lambda _: b"{", hashed=False), "model.json: not valid JSON"),
    "large": (written(CARD, lambda _: b"[" * 2_000_000, hashed=False), "too large"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_folder_that_is_damaged_or_hostile_is_refused(
    exported: Path, monkeypatch, name: str
) -> None:
    change, said = REFUSED[name]
    monkeypatch.chdir(exported.parent)
    change(exported)
    with pytest.raises(UserError, match=said):
        load_exported(exported)
    assert not list(exported.parent.rglob(PAYLOAD))
