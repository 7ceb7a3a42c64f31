"""Codes of languages: two letters, three letters, scripts and regions."""

import pytest

from specialized_heads.evaluation.significance import tokenizer
from specialized_heads.languages import SAME, TWO_LETTERS, without_region


@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("pt_BR", "pt"),
        ("zh-Hant", "zh"),
        ("EN", "en"),
        ("zho_Hans", "zh"),
        ("cmn", "zh"),
        ("ger", "de"),
        ("hsb", "hsb"),
    ],
)
def test_the_language_of_a_code(code: str, language: str) -> None:
    assert without_region(code) == language


def test_what_is_known_of_a_language_does_not_depend_on_how_its_code_is_written() -> None:
    assert tokenizer("zho_Hans") == tokenizer("zh") == "zh"
    assert tokenizer("jpn_Jpan") == tokenizer("tha") == "char"
    assert len(TWO_LETTERS) == sum(len(same.split()) for same in SAME.values())  # none stands for two languages
