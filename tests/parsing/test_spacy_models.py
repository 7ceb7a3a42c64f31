"""What the workflow knows of spaCy's models: another model or release is seen, what is not installed is nothing."""

import sys
from pathlib import Path

import pytest

from specialized_heads.parsing.spacy_models import installed, model_name


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`package("tiny_model", weights="abc")`: install a distribution as pip does, with the hash of one file."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def install(name: str, *, version: str = "1.0", weights: str = "abc", direct: str = "x") -> None:
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir(exist_ok=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = [
            f"{name}/weights,sha256={weights},3",
            f"{name}/a.pyc,,",
            f"{folder.name}/direct_url.json,sha256={direct},1",
        ]
        (folder / "RECORD").write_text("\n".join(lines) + "\n")

    return install


def test_the_files_of_an_installed_model_count_and_not_how_it_came_here(package) -> None:
    package("tiny_model")
    first = installed(language="en", package="tiny_model")["model"]
    assert first is not None
    package("tiny_model", direct="y")
    assert installed(language="en", package="tiny_model")["model"] == first
    package("tiny_model", weights="abd")
    assert installed(language="en", package="tiny_model")["model"] not in (None, first)


def test_the_release_of_spacy_counts(package) -> None:
    package("spacy", version="99.1")
    assert installed(language="en", package="none")["spacy"] == "99.1"


def test_a_folder_counts_by_its_contents_wherever_it_lies(tmp_path: Path) -> None:
    hashes = []
    for name, text in (("one", "x"), ("two", "x"), ("three", "y")):
        (tmp_path / name / "parser").mkdir(parents=True)
        (tmp_path / name / "parser" / "model").write_text(text)
        hashes.append(installed(language="en", package=str(tmp_path / name))["model"])
    assert hashes[0] == hashes[1] != hashes[2]


def test_what_is_not_there_is_nothing(tmp_path: Path) -> None:
    for package in ("no_such_model_at_all", str(tmp_path / "none"), ""):
        assert installed(language="en", package=package)["model"] is None
    assert installed(language="xx", package="default")["model"] is None
    assert model_name(language="xx", package="default") is None and model_name(language="xx", package="own") == "own"


def test_a_region_has_the_default_of_its_language() -> None:
    default = model_name(language="en", package="default")
    assert default is not None
    for language in ("en_GB", "en-US"):
        assert model_name(language=language, package="default") == default
