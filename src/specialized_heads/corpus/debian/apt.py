"""Stage debian_index: the package indices of the system's sources, shared by all experiments; and the apt client.

The client reads the system's sources, keys and proxies, and writes to one folder only. So it needs no root, and ignores the
system's package lists, cache and hooks. The environment variable APT_CONFIG can name a file with other sources, as for apt
itself. All indices must arrive: a missing one would silently change the corpus. Records are parsed here, because the library for
them, python-debian, is licensed under the GPL.
"""

import fnmatch
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from specialized_heads.stage import Files, UserError, command, file_hash, log

# Read after the system's configuration, to clear its hooks.
CONFIGURATION = """\
#clear APT::Update;
APT::Update::Error-Mode "any";
// As root, apt would otherwise download as a user without write access here.
APT::Sandbox::User "root";
// Written with the index, so that concurrent jobs only read it.
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "";
Acquire::GzipIndexes "false";
Acquire::Retries "3";
Acquire::IndexTargets::deb-src::Sources::DefaultEnabled "false";
#clear Acquire::Languages;
"""
# Name, value, and continuation lines, which begin with white space.
FIELD = re.compile(r"^([^\s:]+):(.*)((?:\n[ \t].*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Package:
    """A package as the index describes it; `size` in bytes."""

    name: str
    version: str
    architecture: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Apt:
    """The client whose state is in `folder`."""

    folder: Path

    def update(self, *, languages: Sequence[str]) -> None:
        """Fetch the package indices, and package descriptions in `languages`, replacing earlier ones."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("lists/partial", "cache/archives/partial"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "status").touch()  # nothing counts as installed
        wanted = "".join(f'Acquire::Languages {{ "{language}"; }};\n' for language in languages or ["none"])
        (self.folder / "apt.conf").write_text(CONFIGURATION + wanted, encoding="utf-8")
        remedy = "check the network and apt's sources"
        self._call("apt-get", "update", what="the package indices cannot be fetched", remedy=remedy)

    def packages(self, pattern: str) -> list[Package]:
        """The packages whose name matches (`*`: any text), each in the version that apt would install; none is a `UserError`."""
        errors = {"what": "the package indices cannot be read", "remedy": "delete them to fetch them again"}
        names = sorted(fnmatch.filter(self._call("apt-cache", "pkgnames", **errors).split(), pattern))
        # apt-cache has no record of a virtual package.
        shown = self._call("apt-cache", "show", "--no-all-versions", *names, strict=False, **errors) if names else ""
        records = [record for record in stanzas(shown) if "SHA256" in record]
        if not records:
            start = pattern.partition("*")[0].split("-")[0]
            raise UserError(
                f"package {pattern}: not in this system's release; "
                f"`apt-cache search --names-only '{start}'` lists candidates"
            )
        return [Package(r["Package"], r["Version"], r["Architecture"], int(r["Size"]), r["SHA256"]) for r in records]

    def download(self, package: Package, folder: Path) -> Path:
        """Fetch the .deb of a package into `folder`; it must match the index."""
        before = set(folder.iterdir())
        remedy = "the index may be out of date: delete it to fetch it again, or check the network"
        what = f"package {package.name} cannot be fetched"
        self._call("apt-get", "download", f"{package.name}={package.version}", cwd=folder, what=what, remedy=remedy)
        (path,) = set(folder.iterdir()) - before
        if (sha256 := file_hash(path)) != package.sha256:
            raise UserError(f"{path.name}: sha256 is {sha256}, the index says {package.sha256}; {remedy}")
        return path

    def _call(
        self, program: str, *arguments: str, what: str, remedy: str, cwd: Path | None = None, strict: bool = True
    ) -> str:
        """Run one of apt's programs and return its output, or raise a `UserError` with the first error that it reports."""
        if not shutil.which(program):
            raise UserError(
                f"{program}: not found; a source of kind debian needs a Debian or Ubuntu system (or its container)"
            )
        folder = self.folder.resolve()
        paths = {"State": folder, "State::status": folder / "status", "Cache": folder / "cache"}
        options = [part for name, path in paths.items() for part in ("-o", f"Dir::{name}={path}")]
        command = [program, "-q", "-c", str(folder / "apt.conf"), *options, *arguments]
        environment = os.environ | {"LC_ALL": "C.UTF-8"}
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=cwd, env=environment)
        log.info("%s %s: exit code %d", program, " ".join(arguments[:3]), done.returncode)
        if strict and done.returncode:
            lines = done.stderr.splitlines()
            errors = [line[3:].strip() for mark in ("E: ", "W: ") for line in lines if line.startswith(mark)]
            raise UserError(f"apt: {what} ({[*errors, 'no reason given'][0]}); {remedy}")
        return done.stdout


def stanzas(text: str) -> Iterator[dict[str, str]]:
    """The records of an index: fields by name; continuation lines follow a line feed, with their first space."""
    for record in re.split(r"\n\s*\n", text):
        if fields := {name: first.strip() + rest for name, first, rest in FIELD.findall(record)}:
            yield fields


@command("index")
def main(files: Files) -> None:
    """Write `--index`, a folder with apt's state."""
    Apt(files.index).update(languages=[])
    log.info("debian_index: %s", files.index)
