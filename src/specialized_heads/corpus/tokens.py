"""Stage tokens: one split as token ids, flat and with offsets, so that training maps the file and
reads only what it needs.

A safetensors file holds `source` and `target` (int32, the ids of all sentences one after the other,
without begin and end of sentence) and `source_offsets` and `target_offsets` (int64, n + 1
positions; sentence i is offsets[i] to offsets[i + 1]). Its metadata hold the special tokens of an
imported model.

Text is encoded block by block and ids are mapped from disk, so neither the sentences nor the ids of
a corpus of millions are held in memory. Files are opened as PyTorch tensors: safetensors maps
those, but copies NumPy arrays.
"""

import json
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import sentencepiece
from pydantic import TypeAdapter
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from specialized_heads.corpus.bpe import OURS, SpecialTokens, encode_ids, load_bpe
from specialized_heads.corpus.pairs import SIDES, read_blocks
from specialized_heads.corpus.preprocess import Mode, apply
from specialized_heads.stage import (
    Files,
    Section,
    UserError,
    atomic,
    command,
    disk_errors,
    log,
    progress,
    read_json,
)

ARRAYS = ("source", "source_offsets", "target", "target_offsets")


class Settings(Section):
    preprocess: Mode
    source_language: str
    target_language: str


@dataclass(frozen=True)
class TokenStore:
    """The token ids of one split, mapped from disk.

    `source` and `target`: int32, all ids in a row. `source_offsets` and `target_offsets`: int64 of
    shape (sentences + 1,).
    """

    source: np.ndarray
    source_offsets: np.ndarray
    target: np.ndarray
    target_offsets: np.ndarray
    tokens: SpecialTokens = OURS

    def __len__(self) -> int:
        return len(self.source_offsets) - 1

    def source_ids(self, sentence: int) -> np.ndarray:
        """The source ids of a sentence, (S,)."""
        return self.source[self.source_offsets[sentence] : self.source_offsets[sentence + 1]]

    def target_ids(self, sentence: int) -> np.ndarray:
        """The target ids of a sentence, (T,)."""
        return self.target[self.target_offsets[sentence] : self.target_offsets[sentence + 1]]

    def select(self, sentences: Sequence[int] | np.ndarray) -> "TokenStore":
        """A store of these sentences, in this order, in memory."""
        sides, chosen = {}, np.asarray(sentences, np.int64)
        for side in SIDES:
            offsets = getattr(self, f"{side}_offsets")
            lengths = np.diff(offsets)[chosen]
            starts = np.concatenate([[0], np.cumsum(lengths)])  # in the new store, and its end
            positions = np.arange(starts[-1]) + np.repeat(offsets[chosen] - starts[:-1], lengths)
            sides |= {side: getattr(self, side)[positions], f"{side}_offsets": starts}
        return replace(self, **sides)

    @property
    def source_lengths(self) -> np.ndarray:
        """Source subwords per sentence, int64, (sentences,)."""
        return np.diff(self.source_offsets)

    @property
    def target_lengths(self) -> np.ndarray:
        """Target subwords per sentence, int64, (sentences,)."""
        return np.diff(self.target_offsets)


def load_tokens(path: Path) -> TokenStore:
    """Map a token file into memory; a `UserError` if it is none."""
    try:
        with safe_open(path, "pt") as file:
            arrays = {name: file.get_tensor(name).numpy() for name in ARRAYS}
            tokens = TypeAdapter(SpecialTokens).validate_json(
                (file.metadata() or {}).get("tokens", "{}")
            )
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path}: not a token file ({error}); delete it and run again") from None
    return TokenStore(**arrays, tokens=tokens)


def encode(
    texts: list[str],
    bpe: sentencepiece.SentencePieceProcessor,
    tokens: SpecialTokens = OURS,
    side: str = "source",
) -> tuple[np.ndarray, np.ndarray]:
    """The subword ids of all sentences in a row, int32, and the number of ids of each, int64,
    (len(texts),)."""
    tags = list(tokens.tags(side))
    sentences = [tags + ids for ids in encode_ids(texts, bpe)]
    ids = np.fromiter(chain.from_iterable(sentences), np.int32)
    return tokens.known(ids, side), np.fromiter(map(len, sentences), np.int64, len(texts))


def write_tokens(
    path: Path,
    blocks: Iterable[dict[str, tuple[np.ndarray, np.ndarray]]],
    tokens: SpecialTokens = OURS,
) -> dict[str, np.ndarray]:
    """Write a token file from what `encode` returns for both sides of each block of pairs; returns
    the offsets of both sides."""
    with disk_errors(path), ExitStack() as opened:
        files = {
            side: opened.enter_context(tempfile.TemporaryFile(dir=path.parent)) for side in SIDES
        }
        lengths = {side: [np.zeros(1, np.int64)] for side in SIDES}
        for block in blocks:
            for side, (ids, numbers) in block.items():
                files[side].write(ids.tobytes())
                lengths[side].append(numbers)
        offsets = {side: np.cumsum(np.concatenate(lengths[side])) for side in SIDES}
        arrays = {f"{side}_offsets": offsets[side] for side in SIDES}
        for side, file in files.items():
            file.flush()
            # An empty file cannot be mapped.
            arrays[side] = (
                np.memmap(file, np.int32, "r") if offsets[side][-1] else np.zeros(0, np.int32)
            )
        metadata = {"tokens": json.dumps(asdict(tokens))} if tokens != OURS else None
        with atomic(path) as temporary:
            save_file(arrays, temporary, metadata=metadata)
    return offsets


def cut(lengths: np.ndarray, order: np.ndarray, limit: int) -> list[np.ndarray]:
    """Cut sentences sorted by length into runs whose padded size (number times longest) is at most
    `limit`."""
    pieces, start = [], 0
    while start < len(order):
        # The padded size grows with the end of the run, so bisection finds the last possible end.
        fits = bisect_right(
            range(start + 1, len(order)),
            limit,
            key=lambda end: (end + 1 - start) * int(lengths[end]),
        )
        pieces.append(order[start : start + 1 + fits])
        start += 1 + fits
    return pieces


@command("text", "source-model", "target-model", "output", optional=("special",), settings=Settings)
def main(files: Files, settings: Settings) -> None:
    models = {"source": load_bpe(files.source_model), "target": load_bpe(files.target_model)}
    special = (
        TypeAdapter(SpecialTokens).validate_python(read_json(files.special))
        if files.special
        else OURS
    )
    files.output.parent.mkdir(parents=True, exist_ok=True)

    def encoded(texts: list[str], side: str) -> tuple[np.ndarray, np.ndarray]:
        language = getattr(settings, f"{side}_language")
        return encode(
            apply(texts, language=language, mode=settings.preprocess), models[side], special, side
        )

    blocks = progress(read_blocks(files.text, columns=SIDES), what="tokens", unit="block")
    encoded_blocks = (
        {side: encoded(block[side].to_pylist(), side) for side in SIDES} for block in blocks
    )
    offsets = write_tokens(files.output, encoded_blocks, special)
    source, target = (offsets[side] for side in SIDES)
    log.info(
        "tokens: %d sentences, %d source and %d target subwords",
        len(source) - 1,
        source[-1],
        target[-1],
    )
