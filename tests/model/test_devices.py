"""GPUs are shared out by real locks between real processes; the GPUs themselves are names."""

import logging
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch

import specialized_heads
from specialized_heads.model import devices
from specialized_heads.model.devices import choose_device, lock, take_gpus
from specialized_heads.stage import UserError

TEAM = """
import os, torch
import torch.distributed as dist
from types import SimpleNamespace
start = dist.init_process_group
dist.init_process_group = lambda backend, **options: start("gloo", **options)
torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 3
torch.cuda.get_device_properties = lambda index: SimpleNamespace(uuid=f"gpu{index}")
torch.cuda.set_device = lambda index: None
from specialized_heads.training.parallel import distributed
with distributed("auto") as (context, device):
    print(f"{context.rank} of {context.size} has {device.index}", flush=True)
    dist.barrier()
"""
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(specialized_heads.__file__).parents[1]), "OMP_NUM_THREADS": "1"}


class Holder(NamedTuple):
    """A process that locks devices and keeps them."""

    process: multiprocessing.Process
    pipe: Connection

    def says(self) -> str | list[int]:
        """The next thing that it tells: that it waits, or the indices of its devices."""
        assert self.pipe.poll(60)
        return self.pipe.recv()


def lock_and_keep(names: Sequence[str], number: int, folder: Path, pipe: Connection) -> None:
    devices.POLL_SECONDS = 0.02
    handler = logging.Handler()
    handler.emit = lambda record: pipe.send(record.getMessage())
    devices.log.addHandler(handler)
    devices.log.setLevel(logging.INFO)
    pipe.send(lock(names, number, folder=folder))
    time.sleep(60)


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Callable[..., Holder]]:
    """`hold(1, "a", "b")`: a process that locks one of these devices and keeps it."""
    started = []

    def start(number: int, *names: str) -> Holder:
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(
            target=lock_and_keep, args=(names, number, tmp_path, theirs)
        )
        process.start()
        started.append(process)
        return Holder(process, ours)

    yield start
    for process in started:
        process.kill()
        process.join()


def test_a_killed_process_frees_its_device(hold) -> None:
    first = hold(1, "a")
    assert first.says() == [0]
    second = hold(1, "a")
    assert "waiting for 1 of 1 GPUs" in second.says()
    assert not second.pipe.poll(0.2)
    first.process.kill()
    assert second.says() == [0]


def test_the_same_device_under_another_index_is_still_taken(hold) -> None:
    assert hold(1, "a", "b").says() == [0]
    assert hold(1, "b", "a").says() == [0]  # b
    assert hold(1, "b", "a", "c").says() == [2]


def test_a_process_that_cannot_have_all_that_it_needs_keeps_none(hold, tmp_path: Path, monkeypatch) -> None:
    assert hold(1, "a").says() == [0]
    waiting = hold(2, "a", "b")
    assert "waiting for 2 of 2 GPUs" in waiting.says()
    monkeypatch.setattr(devices, "POLL_SECONDS", 0.01)
    assert lock(["b"], 1, folder=tmp_path) == [0]
    assert waiting.process.is_alive()


def test_a_lock_of_another_user_can_be_taken_when_it_is_free(hold, tmp_path: Path) -> None:
    (tmp_path / "specialized_heads-a.lock").touch(mode=0o444)
    assert hold(1, "a").says() == [0]


def test_what_lies_behind_a_link_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "specialized_heads-a.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        lock(["a"], 1, folder=tmp_path)
    assert not (tmp_path / "elsewhere").exists()


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two GPUs, as torch tells of them, and locks in a folder of the test."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(uuid=f"gpu{index}"))
    monkeypatch.setattr(torch.cuda, "set_device", lambda index: None)
    monkeypatch.setattr(devices.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    choose_device.cache_clear()
    yield
    choose_device.cache_clear()


def test_a_stage_computes_on_a_free_gpu_and_asks_once(gpus, hold) -> None:
    assert hold(1, "gpu0").says() == [0]
    assert choose_device("auto") == choose_device("auto") == torch.device("cuda", 1)
    assert choose_device("cpu") == torch.device("cpu")


def test_in_a_slurm_job_the_visible_gpus_are_its_own(gpus, hold, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hold(2, "gpu0", "gpu1").says() == [0, 1]
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert take_gpus(2) == [0, 1]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert choose_device("cuda") == torch.device("cuda", 0)


def test_jobs_within_one_slurm_allocation_share_its_gpus(gpus, hold, monkeypatch: pytest.MonkeyPatch) -> None:
    """Snakemake may itself run inside of a slurm job: what it starts sees all of that job's GPUs."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert hold(1, "gpu0").says() == [0]
    assert choose_device("cuda") == torch.device("cuda", 1)


def test_more_processes_than_gpus(gpus) -> None:
    with pytest.raises(UserError, match="3 processes need a GPU each, but torch sees 2; give the job gpu=2"):
        take_gpus(3)


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    choose_device.cache_clear()
    assert choose_device("auto") == choose_device("cpu") == torch.device("cpu")
    with pytest.raises(UserError, match="device: cuda is set, but torch sees no GPU"):
        choose_device("cuda")


def test_processes_that_train_together_have_different_gpus(hold, tmp_path: Path) -> None:
    assert hold(1, "gpu0").says() == [0]
    script = tmp_path / "share.py"
    script.write_text(TEAM, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    environment = ENVIRONMENT | {"TMPDIR": str(tmp_path)}
    environment.pop("SLURM_JOB_ID", None)
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert sorted(found.stdout.splitlines()) == ["0 of 2 has 1", "1 of 2 has 2"]


@pytest.mark.parametrize(
    ("lines", "limit", "found"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx2 avx512f avx512_bf16 vaes\n", "", True),
        ("flags\t\t: fpu avx2 avx512f avx512_bf16\n", "AVX512_CORE", False),
        ("flags\t\t: fpu avx2 avx512f avx512_bf16 amx_bf16\n", "AVX512_CORE_BF16", True),
        ("flags\t\t: fpu amx_bf16 amx_tile\n", "", True),
        ("Features\t: fp asimd bf16 i8mm\n", "", True),
        ("model name\t: bf16\nflags\t\t: fpu avx avx2 avx512f\n", "", False),
        (None, "", False),
    ],
)
def test_bf16_is_used_where_there_are_instructions_for_it(lines, limit, found: bool, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    if lines is not None:
        (tmp_path / "cpuinfo").write_text(lines)
    monkeypatch.setattr(devices, "PROCESSOR", tmp_path / "cpuinfo")
    devices.multiplies_bf16.cache_clear()
    cpu = torch.device("cpu")
    assert devices.matmul_precision("bf16", cpu) == ("bf16" if found else "fp32")
    assert devices.matmul_precision("fp32", cpu) == "fp32"
    devices.multiplies_bf16.cache_clear()
