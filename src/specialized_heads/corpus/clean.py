"""Stage clean: normalise the text, drop pairs that are no translations, and say which pairs belong together.

Text becomes Unicode NFC without control and format characters, and every run of white space (no-break spaces included)
becomes one space. Nothing else is changed: no lower-casing, no tokenisation, no replacement of quotes, since BLEU is
computed on this text. Each filter then drops pairs for one reason, in the order of `FILTERS`, and a pair is counted for
the first reason that holds.

Pairs without a document are grouped by sentence: two pairs belong together when their sources or their targets have equal
keys (`near_duplicates`), directly or over other pairs. So no sentence has one translation in training and another in test.
Groups are found before anything is dropped, so that a filter does not move the pairs it keeps to another group.
"""

import unicodedata
from collections.abc import Callable, Sequence

from specialized_heads.config import Filters, Section
from specialized_heads.corpus.near_duplicates import sentence_key
from specialized_heads.corpus.pairs import Pairs, read_pairs, write_pairs
from specialized_heads.stage import UserError, arguments, log, progress, run, write_json

# Joiners carry spelling in Persian and in the scripts of India; other format characters (soft hyphen, zero-width space,
# byte-order mark, directional marks) are invisible.
KEPT_FORMAT_CHARACTERS = "\u200c\u200d"


class Settings(Section):
    """What affects the result: the filters, as in the configuration."""

    filters: Filters


def normalise(text: str) -> str:
    """NFC, single spaces, no control or format characters."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    text = " ".join(text.split())
    if text.isprintable():
        return text
    visible = [c for c in text if unicodedata.category(c) not in ("Cc", "Cf") or c in KEPT_FORMAT_CHARACTERS]
    return " ".join("".join(visible).split())


def is_empty(source: str, target: str, filters: Filters) -> bool:
    """One side has no text."""
    return not source or not target


def is_too_short(source: str, target: str, filters: Filters) -> bool:
    """One side has fewer than `min_words` words."""
    return min(source.count(" "), target.count(" ")) + 1 < filters.min_words


def is_too_long(source: str, target: str, filters: Filters) -> bool:
    """One side has more than `max_words` words."""
    return max(source.count(" "), target.count(" ")) + 1 > filters.max_words


def is_uneven(source: str, target: str, filters: Filters) -> bool:
    """One side is more than `max_ratio` times as long as the other, in characters."""
    return max(len(source), len(target)) > filters.max_ratio * min(len(source), len(target))


def is_copy(source: str, target: str, filters: Filters) -> bool:
    """The target is the source, but for case, digits and punctuation."""
    return not filters.copies and sentence_key(source) == sentence_key(target)


FILTERS: dict[str, Callable[[str, str, Filters], bool]] = {
    "empty": is_empty,
    "too_short": is_too_short,
    "too_long": is_too_long,
    "uneven": is_uneven,
    "copy": is_copy,
}


def clean(raw: Pairs, *, filters: Filters) -> tuple[Pairs, dict[str, int]]:
    """Normalise, group where there are no documents, and filter; keep the first of exactly equal pairs.

    Returns:
        the pairs that are kept, in order, and the number dropped for each reason. Together they are as many as `raw`.
    """
    sources = [normalise(text) for text in progress(raw.source, what="normalise source", unit="sentence")]
    targets = [normalise(text) for text in progress(raw.target, what="normalise target", unit="sentence")]
    documents = raw.document if all(raw.document) else group_by_sentence(sources, targets)

    kept = Pairs([], [], [])
    dropped = dict.fromkeys([*FILTERS, "duplicate"], 0)
    seen = set()
    rows = zip(sources, targets, documents, strict=True)
    for source, target, document in progress(rows, what="filter", total=len(raw), unit="pair"):
        reason = next((name for name, drops in FILTERS.items() if drops(source, target, filters)), None)
        if reason is None and (source, target) in seen:
            reason = "duplicate"
        if reason is not None:
            dropped[reason] += 1
            continue
        seen.add((source, target))
        kept.source.append(source)
        kept.target.append(target)
        kept.document.append(document)
    return kept, dropped


def group_by_sentence(sources: Sequence[str], targets: Sequence[str]) -> list[str]:
    """The document of each pair when sentences decide: the smallest source key of its connected component.

    Returns:
        one name per pair; two pairs have the same one iff a chain of equal source keys or equal target keys links them.
        An empty sentence links nothing.
    """
    parent = list(range(len(sources)))

    def root(pair: int) -> int:
        while parent[pair] != pair:
            parent[pair] = parent[parent[pair]]
            pair = parent[pair]
        return pair

    source_keys = [sentence_key(text) for text in sources]
    for keys in (source_keys, [sentence_key(text) for text in targets]):
        first: dict[str, int] = {}
        for pair, key in enumerate(keys):
            if key:
                parent[root(pair)] = root(first.setdefault(key, pair))

    names: dict[int, str] = {}
    for pair, key in enumerate(source_keys):
        component = root(pair)
        names[component] = min(key, names.get(component, key))
    return [names[root(pair)] for pair in range(len(sources))]


def main() -> None:
    """Read `--input` (raw.parquet); write `--output` (clean.parquet) and `--counts` (clean.json)."""
    files = arguments(__doc__, files=["input", "output", "counts"])
    settings = Settings.model_validate(files.settings)
    raw = read_pairs(files.input)
    kept, dropped = clean(raw, filters=settings.filters)
    if not len(kept):
        reasons = ", ".join(f"{name} {count}" for name, count in dropped.items() if count)
        raise UserError(f"{files.input}: no pair of {len(raw)} passes the filters ({reasons}); relax `filters`")
    write_pairs(files.output, kept)
    counts = {"raw": len(raw), "dropped_in_cleaning": dropped, "clean": len(kept), "groups": len(set(kept.document))}
    write_json(files.counts, counts)
    log.info("clean: %d of %d pairs in %d groups; dropped %s", len(kept), len(raw), counts["groups"], dropped)


if __name__ == "__main__":
    run(main)
