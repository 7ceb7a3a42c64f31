"""Stages: byte-pair-encoding vocabularies, one per language (`bpe`, appendix B.1), and one split as
token ids (`main`).

Vocabularies are learned on the training set alone, preprocessed as `vocabulary.preprocess` in the
configuration says. SentencePiece does not normalise the text (`identity`, white space kept),
because heads are compared with words: the pieces of a sentence, joined, are U+2581 and the sentence
with each space written as U+2581, so the piece of a character follows from lengths alone. Ids: 0
padding, 1 unknown, 2 begin, 3 end of sentence; an imported model has others (`SpecialTokens`).

A safetensors file holds `source` and `target` (int32, the ids of all sentences one after the other,
without begin and end of sentence) and `source_offsets` and `target_offsets` (int64, n + 1
positions; sentence i is offsets[i] to offsets[i + 1]). Its metadata hold the special tokens of an
imported model. Text is encoded block by block and ids are mapped from disk, so neither the
sentences nor the ids of a corpus of millions are held in memory. Files are opened as PyTorch
tensors: safetensors maps those, but copies NumPy arrays.
"""

import io
import json
import re
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Annotated

import numpy as np
import sentencepiece
from pydantic import ConfigDict, Field, TypeAdapter
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from specialized_heads import stage
from specialized_heads.corpus.pairs import SIDES, read_blocks, select
from specialized_heads.corpus.preprocess import Mode, apply
from specialized_heads.experiment.sections import Vocabulary
from specialized_heads.stage import UserError

PAD, UNKNOWN, BOS, EOS = range(4)
# Of a dataclass that is validated when it is read from a file.
STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
Id = Annotated[int, Field(ge=0)]
# The rarest characters are unknown: foreign scripts and symbols would take vocabulary from words.
COVERAGE = 0.99999
# More sentences change a vocabulary little and cost memory. The draw is the same for all seeds.
SAMPLE = 1_000_000
SAMPLE_SEED = 1
# SentencePiece silently drops sentences beyond 4192 bytes by default; this is the largest limit
# that it accepts.
LONGEST = 1 << 30
RESERVED = "\u2585"  # SentencePiece silently leaves out sentences that have this character
ARRAYS = ("source", "source_offsets", "target", "target_offsets")
# What SentencePiece says of a size that does not fit, and what we say.
WRONG_SIZE = {
    r"too high \(\d+\)\. Please set it to a value <= (\d+)": "more than the {} training sentences "
    "support; set at most",
    r"smaller than required_chars\. \d+ vs (\d+)": "less than the alphabet of the training text; "
    "set at least",
}


@dataclass(frozen=True)
class SpecialTokens:
    """Ids of a model's special tokens, the same on both sides."""

    __pydantic_config__ = STRICT

    pad: Id = PAD
    unknown: Id = UNKNOWN
    start: Id = BOS  # the decoder's first input
    eos: Id = EOS
    source_tags: tuple[Id, ...] = ()  # before every source sentence, such as a language
    target_tags: tuple[Id, ...] = ()  # what every translation begins with
    # Numbers of embeddings if the tokeniser has pieces beyond them, which are unknown; else 0.
    source_size: Id = 0
    target_size: Id = 0

    def tags(self, side: str) -> tuple[int, ...]:
        """The tags before the pieces of a sentence; side: source or target."""
        return self.source_tags if side == "source" else self.target_tags

    def known(self, ids: np.ndarray, side: str) -> np.ndarray:
        """Ids from a tokeniser; ids without an embedding become that of the unknown token."""
        size = self.source_size if side == "source" else self.target_size
        return np.where(ids < size, ids, np.int32(self.unknown)) if size else ids


OURS = SpecialTokens()  # of vocabularies made here


class BpeSettings(stage.Section):
    vocabulary: Vocabulary
    source_language: str
    target_language: str


def sample(path: Path, column: str) -> Iterator[list[str]]:
    """The sentences of one side of a file, block by block; of more than a million, a random sample
    in their order."""
    rows = sum(block.num_rows for block in read_blocks(path, columns=[column]))
    chosen = np.arange(rows)
    if rows > SAMPLE:
        chosen = np.sort(np.random.default_rng(SAMPLE_SEED).choice(rows, SAMPLE, replace=False))
    for block in select(path, chosen, columns=[column]):
        yield block[column].to_pylist()


def learn(texts: Iterable[str], *, size: int, name: str) -> bytes:
    """Learn a BPE model from texts, which are read once; equal texts give equal bytes.

    `size` includes the four special ids. A `UserError`, which names its key, if the text does not
    support it.
    """
    model, numbers = io.BytesIO(), count()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(text.replace(RESERVED, " ") for text, _ in zip(texts, numbers)),
            model_writer=model,
            model_type="bpe",
            vocab_size=size,
            character_coverage=COVERAGE,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            max_sentence_length=LONGEST,
            pad_id=PAD,
            unk_id=UNKNOWN,
            bos_id=BOS,
            eos_id=EOS,
            num_threads=1,  # so that the result depends only on the text
            minloglevel=2,
        )
    except RuntimeError as error:
        for pattern, what in WRONG_SIZE.items():
            if found := re.search(pattern, str(error)):
                what = what.format(next(numbers))
                raise UserError(f"vocabulary.{name}: {size} is {what} {found[1]}") from None
        raise UserError(
            f"vocabulary.{name}: no vocabulary can be learned from this text "
            f"({stage.one_line(error)})"
        ) from None
    # The limit must not affect the bytes of the model.
    learned = ModelProto.FromString(model.getvalue())
    learned.trainer_spec.ClearField("max_sentence_length")
    return learned.SerializeToString()


def load_bpe(path: Path) -> sentencepiece.SentencePieceProcessor:
    """Load a SentencePiece model; a `UserError` if there is none."""
    try:
        return sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError):
        raise UserError(
            f"{path}: missing, or not a SentencePiece model; delete it and run again"
        ) from None


def encode_ids(texts: list[str], bpe: sentencepiece.SentencePieceProcessor) -> list[list[int]]:
    """The ids of each text.

    A run of unknown characters has an id if it is a piece that SentencePiece does not use: an
    imported model may know it from its other side.
    """
    rows = bpe.encode(texts, out_type=int, num_threads=1)
    for number, text in enumerate(texts):
        if bpe.unk_id() in rows[number]:
            ids = [bpe.piece_to_id(piece) for piece in bpe.encode(text, out_type=str)]
            rows[number] = [bpe.unk_id() if bpe.is_control(token) else token for token in ids]
    return rows


@stage.command("train", "source-model", "target-model", settings=BpeSettings)
def bpe(files: stage.Files, settings: BpeSettings) -> None:
    mode = settings.vocabulary.preprocess
    for side in SIDES:
        size, language = getattr(settings.vocabulary, side), getattr(settings, f"{side}_language")
        texts = (apply(block, language=language, mode=mode) for block in sample(files.train, side))
        model = learn(chain.from_iterable(texts), size=size, name=side)
        stage.write_file(getattr(files, f"{side}_model"), model)
        stage.log.info("bpe: %s, %d subwords", side, size)


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
        return self.source[self.source_offsets[sentence] : self.source_offsets[sentence + 1]]

    def target_ids(self, sentence: int) -> np.ndarray:
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
        return np.diff(self.source_offsets)

    @property
    def target_lengths(self) -> np.ndarray:
        return np.diff(self.target_offsets)


def load_tokens(path: Path) -> TokenStore:
    """Map a token file into memory; a `UserError` if it is none."""
    try:
        with safe_open(path, "pt") as file:
            arrays = {name: file.get_tensor(name).numpy() for name in ARRAYS}
            special = (file.metadata() or {}).get("tokens", "{}")
            tokens = TypeAdapter(SpecialTokens).validate_json(special)
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
    with stage.disk_errors(path), ExitStack() as opened:
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
            full = offsets[side][-1]  # an empty file cannot be mapped
            arrays[side] = np.memmap(file, np.int32, "r") if full else np.zeros(0, np.int32)
        metadata = {"tokens": json.dumps(asdict(tokens))} if tokens != OURS else None
        with stage.atomic(path) as temporary:
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


class Settings(stage.Section):
    preprocess: Mode
    source_language: str
    target_language: str


@stage.command(
    "text", "source-model", "target-model", "output", optional=("special",), settings=Settings
)
def main(files: stage.Files, settings: Settings) -> None:
    models = {side: load_bpe(getattr(files, f"{side}_model")) for side in SIDES}
    given = stage.read_json(files.special) if files.special else {}
    special = TypeAdapter(SpecialTokens).validate_python(given)
    files.output.parent.mkdir(parents=True, exist_ok=True)

    def encoded(texts: list[str], side: str) -> tuple[np.ndarray, np.ndarray]:
        language = getattr(settings, f"{side}_language")
        texts = apply(texts, language=language, mode=settings.preprocess)
        return encode(texts, models[side], special, side)

    blocks = stage.progress(read_blocks(files.text, columns=SIDES), what="tokens", unit="block")
    encoded_blocks = (
        {side: encoded(block[side].to_pylist(), side) for side in SIDES} for block in blocks
    )
    offsets = write_tokens(files.output, encoded_blocks, special)
    source, target = (offsets[side] for side in SIDES)
    said = "tokens: %d sentences, %d source and %d target subwords"
    stage.log.info(said, len(source) - 1, source[-1], target[-1])
