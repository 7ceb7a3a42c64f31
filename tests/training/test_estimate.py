"""The estimate of run times counts every update of an experiment and takes the time of real ones."""

import pytest

from specialized_heads.experiment.configuration import load
from specialized_heads.training import estimate

CORPUS = {"title": "t", "source": {"kind": "embedded", "name": "tatoeba_en_fr"}, "target_language": "fr"}
VALUES = {
    "experiment": "e",
    "seeds": [1, 2],
    "device": "cpu",
    "corpora": {"a": CORPUS, "b": CORPUS | {"title": "u", "prune": False}},
    "vocabulary": {"source": 100, "target": 100},
    "model": {"layers": 1, "heads": 2, "width": 8, "feed_forward": 8},
    "training": {"updates": 50, "batch_tokens": 300, "micro_batch_tokens": 300, "precision": "fp32"},
    "pruning": {"encoder": [0, 0.1], "heads": [2], "updates": 30, "warmup": 5, "retrain": ["encoder_heads2"]},
    "comparison": {"criteria": ["random", "confidence"]},
}


def test_updates_are_counted_over_models_and_seeds() -> None:
    counts = estimate.updates_by_kind(load(VALUES))
    expected = {"baseline": 2 * 50, "pruned": 2 * 3 * 30, "scratch": 2 * 50, "finetuned": 2 * 2 * 30}
    assert +counts["a"] == expected
    assert +counts["b"] == {"baseline": 2 * 50}


def test_a_kept_baseline_is_not_trained() -> None:
    given = {"a": CORPUS | {"baseline": {"model": "resources/baselines/tatoeba_en_fr"}, "prune": False}}
    assert not estimate.updates_by_kind(load(VALUES | {"corpora": given}))["a"].total()


def test_what_only_pruned_corpora_must_obey_does_not_stop_the_estimate_of_others() -> None:
    unpruned = {"a": CORPUS | {"prune": False}}
    pruning = {"updates": 5, "warmup": 5}
    training = VALUES["training"] | {"schedule": "linear", "warmup": 10}
    values = VALUES | {"corpora": unpruned, "training": training, "pruning": pruning, "comparison": {}}
    counts = estimate.updates_by_kind(load(values))
    assert +counts["a"] == {"baseline": 2 * 50}


def test_the_time_is_that_of_real_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))
    assert 0 <= estimate.seconds_per_update(load(VALUES)) < 60
    monkeypatch.setattr(estimate, "seconds_per_update", lambda experiment, *, busy: 20.0)
    assert estimate.estimate(load(VALUES)).startswith("600 updates of training: about 3 hours on ")
    monkeypatch.setattr(estimate, "seconds_per_update", lambda experiment, *, busy: 0.2)
    said = estimate.estimate(load(VALUES))
    assert "600 updates of training: about 2 minutes on one CPU thread in fp32" in said
    assert "busy" not in said


def test_on_a_busy_machine_cpu_time_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (9.0, 0.0, 0.0))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("time.perf_counter", lambda: pytest.fail("wall time"))
    assert "the machine is busy now (load 9.0 on 2 cores)" in estimate.estimate(load(VALUES))


def test_the_trainings_of_bert_are_said_to_be_left_out() -> None:
    task = {"title": "Swapped words", "source": {"kind": "shift"}}
    assert "BERT are not measured" in estimate.estimate(
        load({"experiment": "e", "classification": {"tasks": {"a": task}}})
    )
