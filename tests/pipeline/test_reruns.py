"""What makes results stale, and what does not: rows of the table in docs/cluster.md that no other
test has."""

import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml
from pages import ROOT, blocks


def test_what_changes_no_result(finished) -> None:
    values = finished.settings()  # defaults that are written down, keys in another order
    values["heads"]["relations"] = ["nsubj", "obj", "amod", "advmod"]
    values["corpora"] = {
        name: dict(reversed(corpus.items())) for name, corpus in values["corpora"].items()
    }
    assert finished.configured(values).stale() == set()
    # what defines the keys
    for module in ("experiment/configuration.py", "experiment/sections.py"):
        finished.edit(module)
    # Touched files are compared, also those with megabytes.
    for name in (
        "src/specialized_heads/training/loop.py",
        "resources/tatoeba_en_fr/corpus.parquet",
    ):
        os.utime(finished.root / name)
    pinned = finished.root / "envs/pipeline.yaml"  # not used without conda
    packages = yaml.safe_load(pinned.read_text(encoding="utf-8"))
    packages["dependencies"][-1]["pip"][0] += ".1"
    pinned.write_text(yaml.safe_dump(packages), encoding="utf-8")
    assert finished.stale() == set()


def test_changed_data_goes_through_to_the_models_of_their_corpus(finished) -> None:
    path = finished.root / "resources/libreoffice_en_ru/corpus.parquet"
    pd.read_parquet(path).iloc[:-100].to_parquet(path)
    stale = finished.stale()
    assert {"corpus_raw", "tokens", "train_baseline", "analyse_heads"} <= {
        rule for rule, _ in stale
    }
    assert not any(path.startswith("tatoeba_en_fr/") for _, path in stale)


@pytest.mark.parametrize("gpus", [1, 2])
def test_what_a_job_may_use_changes_nothing(finished, gpus: int) -> None:
    resources = [
        "--set-resources",
        f"train_baseline:gpu={gpus}",
        "train_baseline:mem_mb=1000*attempt",
    ]
    run = finished.run("--dry-run", "--set-threads", "train_baseline=1", *resources)
    assert "Nothing to be done" in run.printed


@pytest.mark.parametrize("resource", ["gpu=2", 'gres="gpu:2"', 'gres="gpu:a100:2"'])
def test_training_on_several_gpus_starts_a_process_for_each(finished, resource: str) -> None:
    arguments = ["--dry-run", "--printshellcmds", "--forcerun", "train_baseline"]
    several = (
        "torch.distributed.run --standalone --nproc-per-node 2 -m "
        "specialized_heads.training.train --train"
    )
    assert (
        several not in finished.run(*arguments, "--set-resources", "train_baseline:gpu=1").printed
    )
    assert (
        several in finished.run(*arguments, "--set-resources", f"train_baseline:{resource}").printed
    )


def test_another_list_of_stanza_models_makes_the_trees_stale(
    project, shared: Path, tmp_path: Path
) -> None:
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


def test_a_figure_takes_two_edits(finished) -> None:
    """The guide for a new figure in docs/extending.md, followed to the letter."""
    module, row = blocks(ROOT / "docs" / "extending.md", "python")[:2]
    path = module.splitlines()[0].removeprefix("# ")
    assert not (finished.root / path).exists()
    (finished.root / path).write_text(module, encoding="utf-8")
    rows = finished.root / "src/specialized_heads/experiment/figures.py"
    text = rows.read_text(encoding="utf-8")
    rows.write_text(
        text.replace("RESULTS = [\n", f"RESULTS = [\n    {row.strip()},\n", 1), encoding="utf-8"
    )

    target = "results/smoke/figures/entropy.pdf"
    run = finished.run(target)
    assert run.status == 0, run.printed[-5000:]
    assert run.rules == {"figure"}
    assert finished.file("figures/entropy.pdf").read_bytes().startswith(b"%PDF-")
    assert "EN-FR Tatoeba" in finished.file("figures/entropy.csv").read_text(encoding="utf-8")
    # It makes nothing else stale but the table of the environment and the page of all results,
    # which are made after all figures.
    assert {Path(path).stem for _, path in finished.stale()} == {"environment", "index", "summary"}
