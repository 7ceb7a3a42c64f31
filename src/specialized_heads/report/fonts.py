"""Letters that the figures' font, DejaVu Sans, lacks, and letters that are read from right to left.

Titles and tokens may be in any language. DejaVu Sans has Latin, Cyrillic, Greek, Arabic, Hebrew, Armenian and Georgian letters;
only for others, such as Chinese, Japanese, Korean, Thai or Hindi, are the machine's own fonts searched.
"""

import re
from functools import cache
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, findSystemFonts, fontManager
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

from specialized_heads.report.style import FONT
from specialized_heads.stage import log

MARK = "\u200e"  # left-to-right mark
RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
# From the first such letter of a line to the last one before a letter of another script.
RUN = re.compile(rf"[{RIGHT_TO_LEFT}](?:[^\w\n]*[{RIGHT_TO_LEFT}])*")


def missing(figure: Figure) -> set[str]:
    """The letters of a figure that its font lacks."""
    letters = {letter for text in figure.findobj(Text) for letter in text.get_text() if letter.isprintable()}
    return {letter for letter in letters if ord(letter) not in _letters_of(findfont(FONT))}


def having(letters: set[str]) -> list[str]:
    """Families of installed fonts that together have these letters, those with the most letters first.

    Letters that no font has are drawn as empty boxes; a warning names them.
    """
    files = sorted(findSystemFonts(), key=lambda path: (_is_special(path), Path(path).name, path))
    left, families = set(letters), []
    while left and files:
        best = max(files, key=lambda path: sum(ord(letter) in _letters_of(path) for letter in left))
        if not (known := {letter for letter in left if ord(letter) in _letters_of(best)}):
            break
        fontManager.addfont(best)
        families.append(FT2Font(best).family_name)
        left -= known
    if left:
        log.warning(
            "no font on this machine has %s: the figure shows boxes instead; install a font for this language, such as Noto Sans",
            " ".join(sorted(left)[:10]),
        )
    return families


def keep_order(figure: Figure) -> None:
    """Keep right-to-left letters from reversing what is beside them, such as numbers."""
    for text in figure.findobj(Text):
        shown = text.get_text()
        if (marked := RUN.sub(rf"{MARK}\g<0>{MARK}", shown)) != shown:
            text.set_text(marked)


def _is_special(path: str) -> bool:
    """Whether a font is bold, slanted, with serifs or the like, so that others with the same letters are preferred."""
    name = Path(path).stem.lower()
    return any(part in name for part in ("bold", "italic", "oblique", "serif", "mono", "black", "thin", "light"))


@cache
def _letters_of(path: str) -> frozenset[int]:
    """The code points of a font; none if the file cannot be read."""
    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):
        return frozenset()
