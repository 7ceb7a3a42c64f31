"""What tests of cleaning share."""

import re
import unicodedata

ENGLISH_FRENCH = {"source_language": "en", "target_language": "fr"}
Row = tuple[str, str, str, str]  # source, target, document, set


def above_zero(counts: dict[str, int]) -> dict[str, int]:
    return {name: number for name, number in counts.items() if number}


def plain_key(text: str) -> str:
    """The key of a sentence by its definition, one character after the other."""
    folded = re.sub("[İı]", "i", text).casefold()
    marks = {
        c for c in folded if unicodedata.category(c)[0] == "M" and not "\ufe00" <= c <= "\ufe0f" and c < "\U000e0000"
    }
    inner = [c if re.match(r"[^\W\d_]", c) or c in marks else " " for c in folded]
    return " ".join("".join(inner).split()) or text
