"""A disk that takes no more: the job says which file, nothing half is left, and with more room the same command ends well."""

import shutil
import subprocess
import sys

import pytest

RU, FR = "libreoffice_en_ru", "tatoeba_en_fr"
MODEL = f"{RU}/models/baseline/seed1"

# A stage, the module that is limited, bytes that a file may have, and the file that it says it cannot write.
LIMITED = {
    "text": (f"{RU}/logs/corpus_raw.log", "corpus.raw", 100_000, f"{RU}/corpus/raw.parquet"),
    "waiting_text": (f"{RU}/logs/corpus_clean.log", "corpus.clean", 20_000, f"{RU}/corpus/clean.parquet"),
    "waiting_tokens": (f"{RU}/logs/tokens_train.log", "corpus.tokens", 2_000, f"{RU}/corpus/tokens/train.safetensors"),
    "table": (f"{FR}/logs/relations.log", "parsing.relations", 500, f"{FR}/parses/relations.parquet"),
    "figure": ("logs/figure3.log", "report.figure3", 8_000, "figures/figure3.pdf"),
}


@pytest.mark.parametrize(("log", "module", "largest", "file"), LIMITED.values(), ids=LIMITED)
def test_a_file_that_may_not_grow(scene, log: str, module: str, largest: int, file: str) -> None:
    """`ulimit -f`, which anybody may set; to a program it looks as a quota does."""
    scene.arm("limit", module=f"specialized_heads.{module}", largest=largest)
    status, said = scene.stage(log)
    assert status == 2, said
    assert f"error: results/smoke/{file}: larger than files may be here" in said
    assert "Traceback" not in said
    assert scene.armed() == []
    status, said = scene.stage(log)
    assert status == 0, said
    assert scene.differences() == []


# With both disks small, then with more room; what came of it is copied out, as the disks go with the script.
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
        pytest.skip("file systems cannot be mounted here, not even privately")
    root, models, corpus = scene.project.root, f"results/smoke/{RU}/models/baseline", f"results/smoke/{FR}/corpus"
    targets = [f"results/smoke/{MODEL}/model.safetensors", f"results/smoke/{FR}/corpus/raw.parquet"]
    command = [sys.executable, "-m", "snakemake", "--configfile", scene.project.configuration, "--cores", "2"]
    script = ["sh", "-c", SCRIPT, "sh", models, corpus, *command, "--keep-going", *targets]
    subprocess.run([*private, *script], cwd=root, env=scene.environment, check=True)
    said = (root / "first.log").read_text(encoding="utf-8")
    assert (root / "first").read_text() != "0\n"
    assert f"error: results/smoke/{MODEL}.state/state.pt: the disk is full; free some space and run again" in said
    assert f"error: results/smoke/{FR}/corpus/raw.parquet: the disk is full; free some space and run again" in said
    assert (root / "second").read_text() == "0\n", (root / "second.log").read_text(encoding="utf-8")[-3000:]
    for copy, names in (
        ("models", ("seed1/model.safetensors", "seed1/model.json")),
        ("corpus", ("raw.parquet", "raw.json")),
    ):
        folder = {"models": f"{RU}/models/baseline", "corpus": f"{FR}/corpus"}[copy]
        for name in names:
            assert (root / copy / name).read_bytes() == scene.undisturbed.file(f"{folder}/{name}").read_bytes(), name
        assert not [path for path in (root / copy).rglob("*") if path.name.startswith(".")]
    assert not (root / "models" / "seed1.state").exists()
