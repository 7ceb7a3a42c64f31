"""Source local: your own text, as one file of pairs or two files with one sentence per line.

A file of pairs is TSV: source TAB target, optionally TAB document. Any file may be compressed (.gz, .xz). Held-out sets can be
files of pairs too. Of an analysis set only the source side is used, so it may have a sentence per line and nothing else.
`columns` says which columns are read; the others are ignored.

Blank lines and lines with another number of columns than the first (a tab inside a text, or none) are not pairs; they are
counted. Many such lines mean that the first line is another (a header), and are an error. So are texts in another format: JSON,
XML or SGML, or cells that a CSV writer has quoted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from specialized_heads.corpus.filters import MAX_CHARACTERS
from specialized_heads.corpus.pairs import Blocks, blocks
from specialized_heads.corpus.readers.archives import aligned, lines
from specialized_heads.experiment.sources import Local, Unit
from specialized_heads.stage import UserError

UNFILTERED = ("dev", "test")
LONGEST = 10 * MAX_CHARACTERS  # of a text of these sets: attention takes memory with the square of its length
MOST_OTHER = 0.1  # share of the lines that may have another number of columns than the first
QUOTED = "quotes of a CSV writer"
REMEDIES = {  # for texts in another format
    "JSON": "write the texts alone, one per line",
    "markup (XML or SGML)": "write the texts without tags, one per line",
    "several columns": "write one text per line; only files of pairs have columns",
    QUOTED: "remove them with Python's csv module, as docs/data.md shows",
}


def read(source: Local, files: Sequence[Path], *, languages: tuple[str, str], counts: Counter[str]) -> Blocks:
    """The pairs of the files of `source.files()`; `set` names the held-out set of those that you give.

    `counts` gains `blank_line` (also where both sides of a pair are blank) and `other_columns`.
    """
    paths = dict(zip(source.files(), files, strict=True))
    for key, path in paths.items():
        if key == "source_path":
            yield from blocks(_two_texts(path, paths["target_path"], counts=counts))
        elif key != "target_path":
            set_ = "" if key == "path" else key
            how = {"columns": source.columns, "group_by": source.group_by, "counts": counts, "set_": set_}
            yield from blocks(_pairs(path, **how), set_=set_)


def _pairs(
    path: Path, *, columns: Sequence[int], group_by: Unit, counts: Counter[str], set_: str
) -> Iterator[tuple[str, str, str]]:
    """The pairs of a TSV file with these `columns`, all of one set.

    A held-out set without documents is one document; `analysis` needs no targets.
    """
    required = columns[:1] if set_ == "analysis" else columns[:2]
    width, read, others, lettered = 0, 0, [], set()
    sides = (_Formats(), _Formats())
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip():
            counts["blank_line"] += 1
            continue
        cells = line.split("\t")
        if not width and set_ == "analysis" and len(cells) == 1:
            columns, required = (1, 2, 3), (1,)
        width, read = width or len(cells), read + 1
        if (last := max(required)) > width:
            what = f"no column {last}" if len(cells) > 1 else "no tab"
            raise UserError(
                f"{path}: line {number}: {what}; each line must be source TAB target (TAB document), or have the "
                "`columns` given"
            )
        # Targets of an analysis set may be missing; a missing document has an error of its own.
        fewer = len(cells) < width and set_ != "analysis" and group_by != "document"
        if len(cells) > width or len(cells) < last or fewer:
            others.append(number)
            counts["other_columns"] += 1
            continue
        source, target, document, *_ = [cells[c - 1] if c <= len(cells) else "" for c in columns] + [""]
        document = (document.strip() or (f"{set_}\n" if set_ else "")) if group_by == "document" else ""
        if group_by == "document" and not document:
            said = "no document for this pair; add it, or set group_by to 'sentence'"
            raise UserError(f"{path}: line {number}: {said}")
        if set_ in UNFILTERED and (most := max(len(cells[c - 1]) for c in required)) > LONGEST:
            said = f"{most:,} characters; held-out sets are not filtered, and no text may have more than {LONGEST:,}"
            raise UserError(f"{path}: line {number}: {said}")
        lettered.update(c for c in required if any(map(str.isalpha, cells[c - 1])))
        for side, text in zip(sides, (source, target)):
            side.add(text)
        yield source, target, document
    if len(others) > MOST_OTHER * read:
        raise UserError(
            f"{path}: line {others[0]}: not {width} columns, as the first line has; so are {len(others)} of {read} lines. "
            "All must have the same columns; remove a header"
        )
    if not width:
        raise UserError(f"{path}: no line has text; it must hold at least one pair")
    if numbers := sorted(set(required) - lettered):
        remedy = "set `columns`, such as [2, 4]" if width > 2 else "sentences need letters"
        raise UserError(f"{path}: column {numbers[0]} has no letter in any line; {remedy}")
    for column, side in zip(columns, sides):
        side.check(f"{path}: column {column}")


class _Formats:
    """The formats in which the texts of a file or column are written."""

    def __init__(self) -> None:
        self.texts, self.doubled = 0, 0
        self.counts, self.first = Counter[str](), dict[str, str]()

    def add(self, text: str) -> None:
        if text := text.strip():
            form = self._format(text)
            self.texts += 1
            self.doubled += form == QUOTED and '""' in text[1:-1]
            self.counts[form] += 1
            self.first.setdefault(form, text)

    @staticmethod
    def _format(text: str) -> str:
        """One of `REMEDIES`, "other quotes", or empty."""
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

    def check(self, name: str) -> None:
        """Raise `UserError` if most texts are in another format, or if their quotes are those of a CSV writer.

        A CSV writer puts a text that has quotes into quotes and doubles those inside; it may put all others into quotes too.
        """
        for form, remedy in REMEDIES.items():
            doubled = form == QUOTED and self.doubled > self.counts["other quotes"]
            if doubled or 2 * self.counts[form] > self.texts:
                said = f"{form} in {self.counts[form]} of {self.texts} texts, such as {self.first[form][:40]!r}"
                raise UserError(f"{name}: {said}; {remedy}")


def plain_lines(path: Path) -> Iterator[str]:
    """The lines of a file of texts, one per line, as `text_lines` gives them; another format is a `UserError` at the end."""
    texts = _Formats()
    for line in text_lines(path):
        texts.add(line)
        yield line
    texts.check(str(path))


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a file, plain or compressed. A line with a carriage return, NUL or escape character is refused."""
    for number, line in enumerate(lines(path), start=1):
        if "\0" in line or "\x1b" in line:
            what = "a NUL or escape character, as in archives and UTF-16; unpack the file, or convert it to UTF-8"
            raise UserError(f"{path}: line {number}: {what}")
        if "\r" in line:
            raise UserError(
                f"{path}: line {number}: a carriage return within the line; end each line with a line feed (`tr '\\r' '\\n'`)"
            )
        yield line


def _two_texts(source: Path, target: Path, *, counts: Counter[str]) -> Iterator[tuple[str, str, str]]:
    """The pairs of two texts; line i of one translates line i of the other."""
    remedy, empty = "line i of one must translate line i of the other", True
    for first, second in aligned(
        plain_lines(source), plain_lines(target), name=f"{source} and {target}", remedy=remedy
    ):
        if first.strip() or second.strip():
            empty = False
            yield first, second, ""
        else:
            counts["blank_line"] += 1
    if empty:
        raise UserError(f"{source}: no line has text; it must hold at least one")
