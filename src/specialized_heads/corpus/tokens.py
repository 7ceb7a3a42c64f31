"""Stage tokens: one split as token ids, flat and with offsets, so that training maps the file and reads only what it needs.

A safetensors file holds `source` and `target` (int32, the ids of all sentences one after the other, without begin and end
of sentence) and `source_offsets` and `target_offsets` (int64, n + 1 positions; sentence i is offsets[i] to offsets[i + 1]).
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sentencepiece
from safetensors.numpy import save_file

from specialized_heads.corpus.bpe import load_bpe
from specialized_heads.corpus.pairs import read_pairs
from specialized_heads.stage import UserError, arguments, atomic, log, progress, run

BLOCK = 50_000  # sentences turned into ids at a time; bounds memory on corpora of millions
DTYPES = {"source": "<i4", "source_offsets": "<i8", "target": "<i4", "target_offsets": "<i8"}


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
        UserError: no such file, or not a token file.
    """
    # safetensors' own reader copies every tensor into memory; its format is a header length, a JSON header, and raw arrays.
    try:
        with open(path, "rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(size))
        arrays = {}
        for name, dtype in DTYPES.items():
            begin, end = header[name]["data_offsets"]
            offset, length = 8 + size + begin, (end - begin) // np.dtype(dtype).itemsize
            arrays[name] = np.memmap(path, dtype, "r", offset=offset, shape=(length,))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (ValueError, KeyError, OverflowError, MemoryError) as error:
        raise UserError(f"{path}: not a token file ({error})") from None
    return TokenStore(**arrays)


def encode(texts: list[str], bpe: sentencepiece.SentencePieceProcessor) -> tuple[np.ndarray, np.ndarray]:
    """Turn sentences into subword ids.

    Returns:
        int32 ids of all sentences in a row, and int64 offsets, (len(texts) + 1,).
    """
    ids, lengths = [], [0]
    for start in progress(range(0, len(texts), BLOCK), what="tokens", unit="block"):
        block = bpe.encode(texts[start : start + BLOCK], out_type=int, num_threads=1)
        ids.append(np.fromiter((token for sentence in block for token in sentence), np.int32))
        lengths.extend(map(len, block))
    return np.concatenate(ids), np.cumsum(lengths, dtype=np.int64)


def main() -> None:
    """Read `--text` (one split) and the two models; write `--output`."""
    files = arguments(__doc__, files=["text", "source-model", "target-model", "output"])
    pairs = read_pairs(files.text)
    source, source_offsets = encode(pairs.source, load_bpe(files.source_model))
    target, target_offsets = encode(pairs.target, load_bpe(files.target_model))
    tensors = {
        "source": source,
        "source_offsets": source_offsets,
        "target": target,
        "target_offsets": target_offsets,
    }
    with atomic(files.output) as temporary:
        save_file(tensors, temporary)
    log.info("tokens: %d sentences, %d source and %d target subwords", len(pairs), len(source), len(target))


if __name__ == "__main__":
    run(main)
