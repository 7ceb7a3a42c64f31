"""Stage download: fetch one file over HTTP(S) or from a folder, completely and verified, or not at all.

The bytes go to a hidden file beside the output, which gets its name only when it is complete: it has the right size and SHA-256
where these are known, and otherwise, if packed, can be read to its end. A later run resumes an interrupted download, even after a
kill or a full disk (`transfer`). Processes that want the same file take turns, and the second finds it in place. A file that was
placed by hand is verified like any other and kept.
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
    Transfer,
    Wanted,
    download,
    read_notes,
    refuse_disk_errors,
    require_space,
)
from specialized_heads.corpus.readers import archives
from specialized_heads.stage import UserError, arguments, file_hash, log, run, write_json


def mirrored(url: str, mirrors: Mapping[str, str]) -> str:
    """The address to use: the longest prefix of `url` among the mirrors is replaced."""
    start = max(filter(url.startswith, mirrors), key=len, default="")
    return mirrors[start] + url.removeprefix(start) if start else url


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, after every process that came before; it is removed at the end."""
    while True:
        with refuse_disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = open(path, "ab")  # noqa: SIM115 - closed below
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                log.info("%s: another process is fetching it; waiting", path.parent / path.name.removeprefix(".lock."))
                fcntl.flock(handle, fcntl.LOCK_EX)
            except OSError as error:
                log.warning("%s: no locks on this file system (%s); start one process only", path, error.strerror)
            # The process before has removed the file, and a third may hold a new one by now.
            try:
                if not os.path.samestat(os.fstat(handle.fileno()), path.stat()):
                    continue
            except FileNotFoundError:
                continue
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def fetch(output: Path, *, card: Path, wanted: Wanted) -> None:
    """Fetch a file to `output`, unless it is there already, and describe it in `card`.

    The card holds `file`, `url`, `retrieved_from` (the address that was used, or 'in place'), `mirror` (whether that differs
    from `url`), `bytes` and `sha256`.

    Raises:
        UserError: the server lacks the file, or sends a page or a damaged or wrong file; no connection; disk full.
    """
    with locked(output.with_name(f".lock.{output.name}")):
        if output.exists() and in_place(output, card=card, wanted=wanted):
            log.info("%s: in place", output)
            return
        transfer = Transfer(mirrored(wanted.url, wanted.downloads.mirrors), output, wanted)
        if transfer.url.startswith("file://"):
            copy(transfer)
        elif transfer.url.startswith(("http://", "https://")):
            download(transfer)
        else:
            raise UserError(f"downloads.mirrors: {transfer.url} is not an http, https or file address")
        sha256 = verify(transfer)
        with refuse_disk_errors(output):
            with open(transfer.data, "rb") as stream:
                os.fsync(stream.fileno())
            os.replace(transfer.data, output)
            transfer.remove()
        write_card(card, output, url=wanted.url, origin=transfer.url, sha256=sha256)
    log.info("%s: %.1f MB from %s, sha256 %s", output, output.stat().st_size / 1e6, transfer.url, sha256)


def write_card(card: Path, output: Path, *, url: str, origin: str, sha256: str) -> None:
    """Write down what a file is, and whether its bytes came from `url`, from a mirror, or were in place."""
    about = {"file": output.name, "url": url, "retrieved_from": origin, "mirror": origin not in (url, "in place")}
    with refuse_disk_errors(card):
        write_json(card, about | {"bytes": output.stat().st_size, "sha256": sha256})


def in_place(output: Path, *, card: Path, wanted: Wanted) -> bool:
    """Whether the existing file is the wanted one, fetched before or placed by hand; if so, its card is up to date."""
    size, sha256 = output.stat().st_size, file_hash(output)
    known = read_notes(card)
    described = (known.get("url"), known.get("bytes"), known.get("sha256")) == (wanted.url, size, sha256)
    # A file with a card could be read to its end when the card was written.
    expected = wanted.model_copy(update={"sha256": wanted.sha256 or sha256}) if described else wanted
    if (problem := mismatch(output, wanted=expected, sha256=sha256)) is not None:
        log.warning("%s: %s; fetching it again", output, problem)
        return False
    if known.get("url", wanted.url) != wanted.url and wanted.sha256 is None:
        log.info("%s: was fetched from %s; fetching it again", output, known["url"])
        return False
    if not described:
        write_card(card, output, url=wanted.url, origin="in place", sha256=sha256)
    return True


def mismatch(path: Path, *, wanted: Wanted, sha256: str) -> str | None:
    """How a file differs from the wanted one in size or hash; without a known hash, why it cannot be read to its end."""
    if wanted.bytes not in (None, size := path.stat().st_size):
        return f"has {size} bytes, expected {wanted.bytes}"
    if wanted.sha256 not in (None, sha256):
        return f"has sha256 {sha256}, expected {wanted.sha256}"
    if wanted.sha256 is None:
        try:
            archives.check(path)
        except UserError as error:
            return str(error).removeprefix(f"{path}: ").rsplit("; ", 1)[0]
    return None


def copy(transfer: Transfer) -> None:
    """Copy a file of this machine; fast enough to start over each time."""
    path = Path(urllib.request.url2pathname(urllib.parse.urlsplit(transfer.url).path))
    if not path.is_file():
        raise UserError(f"{transfer.url}: no such file; {transfer.remedies}")
    transfer.remove()
    require_space(path.stat().st_size, output=transfer.output)
    with refuse_disk_errors(transfer.output):
        shutil.copyfile(path, transfer.data)


def verify(transfer: Transfer) -> str:
    """The SHA-256 of the bytes that have arrived, if they are the wanted file; otherwise they are removed.

    Raises:
        UserError: wrong size or hash; or, where no hash is known, a packed file that cannot be read to its end.
    """
    sha256 = file_hash(transfer.data)
    if (problem := mismatch(transfer.data, wanted=transfer.wanted, sha256=sha256)) is not None:
        transfer.remove()
        raise UserError(
            f"{transfer.url}: the downloaded file {problem}; it was removed. Run again, or {transfer.remedies}"
        )
    return sha256


def main() -> None:
    """Fetch `--output`, and describe it in `--card`."""
    files = arguments(__doc__, files=["output", "card"])
    fetch(files.output, card=files.card, wanted=Wanted.model_validate(files.settings))


if __name__ == "__main__":
    run(main)
