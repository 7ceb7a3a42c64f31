"""Stage debian_package: the text in the packages that one entry of the configuration names, without the rest of them.

A game's package is hundreds of megabytes of pictures and a few of text. The archive holds everything that a reader may need, in
all languages: message catalogues, pages of documentation and copyright files; and `packages.json` with the version, size,
sha256 and licences of each package. A package is unpacked into a temporary archive, never to the paths that it names.
"""

import gzip
import io
import json
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from specialized_heads.corpus.debian.apt import Apt, stanzas
from specialized_heads.corpus.readers.archives import walk
from specialized_heads.stage import Files, Section, UserError, atomic, command, log

TEXT = re.compile(r".+/LC_MESSAGES/[^/]+\.mo|.+\.(html|page)(\.gz)?|usr/share/doc/[^/]+/copyright")


class Settings(Section):
    """The entry: the name of a package, or a pattern (*: any text)."""

    package: str


def members(package: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the text files of a .deb, which is a `UserError` if damaged; links are not followed."""
    with tempfile.NamedTemporaryFile(dir=package.parent, suffix=".tar") as unpacked:
        done = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], stdout=unpacked, stderr=subprocess.PIPE)
        if done.returncode:
            reason = done.stderr.decode(errors="replace").strip()
            raise UserError(f"{package.name}: cannot be unpacked ({reason}); fetch it again")
        yield from ((name, stream.read()) for name, stream in walk(Path(unpacked.name)) if TEXT.fullmatch(name))


def licences(copyright_: str) -> list[str]:
    """The short names of licences in a machine-readable copyright file (DEP 5), that of most files first."""
    records = list(stanzas(copyright_))
    if not records or "Format" not in records[0]:
        return []
    named = sorted(
        (record.get("Files") != "*", record.get("License", "").partition("\n")[0].strip()) for record in records
    )
    return list(dict.fromkeys(name for _, name in named if name))


def pack(path: Path, contents: Iterable[tuple[str, bytes]]) -> None:
    """Write files as .tar.gz, atomically; equal contents give equal bytes."""
    with (
        atomic(path) as temporary,
        open(temporary, "wb") as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0, filename="") as packed,
        tarfile.open(fileobj=packed, mode="w|") as archive,
    ):
        for name, data in contents:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


@command("index", "output", settings=Settings)
def main(files: Files, settings: Settings) -> None:
    """Fetch with the state in `--index`; write `--output`."""
    apt, card = Apt(files.index), []
    packages = apt.packages(settings.package)

    def contents() -> Iterator[tuple[str, bytes]]:
        for package in packages:
            with tempfile.TemporaryDirectory(dir=files.output.parent) as name:
                path = apt.download(package, Path(name))
                names: list[str] = []
                for member, data in members(path):
                    if member.endswith("/copyright"):
                        names = licences(data.decode("utf-8", errors="replace"))
                    yield member, data
                card.append(asdict(package) | {"file": path.name, "licences": names})
        yield "packages.json", (json.dumps(card, indent=2) + "\n").encode()

    files.output.parent.mkdir(parents=True, exist_ok=True)
    pack(files.output, contents())
    log.info("debian_package: %s", ", ".join(f"{package.name} {package.version}" for package in packages))
