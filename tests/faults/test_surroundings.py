"""Missing permissions and wrong clocks: either results are the same bytes, or one line says what is wrong."""

import os
import shutil
import subprocess

import pytest

RU, FR = "libreoffice_en_ru", "tatoeba_en_fr"
YEARS = 365.25 * 24 * 3600


@pytest.fixture(scope="module")
def unprivileged() -> tuple[str, ...]:
    """The start of a command that must respect permissions, which root does not unless it gives up that right."""
    rights = "-dac_override,-dac_read_search"
    command = ("setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}") if os.geteuid() == 0 else ()
    if command and (shutil.which("setpriv") is None or subprocess.run([*command, "true"]).returncode):
        pytest.skip("root cannot give up its rights here")
    return command


@pytest.mark.parametrize(
    ("log", "path", "forbidden", "allowed", "error"),
    [
        (f"{FR}/logs/relations.log", f"{FR}/parses/analysis.parquet", 0, 0o644, "{path}: permission denied"),
        (
            "logs/figures/figure3.log",
            "figures",
            0o555,
            0o755,
            "{path}/figure3.pdf: cannot be written; make its folder writable",
        ),
    ],
    ids=["unreadable_input", "read_only_folder"],
)
def test_a_missing_permission(scene, unprivileged, log, path: str, forbidden: int, allowed: int, error: str) -> None:
    scene.file(path).chmod(forbidden)
    status, printed = scene.stage(log, before=unprivileged)
    assert (status, printed.count("error: ")) == (2, 1), printed
    assert f"error: results/smoke/{error.format(path=path)}" in printed

    scene.file(path).chmod(allowed)
    assert scene.stage(log, before=unprivileged)[0] == 0
    assert scene.differences() == []


def test_results_from_the_past_in_any_order(scene) -> None:
    """As after a copy without times, or on a machine with an empty clock battery."""
    names = sorted(path for path in scene.file(f"{RU}/corpus").rglob("*") if path.is_file())
    for number, path in enumerate(names):
        os.utime(path, (number * 7919 % 1000, number * 7919 % 1000))  # seconds after 1970
    run = scene.run(f"{RU}/corpus/tokens/dev.safetensors")
    assert run.status == 0, run.printed[-3000:]
    assert scene.differences() == []


@pytest.mark.parametrize(
    ("log", "module"),
    [(f"{RU}/logs/train_baseline_seed1.log", "training.train"), ("logs/figures/figure3.log", "report.voita.figure3")],
)
def test_a_clock_that_is_years_off_and_runs_backwards(scene, log: str, module: str) -> None:
    scene.arm("clock", module=f"specialized_heads.{module}", clock=60 * YEARS)
    status, printed = scene.stage(log)
    assert status == 0, printed
    assert not scene.armed()
    assert scene.differences() == []
