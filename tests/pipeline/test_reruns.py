"""What makes results stale, and what does not: the rows of the table in docs/cluster.md that no other test has."""

import json
import os
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml
from pages import blocks

TRAINING = {"train_baseline", "prune", "train_from_scratch"}


def rules(stale: set[tuple[str, str]]) -> set[str]:
    return {rule for rule, _ in stale}


def substitute(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_what_changes_no_result(finished, edit) -> None:
    values = finished.settings()  # defaults that are written down, keys in another order
    values["heads"]["relations"] = ["nsubj", "obj", "amod", "advmod"]
    values["corpora"] = {name: dict(reversed(corpus.items())) for name, corpus in values["corpora"].items()}
    assert finished.configured(values).stale() == set()
    for module in ("experiment/configuration.py", "experiment/sections.py"):  # what defines the keys
        edit(finished, module)
    # Touched files are compared, also those with megabytes.
    for name in ("src/specialized_heads/training/loop.py", "resources/tatoeba_en_fr/corpus.parquet"):
        os.utime(finished.root / name)
    pinned = finished.root / "envs/pipeline.yaml"  # not used without conda
    packages = yaml.safe_load(pinned.read_text(encoding="utf-8"))
    packages["dependencies"][-1]["pip"][0] += ".1"
    pinned.write_text(yaml.safe_dump(packages), encoding="utf-8")
    assert finished.stale() == set()


def test_another_experiment_makes_nothing_stale_and_everything_new(finished) -> None:
    values = finished.settings()
    values["experiment"] = "other"
    before = finished.file("figures/figure7.csv").read_bytes()
    printed = finished.configured(values).run("--dry-run").printed
    assert int(re.search(r"^total +(\d+)$", printed, flags=re.MULTILINE)[1]) > 50
    assert finished.file("figures/figure7.csv").read_bytes() == before


def test_another_seed_is_trained_and_the_first_is_kept(finished) -> None:
    values = finished.settings()
    values["seeds"] = [1, 2]
    stale = finished.configured(values).stale()
    made = {path for rule, path in stale if rule in TRAINING}
    assert made
    assert all("/seed2/" in path for path in made)


def test_changed_data_goes_through_to_the_models_of_their_corpus(finished) -> None:
    path = finished.root / "resources/libreoffice_en_ru/corpus.parquet"
    pd.read_parquet(path).iloc[:-100].to_parquet(path)
    stale = finished.stale()
    assert {"corpus_raw", "tokens", "train_baseline", "analyse_heads"} <= rules(stale)
    assert not any(path.startswith("tatoeba_en_fr/") for _, path in stale)


def test_another_version_of_the_project_makes_new_models_of_the_same_text(finished) -> None:
    path = finished.root / "src/specialized_heads/__init__.py"
    path.write_text(re.sub('__version__ = ".*"', '__version__ = "99.0"', path.read_text(encoding="utf-8")), "utf-8")
    stale = rules(finished.stale())
    assert stale > TRAINING
    assert not stale & {"corpus_raw", "corpus_clean", "corpus_split", "bpe", "tokens"}


def test_an_edited_result_makes_stale_what_is_made_of_it_and_not_itself(finished) -> None:
    path = finished.file("tatoeba_en_fr/models/baseline/seed1/score.json")
    path.write_text(path.read_text(encoding="utf-8").replace('"bleu": ', '"bleu": 9'), encoding="utf-8")
    stale = rules(finished.stale())
    assert "gather" in stale
    assert "score" not in stale


def test_white_space_in_a_command_counts_and_a_comment_does_not(finished) -> None:
    path = finished.root / "workflow/rules/parse.smk"
    substitute(path, "rule parse:", "# A comment.\nrule parse:")
    assert finished.stale() == set()
    substitute(path, "python -m specialized_heads.parsing.parse", "python  -m specialized_heads.parsing.parse")
    assert {"parse", "analyse_heads"} <= rules(finished.stale())
    assert not rules(finished.stale()) & (TRAINING | {"translate"})


@pytest.mark.parametrize(
    "arguments",
    [
        ["--set-threads", "train_baseline=1"],
        ["--set-resources", "train_baseline:gpu=1", "train_baseline:mem_mb=1000*attempt"],
        ["--set-resources", "train_baseline:gpu=2"],
    ],
)
def test_what_a_job_may_use_changes_nothing(finished, arguments: list[str]) -> None:
    assert "Nothing to be done" in finished.run("--dry-run", *arguments).printed


@pytest.mark.parametrize("resource", ["gpu=2", 'gres="gpu:2"', 'gres="gpu:a100:2"'])
def test_training_on_several_gpus_starts_a_process_for_each(finished, resource: str) -> None:
    arguments = ["--dry-run", "--printshellcmds", "--forcerun", "train_baseline"]
    several = "torch.distributed.run --standalone --nproc-per-node 2 -m specialized_heads.training.train --train"
    assert several not in finished.run(*arguments, "--set-resources", "train_baseline:gpu=1").printed
    assert several in finished.run(*arguments, "--set-resources", f"train_baseline:{resource}").printed


def test_a_lost_result_is_made_again_and_a_lost_log_is_not(finished) -> None:
    finished.file("tatoeba_en_fr/logs/train_baseline_seed1.log").unlink()
    finished.file("tatoeba_en_fr/benchmarks/train_baseline_seed1.tsv").unlink()
    assert finished.stale() == set()
    finished.file("figures/figure7.pdf").unlink()
    assert {Path(path).stem for _, path in finished.stale()} == {"figure7", "environment"}


# Trees are made again where the models that parse are others, as far as the workflow can see them.


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


# The guide for a new figure in docs/extending.md, followed to the letter: two edits, and the figure is made.

GUIDE = Path(__file__).parents[2] / "docs" / "extending.md"


def test_a_figure_takes_two_edits(finished) -> None:
    module, row = blocks(GUIDE, "python")[:2]
    path = module.splitlines()[0].removeprefix("# ")
    assert not (finished.root / path).exists()
    (finished.root / path).write_text(module, encoding="utf-8")
    rows = finished.root / "src/specialized_heads/experiment/figures.py"
    text = rows.read_text(encoding="utf-8")
    rows.write_text(text.replace("RESULTS = [\n", f"RESULTS = [\n    {row.strip()},\n", 1), encoding="utf-8")

    target = "results/smoke/figures/entropy.pdf"
    run = finished.run(target)
    assert run.status == 0, run.printed[-5000:]
    assert run.rules == {"figure"}
    assert finished.file("figures/entropy.pdf").read_bytes().startswith(b"%PDF-")
    assert "EN-FR Tatoeba" in finished.file("figures/entropy.csv").read_text(encoding="utf-8")
    # It is made by default, and makes nothing else stale but the table of the environment.
    assert {path for _, path in finished.stale()} == {
        f"tables/environment.{end}" for end in ("html", "md", "tex", "csv")
    }
    finished.file("figures/entropy.pdf").unlink()
    assert ("figure", "figures/entropy.pdf") in finished.stale()
