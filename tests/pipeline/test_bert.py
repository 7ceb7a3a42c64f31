"""The experiment on BERT, as tiny as it can be, from text to claims; a published classifier in the place of a trained one."""

import json

import pandas as pd
import pytest
import yaml
from workflows import ROOT, Run, Workflow, run_once

from specialized_heads.report.claims.claim import Verdict

TINY = {"updates": 10, "batch_tokens": 500, "micro_batch_tokens": 500, "warmup": 2, "precision": "fp32"}


def reduced(workflow: Workflow) -> Workflow:
    """config/bert_small.yaml with one task, few examples and few updates."""
    values = yaml.safe_load((ROOT / "config" / "bert_small.yaml").read_text(encoding="utf-8"))
    bert = values["classification"] | {"layers": 2, "heads": 2, "width": 16, "feed_forward": 16, "vocabulary": 500}
    bert |= {"text": ["tatoeba_en_fr"], "speed": [1, 4]}
    bert["pretraining"] |= TINY
    sizes = {"kind": "halves", "matched": ["tatoeba_en_fr"], "train": 300, "dev": 60, "test": 60}
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
    assert set(claims["corpus"]) == {"Halves"} and len(claims) == 6
    assert claims["verdict"].isin(list(Verdict)).all()
    single = pd.read_csv(folder / "figures" / "ablation.csv")
    assert len(single) == 4 and {"score", "score_full"} <= set(single)
    table = pd.read_csv(folder / "tables" / "tasks.csv")
    assert table["set"].tolist() == ["matched", "mismatched"] and (table["majority"] > 45).all()
    assert not list(folder.rglob("*.state"))


def test_a_second_run_makes_nothing(bert_run: tuple[Workflow, Run]) -> None:
    workflow, _ = bert_run
    assert "Nothing to be done" in workflow.run().printed


def test_a_fine_tuned_classifier_can_be_given(bert_run: tuple[Workflow, Run], tmp_path) -> None:
    transformers = pytest.importorskip("transformers")
    workflow, _ = bert_run
    bert = workflow.root / "results" / "bert_small" / "bert"
    tokens = json.loads((bert / "learned" / "vocabulary.json").read_text(encoding="utf-8"))["tokens"]
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = transformers.BertConfig(vocab_size=len(tokens), **sizes)
    folder = workflow.root / "classifier"
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    values = yaml.safe_load((workflow.root / workflow.configuration).read_text(encoding="utf-8")) | {
        "experiment": "given"
    }
    values["classification"]["tasks"]["halves"]["model"] = "classifier"
    values["ablation"]["moments"] = []
    target = "results/given/halves/models/baseline/seed1/score.json"
    run = workflow.configured(values).run(target)
    assert run.status == 0, run.printed[-5000:]
    assert {"import_classifier", "given_classifier"} <= run.rules and "pretrain_bert" not in run.rules
    assert json.loads((workflow.root / target).read_text(encoding="utf-8"))["total"] == 2
