"""Files, formats, bytes, escapes and colours: what holds for every figure and table."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from specialized_heads.experiment.figures import RESULTS, Result
from specialized_heads.report import make as maker
from specialized_heads.report.data import Tables

NASTY = "_100% of $x_1 & #{a}~b\\c | <d> ^"
SETTINGS = {"tables/environment": {"engines": [], "device": "cpu"}}
EACH = pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.stem)


@pytest.fixture
def everything(make) -> Tables:
    """A corpus that is pruned in every way, with two seeds, one that is not, and a task."""
    heads, log = (
        make.heads(),
        pd.DataFrame({"update": [5, 9], "loss": [4.0, 3.0], "dev_loss": [None, 2.0]}),
    )
    analysed = {"baseline": heads.assign(relevance_z_plus=heads["relevance"], halves_z_plus=0.5)}
    analysed |= dict.fromkeys(("checkpoint/update5", "checkpoint/update9", "baseline/seed2"), heads)
    analysed |= {
        "pruned/encoder_lambda0.01": make.without(heads, 5),
        "pruned/all_heads12": heads.iloc[::6],
    }
    others = ("count/all_lambda0.01", "checkpoint/update9", "pruned/all_heads12")
    others += ("cut/importance_encoder_heads5", "finetuned/importance_encoder_heads5")
    models = make.sweep(seeds=(1, 2), retrain=("all", "encoder")) + [
        make.model(name, loss=2.0) for name in others
    ]
    score = {"metric": "accuracy", "majority": 5.0}
    score |= dict.fromkeys(("bag_of_words", "bag_of_words_low", "bag_of_words_high"), 6.0)
    task = [make.model(name, **score) for name in ("baseline", "pruned/all_lambda0.01")]
    ablated = pd.concat(
        [make.ablation(), make.ablation(on="second"), make.systematic()], ignore_index=True
    )
    of_task = ablated[ablated["type"].fillna("encoder") == "encoder"].assign(**score)
    gates = log.assign(open_encoder=[[[0.5] * 8] * 3, [[0.9] * 8] * 3])
    logs = {"baseline": log, "baseline/seed2": log, "pruned/encoder_lambda0.01": gates}
    return make.tables(
        models={NASTY: models, "EN-RU": make.sweep(6, 8, lambdas=()), "Halves": task},
        heads={NASTY: analysed, "EN-RU": make.heads(6, 8, relations=("nsubj", "det"))},
        logs={NASTY: logs, "Halves": logs},
        ablation={NASTY: ablated, "Halves": of_task},
        relations={NASTY: make.relations(), "EN-RU": make.relations(relations=("nsubj", "det"))},
    )


@pytest.fixture
def bare(make) -> Tables:
    """The baseline of one corpus."""
    log = pd.DataFrame({"update": [5], "loss": [4.0], "dev_loss": [3.0]})
    known = {"heads": make.heads(), "relations": make.relations(), "logs": log}
    return make.tables(**{name: {"EN-FR": table} for name, table in known.items()})


def written(stage, tables: Tables, result: Result) -> Path:
    stem = stage(result.stem, tables, SETTINGS.get(result.stem))
    files = stem.parent.glob(f"{stem.name}.*")
    assert {path.suffix[1:] for path in files if path.stat().st_size} == set(result.suffixes)
    return stem


@EACH
def test_every_result_is_made_in_all_its_formats_with_any_title(
    result: Result, everything, stage
) -> None:
    rows = pd.read_csv(written(stage, everything, result).with_suffix(".csv"))
    if "corpus" in rows and len(rows):
        assert rows["corpus"].str.contains(NASTY, regex=False).any() or set(rows["corpus"]) <= {
            "EN-RU",
            "Halves",
        }
    # Without the files that they read beside the tables, some have nothing to show.
    assert len(rows) > 0 or {"data_card", "figure5", "task_speed"} & {Path(result.stem).name}


@EACH
def test_every_result_can_be_asked_for_where_nothing_is_pruned(result: Result, bare, stage) -> None:
    written(stage, bare, result)


@pytest.mark.parametrize("stem", ["tables/controls", "tables/alone"])
def test_a_table_says_that_it_has_nothing_to_show(bare, stage, stem: str) -> None:
    bare = bare._replace(models=bare.models.assign(kind="checkpoint"))
    assert "| nothing to show |" in stage(stem, bare).with_suffix(".md").read_text()


@pytest.mark.parametrize("name", ["", "figures.costs", "figures.costs figure99"])
def test_a_name_that_is_no_figure_is_an_error_of_one_line(name: str) -> None:
    words = [f"specialized_heads.report.{name}"] * bool(name)
    command = [sys.executable, "-m", "specialized_heads.report.make", *" ".join(words).split()]
    done = subprocess.run([*command, "--data", "data"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f"{' '.join(words)!r}: no such figure or table; src/" in done.stderr


def test_bytes_do_not_depend_on_the_run(bare, stage, tmp_path: Path) -> None:
    stage("figures/figure1", bare)
    module = ["specialized_heads.report.figures.relevance", "figure1"]
    command = [sys.executable, "-m", "specialized_heads.report.make", *module]
    made = []
    for run in ("1", "2"):
        path = os.pathsep.join(filter(None, sys.path))
        environment = os.environ | {
            "PYTHONHASHSEED": run,
            "SOURCE_DATE_EPOCH": run,
            "PYTHONPATH": path,
        }
        folder = tmp_path / run / "figures"
        files = ["--data", str(tmp_path / "data"), "--output", str(folder / "f")]
        subprocess.run([*command, *files], env=environment, check=True)
        made.append(
            {suffix: (folder / f"f.{suffix}").read_bytes() for suffix in ("pdf", "png", "csv")}
        )
    assert made[0] == made[1]
    assert b"CreationDate" not in made[0]["pdf"]


def test_titles_that_begin_with_hebrew_are_laid_out_from_the_left() -> None:
    figure = Figure()
    figure.suptitle("שלום: two\nlines")
    maker._settle(figure)
    assert figure.get_suptitle() == "\u200eשלום: two\n\u200elines"


def saved(folder: Path, suffix: str, **columns: list[str]) -> list[str]:
    """The lines of a table in one of its formats."""
    shown = pd.DataFrame(columns)
    maker.save_table(
        folder / "table", shown, shown, caption="50% of $x$ {caption} & <i>", notes=["a|b"]
    )
    return (folder / f"table.{suffix}").read_text(encoding="utf-8").splitlines()


def test_markdown_cells_keep_their_columns(tmp_path: Path) -> None:
    caption, _, header, rule, row, _, note = saved(
        tmp_path, "md", corpus=["a | b_c"], BLEU=["27.1 [26, 28]"]
    )
    assert caption == r"50% of \$x\$ \{caption\} &amp; &lt;i>"
    assert (header, rule) == ("| corpus | BLEU |", "| --- | --- |")
    assert (row, note) == (r"| a \| b\_c | 27.1 \[26, 28\] |", r"a\|b")


def test_pages_show_text_as_it_is(tmp_path: Path) -> None:
    page = "\n".join(saved(tmp_path, "html", a=["<script>x</script>", "1,000"], n=["", "2"]))
    assert "<script" not in page and "http" not in page
    assert "{caption} &amp; &lt;i&gt;</p>" in page
    # A column of numbers alone is aligned to the right.
    assert "td:nth-child(2) { text-align: right; }" in page and "td:nth-child(1)" not in page
    assert page.index("</table>") < page.index("<p>a|b</p>")
