"""All that the smoke experiment leaves out: head counts, controls, ablation, criteria side by side,
several seeds, export."""

import pandas as pd
import pytest
from small import changed

from specialized_heads.experiment.names import CONTINUED, CONTROLS
from specialized_heads.model.checkpoint import load
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
    expected |= dict.fromkeys(CONTROLS, 2)
    for seed in (1, 2):
        assert kinds[seed].to_dict() == expected
    assert models.loc[models["kind"] != "baseline", "p_value"].notna().all()


def test_a_control_has_the_heads_of_its_model(models: pd.DataFrame) -> None:
    keys = ["scope", "lam", "target_heads", "seed"]
    pruned = models[(models["kind"] == "pruned") & (models["scope"] == "all")].set_index(keys)[
        HEADS
    ]
    for kind in ("scratch", "count", "continued", "continued_count"):
        pd.testing.assert_frame_equal(models[models["kind"] == kind].set_index(keys)[HEADS], pruned)
    by_number = models[(models["scope"] == "all") & (models["target_heads"] == 6)].set_index("kind")
    assert set(by_number.loc["continued_regularised", "total_heads"]) == {6}


def test_a_continued_control_is_trained_as_the_baseline_and_then_as_pruning_trains(
    pruning, models: pd.DataFrame
) -> None:
    updates = models.groupby("kind")["updates"].unique().map(set)
    assert updates["baseline"] == updates["scratch"] == {30} and updates["pruned"] == {20}
    logs = (
        pd.read_parquet(pruning.file("data/logs.parquet"))
        .query("kind != 'baseline'")
        .groupby("kind")
    )
    rates = logs["learning_rate"].max()
    for kind, first in CONTINUED.items():
        assert updates[kind] == {50}
        assert rates[kind] == rates["pruned"] != rates[first]
        before, after = (
            load(pruning.file(f"{CORPUS}/models/{name}/all_heads6/seed1/model.safetensors"))
            for name in (first, kind)
        )
        assert before.architecture == after.architecture and any(changed(before, after).values())
    judged = pd.read_csv(pruning.file("claims.csv")).set_index(["claim", "corpus"])
    # too little BLEU
    assert set(judged.loc[["scratch", "count", "regularised"], "verdict"]) <= {"not testable"}


def test_systematic_pruning_starts_at_the_score_of_its_model(pruning) -> None:
    for model in ("baseline", "checkpoint/update10"):
        steps = pd.read_parquet(pruning.file(f"{CORPUS}/systematic/{model}/seed2.parquet"))
        score = read_json(pruning.file(f"{CORPUS}/models/{model}/seed2/score.json"))["bleu"]
        assert (steps.loc[steps["removed"] == 0, "bleu"] == score).all()


@pytest.mark.parametrize(
    "name", ["systematic", "moments", "criteria", "figure7", "figure9", "figure10"]
)
def test_every_point_of_a_figure_is_of_both_seeds(pruning, name: str) -> None:
    assert pruning.file(f"figures/{name}.png").read_bytes().startswith(b"\x89PNG")
    # the paper's own points have none
    seeds = pd.read_csv(pruning.file(f"figures/{name}.csv"))["seeds"].dropna()
    assert set(seeds) == {2}
