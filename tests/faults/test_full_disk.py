"""A full disk: the job names the file and leaves nothing incomplete, and with more room the same command succeeds."""

import shutil
import subprocess
import sys

import pytest
from workflows import ENVIRONMENT

RU, FR = "libreoffice_en_ru", "tatoeba_en_fr"
MODEL = f"{RU}/models/baseline/seed1"


@pytest.mark.parametrize(
    ("log", "module", "largest", "file"),
    [
        (f"{RU}/logs/corpus_clean.log", "corpus.clean", 20_000, f"{RU}/corpus/clean.parquet"),
        (f"{RU}/logs/tokens_train.log", "corpus.tokens", 2_000, f"{RU}/corpus/tokens/train.safetensors"),
        (f"{FR}/logs/relations.log", "parsing.relations", 500, f"{FR}/parses/relations.parquet"),
        ("logs/figures/figure3.log", "report.voita.figure3", 8_000, "figures/figure3.pdf"),
    ],
    ids=["waiting_text", "waiting_tokens", "table", "figure"],
)
def test_a_file_larger_than_the_limit(scene, log: str, module: str, largest: int, file: str) -> None:
    """`largest` bytes, as `ulimit -f` sets; to a program a quota looks the same."""
    scene.arm("limit", module=f"specialized_heads.{module}", largest=largest)

    status, printed = scene.stage(log)

    assert status == 2, printed
    assert f"error: results/smoke/{file}: the file would exceed the size limit" in printed
    assert "Traceback" not in printed
    assert not scene.armed()
    status, printed = scene.stage(log)
    assert status == 0, printed
    assert scene.differences() == []


# Runs the command with two small disks, then with more room. The results are copied, because the disks vanish with the script.
SCRIPT = """
models=$1 corpus=$2; shift 2
mount -t tmpfs -o size=1m none "$models" && mount -t tmpfs -o size=1m none "$corpus" || exit 77
"$@" > first.log 2>&1
echo $? > first
mount -o remount,size=50m "$models" && mount -o remount,size=50m "$corpus"
"$@" > second.log 2>&1
echo $? > second
cp -a "$models" models; cp -a "$corpus" corpus
"""


def test_a_full_disk(scene) -> None:
    """Two small disks, one for a model in training, one for a text."""
    private = ["unshare", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*private, "mount", "-t", "tmpfs", "none", "/mnt"]).returncode:
        pytest.skip("this machine does not allow mounting file systems, even privately")
    root, models, corpus = scene.project.root, f"{RU}/models/baseline", f"{FR}/corpus"
    targets = [f"results/smoke/{MODEL}/model.safetensors", f"results/smoke/{FR}/corpus/raw.parquet"]
    command = [sys.executable, "-m", "snakemake", "--configfile", scene.project.configuration, "--cores", "2"]
    script = ["sh", "-c", SCRIPT, "sh", f"results/smoke/{models}", f"results/smoke/{corpus}"]

    subprocess.run([*private, *script, *command, "--keep-going", *targets], cwd=root, env=ENVIRONMENT, check=True)

    printed = (root / "first.log").read_text(encoding="utf-8")
    assert (root / "first").read_text() != "0\n"
    for file in (f"{MODEL}.state/state.pt", f"{FR}/corpus/raw.parquet"):
        assert f"error: results/smoke/{file}: the disk is full; free some space and run again" in printed
    assert (root / "second").read_text() == "0\n", (root / "second.log").read_text(encoding="utf-8")[-3000:]
    for copy, folder, names in (
        ("models", models, ("seed1/model.safetensors", "seed1/model.json")),
        ("corpus", corpus, ("raw.parquet", "raw.json")),
    ):
        for name in names:
            assert (root / copy / name).read_bytes() == scene.undisturbed.file(f"{folder}/{name}").read_bytes(), name
        assert not [path for path in (root / copy).rglob("*") if path.name.startswith(".")]
    assert not (root / "models" / "seed1.state").exists()
