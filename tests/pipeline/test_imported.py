"""A MarianMT model as the baseline of an experiment, from its folder to figures, pruned models and exports."""

import json

import pyarrow.parquet as pq
import pytest
from workflows import ROOT

from specialized_heads.exchange.export_to import export_to
from specialized_heads.exchange.import_model import read_model

CORPUS = "tatoeba_en_fr"


@pytest.fixture
def experiment(project):
    """The smoke experiment on one corpus, with a model that ends its sentences."""
    published = pytest.importorskip("published")
    pairs = pq.read_table(ROOT / "resources" / CORPUS / "corpus.parquet", columns=["source", "target"]).slice(0, 2000)
    folder = project.root / "models" / "theirs"
    published.write_tokeniser(folder, {side: pairs[side].to_pylist() for side in ("source", "target")})
    published.copying(published.marian()).save_pretrained(folder)  # at the limit of the length, searches differ
    values = project.settings()
    values["experiment"] = "theirs"
    values["corpora"] = {CORPUS: values["corpora"][CORPUS] | {"baseline": {"model": "models/theirs"}}}
    values["pruning"] |= {"encoder": [0.01], "all": [0.01], "heads": [3], "retrain": [], "updates": 20}
    for section in ("vocabulary", "model"):
        del values[section]
    return project, values


def test_an_imported_model_is_analysed_pruned_and_exported(experiment) -> None:
    project, values = experiment
    workflow = project.configured(values)
    run = workflow.run()
    assert run.status == 0, run.printed
    assert {"import_model", "given_bpe", "given_baseline", "prune", "view_heads", "table"} <= run.rules
    assert not {"bpe", "train_baseline"} & run.rules
    results = project.root / "results" / "theirs"
    heads = pq.read_table(results / CORPUS / "heads/baseline/seed1.parquet").to_pandas()
    assert len(heads) == 24
    assert heads["confidence"].between(0, 1).all()
    pruned = json.loads((results / CORPUS / "models/pruned/encoder_heads3/seed1/model.json").read_text())
    assert sum(map(len, pruned["architecture"]["encoder"])) == 3
    assert pruned["architecture"]["post_norm"]
    exported = f"{CORPUS}/export/pruned/encoder_heads3/seed1"
    run = workflow.run(f"results/theirs/{exported}/model.json")
    assert run.status == 0, run.printed
    texts = pq.read_table(results / CORPUS / "corpus/test.parquet")["source"].to_pylist()
    for engine in ("ctranslate2", "hf"):
        compared = export_to(results / exported, project.root / engine, to=engine, texts=texts)
        assert compared.sentences == len(texts)
        assert compared.same + compared.rounding == len(texts)
    model, _ = read_model(project.root / "hf")  # again dense, with heads of zeros
    assert sum(map(len, model.architecture.encoder)) == 8


def test_what_an_imported_model_brings_with_it_is_not_configured(experiment) -> None:
    project, values = experiment
    for section, key in (("vocabulary", "source"), ("model", "layers")):
        run = project.configured(values | {section: {key: 1000}}).run("--dry-run")
        assert run.status == 1
        assert (
            f"corpora.{CORPUS}.baseline: an imported model has its own {section}; remove {section}.{key}" in run.printed
        )
