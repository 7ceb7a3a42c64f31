"""The five tables, gathered from the files of a tiny experiment."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from specialized_heads.experiment.file import load as load_experiment
from specialized_heads.experiment.file import read
from specialized_heads.report import gather
from specialized_heads.report.data import Tables, in_order_of_importance, load
from specialized_heads.stage import UserError

HEAD = {"type": ["encoder", "encoder"], "layer": [1, 2], "head": [1, 3]}
SCORE = {
    "score": 80.0,
    "score_low": 78.0,
    "delta": -3.0,
    "delta_low": -5.0,
    "p_value": 0.5,
    "sentences": 9,
}
CORPORA = {"a": {"title": "A", "beam": 4}, "halves": {"title": "Halves"}}


@pytest.fixture
def gathered(tmp_path: Path, call: Callable) -> Callable[..., pd.DataFrame]:
    """`gathered("heads", {path: content}, {pattern: [(corpus, model, seed)]})`: a table from files
    of this experiment."""
    results = tmp_path / "results/e"

    def run(
        table: str, files: dict[str, object], owners: dict[str, list[tuple]], **more: object
    ) -> pd.DataFrame:
        for name, content in files.items():
            path = results / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, pd.DataFrame):
                content.to_parquet(path)
            else:
                path.write_text(
                    content if isinstance(content, str) else json.dumps(content), encoding="utf-8"
                )
        settings = {"table": table, "experiment": "e", "corpora": CORPORA, "files": owners} | more
        call(gather.table, settings=settings, output=results / f"data/{table}.parquet")
        rows = pd.read_parquet(results / f"data/{table}.parquet")
        assert rows.columns[: len(gather.KEYS)].tolist() == list(gather.KEYS)
        types = rows.dtypes[["lam", "target_heads", "seed", "update"]]
        assert types.astype(str).tolist() == ["float64", "Int64", "Int64", "Int64"]
        return rows

    return run


def test_models_have_their_scores_sizes_gates_and_keys(gathered) -> None:
    sizes = {"width": 8, "source_vocabulary": 100, "target_vocabulary": 200}
    sizes |= {"encoder": [[0, 2], []], "decoder": [[1]], "cross": [[0, 1]]}
    described = {
        "architecture": sizes,
        "parameters": 10_000,
        "training": {"training": {"updates": 30}},
    }
    gated = described | {"architecture": sizes | {"tied": "all"}}
    gated["training"] = described["training"] | {"gates": {"decided": 0.9}}
    of_task = {"architecture": {"encoder": [[0, 1]]}, "parameters": 5, "training": {}}
    models = {"a/models/baseline": described, "a/models/checkpoint/update20": described}
    models |= {"a/models/pruned/all_heads5": gated}
    files, log = (
        {},
        '{"update": 10, "dev_loss": 2.5}\n{"update": 20, "dev_loss": 2.25}\n{"update": 30, "loss": '
        "1.0}\n",
    )
    for name, description in (models | {"halves/models/baseline": of_task}).items():
        score = (
            {"bleu": 30.0}
            if name in models
            else {"metric": "accuracy", "test": SCORE, "second": SCORE}
        )
        contents = {"model.json": description, "score.json": score, "log.jsonl": log}
        files |= {f"{name}/seed1/{file}": content for file, content in contents.items()}
    known = {"majority": 50.0, "bag_of_words": {"score": 61.0, "score_low": 60.0, "delta": 1.0}}
    files["halves/baselines.json"] = {"test": known, "second": known | {"majority": 40.0}}
    owners = [("a", name.removeprefix("a/models/"), 1) for name in models] + [
        ("halves", "baseline", 1)
    ]
    rows = gathered("models", files, {"{corpus}/models/{model}/seed{seed}/": owners})

    assert rows["kind"].tolist() == ["baseline", "checkpoint", "pruned", "baseline"]
    assert rows[["target_heads", "update"]].fillna(0).values.tolist() == [
        [0, 0],
        [0, 20],
        [5, 0],
        [0, 0],
    ]
    assert rows["title"].tolist() == ["A"] * 3 + ["Halves"] and rows.loc[0, "beam"] == 4
    assert rows["updates"].tolist() == [30, 20, 30, 0]
    assert rows["dev_loss"].fillna(0).tolist() == [2.25, 0, 2.25, 2.25]
    assert rows.loc[0, ["encoder_heads", "decoder_heads", "cross_heads"]].tolist() == [2, 1, 2]
    assert rows.loc[0, "encoder_layers"].tolist() == [2, 0]
    assert rows["parameters_without_embeddings"].tolist()[1:3] == [
        10_000 - 8 * 500,
        10_000 - 8 * 100,
    ]
    assert rows["gates_decided"].fillna(0).tolist() == [0, 0, 0.9, 0]
    # The scores of a task are in the columns of BLEU.
    score = [
        "metric",
        "bleu",
        "bleu_low",
        "difference",
        "difference_low",
        "majority",
        "second_bleu",
        "second_majority",
    ]
    assert rows.loc[3, score].tolist() == ["accuracy", 80.0, 78.0, -3.0, -5.0, 50.0, 80.0, 40.0]
    assert rows.loc[3, ["bag_of_words", "bag_of_words_low"]].tolist() == [61.0, 60.0]
    assert set(rows["metric"][:3]) == {"BLEU"}


def test_heads_have_their_relevance_by_every_rule(gathered) -> None:
    table = pd.DataFrame(HEAD | {"relevance": [0.5, 1.0], "functions": [["positional"], []]})
    files = {f"a/heads/{name}/seed1.parquet": table for name in ("baseline", "checkpoint/update7")}
    # In another order, and with a head more.
    rules = pd.DataFrame(
        {"type": ["encoder"] * 3, "layer": [2, 1, 1], "head": [3, 1, 2], "z_plus": [0.2, 0.1, 0.3]}
    )
    files["a/relevance/baseline/seed1.parquet"] = rules.assign(z_plus_error=rules["z_plus"] / 10)
    halves = [{"layer": 1, "top_head": 0.75}, {"layer": 2, "top_head": 0.25}]
    files["a/relevance/baseline/seed1.json"] = {"stability": {"z_plus": {"encoder": halves}}}
    owners = {
        "{corpus}/heads/{model}/seed{seed}.parquet": [
            ("a", "baseline", 1),
            ("a", "checkpoint/update7", 1),
        ]
    }
    rows = gathered("heads", files, owners, by_rule=["a"])
    assert rows[["layer", "head"]].values.tolist() == [[1, 1], [2, 3]] * 2
    assert rows["relevance_z_plus"].fillna(0).tolist() == [0.1, 0.2, 0, 0]
    assert rows["relevance_z_plus_error"].fillna(0).tolist() == pytest.approx([0.01, 0.02, 0, 0])
    assert rows["halves_z_plus"].fillna(0).tolist() == [0.75, 0.25, 0, 0]
    assert rows["update"].fillna(0).tolist() == [0, 0, 7, 7]
    assert rows["functions"].map(list).tolist() == [["positional"], []] * 2


def test_logs_have_gates_by_layer_also_where_a_layer_has_none(gathered) -> None:
    gates = {"cross.1": [0.5], "cross.3": [0.25, 0.75], "encoder.1": [0.1]}
    text = (
        json.dumps({"update": 5, "loss": 2.0, "open": gates})
        + "\n"
        + '{"update": 9, "loss": 1.0}\n'
    )
    path = "a/models/pruned/all_lambda0.01/seed1/log.jsonl"
    owners = {"{corpus}/models/{model}/seed{seed}/log.jsonl": [("a", "pruned/all_lambda0.01", 1)]}
    rows = gathered("logs", {path: text}, owners)
    assert rows[["lam", "update", "loss"]].values.tolist() == [[0.01, 5, 2.0], [0.01, 9, 1.0]]
    assert [list(layer) for layer in rows.loc[0, "open_cross"]] == [[0.5], [], [0.25, 0.75]]
    assert rows.loc[1, "open_encoder"] is None
    with pytest.raises(UserError, match=r"log\.jsonl: damaged .* delete it and run again"):
        gathered("logs", {path: "{"}, owners)


def test_ablation_tells_its_sets_and_methods_apart(gathered) -> None:
    single = pd.DataFrame(HEAD | {"what": "without", "bleu": 29.0})[:1]
    of_task = pd.DataFrame(
        HEAD | {"what": "alone", "score": 79.0, "score_full": 80.0, "metric": "accuracy"}
    )[:1]
    steps = pd.DataFrame(
        {"pruned": ["all"], "removed": [1], "heads": [2], "share": [0.5], "bleu": [20.0]}
    )
    files = {
        "a/ablation/baseline/seed1.parquet": single,
        "a/ablation/baseline/seed1.second.parquet": single,
    }
    files |= {
        "halves/ablation/baseline/seed1.parquet": of_task,
        "a/systematic/checkpoint/update5/seed1.parquet": steps,
    }
    pattern, baseline = "{corpus}/ablation/{model}/seed{seed}", ("a", "baseline", 1)
    owners = {
        f"{pattern}.parquet": [baseline, ("halves", "baseline", 1)],
        f"{pattern}.second.parquet": [baseline],
    }
    owners["{corpus}/systematic/{model}/seed{seed}.parquet"] = [("a", "checkpoint/update5", 1)]
    rows = gathered("ablation", files, owners)
    assert rows[["what", "measured_on", "systematic", "metric", "bleu"]].values.tolist() == [
        ["without", "test", False, "BLEU", 29.0],
        ["alone", "test", False, "accuracy", 79.0],
        ["without", "second", False, "BLEU", 29.0],
        ["all", "test", True, "BLEU", 20.0],
    ]
    assert rows.loc[1, "bleu_full"] == 80.0 and rows.loc[3, "update"] == 5
    # Without steps, their columns are there, and no row is one.
    alone = gathered("ablation", files, {f"{pattern}.parquet": [baseline]})
    assert len(in_order_of_importance(Tables(*[alone] * len(Tables._fields)))) == 0 < len(alone)


def test_relations_belong_to_no_model_and_tables_can_be_empty(gathered) -> None:
    table = pd.DataFrame({"relation": ["obj"], "direction": ["head_to_dependent"], "arcs": [5]})
    owners = {"{corpus}/parses/relations.parquet": [("a", "baseline", 1)]}
    rows = gathered("relations", {"a/parses/relations.parquet": table}, owners)
    assert rows["least_arcs"].tolist() == [30] * len(rows) and set(rows["syntactic_margin"]) == {
        0.1
    }
    assert (
        rows.loc[0, ["corpus", "arcs"]].tolist() == ["a", 5]
        and rows.loc[0, ["kind", "seed"]].isna().all()
    )
    assert {"relation", "direction"} <= set(gathered("relations", {}, {}))


def test_a_figure_of_pruning_shows_the_first_corpus_with_pruned_models(
    make, tmp_path: Path
) -> None:
    pruned = {"B": "pruned/all_heads5", "A": "pruned/encoder_heads5"}
    tables = make.tables(
        models={title: [make.model(), make.model(name)] for title, name in pruned.items()}
    )
    assert [tables.swept(*scopes) for scopes in (("encoder", "all"), ("encoder",), ("none",))] == [
        "B",
        "A",
        "B",
    ]
    assert len(load([tmp_path / "made_up"] * 2).models) == 2 * 4  # of two experiments


@pytest.mark.parametrize("name", ["config.yaml", "config/paper.yaml", "config/bert_small.yaml"])
def test_the_written_configuration_is_the_same_experiment(
    name: str, call: Callable[..., None], tmp_path: Path
) -> None:
    given = load_experiment(read(Path(__file__).parents[2] / name))
    call(
        gather.configuration,
        settings=given.model_dump(mode="json"),
        output=tmp_path / "configuration.yaml",
    )
    written = read(tmp_path / "configuration.yaml")
    assert load_experiment(written) == given
    # a key that files may leave out
    assert written["heads"]["checkpoints"] == given.heads.checkpoints
