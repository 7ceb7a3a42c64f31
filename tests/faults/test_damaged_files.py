"""Damaged intermediate files with unchanged times: the stage that reads one names it, and deleting
it restores everything.

Each stage runs as a plain command, because Snakemake does not look into files. Then all damaged
files are deleted, and one run of Snakemake makes them and everything after them again.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

RU, FR = "libreoffice_en_ru", "tatoeba_en_fr"
MODEL = f"{RU}/models/baseline/seed1"


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def one_bit(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def last_line_lost(content: bytes) -> bytes:
    return content[: content[:-1].rindex(b"\n") + 1]


class Fault(NamedTuple):
    file: str
    damage: Callable[[bytes], bytes]
    log: str  # of the first job that reads the file


FAULTS = [
    Fault(f"{RU}/corpus/raw.parquet", cut, f"{RU}/logs/corpus_clean.log"),
    Fault(f"{RU}/corpus/bpe.source.model", cut, f"{RU}/logs/tokens_dev.log"),
    Fault(f"{RU}/corpus/tokens/dev.safetensors", cut, f"{RU}/logs/relevance_baseline_seed1.log"),
    Fault(f"{MODEL}/model.safetensors", one_bit, f"{RU}/logs/translate_baseline_seed1.log"),
    Fault(f"{MODEL}/model.json", cut, f"{RU}/logs/translate_baseline_seed1.log"),
    Fault(f"{MODEL}/translation.txt", last_line_lost, f"{RU}/logs/score_baseline_seed1.log"),
    # As a file system may leave a file after a power failure.
    Fault(f"{FR}/parses/analysis.parquet", lambda _: b"", f"{FR}/logs/relations.log"),
]


def damage(path: Path, how: Callable[[bytes], bytes]) -> bytes:
    """Damage a file but keep its time of modification; return its original content."""
    content, times = path.read_bytes(), path.stat()
    path.write_bytes(how(content))
    assert path.read_bytes() != content
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return content


def test_a_damaged_file_is_named_and_after_deletion_the_same_command_makes_the_same_bytes(
    scene,
) -> None:
    for fault in FAULTS:
        content = damage(scene.file(fault.file), fault.damage)
        status, printed = scene.stage(fault.log)
        assert status == 2, printed
        assert printed.count("error: ") == 1 and "Traceback" not in printed
        for words in (f"error: results/smoke/{fault.file}: ", "delete", "run again"):
            assert words in printed
        assert scene.differences() == [fault.file]  # nothing is made of it
        scene.file(fault.file).write_bytes(content)
    damaged = [fault.file for fault in FAULTS]
    scene.lose(*damaged)
    run = scene.run(*damaged)
    assert run.status == 0, run.printed[-5000:]
    assert scene.differences() == []
