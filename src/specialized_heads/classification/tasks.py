"""Stages: the examples of a task (`examples`), and one set of them as token ids (`tokens`).

The sets are train, dev, test and second (another domain; empty where there is none). Labels are the
target side of the tokens.

Tasks made from plain sentences follow published recipes; half of the examples have each label.

shift: two neighbouring words are swapped, or not (bigram shift of Conneau et al. 2018).
halves: two segments are the halves of one sentence, or of two with as many words (next-sentence
    prediction of Devlin et al. 2019, with halves for sentences).

Their sentences are in lower case, since capitals would give the order away. A sentence's letters
alone decide its set, so no task is tested on a sentence that the model was pre-trained on.

GLUE (Wang et al. 2019) is read in the layouts that it is published in: lines of columns between
tabs, in which a quotation mark is an ordinary character. SST-2 and MNLI have a header, whose names
decide, since the columns of MNLI differ between its sets; CoLA has none: source, label, mark,
sentence. MRPC comes as the two text files of its authors, whose test set has labels. The labels of
the other test sets are not public: GLUE's development set is the test set here, as in Michel et al.
(2019), and the development set is held out from the training set.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import compress, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from specialized_heads import stage
from specialized_heads.classification.wordpiece import read_vocabulary, write_inputs
from specialized_heads.corpus.normalise import fingerprint, sentence_key, single_spaces
from specialized_heads.corpus.readers.archives import lines, member
from specialized_heads.experiment.sources import LABELS, Glue, Made, TaskSource
from specialized_heads.tables import read_columns, read_table, write_table

SETS = ("train", "dev", "test")
WRITTEN = (*SETS, "second")
TEST, DEV = 0.08, 0.1  # test below the first, dev from there to the second, train above
MOST_DEV = 1_000  # examples of a made-up task for the loss and for importance
WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
WORDS = (5, 25)  # length of the sentences that are used
SCHEMA = pa.schema([("first", pa.string()), ("second", pa.string()), ("label", pa.int32())])


class Example(NamedTuple):
    """One or two segments of text, and the id of the label."""

    first: str
    second: str | None
    label: int


def read_sentences(paths: Iterable[Path]) -> dict[str, list[str]]:
    """The sources of these `corpus.parquet` by set, each once by its letters, in a hashed order."""
    known: dict[str, str] = {}
    for path in paths:
        [texts] = read_columns(path, "source")
        for text in texts:
            if text := single_spaces(text):
                known.setdefault(sentence_key(text), text)
    sets: dict[str, list[str]] = {name: [] for name in SETS}
    places = {key: fingerprint(f"classification\n{key}") / 2**64 for key in known}
    for place, text in sorted((places[key], text) for key, text in known.items()):
        sets["test" if place < TEST else "dev" if place < DEV else "train"].append(text)
    return sets


def sentences_of(texts: Iterable[str]) -> Iterator[list[str]]:
    """The words and punctuation marks of sentences of usable length, in lower case."""
    for text in texts:
        words = WORD.findall(text.lower())
        if WORDS[0] <= len(words) <= WORDS[1]:
            yield words


def shift(sentences: Iterable[list[str]], random: np.random.Generator) -> Iterator[Example]:
    """Swap two different neighbouring words in every second sentence."""
    label = 0
    for words in sentences:
        pairs = enumerate(zip(words, words[1:]))
        places = [i for i, (a, b) in pairs if a.isalpha() and b.isalpha() and a != b]
        if not places:
            continue
        place = places[random.integers(len(places))]
        if label:
            words = [*words[:place], words[place + 1], words[place], *words[place + 2 :]]
        yield Example(" ".join(words), None, label)
        label = 1 - label


def halves(sentences: Iterable[list[str]], random: np.random.Generator) -> Iterator[Example]:
    """Cut sentences in the middle; every second one gets the second half of another as long."""
    by_length: dict[int, list[list[str]]] = defaultdict(list)
    made = 0
    for words in sentences:
        half = len(words) // 2
        first, second = " ".join(words[:half]), " ".join(words[half:])
        same = by_length[len(words)]
        if made % 2 == 0:
            yield Example(first, second, 1)
        elif same and (other := same.pop(random.integers(len(same))))[half:] != words[half:]:
            yield Example(first, " ".join(other[half:]), 0)
        else:
            same.append(words)
            continue
        made += 1


RECIPES = {"shift": shift, "halves": halves}


def make(
    source: Made, matched: list[Path], mismatched: list[Path], *, pretrained_here: bool
) -> dict[str, list[Example]]:
    """The sets of a made-up task, from `corpus.parquet` of the two domains."""
    texts, others = read_sentences(matched), read_sentences(mismatched)
    second = others["test"]
    if not pretrained_here:
        learned = set(map(sentence_key, texts["train"]))
        more = (*others["dev"], *others["train"])
        second += [text for text in more if sentence_key(text) not in learned]
    sets: dict[str, list[Example]] = {}
    for name, found in {**texts, "second": second}.items():
        like = "test" if name == "second" else name
        sentences, random = sentences_of(found), np.random.default_rng(SETS.index(like))
        most = MOST_DEV if name == "dev" else getattr(source, like)
        sets[name] = list(islice(RECIPES[source.kind](sentences, random), most))
    return sets


class Layout(NamedTuple):
    """The files of each set in the archive; the columns of the label and of the segments: names, or
    numbers without a header."""

    sets: dict[str, str]
    label: str | int
    segments: tuple[str | int, ...]
    labels: tuple[str, ...]  # as the files write them, in the order of ids


MNLI = {"train": "MNLI/train.tsv", "test": "MNLI/dev_matched.tsv"}
MNLI |= {"second": "MNLI/dev_mismatched.tsv"}
SST2 = {"train": "SST-2/train.tsv", "test": "SST-2/dev.tsv"}
MRPC = {"train": "msr_paraphrase_train.txt", "test": "msr_paraphrase_test.txt"}
LAYOUTS = {
    "mnli": Layout(MNLI, "gold_label", ("sentence1", "sentence2"), LABELS["mnli"]),
    "sst2": Layout(SST2, "label", ("sentence",), ("0", "1")),
    "cola": Layout({"train": "CoLA/train.tsv", "test": "CoLA/dev.tsv"}, 1, (3,), ("0", "1")),
    "mrpc": Layout(MRPC, "Quality", ("#1 String", "#2 String"), ("0", "1")),
}


def read_glue(source: Glue, files: list[Path]) -> dict[str, list[Example]]:
    """The examples of each set in the archive of a task, or MRPC's two files: `train`, `test` and
    for MNLI `second`."""
    layout, sets = LAYOUTS[source.kind], {}
    for number, (name, path) in enumerate(layout.sets.items()):
        if source.kind == "mrpc":
            stream, where = files[number], str(files[number])
        else:
            stream, where = member(files[0], path), f"{files[0]}: {path}"
        sets[name] = list(_examples(lines(stream), layout, where=where))
        if not sets[name]:
            raise stage.UserError(f"{where}: no examples in it; fetch the file again")
    return sets


def _examples(rows: Iterator[str], layout: Layout, *, where: str) -> Iterator[Example]:
    header: list[str] = [] if isinstance(layout.label, int) else next(rows, "").split("\t")
    columns = [layout.label, *layout.segments]
    if header and (missing := [name for name in columns if name not in header]):
        raise stage.UserError(
            f"{where}: no column {missing[0]!r} in its first line; fetch the file again"
        )
    places = [header.index(name) if header else name for name in columns]
    for number, row in enumerate(rows, start=2 if header else 1):
        values = row.split("\t")
        if not row.strip():
            continue
        if len(values) <= max(places) or (header and len(values) != len(header)):
            said = f"{len(values)} columns, too few or too many; fetch it again"
            raise stage.UserError(f"{where}: line {number}: {said}")
        label, *segments = (values[place].strip() for place in places)
        if label == "-":  # MNLI: the annotators did not agree
            continue
        if label not in layout.labels:
            raise stage.UserError(
                f"{where}: line {number}: label {label!r} is none of {', '.join(layout.labels)}"
            )
        first, second = (*segments, None)[:2]
        yield Example(first, second, layout.labels.index(label))


def hold_out(examples: list[Example], number: int) -> tuple[list[Example], list[Example]]:
    """Divide a training set into what stays and `number` examples drawn from it, both in order."""
    if number >= len(examples):
        raise stage.UserError(
            f"source.dev: {number} examples cannot be held out from {len(examples)}; choose fewer"
        )
    drawn = np.random.default_rng(0).choice(len(examples), number, replace=False)
    held = np.isin(range(len(examples)), drawn)
    return list(compress(examples, ~held)), list(compress(examples, held))


class ExamplesSettings(stage.Section):
    source: TaskSource
    # Otherwise no model has learned from the second domain, and all of it can be tested on.
    pretrained_here: bool = True


@stage.command(
    *WRITTEN, "counts", many=("matched", "mismatched", "archive"), settings=ExamplesSettings
)
def examples(files: stage.Files, settings: ExamplesSettings) -> None:
    source = settings.source
    if isinstance(source, Glue):
        sets = read_glue(source, files.archive)
        sets["train"], sets["dev"] = hold_out(sets["train"], source.dev)
    else:
        domains, here = (files.matched, files.mismatched), settings.pretrained_here
        sets = make(source, *domains, pretrained_here=here)
    counts = {}
    for name in WRITTEN:
        path, found = getattr(files, name), sets.get(name, [])
        labels = Counter(example.label for example in found)
        counts[name] = [labels[number] for number in range(len(source.labels))]
        missing = [label for label, number in zip(source.labels, counts[name]) if not number]
        if missing and (name != "second" or source.second):
            raise stage.UserError(
                f"{path}: the set {name} of {len(found)} examples lacks the label {missing[0]}; "
                f"give more text, or hold out more examples (source.dev)"
            )
        rows = [example._asdict() for example in found]
        write_table(path, pa.Table.from_pylist(rows, schema=SCHEMA), compression="zstd")
    stage.write_json(files.counts, {"labels": source.labels, "examples": counts})
    stage.log.info("examples by label: %s", counts)


class TokensSettings(stage.Section):
    longest: int  # subwords of an input


@stage.command("text", "vocabulary", "output", settings=TokensSettings)
def tokens(files: stage.Files, settings: TokensSettings) -> None:
    table = read_table(files.text, schema=SCHEMA)
    columns = [table.column(name).to_pylist() for name in SCHEMA.names]
    vocabulary = read_vocabulary(files.vocabulary)
    write_inputs(files.output, vocabulary, *columns, longest=settings.longest)
    stage.log.info("%d examples", len(table))


stage.no_stage(__name__)
