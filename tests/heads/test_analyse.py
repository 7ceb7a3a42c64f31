"""The stage, from a model to the files that it writes; the attention maps of a model, and where
they are largest."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from parallel_text import Pairs, write_pairs
from parsed_corpus import NUMBER, VOCABULARY, Corpus

from specialized_heads.corpus.preprocess import apply
from specialized_heads.heads import maps
from specialized_heads.heads.analyse import OfType
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.attention import Activations
from specialized_heads.model.checkpoint import save
from specialized_heads.model.transformer import Transformer
from specialized_heads.parsing.words import Word, write_parses
from specialized_heads.stage import UserError, read_json
from specialized_heads.training.batching import make_batch


@pytest.fixture
def model(tiny_model, files: dict[str, Path]) -> Transformer:
    """A small model, saved where the stage reads it."""
    model = tiny_model(vocabulary=VOCABULARY)
    save(model, files["model"], training={})
    return model


def test_stage(model: Transformer, files: dict[str, Path], analysed, corpus: Corpus) -> None:
    rows, report = analysed()
    numbers = [start + n for start in (0, 16, 32) for n in (0, 1, 8, 9)]
    assert [row["relevance"] for row in rows] == [number / 100 for number in numbers]
    assert [row["relevance_error"] for row in rows] == [number / 1000 for number in numbers]
    sources, targets = (sum(map(len, ids)) for ids in (corpus.source_ids, corpus.target_ids))
    assert (report["sentences"], report["parsed"], report["aligned"]) == (NUMBER, NUMBER, NUMBER)
    assert report["queries"] == {"encoder": sources, "decoder": targets, "cross": targets + NUMBER}
    assert report["arcs"] == {
        relation: corpus.count(relation) for relation in ("nsubj", "obj", "amod", "advmod")
    }
    assert report["labelled"] == {
        k: sum(bool(r["functions"]) for r in rows if r["type"] == k) for k in KINDS
    }
    examples = read_json(files["examples"])
    best = max(rows[:4], key=lambda row: row["rarest"])
    expected = (best["layer"], best["head"], best["rarest"])
    assert (examples["layer"], examples["head"], examples["score"]) == expected
    assert len(examples["sentences"]) == 3
    for sentence in examples["sentences"]:
        assert sentence["tokens"][-1] == "</s>"
        assert "".join(sentence["tokens"][:-1]).replace("▁", " ").strip() in corpus.sources
        assert np.array(sentence["attention"]).shape == (len(sentence["tokens"]),) * 2
        assert np.sum(sentence["attention"], axis=1) == pytest.approx(1.0, abs=1e-4)
        assert sentence["rarest"] < len(sentence["tokens"]) - 1


def test_a_sentence_without_a_tree_is_not_aligned(model, files, analysed, corpus) -> None:
    write_parses(
        files["parses"], [[] if number == 7 else tree for number, tree in enumerate(corpus.trees)]
    )
    assert analysed()[1]["aligned"] == NUMBER - 1


def test_the_case_of_preprocessed_text_does_not_matter(
    model, files, analysed, corpus: Corpus, token_file
) -> None:
    ids = corpus.bpe.encode(apply(corpus.sources, language="en", mode="paper"))
    token_file("analysis", ids, corpus.target_ids)
    expected, _ = analysed(preprocess="paper")
    write_pairs(
        files["text"],
        Pairs([text.upper() for text in corpus.sources], ["–"] * NUMBER, ["1"] * NUMBER),
    )
    rows, report = analysed(preprocess="paper")
    assert (rows, report["aligned"]) == (expected, NUMBER)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_without_heads_of_one_type(model, files, analysed, kind) -> None:
    model.keep_heads({"encoder": [[1], []], kind: [[], []]})
    save(model, files["model"], training={})
    rows, _ = analysed()
    expected = {"encoder": 1, "decoder": 4, "cross": 4, kind: 0}
    assert {k: sum(row["type"] == k for row in rows) for k in KINDS} == expected
    assert all(math.isfinite(row["relevance"]) and math.isfinite(row["confidence"]) for row in rows)
    found = read_json(files["examples"])
    assert (
        (found["sentences"] == [])
        == (found["kind"] == "no encoder head is left")
        == (kind == "encoder")
    )


def test_without_an_example_the_reason_is_there(model, files, analysed, monkeypatch) -> None:
    monkeypatch.setattr(maps, "EXAMPLE_TOKENS", range(90, 99))
    analysed()
    assert read_json(files["examples"])["kind"].startswith(
        "no sentence of 90 to 98 subwords has a token beyond"
    )


def test_parses_of_another_text_are_a_mistake(model, files, analysed) -> None:
    write_parses(files["parses"], [[Word("far", 990, 995, 0, "root", "X")]])
    with pytest.raises(UserError, match="no tree can be aligned with"):
        analysed()


def test_a_relation_that_does_not_occur_is_counted_and_named(
    model, analysed, corpus: Corpus, caplog
) -> None:
    rows, report = analysed(relations=["nsubj", "vocative", "dobj"])  # "dobj" is Stanford's name
    for row in rows[:4]:
        assert row["vocative_arcs"] == 0 and math.isnan(row["vocative_head_to_dependent"])
    expected = {"nsubj": corpus.count("nsubj"), "vocative": 0, "dobj": corpus.count("obj")}
    assert report["arcs"] == expected
    assert report["fewer_than_least_arcs"] == ["vocative"]
    assert "no arc of 'vocative'; the parses contain " in caplog.text


# Attention maps.

SOURCES, TARGETS = [[5, 9, 4, 17], [8], [6, 6, 12], [5]], [[4, 12], [7, 15, 9], [11], []]


@pytest.fixture
def pruned(tiny_model) -> Transformer:
    model = tiny_model(layers=2, heads=3, width=12)
    model.keep_heads({"encoder": [[], [0, 2]], "decoder": [[], []], "cross": [[1], [0, 1, 2]]})
    return model


def test_memory_of_maps_does_not_grow_with_the_length(tiny_model, store, monkeypatch) -> None:
    model = tiny_model()
    data = store([[5] * 3] * 40 + [[5] * 30] * 40, [[4] * 3] * 40 + [[4] * 30] * 40)
    monkeypatch.setattr(maps, "FLOATS", 20_000)
    batches = list(maps.attention_maps(model, data, tokens=640))
    assert max(weights.numel() for batch in batches for weights in batch.weights.values()) < 25_000
    assert len(batches[0].sentences) == 40  # short sentences stay together
    assert np.array_equal(np.concatenate([batch.sentences for batch in batches]), np.arange(80))


def test_maps_of_a_pruned_model_are_the_model_s_own(pruned: Transformer, store) -> None:
    data, seen = store(SOURCES, TARGETS), []
    for batch in maps.attention_maps(pruned, data, tokens=10):
        expected = {"encoder": 2, "decoder": 0, "cross": 4}
        assert {kind: w.shape[1] for kind, w in batch.weights.items()} == expected
        for row, number in enumerate(batch.sentences.tolist()):
            seen.append(number)
            source, target = len(SOURCES[number]), len(TARGETS[number])
            assert batch.queries["encoder"][row].tolist() == [
                i < source for i in range(batch.source.shape[1])
            ]
            assert torch.equal(batch.keys["cross"][row], batch.keys["encoder"][row])
            # Begin-of-sentence is one, too; a sentence without a target has none.
            assert int(batch.queries["cross"][row].sum()) == (target + 1 if target else 0)
            assert batch.keys["decoder"][row].tolist() == batch.queries["cross"][row].tolist()
            # Begin-of-sentence sees only itself.
            positions = range(batch.keys["decoder"].shape[1])
            assert batch.queries["decoder"][row].tolist() == [0 < i <= target for i in positions]
            activations: Activations = {}
            alone = make_batch(data, np.array([number]))
            with torch.inference_mode():
                pruned(alone.source, alone.target_in, activations)
            for kind, queries, keys in (("encoder", source, source), ("cross", target, source)):
                layers = [
                    activations[kind, n, "weights"][0]
                    for n in range(2)
                    if (kind, n, "weights") in activations
                ]
                ours = batch.weights[kind][row, :, : queries + 1, : keys + 1]
                assert torch.allclose(ours, torch.cat(layers), atol=1e-6)
                assert (batch.weights[kind][row, ..., keys + 1 :] == 0).all()
    assert sorted(seen) == [0, 1, 2, 3]


def test_the_norm_of_a_head_is_that_of_what_the_residual_stream_loses_without_it(
    pruned: Transformer, store
) -> None:
    data = store([[4, 5, 6, 7], [8, 9]], [[4, 5], [6, 7, 8]])
    [batch] = maps.attention_maps(pruned, data)
    inputs, activations = make_batch(data, batch.sentences), {}
    with torch.no_grad():
        pruned(inputs.source, inputs.target_in, activations)
    for kind in KINDS:
        row = 0
        for attention in pruned.attentions(kind):
            if not attention.heads:
                continue
            context = activations[kind, attention.layer, "context"]
            whole = attention.combine(context)
            for head in range(len(attention.heads)):
                without = context.clone()
                without[:, head] = 0.0
                lost = (whole - attention.combine(without)).norm(dim=-1)
                assert batch.norms[kind][:, row].numpy() == pytest.approx(
                    lost.detach().numpy(), rel=1e-4, abs=1e-6
                )
                row += 1
        assert row == batch.norms[kind].shape[1]


def test_argmax_leaves_eos_out_and_takes_the_first_of_equals() -> None:
    """Two sentences, of three and one tokens; padding and EOS have the largest weights."""
    real = torch.tensor([[True, True, True, False], [True, False, False, False]])
    first = [[0.1, 0.6, 0.2, 0.1], [0.2, 0.1, 0.3, 0.4], [0.25, 0.25, 0.1, 0.4]]
    weights = torch.tensor([first, [[0.3, 0.7, 0, 0]] * 3])
    assert maps.argmax(weights[:, None], real)[:, 0].tolist() == [[1, 2, 0], [0, 0, 0]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_output_norm_is_its_mean_over_queries(tiny_model, store, kind) -> None:
    counts, norms = OfType(kind, 4, reach=6), []
    for batch in maps.attention_maps(tiny_model(), store(SOURCES, TARGETS), tokens=10):
        best = maps.argmax(batch.weights[kind], batch.keys[kind]).numpy()
        counts.add(batch, best, eos=3)
        norms.append(batch.norms[kind].transpose(1, 2)[batch.queries[kind]])
    expected = torch.cat(norms).mean(0)
    assert counts.means()["output_norm"] == pytest.approx(expected.numpy(), rel=1e-5)


def test_tags_are_neither_queries_nor_keys(pruned: Transformer, store) -> None:
    data = store([[7, *ids] for ids in SOURCES], [[8, *ids] for ids in TARGETS])
    data = replace(data, tokens=replace(data.tokens, source_tags=(7,), target_tags=(8,)))
    for batch in maps.attention_maps(pruned, data, tokens=12):
        for row, number in enumerate(batch.sentences.tolist()):
            source, target = len(SOURCES[number]), len(TARGETS[number])
            places = range(batch.source.shape[1])
            expected = [0 < place <= source for place in places]
            for places_of in (batch.queries["encoder"], batch.keys["encoder"], batch.keys["cross"]):
                assert places_of[row].tolist() == expected
            # The tag takes the place of begin-of-sentence.
            places = range(batch.keys["decoder"].shape[1])
            expected = [bool(target) and 0 < place <= target + 1 for place in places]
            for places_of in (batch.queries["cross"], batch.keys["decoder"]):
                assert places_of[row].tolist() == expected
            assert batch.queries["decoder"][row].tolist() == [1 < p <= target + 1 for p in places]
