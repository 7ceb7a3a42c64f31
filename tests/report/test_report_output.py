"""Files, formats, bytes, escapes and colours: what holds for every figure and table."""

import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from specialized_heads.report.inputs import HEAD_COLUMNS, Files

from specialized_heads.report import cells, output, style
from specialized_heads.report.voita import figure1, figure2, figure7
from specialized_heads.stage import UserError

NASTY = "_100% of $x_1 & #{a}~b\\c | <d> ^"
CAPTIONS = Path(__file__).parents[2] / "workflow" / "report"


@pytest.fixture
def run_all(stage, write, make):
    """Run every module on one made-up experiment with two corpora; return their stems."""

    def run(titles: list[str]) -> dict[str, Path]:
        tables = make.heads(), make.heads(6, 8, seed=1)
        heads = [write(f"heads{number}.parquet", table) for number, table in enumerate(tables)]
        relations = [write(f"relations{number}.parquet", make.relations(seed=number)) for number in range(2)]
        scores = [write("s0.parquet", make.scores()), write("s1.parquet", make.scores(6, 8, seeds=(1, 2)))]
        sentences = ["▁the ▁cat ▁sat", "▁$1 ▁a_b ▁{", "▁Мария ▁читает ▁книгу"]
        examples = [write("examples.json", make.examples(sentences))]
        pruned = write("pruned.parquet", make.without(tables[0], 5))
        runs = make.as_runs(["baseline/seed1", "pruned/encoder_lambda0.01/seed1"])
        return {
            "figure1": stage("figure1", {"titles": titles[:1]}, heads=heads[:1]),
            "figure2": stage("figure2", {"titles": titles[1:]}, heads=heads[1:]),
            "figure3": stage("figure3", {"titles": titles[:1]}, relations=relations[:1]),
            "figure4": stage("figure4", {"titles": titles}, heads=heads, relations=relations),
            "figure5": stage("figure5", {"titles": titles[:1]}, examples=examples),
            "figure6": stage("figure6"),
            "figure7": stage("figure7", {"titles": titles}, scores=scores),
            "figure8": stage("figure8", {"title": titles[0], "runs": runs}, heads=[heads[0], pruned]),
            "figure9": stage("figure9", {"titles": titles}, scores=scores),
            "figure10": stage("figure10", {"titles": titles}, scores=scores),
            "table1": stage("table1", {"titles": titles}, heads=heads, relations=relations),
            "table2": stage("table2", {"titles": titles}, scores=scores),
        }

    return run


def test_every_module_writes_all_its_formats_with_any_title(run_all):
    for name, stem in run_all([NASTY, "EN-RU"]).items():
        for suffix in ("md", "tex", "html") if name.startswith("table") else ("pdf", "svg", "png"):
            assert stem.with_name(f"{name}.{suffix}").stat().st_size > 500, (name, suffix)
        assert len(pd.read_csv(stem.with_name(f"{name}.csv"))) > 0


def test_titles_are_shown_as_they_are_and_never_as_mathematics(make):
    figure = figure7.draw(figure7.numbers({NASTY: make.scores()}))
    assert any(NASTY in text.replace("\n", " ") for text in make.texts(figure))
    figure.draw_without_rendering()  # an unpaired $ would be an error for mathematics


@pytest.mark.parametrize("module", ["figure1", "figure6"])
def test_bytes_do_not_depend_on_the_run(module, write, make, tmp_path):
    heads = write("heads.parquet", make.heads())
    command = [sys.executable, "-m", "specialized_heads.report.make", f"specialized_heads.report.voita.{module}"]
    if module == "figure1":
        command += ["--heads", str(heads), "--settings", '{"titles": ["EN-FR"]}']
    made = []
    for run in ("1", "2"):
        path = os.pathsep.join(filter(None, sys.path))
        environment = os.environ | {"PYTHONHASHSEED": run, "SOURCE_DATE_EPOCH": run, "PYTHONPATH": path}
        subprocess.run([*command, "--output", str(tmp_path / run / "f")], env=environment, check=True)
        made.append({suffix: (tmp_path / run / f"f.{suffix}").read_bytes() for suffix in ("pdf", "svg", "png", "csv")})
    for suffix in made[0]:
        assert made[0][suffix] == made[1][suffix], suffix
    assert b"CreationDate" not in made[0]["pdf"]
    assert b"<dc:date>" not in made[0]["svg"]


def test_fonts_of_figures_are_embedded_as_outlines(tmp_path):
    output.save_figure(tmp_path / "one", pd.DataFrame({"x": [1]}), lambda: style.message_figure("λ 50% → “è”"))
    fonts = re.findall(rb"/Subtype /(Type3|Type42|TrueType|CIDFontType2|Type1)\b", (tmp_path / "one.pdf").read_bytes())
    assert fonts and b"Type3" not in fonts


def test_figures_have_the_width_of_a_column(make):
    heads = cells.ranked_heads({"EN-FR": make.heads()})
    assert figure1.draw(heads, titles=["EN-FR"]).get_figwidth() == style.DOUBLE
    assert figure2.draw(heads, titles=["EN-FR"]).get_figwidth() == style.SINGLE


def test_the_style_does_not_depend_on_the_users_settings():
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black"}):
        with style.sheet():
            assert matplotlib.rcParams["font.size"] == 7
            assert matplotlib.rcParams["axes.facecolor"] == "white"
        assert matplotlib.rcParams["font.size"] == 30


def test_each_function_has_its_own_colour_and_hatch():
    assert list(style.FUNCTIONS) == ["positional", "syntactic", "rare words", "other"]
    assert len({fill.colour for fill in style.FUNCTIONS.values()}) == 4
    assert len({fill.hatch for fill in style.FUNCTIONS.values()}) == 4
    axes = Figure().add_subplot()
    style.function_cell(axes, ["positional", "rare words"], left=0, bottom=0, width=1, height=1)
    first, second, frame = axes.patches
    assert to_hex(first.get_facecolor()).upper() == style.FUNCTIONS["positional"].colour
    assert to_hex(second.get_facecolor()).upper() == style.FUNCTIONS["rare words"].colour
    assert first.get_width() == second.get_width() == 0.5
    assert (first.get_hatch(), second.get_hatch()) == ("/////", "xxxxx")
    assert not frame.get_fill()


def test_latex_has_no_special_letter_left():
    assert output.escape_latex(r"50% & $x_1$ #{a}~\^") == (
        r"50\% \& \$x\_1\$ \#\{a\}\textasciitilde{}\textbackslash{}\textasciicircum{}"
    )
    assert output.escape_latex("v→s <0.001 λ −1") == r"v$\to$s \textless{}0.001 $\lambda$ $-$1"


def test_no_row_gives_the_end_of_the_line_above_an_option(tmp_path):
    shown = pd.DataFrame({"corpus": ["[news] EN-RU", "* EN-RU", "EN-RU [news]"], "n": ["1", "2", "3"]})
    output.save_table(tmp_path / "table", shown, shown, caption="Titles")
    lines = (tmp_path / "table.tex").read_text(encoding="utf-8").splitlines()
    rows = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    assert rows == [r"{}[news] EN-RU & 1 \\", r"{}* EN-RU & 2 \\", r"EN-RU [news] & 3 \\"]


def test_markdown_cells_keep_their_columns(tmp_path):
    shown = pd.DataFrame({"corpus": ["a | b_c"], "BLEU": ["27.1 [26, 28]"]})
    output.save_table(tmp_path / "table", shown, shown, caption="50% of $x$")
    caption, _, header, rule, row = (tmp_path / "table.md").read_text(encoding="utf-8").splitlines()
    assert caption == r"50% of \$x\$"
    assert (header, rule) == ("| corpus | BLEU |", "| --- | --- |")
    assert row == r"| a \| b\_c | 27.1 \[26, 28\] |"


def test_mistakes_in_the_inputs_are_named(write, make, tmp_path):
    path = write("heads.parquet", make.heads().drop(columns="functions"))
    for wrong, message in ((path, "column functions is missing"), (tmp_path / "none.parquet", "no such file")):
        with pytest.raises(UserError, match=message):
            Files(HEAD_COLUMNS).several([wrong], ["EN-FR"])
    with pytest.raises(UserError, match="settings: titles: 2 titles for 1 files; give one per file"):
        Files(HEAD_COLUMNS).several([path], ["EN-FR", "EN-RU"])
    with pytest.raises(UserError, match="two are the same"):
        Files(HEAD_COLUMNS).several([path, path], ["EN-FR", "EN-FR"])


@pytest.mark.parametrize("name", ["front", "training_curves", "models", "environment"])
def test_what_sums_up_has_a_caption_of_one_sentence(name):
    (line,) = (CAPTIONS / f"{name}.rst").read_text(encoding="utf-8").splitlines()
    assert line.endswith(".")
    assert ("differs" in line) == (name == "environment")  # made anew, it is not the same


@pytest.mark.parametrize("kind, number", [("figure", n) for n in range(1, 11)] + [("table", 1), ("table", 2)])
def test_every_figure_and_table_has_a_caption_of_one_sentence(kind, number):
    (line,) = (CAPTIONS / f"{kind}{number}.rst").read_text(encoding="utf-8").splitlines()
    assert f"(Voita et al. 2019, {kind} {number}" in line and line.endswith(").")
