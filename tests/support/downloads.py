"""The file that tests of downloads fetch, and what lies beside it."""

import hashlib
from pathlib import Path

DATA = hashlib.shake_128(b"a file").digest(300_000)  # bytes that no packing makes smaller
SHA256 = hashlib.sha256(DATA).hexdigest()


def card_of(output: Path) -> Path:
    return output.with_name(f"{output.name}.json")


def partial_of(output: Path) -> Path:
    return output.with_name(f".partial.{output.name}")


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}
