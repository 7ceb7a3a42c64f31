"""Labels of heads, on either side of each threshold."""

import pytest

from specialized_heads.experiment.sections import Heads
from specialized_heads.heads.functions import functions_of
from specialized_heads.heads.positional import Position

NAN = float("nan")


def label(
    kind: str = "encoder", *, offset: int | None = -1, share: float = 0.0, margin: float = NAN, rarest: float = NAN
) -> tuple[list[str], list[str]]:
    margins = {"obj_head_to_dependent": margin, "amod_head_to_dependent": -0.3} if kind == "encoder" else {}
    return functions_of(kind, Position(offset, share, 0.0), Heads(), margins=margins, shares={"rarest": rarest})


@pytest.mark.parametrize("share, expected", [(0.9, ["positional"]), (0.8999, []), (1.0, ["positional"]), (NAN, [])])
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_positional(kind: str, share: float, expected: list[str]) -> None:
    assert label(kind, share=share, offset=-2) == (expected, [])


@pytest.mark.parametrize("baseline", [0.1, 0.2, 0.3, 0.35, 0.6, 0.7])
def test_syntactic_is_at_least_ten_points_above_the_baseline(baseline: float) -> None:
    exactly = round(baseline + 0.1, 10) - baseline  # 0.8 is a little less than 0.7 + 0.1 in binary
    assert label(margin=exactly) == (["syntactic"], ["obj_head_to_dependent"])
    assert label(margin=exactly - 0.001) == label(margin=NAN) == ([], [])


@pytest.mark.parametrize("rarest, expected", [(0.5, ["rare words"]), (0.499, []), (NAN, [])])
def test_rare_words(rarest: float, expected: list[str]) -> None:
    assert label(rarest=rarest) == (expected, [])
    assert label(rarest=rarest, share=0.95, margin=0.6)[0] == ["positional", "syntactic", *expected]


@pytest.mark.parametrize(
    "offset, share, expected",
    [(-2, 1.0, []), (-1, 0.9, ["diagonal"]), (0, 0.9, ["diagonal"]), (1, 0.9, ["diagonal"]), (2, 1.0, [])]
    + [(0, 0.899, []), (None, NAN, [])],
)
def test_a_diagonal_head_is_on_the_diagonal_or_beside_it(offset: int | None, share: float, expected: list[str]) -> None:
    assert label("cross", offset=offset, share=share) == (expected, [])
