"""The translation stage: one line per sentence in the order of the set, whatever the batches, as
text and as tokens."""

from collections.abc import Callable
from pathlib import Path

import pytest
import sentencepiece
from small import WORDS

from specialized_heads.corpus.tokens import learn
from specialized_heads.model import decoding
from specialized_heads.model.checkpoint import load, save

DECODING = {"beam": 3, "max_length_ratio": 2.0}
SETTINGS = {"decoding": DECODING, "preprocess": "none", "language": "en", "device": "cpu"}


@pytest.fixture
def files(token_file, sentences, tiny_model, tmp_path: Path) -> dict[str, Path]:
    files = {name.split(".")[0]: tmp_path / name for name in ("model.safetensors", "bpe.model")}
    files |= {name: tmp_path / f"{name}.txt" for name in ("output", "tokenised")}
    files["bpe"].write_bytes(learn(WORDS, size=60, name="target"))
    save(tiny_model(vocabulary=59), files["model"], training={})
    sources, targets = sentences(30, vocabulary=59)
    sources[4] = []
    return files | {"tokens": token_file("test", sources, targets)}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, call, files: dict[str, Path]) -> Callable[..., tuple]:
    """`told("He's here .", preprocess=...)`: the first line of both files where the model says just
    this."""

    def run(said: str, **settings: str) -> tuple[str, str]:
        monkeypatch.setattr(
            sentencepiece.SentencePieceProcessor, "decode", lambda self, ids: said, raising=True
        )
        call(decoding, settings=SETTINGS | settings, **files)
        return tuple(
            files[name].read_text(encoding="utf-8").split("\n")[0]
            for name in ("output", "tokenised")
        )

    return run


def test_lines_are_in_the_order_of_the_set(call, files: dict[str, Path], sentences) -> None:
    call(decoding, settings=SETTINGS, **files)
    lines = files["output"].read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    assert len(lines) == 30
    model = load(files["model"])
    bpe = sentencepiece.SentencePieceProcessor(model_file=str(files["bpe"]))
    sources, _ = sentences(30, vocabulary=59)
    sources[4] = []
    for line, source in zip(lines, sources, strict=True):
        assert line == bpe.decode(decoding.translate(model, [source], **DECODING)[0])
    assert len(set(lines)) > 10


def test_raw_translations_are_tokenised_as_the_paper_scores_them(told) -> None:
    text, tokens = told('He doesn\'t say "No".')
    assert text == 'He doesn\'t say "No".'
    assert tokens == 'he doesn \'t say " no " .'
    assert told("L'homme.", language="fr") == ("L'homme.", "l' homme .")


def test_tokens_of_the_model_are_scored_as_they_are(told) -> None:
    text, tokens = told("he doesn 't  know  e - mails .", preprocess="paper")
    assert text == "he doesn't know e - mails."
    assert tokens == "he doesn 't know e - mails ."
    # Not the tokens of the detokenised text, which Moses would not split here.
    assert told("mr .", preprocess="paper") == ("mr.", "mr .")
