"""Settings of stages: a λ and a number of heads, schedules of training after the baseline's, and criteria."""

import pytest

from specialized_heads.experiment import inputs, stages
from specialized_heads.experiment.configuration import Experiment, load

JOB = {"corpus": "a", "seed": "3"}


def test_a_lambda_or_a_number_of_heads(experiment: Experiment) -> None:
    by_lambda, by_count = (
        stages.prune(experiment, **JOB, scope="encoder", target=target) for target in ("lambda0.01", "heads6")
    )
    assert (by_lambda["lam"], by_lambda["target_heads"]) == (0.01, None)
    assert (by_count["lam"], by_count["target_heads"]) == (None, 6)
    settings = stages.regularised(experiment, **JOB, scope="all", target="lambda1e-05")
    assert (by_lambda["seed"], settings["training"]["updates"]) == (3, 25)
    # The log of a training with gates has twenty lines.
    assert [each["training"]["log_every"] for each in (by_lambda, settings)] == [2, 1]


def test_all_rules_of_relevance_are_measured_only_for_their_comparison(experiment: Experiment) -> None:
    rules = {"relevance_rules": ["z_plus", "alpha_beta", "epsilon"]}
    several = load(experiment.model_dump() | {"heads": experiment.heads.model_dump() | rules})
    assert stages.relevance(several, corpus="a")["rules"] == ["z_plus"]
    assert stages.relevance_by_rule(several, corpus="a")["rules"] == rules["relevance_rules"]


def test_only_a_pruned_corpus_keeps_checkpoints(experiment: Experiment) -> None:
    assert [stages.baseline(experiment, corpus=name, seed="3")["moments"] for name in "ab"] == [[40], []]


@pytest.mark.parametrize(
    ("criterion", "column", "table"),
    [
        ("gates", None, ""),
        ("random", None, ""),
        ("importance", "importance_normalised", "importance"),
        ("relevance", "relevance", "heads"),
    ],
)
def test_what_a_criterion_ranks_by(experiment: Experiment, criterion: str, column: str | None, table: str) -> None:
    job = JOB | {"criterion": criterion, "scope": "encoder", "heads": "6"}
    assert stages.cut(experiment, **job)["column"] == column
    assert inputs.ranking(experiment, **job) == [f"results/e/a/{table}/baseline/seed3.parquet"] * bool(table)
    like = ["results/e/a/models/pruned/encoder_heads6/seed3/model.json"] * (criterion == "gates")
    assert inputs.like_gates(experiment, **job) == like
