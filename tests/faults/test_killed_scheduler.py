"""Snakemake itself ends, or runs twice: what its jobs do then, and that the same command finishes
what it began."""

import signal

import psutil
import pytest
from workflows import wait_for

MODEL = "libreoffice_en_ru/models/baseline/seed1"
WEIGHTS, STATE = f"{MODEL}/model.safetensors", f"{MODEL}.state/state.pt"
LOG = "libreoffice_en_ru/logs/train_baseline_seed1.log"
STOPPED = f"{MODEL}.state: another process has taken over, or has finished; this one stops\n"


@pytest.fixture
def scene(scene):
    """A scene in which the baseline has yet to be trained."""
    scene.lose(WEIGHTS)
    return scene


def log_of(scene) -> str:
    return scene.file(LOG).read_text(encoding="utf-8", errors="replace")


@pytest.mark.parametrize("end", ["power lost", "interrupted"])
def test_training_resumes_after_the_end_of_everything(scene, end: str) -> None:
    scene.arm("end", what=end, file=STATE, number=3)
    ended = scene.run(WEIGHTS)
    if end == "interrupted":  # Ctrl-C
        assert ended.status != 0 and "Terminating processes on user request" in ended.printed
        assert "interrupted; run the same command again to continue\n" in log_of(scene)
        assert "Traceback" not in log_of(scene)
    else:  # Snakemake could not clean up: its lock is left, and it says what to do
        assert ended.status == -signal.SIGKILL
        refused = scene.run(WEIGHTS)
        assert (
            refused.status != 0
            and "It can be removed with the --unlock argument" in refused.printed
        )
        assert scene.run(options=("--unlock",)).status == 0
    run = scene.run(WEIGHTS)
    assert run.status == 0, run.printed[-3000:]
    assert "resuming at update 2\n" in log_of(scene)
    assert scene.differences() == []


def test_a_training_that_ends_without_its_scheduler_is_not_repeated(scene) -> None:
    scene.arm("end", what="scheduler killed", file=STATE, number=3)
    assert scene.start(WEIGHTS).wait() == -signal.SIGKILL
    orphan = psutil.Process(int((scene.faults / "orphan").read_text()))
    (scene.faults / "go on").touch()
    wait_for(lambda: not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE)
    assert scene.file(WEIGHTS).exists()
    assert scene.run(options=("--unlock",)).status == 0
    run = scene.run(WEIGHTS)  # Snakemake deletes the model, which it has not recorded
    assert run.status == 0, run.printed[-3000:]
    assert "resuming at update 20\n" in log_of(scene)
    assert scene.differences() == []


def test_a_job_that_outlives_its_scheduler_gives_way_to_the_next_one(scene) -> None:
    """Only Snakemake is killed, its training continues; a second Snakemake starts the same
    training."""
    scene.arm("end", what="scheduler killed", file=STATE, number=3)
    assert scene.start(WEIGHTS).wait() == -signal.SIGKILL
    orphan = psutil.Process(int((scene.faults / "orphan").read_text()))
    assert orphan.is_running()
    assert scene.run(options=("--unlock",)).status == 0
    scene.arm("second", what="waits", file=STATE, number=2)
    # the orphan's: Snakemake opens a new file for the second one
    with open(scene.file(LOG), encoding="utf-8") as log:
        second = scene.start(WEIGHTS)
        wait_for((scene.faults / "waiting").exists, watched=scene.project.root)
        # Both are saving a state now. The orphan completes its own, then sees the other process.
        (scene.faults / "go on").touch()
        wait_for(lambda: not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE)
        assert STOPPED in log.read()
    assert second.wait() == 0, (scene.project.root / "printed").read_text(encoding="utf-8")[-3000:]
    assert "resuming at update 2\n" in log_of(scene)
    assert scene.differences() == []
