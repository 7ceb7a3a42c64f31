"""Message catalogues (GNU gettext, .mo): the English message is the key, its translation the value.

A catalogue is one document, named after its text domain: a campaign of a game, or a program. Messages become text as follows:

- hints for translators or the program are removed: a context, a prefix such as "female^" or "?unit:";
- a message with a plural gives two pairs, the forms for one and for many;
- markup is removed, its text kept; letters marked as keyboard shortcuts lose their mark;
- messages into which a program inserts values are dropped and counted: a sentence with a gap is not natural text;
- paragraphs, and sentences within them, are paired one by one where both sides have the same number.
"""

import gettext
import io
import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from specialized_heads.corpus.readers.archives import walk
from specialized_heads.corpus.readers.sentences import divide, has_letters
from specialized_heads.stage import UserError

CATALOGUE = re.compile(r"(?:.*/)?(?P<language>[^/]+)/LC_MESSAGES/(?P<domain>[^/]+)\.mo")
MANY = 5  # five takes the general plural, also in languages with forms for two to four
HINT = re.compile(r"[^\s^][^^\n]*\^(?=\S)|\?[\w ]+:(?=\S)")
SHARED = 10  # equal strings may share their bytes
CREDITS = {"translator-credits", "translator_credits", "Your names", "Your emails"}
# Elements of game help with their text in an attribute, and pictures, which have none.
QUOTED = re.compile(r"<(\w+)>[^<]*?\btext='((?:[^'\\]|\\.)*)'[^<]*</\1>")
PICTURE = re.compile(r"<img>.*?</img>", re.DOTALL)
BREAK = re.compile(r"<(?:br|p)\s*/?>|</p>", re.IGNORECASE)
TAG = re.compile(r"</?[A-Za-z][^<>]*>|\[/?[a-z]\]")
# printf, Qt, boost and Python formats, and variables of the shell and of game scripts. After % a space is text: "5 % of".
PLACEHOLDER = re.compile(
    r"%(?:\(\w+\)|\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:hh?|ll?|[zjtqL])?[diouxXeEfFgGcsp](?!\w)|%\d+|%%|%\w+%|\$[{(]?[A-Za-z_]|\{[\w.:+-]*\}"
)
# Neither an entity ("&amp;") nor an abbreviation ("R&D").
SHORTCUT = re.compile(r"[_&~](?=[^\W\d_])(?!\w+;)(?!(?<=[A-Z].)[A-Z])")


def rows(paths: Sequence[Path], *, language: str, counts: Counter[str]) -> Iterator[tuple[str, str, str]]:
    """Pairs of all catalogues of a language, or of its main country ("ru_RU" for "ru"), with their domain.

    Args:
        paths: text of packages, as `debian_package` writes it.
        counts: gains `placeholder`, `shortcut` (marked on one side only), `untranslated` and `no_text`.

    Raises:
        UserError: no catalogue in this language in a package, or a broken one.
    """
    names = {language, language.replace("-", "_"), f"{language}_{language.upper()}"}
    for path in paths:
        languages, seen = set(), set()
        for name, stream in walk(path):
            if place := CATALOGUE.fullmatch(name):
                languages.add(place["language"])
                if place["language"] in names and place["domain"] not in seen:
                    seen.add(place["domain"])
                    for source, target in messages(stream.read(), name=f"{path}: {name}", counts=counts):
                        for pair in pairs(source, target, counts=counts):
                            yield *pair, place["domain"]
        if not seen:
            there = ", ".join(sorted(languages)) or "no catalogue at all"
            raise UserError(
                f"{path}: no message catalogue in {language}; it holds {there}; remove the package from gettext"
            )


def messages(data: bytes, *, name: str, counts: Counter[str]) -> Iterator[tuple[str, str]]:
    """English messages with their translations, in the order of the catalogue `name`; a damaged one is a `UserError`."""
    try:
        keys = _keys(data)
        translations = gettext.GNUTranslations(io.BytesIO(data))
        for key in filter(None, keys):  # the translation of the empty message is the header
            one, plural, many = key.decode(translations.charset() or "utf-8").partition("\0")
            forms = [(one, translations.gettext(one))]
            if plural:
                forms = [(form, translations.ngettext(one, many, n)) for form, n in ((one, 1), (many, MANY))]
            for message, translation in forms:
                english = message.rpartition("\4")[2]  # without the context
                if english in CREDITS or translation in (message, english):
                    counts["untranslated"] += 1
                else:
                    yield english, translation
    except (OSError, ValueError, LookupError, ArithmeticError, struct.error) as error:
        raise UserError(f"{name}: not a complete message catalogue ({error}); fetch the package again") from None


def _keys(data: bytes) -> list[bytes]:
    """The untranslated messages: the header locates a table of (length, offset), in either byte order.

    Strings that overlap so much that a file of kilobytes would unpack to gigabytes are a `ValueError`.
    """
    order = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
    number, *tables = struct.unpack(f"{order}3I", data[8:20])
    messages, translations = (
        [struct.unpack_from(f"{order}2I", data, table + 8 * entry) for entry in range(number)] for table in tables
    )
    if sum(length for length, _ in messages + translations) > SHARED * len(data):
        raise ValueError("its strings are longer than the file")
    return [data[offset : offset + length] for length, offset in messages]


def pairs(source: str, target: str, *, counts: Counter[str]) -> list[tuple[str, str]]:
    """The text of a message and its translation, as pairs of sentences, paragraphs or the whole."""
    if PLACEHOLDER.search(source) or PLACEHOLDER.search(target):
        counts["placeholder"] += 1
        return []
    if hint := HINT.match(source):
        source = source[hint.end() :]
        target = target.removeprefix(hint[0])
    marks = [len(SHORTCUT.findall(text)) for text in (source, target)]
    if marks[0] != marks[1]:
        counts["shortcut"] += 1
        return []
    if marks[0] == 1 and not _same_identifier(source, target):
        source, target = SHORTCUT.sub("", source), SHORTCUT.sub("", target)
    sources, targets = _paragraphs(source), _paragraphs(target)
    if len(sources) != len(targets):
        sources, targets = [" ".join(sources)], [" ".join(targets)]
    divided = [pair for one, other in zip(sources, targets) for pair in divide(one, other)]
    kept = [pair for pair in divided if all(map(has_letters, pair))]
    counts["no_text"] += (len(divided) or 1) - len(kept)
    return kept


def _same_identifier(source: str, target: str) -> bool:
    """Whether the mark is inside a word that both sides share, such as "file_name": a name, since words are translated."""
    one, other = (next(word for word in text.split() if SHORTCUT.search(word)) for text in (source, target))
    return one == other and SHORTCUT.search(one).start() > 0


def _paragraphs(text: str) -> list[str]:
    """Text without markup, one string per paragraph, single spaces."""
    text = PICTURE.sub("", QUOTED.sub(lambda element: element[2].replace("\\'", "'"), text))
    text = TAG.sub("", BREAK.sub("\n\n", text))
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]
