"""Subwords, words and trees meet by character offsets: in any script, with any white space, for
characters no model knows.

Also where the text was preprocessed before it was cut into subwords.
"""

import pytest
from sentencepiece import SentencePieceProcessor

from specialized_heads.corpus.preprocess import apply
from specialized_heads.corpus.tokens import UNKNOWN, learn
from specialized_heads.heads import syntactic as alignment
from specialized_heads.heads.syntactic import align, piece_shares
from specialized_heads.parsing.relations import Arc
from specialized_heads.parsing.words import Word

TRAINING = [
    "The cat sat on the mat, and 2019 cats had fine gloves.",
    "Я не знаю, что делать — правда?",
    "Кто-нибудь видел 15 кошек в 1812 году?",
    "L'homme n'est pas là; ça va.",
    "I don't know, it's a well-known e-mail.",
] * 20
SPACE = "▁"  # SentencePiece's mark for a space

TEXTS = ["The cat sat.", "Я не знаю, что делать.", " Я  не   знаю ", "…Что?!", "x", ""]
TEXTS += ["I don't know, it's a well-known e-mail.", "2019 cats,15 кошек"]
TEXTS += ["a\u00a0cat\u2009sat", "cat 😀😀 кошка 漢字 ☃cat"]


@pytest.fixture(scope="module")
def model() -> SentencePieceProcessor:
    return SentencePieceProcessor(model_proto=learn(TRAINING, size=150, name="source"))


def covered(spans: list[tuple[int, int, int]], text: str) -> set[int]:
    """The characters under the pieces, which must be in order."""
    for (_, start, end), (_, following, _) in zip(spans, [*spans[1:], (0, len(text), 0)]):
        assert 0 <= start <= end <= len(text) and start <= following
    return {i for _, start, end in spans for i in range(start, end)}


@pytest.mark.parametrize("text", TEXTS)
def test_spans_are_in_order_and_cover_every_letter_and_no_space(model, text: str) -> None:
    spans = alignment.piece_spans(model, text)
    assert [identity for identity, _, _ in spans] == model.encode(text)
    assert covered(spans, text) == {i for i, letter in enumerate(text) if not letter.isspace()}
    for identity, start, end in spans:
        assert identity == UNKNOWN or text[start:end] == model.id_to_piece(identity).strip(SPACE)


@pytest.mark.parametrize(
    ("words", "spans", "pieces"),
    [
        # "I don't": I | ▁don't
        ([(0, 1), (2, 4), (4, 7)], [(5, 0, 1), (6, 2, 7)], [[0], [1], [1]]),
        # "du", which is "de" and "le"
        ([(0, 2), (0, 2), (3, 6)], [(5, 0, 2), (7, 3, 6)], [[0], [0], [1]]),
        ([(0, 2), (3, 5)], [(5, 0, 2)], [[0], []]),  # a word without pieces
        # touching, not overlapping
        ([(0, 4), (4, 5), (5, 10)], [(1, 0, 4), (2, 4, 5), (3, 5, 10)], [[0], [1], [2]]),
    ],
)
def test_a_piece_belongs_to_every_word_that_it_overlaps(words, spans, pieces) -> None:
    assert alignment.words_to_pieces(words, spans) == pieces


def test_white_space_inside_of_a_word_is_a_piece_of_it() -> None:
    """Some treebanks have words of several parts ("New York"); a piece may then be the space
    between them."""
    spans = [(5, 0, 3), (6, 3, 3), (7, 4, 8)]
    assert alignment.words_to_pieces([(0, 8)], spans) == [[0, 1, 2]]
    assert piece_shares([(0, 8)], spans, [[0, 1, 2]]) == [[1.0, 1.0, 1.0]]


# Language, raw sentence, and its words as a treebank would have them.
HARD = {
    "apostrophes": ("en", "I don't know Bell's dogs'.", "I do n't know Bell 's dogs ' ."),
    "French apostrophes": ("fr", "L'homme n'est pas là.", "L' homme n' est pas là ."),
    "a letter that becomes two": ("en", "In İzmir, İİ!", "In İzmir , İİ !"),
    "sigma at the end of a token": ("el", "ΟΔΥΣΣΕΥΣ'ΟΔΟΣ ΣΣ", "ΟΔΥΣΣΕΥΣ ' ΟΔΟΣ ΣΣ"),
    "ligatures and ß": ("de", "STRAẞE ﬁne Ǆ Ⅷ ½", "STRAẞE ﬁne Ǆ Ⅷ ½"),
    "decomposed letters": ("fr", "Voila\u0300 l'e\u0301.", "Voila\u0300 l' e\u0301 ."),
    "dots": ("en", "Wait...what.. no....", "Wait ... what .. no ...."),
    "quotes": ("en", "\"Go,\" he said: 'On.'", "\" Go , \" he said : ' On . '"),
    "curly quotes": ("en", "“It’s” «so» „low‟", "“ It ’s ” « so » „ low ‟"),
    "numbers": ("en", "In 1999,2000 1,000,000.50 (a,b)", "In 1999,2000 1,000,000.50 ( a , b )"),
    "XML": ("en", "a&b <i>x</i> [y] | &amp;", "a & b < i > x < /i > [ y ] | & amp ;"),
    "odd spaces": ("en", " One\u00a0two\u2009 three\u2028four ", "One two three four"),
    "characters no model knows": ("en", "cat 😀😀漢字 ☃", "cat 😀😀 漢字 ☃"),
    "abbreviations": ("en", "Mr. J. Smith et al. went.", "Mr. J. Smith et al. went ."),
}


@pytest.mark.parametrize("case", HARD)
def test_pieces_of_preprocessed_text_lead_to_the_raw_words(model, case: str) -> None:
    language, raw, words = HARD[case]
    [processed] = apply([raw], language=language, mode="paper")
    assert processed != raw
    spans = alignment.raw_piece_spans(model, processed, raw)
    assert [identity for identity, _, _ in spans] == model.encode(processed)
    assert covered(spans, raw) >= {i for i, letter in enumerate(raw) if not letter.isspace()}

    placed = [(0, 0)]
    for word in words.split():  # in this order
        start = raw.index(word, placed[-1][1])
        placed.append((start, start + len(word)))
    del placed[0]
    for (start, end), pieces in zip(placed, alignment.words_to_pieces(placed, spans), strict=True):
        first, last = spans[pieces[0]], spans[pieces[-1]]
        # from its first letter to its last
        assert first[1] <= start < first[2] and last[1] < end <= last[2]
        assert pieces == list(range(pieces[0], pieces[-1] + 1))
        known = [spans[piece][0] for piece in pieces]
        if UNKNOWN not in known:
            spelled = "".join(model.id_to_piece(identity) for identity in known).replace(SPACE, "")
            assert raw[start:end].lower().replace("ς", "σ") in spelled.replace("ς", "σ")


@pytest.mark.parametrize(
    ("processed", "raw"),
    [
        ("a dog", "a cat"),
        ("a ca", "a cat"),
        ("a cats", "a cat"),
        ("&amp;", "&"),
        ("ab @-@ c", "ab-c"),
    ],
)
def test_another_text_is_not_aligned_by_guessing(model, processed: str, raw: str) -> None:
    assert alignment.raw_piece_spans(model, processed, raw) is None


def tree(*words: tuple[str, int, int]) -> list[Word]:
    """Words from (form, start, end), all but the first below the first."""
    return [Word(*word, min(n, 1), "dep" if n else "root", "X") for n, word in enumerate(words)]


# Trees laid over subwords: sentences that fit, and sentences that are left out.


def test_a_sentence_with_a_word_without_pieces_is_left_out() -> None:
    texts = ["dogs bark", "dogs bark"]
    bpe = SentencePieceProcessor(model_proto=learn(texts, size=15, name="source"))
    whole = tree(("dogs", 0, 4), ("bark", 5, 9))
    ghost = tree(("dogs", 0, 4), ("bark", 5, 9), ("ghost", 990, 995))
    assert align({0: whole, 1: ghost}, texts, bpe, ["nsubj"])[0].keys() == {0}


def test_an_arc_between_words_with_the_same_pieces_is_left_out() -> None:
    """A head that looks at itself would find the object of Spanish "verlo" (to see it)."""
    text = "quiero verlo ahora"
    bpe = SentencePieceProcessor(model_proto=learn([text], size=20, name="source"))
    words = [Word("quiero", 0, 6, 0, "root", "X"), Word("ver", 7, 12, 1, "xcomp", "X")]
    words += [Word("lo", 7, 12, 2, "obj", "X"), Word("ahora", 13, 18, 2, "advmod", "X")]
    sentences, left_out = align({0: words}, [text], bpe, ["obj", "advmod"])
    assert sentences[0].words[1] == sentences[0].words[2]
    assert sentences[0].arcs == [Arc("advmod", 1, 3)]
    assert left_out == {"obj": 1}


def test_words_with_the_same_pieces_are_not_divided_from_each_other() -> None:
    spans = [(1, 0, 2), (2, 2, 6)]  # du|pain: "de" and "le" are both the first piece
    words = [(0, 2), (0, 2), (2, 6)]
    assert piece_shares(words, spans, [[0], [0], [1]]) == [[1.0], [1.0], [1.0]]
    spans = [(1, 0, 3), (2, 3, 6)]  # dup|ain: two letters of "de" and "le", one of "pain"
    assert piece_shares(words, spans, [[0], [0], [0, 1]]) == [[2 / 3], [2 / 3], [1 / 3, 1.0]]
