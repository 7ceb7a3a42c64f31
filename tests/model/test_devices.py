"""GPUs are shared out by real locks; the GPUs themselves are names."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from small import ENVIRONMENT

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
    print(f"{context.rank} of {context.size} has {device.index}\\n", end="", flush=True)  # in one piece: both write at once
    dist.barrier()
"""


@pytest.fixture
def hold(tmp_path: Path) -> Callable[[str], int]:
    """`hold("a")`: lock this device as another process would; the descriptor that holds the lock until it is closed."""

    def take(name: str) -> int:
        descriptor = os.open(tmp_path / f"specialized_heads-{name}.lock", os.O_RDONLY | os.O_CREAT)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor

    return take


def test_a_device_is_taken_when_the_process_that_holds_it_ends(hold, tmp_path: Path, monkeypatch, caplog) -> None:
    other = hold("a")
    monkeypatch.setattr(devices.time, "sleep", lambda _: os.close(other))
    with caplog.at_level("INFO"):
        assert lock(["a"], 1, folder=tmp_path) == [0]
    assert "waiting for 1 of 1 GPUs" in caplog.text


def test_the_same_device_under_another_index_is_still_taken(tmp_path: Path) -> None:
    assert lock(["a", "b"], 1, folder=tmp_path) == [0]
    assert lock(["b", "a"], 1, folder=tmp_path) == [0]  # b
    assert lock(["b", "a", "c"], 1, folder=tmp_path) == [2]


def test_a_process_that_cannot_have_all_that_it_needs_keeps_none(hold, tmp_path: Path, monkeypatch) -> None:
    other = hold("a")

    def while_it_waits(_: float) -> None:
        os.close(hold("b"))
        os.close(other)

    monkeypatch.setattr(devices.time, "sleep", while_it_waits)
    assert lock(["a", "b"], 2, folder=tmp_path) == [0, 1]


def test_a_lock_of_another_user_can_be_taken_when_it_is_free(tmp_path: Path) -> None:
    (tmp_path / "specialized_heads-a.lock").touch(mode=0o444)
    assert lock(["a"], 1, folder=tmp_path) == [0]


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
    hold("gpu0")
    assert choose_device("auto") == choose_device("auto") == torch.device("cuda", 1)
    assert choose_device("cpu") == torch.device("cpu")


def test_in_a_slurm_job_the_visible_gpus_are_its_own(gpus, hold, monkeypatch: pytest.MonkeyPatch) -> None:
    hold("gpu0"), hold("gpu1")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert take_gpus(2) == [0, 1]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert choose_device("cuda") == torch.device("cuda", 0)


def test_jobs_within_one_slurm_allocation_share_its_gpus(gpus, hold, monkeypatch: pytest.MonkeyPatch) -> None:
    """Snakemake may itself run inside of a slurm job: what it starts sees all of that job's GPUs."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    hold("gpu0")
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
    hold("gpu0")
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
        ("flags\t\t: fpu avx2 avx512f avx512_bf16\n", "avx2_vnni", False),
        ("Features\t: fp asimd bf16 i8mm\n", "", True),
        ("model name\t: bf16\nflags\t\t: fpu avx avx2 avx512f\n", "", False),
    ],
)
def test_bf16_is_used_where_there_are_instructions_for_it(lines, limit, found: bool, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    (tmp_path / "cpuinfo").write_text(lines)
    monkeypatch.setattr(devices, "PROCESSOR", tmp_path / "cpuinfo")
    devices.multiplies_bf16.cache_clear()
    cpu = torch.device("cpu")
    assert devices.matmul_precision("bf16", cpu) == ("bf16" if found else "fp32")
    assert devices.matmul_precision("fp32", cpu) == "fp32"
    devices.multiplies_bf16.cache_clear()
