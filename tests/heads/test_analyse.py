"""The stage, from a model whose weights are set by hand to its files."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sentencepiece

from specialized_heads.corpus.bpe import learn
from specialized_heads.corpus.pairs import Pairs, write_pairs
from specialized_heads.corpus.tokens import TokenStore
from specialized_heads.heads import analyse
from specialized_heads.model.checkpoint import save
from specialized_heads.model.transformer import KINDS, Transformer
from specialized_heads.parsing.words import Word, write_parses
from specialized_heads.sections import Heads
from specialized_heads.stage import UserError

NOUNS = ["farmer", "teacher", "sister", "gardener", "captain", "merchant", "soldier", "painter", "doctor", "tailor"]
VERBS = ["watches", "follows", "praises", "carries", "forgets"]
ADVERBS = ["often", "slowly", "gladly", "hardly", "really"]
ADJECTIVES = ["little", "famous", "hungry", "silent", "clever"]
HEADS = Heads(rare_cutoff=30, bootstrap=50)


def tree(random: np.random.Generator) -> tuple[str, list[Word]]:
    """A sentence "adjectives subject adverbs verb adjectives object ." and its tree; the distances vary."""
    adjectives, adverbs, more = random.integers(0, 4, 3)
    subject, verb = adjectives, adjectives + 1 + adverbs
    thing = verb + 1 + more
    forms = [
        *random.choice(ADJECTIVES, adjectives),
        random.choice(NOUNS),
        *random.choice(ADVERBS, adverbs),
        random.choice(VERBS),
        *random.choice(ADJECTIVES, more),
        random.choice(NOUNS),
        ".",
    ]
    arcs = {subject: (verb, "nsubj"), verb: (-1, "root"), thing: (verb, "obj"), thing + 1: (verb, "punct")}
    arcs |= dict.fromkeys(range(subject), (subject, "amod"))
    arcs |= dict.fromkeys(range(subject + 1, verb), (verb, "advmod"))
    arcs |= dict.fromkeys(range(verb + 1, thing), (thing, "amod"))
    words, start = [], 0
    for number, form in enumerate(forms):
        head, relation = arcs[number]
        words.append(Word(str(form), start, start + len(form), int(head) + 1, relation, "X"))
        start += len(form) + 1
    return " ".join(forms), words


@dataclass
class Corpus:
    texts: list[str]
    trees: list[list[Word]]
    bpe: sentencepiece.SentencePieceProcessor
    store: TokenStore


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    random = np.random.default_rng(1)
    texts, trees = map(list, zip(*(tree(random) for _ in range(150)), strict=True))
    bpe = sentencepiece.SentencePieceProcessor(model_proto=learn(texts, size=80, name="source"))
    ids = [bpe.encode(text) for text in texts]
    offsets = np.cumsum([0, *map(len, ids)])
    targets = np.full(150, 5, dtype=np.int32)
    return Corpus(texts, trees, bpe, TokenStore(np.array(sum(ids, [])), offsets, targets, np.arange(151)))


@pytest.fixture
def files(corpus: Corpus, tmp_path: Path, token_file: Callable[..., Path]) -> dict[str, Path]:
    """What the stage reads and writes; the tree of sentence 7 is missing."""
    write_pairs(tmp_path / "analysis.parquet", Pairs(corpus.texts, ["–"] * 150, ["1"] * 150))
    write_parses(tmp_path / "parses.parquet", [[] if n == 7 else words for n, words in enumerate(corpus.trees)])
    (tmp_path / "bpe.model").write_bytes(corpus.bpe.serialized_model_proto())
    sources = [corpus.store.source_ids(number).tolist() for number in range(150)]
    # One value per head of the largest model of these tests, so that a table of a smaller one can be joined too.
    heads = [(kind, layer, head) for kind in KINDS for layer in (1, 2) for head in (1, 2)]
    columns = dict(zip(("type", "layer", "head"), map(list, zip(*heads, strict=True)), strict=True))
    relevances = {"epsilon": [number / 100 for number in range(12)], "gradient": [-number / 50 for number in range(12)]}
    pq.write_table(pa.table(columns | relevances), tmp_path / "relevance.parquet")
    return {
        "model": tmp_path / "model.safetensors",
        "bpe": tmp_path / "bpe.model",
        "text": tmp_path / "analysis.parquet",
        "analysis": token_file("analysis", sources, [[5, 6]] * 150),
        "train": token_file("train", sources, [[5]] * 150),
        "relevance": tmp_path / "relevance.parquet",
        "parses": tmp_path / "parses.parquet",
        "output": tmp_path / "heads.parquet",
        "examples": tmp_path / "examples.json",
        "report": tmp_path / "report.json",
    }


SETTINGS = {"heads": HEADS.model_dump(), "preprocess": "none", "language": "en", "seed": 1, "device": "cpu"}


@pytest.fixture
def previous_token_model(tiny_model: Callable[..., Transformer]) -> Transformer:
    """Encoder head (1, 1) looks at the previous token, head (1, 2) at all alike.

    The source is nothing but its positions; a query turned back by one position is most like the key before it.
    """
    width = 64
    model = tiny_model(vocabulary=80, layers=1, width=width)
    model.source_embedding.data.zero_()
    layer = model.encoder[0]
    layer.attention_norm.weight.data.fill_(1.0)
    layer.attention_norm.bias.data.zero_()
    query, key = (parameter.data.zero_() for parameter in (layer.attention.query, layer.attention.key))
    half = width // 2
    for i in range(half // 2):  # the faster half of the waves fill head 1
        angle = 10000 ** (-i / (half - 1))
        query[i, i], query[i, half + i] = math.cos(angle), -math.sin(angle)  # sin(t - 1)
        query[half // 2 + i, i], query[half // 2 + i, half + i] = math.sin(angle), math.cos(angle)  # cos(t - 1)
        key[i, i] = key[half // 2 + i, half + i] = 1.0
    query *= 30.0
    return model


def test_stage(
    call: Callable[..., None], files: dict[str, Path], previous_token_model: Transformer, corpus: Corpus
) -> None:
    save(previous_token_model, files["model"], training={})
    call(analyse, settings=SETTINGS, **files)
    rows = pq.read_table(files["output"]).to_pylist()
    assert [(row["type"], row["layer"], row["head"]) for row in rows] == [(k, 1, h) for k in KINDS for h in (1, 2)]
    previous, uniform = rows[:2]
    assert (previous["functions"], previous["relations"], previous["positional_offset"]) == (["positional"], [], -1)
    lengths = corpus.store.source_lengths
    assert 0.9 < previous["positional_share"] <= 1 - 150 / lengths.sum()  # the first of a sentence has none before it
    assert previous["confidence"] > 0.8
    assert uniform["positional_share"] < 0.5
    assert uniform["confidence"] == pytest.approx(np.sum(lengths / (lengths + 1)) / lengths.sum(), rel=1e-4)
    for row in rows[2:]:
        assert 0 < row["confidence"] <= 1
        assert {row[name] for name in ("rarest", "nsubj_head_to_dependent", "nsubj_arcs", "relations")} == {None}
        assert row["functions"] in ([], ["positional"], ["diagonal"])
    assert [row["relevance"] for row in rows] == [0.0, 0.01, 0.04, 0.05, 0.08, 0.09]
    assert [row["relevance_gradient"] for row in rows] == [-0.0, -0.02, -0.08, -0.1, -0.16, -0.18]

    report = json.loads(files["report"].read_text())
    assert (report["sentences"], report["parsed"], report["aligned"]) == (150, 149, 149)
    assert report["queries"] == {"encoder": int(lengths.sum()), "decoder": 300, "cross": 450}
    assert report["fewer_than_least_arcs"] == []
    assert report["relevance_rules"] == ["epsilon", "gradient"]
    assert report["labelled"] == {k: sum(bool(r["functions"]) for r in rows if r["type"] == k) for k in KINDS}
    examples = json.loads(files["examples"].read_text())
    best = max(rows[:2], key=lambda row: row["rarest"])
    assert (examples["layer"], examples["head"], examples["score"]) == (best["layer"], best["head"], best["rarest"])
    for sentence in examples["sentences"]:
        assert sentence["tokens"][-1] == "</s>"
        assert "".join(sentence["tokens"][:-1]).replace("▁", " ").strip() in corpus.texts
        assert np.array(sentence["attention"]).shape == (len(sentence["tokens"]),) * 2
        assert np.sum(sentence["attention"], axis=1) == pytest.approx(1.0, abs=1e-4)
        assert sentence["rarest"] < len(sentence["tokens"]) - 1


def test_stage_on_preprocessed_text(
    call: Callable[..., None],
    files: dict[str, Path],
    previous_token_model: Transformer,
    corpus: Corpus,
) -> None:
    """Raw text in capitals is, for a model of lower-case text, the text of the other test: so are its heads."""
    save(previous_token_model, files["model"], training={})
    call(analyse, settings=SETTINGS, **files)
    expected = files["output"].read_bytes()
    write_pairs(files["text"], Pairs([text.upper() for text in corpus.texts], ["–"] * 150, ["1"] * 150))
    call(analyse, settings=SETTINGS | {"preprocess": "paper"}, **files)
    assert files["output"].read_bytes() == expected
    assert json.loads(files["report"].read_text())["aligned"] == 149


def test_stage_repeats(call: Callable[..., None], files: dict[str, Path], previous_token_model: Transformer) -> None:
    save(previous_token_model, files["model"], training={})
    contents = []
    for _ in range(2):
        call(analyse, settings=SETTINGS, **files)
        contents.append([files[name].read_bytes() for name in ("output", "examples", "report")])
    assert contents[0] == contents[1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_without_heads_of_one_type(
    call: Callable[..., None], files: dict[str, Path], tiny_model: Callable[..., Transformer], kind: str
) -> None:
    model = tiny_model(vocabulary=80)
    model.keep_heads({kind: [[], []]} | ({"encoder": [[1], []]} if kind != "encoder" else {}))
    save(model, files["model"], training={})
    call(analyse, settings=SETTINGS, **files)
    rows = pq.read_table(files["output"]).to_pylist()
    expected = {"encoder": 1, "decoder": 4, "cross": 4} | ({"encoder": 0} if kind == "encoder" else {kind: 0})
    assert {k: sum(row["type"] == k for row in rows) for k in KINDS} == expected
    assert all(math.isfinite(row["relevance"]) and math.isfinite(row["confidence"]) for row in rows)
    if kind != "encoder":
        assert (rows[0]["layer"], rows[0]["head"]) == (1, 2)
    else:
        assert json.loads(files["examples"].read_text())["sentences"] == []


def test_parses_of_another_text_are_a_mistake(
    call: Callable[..., None], files: dict[str, Path], tiny_model: Callable[..., Transformer]
) -> None:
    save(tiny_model(vocabulary=80), files["model"], training={})
    write_parses(files["parses"], [[Word("far", 990, 995, 0, "root", "X")]])
    with pytest.raises(UserError, match="the trees are of other sentences than the text"):
        call(analyse, settings=SETTINGS, **files)


def test_a_relation_that_does_not_occur_is_counted_and_named(
    call: Callable[..., None],
    files: dict[str, Path],
    previous_token_model: Transformer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    save(previous_token_model, files["model"], training={})
    heads = HEADS.model_copy(update={"relations": ["nsubj", "vocative", "dobj"]})
    call(analyse, settings=SETTINGS | {"heads": heads.model_dump()}, **files)
    rows = pq.read_table(files["output"]).to_pylist()[:2]
    for row in rows:
        assert row["vocative_arcs"] == 0
        names = ("vocative_head_to_dependent", "vocative_dependent_to_head_low", "vocative_dependent_to_head_baseline")
        assert all(math.isnan(row[name]) for name in names)
        assert row["dobj_arcs"] == row["nsubj_arcs"] == 149  # a Stanford name of obj
    report = json.loads(files["report"].read_text())
    assert report["arcs"] == {"nsubj": 149, "vocative": 0, "dobj": 149}
    assert report["fewer_than_least_arcs"] == ["vocative"]
    assert "no arc of 'vocative'; the parses contain advmod, amod, nsubj, obj, punct" in caplog.text


def test_sentences_that_are_too_short_for_a_positional_head_are_reported(
    call: Callable[..., None],
    files: dict[str, Path],
    previous_token_model: Transformer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    save(previous_token_model, files["model"], training={})
    heads = HEADS.model_copy(update={"positional_share": 0.99})
    call(analyse, settings=SETTINGS | {"heads": heads.model_dump()}, **files)
    assert "the sentences are so short" in caplog.text and "of the encoder's queries" in caplog.text
    assert pq.read_table(files["output"]).to_pylist()[0]["functions"] == []


def test_relevance_of_another_model_is_a_mistake(
    call: Callable[..., None], files: dict[str, Path], tiny_model: Callable[..., Transformer]
) -> None:
    save(tiny_model(vocabulary=80, layers=3), files["model"], training={})
    with pytest.raises(UserError, match="no encoder head 3-1"):
        call(analyse, settings=SETTINGS, **files)
    pq.write_table(pa.table({"type": ["encoder"], "layer": [1], "head": [1]}), files["relevance"])
    with pytest.raises(UserError, match="relevance.parquet: not a table of relevances"):
        call(analyse, settings=SETTINGS, **files)
