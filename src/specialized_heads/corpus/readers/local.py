"""Text on disk, kinds `embedded` (a corpus in `resources/`) and `local` (your own text).

Your own text is one file of pairs or two files with one sentence per line. A file of pairs is TSV:
source TAB target, optionally TAB document. Any file may be compressed (.gz, .xz). Held-out sets can
be files of pairs too. Of an analysis set only the source side is used, so it may have a sentence
per line and nothing else. `columns` says which columns are read; the others are ignored.

Blank lines and lines with another number of columns than the first (a tab inside a text, or none)
are not pairs; they are counted. Many of them are an error, since the first line is then probably a
header. So are texts in another format: JSON, XML or SGML, or cells that a CSV writer has quoted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from specialized_heads.corpus.pairs import Blocks, blocks, read_blocks
from specialized_heads.corpus.readers.archives import aligned, lines
from specialized_heads.experiment.sources import Embedded, Local
from specialized_heads.languages import without_region
from specialized_heads.stage import UserError, log, read_json

UNFILTERED = ("dev", "test")
HEADERS = ({"source", "target"}, {"src", "tgt"}, {"src", "trg"})  # of columns, beside languages
LONGEST = 10_000  # characters of their texts: attention takes memory with the square of the length
MOST_OTHER = 0.1  # share of the lines that may have another number of columns than the first
QUOTED = "quotes of a CSV writer"
REMEDIES = {  # for texts in another format
    "JSON": "write the texts alone, one per line",
    "markup (XML or SGML)": "write the texts without tags, one per line",
    "several columns": "write one text per line; only files of pairs have columns",
    QUOTED: "remove them with Python's csv module, as docs/data.md shows",
}


def read_embedded(
    source: Embedded, files: Sequence[Path], *, languages: tuple[str, str], counts: Counter[str]
) -> Blocks:
    """The pairs of the folder's corpus.parquet, in order. `files`: it, and its provenance.json,
    which tells its languages."""
    about = read_json(files[1])
    known = (about["source_language"], about["target_language"])
    if known != (wanted := tuple(map(without_region, languages))):
        remedy = "; for the other way, use its text as a source of kind local"
        raise UserError(
            f"{files[0]}: this text is {known[0]}-{known[1]}, and source_language and "
            f"target_language of the corpus are {languages[0]} and {languages[1]}; set them to "
            f"{known[0]} and {known[1]}{remedy if known == wanted[::-1] else ''}"
        )
    yield from read_blocks(files[0])


def read_local(
    source: Local, files: Sequence[Path], *, languages: tuple[str, str], counts: Counter[str]
) -> Blocks:
    """The pairs of the files of `source.by_key()`; `set` names the held-out set of those that you
    give.

    `counts` gains `blank_line` (also where both sides of a pair are blank) and `other_columns`.
    """
    paths = dict(zip(source.by_key(), files, strict=True))
    for key, path in paths.items():
        if key == "source_path":
            yield from blocks(_two_texts(path, paths["target_path"], counts=counts))
        elif key != "target_path":
            set_ = "" if key == "path" else key
            pairs = _pairs(path, source, set_=set_, languages=languages, counts=counts)
            yield from blocks(pairs, set_=set_)


def _pairs(
    path: Path, source: Local, *, set_: str, languages: tuple[str, str], counts: Counter[str]
) -> Iterator[tuple[str, str, str]]:
    """The pairs of a TSV file, all of one set. A held-out set without documents is one document."""
    rows = _cells(path, counts=counts)
    if (first := next(rows, None)) is None:
        raise UserError(f"{path}: no line has text; it must hold at least one pair")
    width, by_document = len(first[1]), source.group_by == "document"
    columns = [1] if set_ == "analysis" and width == 1 else source.columns
    required = columns[:1] if set_ == "analysis" else columns[:2]
    if (last := max(required)) > width:
        what = f"no column {last}" if width > 1 else "no tab"
        raise UserError(
            f"{path}: line {first[0]}: {what}; each line must be source TAB target (TAB document), "
            f"or have the `columns` given"
        )
    names = {first[1][column - 1].strip().casefold() for column in required}
    if len(names) == 2 and names in (*HEADERS, {*map(str.casefold, languages)}):
        raise UserError(f"{path}: line {first[0]}: names of columns; remove this line")
    # Targets of an analysis set may be missing; a missing document has an error of its own.
    least = last if set_ == "analysis" or by_document else width
    read, others, formats = 0, list[int](), (_Formats(), _Formats())
    for number, cells in chain([first], rows):
        read += 1
        if not least <= len(cells) <= width:
            if set_ in UNFILTERED:
                said = f"not {width} columns, as the first line has; held-out sets are not filtered"
                raise UserError(f"{path}: line {number}: {said}; correct the line")
            others.append(number)
            counts["other_columns"] += 1
            continue
        chosen = [cells[column - 1] if column <= len(cells) else "" for column in columns]
        *texts, document = (*chosen, "", "")[:3]
        said = ""
        if not by_document:
            document = ""
        elif not (document := document.strip() or (f"{set_}\n" if set_ else "")):
            said = "no document for this pair; add it, or set group_by to 'sentence'"
        if set_ in UNFILTERED and (most := max(map(len, texts))) > LONGEST:
            said = f"{most:,} characters; held-out sets are not filtered, and no text may have "
            said += f"more than {LONGEST:,}"
        if said:
            raise UserError(f"{path}: line {number}: {said}")
        for side, text in zip(formats, texts, strict=True):
            side.add(text)
        yield texts[0], texts[1], document
    if len(others) > MOST_OTHER * read:
        raise UserError(
            f"{path}: line {others[0]}: not {width} columns, as the first line has; so are "
            f"{len(others)} of {read} lines. All must have the same columns; remove a header"
        )
    lettered = {column for column, side in zip(required, formats) if side.lettered}
    if without := sorted(set(required) - lettered):
        remedy = "set `columns`, such as [2, 4]" if width > 2 else "sentences need letters"
        raise UserError(f"{path}: column {without[0]} has no letter in any line; {remedy}")
    for column, side in zip(columns, formats):
        side.check(f"{path}: column {column}")


def _cells(path: Path, *, counts: Counter[str]) -> Iterator[tuple[int, list[str]]]:
    """The number and the cells of each line that is not blank."""
    for number, line in enumerate(_lines(path), start=1):
        if line.strip():
            yield number, line.split("\t")
        else:
            counts["blank_line"] += 1


class _Formats:
    """The formats in which the texts of a file or column are written."""

    def __init__(self) -> None:
        self.counts, self.first = Counter[str](), dict[str, str]()
        self.doubled, self.lettered = 0, False

    def add(self, text: str) -> None:
        if text := text.strip():
            form = _format(text)
            self.counts[form] += 1
            self.first.setdefault(form, text)
            self.lettered = self.lettered or any(map(str.isalpha, text))
            self.doubled += form == QUOTED and '""' in text[1:-1]

    def check(self, name: str) -> None:
        """Raise `UserError` if most texts are in another format, or if their quotes are those of a
        CSV writer.

        A CSV writer puts a text that has quotes into quotes and doubles those inside; it may put
        all others into quotes too.
        """
        texts = self.counts.total()
        for form, remedy in REMEDIES.items():
            doubled = form == QUOTED and self.doubled > self.counts["other quotes"]
            many = 100 * self.doubled >= min(texts, 1000)  # one may be a quotation
            shown = repr(self.first.get(form, "")[:40])
            said = f"{form} in {self.counts[form]} of {texts} texts, such as {shown}"
            if doubled and many or 2 * self.counts[form] > texts:
                raise UserError(f"{name}: {said}; {remedy}")
            if doubled:
                log.warning("%s: perhaps %s; if so, %s", name, said, remedy)


def _format(text: str) -> str:
    """The format of a text: one of `REMEDIES`, "other quotes", or empty."""
    ends, inside = text[0] + text[-1], text[1:-1]
    if ends in ("{}", "[]") and inside.lstrip().startswith('"'):
        return "JSON"
    if ends == "<>" and (inside[:1].isalpha() or inside[:1] in ("/", "!", "?")):
        return "markup (XML or SGML)"
    if "\t" in text:
        return "several columns"
    if '"' not in text:
        return ""
    return QUOTED if ends == '""' and '"' not in inside.replace('""', "") else "other quotes"


def plain_lines(path: Path) -> Iterator[str]:
    """The lines of a file of texts, one per line; another format is a `UserError` at the end."""
    texts = _Formats()
    for line in _lines(path):
        texts.add(line)
        yield line
    texts.check(str(path))


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file, plain or compressed. A line with a carriage return, NUL or escape
    character is refused."""
    for number, line in enumerate(lines(path), start=1):
        said = ""
        if "\0" in line or "\x1b" in line:
            said = "a NUL or escape character, as in archives and UTF-16; unpack the file, or "
            said += "convert it to UTF-8"
        elif "\r" in line:
            said = "a carriage return within the line; end each line with a line feed "
            said += r"(`tr '\r' '\n'`)"
        if said:
            raise UserError(f"{path}: line {number}: {said}")
        yield line


def _two_texts(
    source: Path, target: Path, *, counts: Counter[str]
) -> Iterator[tuple[str, str, str]]:
    """The pairs of two texts; line i of one translates line i of the other."""
    texts, name, empty = map(plain_lines, (source, target)), f"{source} and {target}", True
    remedy = "line i of one must translate line i of the other"
    for first, second in aligned(*texts, name=name, remedy=remedy):
        if first.strip() or second.strip():
            empty = False
            yield first, second, ""
        else:
            counts["blank_line"] += 1
    if empty:
        raise UserError(f"{source}: no line has text; it must hold at least one")
