"""Divide a paragraph and its translation into sentences if both have the same number of them."""

import re

# A full stop before a lower-case letter mostly ends an abbreviation. Capitals: Latin with accents, Greek, Cyrillic.
SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=[A-ZÀ-ÖØ-ÞŒŠŽΑ-ΩЀ-Я\"“„«(])")


def divide(source: str, target: str) -> list[tuple[str, str]]:
    """The pairs of sentences of two paragraphs with single spaces; the pair of paragraphs itself if the numbers differ."""
    sources, targets = SENTENCE_END.split(source), SENTENCE_END.split(target)
    return list(zip(sources, targets)) if len(sources) == len(targets) else [(source, target)]


def has_letters(text: str) -> bool:
    """Whether the text has any letter."""
    return any(character.isalpha() for character in text)
