"""Names of models: what is written reads back as the same, and nothing else is read."""

import re

import pytest

from specialized_heads.experiment.names import MODEL, Name, Target, columns

NAMES = {
    "baseline": Name("baseline"),
    "checkpoint/update500": Name("checkpoint", update=500),
    "pruned/encoder_lambda0.01": Name("pruned", "encoder", Target(lam=0.01)),
    "count/all_lambda1e-05": Name("count", "all", Target(lam=1e-5)),
    "scratch/all_heads0": Name("scratch", "all", Target(heads=0)),
    "cut/relevance_encoder_heads6": Name("cut", "encoder", Target(heads=6), "relevance"),
}


@pytest.mark.parametrize("text", NAMES)
def test_a_name_reads_back_as_what_was_written(text: str) -> None:
    assert str(NAMES[text]) == text
    assert Name.parse(text) == NAMES[text]


def test_the_key_columns_of_a_model_follow_from_its_name() -> None:
    keys = {"kind": "cut", "scope": "all", "lam": None, "target_heads": 12, "criterion": "gates", "update": None}
    assert columns("cut/gates_all_heads12", 3) == keys | {"seed": 3}
    assert columns("checkpoint/update40")["update"] == 40 and columns("pruned/all_lambda1e-05")["lam"] == 1e-5


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (100.0, "100"), (0.0005, "0.0005"), (1e-5, "1e-05")])
def test_the_name_of_a_lambda_reads_back_as_the_same_number(value: float, text: str) -> None:
    assert str(Target(lam=value)) == f"lambda{text}"
    assert Target.parse(f"lambda{text}").lam == value


@pytest.mark.parametrize("text", ["", "pruned", "pruned/decoder_heads6", "pruned/all_0.1", "../baseline"])
def test_other_text_is_not_a_name(text: str) -> None:
    assert not re.fullmatch(MODEL, text)
    with pytest.raises(ValueError, match="is not the name of a model"):
        Name.parse(text)
    with pytest.raises(ValueError, match="is not a target"):
        Target.parse(text)
