"""Trees are made again where the models that parse are others, as far as the workflow can see them."""

import json
import shutil
from pathlib import Path

import pytest

STUB = """
def load_model(**wanted):
    return wanted

def parse_sentences(model, texts):
    return [[] for _ in texts]

def describe(model):
    return {"engine": "spacy"}
"""


def test_another_list_of_stanza_models_makes_the_trees_stale(project, shared: Path, tmp_path: Path) -> None:
    if not (shared / "stanza").is_dir():
        pytest.skip(f"no Stanza models in {shared}")
    models = shutil.copytree(shared / "stanza", tmp_path / "stanza", copy_function=shutil.copyfile)
    values = project.settings()
    values["parser"] = {"engine": "stanza", "directory": str(models), "download": False}
    workflow, target = project.configured(values), "results/smoke/parser_models.json"
    run = workflow.run(target)
    assert run.status == 0 and run.rules == {"parser_models"}, run.printed[-5000:]
    assert "Nothing to be done" in workflow.run("--dry-run", target).printed
    listed = models / "resources.json"
    listed.chmod(0o644)
    resources = json.loads(listed.read_text(encoding="utf-8"))
    resources["en"]["tokenize"]["changed"] = {"md5": "0"}
    listed.write_text(json.dumps(resources), encoding="utf-8")
    assert "parser_models" in workflow.run("--dry-run", target).printed


def test_another_spacy_model_makes_the_trees_stale(project, tmp_path: Path) -> None:
    """A file stands for the model, and a few lines for spaCy, which is an optional extra."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "weights").write_text("abc", encoding="utf-8")
    (project.root / "src/specialized_heads/parsing/spacy_engine.py").write_text(STUB, encoding="utf-8")
    values = project.settings()
    values["parser"] = {"engine": "spacy", "package": str(model)}
    workflow, target = project.configured(values), "results/smoke/tatoeba_en_fr/parses/analysis.parquet"
    run = workflow.run(target)
    assert run.status == 0 and "parse" in run.rules, run.printed[-5000:]
    assert "Nothing to be done" in workflow.run("--dry-run", target).printed
    (model / "weights").write_text("abd", encoding="utf-8")
    assert "rule parse:" in workflow.run("--dry-run", target).printed
