"""Trees laid over subwords: sentences that fit, and sentences that are left out."""

import sentencepiece

from specialized_heads.corpus.bpe import learn
from specialized_heads.heads.trees import align, piece_shares
from specialized_heads.parsing.relations import Arc
from specialized_heads.parsing.words import Word


def test_a_sentence_with_a_word_without_pieces_is_left_out() -> None:
    texts = ["dogs bark", "dogs bark"]
    bpe = sentencepiece.SentencePieceProcessor(model_proto=learn(texts, size=15, name="source"))
    tree = [Word("dogs", 0, 4, 2, "nsubj", "X"), Word("bark", 5, 9, 0, "root", "X")]
    sentences, _ = align({0: tree, 1: [*tree, Word("ghost", 990, 995, 1, "dep", "X")]}, texts, bpe, ["nsubj"])
    assert sentences.keys() == {0}


def test_an_arc_between_words_with_the_same_pieces_is_left_out() -> None:
    """A head that looks at itself would find the object of Spanish "verlo" (to see it)."""
    text = "quiero verlo ahora"
    bpe = sentencepiece.SentencePieceProcessor(model_proto=learn([text], size=20, name="source"))
    tree = [
        Word("quiero", 0, 6, 0, "root", "X"),
        Word("ver", 7, 12, 1, "xcomp", "X"),
        Word("lo", 7, 12, 2, "obj", "X"),
        Word("ahora", 13, 18, 2, "advmod", "X"),
    ]
    sentences, left_out = align({0: tree}, [text], bpe, ["obj", "advmod"])
    assert sentences[0].words[1] == sentences[0].words[2]
    assert sentences[0].arcs == [Arc("advmod", 1, 3)]
    assert left_out == {"obj": 1}


def test_words_with_the_same_pieces_are_not_divided_from_each_other() -> None:
    spans = [(1, 0, 2), (2, 2, 6)]  # du|pain: "de" and "le" are both the first piece
    words = [(0, 2), (0, 2), (2, 6)]
    assert piece_shares(words, spans, [[0], [0], [1]]) == [[1.0], [1.0], [1.0]]
    spans = [(1, 0, 3), (2, 3, 6)]  # dup|ain: four letters of "de" and "le", one of "pain"
    assert piece_shares(words, spans, [[0], [0], [0, 1]]) == [[4 / 5], [4 / 5], [1 / 5, 1.0]]
