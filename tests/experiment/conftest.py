"""An experiment with every kind of model, to plan."""

import pytest

from specialized_heads.experiment.configuration import Experiment, load


@pytest.fixture
def experiment() -> Experiment:
    """A corpus that is pruned in every way, with two seeds, and one that is not."""
    source = {"source": {"kind": "embedded", "name": "x"}, "target_language": "fr"}
    return load(
        {
            "experiment": "e",
            "seeds": [3, 4],
            "corpora": {"a": source | {"title": "A"}, "b": source | {"title": "B", "prune": False}},
            "model": {"layers": 2, "heads": 4, "width": 32},
            "training": {"schedule": "linear", "updates": 100, "warmup": 10},
            "pruning": {"encoder": [0.01, 1], "all": [1e-5], "heads": [6, 2, 4], "heads_all": [12]}
            | {"updates": 50, "warmup": 5, "retrain_updates": 25}
            | {"retrain": ["all", "encoder_heads6"], "controls": ["count"]},
            "ablation": {"single": True, "systematic": True, "moments": [40]},
            "comparison": {"criteria": ["gates", "importance", "relevance"], "finetune": False},
        }
    )
