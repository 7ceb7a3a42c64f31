"""Preprocessing of text before BPE, undone after translating: `vocabulary.preprocess`.

`none` leaves the text unchanged. `paper` is what the code released with the paper expects: Moses tokenisation, then lower case
(in this order, since Moses recognises abbreviations such as "Mr." by their capitals). XML characters are not escaped and hyphens
not split, so only case and white space change. The alignment of words with subwords (`parsing/alignment.py`) relies on that and
checks it.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from specialized_heads.experiment.sections import Mode
from specialized_heads.languages import without_region

# Spaces that Moses inserts but does not remove: before Arabic and Indic punctuation, and around joiners within words.
PUNCTUATION = re.compile(" (?=[،؛؟۔।॥])")
JOINER = re.compile(" ?([\u200c\u200d]) ?")


def apply(texts: Iterable[str], *, language: str, mode: Mode) -> list[str]:
    """Preprocess sentences for BPE: for `paper`, lower-case tokens separated by single spaces."""
    if mode == "none":
        return list(texts)
    tokenize = _moses(language)[0].tokenize
    return [" ".join(tokenize(text, escape=False)).lower() for text in texts]


def undo(texts: Iterable[str], *, language: str, mode: Mode) -> list[str]:
    """Undo `apply`; for `paper`, Moses restores the spaces, and the text stays in lower case."""
    if mode == "none":
        return list(texts)
    detokenize = _moses(language)[1].detokenize
    joined = (detokenize(text.split(), unescape=False) for text in texts)
    return [JOINER.sub(r"\1", PUNCTUATION.sub("", text)) for text in joined]


@cache
def _moses(language: str) -> tuple[Any, Any]:
    """Moses' tokeniser and detokeniser of a language, ignoring its region; an unknown language has general rules."""
    # Imported here, so that stages without tokenised text do not pay for it.
    from sacremoses import MosesDetokenizer, MosesTokenizer

    language = without_region(language)
    tokenizer = MosesTokenizer(language)
    # Moses' own methods build sets of all letters at each full stop, which takes half of the time.
    letters = frozenset(tokenizer.IsAlpha)
    tokenizer.islower = frozenset(tokenizer.IsLower).issuperset
    tokenizer.isanyalpha = lambda text: not letters.isdisjoint(text)
    return tokenizer, MosesDetokenizer(language)
