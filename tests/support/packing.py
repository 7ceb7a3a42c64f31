"""Archives for tests, from names and contents."""

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def zipped(path: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write a zip archive; returns its path."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, _bytes(content))
    return path


def tarred(
    path: Path, files: Mapping[str, str | bytes], *, links: Mapping[str, str] | None = None
) -> Path:
    """Write a tar archive, compressed unless its name ends in .tar, with the folders of its files;
    returns its path."""
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as archive:

        def add(name: str, kind: bytes, *, content: bytes = b"", target: str = "") -> None:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, len(content), target
            archive.addfile(info, io.BytesIO(content))

        for folder in dict.fromkeys(
            name.rpartition("/")[0] for name in files if "/" in name.strip("./")
        ):
            add(folder, tarfile.DIRTYPE)
        for name, content in files.items():
            add(name, tarfile.REGTYPE, content=_bytes(content))
        for name, target in (links or {}).items():
            add(name, tarfile.SYMTYPE, target=target)
    return path
