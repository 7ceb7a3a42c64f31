"""What sums an experiment up: training curves, the table of models, the environment."""

import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

import specialized_heads
from specialized_heads.report.beyond import environment, models, training_curves


def test_curves_of_every_trained_model(make) -> None:
    log = pd.DataFrame({"update": [10, 20, 25], "loss": [5.0, 4.0, 3.5], "dev_loss": [4.5, None, 3.25]})
    names = ["baseline", "pruned/encoder_lambda0.01", "scratch/all_heads12"]
    logs = {f"{name}/seed{seed}": log for name in names for seed in (1, 2)}
    curves = training_curves.numbers(make.tables(models={"EN-FR": [make.model()]}, logs={"EN-FR": logs}))
    assert (len(curves), curves["dev_loss"].notna().sum(), set(curves["unit"])) == (18, 12, {"token"})


def test_table_of_models(make, stage) -> None:
    names = ["baseline", "checkpoint/update10", "scratch/all_heads12", "cut/random_encoder_heads5"]
    rows = [make.model(name, signature_tokenised=f"tok:{seed}", seed=seed) for seed in (1, 2) for name in names]
    other = [make.model(length_penalty=0.0, signature_tokenised="tok:1")]
    stem = stage("beyond.models", make.tables(models={"EN-FR": rows, "B": other}))
    csv = pd.read_csv(stem.with_suffix(".csv"))
    assert csv["kind"].tolist() == [name.split("/")[0] for name in [*names, *names, "baseline"]]
    assert csv.columns.tolist() == models.COLUMNS
    text = stem.with_suffix(".md").read_text(encoding="utf-8").replace("\\", "")
    numbers = "| 24/24/24 | 30.0 [29.0, 31.0] | 50.0 | 3.250 | 900 | 10,000 | 6,000 |"
    assert f"| EN-FR | scratch | all | 12 heads | 1 {numbers}" in text
    assert "| cut, random | encoder | 5 heads |" in text and "| checkpoint |  | update 10 |" in text
    # Each signature once, and corpora that are translated differently apart.
    assert text.count("tok:1") == text.count("tok:2") == 1
    assert "EN-FR (1,000 test sentences): beam search with 4 hypotheses, ranked by log P / length^1;" in text
    assert "B (1,000 test sentences): beam search with 4 hypotheses, ranked by log P, not normalised" in text


def test_environment_names_versions_and_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = environment.numbers(None, engines=["embedded", "stanza"], device="cpu").set_index("name")["value"]
    assert facts["version"] == specialized_heads.__version__
    assert facts[["torch", "sacrebleu", "sentencepiece", "snakemake", "stanza"]].notna().all()
    assert len(facts["SHA-256 of the source files"]) == 64
    if not shutil.which("git"):
        pytest.skip("no git on the PATH")

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    monkeypatch.setattr(environment, "ROOT", tmp_path)
    (tmp_path / "src/specialized_heads").mkdir(parents=True)
    (tmp_path / "src/specialized_heads/__init__.py").touch()
    git("init", "-q")
    assert environment.commit() == "not a git checkout"  # the module is not in the repository
    git("add", ".")
    git("commit", "-qm", "first")
    (tmp_path / "results").touch()
    assert environment.commit() == f"{git('rev-parse', 'HEAD')}, unchanged"
    (tmp_path / "src/new.py").touch()
    assert environment.commit() == f"{git('rev-parse', 'HEAD')}, 1 file changed"
