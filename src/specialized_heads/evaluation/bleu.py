"""The BLEU of the whole project: sacreBLEU's, with a tokeniser chosen by the target language.

sacreBLEU's tokeniser 13a splits at white space and punctuation. In languages written without spaces a sentence would be one
token and BLEU almost always 0, so Chinese uses sacreBLEU's own tokeniser and the others are scored by characters.
"""

from sacrebleu.metrics import BLEU

from specialized_heads.languages import without_region

CHINESE = ("zh", "yue", "wuu", "lzh", "gan", "hak", "nan", "hsn", "cdo")
UNSEGMENTED = dict.fromkeys(CHINESE, "zh") | dict.fromkeys(("ja", "th", "lo", "km", "my", "shn", "bo", "dz"), "char")


def tokenizer(language: str) -> str:
    """sacreBLEU's tokeniser for a language code (zh, zh_TW and zh-Hant are the same)."""
    return UNSEGMENTED.get(without_region(language), "13a")


def bleu(language: str, *, lowercase: bool, effective_order: bool = False) -> BLEU:
    """The metric; set `effective_order` for single sentences, which may be shorter than four tokens."""
    return BLEU(lowercase=lowercase, tokenize=tokenizer(language), effective_order=effective_order)
