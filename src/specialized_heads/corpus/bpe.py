"""Stage bpe: byte-pair-encoding vocabularies, one per language (appendix B.1), learned on the
training set alone.

The text is preprocessed as `vocabulary.preprocess` in the configuration says. SentencePiece does
not normalise it (`identity`, white space kept), because heads are compared with words: the pieces
of a sentence, joined, are U+2581 and the sentence with each space written as U+2581, so the piece
of a character follows from lengths alone. Ids: 0 padding, 1 unknown, 2 begin, 3 end of sentence; an
imported model has others (`SpecialTokens`).
"""

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Annotated

import numpy as np
import sentencepiece
from pydantic import ConfigDict, Field
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from specialized_heads.corpus.pairs import SIDES, read_blocks, select
from specialized_heads.corpus.preprocess import apply
from specialized_heads.experiment.sections import Vocabulary
from specialized_heads.stage import Files, Section, UserError, command, log, one_line, write_file

PAD, UNKNOWN, BOS, EOS = range(4)
# of a dataclass that is validated when it is read from a file
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
    # Numbers of embeddings where the tokeniser has pieces beyond them, which are unknown; 0: it has
    # none.
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


class Settings(Section):
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
            f"vocabulary.{name}: no vocabulary can be learned from this text ({one_line(error)})"
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


@command("train", "source-model", "target-model", settings=Settings)
def main(files: Files, settings: Settings) -> None:
    mode = settings.vocabulary.preprocess
    for side in SIDES:
        size, language = getattr(settings.vocabulary, side), getattr(settings, f"{side}_language")
        texts = (apply(block, language=language, mode=mode) for block in sample(files.train, side))
        model = learn(chain.from_iterable(texts), size=size, name=side)
        write_file(getattr(files, f"{side}_model"), model)
        log.info("bpe: %s, %d subwords", side, size)
