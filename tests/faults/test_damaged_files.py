"""Damaged intermediate files with unchanged times: the stage that reads one names it, and deleting it restores everything.

Each stage runs as a plain command, because Snakemake does not look into files. Then all damaged files are deleted, and one run
of Snakemake makes them and everything after them again.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

RU, FR = "libreoffice_en_ru", "tatoeba_en_fr"
MODEL = f"{RU}/models/baseline/seed1"


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def one_bit(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def some_bytes(content: bytes) -> bytes:
    """For a small table of numbers, whose second half holds names of columns."""
    start = len(content) // 5
    return content[:start] + bytes(byte ^ 1 for byte in content[start : start + 50]) + content[start + 50 :]


def emptied(_: bytes) -> bytes:
    """As a file system may leave a file after a power failure."""
    return b""


def last_line_lost(content: bytes) -> bytes:
    return content[: content[:-1].rindex(b"\n") + 1]


class Fault(NamedTuple):
    file: str
    damage: Callable[[bytes], bytes]
    log: str  # of the first job that reads the file


FAULTS = {
    "raw text, cut": Fault(f"{RU}/corpus/raw.parquet", cut, f"{RU}/logs/corpus_clean.log"),
    "clean text, one bit": Fault(f"{RU}/corpus/clean.parquet", one_bit, f"{RU}/logs/corpus_split.log"),
    "training text, empty": Fault(f"{RU}/corpus/train.parquet", emptied, f"{RU}/logs/bpe.log"),
    "BPE model, one bit": Fault(f"{RU}/corpus/bpe.source.model", one_bit, f"{RU}/logs/tokens_dev.log"),
    "token ids, one bit": Fault(
        f"{RU}/corpus/tokens/dev.safetensors", one_bit, f"{RU}/logs/relevance_baseline_seed1.log"
    ),
    "token ids, cut": Fault(f"{RU}/corpus/tokens/train.safetensors", cut, f"{RU}/logs/train_baseline_seed1.log"),
    "weights, one bit": Fault(f"{MODEL}/model.safetensors", one_bit, f"{RU}/logs/translate_baseline_seed1.log"),
    "description, cut": Fault(f"{MODEL}/model.json", cut, f"{RU}/logs/translate_baseline_seed1.log"),
    "translation, a line lost": Fault(
        f"{MODEL}/translation.txt", last_line_lost, f"{RU}/logs/score_baseline_seed1.log"
    ),
    "score, cut": Fault(f"{FR}/models/baseline/seed1/score.json", cut, "logs/gather_models.log"),
    "table of models, cut": Fault("data/models.parquet", cut, "logs/figures/figure7.log"),
    "trees, empty": Fault(f"{FR}/parses/analysis.parquet", emptied, f"{FR}/logs/relations.log"),
    "relevance, some bytes": Fault(
        f"{RU}/relevance/baseline/seed1.parquet", some_bytes, f"{RU}/logs/analyse_heads_baseline_seed1.log"
    ),
}


class Outcome(NamedTuple):
    status: int
    printed: str
    differences: list[str]


def damage(path: Path, how: Callable[[bytes], bytes]) -> bytes:
    """Damage a file but keep its time of modification; return its original content."""
    content, times = path.read_bytes(), path.stat()
    path.write_bytes(how(content))
    assert path.read_bytes() != content
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return content


@pytest.fixture(scope="module")
def outcomes(new_scene) -> Iterator[dict[str, Outcome]]:
    """What the reader of each damaged file does and, as "all", what Snakemake does after all of them are deleted."""
    with new_scene() as scene:
        outcomes = {}
        for name, fault in FAULTS.items():
            content = damage(scene.file(fault.file), fault.damage)
            outcomes[name] = Outcome(*scene.stage(fault.log), scene.differences())
            scene.file(fault.file).write_bytes(content)
        damaged = [fault.file for fault in FAULTS.values()]
        scene.lose(*damaged)
        run = scene.run(*damaged)
        yield {**outcomes, "all": Outcome(run.status, run.printed, scene.differences())}


@pytest.mark.parametrize("name", FAULTS)
def test_a_damaged_file_is_named_and_nothing_is_made_of_it(outcomes: dict[str, Outcome], name: str) -> None:
    outcome = outcomes[name]
    assert outcome.status == 2, outcome.printed
    assert outcome.printed.count("error: ") == 1
    for words in (f"error: results/smoke/{FAULTS[name].file}: ", "delete", "run again"):
        assert words in outcome.printed
    assert "Traceback" not in outcome.printed
    assert outcome.differences == [FAULTS[name].file]


def test_after_deletion_the_same_command_makes_the_same_bytes(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["all"].status == 0, outcomes["all"].printed[-5000:]
    assert outcomes["all"].differences == []
