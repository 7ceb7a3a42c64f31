"""Stage download: fetch one file over HTTP(S) or from a folder, completely and verified, or not at all.

The bytes go to a hidden file beside the output, which gets its name only when it is complete: it has the right size and SHA-256
where these are known, and otherwise, if packed, can be read to its end. Processes that want the same file take turns, and the
second finds it in place. A file that was placed by hand is verified like any other and kept.

A download takes as many attempts as it needs, in this run or a later one, even after a kill or a full disk: the bytes that have
arrived are kept, and the next attempt requests the rest (RFC 9110: Range with If-Range), unless the server's file has changed or
nothing tells whether it has. Pauses between attempts double, or last as long as the server asks. An attempt that gets further
than all earlier ones resets the count of attempts. Libraries for downloads (pooch, requests) retry but do not resume.
"""

import contextlib
import email.utils
import http.client
import os
import re
import shutil
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import Field

from specialized_heads.config.sources import Downloads
from specialized_heads.corpus.readers import archives
from specialized_heads.stage import NO_ROOM, Files, Section, UserError, command, file_hash, log, read_json, write_json

CHUNK = 1 << 18
FIRST_BYTES = 512  # enough to tell a page from an archive
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between attempts
LONGEST_RETRY_AFTER = 3600.0  # seconds; a longer wait is left to another run
LOG_EVERY = 10.0  # seconds between log lines
TEMPORARY = {408, 425, 429, 500, 502, 503, 504}  # HTTP statuses worth another attempt
PAGE = re.compile(rb"(\xef\xbb\xbf)?\s*(<!doctype html|<html|<head)", re.IGNORECASE)
CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")


class Wanted(Section):
    """The file to fetch. `downloads` does not affect its content."""

    url: str = Field(pattern=r"^(https?|file)://", description="http, https or file")
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")
    bytes: int | None = Field(None, ge=0)
    downloads: Downloads = Downloads()


class Interrupted(Exception):
    """An attempt failed, but another one may succeed. `pause`: seconds that the server asks to wait."""

    def __init__(self, reason: str, *, pause: float = 0.0) -> None:
        super().__init__(reason)
        self.pause = pause


@dataclass(frozen=True)
class Transfer:
    """The transfer of `url` (the mirror's, if there is one) to `output`.

    The bytes that have arrived and the server's description of the file are kept in two hidden files beside the output, which
    Snakemake does not know and so does not delete when the job fails.
    """

    url: str
    output: Path
    wanted: Wanted

    @property
    def data(self) -> Path:
        """The bytes that have arrived. The suffix is that of the output: it tells how the file is packed."""
        return self.output.with_name(f".partial.{self.output.name}")

    @property
    def state(self) -> Path:
        """JSON with `url`, `validator` (ETag, Last-Modified or empty) and `bytes` (of the whole file, or null)."""
        return self.output.with_name(f".partial.{self.output.name}.json")

    @property
    def size(self) -> int:
        """Bytes that have arrived."""
        return self.data.stat().st_size if self.data.exists() else 0

    @property
    def remedies(self) -> str:
        """What a user can do if the server does not deliver the file."""
        return f"set downloads.mirrors to a server that has the file, or place the file by hand as {self.output}"

    def remove(self) -> None:
        """Delete both hidden files."""
        self.data.unlink(missing_ok=True)
        self.state.unlink(missing_ok=True)


def read_notes(path: Path) -> dict[str, Any]:
    """The content of a JSON file; an empty dictionary if it is missing or broken."""
    with contextlib.suppress(UserError):
        if isinstance(notes := read_json(path), dict):
            return notes
    return {}


@contextlib.contextmanager
def refuse_disk_errors(path: Path) -> Iterator[None]:
    """Turn a failed write into a `UserError`."""
    try:
        yield
    except OSError as error:
        reason = NO_ROOM.get(error.errno, f"cannot be written ({error.strerror})")
        raise UserError(
            f"{path}: {reason}; free some space, or set downloads.directory to another disk, and run again: what has arrived "
            "is kept"
        ) from None


def require_space(size: int, *, output: Path) -> None:
    """Raise `UserError` if the disk has fewer than `size` bytes free."""
    if size > (free := shutil.disk_usage(output.parent).free):
        raise UserError(
            f"{output}: the disk is full: {size / 1e6:.1f} MB are needed, {free / 1e6:.1f} MB are free; free some space, or "
            "set downloads.directory to another disk, and run again"
        )


def download(transfer: Transfer) -> None:
    """Make attempts until all bytes have arrived, or the allowed number of consecutive attempts has brought none."""
    most, attempts = transfer.size, 0
    while True:
        try:
            return request(transfer)
        except Interrupted as error:
            reason, requested_pause = f"{transfer.url}: {error}", error.pause
        attempts = 0 if transfer.size > most else attempts + 1
        most = max(most, transfer.size)
        if attempts >= transfer.wanted.downloads.attempts:
            raise UserError(
                f"{reason}; gave up after {attempts} attempts without progress ({most} bytes have arrived and are "
                f"kept). Check the network and run again; or {transfer.remedies}"
            )
        if requested_pause > LONGEST_RETRY_AFTER:
            raise UserError(
                f"{reason}, asks to wait {requested_pause:.0f} seconds; run again then, or {transfer.remedies}"
            )
        pause = max(min(FIRST_PAUSE * 2 ** max(attempts - 1, 0), LONGEST_PAUSE), requested_pause)
        log.info("%s; next attempt in %.0f seconds", reason, pause)
        time.sleep(pause)


def request(transfer: Transfer) -> None:
    """One attempt: request the missing bytes and append them; `Interrupted` if another attempt may succeed."""
    url, wanted = transfer.url, transfer.wanted
    state, have = read_notes(transfer.state), transfer.size
    # Only the server that gave a validator understands it; otherwise the hash must tell whether the parts fit together.
    version = state.get("validator", "") if state.get("url") == url else ""
    if not (version or wanted.sha256):
        have = 0
    if have and have == state.get("bytes"):
        return
    headers = {"User-Agent": "specialized-heads", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if version:
            headers["If-Range"] = version
    try:
        asked = urllib.request.Request(url, headers=headers)  # noqa: S310 - the scheme was checked
        with urllib.request.urlopen(asked, timeout=wanted.downloads.timeout) as response:  # noqa: S310
            receive(response, transfer, have=have, version=version)
    except urllib.error.HTTPError as error:
        error.close()
        answer = f"the server answers {error.code} {error.reason}"
        if error.code in TEMPORARY:
            raise Interrupted(answer, pause=seconds_to_wait(error.headers.get("Retry-After", ""))) from None
        if error.code == 416 and have:
            transfer.remove()
            raise Interrupted(f"{answer}; starting over") from None
        raise UserError(f"{url}: {answer}; check the name and version of the corpus, {transfer.remedies}") from None
    except http.client.InvalidURL as error:
        raise UserError(f"{url}: not an address ({error})") from None
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise UserError(
                f"{url}: the server's certificate is not trusted ({reason.verify_message}); if your network has its own "
                f"authority, set SSL_CERT_FILE, or {transfer.remedies}"
            ) from None
        if isinstance(reason, TimeoutError):
            raise Interrupted(f"no byte for {wanted.downloads.timeout:g} seconds") from None
        raise Interrupted(f"connection failed ({reason or type(reason).__name__})") from None


def seconds_to_wait(retry_after: str) -> float:
    """The pause that a server asks for (RFC 9110, section 10.2.3): a number of seconds, or a date; 0 for anything else."""
    with contextlib.suppress(ValueError, OverflowError):
        if retry_after.strip().isdecimal():
            return float(retry_after)
        return max(email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time(), 0.0)
    return 0.0


def receive(response: http.client.HTTPResponse, transfer: Transfer, *, have: int, version: str) -> None:
    """Append the response to the bytes that have arrived, or start over where the server sends the whole file."""
    url, output, wanted = transfer.url, transfer.output, transfer.wanted
    # What identifies the version of a file (RFC 9110, section 13.1.5): its strong ETag, or else its date.
    etag = response.headers.get("ETag", "")
    validator = etag if etag and not etag.startswith("W/") else response.headers.get("Last-Modified", "")
    if response.status == 206:
        part = CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        # Some servers ignore If-Range.
        same = "" in (version, validator) or version == validator
        total = read_notes(transfer.state).get("bytes")
        if not (same and part and int(part[1]) == have and total in (None, int(part[2]))):
            transfer.remove()
            raise Interrupted("the file on the server has changed; starting over")
        total, chunk = int(part[2]), response.read1(CHUNK)
        log.info("%s: resuming at %.1f of %.1f MB", url, have / 1e6, total / 1e6)
    else:
        total, have = response.length, 0
        # Checked before anything is written: an error page must not replace the bytes that have arrived.
        chunk = response.read(FIRST_BYTES)
        refuse_page(chunk, response.headers.get_content_type(), transfer)
    if wanted.bytes is not None and total not in (None, wanted.bytes):
        raise UserError(f"{url}: the server's file has {total} bytes, expected {wanted.bytes}; {transfer.remedies}")
    if not have:
        transfer.remove()
    require_space((total or 0) - have, output=output)
    with refuse_disk_errors(output):
        if not have:
            write_json(transfer.state, {"url": url, "validator": validator, "bytes": total})
        file = open(transfer.data, "ab", buffering=0)  # noqa: SIM115 - closed below
    logged_at = time.monotonic()
    with file:
        while chunk:
            have += len(chunk)
            rest = memoryview(chunk)
            while rest:
                with refuse_disk_errors(output):
                    rest = rest[file.write(rest) :]
            if time.monotonic() - logged_at > LOG_EVERY:
                logged_at = time.monotonic()
                log.info("%s: %.1f of %s MB", output, have / 1e6, "?" if total is None else f"{total / 1e6:.1f}")
            chunk = response.read1(CHUNK)
    expected = wanted.bytes if total is None else total
    if expected is not None and have < expected:
        raise Interrupted(f"the connection ended after {have} of {expected} bytes")


def refuse_page(first: bytes, content_type: str, transfer: Transfer) -> None:
    """Refuse an HTML page: servers without the file, and networks that require a login, often send one with status 200."""
    suffix = transfer.output.suffix.lower()
    magic = archives.MAGIC.get(suffix, b"")
    # Many servers label unknown types as HTML: the first bytes are more reliable.
    if (magic and first.startswith(magic)) or suffix in (".html", ".htm"):
        return
    page = PAGE.match(first) or content_type == "text/html"
    if page or magic:
        sent = "an HTML page instead of the file" if page else f"something other than a {suffix} file"
        raise UserError(f"{transfer.url}: the server sends {sent}; {transfer.remedies}")


def mirrored(url: str, mirrors: Mapping[str, str]) -> str:
    """The address to use: the longest prefix of `url` among the mirrors is replaced."""
    start = max(filter(url.startswith, mirrors), key=len, default="")
    return mirrors.get(start, "") + url.removeprefix(start)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, after every process that came before; it is removed at the end."""
    with refuse_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        log.info("%s: another process is fetching it; waiting", path.parent / path.name.removeprefix(".lock."))
        lock.acquire()
    except OSError as error:
        log.warning("%s: no locks on this file system (%s); start one process only", path, error.strerror)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.release()


def fetch(output: Path, *, card: Path, wanted: Wanted) -> None:
    """Fetch a file to `output`, unless it is there already, and describe it in `card`.

    The card holds `file`, `url`, `retrieved_from` (the address that was used, or 'in place'), `mirror` (whether that differs
    from `url`), `bytes` and `sha256`.
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
    about = {"file": output.name, "url": url, "retrieved_from": origin, "mirror": origin not in (url, "in place")}
    with refuse_disk_errors(card):
        write_json(card, about | {"bytes": output.stat().st_size, "sha256": sha256})


def in_place(output: Path, *, card: Path, wanted: Wanted) -> bool:
    """Whether the existing file is the wanted one, fetched before or placed by hand; if so, its card is up to date."""
    known, sha256 = read_notes(card), file_hash(output)
    about = {"url": wanted.url, "bytes": output.stat().st_size, "sha256": sha256}
    described = about.items() <= known.items()
    # A file with a card could be read to its end when the card was written.
    problem = mismatch(output, wanted=wanted, sha256=sha256, readable=described)
    if problem is None and wanted.sha256 is None and known.get("url", wanted.url) != wanted.url:
        problem = f"was fetched from {known['url']}"
    if problem is not None:
        log.warning("%s: %s; fetching it again", output, problem)
    elif not described:
        write_card(card, output, url=wanted.url, origin="in place", sha256=sha256)
    return problem is None


def mismatch(path: Path, *, wanted: Wanted, sha256: str, readable: bool = False) -> str | None:
    """How a file differs from the wanted one in size or hash; without a known hash, why it cannot be read to its end."""
    if wanted.bytes not in (None, size := path.stat().st_size):
        return f"has {size} bytes, expected {wanted.bytes}"
    if wanted.sha256 not in (None, sha256):
        return f"has sha256 {sha256}, expected {wanted.sha256}"
    if wanted.sha256 is None and not readable:
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
    """The SHA-256 of the bytes that have arrived; if they are not the wanted file, they are removed and a `UserError` raised."""
    sha256 = file_hash(transfer.data)
    if (problem := mismatch(transfer.data, wanted=transfer.wanted, sha256=sha256)) is not None:
        transfer.remove()
        raise UserError(
            f"{transfer.url}: the downloaded file {problem}; it was removed. Run again, or {transfer.remedies}"
        )
    return sha256


@command("output", "card", settings=Wanted)
def main(files: Files, wanted: Wanted) -> None:
    """Fetch `--output`, and describe it in `--card`."""
    fetch(files.output, card=files.card, wanted=wanted)
