"""Subwords and words meet by character offsets: in any script, with any white space, for characters no model knows."""

import io
import unicodedata

import pytest
import sentencepiece

from specialized_heads.parsing.alignment import SPACE, piece_spans, words_to_pieces

TRAINING = [
    "The cat sat on the mat, and 2019 cats had fine gloves.",
    "Я не знаю, что делать — правда?",
    "Кто-нибудь видел 15 кошек в 1812 году?",
    "L'homme n'est pas là; ça va.",
    "I don't know, it's a well-known e-mail.",
] * 20

TEXTS = [
    "The cat sat.",
    "Я не знаю, что делать.",
    " Я  не   знаю ",
    "I don't know, it's a well-known e-mail.",
    "2019 cats,15 кошек",
    "a\u00a0cat\u2009sat",
    "cat 😀😀 кошка 漢字 ☃cat",
    "…Что?!",
    "x",
]


def train(**options: object) -> sentencepiece.SentencePieceProcessor:
    """A small BPE model; the options differ in how much the text is changed before it is cut."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TRAINING), model_writer=model, model_type="bpe", minloglevel=2, **options
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


# The project's own setting (`corpus/bpe.py`), SentencePiece's default, and bytes for unknown characters.
OPTIONS = {
    "as_is": {"vocab_size": 150, "normalization_rule_name": "identity", "remove_extra_whitespaces": False},
    "nfkc": {"vocab_size": 150, "normalization_rule_name": "nmt_nfkc"},
    "bytes": {"vocab_size": 400, "normalization_rule_name": "identity", "byte_fallback": True},
}


@pytest.fixture(scope="module")
def models() -> dict[str, sentencepiece.SentencePieceProcessor]:
    return {name: train(**options) for name, options in OPTIONS.items()}


def words_at(text: str, *words: str) -> list[tuple[int, int]]:
    """The spans of words that occur in this order."""
    spans, after = [], 0
    for word in words:
        start = text.index(word, after)
        after = start + len(word)
        spans.append((start, after))
    return spans


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("text", TEXTS)
def test_spans_are_in_order_and_cover_every_letter_and_no_space(models, name: str, text: str) -> None:
    spans = piece_spans(models[name], text)
    assert [identity for identity, _, _ in spans] == models[name].encode(text)
    covered = set()
    for (_, start, end), (_, following, _) in zip(spans, [*spans[1:], (0, len(text), 0)]):
        assert 0 <= start <= end <= len(text) and start <= following
        assert text[start:end] == text[start:end].strip()
        covered.update(range(start, end))
    assert covered == {i for i, letter in enumerate(text) if not letter.isspace()}


@pytest.mark.parametrize("text", ["Я не знаю, что делать.", "The cat sat.", " Я  не   знаю "])
def test_a_span_is_the_text_of_its_piece(models, text: str) -> None:
    for identity, start, end in piece_spans(models["as_is"], text):
        piece = models["as_is"].id_to_piece(identity)
        assert text[start:end] == piece.strip(SPACE)


def test_spans_of_cyrillic_words_count_characters_not_bytes(models) -> None:
    text = "Кто-нибудь не знает"
    spans = piece_spans(models["as_is"], text)
    pieces = words_to_pieces([(0, 3), (3, 4), (4, 10), (11, 13), (14, 19)], spans)
    assert ["".join(text[spans[p][1] : spans[p][2]] for p in word) for word in pieces] == [
        "Кто",
        "-",
        "нибудь",
        "не",
        "знает",
    ]


def test_a_lone_space_piece_belongs_to_no_word(models) -> None:
    text = "cat  ☃"
    spans = piece_spans(models["as_is"], text)
    lone = [i for i, (identity, _, _) in enumerate(spans) if models["as_is"].id_to_piece(identity) == SPACE]
    assert lone
    pieces = words_to_pieces(words_at(text, "cat", "☃"), spans)
    assert not set(lone) & {piece for word in pieces for piece in word}
    assert all(pieces)


def test_all_bytes_of_an_unknown_character_belong_to_its_word(models) -> None:
    text = "cat 😀漢 sat"
    pieces = words_to_pieces(words_at(text, "cat", "😀", "漢", "sat"), piece_spans(models["bytes"], text))
    assert len(pieces[1]) == 4 and len(pieces[2]) == 3
    assert not set(pieces[1]) & set(pieces[2])


def test_all_pieces_that_one_character_was_normalised_to_belong_to_its_word(models) -> None:
    text = "cat … ﬁve"
    spans = piece_spans(models["nfkc"], text)
    pieces = words_to_pieces(words_at(text, "cat", "…", "ﬁ", "ve"), spans)
    spelled = ["".join(models["nfkc"].id_to_piece(spans[piece][0]) for piece in word) for word in pieces]
    assert [word.strip(SPACE) for word in spelled] == ["cat", "...", "fi", "ve"]
    assert len(pieces[1]) > 1


def test_decomposed_letters_keep_their_marks(models) -> None:
    text = unicodedata.normalize("NFD", "Кто-нибудь là, ещё")
    spans = piece_spans(models["nfkc"], text)
    assert sorted({i for _, start, end in spans for i in range(start, end)}) == [
        i for i, letter in enumerate(text) if not letter.isspace()
    ]
    words = words_at(text, *(unicodedata.normalize("NFD", word) for word in ("là", "ещё")))
    assert all(words_to_pieces(words, spans))


def test_a_piece_over_two_words_belongs_to_both() -> None:
    # "I don't": I | ▁don't
    assert words_to_pieces([(0, 1), (2, 4), (4, 7)], [(5, 0, 1), (6, 2, 7)]) == [[0], [1], [1]]


def test_words_of_a_multi_word_token_share_its_pieces() -> None:
    # French "du" = "de" + "le", both with the span of the token
    assert words_to_pieces([(0, 2), (0, 2), (3, 6)], [(5, 0, 1), (6, 1, 2), (7, 3, 6)]) == [[0, 1], [0, 1], [2]]


def test_a_word_without_pieces_is_visible_to_the_caller() -> None:
    assert words_to_pieces([(0, 2), (3, 5)], [(5, 0, 2)]) == [[0], []]


def test_touching_is_not_overlapping() -> None:
    assert words_to_pieces([(0, 4), (4, 5), (5, 10)], [(1, 0, 4), (2, 4, 5), (3, 5, 10)]) == [[0], [1], [2]]


def test_an_empty_text_has_no_pieces(models) -> None:
    assert piece_spans(models["as_is"], "") == []
