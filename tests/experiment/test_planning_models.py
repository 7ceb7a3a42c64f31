"""Which models an experiment has, and where their files are."""

import pytest

from specialized_heads.experiment.configuration import Experiment
from specialized_heads.experiment.models import Run, corpora, models, paths, runs, viewed
from specialized_heads.experiment.names import KINDS

RETRAINED = ["encoder_heads6", "all_lambda1e-05", "all_heads12"]
PRUNED = ["encoder_lambda0.01", "encoder_lambda1", "encoder_heads6", "encoder_heads2", "encoder_heads4", *RETRAINED[1:]]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("pruned", PRUNED),
        ("scratch", RETRAINED),
        ("count", RETRAINED),
        ("checkpoint", ["update40"]),
        ("regularised", []),
        ("finetuned", []),
    ],
)
def test_models_of_a_kind(experiment: Experiment, kind: str, names: list[str]) -> None:
    assert models(experiment, "a", kind) == [f"{kind}/{name}" for name in names]


def test_criteria_are_compared_at_every_number_of_heads(experiment: Experiment) -> None:
    cut = models(experiment, "a", "cut", scopes=["encoder"])
    names = [f"{criterion}_encoder_heads{n}" for criterion in ("gates", "importance", "relevance") for n in (6, 2, 4)]
    assert cut == [f"cut/{name}" for name in names]


def test_runs_are_in_the_order_of_seeds_and_have_paths(experiment: Experiment) -> None:
    found = runs(experiment, ["a", "b"], "baseline", "checkpoint")
    assert found[:3] == [Run("a", "baseline", 3), Run("a", "checkpoint/update40", 3), Run("a", "baseline", 4)]
    pattern = "{corpus}/heads/{model}/seed{seed}.parquet"
    assert paths(experiment, pattern, found[1:2]) == ["results/e/a/heads/checkpoint/update40/seed3.parquet"]
    assert paths(experiment, pattern, ["b"]) == ["results/e/b/heads/baseline/seed3.parquet"]
    # A corpus that is not pruned has its baseline alone; pages show models of the first seed.
    assert corpora(experiment, pruned=True) == ["a"] and models(experiment, "b", *KINDS) == ["baseline"]
    assert {run.seed for run in viewed(experiment)} == {3} and len(viewed(experiment)) == 1 + 7 + 1
