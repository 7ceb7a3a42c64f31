"""The BLEU that everything here is scored with: sacreBLEU's, whose tokeniser follows from the language of the translation.

sacreBLEU's 13a cuts at white space and punctuation. Where words are not written apart a whole sentence would be one token, and
almost every BLEU 0: Chinese has a tokeniser of its own there, the others are scored by characters.
"""

from sacrebleu.metrics import BLEU

from specialized_heads.languages import without_region

UNSEGMENTED = {"zh": "zh", "yue": "zh"} | dict.fromkeys(("ja", "th", "lo", "km", "my", "bo", "dz"), "char")


def tokenizer(language: str) -> str:
    """sacreBLEU's name of the tokeniser for a language, given by its code (zh, zh_TW and zh-Hant are one)."""
    return UNSEGMENTED.get(without_region(language), "13a")


def bleu(language: str, *, lowercase: bool, effective_order: bool = False) -> BLEU:
    """The metric; `effective_order` for single sentences, which may be shorter than four tokens."""
    return BLEU(lowercase=lowercase, tokenize=tokenizer(language), effective_order=effective_order)
