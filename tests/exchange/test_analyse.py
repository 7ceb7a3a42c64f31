"""The command that analyses a model on a text, without a configuration."""

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from small import ENVIRONMENT, WORDS

from specialized_heads.corpus.tokens import load_tokens
from specialized_heads.exchange import analyse as analysis
from specialized_heads.exchange.analyse import analyse, summary
from specialized_heads.stage import UserError, read_json

TEXTS = [" ".join(WORDS[start : start + 3]) for start in range(0, 60, 3)]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in TEXTS), encoding="utf-8")
    return path


def test_a_table_of_heads_and_a_viewer_come_from_a_folder_and_a_text(
    exported, text: Path, tmp_path, caplog
) -> None:
    table = analyse(exported, text, tmp_path / "out", translations=text, device="cpu")
    heads = pq.read_table(table).to_pandas()
    assert {"relevance", "confidence", "positional_share"} <= set(heads)
    assert not heads["functions"].map(lambda labels: "syntactic" in labels).any()  # no parser
    page = (tmp_path / "out" / "viewer.html").read_text(encoding="utf-8")
    assert any(line in page for line in TEXTS)
    assert all(part in page for part in ('"pruned/encoder_heads2"', "20 sentences"))
    assert "come from 20 sentences" in caplog.text
    assert "confidence" in summary(table)
    everyone = heads[heads["type"] == "encoder"]
    many = pd.concat([everyone.assign(functions=[["positional"]] * len(everyone))] * 12)
    many.to_parquet(tmp_path / "many.parquet")
    # all have a function
    assert len(summary(tmp_path / "many.parquet").splitlines()) == 1 + len(many)
    assert (tmp_path / "out" / "heads.csv").is_file()


def test_the_sentences_and_relations_of_trees_are_analysed(exported: Path, tmp_path: Path) -> None:
    trees = tmp_path / "trees.conllu"
    rows = "1\t{}\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\t{}\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
    trees.write_text("".join(rows.format(*line.split()[:2]) for line in TEXTS), encoding="utf-8")
    table = analyse(exported, None, tmp_path / "out", parser="conllu", trees=trees, device="cpu")
    report = read_json(tmp_path / "out/heads.json")
    assert report["arcs"]["nsubj"] == report["aligned"]
    assert read_json(tmp_path / "out/parses.json")["sentences_parsed"] == len(TEXTS)
    assert table.is_file()
    for wrong in ({"parser": "conllu"}, {"trees": trees}):
        with pytest.raises(UserError, match="--trees FILE and --parser conllu need each other"):
            analyse(exported, None, tmp_path / "out", **wrong)
    with pytest.raises(UserError, match="--text: missing"):
        analyse(exported, None, tmp_path / "out")


def test_the_case_of_text_is_left_to_the_tokeniser_of_a_published_model(
    saved, tmp_path: Path
) -> None:
    """By the command, of a model without tokenizer_config.json: the ids are those of
    transformers."""
    published = pytest.importorskip("published")
    folder, lines = saved(published.marian()), [*TEXTS, *map(str.title, TEXTS)]
    published.write_tokeniser(folder, {"source": lines, "target": lines})
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    options = ["--text", tmp_path / "text.txt", "--translations", tmp_path / "text.txt"]
    options += ["--device", "cpu", "--output", tmp_path / "out"]
    command = [sys.executable, "-m", "specialized_heads.cli", "analyse", folder, *options]
    subprocess.run([*map(str, command)], env=ENVIRONMENT, check=True)
    read = load_tokens(tmp_path / "out" / "tokens.safetensors")
    theirs = published.transformers.AutoTokenizer.from_pretrained(folder)
    assert not (folder / "tokenizer_config.json").exists()
    ours = [[*read.source_ids(n), theirs.eos_token_id] for n in range(len(read))]
    assert ours == theirs(lines)["input_ids"]
    assert theirs(lines[20:])["input_ids"] != theirs(TEXTS)["input_ids"]


def test_a_model_of_lower_case_tokens_is_given_them(
    lower: Path, text: Path, tmp_path: Path, monkeypatch
) -> None:
    modes = {}

    def run(stage: str, settings: dict[str, Any], **files: Any) -> None:
        modes[stage] = settings.get("preprocess"), settings.get("device")
        if stage == "model.decoding":
            files["output"].write_text("".join(f"{line}\n" for line in TEXTS), encoding="utf-8")

    monkeypatch.setattr(analysis, "_run", run)
    with pytest.raises(UserError, match=r"heads\.parquet: no such file"):
        analyse(lower, text, tmp_path / "out", device="cpu")
    assert modes["corpus.tokens"] == ("paper", None)
    assert modes["model.decoding"] == modes["heads.analyse"] == ("paper", "cpu")


def test_a_line_of_too_many_subwords_is_skipped(
    exported, text: Path, tmp_path, monkeypatch, caplog
) -> None:
    monkeypatch.setattr(analysis, "_run", lambda *_, **__: None)
    whole, long = text.read_text(), tmp_path / "long.txt"
    long.write_text(f"{whole}{' '.join(WORDS * 30)}\n{TEXTS[0]}\n")
    text.write_text(whole + "a\nb\n")
    for one, translations in ((long, text), (text, long)):
        with pytest.raises(UserError, match=r"heads\.parquet: no such file"):
            analyse(exported, one, tmp_path / "out", translations=translations, device="cpu")
        assert pq.read_table(tmp_path / "out" / "text.parquet").num_rows == 21
    said = "skips 1 of 22 lines, which have more than 256 subwords; the first is line 21"
    assert said in caplog.text


def test_no_model_is_ever_overwritten(exported: Path, text: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(exported, other)
    for folder in (exported, other):
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        with pytest.raises(UserError, match="holds other files .* name a new folder"):
            analyse(exported, text, folder)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_texts_that_do_not_fit_are_one_clear_error(
    exported: Path, text: Path, tmp_path: Path
) -> None:
    short = tmp_path / "short.txt"
    short.write_text("one line\n")
    with pytest.raises(UserError, match=f"1 lines for {len(TEXTS)} of"):
        analyse(exported, text, tmp_path / "out", translations=short)
    with pytest.raises(UserError, match="absent: there is no such folder"):
        analyse(exported.parent / "absent", text, tmp_path / "out")
    wrong = {
        "a\n\u200b\u00a0\n": "sentence 2 is empty",
        "": "has no sentences",
        "a\rb\n": "line 1: a carriage return",
    }
    wrong['{"en": "a"}\n'] = "JSON in 1 of 1 texts"
    wrong[f"{' '.join(WORDS * 30)}\n"] = "every line has more than 256 subwords"
    for content, message in wrong.items():
        short.write_text(content, encoding="utf-8")
        with pytest.raises(UserError, match=message):
            analyse(exported, short, tmp_path / "out")


@pytest.fixture
def package(tmp_path: Path, monkeypatch) -> Path:
    """A folder for stages of the tests' own, in place of the project's."""
    folder = tmp_path / "specialized_heads"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return folder


def test_stages_use_one_thread_and_show_their_progress_on_a_terminal(
    package: Path, monkeypatch
) -> None:
    """The stage here is one that prints whether its standard error is a terminal, then fails."""
    said = "print('threads', os.environ['OMP_NUM_THREADS'], sys.stderr.isatty(), file=sys.stderr)"
    (package / "told.py").write_text(f"import os, sys\n{said}\nsys.exit(2)\n")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    with pytest.raises(UserError, match="told: threads 1 False"):
        analysis._run("told", {})
    terminal, end = pty.openpty()
    before = os.dup(2)
    os.dup2(end, 2)
    try:
        with monkeypatch.context() as patch, open(end, "w", closefd=False) as stderr:
            patch.setattr(sys, "stderr", stderr)
            with pytest.raises(UserError, match="told failed; its error is the line above"):
                analysis._run("told", {})
    finally:
        os.dup2(before, 2)
    assert b"threads 1 True" in os.read(terminal, 1000)


def test_warnings_of_stages_are_shown_off_a_terminal_too(package: Path, capsys) -> None:
    lines = "12:00:00 reading\\n12:00:01 warning: no arc of 'nsubj'"
    (package / "warns.py").write_text(f'import sys\nprint("{lines}", file=sys.stderr)\n')
    analysis._run("warns", {})
    assert capsys.readouterr().err == "warns ...\nwarns: warning: no arc of 'nsubj'\n"
