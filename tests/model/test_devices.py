"""GPUs are shared out by real locks; the GPUs themselves are names."""

import fcntl
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from small import ENVIRONMENT

from specialized_heads.model import devices
from specialized_heads.model.devices import choose_device, lock, own_gpu, take_gpus
from specialized_heads.report.data import Tables
from specialized_heads.report.figures import runs
from specialized_heads.stage import UserError
from specialized_heads.training import state

# Start a script as two processes.
TWO = [sys.executable, *"-m torch.distributed.run --standalone --nproc-per-node 2".split()]
TEAM = """
import os, torch
from pathlib import Path
import torch.distributed as dist
from types import SimpleNamespace
start = dist.init_process_group
dist.init_process_group = lambda backend, **options: start("gloo", **options)
torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 3
torch.cuda.get_device_properties = lambda index: SimpleNamespace(uuid=f"gpu{index}")
torch.cuda.set_device = lambda index: None
from specialized_heads.training.state import distributed
with distributed("auto", state=Path(os.environ["STATE"])) as (context, device):
    # in one piece: both write at once
    print(f"{context.rank} of {context.size} has {device.index}\\n", end="", flush=True)
    dist.barrier()
"""


@pytest.fixture
def hold(tmp_path: Path) -> Callable[[str], int]:
    """`hold("a")`: lock this device as another process would; the descriptor that holds the lock
    until it is closed."""

    def take(name: str) -> int:
        descriptor = os.open(tmp_path / f"specialized_heads-{name}.lock", os.O_RDONLY | os.O_CREAT)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor

    return take


def test_a_device_is_taken_when_the_process_that_holds_it_ends(
    hold, tmp_path: Path, monkeypatch, caplog
) -> None:
    other = hold("a")
    monkeypatch.setattr(devices.time, "sleep", lambda _: os.close(other))
    with caplog.at_level("INFO"):
        assert lock(["a"], 1, folder=tmp_path) == [0]
    assert "waiting for 1 of 1 GPUs" in caplog.text


def test_the_same_device_under_another_index_is_still_taken(tmp_path: Path) -> None:
    assert lock(["a", "b"], 1, folder=tmp_path) == [0]
    assert lock(["b", "a"], 1, folder=tmp_path) == [0]  # b
    assert lock(["b", "a", "c"], 1, folder=tmp_path) == [2]


def test_a_process_that_cannot_have_all_that_it_needs_keeps_none(
    hold, tmp_path: Path, monkeypatch
) -> None:
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
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda index: SimpleNamespace(uuid=f"gpu{index}")
    )
    monkeypatch.setattr(torch.cuda, "set_device", lambda index: None)
    monkeypatch.setattr(devices.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    own_gpu.cache_clear()
    yield
    own_gpu.cache_clear()
    torch.backends.cuda.enable_cudnn_sdp(True)


def test_a_stage_computes_on_a_free_gpu_and_asks_once(gpus, hold) -> None:
    hold("gpu0")
    # By whatever name it asks: a second lock would never come free.
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda", 1)
    assert choose_device("cpu") == torch.device("cpu")


def test_attention_on_a_gpu_is_not_planned_anew_for_every_shape(gpus) -> None:
    torch.backends.cuda.enable_cudnn_sdp(True)
    choose_device("cpu")
    assert torch.backends.cuda.cudnn_sdp_enabled()
    choose_device("auto")
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.mem_efficient_sdp_enabled()


def test_in_a_slurm_job_the_visible_gpus_are_its_own(gpus, hold, monkeypatch) -> None:
    hold("gpu0"), hold("gpu1")  # by processes outside of the job, which cannot compute on them
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert take_gpus(2) == [0, 1]


def test_jobs_within_one_slurm_allocation_share_its_gpus(gpus, hold, monkeypatch) -> None:
    """Snakemake may itself run inside of a slurm job: what it starts sees all of that job's GPUs,
    were it only one."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    other = hold("7-gpu0")
    assert choose_device("cuda") == torch.device("cuda", 1)
    own_gpu.cache_clear()
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    waited = []
    monkeypatch.setattr(devices.time, "sleep", lambda _: waited.append(os.close(other)))
    assert choose_device("cuda") == torch.device("cuda", 0) and waited


def test_more_processes_than_gpus(gpus) -> None:
    said = "3 processes need a GPU each, but torch sees 2; give the job gpu=2"
    with pytest.raises(UserError, match=said):
        take_gpus(3)


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == choose_device("cpu") == torch.device("cpu")
    with pytest.raises(UserError, match="device: cuda is set, but torch sees no GPU"):
        choose_device("cuda")


def test_a_gpu_that_cuda_cannot_start_is_named_once_and_the_run_goes_on(
    monkeypatch, caplog, make_environment
) -> None:
    """An old driver: NVML counts the GPU, CUDA does not start."""

    def fail(index: int) -> None:
        raise RuntimeError("The NVIDIA driver on your system is too old")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", fail)
    devices._warn_of.cache_clear()
    assert choose_device("auto") == choose_device("auto") == torch.device("cpu")
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1 and "1 GPU that CUDA cannot start" in caplog.text
    with pytest.raises(UserError, match="1 GPU that CUDA cannot start; update the driver"):
        choose_device("cuda")
    # The last job of the workflow describes the machine.
    assert make_environment()["GPU"] == "1 GPU that CUDA cannot start"


@pytest.fixture
def make_environment() -> Callable[[], dict[str, str]]:
    """The table of the environment, as a dictionary."""

    def values() -> dict[str, str]:
        rows = runs.environment_numbers(Tables(*[pd.DataFrame()] * 5), engines=[], device="auto")
        return dict(zip(rows["name"], rows["value"], strict=True))

    return values


def test_the_environment_is_described_where_linux_is_not(
    monkeypatch, tmp_path: Path, make_environment
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(runs, "PROCESSOR", tmp_path / "no cpuinfo")
    found = make_environment()
    assert found["processor"] == platform.machine()
    assert found["processors of this job"] == str(os.cpu_count())


def test_processes_that_train_together_have_different_gpus(hold, tmp_path: Path) -> None:
    hold("gpu0")
    script = tmp_path / "share.py"
    script.write_text(TEAM, encoding="utf-8")
    variables = ENVIRONMENT | {"TMPDIR": str(tmp_path), "STATE": str(tmp_path / "state")}
    variables.pop("SLURM_JOB_ID", None)
    found = subprocess.run([*TWO, script], env=variables, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert sorted(found.stdout.splitlines()) == ["0 of 2 has 1", "1 of 2 has 2"]


FAILING = """
import os
from pathlib import Path
import torch, torch.distributed as dist
from specialized_heads.stage import UserError
from specialized_heads.training.state import distributed
leave = dist.destroy_process_group
dist.destroy_process_group = lambda: (dist.barrier(), leave())  # as NCCL's: it waits for all ranks
with distributed("cpu", state=Path(os.environ["STATE"])) as (context, device):
    if not context.is_main:
        raise UserError("the disk is full; free some space and run again")
    context.all_reduce(torch.zeros(1))  # waits for the other process, which ends
"""


def test_a_process_that_fails_ends_those_that_train_with_it(tmp_path: Path) -> None:
    script = tmp_path / "fail.py"
    script.write_text(FAILING, encoding="utf-8")
    variables = ENVIRONMENT | {"STATE": str(tmp_path / "state")}
    run = {"capture_output": True, "text": True, "timeout": 300}
    found = subprocess.run([*TWO, script], env=variables, **run)
    assert found.returncode != 0
    assert "error: the disk is full; free some space and run again" in found.stderr


def test_a_run_takes_over_its_state_before_it_waits_for_the_gpu_of_an_orphan(
    gpus, hold, monkeypatch, tmp_path
) -> None:
    """The orphan stops at its next look at the folder, and frees the GPU; the state is still there
    to resume from."""
    folder, waited = tmp_path / "seed1.state", []
    monkeypatch.setattr(state, "this_process", lambda: "the orphan")
    state.claim(folder)
    (folder / "state.pt").write_bytes(b"saved")
    orphan = [hold("gpu0"), hold("gpu1")]

    def orphan_looks(seconds: float) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(state, "this_process", lambda: "the orphan")
            with pytest.raises(UserError, match="another process has taken over"):
                state.check(folder)
        waited.append([os.close(descriptor) for descriptor in orphan])

    monkeypatch.setattr(state, "this_process", lambda: "the new run")
    monkeypatch.setattr(devices.time, "sleep", orphan_looks)
    with state.distributed("auto", state=folder) as (context, device):
        assert context.is_main and device == torch.device("cuda", 0) and waited
        state.check(folder)
        assert (folder / "state.pt").read_bytes() == b"saved"


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
def test_bf16_is_used_where_there_are_instructions_for_it(
    lines, limit, found: bool, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    (tmp_path / "cpuinfo").write_text(lines)
    monkeypatch.setattr(devices, "PROCESSOR", tmp_path / "cpuinfo")
    devices.multiplies_bf16.cache_clear()
    cpu = torch.device("cpu")
    assert devices.matmul_precision("bf16", cpu) == ("bf16" if found else "fp32")
    assert devices.matmul_precision("fp32", cpu) == "fp32"
    devices.multiplies_bf16.cache_clear()
