"""Timing pruned models: what is compared computes the same, batches hold sentences of all lengths, rows their columns."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from specialized_heads.evaluation import speed
from specialized_heads.model.checkpoint import save
from specialized_heads.report.beyond import speed as table

KEPT = {"encoder": [[1], []]}
SETTINGS = {"batches": [1, 4], "decoding": {"beam": 2, "max_length_ratio": 1.0}, "device": "cpu"}


def test_a_masked_twin_encodes_as_the_pruned_model(tiny_model) -> None:
    pruned = tiny_model()
    pruned.keep_heads(KEPT)
    source = torch.tensor([[5, 6, 7, 3], [8, 3, 0, 0]])
    whole = tiny_model().encode(source)[0]
    torch.testing.assert_close(speed.masked(tiny_model(), pruned).encode(source)[0], pruned.encode(source)[0])
    assert not torch.allclose(whole, pruned.encode(source)[0])


@pytest.mark.parametrize(("size", "count"), [(1, 16), (5, 4), (16, 1), (40, 1), (100, 1)])
def test_batches_hold_sentences_of_all_lengths(store, sentences, size: int, count: int) -> None:
    tokens = store(*sentences(40, longest=8))
    batches = speed.batches_of(tokens, size)
    assert [len(batch) for batch in batches] == [min(size, 40)] * count
    assert all(len(set(batch.tolist())) == len(batch) for batch in batches)
    if size == 5:
        assert all(np.ptp(tokens.source_lengths[batch]) >= 5 for batch in batches)


def test_rows_from_models_to_the_table(tiny_model, token_file, sentences, call, tmp_path: Path) -> None:
    paths = []
    for number, kept in enumerate([{}, KEPT, KEPT, {"encoder": [[], []]}]):
        model = tiny_model()
        model.keep_heads(kept)
        paths.append(tmp_path / f"{number}.safetensors")
        save(model, paths[-1], training={})
    tokens = token_file("test", *sentences(20))
    output = tmp_path / "speed.parquet"
    call(speed, settings=SETTINGS, baseline=paths[0], pruned=paths, tokens=tokens, output=output)
    rows = pd.read_parquet(output)
    # the whole model, one with one head (given twice) and one without any, at both batch sizes
    assert rows[["heads", "sentences"]].to_numpy().tolist() == [[4, 1], [1, 1], [0, 1], [4, 4], [1, 4], [0, 4]]
    assert (rows[["encoder_seconds", "translation_seconds", "tokens"]] > 0).all(axis=None)
    assert rows["masked_seconds"].isna().tolist() == [True, False, False] * 2

    numbers = table.numbers(None, {"Mine": output})
    assert numbers.loc[numbers["heads"] == 4, ["encoder_speedup", "translation_speedup"]].eq(1.0).all(axis=None)
    assert set(table.shown(numbers)["corpus"]) == {"Mine"}
