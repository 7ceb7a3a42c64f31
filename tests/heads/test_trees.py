"""Trees laid over subwords: sentences that fit, and sentences that are left out."""

import pytest
import sentencepiece

from specialized_heads.corpus.bpe import learn
from specialized_heads.corpus.preprocess import apply
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


def test_words_meet_the_pieces_of_preprocessed_text() -> None:
    """Words are those of the raw sentence; a sentence that is another one after preprocessing is left out."""
    texts = ["Ms. Bell's dogs don't bark.", "Dogs bark.", "DOTMULTI dogs bark."]
    forms = [["Ms.", "Bell", "'s", "dogs", "do", "n't", "bark", "."], ["Dogs", "bark", "."], ["dogs", "bark", "."]]
    trees = {}
    for number, words in enumerate(forms):
        after, trees[number] = 0, []
        for form in words:
            start = texts[number].index(form, after)
            after = start + len(form)
            trees[number].append(Word(form, start, after, 0, "root", "X"))
    processed = apply(texts, language="en", mode="paper")
    bpe = sentencepiece.SentencePieceProcessor(model_proto=learn(processed, size=40, name="source"))
    sentences, _ = align(trees, texts, bpe, ["nsubj"], processed=processed)
    assert set(sentences) == {0, 1}
    pieces = bpe.encode(processed[0], out_type=str)
    words = [[pieces[p].strip("▁") for p in word] for word in sentences[0].words]
    # Moses cuts "don't" as "don 't", and BPE keeps "don": a piece of both words, two letters of the first, one of the second.
    joined = [*map("".join, words)]
    assert joined[:4] + joined[6:] == ["ms.", "bell", "'s", "dogs", "bark", "."]
    assert words[4:6] == [["don"], ["don", "'", "t"]]
    assert sentences[0].shares[4] == [pytest.approx(2 / 3)]
    assert sentences[0].shares[5] == [pytest.approx(1 / 3), 1.0, 1.0]
    assert all(share == 1.0 for word in (*range(4), 6, 7) for share in sentences[0].shares[word])


def test_words_with_the_same_pieces_are_not_divided_from_each_other() -> None:
    spans = [(1, 0, 2), (2, 2, 6)]  # du|pain: "de" and "le" are both the first piece
    words = [(0, 2), (0, 2), (2, 6)]
    assert piece_shares(words, spans, [[0], [0], [1]]) == [[1.0], [1.0], [1.0]]
    spans = [(1, 0, 3), (2, 3, 6)]  # dup|ain: four letters of "de" and "le", one of "pain"
    assert piece_shares(words, spans, [[0], [0], [0, 1]]) == [[4 / 5], [4 / 5], [1 / 5, 1.0]]
