"""Packed files, read as streams without being extracted to disk.

The suffix decides: .gz and .xz are compressed text; .zip, .tar and .tgz are archives; anything else
is plain. A few kilobytes can unpack to fill any memory, while text shrinks to a third or a tenth: a
stream that unpacks to more than 100 times its packed size, plus 64 MiB for small repetitive files,
is refused. Links in an archive are not followed. Every function raises `UserError` for a file that
is missing or damaged, also while a stream is read.
"""

import contextlib
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

from specialized_heads.stage import UserError

RATIO, ALLOWANCE = 100, 64 << 20
BUFFER = 1 << 16
LARGEST = 64 << 20  # bytes of one document
LONGEST_LINE = 1 << 20  # bytes; a longer line would fill the memory
STREAMS: dict[str, Callable[[Path], BinaryIO]] = {".gz": gzip.open, ".xz": lzma.open}
ARCHIVES = (".zip", ".tar", ".tgz")
MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\3\4": "zip"}
MAGIC |= {b"\x28\xb5\x2f\xfd": "zstd", b"PAR1": "parquet"}
# zipfile reports what it cannot read, such as passwords, as RuntimeError.
DAMAGE = (EOFError, OSError, RuntimeError, ValueError)
DAMAGE += (zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile)


class _Unpacked(io.RawIOBase):
    """A stream of unpacked bytes that raises `UserError` where the packed ones are damaged or
    unpack to too much."""

    def __init__(self, stream: BinaryIO, *, path: Path, name: str, packed: int) -> None:
        self.stream, self.path, self.name = stream, path, name
        self.left = RATIO * packed + ALLOWANCE

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        with refuse_damage(self.path):
            data = self.stream.read(len(buffer))
        self.left -= len(data)
        if self.left < 0:
            raise UserError(
                f"{self.name}: unpacks to more than {RATIO} times its size, so it is no text; get "
                f"it elsewhere"
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.stream.close()
        super().close()


@contextlib.contextmanager
def refuse_damage(path: Path) -> Iterator[None]:
    """Turn what the unpacking libraries raise into a `UserError` that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (IsADirectoryError, PermissionError) as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except DAMAGE as error:
        kind = path.suffix.removeprefix(".").lower()
        reason = str(error) or type(error).__name__
        raise UserError(
            f"{path}: not a complete {kind} file ({reason}); delete it and fetch it again, or pack "
            f"it again"
        ) from None


def _unpacked(stream: BinaryIO, *, path: Path, name: str, packed: int) -> BinaryIO:
    return io.BufferedReader(_Unpacked(stream, path=path, name=name, packed=packed), BUFFER)


def open_packed(path: Path) -> BinaryIO:
    """The bytes of a plain file or a compressed stream."""
    with refuse_damage(path):
        if (opener := STREAMS.get(path.suffix.lower())) is None:
            return open(path, "rb")
        if not (size := path.stat().st_size):  # which some libraries accept
            raise EOFError("it is empty")
        return _unpacked(opener(path), path=path, name=str(path), packed=size)


def walk(path: Path) -> Iterator[tuple[str, BinaryIO]]:
    """The files of an archive in order: name and bytes. Folders, links and what macOS adds
    (`._name`) are left out."""
    files = _zip_files(path) if path.suffix.lower() == ".zip" else _tar_files(path)
    while True:
        with refuse_damage(path):
            found = next(files, None)
        if found is None:
            return
        name, stream, packed = found[0].removeprefix("./"), *found[1:]
        if not name.rpartition("/")[2].startswith("._"):
            yield name, _unpacked(stream, path=path, name=f"{path}: {name}", packed=packed)


def _zip_files(path: Path) -> Iterator[tuple[str, BinaryIO, int]]:
    """Name, bytes and packed size of each file."""
    archive = zipfile.ZipFile(path)
    for info in archive.infolist():
        if not (info.is_dir() or stat.S_ISLNK(info.external_attr >> 16)):
            yield info.filename, archive.open(info), info.compress_size


def _tar_files(path: Path) -> Iterator[tuple[str, BinaryIO, int]]:
    """The same of a tar archive, whose files are packed together."""
    mode, size = "r:" if path.suffix.lower() == ".tar" else "r:gz", path.stat().st_size
    archive = tarfile.open(path, mode)  # noqa: SIM115 - streams outlive the loop
    for info in archive:
        if info.isreg():
            yield info.name, archive.extractfile(info), size
    # The checksum of the compressed stream follows the archive's end mark.
    while archive.fileobj.read(BUFFER):
        pass


def members(path: Path) -> list[str]:
    """The names of the files in an archive, as `walk` gives them, without a leading './'."""
    return [name for name, _ in walk(path)]


def member(path: Path, name: str) -> BinaryIO:
    """One file of an archive, unpacked while it is read; a tar archive is read up to it."""
    others = []
    for other, stream in walk(path):
        if other == name:
            return stream
        others.append(other)
    raise UserError(f"{path}: no file {name} in it; it holds {', '.join(others[:10]) or 'nothing'}")


def document(stream: BinaryIO, *, name: str) -> bytes:
    """All bytes of a file in an archive, which may be packed again (.gz); more than 64 MiB of text
    are a `UserError`."""
    data = (gzip.GzipFile(fileobj=stream) if name.endswith(".gz") else stream).read(LARGEST + 1)
    if len(data) > LARGEST:
        remedy = "so it is not one document; get the file elsewhere"
        raise UserError(f"{name}: larger than {LARGEST} bytes, {remedy}")
    return data


def lines(text: Path | BinaryIO) -> Iterator[str]:
    """The lines of UTF-8 text, a packed or plain file or a stream with a `name`, without ends (LF
    or CR LF) and byte-order mark.

    A line that is not UTF-8 or longer than 1 MiB is a `UserError`.
    """
    if isinstance(text, Path):
        with open_packed(text) as stream:
            yield from lines(stream)
        return
    number = 0
    while line := text.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            said = f"longer than {LONGEST_LINE} bytes; not a file of sentences"
            raise UserError(f"{text.name}: line {number}: {said}")
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            for magic, kind in MAGIC.items():
                if number == 1 and line.startswith(magic):
                    remedy = "unpack it to plain text, or name a gzip or xz file .gz or .xz"
                    said = f"{text.name}: line 1: packed by {kind}; {remedy}"
                    raise UserError(said) from None
            raise UserError(
                f"{text.name}: line {number}: not UTF-8 ({error.reason}); convert the file to UTF-8"
            ) from None


def aligned(
    first: Iterator[Any], second: Iterator[Any], *, name: str, remedy: str = "get the file again"
) -> Iterator[tuple[Any, Any]]:
    """Pair the lines of two texts, described by `name`; unequal numbers are a `UserError`."""
    for number, (left, right) in enumerate(zip_longest(first, second)):
        if left is None or right is None:
            ended = "first" if left is None else "second"
            said = f"the {ended} ends after line {number}"
            raise UserError(f"{name} differ in length: {said}; {remedy}")
        yield left, right


def check(path: Path) -> None:
    """Read a packed file to its end to find truncation or damage; a plain file passes."""
    kind, streams = path.suffix.lower(), iter(())
    if kind in ARCHIVES:
        streams = (stream for _, stream in walk(path))
    elif kind in STREAMS:
        streams = iter([open_packed(path)])
    for stream in streams:
        while stream.read(BUFFER):
            pass
