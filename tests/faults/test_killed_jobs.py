"""Jobs that are killed, at every kind of stage: the same command, again and again, ends with the bytes of the undisturbed run.

All wait in one project, and each run of Snakemake gets as far as they let it.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pytest
from workflows import Run

RU, FR = "libreoffice_en_ru", "tatoeba_en_fr"
MODEL = f"{RU}/models/baseline/seed1"
HALF = "job killed in the middle of a write"

# What happens, in which rule, when this file is about to get its name (for the so many-th time).
FAULTS = {
    "corpus, of its two files one is written": ("job killed", "corpus_raw", f"{RU}/corpus/raw.json", 1),
    "bpe, one of its two models is written": ("job killed", "bpe", f"{RU}/corpus/bpe.target.model", 1),
    "tokens, half a file": (HALF, "tokens", f"{RU}/corpus/tokens/train.safetensors", 1),
    "training, half a state": (HALF, "train_baseline", f"{MODEL}.state/state.pt", 7),
    "training, weights without description": ("job killed", "train_baseline", f"{MODEL}/model.json", 1),
    "translation, one of its two files": ("job terminated", "translate", f"{MODEL}/translation.txt", 1),
    "score": (HALF, "score", f"{MODEL}/score.json", 1),
    "pruning, the model without that of soft gates": (
        "job killed",
        "prune",
        f"{FR}/models/soft/encoder_lambda100/seed1/model.safetensors",
        1,
    ),
    "relevance, the table without its report": ("job killed", "relevance", f"{FR}/relevance/baseline/seed1.json", 1),
    "figure, the PDF without the SVG": ("job terminated", "figure3", "figures/figure3.svg", 1),
}
# Made again: the text and the model of one corpus, from the start, and of the other what no fault is upstream of.
LOST = [
    f"{FR}/models/pruned/encoder_lambda100/seed1/model.safetensors",
    f"{FR}/relevance/baseline/seed1.parquet",
    "figures/figure3.pdf",
]
TARGETS = [f"{MODEL}/score.json", f"{RU}/corpus/tokens/analysis.safetensors", *LOST]


@dataclass(frozen=True)
class Story:
    """What the runs said, which faults each of them met, and in what the results differ in the end."""

    runs: list[Run]
    met: list[set[str]]
    differences: list[str]


@pytest.fixture(scope="module")
def story(new_scene: Callable[[], AbstractContextManager]) -> Iterator[Story]:
    """The same command until it is through."""
    with new_scene() as scene:
        for number, (what, _, file, count) in enumerate(FAULTS.values()):
            scene.arm(f"{number}", what=what, file=file, number=count)
        scene.lose(*LOST)
        for folder in ("corpus", "models"):
            shutil.rmtree(scene.file(f"{RU}/{folder}"))
        runs, met = [], []
        while not runs or runs[-1].status:
            assert len(runs) <= len(FAULTS), runs[-1].printed[-5000:]
            before = set(scene.armed())
            runs.append(scene.run(*TARGETS, options=("--keep-going",)))
            met.append({list(FAULTS)[int(number)] for number in before - set(scene.armed())})
        yield Story(runs, met, scene.differences())


@pytest.mark.parametrize("fault", FAULTS)
def test_the_run_fails_and_says_where(story: Story, fault: str) -> None:
    [run] = [run for run, met in zip(story.runs, story.met, strict=True) if fault in met]
    assert run.status != 0
    assert f"Error in rule {FAULTS[fault][1]}" in run.printed


def test_it_ends_with_the_bytes_of_the_undisturbed_run(story: Story) -> None:
    assert story.differences == []


def test_training_went_on_at_the_last_whole_state(story: Story) -> None:
    killed, following = (
        next(number for number, met in enumerate(story.met) if name in met)
        for name in ("training, half a state", "training, weights without description")
    )
    assert following == killed + 1
    assert "going on at update 6\n" in story.runs[following].printed
