"""Stage download: fetch one file over HTTP(S) or from a folder, completely and verified, or not at
all.

The bytes go to a hidden file beside the output, which gets its name only when it is complete: it
has the right size and SHA-256 where these are known, and otherwise, if packed, can be read to its
end. Processes that want the same file take turns, and the second finds it in place. A file that was
placed by hand is verified like any other and kept; a wrong one is moved aside.

A download takes as many attempts as it needs, in this run or a later one: the bytes that have
arrived are kept, and the next attempt requests the rest (RFC 9110: Range with If-Range), unless the
server's file has changed or nothing tells whether it has.
"""

import http.client
import os
import re
import shutil
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from filelock import FileLock
from pydantic import Field

from specialized_heads import stage
from specialized_heads.corpus.readers import archives
from specialized_heads.experiment.sources import Downloads

CHUNK = 1 << 14
FIRST_BYTES = 512  # enough to tell a page from a file
ATTEMPTS = 6  # without a new byte before giving up
TIMEOUT = 60.0  # seconds without a byte that end an attempt
PAUSES = (1.0, 60.0)  # seconds between attempts: the first, which doubles, and the longest
TEMPORARY = {408, 425, 429, 500, 502, 503, 504}  # HTTP statuses worth another attempt
PAGE = re.compile(rb"(\xef\xbb\xbf)?\s*(<!doctype html|<html|<head)", re.IGNORECASE)
CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")


class Wanted(stage.Section):
    """The file to fetch. `downloads` does not affect its content."""

    url: str = Field(pattern=r"^(https?|file)://", description="http, https or file")
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")
    bytes: int | None = Field(None, ge=0)
    downloads: Downloads = Downloads()


class Interrupted(Exception):
    """An attempt failed, but another one may succeed."""


def read_notes(path: Path) -> dict[str, Any]:
    return stage.read_json(path) if path.exists() else {}


class Download:
    """The bytes of a file that have arrived, in a hidden file beside the output.

    notes: JSON with `url`, `validator` (ETag, Last-Modified or empty) and `bytes` (of the whole
    file, or null).
    """

    def __init__(self, url: str, output: Path, wanted: Wanted) -> None:
        self.url, self.output, self.wanted = url, output, wanted
        self.path = output.with_name(f".partial.{output.name}")  # the suffix tells how it is packed
        self.notes = output.with_name(f".partial.{output.name}.json")
        mirror = "set downloads.mirrors to a server that has the file"
        self.remedies = f"{mirror}, or place the file by hand as {output}"

    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def version(self) -> str:
        """What tells the file on the server from an earlier or later one, if anything does."""
        return read_notes(self.notes).get("validator", "")

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self.notes.unlink(missing_ok=True)

    def complete(self) -> None:
        """Make attempts until all bytes have arrived, or `ATTEMPTS` in a row have brought none."""
        most, attempts, version = self.size(), 0, self.version()
        while True:
            try:
                return self.attempt()
            except Interrupted as error:
                reason = f"{self.url}: {error}"
            before, version = version, self.version()
            if before and version != before:  # of another file, all is still to come
                most = self.size()
            attempts = 0 if self.size() > most else attempts + 1
            most = max(most, self.size())
            if attempts >= ATTEMPTS:
                raise stage.UserError(
                    f"{reason}; gave up after {attempts} attempts without progress ({self.size()} "
                    f"bytes have arrived and are kept). Check the network and run again; or "
                    f"{self.remedies}"
                )
            pause = min(PAUSES[0] * 2 ** max(attempts - 1, 0), PAUSES[1])
            stage.log.info("%s; next attempt in %.0f seconds", reason, pause)
            time.sleep(pause)

    def attempt(self) -> None:
        """Request and append the missing bytes; `Interrupted` if another attempt may succeed."""
        notes, have = read_notes(self.notes), self.size()
        # Only the server that gave a validator understands it; otherwise the hash must tell whether
        # the parts fit together.
        version = notes.get("validator", "") if notes.get("url") == self.url else ""
        have = have if version or self.wanted.sha256 else 0
        if have and have == notes.get("bytes"):
            return
        headers = {"User-Agent": "specialized-heads", "Accept-Encoding": "identity"}
        if have:
            headers |= {"Range": f"bytes={have}-"} | ({"If-Range": version} if version else {})
        try:
            asked = urllib.request.Request(self.url, headers=headers)  # noqa: S310 - the scheme was checked
            with urllib.request.urlopen(asked, timeout=TIMEOUT) as response:  # noqa: S310
                self.receive(response, have=have, version=version)
        except urllib.error.HTTPError as error:
            answer = f"the server answers {error.code} {error.reason}"
            if error.code == 416 and have:
                self.remove()
            elif error.code not in TEMPORARY:
                said = f"{answer}; check the name and version of the corpus, {self.remedies}"
                raise stage.UserError(f"{self.url}: {said}") from None
            raise Interrupted(answer) from None
        except PermissionError:  # of the folder of downloads
            raise
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(reason, FileNotFoundError | http.client.InvalidURL | UnicodeError):
                missing = isinstance(reason, FileNotFoundError)
                said = "no such file" if missing else f"not an address ({reason})"
                raise stage.UserError(f"{self.url}: {said}; {self.remedies}") from None
            if isinstance(reason, TimeoutError):
                raise Interrupted(f"no byte for {TIMEOUT:g} seconds") from None
            raise Interrupted(f"connection failed ({reason})") from None

    def receive(self, response: Any, *, have: int, version: str) -> None:
        """Append the response to the bytes that have arrived, or start over where the server sends
        the whole file."""
        # What identifies the version of a file (RFC 9110, section 13.1.5): its strong ETag, or else
        # its date.
        validator = response.headers.get("ETag", "")
        if not validator or validator.startswith("W/"):
            validator = response.headers.get("Last-Modified", "")
        start = response.read(FIRST_BYTES)
        if response.status == 206:
            part = CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            same = "" in (version, validator) or version == validator  # some ignore If-Range
            if not (same and part and int(part[1]) == have):
                self.remove()
                raise Interrupted("the file on the server has changed; starting over")
            total = int(part[2])
            stage.log.info("%s: resuming at %.1f of %.1f MB", self.url, have / 1e6, total / 1e6)
        else:
            # Before anything is written: a page must not replace the bytes that have arrived.
            if PAGE.match(start):
                said = "the server sends an HTML page instead of the file"
                raise stage.UserError(f"{self.url}: {said}; {self.remedies}")
            length = response.headers.get("Content-Length")
            total = None if length is None else int(length)
            self.remove()
        expected = self.wanted.bytes
        if expected is not None and total not in (None, expected):
            said = f"the server's file has {total} bytes, expected {expected}"
            raise stage.UserError(f"{self.url}: {said}; {self.remedies}")
        if not self.size():
            stage.write_json(self.notes, {"url": self.url, "validator": validator, "bytes": total})
        with stage.disk_errors(self.output), open(self.path, "ab") as file:
            file.write(start)
            shutil.copyfileobj(response, file, CHUNK)
        expected = expected if total is None else total
        if expected is not None and self.size() < expected:
            raise Interrupted(f"the connection ended after {self.size()} of {expected} bytes")


def fetch(output: Path, *, card: Path, wanted: Wanted) -> None:
    """Fetch a file to `output`, unless it is there already, and describe it in `card`.

    The card holds `file`, `url`, `retrieved_from` (the address that was used, or 'in place'),
    `mirror` (whether that differs from `url`), `bytes` and `sha256`.
    """
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        said = f"cannot be written ({error.strerror}); set downloads.directory to another folder"
        raise stage.UserError(f"{output}: {said}, and run again") from None
    lock = output.with_name(f".lock.{output.name}")
    with FileLock(lock):
        try:
            _fetch(output, card=card, wanted=wanted)
        finally:
            lock.unlink(missing_ok=True)


def _fetch(output: Path, *, card: Path, wanted: Wanted) -> None:
    if output.exists() and in_place(output, card=card, wanted=wanted):
        stage.log.info("%s: in place", output)
        return
    # The longest prefix of the address among the mirrors is replaced.
    mirrors = wanted.downloads.mirrors
    start = max(filter(wanted.url.startswith, mirrors), key=len, default="")
    url = mirrors.get(start, "") + wanted.url.removeprefix(start)
    if not url.startswith(("http://", "https://", "file://")):
        raise stage.UserError(f"downloads.mirrors: {url} is not an http, https or file address")
    download = Download(url, output, wanted)
    download.complete()
    sha256 = stage.file_hash(download.path)
    if (problem := mismatch(download.path, wanted=wanted, sha256=sha256)) is not None:
        download.remove()
        said = f"the downloaded file {problem}; it was removed. Run again"
        raise stage.UserError(f"{url}: {said}, or {download.remedies}")
    with open(download.path, "rb") as stream:
        os.fsync(stream.fileno())
    if output.exists():  # someone may have placed it by hand
        aside = output.with_name(f"{output.name}.{stage.file_hash(output)[:8]}.old")
        os.replace(output, aside)
        stage.log.warning("%s: the file that was there is now %s", output, aside.name)
    os.replace(download.path, output)
    download.remove()
    write_card(card, output, url=wanted.url, origin=url, sha256=sha256)
    size = output.stat().st_size / 1e6
    stage.log.info("%s: %.1f MB from %s, sha256 %s", output, size, url, sha256)


def write_card(card: Path, output: Path, *, url: str, origin: str, sha256: str) -> None:
    about = {"file": output.name, "url": url, "retrieved_from": origin}
    about |= {"mirror": origin not in (url, "in place"), "bytes": output.stat().st_size}
    stage.write_json(card, about | {"sha256": sha256})


def in_place(output: Path, *, card: Path, wanted: Wanted) -> bool:
    """Whether the existing file is the wanted one, fetched before or placed by hand; if so, its
    card is up to date."""
    known, sha256 = read_notes(card), stage.file_hash(output)
    about = {"url": wanted.url, "bytes": output.stat().st_size, "sha256": sha256}
    described = about.items() <= known.items()
    # A file with a card could be read to its end when the card was written.
    problem = mismatch(output, wanted=wanted, sha256=sha256, readable=described)
    if problem is None and wanted.sha256 is None and known.get("url", wanted.url) != wanted.url:
        problem = f"was fetched from {known['url']}"
    if problem is not None:
        stage.log.warning("%s: %s; fetching it again", output, problem)
    elif not described:
        write_card(card, output, url=wanted.url, origin="in place", sha256=sha256)
    return problem is None


def mismatch(path: Path, *, wanted: Wanted, sha256: str, readable: bool = False) -> str | None:
    """How a file differs from the wanted one in size or hash; without a known hash, why it cannot
    be read to its end."""
    if wanted.bytes not in (None, size := path.stat().st_size):
        return f"has {size} bytes, expected {wanted.bytes}"
    if wanted.sha256 not in (None, sha256):
        return f"has sha256 {sha256}, expected {wanted.sha256}"
    if wanted.sha256 is None and not readable:
        try:
            archives.check(path)
        except stage.UserError as error:
            return str(error).removeprefix(f"{path}: ").rsplit("; ", 1)[0]
    return None


@stage.command("output", "card", settings=Wanted, shared=True)
def main(files: stage.Files, wanted: Wanted) -> None:
    fetch(files.output, card=files.card, wanted=wanted)
