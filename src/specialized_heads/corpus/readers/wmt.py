"""Source wmt: news text of the WMT shared tasks (appendix B.1), and the analysis sentences of
section 5.2.

The column `member` of `resources/datasets.csv` says how a file holds the text:

- `training/europarl-v7.de-en.{language}`: two files, one per language, aligned line by line; each
  may be packed again (.gz).
- `dev/newstest2015-{pair}-{side}.{language}.sgm`: two files of segments in documents, the source
  side and its reference.
- `wiki/ru-en/wiki.ru-en`: lines of `first ||| second`; if empty, the file itself has lines of
  `first TAB second`. The order is that of the row's languages.

A news test set is used in the direction of the corpus, whichever language its documents were
written in; if it was only published in the other direction, source and reference are swapped.

The analysis sentences are drawn from the source side of the datasets under `analysis`; if their
other language is not the corpus's, the targets are empty. The draw depends only on these datasets
and the number, so corpora that name the same ones analyse the same sentences. A drawn pair of a
dataset that is also under `train` is not used for training.
"""

import gzip
import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from itertools import count
from pathlib import Path

import numpy as np

from specialized_heads.corpus.normalise import decode_entities, single_spaces
from specialized_heads.corpus.pairs import Blocks, blocks
from specialized_heads.corpus.readers import archives
from specialized_heads.experiment.sources import Dataset, Wmt, named
from specialized_heads.stage import UserError

ANALYSIS, ANALYSIS_SEED = 50_000, 1  # sentences that are drawn, or all where there are fewer

Row = tuple[str, str, str]  # source, target, document


def read_wmt(
    source: Wmt, files: Sequence[Path], *, languages: tuple[str, str], counts: Counter[str]
) -> Blocks:
    """The training pairs, then those of the development, test and analysis sets, with `set` saying
    which.

    `counts` gains lines that are not pairs (`blank_line`, `not_two_columns`).
    """
    paths = {
        dataset.file: path for dataset, path in zip(source.datasets(languages), files, strict=True)
    }

    def rows(name: str, dropped: Counter[str]) -> Iterator[Row]:
        dataset = named(name)
        return _rows(dataset, paths[dataset.file], languages=languages, counts=dropped)

    sizes = {
        name: sum(bool(row[0].strip()) for row in rows(name, Counter())) for name in source.analysis
    }
    drawn = _draw(sizes) if sizes else {}
    for name in source.train:
        yield from blocks(_chosen(rows(name, counts), drawn.get(name, ()), wanted=False))
    for set_, datasets in (("dev", source.dev), ("test", source.test)):
        for name in datasets:
            yield from blocks(rows(name, counts), set_=set_)
    for name in source.analysis:
        counted = name in (*source.train, *source.dev, *source.test)
        found = rows(name, Counter() if counted else counts)
        yield from blocks(_chosen(found, drawn[name], wanted=True), set_="analysis")


def _draw(sizes: dict[str, int]) -> dict[str, set[int]]:
    """Draw sentences without replacement, given the number of non-blank ones per dataset: their
    numbers in each dataset."""
    total = sum(sizes.values())
    numbers = np.random.default_rng(ANALYSIS_SEED).choice(
        total, min(total, ANALYSIS), replace=False, shuffle=False
    )
    bounds = np.cumsum([0, *sizes.values()])
    return {
        name: set((numbers[(numbers >= start) & (numbers < end)] - start).tolist())
        for name, start, end in zip(sizes, bounds, bounds[1:])
    }


def _chosen(rows: Iterator[Row], drawn: Container[int], *, wanted: bool) -> Iterator[Row]:
    """The rows that were drawn, by the number of their non-blank source; or those that were not."""
    numbers = count()
    return (row for row in rows if (bool(row[0].strip()) and next(numbers) in drawn) == wanted)


def _rows(
    dataset: Dataset, path: Path, *, languages: tuple[str, str], counts: Counter[str]
) -> Iterator[Row]:
    """All pairs of a dataset; the targets are empty if it lacks the second of `languages`."""
    source, target = languages
    own = (dataset.source_language, dataset.target_language)
    if dataset.source_language and target not in own:
        other = own[own[0] == source]
        return (
            (first, "", "")
            for first, _, _ in _rows(dataset, path, languages=(source, other), counts=counts)
        )
    if "{side}" in dataset.member:
        return _segments(dataset, path, languages=languages)
    if "{language}" in dataset.member:
        return _two_files(dataset, path, languages=languages)
    return _columns(dataset, path, swapped=source != own[0], counts=counts)


def _two_files(dataset: Dataset, path: Path, *, languages: tuple[str, str]) -> Iterator[Row]:
    names = [dataset.member.format(language=language) for language in languages]
    first, second = (archives.member(path, name) for name in names)
    with first, second, archives.refuse_damage(path):
        plain = (
            gzip.GzipFile(fileobj=text) if text.name.endswith(".gz") else text
            for text in (first, second)
        )
        where = f"{path}: {names[0]} and {names[1]}"
        for row in archives.aligned(*map(archives.lines, plain), name=where):
            yield *row, ""


def _columns(dataset: Dataset, path: Path, *, swapped: bool, counts: Counter[str]) -> Iterator[Row]:
    """The pairs of a file with two columns; the few published lines with more or fewer are
    dropped."""
    separator = "|||" if dataset.member else "\t"
    with (
        archives.member(path, dataset.member)
        if dataset.member
        else archives.open_packed(path) as stream
    ):
        for line in archives.lines(stream):
            parts = [single_spaces(part) for part in line.split(separator)]
            if not any(parts):
                counts["blank_line"] += 1
            elif len(parts) != 2:
                counts["not_two_columns"] += 1
            else:
                yield *(reversed(parts) if swapped else parts), ""


def _segments(dataset: Dataset, path: Path, *, languages: tuple[str, str]) -> Iterator[Row]:
    """The pairs of a news test set; the year is part of a document's name, since names recur."""
    held = set(archives.members(path))
    source, target = languages
    # In the direction of the corpus, else in the other one; the set of 2014 has either text as
    # either side.
    ours, theirs = source + target, target + source
    tried = ((ours, ("src", "ref")), (theirs, ("src", "ref")), (theirs, ("ref", "src")))
    choices = [
        [
            dataset.member.format(pair=pair, side=side, language=language)
            for side, language in zip(sides, languages)
        ]
        for pair, sides in tried
    ]
    names = next((names for names in choices if held.issuperset(names)), None)
    if names is None:
        raise UserError(
            f"{path}: no {dataset.name} from {source} to {target} in it; choose another test set"
        )
    texts = []
    for name in names:
        where = f"{path}: {name}"
        with archives.member(path, name) as stream:
            texts.append(segments(archives.document(stream, name=where), name=where))
    first, second = texts
    if [place for place, _ in first] != [place for place, _ in second]:
        raise UserError(
            f"{path}: {names[0]} and {names[1]} do not have the same documents and segments"
        )
    for ((place, _), source_text), (_, target_text) in zip(first, second, strict=True):
        yield source_text, target_text, f"{dataset.name}/{place}"


def segments(data: bytes, *, name: str) -> list[tuple[tuple[str, int], str]]:
    """The segments of an NIST SGML file: document and number in it (from 1), and the text with
    single spaces.

    The files are not well-formed XML, so tags are searched for. Entities are those of HTML; a
    declaration of others is a `UserError`, and nothing is fetched.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{name}: not UTF-8 ({error.reason})") from None
    if re.search(r"<!ENTITY", text, flags=re.IGNORECASE):
        raise UserError(
            f"{name}: declares entities of its own; no release of WMT does, get the file elsewhere"
        )
    found = []
    place, number = "", 0
    for part in re.split(r"(?=<(?:doc|seg)\b)", text, flags=re.IGNORECASE)[1:]:
        tag, _, content = part.partition(">")
        if tag[1:4].lower() == "doc":
            named = re.search(r'docid\s*=\s*"([^"]*)"', tag, flags=re.IGNORECASE)
            place, number = named[1] if named else "", 0
            continue
        number += 1
        end = re.search(r"</seg\s*>", content, flags=re.IGNORECASE)
        if end is None:
            raise UserError(
                f"{name}: document {place!r}, segment {number}: no </seg>; get the file again"
            )
        found.append(((place, number), single_spaces(decode_entities(content[: end.start()]))))
    return found
