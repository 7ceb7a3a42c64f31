"""An experiment on lower-case Moses tokens, as the paper's: from raw text to scores and heads."""

import pandas as pd
import sentencepiece

from specialized_heads.stage import read_json

CORPUS = "tatoeba_en_fr"


def test_the_text_of_the_paper_from_corpus_to_scores_and_heads(project) -> None:
    values = project.settings()
    corpus = values["corpora"][CORPUS]
    corpus["filters"]["max_words"] = 4
    corpus["split"] = {"dev": 50, "test": 100, "analysis": 200}
    values |= {"corpora": {CORPUS: corpus}, "vocabulary": {"source": 500, "target": 500, "preprocess": "paper"}}
    values["pruning"] |= {"encoder": [], "all": [], "retrain": []}
    targets = ["data/models.parquet", f"{CORPUS}/heads/baseline/seed1.parquet"]
    run = project.configured(values).run(*(f"results/smoke/{target}" for target in targets))
    assert run.status == 0, run.printed[-5000:]

    folder = project.file(CORPUS)
    bpe = sentencepiece.SentencePieceProcessor(model_file=str(folder / "corpus/bpe.target.model"))
    pieces = [bpe.id_to_piece(piece) for piece in range(4, bpe.get_piece_size())]
    assert [piece for piece in pieces if piece != piece.lower()] == []
    assert "▁." in pieces  # a token of its own, as in no raw sentence

    # Words of raw, cased text meet pieces of lower-case tokens.
    report = read_json(folder / "heads/baseline/seed1.json")
    assert report["aligned"] == report["parsed"] > 150
    heads = pd.read_parquet(folder / "heads/baseline/seed1.parquet")
    assert heads.loc[heads["type"] == "encoder", "nsubj_head_to_dependent"].notna().all()

    [score] = pd.read_parquet(project.file("data/models.parquet")).to_dict("records")
    assert "case:lc" in score["signature"] and "tok:13a" in score["signature"]
    assert "tok:none" in score["signature_tokenised"] and "moses.fr" in score["signature_tokenised"]
    seed = folder / "models/baseline/seed1"
    text, tokens = (
        (seed / name).read_text(encoding="utf-8") for name in ("translation.txt", "translation.tokenised.txt")
    )
    assert text == text.lower() and text.count("\n") == tokens.count("\n") == 100
    assert " ." in tokens and " ." not in text
