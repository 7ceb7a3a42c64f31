"""The rows of figures and tables: each has a module that takes its arguments, a caption, and a name of its own."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from specialized_heads.experiment.results import Result, arguments
from specialized_heads.experiment.targets import all_results, everything

from specialized_heads.experiment.configuration import Experiment, load
from specialized_heads.experiment.file import read
from specialized_heads.report import make

ROOT = Path(__file__).parents[2]
SHIPPED = load(read(ROOT / "config" / "pruning.yaml"))
BERT = load(read(ROOT / "config" / "bert_small.yaml"))
OF_BERT = [
    result for result in all_results(BERT) if result.rule not in {result.rule for result in all_results(SHIPPED)}
]
RESULTS = all_results(SHIPPED) + OF_BERT


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.rule)
def test_a_module_takes_the_arguments_of_its_row(
    result: Result, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    experiment = BERT if result in OF_BERT else SHIPPED
    stems = {name: f"results/{experiment.experiment}/{stem}" for name, stem in result.outputs.items()}
    flags = arguments(result, files=result.inputs, stems=stems)
    monkeypatch.setattr(sys, "argv", ["make", f"specialized_heads.report.{result.module}", *flags, "surplus"])

    with pytest.raises(SystemExit):  # before it reads any file
        make.main()

    assert capsys.readouterr().err.endswith("unrecognized arguments: surplus\n")
    assert "--output" in flags or "--figure" in flags


def test_every_result_has_a_caption_and_every_caption_a_result() -> None:
    captions = {path.stem for path in (ROOT / "workflow" / "report").glob("*.rst")}
    assert {result.caption for result in RESULTS} == captions - {"workflow"}


def test_rules_paths_and_labels_are_different() -> None:
    stems = [stem for result in RESULTS for stem in result.outputs.values()]
    for names in ([result.rule for result in RESULTS], stems, [result.label for result in RESULTS]):
        assert [name for name, count in Counter(names).items() if count > 1] == []


def test_everything_is_what_the_configuration_asks_for(experiment: Experiment) -> None:
    files = everything(experiment)
    assert len(set(files)) == len(files)
    made = {Path(file).stem for file in files}
    assert {"figure1", "table2", "claims", "moments", "criteria", "controls", "environment", "index"} <= made
    assert not made & {"speed", "relevance"}
    plain = load({"experiment": "e", "corpora": {"b": experiment.corpora["b"].model_dump()}})
    made = {Path(file).stem for file in everything(plain)}
    assert not made & {"moments", "criteria", "controls", "ablation", "gates"}
    assert {"figure7", "figure9", "table2"} <= made


def test_the_environment_waits_for_everything_else(experiment: Experiment) -> None:
    *others, environment = all_results(experiment)
    assert set(environment.needs) == set(everything(experiment)) - {"results/e/tables/environment.md"}
    assert not any(set(result.needs) & {"results/e/claims.md"} for result in others)


def test_training_curves_show_only_models_that_have_a_log(experiment: Experiment) -> None:
    heads = experiment.heads.model_copy(update={"checkpoints": [1]})
    results = all_results(experiment.model_copy(update={"heads": heads}))
    curves = next(result for result in results if result.rule == "training_curves")
    for corpus in curves.settings["corpora"]:
        for model in corpus["models"]:
            for seed in curves.settings["seeds"]:
                assert f"results/e/{corpus['name']}/models/{model}/seed{seed}/log.jsonl" in curves.needs


def test_an_experiment_of_tasks_alone_asks_for_nothing_of_translation() -> None:
    files = everything(BERT)
    made = {Path(file).stem for file in files}
    assert {"claims", "tasks", "task_pruning", "task_ablation", "task_moments", "task_speed", "training_curves"} <= made
    assert not made & {"figure1", "front", "models", "data_card", "figures", "scores"}
    needed = {file for result in all_results(BERT) for group in result.inputs.values() for file in group}
    assert {path.split("/")[2] for path in needed} == {"shift", "halves"}


def test_corpora_and_tasks_share_an_experiment(experiment: Experiment) -> None:
    both = experiment.model_dump() | {"classification": BERT.classification.model_dump()}
    both["pruning"] |= {"encoder": [], "heads": [], "retrain": [], "controls": [], "soft": False}
    results = all_results(load(both | {"comparison": {"criteria": []}}))
    assert {"figure7", "tasks", "claims", "models_table"} <= {result.rule for result in results}
    (claims,) = [result for result in results if result.rule == "claims"]
    assert {path.split("/")[2] for path in claims.inputs["single"]} == {"a", "shift", "halves"}
    assert claims.settings["tasks"] == ["Bigram shift", "Halves"]


def test_a_figure_of_pruning_shows_the_first_corpus_with_pruned_models(experiment: Experiment) -> None:
    bare = experiment.corpora["b"].model_dump() | {"prune": True}
    bare["override"] = {
        "pruning": {name: [] for name in ("encoder", "all", "heads", "heads_all", "retrain", "controls")}
    }
    bare["override"] |= {"comparison": {"criteria": []}}
    values = experiment.model_dump() | {"corpora": {"b": bare, "a": experiment.corpora["a"].model_dump()}}
    shown = {result.rule: result for result in all_results(Experiment.model_validate(values))}
    for rule in ("gates", "front", "drift", "survival_of_heads", "figure8", "figure9", "figure10"):
        files = [file for files in shown[rule].inputs.values() for file in files]
        assert files and all("/a/" in file for file in files), rule
