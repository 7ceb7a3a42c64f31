"""BERT: equal to that of transformers, masks equal to removal, importance equal to finite
differences."""

import copy
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from small import mask_derivatives

from specialized_heads.classification import scores
from specialized_heads.classification.scores import predict
from specialized_heads.classification.tasks import read_sentences
from specialized_heads.classification.transfer import classifier
from specialized_heads.classification.wordpiece import (
    SPECIAL,
    Cleaning,
    tokenizer_of,
    write_vocabulary,
)
from specialized_heads.classification.wordpiece import read_vocabulary as wordpiece_vocabulary
from specialized_heads.exchange.huggingface import load_bert, read_vocabulary
from specialized_heads.model.architecture import heads_of
from specialized_heads.model.bert import Bert, BertArchitecture
from specialized_heads.model.checkpoint import load, save
from specialized_heads.model.gates import HardConcrete
from specialized_heads.pruning import criteria
from specialized_heads.pruning.ablation import mask
from specialized_heads.stage import UserError
from specialized_heads.training.batching import make_batch
from specialized_heads.training.objective import (
    MaskedLanguageModel,
    evaluate,
    masked_tokens,
    objective_of,
)

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

ROOT = Path(__file__).parents[2]
MINILM = ROOT / "data/minilm"
SHAPES = [
    {},
    {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 16},
    {
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "intermediate_size": 5,
        "hidden_act": "relu",
    },
]


@pytest.fixture
def inputs(vocabulary) -> tuple[torch.Tensor, torch.Tensor]:
    """Two segments and padding: ids and segments."""
    a, sep = vocabulary.encode(["the dogs abc."])[0], vocabulary.special.eos
    rows = [[2, *a, sep, *a[:2], sep], [2, *a[1:3], sep, *a, *a, sep]]
    ids, segments = torch.zeros(2, 20, dtype=torch.long), torch.zeros(2, 20, dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
        segments[number, row.index(sep) + 1 : len(row)] = 1
    return ids, segments


def test_masked_tokens_are_predicted_as_by_transformers(published, vocabulary, inputs) -> None:
    theirs, folder = published("BertForMaskedLM")
    ours = load_bert(folder, vocabulary=vocabulary)
    ids, segments = inputs
    assert not ours.architecture.labels
    with torch.inference_mode():
        expected = theirs(ids, attention_mask=ids != 0, token_type_ids=segments).logits
        found = ours.before_output(ours(ids)) @ ours.word_embedding.T + ours.output_bias
    assert torch.allclose(found[ids != 0], expected[ids != 0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["BertModel", "BertForSequenceClassification"])
def test_an_encoder_keeps_its_pooler_for_fine_tuning(
    published, vocabulary, inputs, kind: str, shape
) -> None:
    theirs, folder = published(kind, **shape)
    model = classifier(
        load_bert(folder, vocabulary=vocabulary), labels=3, dropout=0.0, seed=1
    ).eval()
    ids, segments = inputs
    with torch.inference_mode():
        expected = getattr(theirs, "bert", theirs)(
            ids, attention_mask=ids != 0, token_type_ids=segments
        )
        states = model(ids)
        assert torch.allclose(
            states[ids != 0], expected.last_hidden_state[ids != 0], rtol=0, atol=1e-5
        )
        pooled = torch.tanh(model.transform(states[:, 0]))
        assert torch.allclose(pooled, expected.pooler_output, rtol=0, atol=1e-5)
        assert model.logits(states).shape == (2, 3) and pooled.std() > 0.01


@pytest.mark.skipif(
    not MINILM.is_dir(), reason="needs data/minilm: python resources/fetch_minilm.py"
)
def test_states_and_token_ids_of_all_minilm_l6_v2_are_those_of_transformers(tmp_path: Path) -> None:
    """The pretrained encoder of config/minilm.yaml."""
    write_vocabulary(tmp_path / "vocabulary.json", *read_vocabulary(MINILM))
    vocabulary = wordpiece_vocabulary(tmp_path / "vocabulary.json")
    ours = load_bert(MINILM, vocabulary=vocabulary)
    theirs = transformers.BertModel.from_pretrained(MINILM).eval()
    tokeniser = transformers.BertTokenizer.from_pretrained(MINILM)
    sentences = read_sentences([ROOT / "resources/tatoeba_en_de/corpus.parquet"])["test"][:50]
    assert len(sentences) == 50
    for text, found in zip(sentences, vocabulary.encode(sentences), strict=True):
        ids = tokeniser(text)["input_ids"]
        assert [vocabulary.special.start, *found, vocabulary.special.eos] == ids
        with torch.inference_mode():
            states = ours(torch.tensor([ids]))
            expected = theirs(torch.tensor([ids])).last_hidden_state
        torch.testing.assert_close(states, expected, rtol=0, atol=1e-5)


def test_capitals_without_a_word_about_case_are_refused(published, vocabulary) -> None:
    _, folder = published("BertModel")
    with open(folder / "vocab.txt", "a", encoding="utf-8") as file:
        file.write("Dog\n")
    said = r"vocab\.txt: no file says whether .* has capitals \('Dog'\); write"
    with pytest.raises(UserError, match=said):
        read_vocabulary(folder)
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert not read_vocabulary(folder)[1].lowercase


def test_an_output_matrix_of_its_own_is_refused(published, vocabulary) -> None:
    _, folder = published("BertForMaskedLM", tie_word_embeddings=False)
    said = "cls.predictions.decoder.weight differs from .*word_embeddings.weight"
    with pytest.raises(UserError, match=said):
        load_bert(folder, vocabulary=vocabulary)


@pytest.mark.parametrize("with_json", [True, False])
def test_token_ids_are_those_of_transformers(published, with_json: bool, tmp_path: Path) -> None:
    _, folder = published("BertModel")
    with open(folder / "vocab.txt", "a", encoding="utf-8") as file:
        file.write("\n\n")  # as transformers accepts it
    theirs = transformers.BertTokenizer.from_pretrained(folder)
    if with_json:
        theirs.save_pretrained(folder)
        (folder / "vocab.txt").write_text("[PAD]\n")  # tokenizer.json precedes it
    write_vocabulary(tmp_path / "v.json", *read_vocabulary(folder))
    texts = ["the Dogs abc.", "dog's  a\u200bb", "É [x] 北"]
    vocabulary = wordpiece_vocabulary(tmp_path / "v.json")
    assert vocabulary.encode(texts) == theirs(texts, add_special_tokens=False)["input_ids"]
    # What looks like a special token in text is text.
    assert not {vocabulary.special.eos, vocabulary.special.pad} & {
        *vocabulary.encode(["the [SEP] dog [PAD]"])[0]
    }
    theirs.add_tokens(["<e1>"])
    theirs.save_pretrained(folder)
    with pytest.raises(UserError, match="adds '<e1>' for text, which is not supported"):
        read_vocabulary(folder)


WORDS = [*SPECIAL, "é", "A", "a"]


def fast(cleaning: Cleaning) -> dict:
    """The content of `tokenizer.json`."""
    return json.loads(tokenizer_of(WORDS, cleaning).to_str())


CASED = Cleaning(lowercase=False, strip_accents=False, handle_chinese_chars=False)
LOWER_CASED = CASED._replace(lowercase=True)
CONFIG, PLAIN = "tokenizer_config.json", json.dumps(fast(CASED) | {"normalizer": None})
CHINESE = {"tokenize_chinese_chars": False}
NESTED = {"type": "Sequence", "normalizers": [{"type": "NFC"}, fast(CASED)["normalizer"]]}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({CONFIG: {"do_lower_case": True}}, Cleaning()),
        ({"tokenizer.json": fast(CASED) | {"normalizer": NESTED}}, CASED),
        ({"tokenizer.json": fast(CASED), CONFIG: {"do_lower_case": True}}, LOWER_CASED),
        ({CONFIG: {"do_lower_case": False, "strip_accents": True}}, Cleaning(False, True, True)),
        ({CONFIG: {"do_lower_case": True} | CHINESE}, Cleaning(True, None, False)),
    ],
)
@pytest.mark.parametrize("with_text", [True, False])
def test_text_is_cleaned_as_the_tokeniser_says(tmp_path, files, expected, with_text) -> None:
    for name, content in (files | {"config.json": {"model_type": "bert"}}).items():
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    if with_text or "tokenizer.json" not in files:
        (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    assert read_vocabulary(tmp_path) == (WORDS, expected)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (CONFIG, b"[1]", "tokenizer_config.json: not JSON of a model"),
        (CONFIG, b'{"do_lower_case": "no"}', "'str' object is not an instance of 'bool'"),
        (CONFIG, b'{"tokenizer_class": "BertJapaneseTokenizer"}', "is a BertJapaneseTokenizer"),
        ("tokenizer.json", b'{"model": {"type": "BPE", "vocab": {}}}', "'BPE'; only 'WordPiece'"),
        ("tokenizer.json", b"[1]", "tokenizer.json: not JSON of a model"),
        ("tokenizer.json", PLAIN.encode(), "tokenizer.json: normalizer has type None"),
        ("vocab.txt", "é".encode("latin-1"), "vocab.txt: not text in UTF-8"),
        ("vocab.txt", None, "vocab.txt: no such file"),
    ],
)
def test_another_tokeniser_is_refused(tmp_path, name, content, message) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "vocab.txt").write_text("[PAD]\n", encoding="utf-8")
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_vocabulary(tmp_path)


def tiny(labels: int = 3, *, layers: int = 2, heads: int = 2, dropout: float = 0.0) -> Bert:
    """A classifier whose weights depend on nothing but the arguments."""
    sizes = {"layers": layers, "heads": heads, "width": 8, "feed_forward": 12, "vocabulary": 20}
    sizes |= {"positions": 16}
    model = Bert(
        BertArchitecture.full(**sizes, labels=labels, separator=3, mask=4), dropout=dropout
    )
    random = np.random.default_rng(1)
    for name, parameter in model.named_parameters():
        noise = torch.from_numpy(random.standard_normal(tuple(parameter.shape))).float()
        parameter.data = noise * 0.5 + float("norm" in name and name.endswith("weight"))
    return model.eval()


@pytest.fixture
def labelled(store):
    """Six inputs, some of two segments, with labels."""
    sources = [
        [2, 5, 6, 7],
        [2, 8, 3, 9],
        [2, 5],
        [2, 7, 7, 3, 10, 11],
        [2, 12, 13, 14, 15],
        [2, 6, 3, 5],
    ]
    return store(sources, [[0], [2], [1], [0], [1], [2]])


@pytest.mark.parametrize(
    "removed", [{("encoder", 1, 2)}, {("encoder", 1, 1), ("encoder", 1, 2), ("encoder", 2, 1)}]
)
def test_masking_equals_removal(labelled, removed, tmp_path) -> None:
    model = tiny()
    ids = make_batch(labelled, np.arange(6)).source
    mask(model, [frozenset(removed)])
    masked = model.logits(model(ids))
    for attention in model.attentions():
        attention.gate = None
    assert not torch.allclose(masked, model.logits(model(ids)))
    model.remove_heads(removed)
    assert torch.allclose(masked, model.logits(model(ids)), atol=1e-5)
    every = {("encoder", layer, head) for layer in (1, 2) for head in (1, 2)}
    assert set(heads_of(model.architecture, scope="all")) == every - removed
    save(model, tmp_path / "model.safetensors", training={})
    again = load(tmp_path / "model.safetensors")
    assert again.architecture == model.architecture
    assert torch.equal(again.logits(again(ids)), model.logits(model(ids)))


def test_removals_share_the_layers_below_them(labelled) -> None:
    model = tiny()
    two = [("encoder", 1, 1), ("encoder", 2, 2)]
    removals = list(map(frozenset, ([], [("encoder", 2, 1)], [("encoder", 1, 2)], two)))
    found = predict(model, labelled, removals)
    assert len({tuple(labels) for labels in found}) > 1
    for labels, removal in zip(found, removals, strict=True):
        smaller = copy.deepcopy(model)
        smaller.remove_heads(removal)
        assert [labels.tolist()] == predict(smaller, labelled).tolist()


@torch.inference_mode()
def test_classifying_needs_one_state_of_the_last_layer(labelled) -> None:
    model, ids = tiny(), make_batch(labelled, np.arange(6)).source
    for each, tolerance in ((model, 1e-5), (model.in_precision(torch.bfloat16), 0.05)):
        torch.testing.assert_close(
            each.classify(*each.embed(ids)),
            model.logits(model(ids)),
            atol=tolerance,
            rtol=tolerance,
        )


@pytest.mark.parametrize("labels", [0, 3])
@pytest.mark.parametrize("closed", [False, True])
def test_packed_losses_and_gradients_equal_those_of_padded_batches(
    labelled, labels: int, closed: bool
) -> None:
    model = tiny(labels).double().train()
    for attention in model.attentions():
        attention.gate = HardConcrete(2, log_alpha=0.3).double()
        if closed:
            attention.gate.noise[0] = 1e-6
    objective, trained = objective_of(model), [p for p in model.parameters() if p.requires_grad]
    batch, found = objective.batch(labelled, np.arange(6), seed=1), []
    assert model.packs()
    for packs in (True, False):
        model.packs = lambda packs=packs: packs
        loss = objective.loss(model, batch, label_smoothing=0.1, activations=None)
        found.append([loss, *torch.autograd.grad(loss, trained)])
    for packed, padded in zip(*found, strict=True):
        torch.testing.assert_close(packed, padded, rtol=1e-6, atol=1e-6)


def test_importance_is_that_of_finite_differences(labelled, monkeypatch) -> None:
    from specialized_heads.model import attention

    # The project's own is in float32.
    monkeypatch.setattr(attention, "softmax", lambda scores: torch.softmax(scores, -1))
    model, batch = tiny().double(), make_batch(labelled, np.arange(6))
    found, loss = criteria.sensitivities(model, batch), objective_of(model).loss
    expected = mask_derivatives(model, lambda: float(loss(model, batch, label_smoothing=0.0)))
    assert len(expected) == 4
    for (kind, layer, head), difference in expected.items():
        assert float(found[kind, layer][:, head].sum()) == pytest.approx(
            difference, rel=1e-5, abs=1e-8
        )
    rows = criteria.table(model, criteria.importances(tiny(), labelled))
    assert [(row["type"], row["layer"], row["head"]) for row in rows] == heads_of(
        model.architecture, scope="all"
    )


def test_masked_language_modelling_hides_and_asks_for_the_same_tokens(store) -> None:
    sources = [[2, *range(5, 15)], [2, 5], [2, *range(6, 12)]]
    data, objective = store(sources, [[]] * 3), MaskedLanguageModel(tiny(0).architecture)
    everything = np.arange(3)
    assert masked_tokens(np.array([0, 1, 6, 10, 20])).tolist() == [0, 1, 1, 2, 3]
    assert objective.units(data, everything) == 2 + 1 + 1
    plain = make_batch(data, everything).source
    seen = set()
    for seed in range(40):
        batch = objective.batch(data, everything, seed=seed)
        asked = batch.target_out != 0
        assert asked.sum(1).tolist() == [2, 1, 1]
        assert torch.equal(batch.target_out[asked], plain[asked])
        assert torch.equal(batch.source[~asked], plain[~asked])
        assert not asked[:, 0].any() and not (plain[asked] == 3).any()
        seen |= set((batch.source[asked] == 4).tolist())
        again = objective.batch(data, everything, seed=seed)
        assert torch.equal(again.source, batch.source)
    assert seen == {True, False}
    assert objective.loss(tiny(0), batch, label_smoothing=0.0) > 0


def test_of_tokens_asked_for_80_in_100_are_hidden_and_10_kept(store) -> None:
    objective = MaskedLanguageModel(tiny(0).architecture)
    data = store([[2, *range(5, 15)]] * 20_000, [[]] * 20_000)
    plain = make_batch(data, np.arange(20_000)).source
    batch = objective.batch(data, np.arange(20_000), seed=1)
    asked = batch.target_out != 0
    found, before = batch.source[asked], plain[asked]
    # Of the tokens drawn in place of others, 3 of 20 are special and 1 of 20 is the token itself.
    shares = [float((found == token).double().mean()) for token in (4, before)]
    assert shares == pytest.approx([0.8 + 0.1 * 3 / 20, 0.1 + 0.1 / 20], abs=0.008)


def test_the_loss_of_a_classifier_is_its_mean_over_sentences(labelled) -> None:
    model, labels = tiny(), torch.tensor([0, 2, 1, 0, 1, 2])
    with torch.no_grad():
        logits = model.logits(model(make_batch(labelled, np.arange(6)).source))
    expected = torch.nn.functional.cross_entropy(logits, labels).item()
    assert evaluate(model, labelled) == pytest.approx(expected, rel=1e-5)


def test_a_gain_in_speed_is_more_sentences_per_second(
    call, token_file, monkeypatch, tmp_path: Path
) -> None:
    """A model takes a second, and another one for each head."""
    files = {"model": tmp_path / "model.safetensors", "importance": tmp_path / "importance.parquet"}
    save(tiny(), files["model"], training={})
    tokens = token_file("test", [[2, 5, 6, 7], [2, 8, 3, 9]], [[0], [1]])
    importance = {"model": files["model"], "dev": tokens, "output": files["importance"]}
    call(criteria.importance, settings={"device": "cpu"}, **importance)
    monkeypatch.setattr(
        scores, "seconds", lambda model, *_: 1.0 + sum(map(len, model.architecture.encoder))
    )
    files |= {"tokens": tokens, "output": tmp_path / "speed.parquet"}
    call(scores.speed, settings={"device": "cpu", "batches": [64]}, **files)
    whole, half = pd.read_parquet(files["output"]).to_dict("records")
    assert (whole["heads"], whole["speed"]) == (4, 256 / 5)
    assert (half["heads"], half["speed"]) == (2, 256 / 3)
    assert half["gain"] == half["gain_low"] == half["gain_high"] == pytest.approx(5 / 3 - 1)
