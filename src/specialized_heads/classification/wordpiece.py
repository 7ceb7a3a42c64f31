"""WordPiece vocabularies, learned from text or of a published BERT: a JSON file with the tokens in
the order of their ids."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from specialized_heads.corpus.tokens import SpecialTokens, write_tokens
from specialized_heads.stage import optional, read_json, write_json

with optional("models"):
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, trainers
    from tokenizers.models import WordPiece

PAD, UNKNOWN, CLS, SEP, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
BLOCK = 10_000  # inputs that are encoded at a time
RARE = 20  # a character with fewer occurrences is unknown
LEAST = 2  # occurrences of a pair of subwords that is merged


class Cleaning(NamedTuple):
    """What BERT's tokeniser does to text, by the names of transformers; the defaults are those of
    an uncased model."""

    lowercase: bool = True
    strip_accents: bool | None = None  # None: where text is put into lower case
    handle_chinese_chars: bool = True  # each is a word


class Vocabulary(NamedTuple):
    """A tokeniser and its special tokens."""

    tokenizer: Tokenizer
    special: SpecialTokens  # start is [CLS], end of sentence [SEP]
    mask: int
    size: int

    def encode(self, texts: list[str]) -> list[list[int]]:
        """The ids of texts, without special tokens, which text never yields."""
        encoded = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [each.ids for each in encoded]

    def inputs(
        self, first: list[str], second: list[str | None], *, longest: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """[CLS] first [SEP] second, without the last [SEP], which batches add: all ids in a row,
        and the number of ids of each.

        Inputs longer than `longest`, both [SEP] included, are cut.
        """
        encoded = self.encode(first), self.encode([text or "" for text in second])
        rows = []
        for left, right, other in zip(*encoded, second, strict=True):
            left, right = cut(left, right, longest - (2 if other is None else 3))
            more = [] if other is None else [self.special.eos, *right]
            rows.append([self.special.start, *left, *more])
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return np.fromiter(chain.from_iterable(rows), np.int32), lengths


def cut(first: list[int], second: list[int], room: int) -> tuple[list[int], list[int]]:
    """Both segments without their ends, such that together they have at most `room` ids: the longer
    one is cut first."""
    kept = min(len(second), max(room // 2, room - len(first)))  # of the second
    return first[: room - kept], second[:kept]


def tokenizer_of(tokens: list[str], cleaning: Cleaning) -> Tokenizer:
    """BERT's tokeniser with these tokens."""
    model = WordPiece({token: number for number, token in enumerate(tokens)}, unk_token=UNKNOWN)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(**cleaning._asdict())
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def learn(texts: Iterable[str], *, size: int) -> list[str]:
    """Learn at most `size` tokens from text in lower case, without its rare characters; equal text
    gives equal tokens."""
    tokenizer = tokenizer_of(list(SPECIAL), Cleaning())
    normalised = [tokenizer.normalizer.normalize_str(text) for text in texts]
    counts = Counter(chain.from_iterable(normalised))
    rare = {ord(letter): " " for letter, number in counts.items() if number < RARE}
    # The trainer numbers the letters inside words in the order of a hash table, unless they have
    # numbers already.
    letters = [letter for letter in sorted(counts) if counts[letter] >= RARE and letter.isalnum()]
    inside = [f"##{letter}" for letter in letters]
    options = {"special_tokens": [*SPECIAL, *inside], "show_progress": False}
    trainer = trainers.WordPieceTrainer(vocab_size=size, min_frequency=LEAST, **options)
    tokenizer.train_from_iterator((text.translate(rare) for text in normalised), trainer)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def write_inputs(
    path: Path,
    vocabulary: Vocabulary,
    first: list[str],
    second: list[str | None],
    labels: list[int] | None = None,
    *,
    longest: int,
) -> None:
    """Write the inputs of a model as a token file, block by block; labels, if there are any, are
    its target side."""

    def blocks() -> Iterator[dict[str, tuple[np.ndarray, np.ndarray]]]:
        for start in range(0, len(first), BLOCK):
            part = slice(start, start + BLOCK)
            inputs = vocabulary.inputs(first[part], second[part], longest=longest)
            target = np.asarray([] if labels is None else labels[part], np.int32)
            lengths = np.full(len(inputs[1]), int(labels is not None), np.int64)
            yield {"source": inputs, "target": (target, lengths)}

    write_tokens(path, blocks(), vocabulary.special)


def write_vocabulary(path: Path, tokens: list[str], cleaning: Cleaning) -> None:
    write_json(path, {**cleaning._asdict(), "tokens": tokens})


def read_vocabulary(path: Path) -> Vocabulary:
    stored = read_json(path)
    tokens = stored["tokens"]
    cleaning = Cleaning(*(stored[name] for name in Cleaning._fields))
    ids = {token: number for number, token in enumerate(tokens)}
    special = SpecialTokens(pad=ids[PAD], unknown=ids[UNKNOWN], start=ids[CLS], eos=ids[SEP])
    return Vocabulary(tokenizer_of(tokens, cleaning), special, ids[MASK], len(tokens))
