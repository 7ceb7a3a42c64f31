"""all-MiniLM-L6-v2, the pretrained encoder of config/minilm.yaml, beside transformers."""

from pathlib import Path

import pytest
import torch

from specialized_heads.classification.sentences import read_sentences
from specialized_heads.corpus.wordpiece import read_vocabulary as wordpiece_vocabulary
from specialized_heads.corpus.wordpiece import write_vocabulary
from specialized_heads.exchange.bert import load_bert, read_vocabulary

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "data/minilm"


@pytest.mark.skipif(not FOLDER.is_dir(), reason="needs data/minilm: python resources/fetch_minilm.py")
def test_states_and_token_ids_are_those_of_transformers(tmp_path: Path) -> None:
    write_vocabulary(tmp_path / "vocabulary.json", *read_vocabulary(FOLDER))
    vocabulary = wordpiece_vocabulary(tmp_path / "vocabulary.json")
    ours = load_bert(FOLDER, vocabulary=vocabulary)
    theirs = transformers.BertModel.from_pretrained(FOLDER).eval()
    tokeniser = transformers.BertTokenizer.from_pretrained(FOLDER)
    sentences = read_sentences([ROOT / "resources/tatoeba_en_de/corpus.parquet"])["test"][:50]
    assert len(sentences) == 50
    for text, found in zip(sentences, vocabulary.encode(sentences), strict=True):
        ids = tokeniser(text)["input_ids"]
        assert [vocabulary.special.start, *found, vocabulary.special.eos] == ids
        with torch.inference_mode():
            states, expected = ours(torch.tensor([ids])), theirs(torch.tensor([ids])).last_hidden_state
        torch.testing.assert_close(states, expected, rtol=0, atol=1e-5)
