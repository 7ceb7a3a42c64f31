"""Subwords and words meet by character offsets: in any script, with any white space, for characters no model knows.

Also where the text was preprocessed before it was cut into subwords.
"""

import io
import unicodedata
from pathlib import Path

import pytest
import sentencepiece

from specialized_heads.corpus.preprocess import apply
from specialized_heads.corpus.tokens import encode, load_tokens, write_tokens
from specialized_heads.parsing.alignment import (
    SPACE,
    check_pieces,
    piece_spans,
    raw_characters,
    raw_piece_spans,
    words_to_pieces,
)
from specialized_heads.stage import UserError

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


# Language, raw sentence, and its words as a treebank would have them.
HARD = {
    "apostrophes": ("en", "I don't know Bell's dogs' names.", "I do n't know Bell 's dogs ' names ."),
    "French apostrophes": ("fr", "L'homme n'est pas là.", "L' homme n' est pas là ."),
    "hyphens": ("en", "A well-known e-mail -- yes-no.", "A well - known e-mail -- yes - no ."),
    "a letter that becomes two": ("en", "In İzmir, İİ!", "In İzmir , İİ !"),
    "sigma at the end of a token": ("el", "ΟΔΥΣΣΕΥΣ'ΟΔΟΣ ΣΣ", "ΟΔΥΣΣΕΥΣ ' ΟΔΟΣ ΣΣ"),
    "ligatures and ß": ("de", "STRAẞE ﬁne Ǆ Ⅷ ½", "STRAẞE ﬁne Ǆ Ⅷ ½"),
    "decomposed letters": ("fr", "Voila\u0300 l'e\u0301te\u0301.", "Voila\u0300 l' e\u0301te\u0301 ."),
    "dots": ("en", "Wait...what.. no....", "Wait ... what .. no ...."),
    "an ellipsis": ("ru", "…Что?!", "… Что ?!"),
    "quotes": ("en", "\"Go,\" he said: 'On.'", "\" Go , \" he said : ' On . '"),
    "curly quotes": ("en", "“It’s” «so» „low‟", "“ It ’s ” « so » „ low ‟"),
    "URLs": ("en", "See http://www.x.com/a-b_c?d=1,2&e now", "See http://www.x.com/a-b_c?d=1,2&e now"),
    "numbers": ("en", "In 1999,2000 1,000,000.50 (a,b)", "In 1999,2000 1,000,000.50 ( a , b )"),
    "XML": ("en", "a&b <i>x</i> [y] | &amp;", "a & b < i > x < /i > [ y ] | & amp ;"),
    "odd spaces": ("en", " One\u00a0two\u2009 three\u2028four ", "One two three four"),
    "characters no model knows": ("en", "cat 😀😀漢字 ☃", "cat 😀😀 漢字 ☃"),
    "abbreviations": ("en", "Mr. J. Smith et al. went.", "Mr. J. Smith et al. went ."),
}


@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize("name", ["as_is", "bytes"])
def test_pieces_of_preprocessed_text_lead_to_the_raw_words(models, name: str, case: str) -> None:
    language, raw, words = HARD[case]
    [processed] = apply([raw], language=language, mode="paper")
    assert processed != raw
    spans = raw_piece_spans(models[name], processed, raw)
    assert [identity for identity, _, _ in spans] == models[name].encode(processed)
    for (_, start, end), (_, following, _) in zip(spans, [*spans[1:], (0, len(raw), 0)]):
        assert 0 <= start <= end <= len(raw) and start <= following
    covered = {i for _, start, end in spans for i in range(start, end)}
    assert covered >= {i for i, letter in enumerate(raw) if not letter.isspace()}

    placed = words_at(raw, *words.split())
    for (start, end), pieces in zip(placed, words_to_pieces(placed, spans), strict=True):
        first, last = spans[pieces[0]], spans[pieces[-1]]
        assert first[1] <= start < first[2] and last[1] < end <= last[2]  # from its first letter to its last
        assert pieces == list(range(pieces[0], pieces[-1] + 1))
        known = [spans[piece][0] for piece in pieces]
        if name == "bytes" and not any(models[name].is_byte(identity) for identity in known):
            spelled = "".join(models[name].id_to_piece(identity) for identity in known).replace(SPACE, "")
            assert raw[start:end].lower().replace("ς", "σ") in spelled.replace("ς", "σ")


def test_each_character_of_preprocessed_text_has_its_place() -> None:
    assert raw_characters("i̇ 'ab", "İ'aB") == [0, 0, -1, 1, 2, 3]
    assert raw_characters("", "  ") == []
    assert raw_characters("a b", " A\u00a0 B") == [1, -1, 4]


def test_both_halves_of_a_letter_that_became_two_belong_to_its_word(models) -> None:
    raw = "İ x"
    spans = raw_piece_spans(models["bytes"], "i̇ x", raw)
    word, other = words_to_pieces([(0, 1), (2, 3)], spans)
    assert len(word) >= 2
    assert {spans[piece][1:] for piece in word} == {(0, 1)}
    assert not set(word) & set(other)


@pytest.mark.parametrize(
    ("processed", "raw"),
    [("a cat", "a dog"), ("a ca", "a cat"), ("a cats", "a cat"), ("&amp;", "&"), ("ab @-@ c", "ab-c"), ("tac", "cat")],
)
def test_another_text_is_not_aligned_by_guessing(models, processed: str, raw: str) -> None:
    assert raw_characters(processed, raw) is None
    assert raw_piece_spans(models["as_is"], processed, raw) is None


def test_raw_text_needs_no_lower_case(models) -> None:
    for text in TEXTS:
        assert raw_piece_spans(models["as_is"], text, text) == piece_spans(models["as_is"], text)


def test_tokens_that_another_model_cut_are_told(models, tmp_path: Path) -> None:
    path = tmp_path / "analysis.safetensors"
    side = encode(TEXTS, models["as_is"])
    write_tokens(path, [{"source": side, "target": side}])
    store = load_tokens(path)
    check_pieces(path, store, TEXTS, models["as_is"])
    for texts, name, said in (
        (TEXTS, "bytes", "sentence 0 \\(from 0\\) has other subwords"),
        ([*TEXTS[:4], TEXTS[4].upper(), *TEXTS[5:]], "as_is", "sentence 4 \\(from 0\\) has other subwords"),
        (TEXTS[:-1], "as_is", f"{len(TEXTS)} sentences where the text has {len(TEXTS) - 1}"),
    ):
        with pytest.raises(UserError, match=said):
            check_pieces(path, store, texts, models[name])
