"""Relative positions (section 5.1) and the diagonal of cross-attention, on argmaxes whose answers are known."""

import numpy as np
import pytest
import torch

from specialized_heads.heads.positional import ceiling, chance_counts, choosing, expected, offset_counts, preferred


def real(*lengths: int, size: int = 5) -> torch.Tensor:
    return torch.arange(size) < torch.tensor(lengths)[:, None]


def test_offsets_of_self_attention() -> None:
    queries = choosing("encoder", real(3, 1))
    assert queries.sum(1).tolist() == [3, 1]
    best = torch.tensor([[[1, 2, 0, 0, 0], [0, 0, 0, 0, 0]], [[0, 4, 4, 4, 4], [0, 4, 4, 4, 4]]])
    counts = offset_counts(best, expected("encoder", queries, real(3, 1)), queries, reach=4)
    offsets = [{c - 4: n for c, n in enumerate(head) if n} for head in counts.tolist()]
    assert offsets == [{1: 2, -2: 1, 0: 1}, {0: 2, -1: 1, -2: 1}]
    assert preferred("encoder", counts[0].numpy()) == (1, 0.5)


def test_offsets_reach_from_end_to_end() -> None:
    best = torch.tensor([[[4, 0, 0, 0, 0]]])
    queries = real(5)
    counts = offset_counts(best, expected("encoder", queries, queries), queries, reach=4)
    assert counts.tolist() == [[1, 1, 1, 1, 0, 0, 0, 0, 1]]


def test_no_heads_and_no_queries() -> None:
    queries = real(3, 1)
    best = torch.zeros(2, 0, 5, dtype=torch.long)
    assert offset_counts(best, expected("encoder", queries, queries), queries, reach=4).shape == (0, 9)
    offset, share = preferred("cross", np.zeros(9, dtype=int))
    assert offset is None and np.isnan(share)


def test_queries_of_self_attention_all_have_a_position() -> None:
    for kind in ("encoder", "decoder"):
        assert choosing(kind, real(3, 1)).tolist() == real(3, 1).tolist()


def test_the_last_query_of_cross_attention_predicts_eos() -> None:
    assert choosing("cross", real(3, 5, 1)).sum(1).tolist() == [2, 4, 0]


@pytest.mark.parametrize(
    "target, source, diagonal",
    [(4, 4, [0, 1, 2, 3]), (2, 5, [1, 3]), (4, 2, [0, 0, 1, 1]), (3, 1, [0, 0, 0]), (1, 5, [2]), (4, 5, [0, 1, 3, 4])],
)
def test_the_diagonal_leads_from_start_to_end(target: int, source: int, diagonal: list[int]) -> None:
    queries = choosing("cross", real(target + 1))
    assert expected("cross", queries, real(source))[0, :target].tolist() == diagonal


def test_a_place_beside_the_diagonal_counts() -> None:
    counts = np.array([0, 2, 5, 3, 0, 1, 0])
    offset, share = preferred("cross", counts)
    assert (offset, share) == (-1, pytest.approx(10 / 11))
    assert preferred("decoder", counts) == (-1, pytest.approx(5 / 11))
    assert preferred("cross", np.array([4, 1, 0, 0, 0])) == (-2, 1.0)  # at the edge


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_chance_is_what_a_head_without_preference_has(kind: str) -> None:
    """All keys that a query sees are its argmax once: their mean is the expectation."""
    keys = real(4, 2) if kind == "cross" else real(3, 5)
    queries = real(3, 5)
    if kind == "decoder":
        queries[:, 0] = False
    counted = choosing(kind, queries)
    origin = expected(kind, counted, keys)
    places = {}
    for row, query in counted.nonzero().tolist():
        seen = [key for key in range(5) if keys[row, key] and (kind != "decoder" or key <= query)]
        for key in seen:
            offset = key - int(origin[row, query])
            places[offset] = places.get(offset, 0) + 1 / len(seen)
    counts = chance_counts(kind, origin, counted, keys, reach=6)
    assert {c - 6: n for c, n in enumerate(counts.tolist()) if n} == pytest.approx(places)
    assert float(counts.sum()) == pytest.approx(int(counted.sum()))


@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 3])
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_ceiling_is_the_share_of_a_head_that_always_looks_there(kind: str, offset: int) -> None:
    lengths = np.array([1, 2, 5, 7])
    first = 1 if kind == "decoder" else 0
    places = [(length, t) for length in lengths for t in range(first, length)]
    there = [0 <= t + offset < length for length, t in places]
    assert ceiling(kind, offset, lengths) == pytest.approx(sum(there) / len(places))


def test_ceiling_of_the_decoder_without_sentences() -> None:
    assert np.isnan(ceiling("decoder", -1, np.array([0, 0])))
