"""The training and development sets of GLUE tasks (Wang et al. 2019), in the layouts that they are published in.

All are lines of columns between tabs, in which a quotation mark is an ordinary character. SST-2 and MNLI have a header, whose
names decide, since the columns of MNLI differ between its sets; CoLA has none: source, label, mark, sentence. MRPC comes as the
two text files of its authors, whose test set has labels. The labels of the other test sets are not public.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from specialized_heads.classification.recipes import Example
from specialized_heads.corpus.readers.archives import lines, member
from specialized_heads.experiment.classification import LABELS, Glue
from specialized_heads.stage import UserError


class Layout(NamedTuple):
    """The files of each set in the archive; the columns of the label and of the segments: names, or numbers without a header."""

    sets: dict[str, str]
    label: str | int
    segments: tuple[str | int, ...]
    labels: tuple[str, ...]  # as the files write them, in the order of ids


MNLI = {"train": "MNLI/train.tsv", "test": "MNLI/dev_matched.tsv", "second": "MNLI/dev_mismatched.tsv"}
MRPC = {"train": "msr_paraphrase_train.txt", "test": "msr_paraphrase_test.txt"}
LAYOUTS = {
    "mnli": Layout(MNLI, "gold_label", ("sentence1", "sentence2"), LABELS["mnli"]),
    "sst2": Layout({"train": "SST-2/train.tsv", "test": "SST-2/dev.tsv"}, "label", ("sentence",), ("0", "1")),
    "cola": Layout({"train": "CoLA/train.tsv", "test": "CoLA/dev.tsv"}, 1, (3,), ("0", "1")),
    "mrpc": Layout(MRPC, "Quality", ("#1 String", "#2 String"), ("0", "1")),
}


def read_glue(source: Glue, files: list[Path]) -> dict[str, list[Example]]:
    """The examples of each set in the archive of a task, or MRPC's two files: `train`, `test` and for MNLI `second`."""
    layout, sets = LAYOUTS[source.kind], {}
    for number, (name, path) in enumerate(layout.sets.items()):
        if source.kind == "mrpc":
            stream, where = files[number], str(files[number])
        else:
            stream, where = member(files[0], path), f"{files[0]}: {path}"
        sets[name] = list(_examples(lines(stream), layout, where=where))
        if not sets[name]:
            raise UserError(f"{where}: no examples in it; fetch the file again")
    return sets


def _examples(rows: Iterator[str], layout: Layout, *, where: str) -> Iterator[Example]:
    header: list[str] = [] if isinstance(layout.label, int) else next(rows, "").split("\t")
    columns = [layout.label, *layout.segments]
    if header and (missing := [name for name in columns if name not in header]):
        raise UserError(f"{where}: no column {missing[0]!r} in its first line; fetch the file again")
    places = [header.index(name) if header else name for name in columns]
    for number, row in enumerate(rows, start=2 if header else 1):
        values = row.split("\t")
        if not row.strip():
            continue
        if len(values) <= max(places) or (header and len(values) != len(header)):
            raise UserError(f"{where}: line {number}: {len(values)} columns, too few or too many; fetch it again")
        label, *segments = (values[place].strip() for place in places)
        if label == "-":  # MNLI: the annotators did not agree
            continue
        if label not in layout.labels:
            raise UserError(f"{where}: line {number}: label {label!r} is none of {', '.join(layout.labels)}")
        yield Example(segments[0], segments[1] if len(segments) > 1 else None, layout.labels.index(label))
