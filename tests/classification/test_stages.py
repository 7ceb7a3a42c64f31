"""The stages of classification: from examples to a fine-tuned model, its scores, its ablation, and
its speed."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from small import PRUNING, TRAINING, outputs

from specialized_heads.classification import scores, tasks
from specialized_heads.classification.scores import baselines, score
from specialized_heads.classification.tasks import SCHEMA, examples, tokens
from specialized_heads.classification.transfer import finetune, pretrain, vocabulary
from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.exchange import huggingface
from specialized_heads.model.checkpoint import load, read_tensors
from specialized_heads.pruning import criteria, prune
from specialized_heads.stage import UserError
from specialized_heads.tables import write_table

LETTERS = "abcdefgh"
SIZES = {"layers": 2, "heads": 2, "width": 16, "feed_forward": 32, "longest": 16, "dropout": 0.1}
LEARNING = TRAINING | {"label_smoothing": 0.0, "learning_rate": 0.02, "updates": 40}


@pytest.fixture
def pretrained(call, tmp_path: Path, vocabulary_file: Path) -> Path:
    """A model that was pre-trained on a few sentences."""
    random = np.random.default_rng(1)
    texts = [" ".join(random.choice(list(LETTERS), 5)) for _ in range(80)]
    rows = [{"first": text, "second": None, "label": 0} for text in texts]
    write_table(tmp_path / "text.parquet", pa.Table.from_pylist(rows, schema=SCHEMA))
    files = {"vocabulary": vocabulary_file, "output": tmp_path / "text.safetensors"}
    call(tokens, settings={"longest": 16}, text=tmp_path / "text.parquet", **files)
    data = {"train": tmp_path / "text.safetensors", "dev": tmp_path / "text.safetensors"}
    settings = SIZES | {"seed": 1, "training": LEARNING, "device": "cpu"}
    output = {
        "output": tmp_path / "pretrained.safetensors",
        "records": tmp_path / "pretrained.jsonl",
    }
    call(
        pretrain,
        settings=settings,
        vocabulary=vocabulary_file,
        state=tmp_path / "state",
        **data,
        **output,
    )
    return tmp_path / "pretrained.safetensors"


@pytest.fixture
def task(call, tmp_path: Path, vocabulary_file: Path) -> dict[str, Path]:
    """Token files of a task that no bag of words solves: does `a` precede `b`? The second segment
    is noise."""
    random, files = np.random.default_rng(2), {}
    for name, number in (("train", 400), ("dev", 60), ("test", 100), ("second", 40)):
        rows = []
        for place in range(number):
            words = ["a", "b"] if place % 2 else ["b", "a"]
            words.insert(random.integers(3), str(random.choice(list("cdef"))))
            rows.append(
                {"first": " ".join(words), "second": "g" if place % 3 else None, "label": place % 2}
            )
        write_table(tmp_path / f"{name}.parquet", pa.Table.from_pylist(rows, schema=SCHEMA))
        files[name] = tmp_path / f"{name}.safetensors"
        text = {"text": tmp_path / f"{name}.parquet", "vocabulary": vocabulary_file}
        call(tokens, settings={"longest": 16}, **text, output=files[name])
    return files


@pytest.fixture
def learn(call, tmp_path: Path, pretrained: Path, task: dict[str, Path]) -> Callable[[str], Path]:
    """`learn("one")`: the model fine-tuned in a folder of this name."""

    def run(name: str) -> Path:
        folder = tmp_path / name
        settings = {"seed": 2, "labels": 2, "dropout": 0.1}
        settings |= {"training": LEARNING | {"updates": 80, "learning_rate": 0.01}, "moments": [20]}
        data = {
            "train": task["train"],
            "dev": task["dev"],
            "checkpoints": folder / "checkpoints.safetensors",
        }
        call(
            finetune,
            settings=settings | {"device": "cpu"},
            pretrained=pretrained,
            **data,
            **outputs(folder),
        )
        return folder

    return run


def test_inputs_are_cut_to_their_longest_and_never_yield_special_tokens(vocabulary) -> None:
    ids, lengths = vocabulary.inputs(
        ["a b [SEP] c", "a " * 20, "a"], [None, "b " * 20, "b " * 20], longest=11
    )
    rows = np.split(ids, np.cumsum(lengths)[:-1])
    names = [[vocabulary.tokenizer.id_to_token(number) for number in row] for row in rows]
    assert names[0][:4] == ["[CLS]", "a", "b", "["]
    assert names[1] == ["[CLS]", *"aaaa", "[SEP]", *"bbbb"]
    assert names[2] == ["[CLS]", "a", "[SEP]", *"bbbbbbb"]


def test_a_vocabulary_is_learned_from_the_training_text(call, tmp_path: Path) -> None:
    texts = [f"sentence {a}{b} of words {b}{a}" for a in LETTERS for b in LETTERS]
    pd.DataFrame({"source": texts}).to_parquet(tmp_path / "corpus.parquet")
    outputs = {name: tmp_path / f"{name}.x" for name in ("vocabulary", "train", "dev")}
    call(
        vocabulary,
        settings={"size": 60, "longest": 12},
        text=[tmp_path / "corpus.parquet"],
        **outputs,
    )
    learned = json.loads(outputs["vocabulary"].read_bytes())
    assert learned["tokens"][:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    train = load_tokens(outputs["train"])
    assert set(train.source[train.source_offsets[:-1]]) == {2} and not train.target_lengths.any()
    assert 1 not in train.source[:1000]


def test_fine_tuning_beats_a_bag_of_words(call, learn, task, tmp_path: Path) -> None:
    folder = learn("one")
    moments = read_tensors(folder / "checkpoints.safetensors")
    assert any(name.startswith("update20/") for name in moments)
    files = {"test": task["test"], "second": task["second"]}
    call(
        baselines,
        settings={"metric": "accuracy", "labels": 2},
        **task,
        output=tmp_path / "baselines.json",
    )
    model = {"model": folder / "model.safetensors", "baseline": folder / "model.safetensors"}
    call(
        score,
        settings={"metric": "accuracy", "device": "cpu"},
        **model,
        **files,
        output=tmp_path / "score.json",
    )
    others, found = (
        json.loads((tmp_path / name).read_text()) for name in ("baselines.json", "score.json")
    )
    assert others["test"]["majority"] == 50.0 and others["test"]["bag_of_words"]["score"] < 65
    assert found["test"]["score"] > 80 and found["second"]["sentences"] == 40
    assert (found["test"]["delta"], found["test"]["p_value"]) == (0.0, 1.0)


def test_heads_are_ablated_ranked_timed_and_pruned(call, learn, task, tmp_path: Path) -> None:
    folder = learn("one")
    model, device = folder / "model.safetensors", {"device": "cpu"}
    ranked = tmp_path / "importance.parquet"
    call(criteria.importance, settings=device, model=model, dev=task["dev"], output=ranked)
    single, steps = tmp_path / "single.parquet", tmp_path / "steps.parquet"
    settings = device | {"metric": "accuracy"}
    given = {"model": model, "tokens": task["test"]}
    [whole] = scores.predict(load(model), load_tokens(task["test"]))
    call(
        scores.ablation,
        settings=settings | {"alone": True},
        **given,
        output=single,
        state=tmp_path / "state",
    )
    table = pd.read_parquet(single)
    assert table["what"].tolist() == ["without"] * 4 + ["alone"] * 4
    accuracy = 100 * (whole == load_tokens(task["test"]).target).mean()
    assert table["score_full"].tolist() == pytest.approx([accuracy] * 8)
    assert table["delta"].tolist() == pytest.approx((table["score"] - accuracy).tolist())
    removed = {"importance": ranked, "output": steps, "state": tmp_path / "state"}
    call(scores.ablation, settings=settings, **given, **removed)
    steps_table = pd.read_parquet(steps)
    assert steps_table["removed"].tolist() == [0, 1, 2, 3, 4]
    assert set(steps_table["pruned"]) == {"all"}
    assert steps_table["score"].iloc[0] == pytest.approx(accuracy)

    files = {"importance": ranked, "tokens": task["test"], "output": tmp_path / "speed.parquet"}
    call(scores.speed, settings=device | {"batches": [1, 64]}, model=model, **files)
    times = pd.read_parquet(tmp_path / "speed.parquet")
    assert times["heads"].tolist() == [4, 2, 4, 2] and (times["speed"] > 0).all()
    assert times["gain"].notna().sum() == 2

    written = outputs(tmp_path / "pruned") | {"gates": tmp_path / "gates.json"}
    settings = PRUNING | {"scope": "all", "lam": None, "target_heads": 1, "gate_learning_rate": 0.5}
    settings |= {"training": LEARNING}
    call(prune, settings=settings, baseline=model, train=task["train"], dev=task["dev"], **written)
    assert sum(map(len, load(written["output"]).architecture.encoder)) == 1
    assert len(json.loads(written["gates"].read_text())["rows"]) == 4


def test_a_published_encoder_is_imported(call, published, tmp_path: Path) -> None:
    _, folder = published("BertForSequenceClassification")
    files = {"output": tmp_path / "model.safetensors", "vocabulary": tmp_path / "v.json"}
    settings = {"folder": str(folder), "longest": 16}
    call(huggingface.import_bert, settings=settings, **files)
    assert load(files["output"]).architecture.labels == 1
    with pytest.raises(UserError, match=r"max_length: 64 subwords, but .* has 32 positions"):
        call(huggingface.import_bert, settings=settings | {"longest": 64}, **files)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UserError, match="pickled weights are not loaded"):
        call(huggingface.import_bert, settings=settings, **files)


def test_matthews_correlation_f1_and_accuracy() -> None:
    labels, predictions = np.array([1, 1, 1, 0, 0, 0, 1, 1]), np.array([1, 1, 0, 0, 0, 1, 1, 1])
    found = scores.compare(labels, predictions, np.ones(8, int), metric="matthews", kinds=2)
    assert found.score == pytest.approx(100 * (4 * 2 - 1 * 1) / np.sqrt(5 * 5 * 3 * 3))
    assert found.score - found.delta == 0.0 and found.score_low < found.score < found.score_high
    assert scores.compare(labels, predictions, predictions, metric="accuracy", kinds=2)[3:] == (
        0.0,
        0.0,
        0.0,
        1.0,
    )
    found = scores.compare(labels, predictions, np.ones(8, int), metric="f1", kinds=2)
    assert found.score == pytest.approx(100 * 2 * 4 / (5 + 5))
    assert found.score - found.delta == pytest.approx(1000 / 13)
    assert scores.scores(np.array([[[3, 0], [0, 0]]]), "f1")[0] == 0.0
    three = np.array([[[2, 0, 0], [0, 3, 0], [1, 0, 4]]])
    assert scores.scores(three, "matthews")[0] == pytest.approx(100 * 0.85, abs=1.5)


def test_examples_of_made_up_tasks_keep_to_their_sets(call, monkeypatch, tmp_path: Path) -> None:
    texts = [
        f"the {a}1 cat and the {b}2 dog saw {c}3 birds."
        for a in LETTERS
        for b in LETTERS
        for c in LETTERS
    ]
    pd.DataFrame({"source": texts}).to_parquet(tmp_path / "corpus.parquet")
    outputs = {name: tmp_path / f"{name}.parquet" for name in ("train", "dev", "test", "second")}
    source = {"kind": "shift", "train": 50, "test": 20}
    monkeypatch.setattr(tasks, "MOST_DEV", 6)
    corpus = {"matched": [tmp_path / "corpus.parquet"], "mismatched": [tmp_path / "corpus.parquet"]}
    call(
        examples, settings={"source": source}, **corpus, **outputs, counts=tmp_path / "counts.json"
    )
    tables = {name: pd.read_parquet(path) for name, path in outputs.items()}
    expected = {"train": 50, "dev": 6, "test": 20, "second": 20}
    assert {name: len(table) for name, table in tables.items()} == expected
    bags = {
        name: {" ".join(sorted(text.split())) for text in table["first"]}
        for name, table in tables.items()
    }
    assert not bags["train"] & bags["test"] and not bags["train"] & bags["dev"]
    files = outputs | {"counts": tmp_path / "counts.json"}
    call(examples, settings={"source": source, "pretrained_here": False}, **corpus, **files)
    second = pd.read_parquet(outputs["second"])["first"]
    assert len(second) == 20
    assert not {" ".join(sorted(text.split())) for text in second} & bags["train"]
    pd.DataFrame({"source": texts[:1]}).to_parquet(tmp_path / "one.parquet")
    few = corpus | {"mismatched": [tmp_path / "one.parquet"]}
    said = r"second.parquet: the set second of \d examples lacks the label "
    with pytest.raises(UserError, match=said):
        call(examples, settings={"source": source}, **few, **files)
