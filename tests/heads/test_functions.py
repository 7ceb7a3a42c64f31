"""Labels of heads, exactly at the thresholds."""

import pytest

from specialized_heads.heads.functions import decoder_functions_of, functions_of

THRESHOLDS = {"positional_threshold": 0.9, "margin": 0.1, "rare_threshold": 0.5}
NAN = float("nan")


def label(share: float, accuracy: float, baseline: float, rarest: float) -> tuple[list[str], list[str]]:
    return functions_of(
        positional_share=share,
        accuracies={"obj_head_to_dependent": accuracy, "amod_head_to_dependent": 0.0},
        baselines={"obj_head_to_dependent": baseline, "amod_head_to_dependent": 0.3},
        rarest=rarest,
        **THRESHOLDS,
    )


@pytest.mark.parametrize("share, expected", [(0.9, ["positional"]), (0.8999, []), (1.0, ["positional"])])
def test_positional(share: float, expected: list[str]) -> None:
    assert label(share, 0.0, 0.3, 0.0) == (expected, [])


@pytest.mark.parametrize("baseline", [0.1, 0.2, 0.3, 0.35, 0.6, 0.7])
def test_syntactic_is_at_least_ten_points_above_the_baseline(baseline: float) -> None:
    exactly = round(baseline + 0.1, 10)  # 0.8 is a little less than 0.7 + 0.1 in binary
    assert label(0.0, exactly, baseline, 0.0) == (["syntactic"], ["obj_head_to_dependent"])
    assert label(0.0, exactly - 0.001, baseline, 0.0) == ([], [])


@pytest.mark.parametrize("rarest, expected", [(0.5, ["rare words"]), (0.499, []), (NAN, [])])
def test_rare_words(rarest: float, expected: list[str]) -> None:
    assert label(0.0, 0.0, 0.3, rarest) == (expected, [])


def test_all_of_them_in_order() -> None:
    assert label(0.95, 0.9, 0.3, 0.7) == (["positional", "syntactic", "rare words"], ["obj_head_to_dependent"])


def test_a_relation_that_does_not_occur_makes_no_head_syntactic() -> None:
    assert label(0.0, NAN, NAN, 0.0) == ([], [])
    assert label(0.0, NAN, 0.3, 0.0) == ([], [])


@pytest.mark.parametrize("share, labelled", [(0.9, True), (0.899, False), (NAN, False)])
def test_heads_of_the_decoder_and_of_cross_attention(share: float, labelled: bool) -> None:
    found = {
        kind: decoder_functions_of(kind, offset=-1, positional_share=share, positional_threshold=0.9)
        for kind in ("decoder", "cross")
    }
    assert found == ({"decoder": ["positional"], "cross": ["diagonal"]} if labelled else {"decoder": [], "cross": []})


@pytest.mark.parametrize("offset, label", [(-2, []), (-1, ["diagonal"]), (0, ["diagonal"]), (1, ["diagonal"]), (2, [])])
def test_a_diagonal_head_is_on_the_diagonal_or_beside_it(offset: int, label: list[str]) -> None:
    assert decoder_functions_of("cross", offset=offset, positional_share=1.0, positional_threshold=0.9) == label
    assert decoder_functions_of("decoder", offset=-2, positional_share=1.0, positional_threshold=0.9) == ["positional"]


def test_heads_without_queries_have_no_function() -> None:
    for kind in ("decoder", "cross"):
        assert decoder_functions_of(kind, offset=None, positional_share=NAN, positional_threshold=0.9) == []
