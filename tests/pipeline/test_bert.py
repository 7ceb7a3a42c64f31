"""The experiment on BERT, as tiny as it can be, from text to claims."""

import subprocess
import sys

import pandas as pd
import pytest
import yaml
from workflows import ENVIRONMENT, ROOT, Run, Workflow, run_once

from specialized_heads.classification.wordpiece import SPECIAL
from specialized_heads.report.claims.claim import Verdict
from specialized_heads.stage import read_json

TINY = {
    "updates": 10,
    "batch_tokens": 500,
    "micro_batch_tokens": 500,
    "warmup": 2,
    "precision": "fp32",
}


def reduced(workflow: Workflow) -> Workflow:
    """config/bert_small.yaml with one task, few examples and few updates."""
    values = yaml.safe_load((ROOT / "config" / "bert_small.yaml").read_text(encoding="utf-8"))
    bert = values["classification"] | {
        "layers": 2,
        "heads": 2,
        "width": 16,
        "feed_forward": 16,
        "vocabulary": 500,
    }
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
    for name in (
        "task_pruning",
        "ablation",
        "ablation_sets",
        "moments",
        "gates",
        "training_curves",
    ):
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


def test_capitals_without_a_word_about_case_stop_the_workflow(project: Workflow) -> None:
    """An older BERT of the hub, with a cased vocabulary and no tokenizer_config.json; then with the
    file that the error names."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    folder = project.root / "models" / "cased"
    words = [*SPECIAL, *"abcdefgh", "the", "Dog"]
    sizes = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
    }
    transformers.BertModel(transformers.BertConfig(vocab_size=len(words), **sizes)).save_pretrained(
        folder
    )
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    tasks = {"halves": {"title": "Halves", "source": {"kind": "halves"}}}
    workflow = project.configured(
        {"experiment": "cased", "classification": {"model": str(folder), "tasks": tasks}}
    )
    imported = "results/cased/bert/imported/vocabulary.json"
    run = workflow.run(imported)
    said = (
        "models/cased/vocab.txt: no file says whether text is put into lower case, but the "
        "vocabulary has capitals"
    )
    assert run.status != 0 and said in run.printed and not (project.root / imported).exists()
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    assert workflow.run(imported).status == 0
    stored = read_json(project.root / imported)
    assert not stored["lowercase"] and "Dog" in stored["tokens"]
    (folder / "text.txt").write_text("the Dog\n", encoding="utf-8")
    options = ["analyse", folder, "--text", folder / "text.txt", "--output", project.root / "heads"]
    command = [sys.executable, "-m", "specialized_heads.cli", *map(str, options)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "bert" in done.stderr and len(done.stderr.splitlines()) == 1, (
        done.stderr
    )
