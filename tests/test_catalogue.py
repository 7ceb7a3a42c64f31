"""What registries read about the project agrees with pyproject.toml and CITATION.cff, and names what exists."""

import json
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import specialized_heads

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITED = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
CODEMETA = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
ZENODO = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))


def test_names_versions_and_licences_agree() -> None:
    assert {PROJECT["name"], CITED["title"], CODEMETA["name"], ZENODO["title"]} == {"specialized-heads"}
    assert {CITED["version"], CODEMETA["version"], ZENODO["version"]} == {specialized_heads.__version__}
    assert f"## [{specialized_heads.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert {"cff-version", "message"} <= set(CITED)
    assert {PROJECT["license"], CITED["license"], CODEMETA["license"].split("/")[-1], ZENODO["license"]} == {"MIT"}


def test_authors_agree() -> None:
    of_each = [
        [author["name"] for author in authors]
        for authors in (PROJECT["authors"], CITED["authors"], CODEMETA["author"], ZENODO["creators"])
    ]
    assert all(names == of_each[0] for names in of_each)


def test_keywords_and_papers_agree() -> None:
    assert [paper["authors"][0]["family-names"] for paper in CITED["references"]] == ["Voita", "Michel"]
    assert CITED["keywords"] == CODEMETA["keywords"] == ZENODO["keywords"]
    assert [paper["title"] for paper in CITED["references"]] == [
        paper["name"] for paper in CODEMETA["referencePublication"]
    ]
    for paper, identifier in zip(CITED["references"], ZENODO["related_identifiers"], strict=True):
        assert (paper.get("doi") or paper["url"]).endswith(identifier["identifier"])


def test_the_layout_is_that_of_the_catalogue() -> None:
    described = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text(encoding="utf-8"))
    assert described["usage"] == {"software-stack-deployment": {"conda": True}, "report": True}
    assert (ROOT / "workflow" / "Snakefile").is_file()
    assert (ROOT / "config" / "README.md").is_file()
    # Copied by `snakedeploy`, which knows no other name.
    assert (ROOT / "config" / "config.yaml").read_bytes() == (ROOT / "config.yaml").read_bytes()
    assert (ROOT / ".test" / "config.yaml").read_bytes() == (ROOT / "config" / "smoke.yaml").read_bytes()


def commands(name: str) -> list[str]:
    """What the jobs of a GitHub workflow run."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yaml").read_text(encoding="utf-8"))["jobs"]
    return [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]


def test_the_tests_run_online() -> None:
    assert "make test" in commands("tests")


@pytest.mark.parametrize("tag", ["v1.0.0", "v99.0"])
def test_a_release_has_its_section_of_the_changelog_as_notes(tag: str, tmp_path: Path) -> None:
    [notes] = [line for line in commands("release") if "CHANGELOG.md" in line]
    (tmp_path / "CHANGELOG.md").write_bytes((ROOT / "CHANGELOG.md").read_bytes())
    done = subprocess.run(
        ["bash", "-e", "-c", notes], cwd=tmp_path, env={"GITHUB_REF_NAME": tag, "PATH": "/usr/bin:/bin"}
    )
    assert (done.returncode == 0) == (tag == "v1.0.0")
    written = (tmp_path / "notes.md").read_text(encoding="utf-8")
    assert ("**Pipeline.**" in written) == (tag == "v1.0.0")
    assert "[Unreleased]" not in written
