"""Jobs killed at every kind of stage: the same command, repeated, ends with the bytes of the
undisturbed run.

All faults wait in one project, and each run of Snakemake gets as far as they let it.
"""

import shutil
from typing import NamedTuple

RU, FR = "libreoffice_en_ru", "tatoeba_en_fr"
MODEL = f"{RU}/models/baseline/seed1"
KILLED, HALF, TERMINATED = "job killed", "job killed in the middle of a write", "job terminated"


class Fault(NamedTuple):
    """`what` happens in a job of `rule` when `file` is about to get its name for the `number`-th
    time."""

    what: str
    rule: str
    file: str
    number: int = 1


FAULTS = {
    "corpus, one of two files written": Fault(KILLED, "corpus_raw", f"{RU}/corpus/raw.json"),
    "bpe, one of two models written": Fault(KILLED, "bpe", f"{RU}/corpus/bpe.target.model"),
    "tokens, half a file": Fault(HALF, "tokens", f"{RU}/corpus/tokens/train.safetensors"),
    "training, half a state": Fault(HALF, "train_baseline", f"{MODEL}.state/state.pt", 7),
    "training, weights without description": Fault(KILLED, "train_baseline", f"{MODEL}/model.json"),
    "translation, one of two files": Fault(TERMINATED, "translate", f"{MODEL}/translation.txt"),
    "score, half a file": Fault(HALF, "score", f"{MODEL}/score.json"),
    "relevance, table without report": Fault(
        KILLED, "relevance", f"{FR}/relevance/baseline/seed1.json"
    ),
    "figure, PDF without PNG": Fault(TERMINATED, "figure", "figures/figure3.png"),
}
# Made again: the text and the model of one corpus, and results of the other that no fault is
# upstream of.
LOST = [
    f"{FR}/models/pruned/encoder_lambda100/seed1/model.safetensors",
    f"{FR}/relevance/baseline/seed1.parquet",
    "figures/figure3.pdf",
]
TARGETS = [f"{MODEL}/score.json", f"{RU}/corpus/tokens/analysis.safetensors", *LOST]


def test_killed_jobs_are_named_and_the_same_command_ends_with_the_bytes_of_the_undisturbed_run(
    scene,
) -> None:
    for number, fault in enumerate(FAULTS.values()):
        scene.arm(f"{number}", what=fault.what, file=fault.file, number=fault.number)
    scene.lose(*LOST)
    for folder in ("corpus", "models"):
        shutil.rmtree(scene.file(f"{RU}/{folder}"))
    runs, struck_in = [], {}
    while not runs or runs[-1].status:
        assert len(runs) <= len(FAULTS), runs[-1].printed[-5000:]
        before = scene.armed()
        runs.append(scene.run(*TARGETS, options=("--keep-going",)))
        for number in before - scene.armed():
            name = list(FAULTS)[int(number)]
            struck_in[name] = len(runs) - 1
            assert (
                runs[-1].status != 0 and f"Error in rule {FAULTS[name].rule}" in runs[-1].printed
            ), name
    assert struck_in.keys() == FAULTS.keys()
    assert scene.differences() == []
    resumed = struck_in["training, weights without description"]
    assert resumed == struck_in["training, half a state"] + 1
    assert "resuming at update 6\n" in runs[resumed].printed  # the last complete state
