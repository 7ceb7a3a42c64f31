"""Packed files: compressed streams and archives, read without being extracted, and never trusted.

A file is read as its suffix says: .gz, .xz, .bz2 and .zst are streams; .zip and .tar (also .tar.gz, .tgz, ...) have
members; anything else is plain. What is unpacked goes through a bound, since some kilobytes can be packed so that they
unfold to fill any disk: text shrinks to a third or a tenth, so more than 100 times the packed size, plus 64 MiB for
small files that repeat themselves, is refused. Nothing is ever written where a member's name says; still, an archive
whose names are absolute or contain `..` is refused as a whole, and links in it are not followed.
"""

import bz2
import contextlib
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath
from typing import BinaryIO

import pyarrow as pa

from specialized_heads.stage import UserError

RATIO, ALLOWANCE = 100, 64 << 20
BUFFER = 1 << 16
LONGEST_LINE = 1 << 20  # bytes; a line without end would fill the memory
STREAMS = (".gz", ".xz", ".bz2", ".zst")
ARCHIVES = ("zip", "tar")
# The first bytes of a file that is what its suffix says.
MAGIC = {
    ".gz": b"\x1f\x8b",
    ".tgz": b"\x1f\x8b",
    ".xz": b"\xfd7zXZ\x00",
    ".bz2": b"BZh",
    ".zst": b"\x28\xb5\x2f\xfd",
    ".zip": b"PK",
    ".parquet": b"PAR1",
}
# pyarrow reports damaged zstd as OSError; zipfile reports what it cannot read, such as passwords, as RuntimeError.
DAMAGE = (EOFError, OSError, RuntimeError, ValueError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile)


class _Unpacked(io.RawIOBase):
    """A stream of unpacked bytes that ends in a `UserError` where the packed ones are damaged or unfold too far."""

    def __init__(self, stream: BinaryIO, *, path: Path, name: str, packed: int, under: BinaryIO | None = None) -> None:
        self.stream, self.path, self.name, self.under = stream, path, name, under
        self.left = RATIO * packed + ALLOWANCE

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        with refuse_damage(self.path):
            data = self.stream.read(len(buffer))
        self.left -= len(data)
        if self.left < 0:
            raise _bomb(self.name)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.stream.close()
        if self.under is not None:
            self.under.close()
        super().close()


def _bomb(name: str) -> UserError:
    return UserError(
        f"{name}: unpacks to more than {RATIO} times its size, so it is no text; get the file from elsewhere"
    )


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
    """How a file is packed, by its name: 'zip', 'tar', one of `STREAMS`, or '' for a plain file."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if not suffixes:
        return ""
    if suffixes[-1] == ".zip":
        return "zip"
    if suffixes[-1] in (".tar", ".tgz") or (suffixes[0] == ".tar" and suffixes[-1] in STREAMS):
        return "tar"
    return suffixes[-1] if suffixes[-1] in STREAMS else ""


def open_packed(path: Path) -> BinaryIO:
    """The bytes of a file, unpacked: a plain file, a compressed stream, or the one data file of an archive.

    Readme and licence files do not count as data. The stream's `name` says what it is, for messages.

    Raises:
        UserError: no such file, damaged (also while reading), unfolds too far, or an archive with other contents.
    """
    if packing(path) in ARCHIVES:
        return member(path, data_member(path))
    with refuse_damage(path):
        return io.BufferedReader(_decompressed(path), BUFFER)


def _decompressed(path: Path) -> io.RawIOBase:
    """The bytes of a file without its outer compression; a tar archive stays one."""
    raw = open(path, "rb", buffering=0)  # noqa: SIM115 - closed with what is returned
    match ".gz" if path.suffix.lower() == ".tgz" else path.suffix.lower():
        case ".gz":
            stream = gzip.GzipFile(fileobj=raw)
        case ".xz":
            stream = lzma.LZMAFile(raw)  # noqa: SIM115
        case ".bz2":
            stream = bz2.BZ2File(raw)  # noqa: SIM115
        case ".zst":
            stream = pa.CompressedInputStream(raw, "zstd")
        case _:
            return raw
    size = path.stat().st_size
    # Not every library takes an empty file for a damaged one.
    if not size:
        raise EOFError("it is empty")
    return _Unpacked(stream, path=path, name=str(path), packed=size, under=raw)


class Zip(contextlib.AbstractContextManager):
    """A zip archive, opened once for many of its files.

    Attributes:
        names: of the files, in order, without folders and links.

    Raises:
        UserError: not a whole archive, one that unfolds too far, or one with names that lead out of it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with refuse_damage(path):
            self.archive = zipfile.ZipFile(path)
            size = path.stat().st_size
        infos = self.archive.infolist()
        # No more is read of a file than the archive declares for it.
        if sum(info.file_size for info in infos) > RATIO * size + ALLOWANCE:
            raise _bomb(str(path))
        files = [info for info in infos if not info.is_dir() and not stat.S_ISLNK(info.external_attr >> 16)]
        self.infos = {_safe(path, info.filename): info for info in files}
        self.names = list(self.infos)

    def open(self, name: str) -> BinaryIO:
        """One file, unpacked while it is read.

        Raises:
            UserError: no such file in it; while reading: damaged.
        """
        if name not in self.infos:
            raise _no_member(self.path, name, self.names)
        info = self.infos[name]
        with refuse_damage(self.path):
            stream = self.archive.open(info)
        raw = _Unpacked(stream, path=self.path, name=f"{self.path}: {name}", packed=info.compress_size)
        return io.BufferedReader(raw, BUFFER)

    def __exit__(self, *error: object) -> None:
        self.archive.close()


def members(path: Path) -> list[str]:
    """The names of the files in a zip or tar archive, in order, without folders and links, and without a leading './'.

    Raises:
        UserError: not a whole archive, one that unfolds too far, or one with names that lead out of it.
    """
    if packing(path) == "zip":
        with Zip(path) as archive:
            return archive.names
    return [name for name, _ in walk(path)]


def member(path: Path, name: str) -> BinaryIO:
    """One file of a zip or tar archive, unpacked while it is read; a tar archive is read up to it.

    Raises:
        UserError: as `members`; or no such member.
    """
    if packing(path) == "zip":
        # The stream keeps the archive open until it is closed itself.
        with Zip(path) as archive:
            return archive.open(name)
    found = []
    for other, stream in walk(path):
        if other == name:
            return stream
        found.append(other)
    raise _no_member(path, name, found)


def _no_member(path: Path, name: str, found: list[str]) -> UserError:
    return UserError(f"{path}: no file {name} in it; it holds {_shown(found)}")


def _shown(names: list[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "") if names else "nothing"


def walk(path: Path) -> Iterator[tuple[str, BinaryIO]]:
    """The files of a zip or tar archive in order, each with its bytes, to be read before the next one is asked for.

    Raises:
        UserError: as `members`.
    """
    if packing(path) == "zip":
        with Zip(path) as archive:
            for name in archive.names:
                with archive.open(name) as stream:
                    yield name, stream
        return
    with refuse_damage(path):
        # Closed when nothing refers to it any more: `member` returns a stream that reads from it.
        packed = io.BufferedReader(_decompressed(path), BUFFER)
        archive = tarfile.open(fileobj=packed, mode="r|")  # noqa: SIM115
    while True:
        with refuse_damage(path):
            info = archive.next()
        if info is None:
            break
        name = _safe(path, info.name)
        if info.issparse():
            raise UserError(f"{path}: {name} has holes (a sparse file), so it is no text; get the file from elsewhere")
        if info.isreg():
            raw = _Unpacked(archive.extractfile(info), path=path, name=f"{path}: {name}", packed=info.size)
            yield name, io.BufferedReader(raw, BUFFER)
    # The compressed stream goes on after the archive's end mark, and its checksum comes last.
    while packed.read(BUFFER):
        pass
    packed.close()


def data_member(path: Path) -> str:
    """The one file of an archive that is no readme or licence.

    Raises:
        UserError: as `members`; or none, or several.
    """
    about = ("_", ".", "readme", "license", "licence", "copying")
    data = [name for name in members(path) if not name.split("/")[-1].lower().startswith(about)]
    data = [name for name in data if not name.startswith("__MACOSX/")]
    if len(data) != 1:
        raise UserError(f"{path}: must hold one file of text but holds {_shown(data)}; pack the one to use by itself")
    return data[0]


def _safe(path: Path, name: str) -> str:
    """The name of a member, if it stays inside the archive."""
    # Windows' rules know both slashes and drive letters.
    pure = PureWindowsPath(name)
    if pure.drive or pure.root or ".." in pure.parts or "\0" in name:
        raise UserError(
            f"{path}: the archive has a member {name!r}, which leads out of it; get the file from elsewhere"
        )
    return name.removeprefix("./")


def disguised(path: Path) -> str | None:
    """The suffix that a file should have by its first bytes, where its name has no such suffix and the bytes are no text."""
    with open(path, "rb") as stream:
        start = stream.read(512)
    found = (suffix for suffix, magic in MAGIC.items() if start.startswith(magic) and min(start) < ord("\t"))
    suffix = next(found, None)
    return None if suffix is None or path.name.lower().endswith(suffix) else suffix


def lines(text: Path | BinaryIO) -> Iterator[str]:
    """The lines of UTF-8 text without their ends, from a packed or plain file, or from a stream with a `name`.

    A line ends with LF or CR LF; a byte-order mark at the start is dropped.

    Raises:
        UserError: as `open_packed`; a line is not UTF-8 or longer than 1 MiB (with its number).
    """
    if isinstance(text, Path):
        with open_packed(text) as stream:
            yield from lines(stream)
        return
    number = 0
    while line := text.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise UserError(
                f"{text.name}: line {number}: longer than {LONGEST_LINE} bytes; this is no file of sentences"
            )
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{text.name}: line {number}: not UTF-8 ({error.reason}); convert the file to UTF-8"
            ) from None


def check(path: Path) -> None:
    """Read a packed file to its end, so that a truncated or damaged one shows; a plain file passes.

    Raises:
        UserError: as `open_packed` and `members`.
    """
    kind = packing(path)
    if kind in ARCHIVES:
        for _, stream in walk(path):
            while stream.read(BUFFER):
                pass
    elif kind:
        with open_packed(path) as stream:
            while stream.read(BUFFER):
                pass
