"""Snakemake itself ends, or runs twice: what its jobs do then, and that the same command finishes what it began."""

import signal
import time
from collections.abc import Callable

import psutil

MODEL = "libreoffice_en_ru/models/baseline/seed1"
WEIGHTS, STATE = f"{MODEL}/model.safetensors", f"{MODEL}.state/state.pt"
TRANSLATION = f"{MODEL}/translation.txt"
LOG = "libreoffice_en_ru/logs/train_baseline_seed1.log"


def wait_for(condition: Callable[[], object], *, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def log_of(scene) -> str:
    return scene.file(LOG).read_text(encoding="utf-8", errors="replace")


def test_training_goes_on_after_a_loss_of_power(scene) -> None:
    """Of a Snakemake that could not clean up, the lock is left, and Snakemake says what to do."""
    scene.lose(WEIGHTS)
    scene.arm("end", what="power lost", file=STATE, number=3)
    assert scene.run(WEIGHTS).status == -signal.SIGKILL
    refused = scene.run(WEIGHTS)
    assert refused.status != 0
    assert "It can be removed with the --unlock argument" in refused.printed
    assert scene.run(options=("--unlock",)).status == 0
    run = scene.run(WEIGHTS)
    assert run.status == 0, run.printed[-3000:]
    assert "going on at update 2\n" in log_of(scene)
    assert scene.differences() == []


def test_training_goes_on_after_ctrl_c(scene) -> None:
    scene.lose(WEIGHTS)
    scene.arm("end", what="interrupted", file=STATE, number=3)
    interrupted = scene.run(WEIGHTS)
    assert interrupted.status != 0
    assert "Terminating processes on user request" in interrupted.printed
    assert "interrupted; run the same command again to go on\n" in log_of(scene)
    assert "Traceback" not in log_of(scene)
    run = scene.run(WEIGHTS)
    assert run.status == 0, run.printed[-3000:]
    assert "going on at update 2\n" in log_of(scene)
    assert scene.differences() == []


def test_a_scheduler_that_is_terminated_lets_its_jobs_finish_and_starts_no_other(scene) -> None:
    scene.lose(WEIGHTS, TRANSLATION)
    scene.arm("end", what="scheduler terminated", file=STATE, number=3)
    terminated = scene.run(TRANSLATION)
    assert terminated.status != 0
    assert "Will exit after finishing currently running jobs" in terminated.printed
    assert (terminated.rules, scene.file(TRANSLATION).exists()) == ({"train_baseline"}, False)
    run = scene.run(TRANSLATION)
    assert (run.status, run.rules) == (0, {"translate"}), run.printed[-3000:]
    assert scene.differences() == []


def test_a_job_that_outlives_its_scheduler_gives_way_to_the_next_one(scene) -> None:
    """Snakemake alone is killed, its training goes on; a second Snakemake starts the same training."""
    scene.lose(WEIGHTS)
    scene.arm("end", what="scheduler killed", file=STATE, number=3)
    assert scene.start(WEIGHTS).wait() == -signal.SIGKILL
    orphan = psutil.Process(int((scene.faults / "orphan").read_text()))
    assert orphan.is_running()
    assert scene.run(options=("--unlock",)).status == 0
    scene.arm("second", what="waits", file=STATE, number=2)
    with open(scene.file(LOG), encoding="utf-8") as log:  # of the orphan: Snakemake gives the second one another file
        second = scene.start(WEIGHTS)
        wait_for((scene.faults / "waiting").exists)
        # Both are in the middle of a state now; the first one writes its own, and then sees that it is not alone.
        (scene.faults / "go on").touch()
        wait_for(lambda: not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE)
        assert f"{MODEL}.state: another process has taken over, or has finished; this one stops\n" in log.read()
    assert second.wait() == 0, scene.printed()[-3000:]
    assert "going on at update 2\n" in log_of(scene)
    assert scene.differences() == []


def test_a_second_invocation_is_refused_and_harms_nothing(scene) -> None:
    scene.lose(WEIGHTS)
    scene.arm("pause", what="waits", file=STATE, number=3)
    first = scene.start(WEIGHTS)
    wait_for((scene.faults / "waiting").exists)
    refused = scene.run(WEIGHTS)
    assert refused.status != 0
    assert "Directory cannot be locked" in refused.printed
    (scene.faults / "go on").touch()
    assert first.wait() == 0, scene.printed()[-3000:]
    assert scene.differences() == []


def test_a_second_invocation_that_passes_over_the_lock_takes_over(scene) -> None:
    scene.lose(WEIGHTS)
    scene.arm("pause", what="waits", file=STATE, number=3)
    first = scene.start(WEIGHTS)
    wait_for((scene.faults / "waiting").exists)
    with open(scene.file(LOG), encoding="utf-8") as log:
        second = scene.run(WEIGHTS, options=("--nolock",))
        assert second.status == 0, second.printed[-3000:]
        (scene.faults / "go on").touch()
        assert first.wait() != 0
        assert f"{MODEL}.state: another process has taken over, or has finished; this one stops\n" in log.read()
    again = scene.run(
        WEIGHTS
    )  # the first Snakemake has removed the results of its failed job, which were the second one's
    assert again.status == 0, again.printed[-3000:]
    assert scene.differences() == []
