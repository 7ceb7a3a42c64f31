"""Text out of Debian packages: the real apt client, with packages made here and an archive on this machine."""

import functools
import hashlib
import http.server
import shutil
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from specialized_heads.corpus.debian.package import licences
from specialized_heads.corpus.pairs import read_pairs
from specialized_heads.corpus.readers.archives import members, walk
from specialized_heads.stage import read_json

needs_apt = pytest.mark.skipif(
    not all(map(shutil.which, ("apt-get", "apt-cache", "dpkg-deb"))), reason="apt and dpkg-deb are not on this system"
)
COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: 2020 A. Writer
License: GPL-2+

License: GPL-2+
 The text of it.
"""
HELP = "usr/share/libreoffice/help"
PACKAGES = {
    "tiny-faq": {"usr/share/doc/faq/a.en.html": "<p>Why not?</p>", "usr/share/doc/faq/picture.png": "no text"},
    "tiny-faq-ru": {"usr/share/doc/faq/ru/a.ru.html": "<p>Почему бы и нет?</p>"},
    "libreoffice-help-en-us": {f"{HELP}/en-US/text/a.html": "<p id='par_1'>Save it.</p>"},
    "libreoffice-help-ru": {f"{HELP}/ru/text/a.html": "<p id='par_1'>Сохраните.</p>"},
}
DESCRIPTIONS = {"en": "tiny questions\n For all.", "ru": "короткие вопросы\n Для всех."}


@dataclass(frozen=True)
class Archive:
    """A repository below `root`, served at `port`; `configuration` is what APT_CONFIG names."""

    root: Path
    port: int
    configuration: Path

    def use(self, port: int) -> None:
        """Make apt look for the repository at a port, and leave a mark where a hook of the system would run."""
        sources = self.configuration.parent / "sources.list"
        sources.write_text(f"deb [trusted=yes] http://127.0.0.1:{port} stable main\n")
        self.configuration.write_text(
            f'Dir::Etc::sourcelist "{sources}";\nDir::Etc::sourceparts "/dev/null";\n'
            'Acquire::http::Proxy::127.0.0.1 "DIRECT";\nAcquire::Languages { "none"; };\n'
            f'APT::Update::Post-Invoke {{ "touch {self.configuration.parent}/hook"; }};\n'
        )


def deb(folder: Path, name: str, contents: dict[str, str]) -> Path:
    """Build a package with dpkg-deb."""
    tree = folder / "tree" / name
    for place, text in (contents | {f"usr/share/doc/{name}/copyright": COPYRIGHT}).items():
        (tree / place).parent.mkdir(parents=True, exist_ok=True)
        (tree / place).write_text(text, encoding="utf-8")
    (tree / "usr/share/doc/faq").mkdir(parents=True, exist_ok=True)
    (tree / "usr/share/doc/faq" / "link.html").symlink_to("/etc/passwd")
    (tree / "DEBIAN").mkdir()
    control = f"Package: {name}\nVersion: 1.0-2\nArchitecture: all\nMaintainer: A <a@b.c>\nDescription: tiny\n"
    (tree / "DEBIAN" / "control").write_text(control)
    path = folder / "archive" / f"{name}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(tree), str(path)], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with four packages, and descriptions in English and Russian."""
    folder = tmp_path_factory.mktemp("repository")
    root = folder / "archive"
    root.mkdir()
    md5 = hashlib.md5(b"tiny").hexdigest()
    index = ""
    for name, contents in PACKAGES.items():
        path = deb(folder, name, contents)
        index += f"Package: {name}\nVersion: 1.0-2\nArchitecture: all\nMaintainer: A <a@b.c>\nDescription: tiny\n"
        index += f"Description-md5: {md5}\nFilename: {path.name}\nSize: {path.stat().st_size}\n"
        index += f"SHA256: {hashlib.sha256(path.read_bytes()).hexdigest()}\n\n"
    architecture = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True).stdout.strip()
    files = {f"main/binary-{architecture}/Packages": index}
    for language, text in DESCRIPTIONS.items():
        record = f"Package: tiny-faq\nDescription-md5: {md5}\nDescription-{language}: {text}\n\n"
        files[f"main/i18n/Translation-{language}"] = record
    release = f"Origin: Tiny\nSuite: stable\nCodename: tiny\nArchitectures: {architecture}\nComponents: main\n"
    release += "Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n"
    for name, text in files.items():
        place = root / "dists" / "stable" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        release += f" {hashlib.sha256(place.read_bytes()).hexdigest()} {place.stat().st_size} {name}\n"
    (root / "dists" / "stable" / "Release").write_text(release)
    return root


@pytest.fixture
def archive(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Archive]:
    """A copy of the repository, served, and apt set up to read it."""
    root = tmp_path / "archive"
    shutil.copytree(built, root)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=root))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "apt").mkdir()
    found = Archive(root, server.server_port, tmp_path / "apt" / "apt.conf")
    found.use(found.port)
    monkeypatch.setenv("APT_CONFIG", str(found.configuration))
    yield found
    server.shutdown()
    server.server_close()


@needs_apt
def test_from_packages_to_pairs(stage, archive: Archive, tmp_path: Path) -> None:
    data = tmp_path / "data with space" / "debian"
    index, descriptions = data / "index", data / "descriptions.ru.tar.gz"
    for done in (
        stage("debian.apt", index=index),
        stage("debian.descriptions", settings={"language": "ru"}, output=descriptions),
    ):
        assert done.returncode == 0, done.stderr
    # The system's hooks did not run, and the card says which release it is.
    assert not (tmp_path / "apt" / "hook").exists()
    contents = {name: stream.read() for name, stream in walk(descriptions)}
    assert b'"codename": "tiny"' in contents["index.json"]

    def fetch(entry: str) -> subprocess.CompletedProcess:
        output = data / f"{entry.replace('*', '_')}.tar.gz"
        return stage("debian.package", settings={"package": entry}, index=index, output=output)

    entries = ["libreoffice-help-en-us", "libreoffice-help-ru", "tiny-f*"]
    with ThreadPoolExecutor() as jobs:  # side by side, as Snakemake runs them
        for done in jobs.map(fetch, entries):
            assert done.returncode == 0, done.stderr
    # Text only, links are not followed, and nothing is left beside it.
    assert members(data / "tiny-f_.tar.gz") == [
        "usr/share/doc/faq/a.en.html",
        "usr/share/doc/tiny-faq/copyright",
        "usr/share/doc/faq/ru/a.ru.html",
        "usr/share/doc/tiny-faq-ru/copyright",
        "packages.json",
    ]
    names = {"index", "descriptions.ru.tar.gz", "tiny-f_.tar.gz", *(f"{entry}.tar.gz" for entry in entries[:2])}
    assert {path.name for path in data.iterdir()} == names

    source = {"kind": "debian", "libreoffice": True, "manuals": ["tiny-f*"], "descriptions": True}
    settings = {"source": source, "source_language": "en", "target_language": "ru"}
    resources = [data / f"{name}.tar.gz" for name in (*entries[:2], "tiny-f_", "descriptions.ru")]
    output, card = tmp_path / "raw.parquet", tmp_path / "raw.json"
    files = {"resource": resources, "output": output, "card": card}
    done = stage("raw", settings=settings, **files)
    assert done.returncode == 0, done.stderr
    pairs = read_pairs(output)
    assert list(zip(pairs.source, pairs.target, pairs.document, strict=True)) == [
        ("Save it.", "Сохраните.", "libreoffice/a"),
        ("Why not?", "Почему бы и нет?", "manuals/usr/share/doc/faq/a.html"),
        ("tiny questions", "короткие вопросы", "descriptions/tiny-faq"),
        ("For all.", "Для всех.", "descriptions/tiny-faq"),
    ]
    made = read_json(card)
    assert made["pairs"] == 4
    assert [package["name"] for package in made["packages"]] == [*entries[:2], "tiny-faq", "tiny-faq-ru"]
    first = made["packages"][0]
    path = archive.root / f"{first['name']}.deb"
    assert first["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (first["version"], first["licences"]) == ("1.0-2", ["GPL-2+"])
    assert made["descriptions"]["releases"][0]["origin"] == "Tiny"

    done = stage("raw", settings=settings | {"source_language": "ru"}, **files)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "source_language ru: Debian's texts are translated from English" in done.stderr


@needs_apt
def test_mistakes_are_one_line_with_the_remedy(stage, archive: Archive, tmp_path: Path) -> None:
    index, output = tmp_path / "data" / "index", tmp_path / "data" / "out.tar.gz"
    done = stage("debian.apt", index=index)
    assert done.returncode == 0, done.stderr

    def error(module: str, **options) -> str:
        done = stage(module, **options)
        assert done.returncode == 2, done.stderr
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert "Traceback" not in done.stderr
        (line,) = errors
        return line

    def of_package(entry: str) -> str:
        return error("debian.package", settings={"package": entry}, index=index, output=output)

    line = of_package("tiny-game*")
    assert line.startswith("error: package tiny-game*: not in this system's release")
    assert "`apt-cache search --names-only 'tiny'` lists candidates" in line

    # Another file than the one in the index, of the same size.
    path = archive.root / "tiny-faq-ru.deb"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert "package tiny-faq-ru cannot be fetched" in of_package("tiny-faq-ru")
    path.unlink()
    assert "package tiny-faq-ru cannot be fetched" in of_package("tiny-faq-ru")
    assert not output.exists()

    archive.use(9)  # nothing listens there
    kept = (tmp_path / "data" / "index" / "apt.conf").read_bytes()
    for module, options in (
        ("debian.apt", {"index": tmp_path / "again"}),
        ("debian.descriptions", {"settings": {"language": "ru"}, "output": tmp_path / "d.tar.gz"}),
    ):
        line = error(module, **options)
        assert line.startswith("error: apt: the package indices cannot be fetched")
        assert "check the network" in line
    assert not (tmp_path / "d.tar.gz").exists()
    assert (tmp_path / "data" / "index" / "apt.conf").read_bytes() == kept


def test_without_apt_the_error_says_what_is_needed(stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = stage("debian.apt", index=tmp_path / "index")
    assert done.returncode == 2
    assert done.stderr.startswith("error: apt-get: not found; a source of kind debian needs a Debian or Ubuntu system")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (COPYRIGHT, ["GPL-2+"]),
        ("Format: 1.0\n\nFiles: a\nLicense: BSD\n\nFiles: *\nLicense: MPL-2.0\n Its text.\n", ["MPL-2.0", "BSD"]),
        ("This is free software under the GPL.\n\nLicense: see above\n", []),
    ],
)
def test_licences_are_read_from_machine_readable_files_only(text: str, names: list[str]) -> None:
    assert licences(text) == names
