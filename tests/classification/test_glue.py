"""GLUE's files in their real layouts, every way in which they can be wrong, and the made-up
tasks."""

import io
import zipfile
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter

from specialized_heads.classification.tasks import (
    SETS,
    Example,
    halves,
    hold_out,
    read_glue,
    read_sentences,
    sentences_of,
    shift,
)
from specialized_heads.experiment import inputs
from specialized_heads.experiment.file import load
from specialized_heads.experiment.sources import TaskSource, glue_files
from specialized_heads.stage import UserError

PARSES = "\t( a ( b ) )" * 4
MNLI_COLUMNS = "index promptID pairID genre sentence1_binary_parse sentence2_binary_parse".split()
MNLI_COLUMNS += ["sentence1_parse", "sentence2_parse", "sentence1", "sentence2", "label1"]


def mnli(*rows: tuple[str, str, str], annotators: int) -> str:
    """The training set has one annotator, the development sets have five, in front of the gold
    label."""
    more = [f"label{number}" for number in range(2, annotators + 1)]
    lines = ["\t".join([*MNLI_COLUMNS, *more, "gold_label"])]
    for number, (first, second, label) in enumerate(rows):
        lines.append(
            f"{number}\t1\t1n\tfiction{PARSES}\t{first}\t{second}" + f"\t{label}" * (annotators + 1)
        )
    return "\n".join(lines) + "\n"


FILES = {
    "MNLI": {
        "MNLI/train.tsv": mnli(
            ('He said "no.', "He agreed.", "contradiction"), ("a", "b", "neutral"), annotators=1
        ),
        "MNLI/dev_matched.tsv": mnli(
            ("c", "d", "entailment"), ("undecided", "x", "-"), annotators=5
        ),
        "MNLI/dev_mismatched.tsv": mnli(("e", "f", "neutral"), annotators=5),
        "MNLI/original/multinli_1.0_train.txt": "another layout\n",
    },
    "SST-2": {
        "SST-2/train.tsv": "sentence\tlabel\nhide new secretions \t0\na `` quote '' \" here \t1\n",
        "SST-2/dev.tsv": "sentence\tlabel\nit 's a charming journey . \t1\n",
    },
    "CoLA": {
        "CoLA/train.tsv": "gj04\t1\t\tOur friends won't buy this.\ngj04\t0\t*\tThe more does Bill "
        "smoke.\n",
        "CoLA/dev.tsv": "gj04\t1\t\tThe sailors rode the breeze.\n",
    },
}
MRPC = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
MRPC += '1\t702876\t702977\tHe called "it" so.\tSo he called it.\n0\t1\t2\ta\tb\n'
EXPECTED = {
    "mnli": {
        "train": [Example('He said "no.', "He agreed.", 2), Example("a", "b", 1)],
        "test": [Example("c", "d", 0)],
        "second": [Example("e", "f", 1)],
    },
    "sst2": {
        "train": [
            Example("hide new secretions", None, 0),
            Example("a `` quote '' \" here", None, 1),
        ],
        "test": [Example("it 's a charming journey .", None, 1)],
    },
    "cola": {
        "train": [
            Example("Our friends won't buy this.", None, 1),
            Example("The more does Bill smoke.", None, 0),
        ],
        "test": [Example("The sailors rode the breeze.", None, 1)],
    },
}


def source(kind: str, **keys: object) -> TaskSource:
    return TypeAdapter(TaskSource).validate_python({"kind": kind, **keys})


def packed(files: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text.replace("\n", "\r\n") if name.startswith("SST") else text)
    return stream.getvalue()


@pytest.mark.parametrize(("kind", "name"), [("mnli", "MNLI"), ("sst2", "SST-2"), ("cola", "CoLA")])
def test_an_archive_is_read(tmp_path: Path, kind: str, name: str) -> None:
    (dataset,) = glue_files(kind)
    assert dataset.url.endswith(f"/glue/data/{name}.zip")
    path = tmp_path / Path(dataset.file).name
    path.write_bytes(packed(FILES[name]))
    assert read_glue(source(kind), [path]) == EXPECTED[kind]


def test_mrpc_is_two_text_files(tmp_path: Path) -> None:
    paths = [tmp_path / Path(dataset.file).name for dataset in glue_files("mrpc")]
    assert [path.name for path in paths] == ["msr_paraphrase_train.txt", "msr_paraphrase_test.txt"]
    for path in paths:
        path.write_text(MRPC, encoding="utf-8")
    expected = [Example('He called "it" so.', "So he called it.", 1), Example("a", "b", 0)]
    assert read_glue(source("mrpc"), paths) == {"train": expected, "test": expected}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sentence\nno label\n", "no column 'label' in its first line"),
        ("sentence\tlabel\none\t1\ttoo many\n", "line 2: 3 columns"),
        ("sentence\tlabel\none\t7\n", "line 2: label '7' is none of 0, 1"),
        ("sentence\tlabel\n", "no examples in it"),
    ],
)
def test_another_layout_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "SST-2.zip"
    path.write_bytes(packed(FILES["SST-2"] | {"SST-2/dev.tsv": text}))
    with pytest.raises(UserError, match=message):
        read_glue(source("sst2"), [path])


def test_examples_are_held_out_once() -> None:
    examples = [Example(str(number), None, number % 2) for number in range(20)]
    train, dev = hold_out(examples, 5)
    assert len(dev) == 5 and sorted(train + dev) == sorted(examples)
    assert (train, dev) == hold_out(examples, 5)
    with pytest.raises(UserError, match=r"source\.dev: 20 examples cannot be held out from 20"):
        hold_out(examples, 20)


def test_what_is_fetched_follows_from_the_configuration() -> None:
    tasks = {kind: {"title": kind, "source": {"kind": kind}} for kind in ("mnli", "mrpc")}
    experiment = load(
        {"experiment": "e", "classification": {"model": "bert-base-uncased", "tasks": tasks}}
    )
    files = ["glue/MNLI.zip", "glue/msr_paraphrase_test.txt", "glue/msr_paraphrase_train.txt"]
    assert sorted(inputs.fetched(experiment)) == files
    assert inputs.task_archive(experiment, corpus="mnli", cards=True) == ["data/glue/MNLI.zip.json"]
    card = "data/models/bert-base-uncased/card.json"
    assert inputs.imported_files(experiment, root=".") == [card]
    assert inputs.second_set(experiment, corpus="mnli", instead="dev")[0].endswith(
        "/second.safetensors"
    )
    assert inputs.second_set(experiment, corpus="mrpc", instead="dev")[0].endswith(
        "/dev.safetensors"
    )
    assert inputs.second_set(experiment, corpus="mrpc") == []


# The made-up tasks: what is changed and what is not, labels in balance, nothing in common between
# the sets.

WORDS = product(("old", "big"), "xyzw", ("two", "my"), ("red", "wet"))
TEXTS = [f"The {a} {b} saw {c} {d} dogs." for a, b, c, d in WORDS]


@pytest.fixture
def sentences() -> list[list[str]]:
    return list(sentences_of([*TEXTS, "Too short.", "word " * 40]))


def test_words_are_in_lower_case_and_of_usable_length(sentences) -> None:
    assert len(sentences) == len(TEXTS)
    assert sentences[0] == ["the", "old", "x", "saw", "two", "red", "dogs", "."]
    [words] = sentences_of(["I don't like type-declarations!"])
    assert " ".join(words) == "i don't like type - declarations !"


def test_shift_swaps_two_neighbours(sentences) -> None:
    examples = list(shift(sentences, np.random.default_rng(1)))
    assert Counter(example.label for example in examples) == {0: 16, 1: 16}
    for words, example in zip(sentences, examples, strict=True):
        found = example.first.split()
        different = [place for place, (a, b) in enumerate(zip(words, found, strict=True)) if a != b]
        assert sorted(words) == sorted(found) and example.second is None
        assert len(different) == 2 * example.label
        assert different == [] or (different[1] == different[0] + 1 and 7 not in different)


def test_halves_are_of_one_sentence_or_of_two_with_as_many_words(sentences) -> None:
    examples = list(halves([*sentences, ["a", "b", "c", "d", "e"]], np.random.default_rng(1)))
    whole = {" ".join(words) for words in sentences}
    labels = Counter(example.label for example in examples)
    assert abs(labels[0] - labels[1]) <= 1
    for example in examples[:-1]:
        assert (f"{example.first} {example.second}" in whole) >= example.label
        assert (len(example.first.split()), len(example.second.split())) == (4, 4)
    seconds = [example.second for example in examples if not example.label]
    assert len(seconds) > 5


def test_a_sentence_belongs_to_one_set_whatever_its_punctuation(tmp_path) -> None:
    texts = [f"number {a} {b}" for a in "abcdefghijklmnop" for b in "abcdefghijklmnop"]
    for name, ending in (("one", "."), ("two", "!")):
        pd.DataFrame({"source": [f"{text}{ending}" for text in texts]}).to_parquet(
            tmp_path / f"{name}.parquet"
        )
    both = read_sentences([tmp_path / "one.parquet", tmp_path / "two.parquet"])
    second = read_sentences([tmp_path / "two.parquet"])
    assert sum(map(len, both.values())) == len(texts)
    for name in SETS:
        assert both[name]
        assert {text[:-1] for text in both[name]} == {text[:-1] for text in second[name]}
    assert 0.03 < len(both["test"]) / len(texts) < 0.14


def test_the_files_of_an_imported_model_leave_out_what_no_model_has(tmp_path: Path) -> None:
    (own := tmp_path / "bert").mkdir()
    for name in ("config.json", "model.safetensors", "notes {v1}.json", "photo.png"):
        (own / name).touch()
    (own / "onnx.json").mkdir()
    (own / "gone.json").symlink_to(own / "nowhere.json")
    tasks = {"mrpc": {"title": "MRPC", "source": {"kind": "mrpc"}}}
    experiment = load({"experiment": "e", "classification": {"model": "bert", "tasks": tasks}})
    files = inputs.imported_files(experiment, root=tmp_path)
    assert [Path(file).name for file in files] == ["config.json", "model.safetensors"]
