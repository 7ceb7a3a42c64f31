"""Exported models: complete, the same translations as the pipeline's, and safe to read wherever they are from."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file

from specialized_heads import __version__, export, stage
from specialized_heads.config.sections import Training
from specialized_heads.corpus import tokens
from specialized_heads.corpus.bpe import learn
from specialized_heads.corpus.normalise import normalise
from specialized_heads.evaluation import translate
from specialized_heads.export import load_exported, read_card
from specialized_heads.model.checkpoint import save
from specialized_heads.model.transformer import Transformer
from specialized_heads.pruning import prune
from specialized_heads.stage import UserError
from specialized_heads.training import train

DECODING = {"beam": 3, "length_penalty": 1.0, "max_length_ratio": 2.0}
SETTINGS = {
    "experiment": "tiny",
    "corpus": "words",
    "model": "pruned/encoder_heads2",
    "seed": 7,
    "source_language": "en",
    "target_language": "de",
    "entities": True,
    "preprocess": "none",
    "decoding": DECODING,
}
SCORE = {"bleu": 12.3, "bleu_low": 11.0, "bleu_high": 13.0, "chrf": 30.0, "p_value": None, "sentences": 20}
SCORE |= {"signature": "sig", "bleu_tokenised": 1.0}
WORDS = [f"{a}{b} {c}{a}" for a in "abcdefgh" for b in "ijklmnop" for c in "qrstuvwx"]


@pytest.fixture
def model_files(tiny_model: Callable[..., Transformer], tmp_path: Path) -> dict[str, Path]:
    """A model of a real vocabulary, with one encoder layer without heads."""
    model = tiny_model(vocabulary=60, width=16, heads=4)
    model.keep_heads({"encoder": [[], [3, 1]]})
    save(model, tmp_path / "weights.safetensors", training={"data_hash": "of the data"})
    (tmp_path / "source.bpe").write_bytes(learn(WORDS, size=60, name="source"))
    (tmp_path / "target.bpe").write_bytes(learn([word[::-1] for word in WORDS], size=61, name="target"))
    (tmp_path / "score.json").write_text(json.dumps(SCORE))
    names = {"model": "weights.safetensors", "source_model": "source.bpe", "target_model": "target.bpe"}
    return {name: tmp_path / file for name, file in (names | {"score": "score.json"}).items()}


@pytest.fixture
def exported(call: Callable[..., None], model_files: dict[str, Path], tmp_path: Path) -> Path:
    call(export, settings=SETTINGS, **model_files, output=tmp_path / "exported" / "model.json")
    return tmp_path / "exported"


def test_the_folder_is_complete_and_says_what_the_model_is(exported: Path, model_files: dict[str, Path]) -> None:
    names = {"model.safetensors", "model.json", "source.model", "target.model", "README.md"}
    assert {path.name for path in exported.iterdir()} == names
    assert (exported / "model.safetensors").read_bytes() == model_files["model"].read_bytes()
    card = read_card(exported)
    assert card.architecture.encoder == [[], [3, 1]]
    assert (card.version, card.data_hash) == (__version__, "of the data")
    assert {name: card.model_dump()[name] for name in SETTINGS} == SETTINGS
    assert card.parameters == sum(tensor.numel() for tensor in load_file(exported / "model.safetensors").values())
    assert card.bytes == (exported / "model.safetensors").stat().st_size
    assert card.scores.model_dump() == {name: value for name, value in SCORE.items() if name != "bleu_tokenised"}
    assert "from en to de" in (exported / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("preprocess", ["none", "paper"])
def test_translations_are_those_of_the_pipeline(
    call: Callable[..., None], model_files: dict[str, Path], tmp_path: Path, preprocess: str
) -> None:
    call(export, settings=SETTINGS | {"preprocess": preprocess}, **model_files, output=tmp_path / "folder/model.json")
    texts = [" ".join(WORDS[start : start + length]) for start, length in enumerate([1, 7, 3, 12, 2, 5] * 4)]
    pairs = pa.table({"source": texts, "target": texts})
    pq.write_table(pairs, tmp_path / "test.parquet")
    bpe = {name: model_files[name] for name in ("source_model", "target_model")}
    settings = {"preprocess": preprocess, "source_language": "en", "target_language": "de"}
    call(tokens, settings=settings, text=tmp_path / "test.parquet", output=tmp_path / "test.tokens", **bpe)
    call(
        translate,
        settings={"decoding": DECODING, "preprocess": preprocess, "language": "de", "device": "cpu"},
        model=model_files["model"],
        tokens=tmp_path / "test.tokens",
        bpe=model_files["target_model"],
        output=tmp_path / "translation.txt",
        tokenised=tmp_path / "tokenised.txt",
    )
    expected = (tmp_path / "translation.txt").read_text(encoding="utf-8").splitlines()
    translator = load_exported(tmp_path / "folder", device="cpu")
    assert translator(texts) == expected
    assert translator(texts[3]) == expected[3]
    assert len(set(expected)) > 10


def test_a_model_with_wide_heads_is_trained_pruned_exported_and_translates(
    call: Callable[..., None], model_files: dict[str, Path], token_file: Callable[..., Path], sentences, tmp_path: Path
) -> None:
    plan = Training(updates=4, batch_tokens=60, micro_batch_tokens=60, warmup=1, log_every=2, evaluate_every=4)
    common = {"seed": 1, "training": plan.model_dump() | {"precision": "fp32"}, "device": "cpu"}
    data = {"train": token_file("train", *sentences(40)), "dev": token_file("dev", *sentences(5))}

    def outputs(name: str) -> dict[str, Path]:
        return {"output": tmp_path / f"{name}.safetensors", "records": tmp_path / name, "state": tmp_path / "state"}

    model = {"layers": 1, "heads": 2, "width": 8, "head_width": 7, "feed_forward": 12, "position_base": 30.0}
    call(
        train,
        settings=common | {"vocabulary": {"source": 60, "target": 61}, "model": model},
        **data,
        **outputs("whole"),
    )
    settings = common | {"scope": "all", "penalty": None, "heads": 3, "penalty_warmup": 0, "dropout": 0.1}
    files = outputs("pruned") | {"gates": tmp_path / "gates.json", "soft": tmp_path / "soft.safetensors"}
    settings |= {"gate_learning_rate": 0.1, "gate_init": 2.0}
    call(prune, settings=settings, baseline=tmp_path / "whole.safetensors", **data, **files)
    call(export, settings=SETTINGS, **model_files | {"model": files["output"]}, output=tmp_path / "wide/model.json")
    translator = load_exported(tmp_path / "wide", device="cpu")
    heads = [attention for attention in translator.model.attentions() if attention.heads]
    assert sum(len(attention.heads) for attention in heads) == 3
    assert all(attention.query.shape == (7 * len(attention.heads), 8) for attention in heads)
    assert len(translator(WORDS[:5])) == 5


def test_white_space_is_made_single_and_nothing_stays_nothing(exported: Path) -> None:
    translator = load_exported(exported, device="cpu")
    assert translator("ai  qa\t\u00a0bj \n") == translator("ai qa bj") != ""
    assert translator(["", " \t ", "ai", "\u200b", "\u200b \u200b"]) == ["", "", translator("ai"), "", ""]
    assert translator([]) == []


def test_text_is_normalised_as_that_of_training(exported: Path) -> None:
    texts = [
        "a&#x69; qa",
        "\u200eai \u00ad qa\ufeff",
        "a\u200bi \u0600qa &amp;amp; e\u200b\u0301",
        "ai&nbsp;&zwsp;\x00",
    ]
    clean, _ = normalise(pa.array(texts), entities=True)
    translator = load_exported(exported, device="cpu")
    assert translator(texts) == translator(clean.to_pylist())
    assert translator("a&#105; qa") == translator("ai qa")


def test_a_description_that_says_nothing_of_entities_leaves_them(exported: Path) -> None:
    values = json.loads((exported / "model.json").read_text(encoding="utf-8"))
    assert values.pop("entities") is True
    (exported / "model.json").write_text(json.dumps(values), encoding="utf-8")
    translator = load_exported(exported, device="cpu")
    assert not translator.card.entities
    assert translator("a&#105; qa") != translator("ai qa")


def test_the_beam_can_be_chosen(exported: Path) -> None:
    assert load_exported(exported, device="cpu").decoding.beam == 3
    texts = WORDS[:40]
    greedy = load_exported(exported, device="cpu", beam=1)
    assert greedy(texts) != load_exported(exported, device="cpu")(texts)


def test_a_long_text_is_translated_in_parts_and_a_warning_says_so(exported: Path, monkeypatch, caplog) -> None:
    translator = load_exported(exported, device="cpu")
    monkeypatch.setattr(export, "LONGEST", 6)
    words = [word for pair in WORDS[:9] for word in pair.split()]
    lengths = [len(translator.source.encode(word)) for word in words]
    assert max(lengths) <= 6
    text, short = " ".join(words), words[0]
    ids = translator.source.encode(text)
    parts = translator._parts(ids)
    assert [number for part in parts for number in part] == ids
    assert all(0 < len(part) <= 6 for part in parts)
    assert all(translator.source.id_to_piece(part[0]).startswith("\u2581") for part in parts)
    with caplog.at_level("WARNING"):
        long, alone = translator([text, short])
    assert alone == translator(short)
    assert long == " ".join(translator([translator.source.decode(part) for part in parts]))
    assert f"{len(ids)} subwords are translated in {len(parts)} parts: {text[:40]}" in caplog.text
    one_word = translator._parts(translator.source.encode("abcdefgh" * 10))
    assert max(map(len, one_word)) == 6


def change(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | values), encoding="utf-8")


def rehash(folder: Path) -> None:
    """Make the description agree with its files, as one who means harm would."""
    names = ("model.safetensors", "source.model", "target.model")
    change(folder / "model.json", sha256={name: stage.file_hash(folder / name) for name in names})


def test_damage_is_named(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere: no such folder"):
        load_exported(tmp_path / "nowhere")
    weights = exported / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-8])
    with pytest.raises(UserError, match=r"model\.safetensors: not the file that model\.json describes"):
        load_exported(exported)
    rehash(exported)
    with pytest.raises(UserError, match=r"model\.safetensors: cannot read the weights"):
        load_exported(exported)
    weights.unlink()
    with pytest.raises(UserError, match=r"model\.safetensors: no such file"):
        load_exported(exported)
    (exported / "model.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=r"model\.json: not valid JSON"):
        load_exported(exported)
    (exported / "model.json").unlink()
    with pytest.raises(UserError, match=r"model\.json: no such file"):
        load_exported(exported)


def test_a_pickle_is_not_opened(exported: Path, tmp_path: Path) -> None:
    class Harm:
        def __reduce__(self):
            return Path.touch, (tmp_path / "harm",)

    for name in ("model.safetensors", "source.model"):
        kept = (exported / name).read_bytes()
        (exported / name).write_bytes(pickle.dumps(Harm()))
        rehash(exported)
        with pytest.raises(UserError, match=name.replace(".", r"\.")):
            load_exported(exported)
        (exported / name).write_bytes(kept)
    torch.save(Harm(), exported / "model.safetensors")
    rehash(exported)
    with pytest.raises(UserError, match="cannot read the weights"):
        load_exported(exported)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    "values",
    [
        {"width": 10**9},
        {"width": 2**62},
        {"source_vocabulary": 10**12},
        {"head_width": 10**9},
        {"encoder": [[0]] * 900},
        {"encoder": [list(range(10**5))]},
        {"decoder": []},
        {"feed_forward": 13},
    ],
)
def test_an_architecture_that_is_not_that_of_the_weights_takes_no_memory(exported: Path, values: dict) -> None:
    architecture = json.loads((exported / "model.json").read_text(encoding="utf-8"))["architecture"]
    change(exported / "model.json", architecture=architecture | values)
    with pytest.raises(UserError, match=r"model\.safetensors: .*(the weights do not fit|cannot read)"):
        load_exported(exported)


def test_foreign_descriptions(exported: Path, tmp_path: Path, model_files: dict[str, Path]) -> None:
    path = exported / "model.json"
    good = path.read_text(encoding="utf-8")
    for values, said in (
        ({"format": 2}, "format 2 is not 1"),
        ({"architecture": {}}, r"architecture\.source_vocabulary: Field required"),
        ({"decoding": DECODING | {"beam": -1}}, r"decoding\.beam: .* greater than or equal to 1"),
        ({"preprocess": "__import__"}, "preprocess: "),
        ({"more": 1}, "more: Extra inputs"),
    ):
        change(path, **values)
        with pytest.raises(UserError, match=rf"model\.json: .*{said}"):
            load_exported(exported)
        path.write_text(good, encoding="utf-8")
    for depth, said in ((2_000_000, "too large"), (500_000, "nested too deeply|not valid JSON")):
        path.write_text("[" * depth, encoding="utf-8")
        with pytest.raises(UserError, match=said):
            load_exported(exported)
    path.write_text(model_files["model"].with_suffix(".json").read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(UserError, match="not the description of an exported model; the rule `export` makes one"):
        load_exported(exported)


def test_a_vocabulary_of_another_model(exported: Path) -> None:
    (exported / "source.model").write_bytes((exported / "target.model").read_bytes())
    rehash(exported)
    with pytest.raises(UserError, match=r"source\.model: not the vocabulary of this model"):
        load_exported(exported)


def test_more_weights_than_the_architecture_has(exported: Path) -> None:
    tensors = load_file(exported / "model.safetensors")
    save_file({**tensors, "more": torch.zeros(1)}, exported / "model.safetensors")
    rehash(exported)
    with pytest.raises(UserError, match="the weights do not fit"):
        load_exported(exported)
