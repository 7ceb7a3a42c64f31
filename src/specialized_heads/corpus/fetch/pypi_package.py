"""Stage pypi_package: download the source distribution of a Python package with pip, without running its code.

Before pip keeps a source distribution, it asks the package's build backend for metadata, which would run its setup.py. So this
stage substitutes a backend: a module named setuptools that returns the name and version, which pip knows already (PEP 517). pip
checks the hash before it unpacks anything. Its configuration (index, proxy, certificates) applies.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pydantic import Field

from specialized_heads.stage import Files, Section, UserError, atomic, command, log

# Source distributions that the project uses, with their sha256.
KNOWN = {"nmt==0.0.6": "65db964c0afd5b0dbc4baecdce736f53222f63b791958176b5771db78a005096"}
BACKEND = """\
from pathlib import Path


def get_requires_for_build_wheel(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = Path(metadata_directory) / "{folder}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
    return folder.name


# pip uses this attribute for packages that name no backend.
class __legacy__:
    get_requires_for_build_wheel = staticmethod(get_requires_for_build_wheel)
    prepare_metadata_for_build_wheel = staticmethod(prepare_metadata_for_build_wheel)
"""


class Settings(Section):
    """`name==version`, and the sha256 that it must have; None: the one in `KNOWN`, if any."""

    requirement: str
    sha256: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")


def pip() -> list[str]:
    """The command of pip: that of this Python, or the first on the path."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if path := shutil.which("pip3") or shutil.which("pip"):
        return [path]
    raise UserError("pip: not found; install it (python -m ensurepip); a source of kind pypi needs it")


def fetch(requirement: str, folder: Path, *, sha256: str | None = None) -> Path:
    """Download the source distribution into the empty `folder`, and check `sha256` or the one in `KNOWN`."""
    name, _, version = requirement.partition("==")
    sha256 = sha256 or KNOWN.get(requirement)
    with tempfile.TemporaryDirectory() as temporary:
        backend = Path(temporary) / "backend" / "setuptools"
        backend.mkdir(parents=True)
        (backend / "__init__.py").touch()
        metadata = f"{name.replace('-', '_')}-{version}"
        (backend / "build_meta.py").write_text(BACKEND.format(name=name, version=version, folder=metadata))
        wanted = Path(temporary) / "requirements.txt"
        wanted.write_text(requirement + (f" --hash=sha256:{sha256}" if sha256 else "") + "\n")
        command = [*pip(), "download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--use-pep517"]
        command += ["--no-cache-dir", "--disable-pip-version-check", "--progress-bar", "off"]
        command += ["--requirement", str(wanted), "--dest", str(folder)]
        environment = os.environ | {"PYTHONPATH": str(backend.parent)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines()]
        errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
        hashes = [line for line in lines if line.startswith("Got ")]
        raise UserError(
            f"pip: {requirement} cannot be fetched ({' '.join([*errors[:1], *hashes[:1]]) or 'no reason given'}); check name, "
            "version, sha256 and the network"
        )
    (path,) = folder.iterdir()
    if not path.name.endswith(".tar.gz"):
        raise UserError(
            f"{path.name}: the source distribution of {requirement} is not a .tar.gz; choose another version"
        )
    return path


@command("output", settings=Settings)
def main(files: Files, settings: Settings) -> None:
    """Write `--output`."""
    with atomic(files.output) as temporary, tempfile.TemporaryDirectory(dir=files.output.parent) as folder:
        os.replace(fetch(settings.requirement, Path(folder), sha256=settings.sha256), temporary)
    log.info("pypi_package: %s", settings.requirement)
