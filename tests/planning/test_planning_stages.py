"""Settings of stages: a λ and a number of heads, schedules of training after the baseline's, and criteria."""

import pytest

from specialized_heads.config.experiment import Experiment, load
from specialized_heads.planning import inputs, stages


def test_a_lambda_grows_and_a_number_of_heads_does_not(experiment: Experiment) -> None:
    job = {"experiment": "e", "corpus": "a", "scope": "encoder", "seed": "3"}
    by_lambda = stages.prune(experiment, **job, target="lambda0.01")
    by_count = stages.prune(experiment, **job, target="heads6")
    assert (by_lambda["penalty"], by_lambda["heads"], by_lambda["penalty_warmup"]) == (0.01, None, 20)
    assert (by_count["penalty"], by_count["heads"], by_count["penalty_warmup"]) == (None, 6, 0)
    assert by_lambda["seed"] == 3
    assert by_lambda["training"]["average"] == 1


def test_the_log_of_a_training_with_gates_has_twenty_lines(experiment: Experiment) -> None:
    job = {"corpus": "a", "scope": "all", "seed": "3"}
    assert stages.finetune(experiment, **job)["training"]["log_every"] == 2
    assert stages.regularised(experiment, **job, target="heads12")["training"]["log_every"] == 1


def test_lambda_takes_the_same_share_of_a_training_from_scratch_to_grow(experiment: Experiment) -> None:
    settings = stages.regularised(experiment, corpus="a", scope="all", target="lambda1e-05", seed="3")
    assert settings["training"]["updates"] == 25
    assert settings["penalty_warmup"] == 10
    assert settings["training"]["average"] == 1
    assert stages.from_scratch(experiment, corpus="a", seed="3")["training"]["average"] == 2


def test_all_rules_of_relevance_are_measured_only_for_their_comparison(experiment: Experiment) -> None:
    rules = {"relevance_rules": ["z_plus", "alpha_beta", "epsilon"], "relevance_epsilon": 0.2}
    several = load(experiment.model_dump() | {"heads": experiment.heads.model_dump() | rules})
    assert stages.relevance(several, corpus="a")["heads"] == {"relevance_rules": ["z_plus"]}
    assert stages.relevance_by_rule(several, corpus="a")["heads"] == rules | {"relevance_alpha": 0.5}


def test_only_a_pruned_corpus_keeps_checkpoints(experiment: Experiment) -> None:
    assert stages.baseline(experiment, corpus="a", seed="3")["moments"] == [40]
    assert stages.baseline(experiment, corpus="b", seed="3")["moments"] == []


@pytest.mark.parametrize(
    ("criterion", "column", "table"),
    [
        ("gates", None, []),
        ("random", None, []),
        ("importance", "importance_normalised", ["results/e/a/importance/baseline/seed3.parquet"]),
        ("relevance", "relevance", ["results/e/a/heads/baseline/seed3.parquet"]),
    ],
)
def test_what_a_criterion_ranks_by(experiment: Experiment, criterion: str, column: str, table: list[str]) -> None:
    job = {"corpus": "a", "criterion": criterion, "scope": "encoder", "heads": "6", "seed": "3"}
    assert stages.cut(experiment, **job)["column"] == column
    assert inputs.ranking(experiment, **job) == table
    like = inputs.like_gates(experiment, **job)
    assert like == (["results/e/a/models/pruned/encoder_heads6/seed3/model.json"] if criterion == "gates" else [])


def test_the_second_set_of_ablation_is_the_development_set_or_that_of_another_corpus(experiment: Experiment) -> None:
    assert inputs.second_tokens(experiment, corpus="a") == "results/e/a/corpus/tokens/dev.safetensors"
    values = experiment.model_dump()
    values["ablation"]["second"] = "b"
    other = Experiment.model_validate(values)
    assert inputs.second_tokens(other, corpus="a") == "results/e/a/corpus/tokens/test_of_b.safetensors"
    assert inputs.second_text(other, corpus="a") == "results/e/b/corpus/test.parquet"
