"""Embedded parses: looked up by exact text, all or nothing; and those in the repository serve what the split stage deals."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from specialized_heads.config import Filters, Split
from specialized_heads.corpus.clean import clean, group_by_sentence
from specialized_heads.corpus.pairs import Pairs, read_pairs
from specialized_heads.corpus.split import divide
from specialized_heads.parsing.embedded import SCHEMA, embedded_parses
from specialized_heads.parsing.words import read_parses
from specialized_heads.stage import UserError, file_hash, read_json, write_json

RESOURCES = Path(__file__).parents[2] / "resources"
SETTINGS = {"engine": "embedded", "language": "en"}


@pytest.fixture
def resource(tmp_path: Path) -> Path:
    """Parses of two sentences."""
    rows = [
        {"source": "He runs.", "start": [0, 3, 7], "end": [2, 7, 8], "head": [2, 0, 2]}
        | {"relation": ["nsubj", "root", "punct"], "upos": ["PRON", "VERB", "PUNCT"]},
        {"source": "Stop!", "start": [0, 4], "end": [4, 5], "head": [0, 1]}
        | {"relation": ["root", "punct"], "upos": ["VERB", "PUNCT"]},
    ]
    path = tmp_path / "parses.parquet"
    pq.write_table(pq.pa.Table.from_pylist(rows, schema=SCHEMA), path)
    about = {"engine": "p", "version": "1", "model": "m", "command": "c", "sentences": 2}
    write_json(path.with_suffix(".json"), about)
    return path


def test_stage_writes_trees_in_the_order_of_the_text(stage, analysis_file, resource: Path, tmp_path: Path) -> None:
    files = {"text": analysis_file(["Stop!", "He runs.", "Stop!"]), "resource": resource}
    files |= {"output": tmp_path / "parses/analysis.parquet", "report": tmp_path / "parses/analysis.json"}
    result = stage("parse", settings=SETTINGS, **files)
    assert result.returncode == 0, result.stderr
    parses = read_parses(files["output"])
    assert [[word.form for word in parses[i]] for i in range(3)] == [["Stop", "!"], ["He", "runs", "."], ["Stop", "!"]]
    assert [(word.start, word.end, word.head, word.relation) for word in parses[1]] == [
        (0, 2, 2, "nsubj"),
        (3, 7, 0, "root"),
        (7, 8, 2, "punct"),
    ]
    assert read_json(files["report"]) == {
        "engine": "p",
        "version": "1",
        "model": "m",
        "command": "c",
        "sentences": 3,
        "sentences_parsed": 3,
        "words": 7,
    }


def test_a_sentence_without_a_parse_stops_the_stage(stage, analysis_file, resource: Path, tmp_path: Path) -> None:
    text = analysis_file(["Stop!", "stop!", "He runs", "He runs."])
    output = tmp_path / "out.parquet"
    result = stage("parse", settings=SETTINGS, text=text, resource=resource, output=output, report=tmp_path / "o.json")
    assert result.returncode == 2
    assert "2 of 4" in result.stderr and "parser.engine: stanza" in result.stderr
    assert not output.exists()


def test_a_corpus_that_is_not_embedded_is_told_to_use_stanza(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="stanza"):
        embedded_parses(["Stop!"], resource=None)
    with pytest.raises(UserError, match="none.parquet.*stanza"):
        embedded_parses(["Stop!"], resource=tmp_path / "none.parquet")


@pytest.mark.parametrize(
    ("corpus", "sizes"), [("libreoffice_en_ru", (150, 1000, 4907, 5000)), ("tatoeba_en_fr", (1000,))]
)
def test_kept_parses_cover_the_analysis_set(corpus: str, sizes: tuple[int, ...]) -> None:
    folder = RESOURCES / corpus
    about = read_json(folder / "parses.json")
    assert about["corpus_sha256"] == file_hash(folder / "corpus.parquet"), "run resources/make_parses.py again"
    pairs, _ = clean(read_pairs(folder / "corpus.parquet"), filters=Filters())
    if not all(pairs.document):
        pairs = Pairs(pairs.source, pairs.target, group_by_sentence(pairs))
    for size in sizes:
        rows = divide(pairs, sizes=Split(analysis=size))[0]["analysis"]
        parses, _ = embedded_parses([pairs.source[row] for row in rows], resource=folder / "parses.parquet")
        assert len(parses) == len(rows) and all(parses)


@pytest.mark.parametrize("corpus", ["libreoffice_en_ru", "tatoeba_en_fr"])
def test_kept_parses_are_trees_over_the_whole_sentence(corpus: str) -> None:
    texts = pq.read_table(RESOURCES / corpus / "parses.parquet").column("source").to_pylist()
    parses, _ = embedded_parses(texts, resource=RESOURCES / corpus / "parses.parquet")
    assert len(set(texts)) == len(texts) >= 5000
    for text, words in zip(texts, parses):
        assert "".join(word.form for word in words) == "".join(text.split())
        assert all(before.end <= after.start for before, after in zip(words, words[1:]))
        assert [word.relation for word in words if word.head == 0] == ["root"]
        for position in range(1, len(words) + 1):
            seen = set()
            while position and position not in seen:
                seen.add(position)
                position = words[position - 1].head
            assert position == 0, f"a cycle in the tree of {text!r}"
