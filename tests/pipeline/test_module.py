"""Another workflow imports this one: from a folder, with its own configuration, or deployed from a
repository by snakedeploy."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from workflows import ENVIRONMENT, PIPED, ROOT, Workflow, ended, start

IMPORTER = """
configfile: "config.yaml"

rule own:
    input:
        "results/imported/tatoeba_en_fr/parses/relations.parquet",
        "second/results/imported/tokens.done",

module heads:
    snakefile: "{snakefile}"
    config: config["heads"]

use rule * from heads as heads_*

module second:
    snakefile: "{snakefile}"
    config: config["heads"]
    prefix: "second"

use rule * from second as second_*

rule done:
    input:
        "second/results/imported/tatoeba_en_fr/corpus/tokens/dev.safetensors",
    output:
        "second/results/imported/tokens.done",
    shell:
        "cp {{input}} {{output}}"
"""


def snakemake(folder: Path, *arguments: str, **environment: str) -> str:
    """What Snakemake prints in this folder; it must succeed."""
    run = ended(start(folder, "--cores", "2", *arguments, env=ENVIRONMENT | environment, **PIPED))
    assert run.status == 0, run.printed[-5000:]
    return run.printed


@pytest.fixture
def importer(project: Workflow, tmp_path: Path) -> Path:
    """The folder of a workflow that imports the smoke experiment twice, under another name; the
    project is elsewhere."""
    folder = tmp_path / "importer"
    (folder / "workflow").mkdir(parents=True)
    snakefile = project.root / "workflow" / "Snakefile"
    (folder / "workflow" / "Snakefile").write_text(
        IMPORTER.format(snakefile=snakefile), encoding="utf-8"
    )
    settings = {
        "heads": project.settings() | {"experiment": "imported"},
        "own": "of no concern to the module",
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return folder


def test_a_module_runs_with_the_configuration_of_its_importer(
    importer: Path, smoke: Workflow
) -> None:
    printed = snakemake(importer)

    assert re.findall(r"Finished jobid: \d+ \(Rule: (heads_relations|second_tokens|own)\)", printed)
    parses = "tatoeba_en_fr/parses/relations.parquet"
    made = {
        parses: f"results/imported/{parses}",
        "tatoeba_en_fr/corpus/tokens/dev.safetensors": "second/results/imported/tokens.done",
    }
    for name, path in made.items():
        assert (importer / path).read_bytes() == smoke.file(name).read_bytes()
    expected = {".snakemake", "config.yaml", "results", "second", "workflow"}
    assert {path.name for path in importer.iterdir()} == expected
    assert "Nothing to be done" in snakemake(importer, "--dry-run")


def test_a_missing_text_stops_a_module_and_its_prefix_does_not_move_it(importer: Path) -> None:
    settings = yaml.safe_load((importer / "config.yaml").read_text(encoding="utf-8"))
    mine = {
        "title": "Mine",
        "source": {"kind": "local", "path": "mine.tsv"},
        "target_language": "de",
    }
    settings["heads"] |= {
        "corpora": {"mine": mine},
        "parser": {"engine": "conllu", "path": "trees.conllu"},
    }
    (importer / "config.yaml").write_text(
        yaml.safe_dump(settings, sort_keys=False), encoding="utf-8"
    )
    (importer / "mine.tsv").write_text("one\teins\n", encoding="utf-8")
    (importer / "trees.conllu").touch()
    snakemake(importer, "--dry-run", "second_all")
    (importer / "mine.tsv").unlink()
    with pytest.raises(AssertionError, match=r"affected files:\s+mine.tsv"):
        snakemake(importer, "--dry-run", "second_all")


def test_a_prefix_does_not_move_models_of_the_hub(importer: Path) -> None:
    settings = yaml.safe_load((importer / "config.yaml").read_text(encoding="utf-8"))
    for name in ("vocabulary", "model"):
        settings["heads"].pop(name, None)
    settings["heads"]["corpora"]["tatoeba_en_fr"]["baseline"] = {"model": "owner/theirs"}
    (importer / "config.yaml").write_text(
        yaml.safe_dump(settings, sort_keys=False), encoding="utf-8"
    )
    printed = snakemake(importer, "--dry-run", "--printshellcmds", "second_all")
    jobs = [line for line in printed.splitlines() if "exchange.import_model" in line]
    assert len(jobs) == 2  # it is fetched, and imported
    assert all('"folder": "data/models/owner--theirs"' in line for line in jobs)


@pytest.fixture
def hosted(tmp_path: Path) -> tuple[Path, Path]:
    """A repository of the working tree with the tag v1.0.0, and a cache in which Snakemake finds it
    as one of a git host."""
    files = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True
    )
    if files.returncode:
        pytest.skip("the project is not a git checkout, of which Snakemake could read a release")
    repository = tmp_path / "github" / "owner" / "specialized-heads"
    for name in files.stdout.splitlines():
        if (ROOT / name).exists():
            (repository / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, repository / name, follow_symlinks=False)
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    for command in (
        ["init", "-q"],
        ["add", "-A"],
        ["commit", "-q", "-m", "release"],
        ["tag", "v1.0.0"],
    ):
        subprocess.run(["git", *identity, *command], cwd=repository, check=True)
    cache = tmp_path / "cache"
    sources = cache / "snakemake" / "snakemake" / "source-cache" / "snakemake-git-cache"
    bare = sources / "github.com" / "owner" / "specialized-heads"
    subprocess.run(["git", "clone", "-q", "--bare", repository, bare], check=True)
    return repository, cache


def test_a_release_is_deployed_by_snakedeploy_and_runs(
    hosted: tuple[Path, Path], tmp_path, smoke: Workflow
) -> None:
    pytest.importorskip(
        "snakedeploy", reason="snakedeploy is not installed (pip install snakedeploy)"
    )
    repository, cache = hosted
    deployed = tmp_path / "deployed"
    command = ["snakedeploy", "deploy-workflow", f"file://{repository}", str(deployed)]
    done = subprocess.run(
        [*command, "--tag", "v1.0.0"], capture_output=True, text=True, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert 'github("owner/specialized-heads", path="workflow/Snakefile", tag="v1.0.0")' in (
        deployed / "workflow" / "Snakefile"
    ).read_text(encoding="utf-8")
    assert (deployed / "config" / "config.yaml").read_bytes() == (ROOT / "config.yaml").read_bytes()

    environment = {"XDG_CACHE_HOME": str(cache), "GIT_TERMINAL_PROMPT": "0"}
    shared = (
        "--shared-fs-usage",
        "persistence",
        "input-output",
        "software-deployment",
        "sources",
        "source-cache",
    )
    printed = snakemake(deployed, "--dry-run", *shared, **environment)
    assert "given_baseline" in printed
    shutil.copy2(deployed / "config" / "smoke.yaml", deployed / "config" / "config.yaml")
    table = "results/smoke/data/relations.parquet"
    snakemake(deployed, table, *shared, **environment)
    assert (deployed / table).read_bytes() == smoke.file("data/relations.parquet").read_bytes()
    assert os.listdir(deployed / ".snakemake" / "specialized-heads")
