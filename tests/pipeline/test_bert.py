"""The experiment on BERT, as tiny as it can be, from text to claims."""

import pandas as pd
import pytest
import yaml
from specialized_heads.report.claims.claim import Verdict
from workflows import ROOT, Run, Workflow, run_once

TINY = {"updates": 10, "batch_tokens": 500, "micro_batch_tokens": 500, "warmup": 2, "precision": "fp32"}


def reduced(workflow: Workflow) -> Workflow:
    """config/bert_small.yaml with one task, few examples and few updates."""
    values = yaml.safe_load((ROOT / "config" / "bert_small.yaml").read_text(encoding="utf-8"))
    bert = values["classification"] | {"layers": 2, "heads": 2, "width": 16, "feed_forward": 16, "vocabulary": 500}
    bert["pretraining"] |= TINY
    sizes = {"kind": "halves", "train": 300, "test": 60}
    bert["tasks"] = {"halves": {"title": "Halves", "source": sizes}}
    values |= {"classification": bert, "device": "cpu", "training": values["training"] | TINY}
    values["pruning"] |= {"all": [0.01], "updates": 10, "warmup": 2}
    values["ablation"] |= {"moments": [5]}
    return workflow.configured(values)


@pytest.fixture(scope="module")
def bert_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workflow, Run]:
    return run_once("bert", tmp_path_factory, reduced)


def test_everything_is_made_and_judged(bert_run: tuple[Workflow, Run]) -> None:
    workflow, run = bert_run
    assert run.status == 0, run.printed[-5000:]
    folder = workflow.root / "results" / "bert_small"
    for name in ("task_pruning", "ablation", "ablation_sets", "moments", "gates", "training_curves"):
        assert (folder / "figures" / f"{name}.pdf").is_file(), name
    claims = pd.read_csv(folder / "claims.csv")
    assert set(claims["corpus"]) == {"Halves"} and len(claims) == 7
    assert claims["verdict"].isin(list(Verdict)).all()
    single = pd.read_csv(folder / "figures" / "ablation.csv")
    assert len(single) == 4 and {"score", "score_full"} <= set(single)
    table = pd.read_csv(folder / "tables" / "tasks.csv")
    assert table["set"].tolist() == ["matched", "mismatched"] and (table["majority"] > 45).all()
    assert not list(folder.rglob("*.state"))


def test_a_second_run_makes_nothing(bert_run: tuple[Workflow, Run]) -> None:
    workflow, _ = bert_run
    assert "Nothing to be done" in workflow.run().printed
