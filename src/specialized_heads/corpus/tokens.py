"""Stage tokens: one split as token ids, flat and with offsets, so that training maps the file and reads only what it needs.

A safetensors file holds `source` and `target` (int32, the ids of all sentences one after the other, without begin and end
of sentence) and `source_offsets` and `target_offsets` (int64, n + 1 positions; sentence i is offsets[i] to offsets[i + 1]).
Its metadata hold a hash of all that, by which a damaged file is told when it is loaded.
Text goes into it block by block, so that neither the sentences nor the ids of a corpus of millions are held in memory.
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import sentencepiece

from specialized_heads.corpus.bpe import load_bpe
from specialized_heads.corpus.pairs import read_blocks
from specialized_heads.corpus.preprocess import Mode, apply
from specialized_heads.stage import Section, UserError, arguments, atomic, disk_errors, log, progress, run

SIDES = ("source", "target")
DTYPES = {"source": "<i4", "source_offsets": "<i8", "target": "<i4", "target_offsets": "<i8"}


class Settings(Section):
    """What affects the result besides the files."""

    preprocess: Mode
    source_language: str
    target_language: str


@dataclass(frozen=True)
class TokenStore:
    """The token ids of one split, mapped from disk.

    `source` and `target`: int32, all ids in a row. `source_offsets` and `target_offsets`: int64, (sentences + 1,).
    """

    source: np.ndarray
    source_offsets: np.ndarray
    target: np.ndarray
    target_offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.source_offsets) - 1

    def source_ids(self, sentence: int) -> np.ndarray:
        """The source ids of a sentence, (S,)."""
        return self.source[self.source_offsets[sentence] : self.source_offsets[sentence + 1]]

    def target_ids(self, sentence: int) -> np.ndarray:
        """The target ids of a sentence, (T,)."""
        return self.target[self.target_offsets[sentence] : self.target_offsets[sentence + 1]]

    @property
    def source_lengths(self) -> np.ndarray:
        """Source subwords per sentence, int64, (sentences,)."""
        return np.diff(self.source_offsets)

    @property
    def target_lengths(self) -> np.ndarray:
        """Target subwords per sentence, int64, (sentences,)."""
        return np.diff(self.target_offsets)


def load_tokens(path: Path) -> TokenStore:
    """Map a token file into memory.

    Raises:
        UserError: no such file, not a token file, or a damaged one.
    """
    # safetensors' own reader copies every tensor into memory; its format is a header length, a JSON header, and raw arrays.
    try:
        with open(path, "rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(size))
            expected = header.pop("__metadata__", {}).get("sha256")  # a file of others, without one, is believed
            found = hashlib.file_digest(stream, lambda: _header_hash(header)).hexdigest()
        if expected not in (None, found):
            raise ValueError("damaged: its hash is another one")
        arrays = {}
        for name, dtype in DTYPES.items():
            begin, end = header[name]["data_offsets"]
            offset, length = 8 + size + begin, (end - begin) // np.dtype(dtype).itemsize
            arrays[name] = np.memmap(path, dtype, "r", offset=offset, shape=(length,))
        for side in SIDES:
            ids, offsets = arrays[side], arrays[f"{side}_offsets"]
            if list(offsets[:1]) != [0] or offsets[-1] != len(ids) or (np.diff(offsets) < 0).any():
                raise ValueError(f"{side}_offsets do not divide the ids into sentences")
            if len(ids) and ids.min() < 0:
                raise ValueError(f"{side} has negative ids")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (ValueError, KeyError, AttributeError, TypeError, OverflowError, MemoryError, RecursionError) as error:
        raise UserError(f"{path}: not a token file ({error}); delete it and run again") from None
    return TokenStore(**arrays)


def _header_hash(header: dict[str, dict]) -> "hashlib._Hash":
    """SHA-256 of the header of a token file without its metadata, to go on with the arrays."""
    return hashlib.sha256(json.dumps(header, separators=(",", ":")).encode())


def encode(texts: list[str], bpe: sentencepiece.SentencePieceProcessor) -> tuple[np.ndarray, np.ndarray]:
    """Turn sentences into subword ids.

    Returns:
        int32 ids of all sentences in a row, and the number of ids of each, int64, (len(texts),).
    """
    sentences = bpe.encode(texts, out_type=int, num_threads=1)
    ids = np.fromiter(chain.from_iterable(sentences), np.int32)
    return ids, np.fromiter(map(len, sentences), np.int64, len(texts))


def write_tokens(path: Path, blocks: Iterable[dict[str, tuple[np.ndarray, np.ndarray]]]) -> dict[str, np.ndarray]:
    """Write a token file.

    Args:
        path: of the file.
        blocks: for each block of pairs what `encode` gives for `source` and for `target`.

    Returns:
        the offsets of both sides, int64, (sentences + 1,).
    """
    # safetensors' own writer wants every tensor in memory. Ids wait in unnamed files until their number is known.
    with (
        disk_errors(path),
        tempfile.TemporaryFile(dir=path.parent) as source,
        tempfile.TemporaryFile(dir=path.parent) as target,
    ):
        ids, lengths = dict(zip(SIDES, (source, target))), {side: [np.zeros(1, np.int64)] for side in SIDES}
        for block in blocks:
            for side in SIDES:
                ids[side].write(block[side][0].astype("<i4").tobytes())
                lengths[side].append(block[side][1])
        offsets = {side: np.cumsum(np.concatenate(lengths[side]), dtype="<i8") for side in SIDES}
        header, end = {}, 0
        for name in (
            "source_offsets",
            "target_offsets",
            *SIDES,
        ):  # the order of safetensors: wide types first, then names
            side, _, offset = name.partition("_")
            shape = len(offsets[side]) if offset else int(offsets[side][-1])
            begin, end = end, end + shape * np.dtype(DTYPES[name]).itemsize
            header[name] = {"dtype": "I64" if offset else "I32", "shape": [shape], "data_offsets": [begin, end]}
        digest = _header_hash(header)
        for side in SIDES:
            digest.update(offsets[side].tobytes())
        for side in SIDES:
            ids[side].seek(0)
            while block := ids[side].read(1 << 20):
                digest.update(block)
        text = json.dumps({"__metadata__": {"sha256": digest.hexdigest()}} | header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)  # arrays start at a multiple of eight bytes
        with atomic(path) as temporary, open(temporary, "wb") as stream:
            stream.write(len(text).to_bytes(8, "little") + text)
            for side in SIDES:
                stream.write(offsets[side].tobytes())
            for side in SIDES:
                ids[side].seek(0)
                shutil.copyfileobj(ids[side], stream, 1 << 20)
    return offsets


def main() -> None:
    """Read `--text` (one split) and the two models; write `--output`."""
    files = arguments(__doc__, files=["text", "source-model", "target-model", "output"])
    settings = Settings.model_validate(files.settings)
    models = {"source": load_bpe(files.source_model), "target": load_bpe(files.target_model)}
    languages = {"source": settings.source_language, "target": settings.target_language}
    files.output.parent.mkdir(parents=True, exist_ok=True)
    blocks = (
        {
            side: encode(
                apply(block[side].to_pylist(), language=languages[side], mode=settings.preprocess), models[side]
            )
            for side in SIDES
        }
        for block in progress(read_blocks(files.text, columns=SIDES), what="tokens", unit="block")
    )
    offsets = write_tokens(files.output, blocks)
    source, target = (offsets[side] for side in SIDES)
    log.info("tokens: %d sentences, %d source and %d target subwords", len(source) - 1, source[-1], target[-1])


if __name__ == "__main__":
    run(main)
