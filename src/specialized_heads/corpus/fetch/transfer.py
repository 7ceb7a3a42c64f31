"""One file over HTTP(S), in as many tries as it takes, into a hidden file that a later run can go on with.

What has arrived stays when a try ends, and the next try asks for the rest alone (RFC 9110: Range with If-Range), unless the
server's file has changed since, or nothing would show whether it has. Pauses between tries double, or are as long as the
server asks. A try that brings a byte more than all before it starts the count of tries anew.
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
from email.message import Message
from pathlib import Path
from typing import Any

from pydantic import Field

from specialized_heads.corpus.readers import archives
from specialized_heads.corpus.sources import Downloads
from specialized_heads.stage import Section, UserError, log, read_json, write_json

CHUNK = 1 << 18
FIRST_BYTES = 512  # enough to tell a page from an archive
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between tries
LONGEST_RETRY_AFTER = 3600.0  # seconds; a server that wants more is asked again in another run
SAY_EVERY = 10.0  # seconds between lines of the log
PASSING = {408, 425, 429, 500, 502, 503, 504}  # answers that may be others on the next try
PAGE = re.compile(rb"(\xef\xbb\xbf)?\s*(<!doctype html|<html|<head)", re.IGNORECASE)
CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")


class Wanted(Section):
    """The file that is wanted. `downloads` does not affect what arrives."""

    url: str = Field(pattern=r"^(https?|file)://", description="http, https or file")
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")
    bytes: int | None = Field(None, ge=0)
    downloads: Downloads = Downloads()


class Interrupted(Exception):
    """A try failed where another one may not. `pause`: seconds that the server asks to wait."""

    def __init__(self, reason: str, *, pause: float = 0.0) -> None:
        super().__init__(reason)
        self.pause = pause


class Partial:
    """The bytes of a file that have arrived, and beside them what the server said of the file they belong to.

    Snakemake deletes the outputs of a job that fails; it does not know of these two files.
    """

    def __init__(self, output: Path) -> None:
        # The suffix stays the last one: it says how the file is packed.
        self.data = output.with_name(f".partial.{output.name}")
        self.state = output.with_name(f".partial.{output.name}.json")

    def size(self) -> int:
        """Bytes that have arrived."""
        return self.data.stat().st_size if self.data.exists() else 0

    def said(self) -> dict[str, Any]:
        """`url`, `validator` (ETag, Last-Modified or empty) and `bytes` (of the whole file, or null); or nothing."""
        return noted(self.state)

    def remove(self) -> None:
        """Forget it."""
        self.data.unlink(missing_ok=True)
        self.state.unlink(missing_ok=True)


def noted(path: Path) -> dict[str, Any]:
    """What was written down in a JSON file; nothing where it is missing or broken."""
    with contextlib.suppress(UserError):
        if isinstance(found := read_json(path), dict):
            return found
    return {}


@contextlib.contextmanager
def refuse_disk_errors(path: Path) -> Iterator[None]:
    """Turn a failed write into a `UserError`; for a full disk it says that what has arrived is kept."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(
                f"{path}: the disk is full; free some space, or set downloads.directory to another disk, and run again: "
                "what has arrived is kept"
            ) from None
        raise UserError(f"{path}: cannot be written ({error.strerror}); check downloads.directory") from None


def room_for(size: int, *, output: Path) -> None:
    """Refuse to begin what the disk has no room for."""
    if size > (free := shutil.disk_usage(output.parent).free):
        raise UserError(
            f"{output}: the disk is full: {size / 1e6:.1f} MB are to come, {free / 1e6:.1f} MB are free; free some space, or "
            "set downloads.directory to another disk, and run again"
        )


def remedies(output: Path) -> str:
    """What a user can do where a server does not help."""
    return f"set downloads.mirrors to a server that has the file, or place the file by hand as {output}"


def gather(url: str, partial: Partial, *, output: Path, wanted: Wanted) -> None:
    """Ask until all bytes are there, or tries in a row as many as allowed have brought none."""
    most, tries = partial.size(), 0
    while True:
        try:
            ask(url, partial, output=output, wanted=wanted)
            return
        except Interrupted as error:
            reason, asked = str(error), error.pause
        tries = 0 if partial.size() > most else tries + 1
        most = max(most, partial.size())
        if tries >= wanted.downloads.attempts:
            raise UserError(
                f"{url}: {reason}; gave up after {tries} tries without progress ({most} bytes have arrived and are kept). "
                f"Check the network and run again; or {remedies(output)}"
            )
        if asked > LONGEST_RETRY_AFTER:
            raise UserError(f"{url}: {reason}, asks to wait {asked:.0f} seconds; run again then, or {remedies(output)}")
        pause = max(min(FIRST_PAUSE * 2 ** max(tries - 1, 0), LONGEST_PAUSE), asked)
        log.info("%s: %s; next try in %.0f seconds", url, reason, pause)
        time.sleep(pause)


def ask(url: str, partial: Partial, *, output: Path, wanted: Wanted) -> None:
    """One try: ask for the bytes that are missing and append them.

    Raises:
        Interrupted: another try may succeed. UserError: none will.
    """
    said, have = partial.said(), partial.size()
    # A validator means something to the server that gave it; otherwise the hash must tell whether the parts fit together.
    version = said.get("validator", "") if said.get("url") == url else ""
    if not (version or wanted.sha256):
        have = 0
    if have and have == said.get("bytes"):
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
            receive(response, partial, have=have, version=version, url=url, output=output, wanted=wanted)
    except urllib.error.HTTPError as error:
        error.close()
        answer = f"the server answers {error.code} {error.reason}"
        if error.code in PASSING:
            raise Interrupted(answer, pause=retry_after(error.headers)) from None
        if error.code == 416 and have:
            partial.remove()
            raise Interrupted(f"{answer}; starting anew") from None
        raise UserError(f"{url}: {answer}; check the name and version of the corpus, {remedies(output)}") from None
    except http.client.InvalidURL as error:
        raise UserError(f"{url}: not an address ({error})") from None
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise UserError(
                f"{url}: the server's certificate is not trusted ({reason.verify_message}); if your network has an authority "
                f"of its own, set SSL_CERT_FILE, or {remedies(output)}"
            ) from None
        if isinstance(reason, TimeoutError):
            raise Interrupted(f"no byte for {wanted.downloads.timeout:g} seconds") from None
        raise Interrupted(f"connection failed ({reason or type(reason).__name__})") from None


def receive(
    response: http.client.HTTPResponse,
    partial: Partial,
    *,
    have: int,
    version: str,
    url: str,
    output: Path,
    wanted: Wanted,
) -> None:
    """Append what the server sends to the partial file, or start that anew where the server sends all.

    Raises:
        Interrupted: the server's file has changed, or the connection ended too early.
        UserError: it is not the wanted file, or the disk is full.
    """
    validator = validator_of(response.headers)
    if response.status == 206:
        found = CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        # Some servers do not know If-Range.
        same = "" in (version, validator) or version == validator
        if not (same and found and int(found[1]) == have and partial.said().get("bytes") in (None, int(found[2]))):
            partial.remove()
            raise Interrupted("the file on the server has changed; starting anew")
        total, first = int(found[2]), b""
        log.info("%s: going on at %.1f of %.1f MB", url, have / 1e6, total / 1e6)
    else:
        total, have = response.length, 0
        # Read before anything is written: a page instead of the file must not replace what has arrived.
        first = response.read(FIRST_BYTES)
        refuse_page(first, response.headers.get_content_type(), url=url, output=output)
    if wanted.bytes is not None and total not in (None, wanted.bytes):
        raise UserError(f"{url}: the server's file has {total} bytes, {wanted.bytes} are expected; {remedies(output)}")
    if not have:
        partial.remove()
    room_for((total or 0) - have, output=output)
    said_at = time.monotonic()
    with refuse_disk_errors(output):
        if not have:
            write_json(partial.state, {"url": url, "validator": validator, "bytes": total})
        file = open(partial.data, "ab", buffering=0)  # noqa: SIM115
    with file:
        chunk = first or response.read1(CHUNK)
        while chunk:
            rest = memoryview(chunk)
            while rest:
                with refuse_disk_errors(output):
                    rest = rest[file.write(rest) :]
            have += len(chunk)
            if time.monotonic() - said_at > SAY_EVERY:
                said_at = time.monotonic()
                log.info("%s: %.1f of %s MB", output, have / 1e6, "?" if total is None else f"{total / 1e6:.1f}")
            chunk = response.read1(CHUNK)
    expected = wanted.bytes if total is None else total
    if expected is not None and have < expected:
        raise Interrupted(f"the connection ended after {have} of {expected} bytes")


def validator_of(headers: Message) -> str:
    """What names the version of a file: its strong ETag, or its Last-Modified, or nothing (RFC 9110, section 13.1.5)."""
    etag = headers.get("ETag", "")
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified", "")


def retry_after(headers: Message) -> float:
    """Seconds that the server asks to wait: given as such, or as a date."""
    value = headers.get("Retry-After", "").strip()
    if value.isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return 0.0


def refuse_page(first: bytes, content_type: str, *, url: str, output: Path) -> None:
    """Servers and networks that have no file, or want a login, often send a page and call it a success."""
    suffix = output.suffix.lower()
    magic = archives.MAGIC.get(suffix, b"")
    # Many servers call everything HTML that they do not know: the first bytes are the better witness.
    if (magic and first.startswith(magic)) or suffix in (".html", ".htm"):
        return
    if PAGE.match(first) or content_type == "text/html":
        raise UserError(f"{url}: the server sends an HTML page instead of the file; {remedies(output)}")
    if magic:
        raise UserError(f"{url}: the server sends something else than a {suffix} file; {remedies(output)}")
