"""Statements of single pages: ten lines are ten, quoted messages are the code's, examples run, numbers are in tables."""

import ast
import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
import yaml
from pages import PACKAGE, ROOT, blocks
from pydantic import TypeAdapter

from specialized_heads.experiment import configuration as config
from specialized_heads.experiment import sources
from specialized_heads.report.claims.claim import Unit
from specialized_heads.report.claims.table import ours
from specialized_heads.stage import UserError


def test_the_ten_lines_for_your_own_pair_are_ten_and_valid() -> None:
    first, others, *_ = blocks(ROOT / "docs" / "own_pair.md", "yaml")
    assert first.count("\n") == 10
    experiment = config.load(yaml.safe_load(first))
    (name,) = experiment.corpora
    experiment.for_corpus(name).retraining()
    lines = [yaml.safe_load(line) for line in others.splitlines() if not line.startswith("#")]
    assert len(lines) >= 5
    for line in lines:
        TypeAdapter(sources.Source).validate_python(line["source"])


def test_quoted_messages_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^> (.+)$", page, flags=re.MULTILINE)
    assert len(quoted) > 20
    # Each statement on one line, with its strings joined.
    code = "\n".join(ast.unparse(ast.parse(path.read_text(encoding="utf-8"))) for path in PACKAGE.rglob("*.py"))
    code = code.replace("\\'", "'")
    for message in quoted:
        parts = [part.strip() for part in message.split("…") if part.strip(" :;,.()")]
        assert re.search(".*?".join(map(re.escape, parts)), code), message


def test_the_example_of_a_source_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = blocks(ROOT / "docs" / "extending.md", "python")
    exec(next(text for text in examples if text.startswith("class JsonLines")), names := dict(vars(sources)))
    monkeypatch.setattr(sources, "JsonLines", names["JsonLines"], raising=False)
    jsonl = ModuleType("jsonl")
    exec(next(text for text in examples if "readers/jsonl.py" in text.splitlines()[0]), vars(jsonl))
    path = tmp_path / "pairs.jsonl"
    source = names["JsonLines"](kind="jsonl", path=str(path))

    def rows() -> list[dict[str, str]]:
        read = jsonl.read(source, [path], source_language="en", target_language="de", counts=counts)
        return [row for block in read for row in block.to_pylist()]

    counts: Counter[str] = Counter()
    path.write_text('{"source": "a", "target": "b"}\n\n', encoding="utf-8")
    assert rows() == [{"source": "a", "target": "b", "document": "", "set": ""}]
    assert counts == {"blank_line": 1}
    path.write_text('{"source": 1, "target": "b"}\n', encoding="utf-8")
    with pytest.raises(UserError, match="line 1: must be"):
        rows()


def test_the_claims_of_the_readme_are_those_of_the_evidence() -> None:
    evidence = pd.read_csv(ROOT / "docs/reference/evidence.csv", keep_default_na=False, na_values=[""])
    rows = evidence.to_dict("records")
    judged = {(row["reported"], ours(row, Unit(row["unit"])), row["verdict"]) for row in rows}
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Does it hold?")[2].partition("\n## ")[0]
    shown = {tuple(line.strip("| ").split(" | ")[1:]) for line in text.splitlines() if line.startswith("| ")}
    assert shown - {("paper", "here", "verdict")} < judged


NUMBER = r"\d[\d,]*(?:\.\d+)?|(?<![\d)])\.\d+"


@pytest.mark.parametrize("folder", [".", "docs/reference"])
def test_every_measured_number_is_in_a_table_that_its_section_links(folder: str) -> None:
    page = ROOT / folder / "README.md"
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    missing = []
    for section in text.split("\n## "):
        linked = {page.parent / target for target in re.findall(r"\]\(([^)#:]+\.\w+)", section)}
        tables = {path.with_suffix(suffix) for path in linked for suffix in (".csv", ".md")}
        rows = [numbers(line) for path in tables if path.is_file() for line in path.read_text().splitlines()]
        others = r"\]\([^)]*\)|`[^`]*`|95% intervals|Python [\d.]+|CC-BY [\d.]+|MPL-[\d.]+"
        prose = " ".join(re.sub(others, "", section).split())
        intervals = rf"({NUMBER})%?(?: points)? \[\W?({NUMBER})%?, \W?({NUMBER})%?\]"
        for interval in re.findall(intervals, prose):
            if not any(all(shows(row, number) for number in interval) for row in rows):
                missing.append((section.partition("\n")[0], interval))
        for number in re.findall(rf"({NUMBER})%", prose) + re.findall(r"\d*\.\d+", prose):
            if not any(shows(row, number) for row in rows):
                missing.append((section.partition("\n")[0], number))
    assert not missing


def numbers(line: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(r"\d+(?:\.\d+)?(?:e-\d+)?", line)]


def shows(row: list[float], text: str) -> bool:
    """Whether a row has a number, or a share as a percentage, that rounds to what is written."""
    number, half = float(text.replace(",", "")), 0.5001 * 10.0 ** -len(text.partition(".")[2])
    return any(abs(scale * value - number) <= half for value in row for scale in (1, 100))


@pytest.mark.parametrize("name", ["default", "pruning", "bert_small"])
def test_the_kept_configuration_is_the_shipped_one(name: str) -> None:
    shipped = ROOT / ("config.yaml" if name == "default" else f"config/{name}.yaml")
    kept = ROOT / "docs" / "reference" / name / "configuration.yaml"
    first, second = (config.load(yaml.safe_load(path.read_text(encoding="utf-8"))) for path in (shipped, kept))
    assert first == second
