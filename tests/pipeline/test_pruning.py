"""All that the smoke experiment leaves out: head counts, controls, ablation, criteria side by side, several seeds, export."""

import pandas as pd
import pytest

from specialized_heads.stage import read_json

CORPUS = "tatoeba_en_fr"
HEADS = ["encoder_heads", "decoder_heads", "cross_heads"]


@pytest.fixture(scope="module")
def pruning(pruning_run):
    """The project after that experiment, to look at."""
    workflow, run = pruning_run
    assert run.status == 0, run.printed[-5000:]
    return workflow


@pytest.fixture(scope="module")
def models(pruning) -> pd.DataFrame:
    """The models of the corpus that is pruned."""
    rows = pd.read_parquet(pruning.file("data/models.parquet"))
    return rows[rows["corpus"] == CORPUS]


def test_nothing_is_stale_after_a_run(pruning) -> None:
    assert pruning.stale() == set()


def test_a_title_is_shown_as_it_is_and_never_run(pruning) -> None:
    assert not (pruning.root / "touched").exists()
    shown = pd.read_csv(pruning.file("figures/systematic.csv"))
    assert set(shown["corpus"]) >= {"{EN} 'n' \"FR\"; $(touch touched) `touch touched`"}


def test_every_kind_of_model_is_scored_for_every_seed(models: pd.DataFrame) -> None:
    kinds = models.groupby("seed")["kind"].value_counts()
    targets = 3  # λ 100 of all types, 3 encoder heads, 6 heads of all types
    expected = {"baseline": 1, "checkpoint": 1, "pruned": targets, "cut": 9, "finetuned": 9}
    expected |= {"scratch": 2, "count": 2, "regularised": 2}
    for seed in (1, 2):
        assert kinds[seed].to_dict() == expected
    assert models.loc[models["kind"] != "baseline", "p_value"].notna().all()


def test_a_control_has_the_heads_of_its_model(models: pd.DataFrame) -> None:
    keys = ["scope", "lam", "target_heads", "seed"]
    pruned = models[(models["kind"] == "pruned") & (models["scope"] == "all")].set_index(keys)[HEADS]
    for kind in ("scratch", "count"):
        pd.testing.assert_frame_equal(models[models["kind"] == kind].set_index(keys)[HEADS], pruned)


def test_systematic_pruning_starts_at_the_score_of_its_model(pruning) -> None:
    for model in ("baseline", "checkpoint/update10"):
        steps = pd.read_parquet(pruning.file(f"{CORPUS}/systematic/{model}/seed2.parquet"))
        score = read_json(pruning.file(f"{CORPUS}/models/{model}/seed2/score.json"))["bleu"]
        assert (steps.loc[steps["removed"] == 0, "bleu"] == score).all()


@pytest.mark.parametrize("name", ["systematic", "moments", "criteria", "figure7", "figure9", "figure10"])
def test_every_point_of_a_figure_is_of_both_seeds(pruning, name: str) -> None:
    assert pruning.file(f"figures/{name}.png").read_bytes().startswith(b"\x89PNG")
    seeds = pd.read_csv(pruning.file(f"figures/{name}.csv"))["seeds"].dropna()  # the paper's own points have none
    assert set(seeds) == {2}
