"""Paragraphs that translate each other, divided into sentences where both sides have equally many."""

import re

# A full stop before a small letter is mostly an abbreviation. Capitals: Latin with accents, Greek, Cyrillic.
SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=[A-ZÀ-ÖØ-ÞŒŠŽΑ-ΩЀ-Я\"“„«(])")


def divide(source: str, target: str) -> list[tuple[str, str]]:
    """The pairs of sentences of two paragraphs; the pair of paragraphs itself where the numbers differ.

    Args:
        source, target: text with single spaces.
    """
    sources, targets = SENTENCE_END.split(source), SENTENCE_END.split(target)
    return list(zip(sources, targets)) if len(sources) == len(targets) else [(source, target)]


def has_letters(text: str) -> bool:
    """Whether it is more than numbers and signs."""
    return any(character.isalpha() for character in text)
