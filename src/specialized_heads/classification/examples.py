"""Stage: the examples of a task, in four sets: train, dev, test and second (another domain; empty where there is none).

Made-up tasks take each set from the sentences that belong to it (`sentences`). GLUE's development set is the test set here, as in
Michel et al. (2019), since the labels of GLUE's own are not public; the development set is held out from the training set.
"""

from itertools import compress, islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from specialized_heads import stage
from specialized_heads.classification import recipes
from specialized_heads.classification.glue import read_glue
from specialized_heads.classification.recipes import Example
from specialized_heads.classification.sentences import SETS, read_sentences
from specialized_heads.corpus.near_duplicates import sentence_key
from specialized_heads.experiment.classification import Glue, Made, TaskSource
from specialized_heads.tables import write_table

WRITTEN = (*SETS, "second")
DEV = 1_000  # most examples of a made-up task for the loss and for importance
SCHEMA = pa.schema([("first", pa.string()), ("second", pa.string()), ("label", pa.int32())])


class Settings(stage.Section):
    source: TaskSource
    pretrained_here: bool = True  # if not, no model has learned from the second domain, and all of it can be tested on


def make(
    source: Made, matched: list[Path], mismatched: list[Path], *, pretrained_here: bool
) -> dict[str, list[Example]]:
    """The sets of a made-up task, from `corpus.parquet` of the two domains."""
    texts, others = read_sentences(matched), read_sentences(mismatched)
    second = others["test"]
    if not pretrained_here:
        learned = set(map(sentence_key, texts["train"]))
        second += [text for name in ("dev", "train") for text in others[name] if sentence_key(text) not in learned]
    sets: dict[str, list[Example]] = {}
    for name, found in {**texts, "second": second}.items():
        like = "test" if name == "second" else name
        sentences, random = recipes.sentences_of(found), np.random.default_rng(SETS.index(like))
        most = DEV if name == "dev" else getattr(source, like)
        sets[name] = list(islice(getattr(recipes, source.kind)(sentences, random), most))
    return sets


def hold_out(examples: list[Example], number: int) -> tuple[list[Example], list[Example]]:
    """Divide a training set: what stays, and `number` examples drawn from it, both in their order."""
    if number >= len(examples):
        raise stage.UserError(f"source.dev: {number} examples cannot be held out from {len(examples)}; choose fewer")
    held = np.isin(range(len(examples)), np.random.default_rng(0).choice(len(examples), number, replace=False))
    return list(compress(examples, ~held)), list(compress(examples, held))


@stage.command(*WRITTEN, "counts", many=("matched", "mismatched", "archive"), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    source = settings.source
    if isinstance(source, Glue):
        sets = read_glue(source, files.archive)
        sets["train"], sets["dev"] = hold_out(sets["train"], source.dev)
    else:
        sets = make(source, files.matched, files.mismatched, pretrained_here=settings.pretrained_here)
    counts = {}
    for name in WRITTEN:
        examples = sets.get(name, [])
        counts[name] = [sum(example.label == label for example in examples) for label in range(len(source.labels))]
        missing = [label for label, number in zip(source.labels, counts[name], strict=True) if not number]
        if missing and (name != "second" or source.second):
            raise stage.UserError(
                f"{getattr(files, name)}: the set {name} of {len(examples)} examples lacks the label {missing[0]}; give more "
                "text, or hold out more examples (source.dev)"
            )
        rows = [example._asdict() for example in examples]
        write_table(getattr(files, name), pa.Table.from_pylist(rows, schema=SCHEMA), compression="zstd")
    stage.write_json(files.counts, {"labels": source.labels, "examples": counts})
    stage.log.info("examples by label: %s", counts)
