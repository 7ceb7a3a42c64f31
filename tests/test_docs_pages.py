"""Statements of single pages: ten lines are ten, jobs are counted, quoted messages are the code's, examples run."""

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
from specialized_heads.experiment import figures, sources
from specialized_heads.report.claims.claim import Unit
from specialized_heads.report.claims.table import ours
from specialized_heads.report.data import Tables
from specialized_heads.stage import UserError

CLAIMS = {  # of the README, with their names
    "relevance_functions": "V: heads with a function are the relevant ones of their layer (AUC)",
    "nsubj_head_to_dependent": "V: a head finds the subject of a verb (points)",
    "rarest_opensubtitles": "V: a head of the first layer finds the rarest token",
    "specialised_survive": "V: heads with a function survive pruning (points, within layers)",
    "encoder_wmt": "V: change of BLEU with 10 of 48 encoder heads",
    "all_opensubtitles_27_31_46": "V: change of BLEU with 72% of all heads",
    "single": "M: encoder heads whose removal alone matters",
    "few_cross": "M: BLEU with 20% of the cross-attention heads",
}


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


def test_the_jobs_of_the_papers_experiment_are_counted_correctly() -> None:
    text = (ROOT / "docs" / "paper_scale.md").read_text(encoding="utf-8")
    experiment = config.load(yaml.safe_load((ROOT / "config" / "paper.yaml").read_text(encoding="utf-8")))
    pruned = [experiment.for_corpus(name) for name, corpus in experiment.corpora.items() if corpus.prune]
    jobs = {
        "train_baseline": len(experiment.corpora),
        "prune": sum(len(corpus.pruning.encoder) + len(corpus.pruning.all) for corpus in pruned),
        "train_from_scratch": sum(
            len(corpus.pruning.retrained(scope)) for corpus in pruned for scope in corpus.pruning.retrain
        ),
    }
    for rule, number in jobs.items():
        assert f"| `{rule}` | {number} | {3 * number} |" in text, rule


def test_quoted_messages_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^> (.+)$", page, flags=re.MULTILINE)
    assert len(quoted) > 20
    messages = "\n".join(literal for path in sorted(PACKAGE.rglob("*.py")) for literal in literals(path))
    for message in quoted:
        parts = [part.strip() for part in message.split("…") if part.strip(" :;,.()")]
        pattern = ".*?".join(map(re.escape, parts))
        assert re.search(pattern, messages), message


def literals(path: Path) -> list[str]:
    """The strings of a module, each on one line; of interpolated values, the module's own constants."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assigned = [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)]
    constants = {ast.unparse(node.targets[0]): str(node.value.value) for node in assigned}
    texts = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [
                part.value if isinstance(part, ast.Constant) else constants.get(ast.unparse(part.value), "…")
                for part in node.values
            ]
            texts.append("".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
    return [text.replace("\n", " ") for text in texts]


def example(name: str) -> ModuleType:
    """A complete module in docs/extending.md, by the path in its first line."""
    [text] = [
        block for block in blocks(ROOT / "docs" / "extending.md", "python") if block.startswith(f"# src/{name}\n")
    ]
    module = ModuleType(Path(name).stem)
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def test_the_example_of_a_figure_draws() -> None:
    entropy = example("specialized_heads/report/beyond/entropy.py")
    shown = {"corpus": "EN-FR", "seed": 1, "layer": 1, "head": 2, "confidence": 0.5, "entropy": 1.5}
    head = shown | {"kind": "baseline", "type": "encoder"}
    heads = pd.DataFrame([head, head | {"type": "cross"}, head | {"kind": "pruned"}])
    table = entropy.numbers(Tables(*[pd.DataFrame()] * 5)._replace(heads=heads))
    assert table.to_dict("records") == [shown]
    assert len(entropy.draw(table).axes) == 1
    row = eval(blocks(ROOT / "docs" / "extending.md", "python")[1], dict(vars(figures)))
    assert entropy.__name__ == row.module.split(".")[-1] == row.stem.removeprefix("figures/")


def test_the_example_of_a_source_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = next(text for text in blocks(ROOT / "docs" / "extending.md", "python") if text.startswith("class JsonLines"))
    exec(keys, names := dict(vars(sources)))
    monkeypatch.setattr(sources, "JsonLines", names["JsonLines"], raising=False)
    jsonl = example("specialized_heads/corpus/readers/jsonl.py")
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
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Does it hold?")[2]
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][1:9]
    assert [row[0] for row in cells] == list(CLAIMS.values())
    for (_, reported, value, verdict), name in zip(cells, CLAIMS, strict=True):
        row = evidence[evidence["claim"] == name].to_dict("records")[0]
        found = ours(row, Unit(row["unit"]))
        assert (reported, value, verdict) == (row["reported"], found, row["verdict"])


NUMBER = r"\d[\d,]*(?:\.\d+)?|(?<![\d)])\.\d+"


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "docs" / "reference" / "README.md"], ids=["front", "reference"]
)
def test_every_measured_number_is_in_a_table_that_its_section_links(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    missing = []
    for section in text.split("\n## "):
        linked = {page.parent / target for target in re.findall(r"\]\(([^)#:]+\.\w+)", section)}
        tables = {path.with_suffix(suffix) for path in linked for suffix in (".csv", ".md")}
        rows = [numbers(line) for path in tables if path.is_file() for line in path.read_text().splitlines()]
        prose = " ".join(
            re.sub(r"\]\([^)]*\)|`[^`]*`|95% intervals|Python [\d.]+|CC-BY [\d.]+|MPL-[\d.]+", "", section).split()
        )
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
