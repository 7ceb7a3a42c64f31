"""Codes of languages: two letters, three letters, scripts and regions."""

from specialized_heads.evaluation.significance import tokenizer
from specialized_heads.languages import without_region

CODES = {"pt_BR": "pt", "zh-Hant": "zh", "EN": "en", "zho_Hans": "zh", "cmn": "zh", "ger": "de", "hsb": "hsb"}


def test_what_is_known_of_a_language_does_not_depend_on_how_its_code_is_written() -> None:
    assert {code: without_region(code) for code in CODES} == CODES
    assert tokenizer("zho_Hans") == tokenizer("zh") == "zh"
    assert tokenizer("jpn_Jpan") == tokenizer("tha") == "char"
