"""Intermediate files that are damaged, their times unchanged: whoever reads one says so, and what to delete brings it back.

What a stage says is what its own command says, without Snakemake, which does not look into files. Then all of the damaged
files are deleted, and one run of Snakemake makes them and everything after them again.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

RU, FR = "libreoffice_en_ru", "tatoeba_en_fr"
MODEL = f"{RU}/models/baseline/seed1"


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def one_bit(content: bytes) -> bytes:
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def some_bytes(content: bytes) -> bytes:
    """Of a small table of numbers: the second half is names of columns, and some bits before say nothing."""
    place = len(content) // 5
    return content[:place] + bytes(byte ^ 1 for byte in content[place : place + 50]) + content[place + 50 :]


def emptied(_: bytes) -> bytes:
    """As a file system may leave a file after a loss of power."""
    return b""


def last_line_lost(content: bytes) -> bytes:
    return content[: content[:-1].rindex(b"\n") + 1]


# The damaged file, how it is damaged, and the log of the first job that reads it.
FAULTS = {
    "raw text, cut": (f"{RU}/corpus/raw.parquet", cut, f"{RU}/logs/corpus_clean.log"),
    "clean text, one bit": (f"{RU}/corpus/clean.parquet", one_bit, f"{RU}/logs/corpus_split.log"),
    "training text, empty": (f"{RU}/corpus/train.parquet", emptied, f"{RU}/logs/bpe.log"),
    "BPE model, one bit": (f"{RU}/corpus/bpe.source.model", one_bit, f"{RU}/logs/tokens_dev.log"),
    "token ids, one bit": (f"{RU}/corpus/tokens/dev.safetensors", one_bit, f"{RU}/logs/relevance_baseline_seed1.log"),
    "token ids, cut": (f"{RU}/corpus/tokens/train.safetensors", cut, f"{RU}/logs/train_baseline_seed1.log"),
    "weights, one bit": (f"{MODEL}/model.safetensors", one_bit, f"{RU}/logs/translate_baseline_seed1.log"),
    "description, cut": (f"{MODEL}/model.json", cut, f"{RU}/logs/translate_baseline_seed1.log"),
    "translation, a line lost": (f"{MODEL}/translation.txt", last_line_lost, f"{RU}/logs/score_baseline_seed1.log"),
    "score, cut": (f"{FR}/models/baseline/seed1/score.json", cut, f"{FR}/logs/gather_scores.log"),
    "scores, some bytes": (f"{FR}/scores.parquet", some_bytes, "logs/figure7.log"),
    "trees, empty": (f"{FR}/parses/analysis.parquet", emptied, f"{FR}/logs/relations.log"),
    "relevance, some bytes": (
        f"{RU}/relevance/baseline/seed1.parquet",
        some_bytes,
        f"{RU}/logs/analyse_heads_baseline_seed1.log",
    ),
}


def damage(path: Path, how: Callable[[bytes], bytes]) -> bytes:
    """Damage a file, and leave its time of modification; returns what it was."""
    content, times = path.read_bytes(), path.stat()
    path.write_bytes(how(content))
    assert path.read_bytes() != content
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return content


@pytest.fixture(scope="module")
def story(new_scene: Callable[[], AbstractContextManager]) -> Iterator[dict[str, tuple[int, str, list[str]]]]:
    """Status and words of the job that reads each damaged file, and which results differed then; in the end, after "all"."""
    with new_scene() as scene:
        found = {}
        for fault, (name, how, log) in FAULTS.items():
            content = damage(scene.file(name), how)
            found[fault] = (*scene.stage(log), scene.differences())
            scene.file(name).write_bytes(content)
        names = [name for name, _, _ in FAULTS.values()]
        scene.lose(*names)
        run = scene.run(*names)
        yield {**found, "all": (run.status, run.printed, scene.differences())}


@pytest.mark.parametrize("fault", FAULTS)
def test_it_is_noticed_named_and_nothing_is_made_of_it(story: dict, fault: str) -> None:
    status, said, different = story[fault]
    name, _, _ = FAULTS[fault]
    assert status == 2, said
    assert said.count("error: ") == 1
    assert f"error: results/smoke/{name}: " in said
    assert "delete" in said
    assert "run again" in said
    assert "Traceback" not in said
    assert different == [name]


def test_after_deletion_the_same_command_makes_the_same_bytes(story: dict) -> None:
    status, printed, different = story["all"]
    assert status == 0, printed[-5000:]
    assert different == []


def test_a_damaged_state_of_training_is_thrown_away(scene) -> None:
    log, state = f"{RU}/logs/train_baseline_seed1.log", f"{MODEL}.state/state.pt"
    scene.arm("kill", what="job killed", file=state, number=5)
    assert scene.stage(log)[0] == 128 + 9
    damage(scene.file(state), one_bit)
    status, said = scene.stage(log)
    assert status == 0, said
    assert f"the saved state results/smoke/{state} cannot be read (damaged); starting over\n" in said
    assert scene.differences() == []
