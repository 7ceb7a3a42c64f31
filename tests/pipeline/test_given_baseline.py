"""A baseline kept from one experiment and given to another."""

import subprocess
import sys

import pandas as pd
import pytest
from workflows import ENVIRONMENT

from specialized_heads.model.checkpoint import load

CORPUS = "tatoeba_en_fr"
BASELINE = f"{CORPUS}/models/baseline/seed1/model.safetensors"


@pytest.fixture
def given(finished):
    """The smoke experiment after its baseline was kept, with a configuration that is given it and prunes it otherwise."""
    options = ["--configuration", "config/smoke.yaml", "--corpus", CORPUS, "--hours", "0.01", "--output", "kept"]
    module = "specialized_heads.training.keep_baseline"
    subprocess.run([sys.executable, "-m", module, *options], cwd=finished.root, env=ENVIRONMENT, check=True)
    values = finished.settings()
    values["experiment"] = "given"
    values["corpora"] = {CORPUS: values["corpora"][CORPUS] | {"baseline": {"model": "kept"}}}
    values["pruning"] |= {"encoder": [0.001], "all": []}
    return finished, values


def test_a_given_baseline_is_used_in_place_of_training(given) -> None:
    finished, values = given
    run = finished.configured(values).run(f"results/given/{BASELINE}")
    assert run.status == 0, run.printed
    assert {"given_bpe", "given_baseline"} <= run.rules
    assert not {"bpe", "train_baseline"} & run.rules
    trained, used = (load(finished.root / "results" / name / BASELINE) for name in ("smoke", "given"))
    for a, b in zip(trained.parameters(), used.parameters(), strict=True):
        assert (a.bfloat16().float() == b).all()


def test_a_given_baseline_is_analysed_on_gold_trees_of_other_text(given) -> None:
    finished, values = given
    words = [("Dogs", 2, "nsubj"), ("chase", 0, "root"), ("cats", 2, "obj")]
    rows = [
        f"{n}\t{word}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_" for n, (word, head, relation) in enumerate(words, start=1)
    ]
    trees = [
        "\n".join([f"# text = Dogs chase cats {n}", *rows, f"4\t{n}\t_\t_\t_\t_\t2\tobl\t_\t_", ""]) for n in range(30)
    ]
    (finished.root / "trees.conllu").write_text("\n".join([*trees, ""]), encoding="utf-8")
    (finished.root / "trees.txt").write_text("".join(f"Dogs chase cats {n}\n" for n in range(30)), encoding="utf-8")
    corpus = values["corpora"][CORPUS]
    corpus["baseline"]["analysis"] = "trees.txt"
    refused = finished.configured(values).run()
    assert refused.status == 1 and "baseline.analysis: your text has no embedded parses" in refused.printed
    corpus["override"] = {"parser": {"engine": "conllu", "path": "trees.conllu"}}
    run = finished.configured(values).run(
        "results/given/tables/table1.csv", f"results/given/{CORPUS}/parses/analysis.json"
    )
    assert run.status == 0, run.printed
    table = pd.read_csv(finished.root / "results/given/tables/table1.csv")
    arcs = table.dropna(subset="arcs").set_index(["relation", "direction"])["arcs"]
    assert arcs["nsubj"].eq(30).all() and arcs["obj"].eq(30).all()
