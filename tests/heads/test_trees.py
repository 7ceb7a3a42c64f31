"""Trees laid over subwords: sentences that fit, and sentences that are left out."""

import sentencepiece

from specialized_heads.corpus.bpe import learn
from specialized_heads.corpus.preprocess import apply
from specialized_heads.heads.trees import align
from specialized_heads.parsing.relations import Arc
from specialized_heads.parsing.words import Word


def test_words_have_the_pieces_of_their_letters() -> None:
    text = "dogs bark loudly"
    bpe = sentencepiece.SentencePieceProcessor(model_proto=learn([text], size=18, name="source"))
    tree = [
        Word("dogs", 0, 4, 2, "nsubj", "X"),
        Word("bark", 5, 9, 0, "root", "X"),
        Word("loudly", 10, 16, 2, "advmod", "X"),
    ]
    sentences, aligned = align({3: tree}, ["", "", "", text], bpe, ["nsubj"])
    assert aligned == {3: tree}
    assert sentences[3].arcs == [Arc("nsubj", 1, 0)]
    pieces = bpe.encode(text, out_type=str)
    assert ["".join(pieces[p] for p in word).strip("▁") for word in sentences[3].words] == ["dogs", "bark", "loudly"]


def test_a_sentence_with_a_word_without_pieces_is_left_out() -> None:
    texts = ["dogs bark", "dogs bark"]
    bpe = sentencepiece.SentencePieceProcessor(model_proto=learn(texts, size=15, name="source"))
    tree = [Word("dogs", 0, 4, 2, "nsubj", "X"), Word("bark", 5, 9, 0, "root", "X")]
    sentences, aligned = align({0: tree, 1: [*tree, Word("ghost", 990, 995, 1, "dep", "X")]}, texts, bpe, ["nsubj"])
    assert sentences.keys() == aligned.keys() == {0}


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
    sentences, aligned = align(trees, texts, bpe, ["nsubj"], processed=processed)
    assert set(sentences) == set(aligned) == {0, 1}
    assert aligned[0] == trees[0]
    pieces = bpe.encode(processed[0], out_type=str)
    words = ["".join(pieces[p] for p in word).replace("▁", " ").strip() for word in sentences[0].words]
    # Moses cuts "don't" as "don 't": its first piece or pieces belong to both words that it overlaps.
    assert words[:4] + words[6:] == ["ms.", "bell", "'s", "dogs", "bark", "."]
    assert words[4].startswith("do") and words[5].endswith("'t")
    assert sum(map(len, sentences[0].words)) >= len(set(sum(sentences[0].words, [])))
