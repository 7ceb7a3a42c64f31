"""The engine's benchmark: its formula against counted operations, the weights that it gives to peers, its report."""

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # `benchmarks` is not installed with the project

from benchmarks.engine import report  # noqa: E402
from benchmarks.engine.workload import Size, end_sentences, training_flops  # noqa: E402
from benchmarks.quality import trainings  # noqa: E402
from benchmarks.quality.systems import System, Training  # noqa: E402
from benchmarks.quality.trainings import Result, Trainings, updates_until  # noqa: E402
from specialized_heads.model.decoding import translate  # noqa: E402
from specialized_heads.model.transformer import Transformer, initialise  # noqa: E402
from specialized_heads.training.batching import make_batch  # noqa: E402
from specialized_heads.training.objective import cross_entropy_sum  # noqa: E402

SIZE = Size("tiny", layers=2, heads=4, width=32, feed_forward=64, vocabulary=60)


@pytest.fixture
def model() -> Transformer:
    model = Transformer(SIZE.architecture, dropout=0.0).eval()
    initialise(model, seed=1)
    return model


@pytest.fixture
def corpus(store: Callable, sentences: Callable) -> object:
    """Sentences of 5 to 30 tokens, sources and targets of about the same length."""
    random = np.random.default_rng(1)
    sources = [random.integers(4, 60, length).tolist() for length in random.integers(5, 31, 200)]
    return store(sources, [source[::-1] for source in sources])


def sources_of(corpus: object, number: int) -> list[list[int]]:
    return [corpus.source_ids(sentence).tolist() for sentence in range(number)]


def search(model: Transformer, sources: list[list[int]]) -> list[list[int]]:
    return translate(model, sources, beam=4, max_length_ratio=2.0)


def test_the_formula_counts_the_operations_of_an_update(model: Transformer, store: Callable) -> None:
    corpus = store([[5, 6, 7, 8, 9, 10, 11]] * 3, [[9, 8, 7, 6]] * 3)  # no padding: the formula does not count it
    counter = FlopCounterMode(display=False)
    with counter:
        cross_entropy_sum(model, make_batch(corpus, np.arange(3)), label_smoothing=0.1).backward()
    assert training_flops(SIZE, np.full(3, 8), np.full(3, 5)) == counter.get_total_flops()


def test_the_random_model_ends_its_sentences_by_itself(model: Transformer, corpus: object) -> None:
    end_sentences(model, corpus, np.arange(200))
    outputs = search(model, sources_of(corpus, 60))
    lengths, references = np.array(list(map(len, outputs))), corpus.target_lengths[:60]
    assert (lengths < 2 * references + 10).all()  # before the limit
    assert 0.5 < lengths.mean() / references.mean() < 1.5


def test_ctranslate2_gets_our_weights_and_makes_our_translations(model: Transformer, corpus: object, tmp_path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    from benchmarks.engine.ctranslate import convert

    end_sentences(model, corpus, np.arange(200))
    convert(model, tmp_path)
    sources = sources_of(corpus, 60)
    results = ctranslate2.Translator(str(tmp_path), intra_threads=1).translate_batch(
        [[f"t{token}" for token in ids] for ids in sources], beam_size=4, min_decoding_length=0
    )
    theirs = [[int(token[1:]) for token in result.hypotheses[0]] for result in results]
    assert theirs == search(model, sources)


def test_joeynmt_gets_our_weights_computes_our_scores_and_gives_the_weights_back(
    tiny_model: Callable, corpus: object
) -> None:
    pytest.importorskip("joeynmt")
    from benchmarks.engine import joey

    size = Size("tiny", layers=2, heads=2, width=8, feed_forward=12, vocabulary=60)
    model = tiny_model(vocabulary=60)
    model.target_embedding = torch.nn.Parameter(model.target_embedding[:60].clone())
    model.output_embedding = torch.nn.Parameter(model.output_embedding[:60].clone())
    model.architecture = size.architecture
    vocabulary = joey.vocabulary_of(60)
    batch = make_batch(corpus, np.arange(20))
    theirs = joey.convert(model, vocabulary, dropout=0.0).eval()
    back = joey.convert_back(theirs, size.architecture).state_dict()
    assert all(torch.equal(tensor, back[name]) for name, tensor in model.state_dict().items())
    real: Tensor = batch.target_out != 0
    with torch.no_grad():
        scores, *_ = theirs._encode_decode(
            src=joey.renumber(batch.source),
            src_length=(batch.source != 0).sum(1),
            src_mask=(batch.source != 0)[:, None],
            trg_input=joey.renumber(batch.target_in),
            trg_mask=real[:, None],
        )
        ours = model.logits(model(batch.source, batch.target_in))
    torch.testing.assert_close(scores[..., joey.renumber(torch.arange(60))][real], ours[real], atol=1e-4, rtol=1e-4)


def test_the_report_gives_medians_and_the_share_of_the_best_rate(tmp_path: Path) -> None:
    rows = [
        {"part": "ceiling", "size": "d128", "precision": "bf16", "threads": 1, "product": kind, "rate": rate}
        for kind, rate in [*((kind, 7e9) for kind in report.ceiling.products(report.SIZES["d128"])), ("all", 8e9)]
    ]
    for number, seconds in enumerate((2.0, 1.0, 4.0)):
        row = {"part": "train", "size": "d128", "system": "JoeyNMT", "variant": "fp32", "round": number + 1}
        rows.append({**row, "updates": 1, "source_tokens": 900, "tokens": 1000, "seconds": seconds, "flops": 4e9})
    report.write(tmp_path / "engine", rows, machine={"processor": "one"}, missing={"CTranslate2": "no module"})
    text = (tmp_path / "engine.md").read_text()
    assert "| JoeyNMT | fp32 | 500 (250 to 1,000) | 25% (12% to 50%) |" in text
    assert "CTranslate2 (no module)" in text
    assert "NVIDIA" not in text and "This machine has none" in text
    with open(tmp_path / "engine.csv", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == len(rows)
    assert (tmp_path / "engine.png").stat().st_size > 1000


# Time to quality: the lengths between schedules, and what is kept of trainings.


def results(*points: tuple[int, float, float]) -> list[Result]:
    return [Result("ours", 1e-3, updates, 1, loss, bleu) for updates, loss, bleu in points]


def test_lengths_between_two_schedules_are_interpolated_on_a_logarithmic_axis() -> None:
    points = results((500, 2.015, 30.0), (1000, 1.765, 41.0), (2000, 1.265, 49.0))
    assert updates_until(points, "dev_loss", 1.515) == pytest.approx(1000 * 2**0.5)
    assert updates_until(points, "bleu", 45.0) == pytest.approx(1000 * 2**0.5)
    assert updates_until(points, "bleu", 49.0) == 2000
    assert updates_until(points, "dev_loss", 2.5) == 500
    assert updates_until(points, "bleu", 50.0) is None


def test_lengths_double_until_both_goals_are_reached_and_nothing_is_trained_twice(tmp_path: Path, monkeypatch) -> None:
    trained = []

    def train(corpus: object, rate: float, updates: int, seed: int) -> Training:
        trained.append((rate, updates, seed))
        yield
        return rate, updates

    class Corpus:
        def score(self, model: tuple[float, int]) -> tuple[float, float]:
            rate, updates = model
            return 2.0 - updates / 2000 + rate, 40 + updates / 200

    monkeypatch.setitem(trainings.SYSTEMS, "ours", System("ours", train, (0.1, 0.2)))
    path = tmp_path / "quality.csv"
    lengths = Trainings(Corpus(), path).lengths("ours", 2, longest=4000)
    assert [(each.learning_rate, each.updates, each.seed) for each in lengths] == [
        (0.1, 500, 2),
        (0.1, 1000, 2),
        (0.1, 2000, 2),
    ]
    assert trained == [(0.1, 500, 1), (0.2, 500, 1), (0.1, 500, 2), (0.1, 1000, 2), (0.1, 2000, 2)]
    assert Trainings(Corpus(), path).lengths("ours", 2, longest=4000) == lengths
    assert len(trained) == 5
    assert Trainings(Corpus(), path).lengths("ours", 2, longest=1000) == lengths  # what is done counts
    assert Trainings(Corpus(), tmp_path / "other.csv").lengths("ours", 2, longest=1000) == lengths[:2]
    monkeypatch.setattr(trainings, "LOSS", 1.93)  # 500 updates reach it, so fewer are tried until one misses it
    lengths = Trainings(Corpus(), path).lengths("ours", 2, longest=1000)
    assert [each.updates for each in lengths] == [250, 354, 500, 1000]
