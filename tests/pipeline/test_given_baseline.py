"""A baseline kept from one experiment and given to another."""

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from engines import agrees
from workflows import ENVIRONMENT, ROOT

from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.exchange.export_to import export_to
from specialized_heads.exchange.import_model import read_model
from specialized_heads.model.checkpoint import load

CORPUS = "tatoeba_en_fr"
BASELINE = f"{CORPUS}/models/baseline/seed1/model.safetensors"


def test_a_given_baseline_is_used_in_place_of_training(finished) -> None:
    """The smoke experiment after its baseline was kept, with a configuration that is given it and
    prunes it otherwise."""
    options = [
        "--configuration",
        "config/smoke.yaml",
        "--corpus",
        CORPUS,
        "--hours",
        "0.01",
        "--output",
        "kept",
    ]
    command = [sys.executable, "resources/keep_baseline.py", *options]
    subprocess.run(command, cwd=finished.root, env=ENVIRONMENT, check=True)
    values = finished.settings()
    values["experiment"] = "given"
    values["corpora"] = {CORPUS: values["corpora"][CORPUS] | {"baseline": {"model": "kept"}}}
    values["pruning"] |= {"encoder": [0.001], "all": []}
    run = finished.configured(values).run(f"results/given/{BASELINE}")
    assert run.status == 0, run.printed
    assert {"given_bpe", "given_baseline"} <= run.rules
    assert not {"bpe", "train_baseline"} & run.rules
    trained, used = (
        load(finished.root / "results" / name / BASELINE) for name in ("smoke", "given")
    )
    for a, b in zip(trained.parameters(), used.parameters(), strict=True):
        assert (a.bfloat16().float() == b).all()


def test_an_imported_model_is_analysed_pruned_and_exported(project) -> None:
    """A MarianMT model as the baseline of an experiment, from its folder to figures, pruned models
    and exports."""
    published = pytest.importorskip("published")
    pairs = pq.read_table(
        ROOT / "resources" / CORPUS / "corpus.parquet", columns=["source", "target"]
    ).slice(0, 2000)
    folder = project.root / "models" / "theirs"
    published.write_tokeniser(
        folder, {side: pairs[side].to_pylist() for side in ("source", "target")}
    )
    # at the limit of the length, searches differ
    published.copying(published.marian()).save_pretrained(folder)
    values = project.settings()
    values["experiment"] = "theirs"
    values["corpora"] = {
        CORPUS: values["corpora"][CORPUS] | {"baseline": {"model": "models/theirs"}}
    }
    values["pruning"] |= {
        "encoder": [0.01],
        "all": [0.01],
        "heads": [3],
        "retrain": [],
        "updates": 20,
    }
    for section in ("vocabulary", "model"):
        del values[section]
    workflow = project.configured(values)
    run = workflow.run()
    assert run.status == 0, run.printed
    assert {
        "import_model",
        "given_bpe",
        "given_baseline",
        "prune",
        "view_heads",
        "table",
    } <= run.rules
    assert not {"bpe", "train_baseline"} & run.rules
    results = project.root / "results" / "theirs"
    # Nothing but the SentencePiece models decides about case, as in transformers.
    assert not (folder / "tokenizer_config.json").exists()
    theirs = published.transformers.AutoTokenizer.from_pretrained(folder)
    read = load_tokens(results / CORPUS / "corpus/tokens/test.safetensors")
    texts = pq.read_table(results / CORPUS / "corpus/test.parquet")["source"].to_pylist()
    assert [[*read.source_ids(n), theirs.eos_token_id] for n in range(len(read))] == theirs(texts)[
        "input_ids"
    ]
    assert theirs(texts)["input_ids"] != theirs([text.lower() for text in texts])["input_ids"]
    heads = pq.read_table(results / CORPUS / "heads/baseline/seed1.parquet").to_pandas()
    assert len(heads) == 24
    assert heads["confidence"].between(0, 1).all()
    pruned = json.loads(
        (results / CORPUS / "models/pruned/encoder_heads3/seed1/model.json").read_text()
    )
    assert sum(map(len, pruned["architecture"]["encoder"])) == 3
    assert pruned["architecture"]["post_norm"]
    exported = f"{CORPUS}/export/pruned/encoder_heads3/seed1"
    run = workflow.run(f"results/theirs/{exported}/model.json")
    assert run.status == 0, run.printed
    for engine in ("ctranslate2", "hf"):
        export_to(results / exported, project.root / engine, to=engine)
        assert agrees(project.root / engine, texts, original=results / exported)
    model, _ = read_model(project.root / "hf")  # again dense, with heads of zeros
    assert sum(map(len, model.architecture.encoder)) == 8
