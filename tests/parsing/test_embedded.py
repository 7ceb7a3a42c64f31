"""Embedded parses: looked up by the text, all or nothing; those in the repository serve the shipped configurations."""

import gzip
from pathlib import Path
from typing import Any

import pytest
import yaml

from specialized_heads.corpus.clean import Settings, clean
from specialized_heads.corpus.pairs import read_pairs
from specialized_heads.corpus.split import divide, read_index
from specialized_heads.experiment.configuration import Corpus, load
from specialized_heads.parsing import parse
from specialized_heads.parsing.conllu import embedded_parses, read_trees
from specialized_heads.parsing.words import read_parses
from specialized_heads.stage import UserError, file_hash, read_json, write_json

ROOT = Path(__file__).parents[2]
RESOURCES = ROOT / "resources"
SETTINGS = {"engine": "embedded", "language": "en"}
ABOUT = {"engine": "p", "version": "1", "model": "m", "command": "c"}


TREES = """\
# text = He runs.
1\tHe\t_\tPRON\t_\t_\t2\tnsubj\t_\t_
2\truns\t_\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No
3\t.\t_\tPUNCT\t_\t_\t2\tpunct\t_\t_

# text = Stop!
1\tStop\t_\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No
2\t!\t_\tPUNCT\t_\t_\t1\tpunct\t_\t_

"""


@pytest.fixture
def resource(tmp_path: Path) -> Path:
    """Parses of two sentences."""
    path = tmp_path / "parses.conllu.gz"
    path.write_bytes(gzip.compress(TREES.encode()))
    write_json(tmp_path / "parses.json", ABOUT | {"sentences": 2})
    return path


def test_stage_writes_trees_in_the_order_of_the_text(call, analysis_file, resource: Path, tmp_path: Path) -> None:
    files = {"text": analysis_file(["Stop!", "He runs.", "Stop!"]), "resource": resource}
    files |= {"output": tmp_path / "parses/analysis.parquet", "report": tmp_path / "parses/analysis.json"}
    call(parse, settings=SETTINGS, **files)
    parses = read_parses(files["output"])
    assert [[word.form for word in parses[i]] for i in range(3)] == [["Stop", "!"], ["He", "runs", "."], ["Stop", "!"]]
    places = [(word.start, word.end, word.head, word.relation) for word in parses[1]]
    assert places == [(0, 2, 2, "nsubj"), (3, 7, 0, "root"), (7, 8, 2, "punct")]
    assert read_json(files["report"]) == ABOUT | {"sentences": 3, "sentences_parsed": 3, "words": 7}


def test_a_sentence_without_a_parse_stops_the_stage(resource: Path) -> None:
    with pytest.raises(UserError, match=r"2 of 4 .*parser\.engine: stanza"):
        embedded_parses(["Stop!", "stop!", "He runs", "He runs."], resource=resource)


def shipped() -> list:
    """The embedded corpora of all configurations that look up their parses, the same one with the same sets only once."""
    cases: dict[str, Any] = {}
    for path in (ROOT / "config.yaml", *sorted((ROOT / "config").glob("*.yaml"))):
        experiment = load(yaml.safe_load(path.read_text(encoding="utf-8")), origin=str(path))
        for name, corpus in experiment.corpora.items():
            if corpus.source.kind == "embedded" and experiment.for_corpus(name).parser.engine == "embedded":
                same = f"{corpus.source.name} {corpus.filters} {corpus.split}"
                cases.setdefault(same, pytest.param(corpus, id=f"{path.stem}-{name}"))
    return list(cases.values())


@pytest.mark.parametrize("corpus", shipped())
def test_kept_parses_cover_every_shipped_configuration(corpus: Corpus, tmp_path: Path) -> None:
    folder, cleaned = RESOURCES / corpus.source.name, tmp_path / "clean.parquet"
    clean(folder / "corpus.parquet", cleaned, settings=Settings(filters=corpus.filters))
    sets, _ = divide(read_index(cleaned), sizes=corpus.split)
    known = read_pairs(cleaned).source
    parses, about = embedded_parses([known[row] for row in sets["analysis"]], resource=folder / "parses.conllu.gz")
    assert len(parses) >= 0.9 * corpus.split.analysis and all(parses)
    assert about["engine"] == "spacy" and about["command"].startswith("python resources/make_parses.py")


@pytest.mark.parametrize("corpus", ["libreoffice_en_ru", "tatoeba_en_fr", "tatoeba_en_de"])
def test_kept_parses_are_trees_over_the_whole_sentence(corpus: str) -> None:
    texts = [tree.text for tree in read_trees(RESOURCES / corpus / "parses.conllu.gz")]
    parses, _ = embedded_parses(texts, resource=RESOURCES / corpus / "parses.conllu.gz")
    assert len(set(texts)) == len(texts) >= 5000
    about = read_json(RESOURCES / corpus / "parses.json")
    assert about["corpus_sha256"] == file_hash(RESOURCES / corpus / "corpus.parquet"), "run resources/make_parses.py"
    assert (about["sentences"], about["words"]) == (len(texts), sum(map(len, parses)))
    for text, words in zip(texts, parses):
        assert "".join(word.form for word in words) == "".join(text.split())
        assert [word.relation for word in words if word.head == 0] == ["root"]
