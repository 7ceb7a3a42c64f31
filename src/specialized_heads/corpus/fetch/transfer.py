"""One file over HTTP(S), in as many attempts as it takes, into a hidden file that a later run can resume.

The bytes that have arrived are kept when an attempt ends, and the next one requests the rest (RFC 9110: Range with If-Range),
unless the server's file has changed or nothing tells whether it has. Pauses between attempts double, or last as long as the
server asks. An attempt that brings more bytes than all before it resets the count of attempts.
"""

import contextlib
import email.utils
import errno
import http.client
import re
import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

from pydantic import Field

from specialized_heads.config.sources import Downloads
from specialized_heads.corpus.readers.archives import MAGIC
from specialized_heads.stage import Section, UserError, log, read_json, write_json

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
    """An attempt failed where another may succeed. `pause`: seconds that the server asks to wait."""

    def __init__(self, reason: str, *, pause: float = 0.0) -> None:
        super().__init__(reason)
        self.pause = pause


@dataclass(frozen=True)
class Transfer:
    """The transfer of `url` (the mirror's, if there is one) to `output`.

    The bytes that have arrived and the server's description of the file lie in two hidden files beside the output, which
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
        """What a user can do where a server does not help."""
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
    """Turn a failed write into a `UserError`; bytes that have arrived before a full disk are kept."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(
                f"{path}: the disk is full; free some space, or set downloads.directory to another disk, and run again: "
                "what has arrived is kept"
            ) from None
        raise UserError(f"{path}: cannot be written ({error.strerror}); check downloads.directory") from None


def require_space(size: int, *, output: Path) -> None:
    """Raise `UserError` if the disk has fewer than `size` bytes free."""
    if size > (free := shutil.disk_usage(output.parent).free):
        raise UserError(
            f"{output}: the disk is full: {size / 1e6:.1f} MB are needed, {free / 1e6:.1f} MB are free; free some space, or "
            "set downloads.directory to another disk, and run again"
        )


def download(transfer: Transfer) -> None:
    """Make attempts until all bytes have arrived, or as many in a row as allowed have brought none."""
    url, output = transfer.url, transfer.output
    most, attempts = transfer.size, 0
    while True:
        try:
            request(transfer)
            return
        except Interrupted as error:
            reason, requested_pause = str(error), error.pause
        attempts = 0 if transfer.size > most else attempts + 1
        most = max(most, transfer.size)
        if attempts >= transfer.wanted.downloads.attempts:
            raise UserError(
                f"{url}: {reason}; gave up after {attempts} attempts without progress ({most} bytes have arrived and are "
                f"kept). Check the network and run again; or {transfer.remedies}"
            )
        if requested_pause > LONGEST_RETRY_AFTER:
            raise UserError(
                f"{url}: {reason}, asks to wait {requested_pause:.0f} seconds; run again then, or {transfer.remedies}"
            )
        pause = max(min(FIRST_PAUSE * 2 ** max(attempts - 1, 0), LONGEST_PAUSE), requested_pause)
        log.info("%s: %s; next attempt in %.0f seconds", output, reason, pause)
        time.sleep(pause)


def request(transfer: Transfer) -> None:
    """One attempt: request the missing bytes and append them.

    Raises:
        Interrupted: another attempt may succeed. UserError: none will.
    """
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
        response = urllib.request.urlopen(  # noqa: S310 - the scheme was checked
            urllib.request.Request(url, headers=headers), timeout=wanted.downloads.timeout
        )
        with response:
            receive(response, transfer, have=have, version=version)
    except urllib.error.HTTPError as error:
        error.close()
        answer = f"the server answers {error.code} {error.reason}"
        if error.code in TEMPORARY:
            raise Interrupted(answer, pause=retry_after(error.headers)) from None
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


def receive(response: http.client.HTTPResponse, transfer: Transfer, *, have: int, version: str) -> None:
    """Append the response to the bytes that have arrived, or start over where the server sends the whole file.

    Raises:
        Interrupted: the server's file has changed, or the connection ended too early.
        UserError: it is not the wanted file, or the disk is full.
    """
    url, output, wanted = transfer.url, transfer.output, transfer.wanted
    validator = validator_of(response.headers)
    if response.status == 206:
        part = CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        # Some servers ignore If-Range.
        same = "" in (version, validator) or version == validator
        total = read_notes(transfer.state).get("bytes")
        if not (same and part and int(part[1]) == have and total in (None, int(part[2]))):
            transfer.remove()
            raise Interrupted("the file on the server has changed; starting over")
        total, first = int(part[2]), b""
        log.info("%s: resuming at %.1f of %.1f MB", url, have / 1e6, total / 1e6)
    else:
        total, have = response.length, 0
        # Checked before anything is written: an error page must not replace the bytes that have arrived.
        first = response.read(FIRST_BYTES)
        refuse_page(first, response.headers.get_content_type(), transfer)
    if wanted.bytes is not None and total not in (None, wanted.bytes):
        raise UserError(f"{url}: the server's file has {total} bytes, expected {wanted.bytes}; {transfer.remedies}")
    if not have:
        transfer.remove()
    require_space((total or 0) - have, output=output)
    logged_at = time.monotonic()
    with refuse_disk_errors(output):
        if not have:
            write_json(transfer.state, {"url": url, "validator": validator, "bytes": total})
        file = open(transfer.data, "ab", buffering=0)  # noqa: SIM115
    with file:
        chunk = first or response.read1(CHUNK)
        while chunk:
            rest = memoryview(chunk)
            while rest:
                with refuse_disk_errors(output):
                    rest = rest[file.write(rest) :]
            have += len(chunk)
            if time.monotonic() - logged_at > LOG_EVERY:
                logged_at = time.monotonic()
                log.info("%s: %.1f of %s MB", output, have / 1e6, "?" if total is None else f"{total / 1e6:.1f}")
            chunk = response.read1(CHUNK)
    expected = wanted.bytes if total is None else total
    if expected is not None and have < expected:
        raise Interrupted(f"the connection ended after {have} of {expected} bytes")


def validator_of(headers: Message) -> str:
    """What identifies the version of a file: its strong ETag, or Last-Modified, or nothing (RFC 9110, section 13.1.5)."""
    etag = headers.get("ETag", "")
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified", "")


def retry_after(headers: Message) -> float:
    """Seconds that the server asks to wait, from a number or a date."""
    value = headers.get("Retry-After", "").strip()
    if value.isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return 0.0


def refuse_page(first: bytes, content_type: str, transfer: Transfer) -> None:
    """Refuse an HTML page: servers without the file, and networks that want a login, often send one with status 200."""
    suffix = transfer.output.suffix.lower()
    magic = MAGIC.get(suffix, b"")
    # Many servers label unknown types as HTML: the first bytes are more reliable.
    if (magic and first.startswith(magic)) or suffix in (".html", ".htm"):
        return
    if PAGE.match(first) or content_type == "text/html":
        raise UserError(f"{transfer.url}: the server sends an HTML page instead of the file; {transfer.remedies}")
    if magic:
        raise UserError(f"{transfer.url}: the server sends something other than a {suffix} file; {transfer.remedies}")
