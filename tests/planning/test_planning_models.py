"""Which models an experiment has, and where their files are."""

import pytest

from specialized_heads.config.experiment import Experiment
from specialized_heads.planning.models import Run, corpora, models, paths, runs, viewed
from specialized_heads.planning.names import KINDS


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("baseline", ["baseline"]),
        ("checkpoint", ["checkpoint/update40"]),
        (
            "pruned",
            ["encoder_lambda0.01", "encoder_lambda1", "encoder_heads6", "encoder_heads2", "encoder_heads4"]
            + ["all_lambda1e-05", "all_heads12"],
        ),
        ("scratch", ["encoder_heads6", "all_lambda1e-05", "all_heads12"]),
        ("count", ["encoder_heads6", "all_lambda1e-05", "all_heads12"]),
        ("regularised", []),
        ("finetuned", []),
    ],
)
def test_models_of_a_kind(experiment: Experiment, kind: str, names: list[str]) -> None:
    assert models(experiment, "a", kind) == [name if kind in name else f"{kind}/{name}" for name in names]


def test_criteria_are_compared_at_every_number_of_heads(experiment: Experiment) -> None:
    cut = models(experiment, "a", "cut", scopes=["encoder"])
    assert cut[:4] == [f"cut/{name}" for name in ("gates_encoder_heads6", "gates_encoder_heads2")] + [
        "cut/gates_encoder_heads4",
        "cut/importance_encoder_heads6",
    ]
    assert len(cut) == 9


def test_a_corpus_that_is_not_pruned_has_its_baseline_alone(experiment: Experiment) -> None:
    assert corpora(experiment, pruned=True) == ["a"]
    assert models(experiment, "b", *KINDS) == ["baseline"]


def test_runs_are_in_the_order_of_seeds_and_have_paths(experiment: Experiment) -> None:
    found = runs(experiment, ["a", "b"], "baseline", "checkpoint")
    assert found[:3] == [Run("a", "baseline", 3), Run("a", "checkpoint/update40", 3), Run("a", "baseline", 4)]
    pattern = "{corpus}/heads/{model}/seed{seed}.parquet"
    assert paths(experiment, pattern, found[1:2]) == ["results/e/a/heads/checkpoint/update40/seed3.parquet"]
    assert paths(experiment, pattern, ["b"]) == ["results/e/b/heads/baseline/seed3.parquet"]


def test_pages_show_baselines_and_pruned_models_of_the_first_seed(experiment: Experiment) -> None:
    shown = viewed(experiment)
    assert {run.seed for run in shown} == {3}
    assert len(shown) == 1 + 7 + 1
