"""What is done to text before BPE and undone after translating: `vocabulary.preprocess`.

`none` leaves the text as it is. `paper` is what the code released with the paper asks for: Moses tokenisation, and then
lower case (in this order, since Moses knows abbreviations such as "Mr." by their capitals). XML characters are not
escaped and hyphens are not split, so nothing changes but case and white space: the characters of a sentence, without its
white space, are those of the raw sentence in lower case, one after the other. The alignment of words with subwords
(`parsing/alignment.py`) relies on that and checks it.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Literal

from specialized_heads.languages import without_region

Mode = Literal["none", "paper"]
# What Moses sets apart and does not put back: a space before Arabic and Indic punctuation, and around joiners within words.
PUNCTUATION = re.compile(" (?=[،؛؟۔।॥])")
JOINER = re.compile(" ?([\u200c\u200d]) ?")


def apply(texts: Iterable[str], *, language: str, mode: Mode) -> list[str]:
    """Sentences as BPE gets them.

    Args:
        texts: raw sentences.
        language: their language; one that Moses does not know is tokenised by its general rules.
        mode: `vocabulary.preprocess`.

    Returns:
        as many sentences; for `paper`, lower-case tokens with one space between them.
    """
    if mode == "none":
        return list(texts)
    tokenize = _moses(language)[0].tokenize
    return [" ".join(tokenize(text, escape=False)).lower() for text in texts]


def undo(texts: Iterable[str], *, language: str, mode: Mode) -> list[str]:
    """Sentences out of BPE as text to read; for `paper`, spaces go where Moses puts them, and lower case stays.

    Args:
        texts: sentences as `apply` gives them, such as translations.
        language: their language.
        mode: `vocabulary.preprocess`.
    """
    if mode == "none":
        return list(texts)
    detokenize = _moses(language)[1].detokenize
    joined = (detokenize(text.split(), unescape=False) for text in texts)
    return [JOINER.sub(r"\1", PUNCTUATION.sub("", text)) for text in joined]


@cache
def _moses(language: str) -> tuple[Any, Any]:
    """Moses' tokeniser and detokeniser; of a language with a region ("pt_br"), the language counts."""
    # Imported here: experiments without tokenised text should not pay for the import at every stage.
    from sacremoses import MosesDetokenizer, MosesTokenizer

    language = without_region(language)
    tokenizer = MosesTokenizer(language)
    # Its own two methods build sets of all letters at each full stop, which takes half of the time.
    letters = frozenset(tokenizer.IsAlpha)
    tokenizer.islower = frozenset(tokenizer.IsLower).issuperset
    tokenizer.isanyalpha = lambda text: not letters.isdisjoint(text)
    return tokenizer, MosesDetokenizer(language)
