"""A limit of size, permissions, a clock: the job names the file and leaves nothing incomplete; then
the same command succeeds."""

import os
import shutil
import subprocess

import pytest

RU, FR = "libreoffice_en_ru", "tatoeba_en_fr"
MODEL = f"{RU}/models/baseline/seed1"


@pytest.mark.parametrize(
    ("log", "module", "largest", "file"),
    [
        (f"{RU}/logs/corpus_clean.log", "corpus.clean", 20_000, f"{RU}/corpus/clean.parquet"),
        (
            f"{RU}/logs/train_baseline_seed1.log",
            "training.train",
            20_000,
            f"{MODEL}.state/state.pt",
        ),
        ("logs/figures/figure3.log", "report.figures.syntactic", 8_000, "figures/figure3.pdf"),
    ],
)
def test_a_file_larger_than_the_limit(
    scene, log: str, module: str, largest: int, file: str
) -> None:
    """`largest` bytes, as `ulimit -f` sets; to a program a quota or a full disk looks the same."""
    scene.arm("limit", module=f"specialized_heads.{module}", largest=largest)
    status, printed = scene.stage(log)
    assert status == 2, printed
    assert f"error: results/smoke/{file}: the file would exceed the size limit" in printed
    assert "Traceback" not in printed
    assert not scene.armed()
    status, printed = scene.stage(log)
    assert status == 0, printed
    assert scene.differences() == []


# Missing permissions and wrong clocks: either results are the same bytes, or one line says what is
# wrong.

YEARS = 365.25 * 24 * 3600


@pytest.fixture(scope="module")
def unprivileged() -> tuple[str, ...]:
    """The start of a command that must respect permissions, which root does not unless it gives up
    that right."""
    rights = "-dac_override,-dac_read_search"
    command = (
        ("setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}") if os.geteuid() == 0 else ()
    )
    if command and (
        shutil.which("setpriv") is None or subprocess.run([*command, "true"]).returncode
    ):
        pytest.skip("root cannot give up its rights here")
    return command


@pytest.mark.parametrize(
    ("log", "path", "forbidden", "allowed", "error"),
    [
        (
            f"{FR}/logs/relations.log",
            f"{FR}/parses/analysis.parquet",
            0,
            0o644,
            "{path}: permission denied",
        ),
        (
            "logs/figures/figure3.log",
            "figures",
            0o555,
            0o755,
            "{path}/figure3.pdf: cannot be written; make its folder",
        ),
    ],
)
def test_a_missing_permission(
    scene, unprivileged, log, path: str, forbidden: int, allowed: int, error: str
) -> None:
    scene.file(path).chmod(forbidden)
    status, printed = scene.stage(log, before=unprivileged)
    assert (status, printed.count("error: ")) == (2, 1), printed
    assert f"error: results/smoke/{error.format(path=path)}" in printed

    scene.file(path).chmod(allowed)
    assert scene.stage(log, before=unprivileged)[0] == 0
    assert scene.differences() == []


def test_a_clock_that_is_years_off_and_runs_backwards(scene) -> None:
    scene.arm("clock", module="specialized_heads.training.train", clock=60 * YEARS)
    status, printed = scene.stage(f"{RU}/logs/train_baseline_seed1.log")
    assert status == 0, printed
    assert not scene.armed()
    assert scene.differences() == []
