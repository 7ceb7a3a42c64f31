"""What sums an experiment up: training curves, the table of models, run times, the environment."""

import json
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from specialized_heads.report.experiment import describe
from specialized_heads.report.inputs import read_log

import specialized_heads
from specialized_heads.report.beyond import environment, training_curves
from specialized_heads.report.beyond import models as models_table
from specialized_heads.report.output import save_table
from specialized_heads.stage import UserError

NAMES = ["baseline", "pruned/encoder_lambda0.01", "scratch/all_heads12", "soft/encoder_lambda0.01"]
HEADER = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"


@pytest.fixture
def results(tmp_path, make):
    """An experiment of one corpus and two seeds with the models of `NAMES`."""
    folder = tmp_path / "results" / "small"
    kept = [[4, 4], [4, 4], [4, 4]]
    rows = []
    for seed in (1, 2):
        for name in NAMES:
            model = describe(name, corpus="EN-FR", seed=seed)
            row = make.score_row(model.kind, model.scope, model.lam, seed, 27.0 + seed, kept, asked=model.asked)
            rows.append(row | {"criterion": "", "moment": float("nan"), "chrf": 50.0, "parameters": 10_000})
            rows[-1] |= {"signature": "bleu:1", "signature_tokenised": f"tok:{seed}", "signature_chrf": "chrf:1"}
            path = folder / "en_fr" / "models" / name / f"seed{seed}"
            path.mkdir(parents=True)
            architecture = {"width": 8, "source_vocabulary": 100, "target_vocabulary": 200}
            (path / "model.json").write_text(json.dumps({"architecture": architecture}), encoding="utf-8")
            if model.kind != "soft":
                records = [{"update": 10, "loss": 5.0, "dev_loss": 4.5}, {"update": 20, "loss": 4.0 + seed}]
                records.append({"update": 25, "loss": 3.5, "dev_loss": 3.25})
                text = "".join(json.dumps(record) + "\n" for record in records)
                (path / "log.jsonl").write_text(text, encoding="utf-8")
    scores = folder / "en_fr" / "scores.parquet"
    # In another order than that of the names: rows are found by what they are of.
    pd.DataFrame(rows[::-1]).to_parquet(scores)
    return folder


def listed(names=NAMES, **more):
    return {"corpora": [{"name": "en_fr", "title": "EN-FR", "models": names} | more], "seeds": [1, 2]}


def test_a_models_name_says_what_it_is():
    known = describe("finetuned/importance_all_heads12", corpus="EN-FR", seed=3)
    assert known[:4] == ("EN-FR", "finetuned", "all", "importance")
    assert np.isnan([known.lam, known.moment]).all() and (known.asked, known.seed) == (12, 3)
    assert describe("checkpoint/update500", corpus="EN-FR", seed=1).moment == 500
    assert describe("pruned/encoder_lambda1e-05", corpus="EN-FR", seed=1).lam == 1e-5
    with pytest.raises(UserError, match="settings: 'pruned/cross_lambda1' is not the name of a model; use names such"):
        describe("pruned/cross_lambda1", corpus="EN-FR", seed=1)


def test_curves_of_every_trained_model(stage, results, make):
    stem = stage("training_curves", listed(NAMES[:3]), results=[results])
    missing = dict.fromkeys(("lam", "asked", "dev_loss"), [""])
    curves = pd.read_csv(stem.with_suffix(".csv"), keep_default_na=False, na_values=missing)
    assert len(curves) == 3 * 2 * 3
    assert curves.loc[(curves["update"] == 20) & (curves["seed"] == 2), "loss"].tolist() == [6.0] * 3
    assert curves["dev_loss"].notna().sum() == 3 * 2 * 2
    figure = training_curves.draw(curves)
    panels = [axes for axes in figure.axes if axes.axison]
    assert [len(axes.lines) for axes in panels] == [4, 6, 6]  # two seeds: training, development, the baseline's last
    assert [line.get_ydata()[0] for line in panels[1].lines[:2]] == [3.25, 3.25]
    written = make.texts(figure)
    assert "λ 0.01" in written
    assert "12 heads" in written


def test_curves_without_any_model_say_so(make, tmp_path):
    nothing = training_curves.numbers(tmp_path, corpora=[], seeds=[])
    assert "no models" in make.texts(training_curves.draw(nothing))[0].replace("\n", " ")


@pytest.mark.parametrize("text", ["", "{", '{"update": 1}\n'])
def test_a_log_that_is_none_is_named(tmp_path, text):
    (tmp_path / "log.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"log\.jsonl"):
        read_log(tmp_path / "log.jsonl")


DECODING = {"beam": 4, "length_penalty": 0.6, "max_length_ratio": 2.0}


def test_table_of_models(stage, results):
    settings = listed(logged=NAMES[:3], decoding=DECODING) | {"titles": ["EN-FR"]}
    stem = stage("models", settings, scores=[results / "en_fr" / "scores.parquet"], results=[results])
    rows = pd.read_csv(stem.with_suffix(".csv"))
    assert rows["kind"].tolist() == ["baseline", "pruned", "scratch", "soft"] * 2
    assert rows["bleu"].tolist() == [28.0] * 4 + [29.0] * 4
    assert (rows["parameters_without_embeddings"] == 10_000 - 8 * (100 + 2 * 200)).all()
    assert rows["dev_loss"].tolist()[:3] == [3.25] * 3
    assert rows.loc[rows["kind"] == "soft", "dev_loss"].isna().all()
    text = stem.with_suffix(".md").read_text(encoding="utf-8")
    assert text.count("bleu:1") == 1
    assert text.count("tok:1") == text.count("tok:2") == 1
    assert "4 hypotheses, ranked by log P / length^0.6" in text.replace("\\", "")
    assert "| EN-FR | scratch | all | 12 heads | 1 | 8/8/8 | 28.0 " in text
    assert "| 3.250 | 900 | 10,000 | 6,000 |" in text
    for path in results.rglob("model.json"):
        described = json.loads(path.read_text())
        described["architecture"]["tied"] = "all"
        path.write_text(json.dumps(described))
    stem = stage("models", settings, scores=[results / "en_fr" / "scores.parquet"], results=[results])
    tied = pd.read_csv(stem.with_suffix(".csv"))
    assert (tied["parameters_without_embeddings"] == 10_000 - 8 * 100).all()


def test_a_model_without_scores_is_named(stage, results):
    scores = results / "en_fr" / "scores.parquet"
    table = pd.read_parquet(scores)
    table[table["kind"] != "soft"].to_parquet(scores)
    with pytest.raises(UserError, match=r"scores of EN-FR: Model\(.*kind='soft'"):
        settings = listed(logged=[], decoding=DECODING) | {"titles": ["EN-FR"]}
        stage("models", settings, scores=[scores], results=[results])


def test_corpora_translated_differently_are_told_apart():
    rows = pd.DataFrame({"corpus": ["A", "B"], "signature": ["s"] * 2, "signature_tokenised": ["t"] * 2})
    rows["signature_chrf"] = "c"
    rows["sentences"] = [10, 20]

    def corpora(*penalties: float) -> list[models_table.Translated]:
        named = {"name": "", "models": [], "logged": []}
        return [
            models_table.Translated(title=title, decoding=DECODING | {"length_penalty": penalty}, **named)
            for title, penalty in zip("AB", penalties, strict=True)
        ]

    assert len(models_table.notes(rows, corpora=corpora(1.0, 1.0))) == 4
    *_, first, second = models_table.notes(rows, corpora=corpora(1.0, 0.0))
    assert first.startswith("Translation of A (10 test sentences): ")
    assert "not normalised" in second


def test_environment_names_versions_and_code(stage):
    stem = stage("environment", {"engines": ["embedded", "stanza"], "device": "cpu"})
    facts = pd.read_csv(stem.with_suffix(".csv")).set_index("name")["value"]
    assert facts["version"] == specialized_heads.__version__
    assert facts[["torch", "sacrebleu", "sentencepiece", "snakemake", "stanza"]].notna().all()
    assert len(facts["SHA-256 of the source files"]) == 64


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A git repository with a project that is not in it yet, and how git is called there."""
    if not shutil.which("git"):
        pytest.skip("no git on the PATH")
    module = tmp_path / "src" / "specialized_heads" / "__init__.py"
    module.parent.mkdir(parents=True)
    module.write_text("", encoding="utf-8")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    subprocess.run([*git, "init", "-q"], check=True)
    return tmp_path, git


def test_the_commit_is_told_with_what_was_changed_since(checkout):
    root, git = checkout
    assert environment.commit() == "not a git checkout"  # the module is not in the repository
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    name = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert environment.commit() == f"{name}, unchanged"
    (root / "results").write_text("", encoding="utf-8")
    assert environment.commit() == f"{name}, unchanged"
    (root / "src" / "new.py").write_text("", encoding="utf-8")
    assert environment.commit() == f"{name}, 1 file changed"


def test_without_git_there_is_no_commit(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert environment.commit() == "not a git checkout"


def test_tables_are_pages_that_show_text_as_it_is(tmp_path):
    shown = pd.DataFrame({"a <b>": ["<script>x</script>", "1,000"], "{}": ["27.1 [26, 28]", "−3.5"], "n": ["", "2"]})
    save_table(tmp_path / "t", shown, shown, caption="{caption} & <i>", notes=["a|b", "<c>"], tints={"2": "#eee"})
    page = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<p>{caption} &amp; &lt;i&gt;</p>" in page
    # A column of numbers alone is aligned to the right.
    assert "td:nth-child(3) { text-align: right; }" in page and "td:nth-child(1)" not in page
    assert "<td>1,000</td>" in page and '<td><mark style="background: #eee">2</mark></td>' in page
    assert page.index("</table>") < page.index("<p>a|b</p>") < page.index("<p>&lt;c&gt;</p>")
    assert "http" not in page
    assert (tmp_path / "t.md").read_text(encoding="utf-8").endswith("|\n\na\\|b\n\n&lt;c>\n")
