"""Trees are made again where the models that parse are others, as far as the workflow can see them."""

import json
import shutil
from pathlib import Path

import pytest


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
