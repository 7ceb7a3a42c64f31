"""Orders of heads: which ones are ranked, which is best, and what becomes of ties and missing
values."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from small import changed

from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.model.architecture import KINDS, Head, heads_of
from specialized_heads.model.checkpoint import load, save
from specialized_heads.model.transformer import Transformer
from specialized_heads.pruning import criteria
from specialized_heads.pruning.criteria import at_random, best_first
from specialized_heads.stage import UserError
from specialized_heads.tables import HEAD
from specialized_heads.training.objective import evaluate

NAN = float("nan")


@pytest.fixture
def ranked(tmp_path: Path) -> Callable[[dict[Head, float]], list[Head]]:
    """`ranked({head: 0.5, ...})`: heads with these values in a table of another order, the best
    first."""

    def rank(values: dict[Head, float]) -> list[Head]:
        rows = [(*head, value) for head, value in reversed(values.items())]
        pd.DataFrame(rows, columns=[*HEAD, "confidence"]).to_parquet(tmp_path / "heads.parquet")
        return best_first(tmp_path / "heads.parquet", list(values), column="confidence")

    return rank


def test_the_largest_value_is_best_ties_stay_in_order_and_heads_without_a_value_are_last(
    ranked,
) -> None:
    a, b, c, d, e = (("encoder", 1, head) for head in range(1, 6))
    assert ranked({a: 0.1, b: NAN, c: 0.5, d: 0.1, e: -2.0}) == [c, a, d, e, b]


def test_a_type_without_any_value_is_an_error(ranked) -> None:
    values = {("encoder", 1, 1): 0.4, ("decoder", 1, 1): NAN, ("decoder", 1, 2): NAN}
    with pytest.raises(UserError, match="heads.parquet: confidence: no decoder head has a value"):
        ranked(values)


def test_random_orders_are_nested_and_differ_by_seed() -> None:
    heads = [("encoder", 1, 1), ("encoder", 1, 4), ("encoder", 3, 3), ("decoder", 1, 2)]
    heads += [("cross", 2, 1), ("cross", 3, 6), ("cross", 3, 8)]
    first = at_random(heads, seed=1)
    assert sorted(first) == sorted(heads)
    assert first == at_random(heads, seed=1)
    assert len({tuple(at_random(heads, seed=seed)) for seed in range(20)}) > 15
    # Every head comes first for some seed: the order of types does not show.
    assert {at_random(heads, seed=seed)[0] for seed in range(100)} == set(heads)


# Cutting the baseline: exactly the heads that a criterion says, the weights of the others as they
# were.

TRAINING = {"training": {"updates": 77}, "data_hash": "h"}


@pytest.fixture
def run(call, tiny_model, tokens: dict[str, Path], tmp_path: Path) -> Callable[..., Transformer]:
    """`run("relevance", heads=3, table=...)`: a model of 3 encoder heads, like the first 3, cut
    from one with 7."""
    model = tiny_model(layers=3, heads=4, width=16)
    uneven = {
        "encoder": [[0, 2, 3], [], [0, 1, 2, 3]],
        "decoder": [[1], [0, 1], []],
        "cross": [[0], [], [3, 1]],
    }
    model.keep_heads(uneven)
    save(model, tmp_path / "baseline.safetensors", training=TRAINING)

    def cut_model(
        criterion: str,
        *,
        heads: int,
        scope: str = "encoder",
        seed: int = 1,
        draws: int = 0,
        **files: Path,
    ) -> Transformer:
        column = None if criterion in ("gates", "random") else criterion
        settings = {"criterion": criterion, "scope": scope, "column": column, "seed": seed}
        settings |= {"device": "cpu"}
        settings |= {"draws": draws} if draws else {}
        pruned = load(tmp_path / "baseline.safetensors")
        pruned.remove_heads(set(heads_of(pruned.architecture, scope=scope)[heads:]))
        save(pruned, tmp_path / "like.safetensors", training={})
        files = {"like": tmp_path / "like.json", "dev": tokens["dev"]} | files
        files |= {
            "model": tmp_path / "baseline.safetensors",
            "output": tmp_path / "cut.safetensors",
        }
        call(criteria.cut, settings=settings, **files)
        return load(tmp_path / "cut.safetensors")

    return cut_model


@pytest.fixture
def table(tmp_path: Path) -> Callable[[list[float]], Path]:
    """`table([0.5, ...])`: a file with the relevance of the first heads, in the order of types and
    layers."""

    def write(values: list[float]) -> Path:
        heads = heads_of(load(tmp_path / "baseline.safetensors").architecture, scope="all")
        rows = [(*head, value) for head, value in zip(heads, values)]
        frame = pd.DataFrame(rows, columns=["type", "layer", "head", "relevance"])
        frame.sample(frac=1, random_state=3).to_parquet(tmp_path / "heads.parquet")
        return tmp_path / "heads.parquet"

    return write


ENCODER = [0.1, 0.9, 0.2, 0.3, 0.8, 0.05, 0.25]
OTHERS = [0.95, 0.15, -0.5, 0.5, 0.6, 0.7]


def test_the_best_heads_of_the_encoder_stay_and_no_other_type_is_touched(
    run, table, tmp_path: Path
) -> None:
    before = load(tmp_path / "baseline.safetensors")
    after = run("relevance", heads=3, table=table(ENCODER + OTHERS))
    assert after.architecture == replace(before.architecture, encoder=((2,), (), (0, 1)))
    assert not any(changed(before, after).values())
    # types in one order
    every = run("relevance", heads=5, scope="all", table=table(ENCODER + OTHERS)).architecture
    expected = (((2,), (), (1,)), ((1,), (), ()), ((), (), (3, 1)))
    assert (every.encoder, every.decoder, every.cross) == expected


def test_all_heads_give_the_baseline_and_none_leave_none(run, table, tmp_path: Path) -> None:
    run("relevance", heads=7, table=table(ENCODER))
    assert (tmp_path / "cut.safetensors").read_bytes() == (
        tmp_path / "baseline.safetensors"
    ).read_bytes()
    after = run("random", heads=0, scope="all")
    assert all(not attention.heads for attention in after.attentions())


def test_gates_keeps_the_heads_of_the_pruned_model_with_the_weights_of_the_baseline(
    run, tiny_model, tmp_path
) -> None:
    pruned = tiny_model(seed=5, layers=3, heads=4, width=16)
    pruned.keep_heads(
        {"encoder": [[3], [], [0, 2]], "decoder": [[1], [0, 1], []], "cross": [[0], [], [3, 1]]}
    )
    save(pruned, tmp_path / "pruned.safetensors", training={})
    after = run("gates", heads=3, like=tmp_path / "pruned.json")
    assert after.architecture.encoder == pruned.architecture.encoder == ((3,), (), (0, 2))
    assert not torch.equal(after.encoder[0].attention.query, pruned.encoder[0].attention.query)
    before = load(tmp_path / "baseline.safetensors").encoder[0].attention
    # the last of its three
    assert torch.equal(after.encoder[0].attention.query, before.query[2 * before.head_width :])


def test_random_heads_are_the_first_of_their_order(run, tmp_path: Path) -> None:
    full = heads_of(load(tmp_path / "baseline.safetensors").architecture, scope="all")
    kept = heads_of(run("random", heads=4, scope="all", seed=2).architecture, scope="all")
    assert set(kept) == set(at_random(full, seed=2)[:4])


def test_the_random_model_has_the_median_development_loss_of_its_draws(
    run, tokens, tmp_path: Path
) -> None:
    model = run("random", heads=4, scope="all", draws=21)
    described = json.loads((tmp_path / "cut.json").read_text())["training"]["cut"]
    losses = described["dev_losses"]
    assert len(losses) == 21 and len(set(losses)) > 15
    assert (
        described["dev_loss"]
        == np.median(losses)
        == pytest.approx(evaluate(model, load_tokens(tokens["dev"])))
    )
    best = run("gates", heads=4, scope="all")
    found = json.loads((tmp_path / "cut.json").read_text())["training"]["cut"]
    assert found["dev_loss"] == pytest.approx(evaluate(best, load_tokens(tokens["dev"])))
    assert "dev_losses" not in found


def test_the_description_says_what_was_cut_and_how_the_baseline_was_trained(run, tmp_path) -> None:
    run("random", heads=2, seed=9)
    description = json.loads((tmp_path / "cut.json").read_text())
    cut_settings = {"criterion": "random", "scope": "encoder", "column": None, "seed": 9}
    cut_settings |= {"device": "cpu"}
    losses = description["training"]["cut"]
    assert description["training"] == TRAINING | {
        "cut": cut_settings | {"dev_loss": losses["dev_loss"], "dev_losses": [losses["dev_loss"]]}
    }
    assert [sum(map(len, description["architecture"][kind])) for kind in KINDS] == [2, 3, 3]
