"""Stage download: one file over HTTP(S) or out of a folder, whole and checked, or not there at all.

The bytes are gathered in a hidden file beside the output and get its name only when they are complete: of the right
size and sha256 where these are known, and otherwise, for a packed file, readable to the end. A download that was
interrupted, even by a kill or a full disk, goes on where it stopped (`transfer`). Two processes that want one file take
turns, and the second finds it. A file that was put in place by hand is checked like any other and kept.
"""

import contextlib
import fcntl
import os
import shutil
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from specialized_heads.corpus.fetch.transfer import (
    Partial,
    Wanted,
    gather,
    noted,
    refuse_disk_errors,
    remedies,
    room_for,
)
from specialized_heads.corpus.readers import archives
from specialized_heads.stage import UserError, arguments, file_hash, log, run, write_json


def mirrored(url: str, mirrors: Mapping[str, str]) -> str:
    """The address to ask: the longest start of `url` among the mirrors is replaced."""
    starts = [start for start in mirrors if url.startswith(start)]
    start = max(starts, key=len, default="")
    return mirrors[start] + url.removeprefix(start) if start else url


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, after every process that came before; it is removed in the end."""
    while True:
        with refuse_disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = open(path, "ab")  # noqa: SIM115 - closed below, whatever happens
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                log.info("%s: another process is fetching it; waiting", path.parent / path.name.removeprefix(".lock."))
                fcntl.flock(handle, fcntl.LOCK_EX)
            except OSError as error:
                log.warning("%s: no locks on this file system (%s); start one process only", path, error.strerror)
            # The one before has removed the file, and a third may hold a new one by now.
            held, there = os.fstat(handle.fileno()), None
            with contextlib.suppress(FileNotFoundError):
                there = path.stat()
            if there is None or not os.path.samestat(held, there):
                continue
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def fetch(output: Path, *, card: Path, wanted: Wanted) -> None:
    """Bring a file to `output`, unless it lies there already, and write down in `card` what it is.

    The card holds `file`, `url`, `retrieved_from` (the address that was asked, or 'in place'), `mirror` (whether that is
    another one than `url`), `bytes` and `sha256`.

    Raises:
        UserError: the server has no such file, or sends a page or a damaged or wrong file; no connection; disk full.
    """
    with locked(output.with_name(f".lock.{output.name}")):
        if output.exists() and in_place(output, card=card, wanted=wanted):
            log.info("%s: in place", output)
            return
        url, partial = mirrored(wanted.url, wanted.downloads.mirrors), Partial(output)
        if url.startswith("file://"):
            copy(url, partial, output=output)
        elif url.startswith(("http://", "https://")):
            gather(url, partial, output=output, wanted=wanted)
        else:
            raise UserError(f"downloads.mirrors: {url} is no http, https or file address")
        sha256 = accept(partial, url=url, output=output, wanted=wanted)
        size = partial.size()
        with refuse_disk_errors(output):
            with open(partial.data, "rb") as stream:
                os.fsync(stream.fileno())
            os.replace(partial.data, output)
            partial.remove()
        write_card(card, output, url=wanted.url, origin=url, size=size, sha256=sha256)
    log.info("%s: %.1f MB from %s, sha256 %s", output, size / 1e6, url, sha256)


def write_card(card: Path, output: Path, *, url: str, origin: str, size: int, sha256: str) -> None:
    """Write down what a file is, and whether its bytes came from `url`, from a mirror, or were there."""
    found = {"file": output.name, "url": url, "retrieved_from": origin, "mirror": origin not in (url, "in place")}
    with refuse_disk_errors(card):
        write_json(card, found | {"bytes": size, "sha256": sha256})


def in_place(output: Path, *, card: Path, wanted: Wanted) -> bool:
    """Whether the file that lies there is the wanted one, fetched before or put there by hand; then the card says so."""
    size, sha256 = output.stat().st_size, file_hash(output)
    known = noted(card)
    if wanted.bytes not in (None, size) or wanted.sha256 not in (None, sha256):
        log.warning("%s: not the wanted file (%d bytes, sha256 %s); fetching it again", output, size, sha256)
        return False
    if known.get("url", wanted.url) != wanted.url and wanted.sha256 is None:
        log.info("%s: was fetched from %s; fetching it again", output, known["url"])
        return False
    if (known.get("url"), known.get("bytes"), known.get("sha256")) == (wanted.url, size, sha256):
        return True
    if wanted.sha256 is None:
        try:
            archives.check(output)
        except UserError as error:
            log.warning("%s; fetching it again", error)
            return False
    write_card(card, output, url=wanted.url, origin="in place", size=size, sha256=sha256)
    return True


def copy(url: str, partial: Partial, *, output: Path) -> None:
    """Copy a file of this machine; fast enough to start anew each time."""
    path = Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path))
    if not path.is_file():
        raise UserError(f"{url}: no such file; {remedies(output)}")
    partial.remove()
    room_for(path.stat().st_size, output=output)
    with refuse_disk_errors(output):
        shutil.copyfile(path, partial.data)


def accept(partial: Partial, *, url: str, output: Path, wanted: Wanted) -> str:
    """The sha256 of what has arrived, if it is the wanted file; otherwise it is removed.

    Raises:
        UserError: wrong size or hash; or, where no hash is known, a packed file that cannot be read to its end.
    """
    size, sha256 = partial.size(), file_hash(partial.data)
    problem = ""
    if wanted.bytes not in (None, size):
        problem = f"has {size} bytes, expected are {wanted.bytes}"
    elif wanted.sha256 not in (None, sha256):
        problem = f"has sha256 {sha256}, expected is {wanted.sha256}"
    elif wanted.sha256 is None:
        try:
            archives.check(partial.data)
        except UserError as error:
            problem = str(error).removeprefix(f"{partial.data}: ").rsplit("; ", 1)[0]
    if problem:
        partial.remove()
        raise UserError(f"{url}: what arrived {problem}; it was removed. Run again, or {remedies(output)}")
    return sha256


def main() -> None:
    """Bring `--output`, and write what it is to `--card`."""
    files = arguments(__doc__, files=["output", "card"])
    fetch(files.output, card=files.card, wanted=Wanted.model_validate(files.settings))


if __name__ == "__main__":
    run(main)
