"""Text inside a source distribution: fetched by the real pip from a folder, without running the package, and read."""

from collections import Counter
from pathlib import Path

import pytest
from packing import tarred, zipped

from specialized_heads.config import sources
from specialized_heads.corpus import raw
from specialized_heads.corpus.pairs import read_pairs
from specialized_heads.corpus.readers import pypi
from specialized_heads.stage import UserError, file_hash, read_json

SETUP = """\
from pathlib import Path

from setuptools import setup

Path({marker!r}).touch()
setup(name="tiny-text", version="1.2")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """tiny-text 1.2, where pip looks for packages. Its setup.py leaves a mark if it is run."""
    pairs = {"_about.txt": "about", "fra.txt": "Go.\tVa !\tCC-BY\nRun!\tCours !\tCC-BY\n"}
    contents = {
        "PKG-INFO": "Metadata-Version: 1.0\nName: tiny-text\nVersion: 1.2\n",
        "setup.py": SETUP.format(marker=str(tmp_path / "was_run")),
        "data/fra-eng.zip": zipped(tmp_path / "fra-eng.zip", pairs).read_bytes(),
    }
    index = tmp_path / "index"
    index.mkdir()
    path = index / "tiny-text-1.2.tar.gz"
    tarred(path, {f"tiny-text-1.2/{name}": content for name, content in contents.items()})
    for name, value in {"CONFIG_FILE": "/dev/null", "NO_INDEX": "1", "FIND_LINKS": str(index)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    return path


def test_the_package_is_fetched_checked_and_never_run(stage, call, package: Path, tmp_path: Path) -> None:
    fetched = tmp_path / "data" / "tiny-text-1.2.tar.gz"
    wanted = {"requirement": "tiny-text==1.2", "sha256": file_hash(package)}
    done = stage("fetch.pypi_package", settings=wanted, output=fetched)
    assert done.returncode == 0, done.stderr
    assert fetched.read_bytes() == package.read_bytes()
    assert not (tmp_path / "was_run").exists()
    assert [path.name for path in fetched.parent.iterdir()] == [fetched.name]

    source = {"kind": "pypi", "requirement": "tiny-text==1.2"}
    settings = {"source": source, "source_language": "en", "target_language": "fr"}
    files = {"resource": fetched, "output": tmp_path / "raw.parquet", "card": tmp_path / "raw.json"}
    call(raw, settings=settings, **files)
    pairs = read_pairs(tmp_path / "raw.parquet")
    assert (pairs.source, pairs.target, pairs.document) == (["Go.", "Run!"], ["Va !", "Cours !"], ["", ""])
    card = read_json(tmp_path / "raw.json")
    assert card["packages"][0]["version"] == "1.2"
    assert card["files"][0]["sha256"] == file_hash(package)

    source["member"] = "data/deu-eng.zip"
    with pytest.raises(UserError, match=r"no file data/deu-eng\.zip in it; it holds data/fra-eng\.zip; set member"):
        call(raw, settings=settings, **files)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"requirement": "tiny-text==1.2", "sha256": "0" * 64}, "DO NOT MATCH THE HASHES"),
        ({"requirement": "tiny-text==1.3"}, "No matching distribution"),
    ],
)
def test_what_pip_refuses_is_one_line(stage, package: Path, tmp_path: Path, wanted: dict, said: str) -> None:
    done = stage("fetch.pypi_package", settings=wanted, output=tmp_path / "data" / "out.tar.gz")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: pip: {wanted['requirement']} cannot be fetched")
    assert "check name, version, sha256 and the network" in line
    assert said in line or "Could not find a version" in line
    assert not list((tmp_path / "data").iterdir())


def test_the_default_text_is_of_its_own_languages(tmp_path: Path) -> None:
    source = sources.Pypi(kind="pypi")
    with pytest.raises(UserError, match=r"nmt\.tar\.gz: this text is en-fr, .* are de and fr; set them to en and fr$"):
        next(pypi.read(source, [tmp_path / "nmt.tar.gz"], source_language="de", target_language="fr", counts=Counter()))
