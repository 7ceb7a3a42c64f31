"""Packed files, read as streams without being extracted to disk.

The suffix decides: .gz, .xz and .zst are compressed streams; .zip and .tar (also .tar.gz, .tgz, ...) are archives;
anything else is plain. A few kilobytes can unpack to fill any memory, while text shrinks to a third or a tenth: a stream that
unpacks to more than 100 times its packed size, plus 64 MiB for small repetitive files, is refused. Links in an archive are not
followed. Every function raises `UserError` for a file that is missing or damaged, also while a stream is read.
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

import pyarrow as pa

from specialized_heads.stage import UserError

RATIO, ALLOWANCE = 100, 64 << 20
BUFFER = 1 << 16
LARGEST = 64 << 20  # bytes of one document
LONGEST_LINE = 1 << 20  # bytes; a longer line would fill the memory
STREAMS: dict[str, Callable[[Path], BinaryIO]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".zst": lambda path: pa.input_stream(str(path), compression="zstd"),
}
ARCHIVES = ("zip", "tar")
# The first bytes of a file, by its suffix.
MAGIC = {
    ".gz": b"\x1f\x8b",
    ".tgz": b"\x1f\x8b",
    ".xz": b"\xfd7zXZ\x00",
    ".zst": b"\x28\xb5\x2f\xfd",
    ".zip": b"PK",
    ".parquet": b"PAR1",
}
# pyarrow reports damaged zstd as OSError; zipfile reports what it cannot read, such as passwords, as RuntimeError.
DAMAGE = (EOFError, OSError, RuntimeError, ValueError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile)


class _Unpacked(io.RawIOBase):
    """A stream of unpacked bytes that raises `UserError` where the packed ones are damaged or unpack to too much."""

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
                f"{self.name}: unpacks to more than {RATIO} times its size, so it is no text; get it elsewhere"
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
            f"{path}: not a complete {kind} file ({reason}); delete it and fetch it again, or pack it again"
        ) from None


def packing(path: Path) -> str:
    """How a file is packed, by its name: 'zip', 'tar', a suffix in `STREAMS`, or '' for a plain file."""
    *_, before, last = ["", "", *(suffix.lower() for suffix in path.suffixes)]
    if last == ".zip":
        return "zip"
    if last in (".tar", ".tgz") or (before == ".tar" and last in STREAMS):
        return "tar"
    return last if last in STREAMS else ""


def open_packed(path: Path) -> BinaryIO:
    """The bytes of a plain file, a compressed stream, or the only data file of an archive."""
    if packing(path) in ARCHIVES:
        return member(path, data_member(path))
    with refuse_damage(path):
        return io.BufferedReader(_decompressed(path), BUFFER)


def _decompressed(path: Path) -> io.RawIOBase:
    """The bytes of a file without its outer compression; a tar archive remains one."""
    opener = STREAMS.get(path.suffix.lower().replace(".tgz", ".gz"))
    if opener is None:
        return open(path, "rb", buffering=0)
    size = path.stat().st_size
    # Some libraries accept an empty file.
    if not size:
        raise EOFError("it is empty")
    return _Unpacked(opener(path), path=path, name=str(path), packed=size)


def walk(path: Path) -> Iterator[tuple[str, BinaryIO]]:
    """The files of an archive in order, without folders and links: name, and bytes to be read before the next is requested."""
    for name, stream, packed in _zip_files(path) if packing(path) == "zip" else _tar_files(path):
        if stream is not None:
            name = name.removeprefix("./")
            yield name, io.BufferedReader(_Unpacked(stream, path=path, name=f"{path}: {name}", packed=packed), BUFFER)


def _zip_files(path: Path) -> Iterator[tuple[str, BinaryIO | None, int]]:
    """Name, bytes and packed size of each member; links and folders have no bytes."""
    with refuse_damage(path):
        archive = zipfile.ZipFile(path)
    with archive:
        for info in archive.infolist():
            is_file = not (info.is_dir() or stat.S_ISLNK(info.external_attr >> 16))
            with refuse_damage(path):
                stream = archive.open(info) if is_file else None
            yield info.filename, stream, info.compress_size


def _tar_files(path: Path) -> Iterator[tuple[str, BinaryIO | None, int]]:
    """The same of a tar archive."""
    with refuse_damage(path):
        # Closed when nothing refers to it any more: `member` returns a stream that reads from it.
        packed = io.BufferedReader(_decompressed(path), BUFFER)
        archive = tarfile.open(fileobj=packed, mode="r|")  # noqa: SIM115
    while True:
        with refuse_damage(path):
            info = archive.next()
        if info is None:
            break
        yield info.name, archive.extractfile(info) if info.isreg() else None, info.size
    # The checksum of the compressed stream follows the archive's end mark.
    while packed.read(BUFFER):
        pass
    packed.close()


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
    raise UserError(f"{path}: no file {name} in it; it holds {_shown(others)}")


def _shown(names: list[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "") if names else "nothing"


def data_member(path: Path) -> str:
    """The only file of an archive that is not a readme or licence."""
    about = ("_", ".", "readme", "license", "licence", "copying")
    data = [name for name in members(path) if not name.split("/")[-1].lower().startswith(about)]
    data = [name for name in data if not name.startswith("__MACOSX/")]
    if len(data) != 1:
        raise UserError(f"{path}: must hold one file of text but holds {_shown(data)}; pack the one to use by itself")
    return data[0]


def document(stream: BinaryIO, *, name: str) -> bytes:
    """All bytes of a file in an archive, which may be packed again (.gz); more than 64 MiB of text are a `UserError`."""
    data = (gzip.GzipFile(fileobj=stream) if name.endswith(".gz") else stream).read(LARGEST + 1)
    if len(data) > LARGEST:
        raise UserError(f"{name}: larger than {LARGEST} bytes, so it is not one document; get the file elsewhere")
    return data


def disguised(path: Path) -> str | None:
    """The suffix that matches the first bytes of a file, if its name lacks it and the bytes are not text."""
    with open(path, "rb") as stream:
        start = stream.read(512)
    matching = (suffix for suffix, magic in MAGIC.items() if start.startswith(magic) and min(start) < ord("\t"))
    suffix = next(matching, None)
    return None if suffix is None or path.name.lower().endswith(suffix) else suffix


def lines(text: Path | BinaryIO) -> Iterator[str]:
    """The lines of UTF-8 text, a packed or plain file or a stream with a `name`, without ends (LF or CR LF) and byte-order mark.

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
            raise UserError(f"{text.name}: line {number}: longer than {LONGEST_LINE} bytes; not a file of sentences")
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{text.name}: line {number}: not UTF-8 ({error.reason}); convert the file to UTF-8"
            ) from None


def aligned(
    first: Iterator[Any], second: Iterator[Any], *, name: str, remedy: str = "get the file again"
) -> Iterator[tuple[Any, Any]]:
    """The lines of two texts, which `name` describes, in parallel; a different number of lines is a `UserError`."""
    for number, (left, right) in enumerate(zip_longest(first, second)):
        if left is None or right is None:
            ended = "first" if left is None else "second"
            raise UserError(f"{name} differ in length: the {ended} ends after line {number}; {remedy}")
        yield left, right


def check(path: Path) -> None:
    """Read a packed file to its end to find truncation or damage; a plain file passes."""
    kind = packing(path)
    streams = (stream for _, stream in walk(path)) if kind in ARCHIVES else [open_packed(path)] if kind else []
    for stream in streams:
        while stream.read(BUFFER):
            pass
