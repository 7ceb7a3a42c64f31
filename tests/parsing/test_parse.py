"""CoNLL-U files: trees meet sentences by their characters; what a treebank may hold is read, what
is broken is named.

Embedded parses are looked up by the text, all or nothing; those in the repository serve the shipped
configurations.
"""

import gzip
from pathlib import Path
from typing import Any

import pytest
from parallel_text import read_pairs

from specialized_heads.corpus.clean import Settings, clean
from specialized_heads.corpus.split import divide, read_index
from specialized_heads.experiment.configuration import Corpus
from specialized_heads.experiment.file import load, read
from specialized_heads.parsing import parse
from specialized_heads.parsing.parse import conllu_parses, embedded_parses, place, read_trees
from specialized_heads.parsing.words import Word, read_parses
from specialized_heads.stage import UserError, file_hash, read_json, write_json

ROOT = Path(__file__).parents[2]
RESOURCES = ROOT / "resources"


def row(
    number: str, form: str, head: str = "_", relation: str = "_", upos: str = "X", last: str = "_"
) -> str:
    return "\t".join([number, form, "_", upos, "_", "_", head, relation, "_", last])


def sentence(*rows: str, text: str | None = None) -> str:
    return "\n".join([*([f"# text = {text}"] if text is not None else []), *rows]) + "\n\n"


STOP = sentence(
    row("1", "Stop", "0", "root", "VERB", "SpaceAfter=No"),
    row("2", "!", "1", "punct"),
    text="Stop!",
)
NOT = sentence(
    row("1", "I", "4", "nsubj"),
    row("2-3", "don't"),
    row("2", "do", "4", "aux"),
    row("3", "n't", "4", "advmod"),
    row("4", "go", "0", "root", last="SpaceAfter=No"),
    row("4.1", "went"),
    row("5", ".", "4", "punct"),
    text="I don't go.",
)
DU = sentence(
    row("1-2", "du"),
    row("1", "de", "3", "case"),
    row("2", "le", "3", "det"),
    row("3", "chat", "0", "root"),
)


@pytest.fixture
def parses(tmp_path: Path):
    """`parses(["Stop!"], STOP, NOT)`: the trees of these sentences out of a file of these."""

    def read(texts: list[str], *sentences: str):
        path = tmp_path / "trees.conllu"
        path.write_text("".join(sentences), encoding="utf-8")
        return conllu_parses(texts, path=path)

    return read


def test_words_have_the_characters_that_the_file_says(parses) -> None:
    (words, chat), _ = parses(["I don't go.", "du chat"], NOT, DU)
    assert words == [
        Word("I", 0, 1, 4, "nsubj", "X"),
        Word("do", 2, 4, 4, "aux", "X"),
        Word("n't", 4, 7, 4, "advmod", "X"),
        Word("go", 8, 10, 0, "root", "X"),
        Word(".", 10, 11, 4, "punct", "X"),
    ]
    expected = [("de", 0, 2), ("le", 0, 2), ("chat", 3, 7)]
    assert [(word.form, word.start, word.end) for word in chat] == expected


LOWERED = sentence(row("1", "stop", "0", "root"), row("2", "!", "1", "punct"), text="Stop!")
SPACED = [row("1-2", "a priori"), row("1", "a", "2", "case"), row("2", "priori", "0", "root")]
BARE = [row("1", "Stop", "0", "root"), row("2", "it", "1", "obj"), row("3", "!", "1", "punct")]
NUMBER = [row("1", "1 000", "2", "nummod"), row("2", "km", "0", "root")]
DECOMPOSED = [row("1", "Voila\u0300", "0", "root"), row("2", "co\u00adop", "1", "dep")]


@pytest.mark.parametrize(
    ("text", "tree", "places"),
    [
        # a token is divided where its words end
        ("a  priori", sentence(*SPACED), [(0, 1), (3, 9)]),
        # many parsers write neither text nor SpaceAfter
        ("Stop  it!", sentence(*BARE), [(0, 4), (6, 8), (8, 9)]),
        ("1 000 km", sentence(*NUMBER), [(0, 5), (6, 8)]),
        # Letters as the clean stage writes them.
        ("Voilà coop", sentence(*DECOMPOSED, text="Voila\u0300 co\u00adop"), [(0, 5), (6, 10)]),
        ("café", sentence(row("1", "cafÃ©", "0", "root"), text="cafÃ©"), [(0, 4)]),
        ("It’s", sentence(row("1", "Itâ\x80\x99s", "0", "root"), text="Itâ\x80\x99s"), [(0, 4)]),
    ],
)
def test_words_are_placed_in_the_sentence(parses, text, tree, places) -> None:
    (words,), _ = parses([text], tree)
    assert [(word.start, word.end) for word in words] == places


def test_entities_are_those_of_a_cell_and_an_empty_text_is_none(parses) -> None:
    tree = sentence(row("1", "a&#9;b", "0", "root"), row("2", "&amp;", "1", "dep"), text="")
    (words,), _ = parses(["a b &"], tree)
    assert [(word.start, word.end) for word in words] == [(0, 3), (4, 5)]


def test_a_sentence_may_have_several_roots(parses) -> None:
    (words,), _ = parses(["Stop !"], sentence(GOOD, row("2", "!", "0", "root")))
    assert [word.head for word in words] == [0, 0]


def test_a_tree_that_agrees_to_the_space_is_preferred(parses) -> None:
    apart = sentence(row("1", "may", "2", "aux"), row("2", "be", "0", "root"))
    together = sentence(row("1", "maybe", "0", "root"))
    found, _ = parses(["maybe", "may be"], apart, together)
    assert [[word.form for word in words] for words in found] == [["maybe"], ["may", "be"]]
    # A tab is a space, as it is to the clean stage.
    tab = sentence(row("1", "may", "2", "aux"), row("2", "be", "0", "root"), text="may\tbe")
    (words,), _ = parses(["may be"], together, tab)
    assert [word.form for word in words] == ["may", "be"]


def test_other_words_than_the_text_are_counted_and_never_guessed(parses) -> None:
    escaped = sentence(row("1", "-LRB-", "2", "punct"), row("2", "Go", "0", "root"), text="( Go")
    found, about = parses(["( Go", "Stop!"], escaped, STOP)
    assert found[0] == [] and found[1]
    assert about["sentences_with_other_words"] == 1 and about["sentences_without_a_tree"] == 0


def test_the_first_tree_of_a_text_counts(parses) -> None:
    other = STOP.replace("VERB", "NOUN")
    (words,), about = parses(["Stop!"], STOP, other)
    assert words[0].upos == "VERB"
    assert about["trees_of_a_repeated_text"] == 1


@pytest.mark.parametrize(
    ("texts", "tree", "said"),
    [
        (["Go!"], STOP, "none of the 1 analysis sentences have a tree among the 1 of this file"),
        (["Stop!", *(f"Other {n}." for n in range(10))], STOP, "1 of the 11 analysis sentences"),
        (["Stop!"], LOWERED, "1 of the 1 analysis .* a tree, but .* 'stop !' for 'Stop!'"),
    ],
)
def test_trees_of_another_text_are_a_mistake_of_the_user(parses, texts, tree, said) -> None:
    with pytest.raises(UserError, match=said):
        parses(texts, tree)


GOOD = row("1", "Stop", "0", "root")
CYCLE = [("2", "a", "3"), ("3", "b", "4"), ("4", "c", "3")]


@pytest.mark.parametrize(
    ("rows", "line", "said"),
    [
        ([GOOD, "2\t!"], 3, "2 columns between tabs where CoNLL-U has 10"),
        ([GOOD, row("two", "!", "1", "punct")], 3, "'two' is not the number of a word"),
        ([GOOD, row("3", "!", "1", "punct")], 3, "word 3 instead of word 2"),
        ([GOOD, row("2", "!", "5", "punct")], 3, "head 5 in a sentence of 2 words"),
        ([GOOD, row("2", "!")], 3, "no head and relation"),
        ([GOOD, *(row(*word, "dep") for word in CYCLE)], 4, "in a cycle (heads in turn: 4, 3)"),
        ([GOOD, row("2-3", "du"), row("2", "de", "1", "case")], 4, "inside a multi-word token"),
        ([GOOD, row("2-999999999", "du")], 3, "the sentence ends inside"),
    ],
)
def test_a_malformed_file_is_told_with_its_line(tmp_path, rows, line, said) -> None:
    path = tmp_path / "bad.conllu"
    path.write_text(sentence(*rows, text="x"), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_trees(path)
    assert f"{path}, line {line}: " in str(caught.value) and said in str(caught.value)


def test_what_is_not_utf8_missing_or_empty_is_told(tmp_path: Path) -> None:
    latin, empty = tmp_path / "latin.conllu", tmp_path / "empty.conllu"
    latin.write_bytes(STOP.encode() + "# text = là\n".encode("latin-1"))
    empty.write_text("# nothing\n\n", encoding="utf-8")
    for path, said in (
        (latin, "line 5: not UTF-8"),
        (empty, "no sentence"),
        (tmp_path / "none", "no such file"),
    ):
        with pytest.raises(UserError, match=said):
            read_trees(path)


def test_stage_reads_a_packed_file_and_reports(call, analysis_file, tmp_path: Path) -> None:
    path = tmp_path / "trees.conllu.gz"
    # the last blank line may be missing
    path.write_bytes(gzip.compress((STOP + NOT.rstrip("\n")).encode()))
    output, report = tmp_path / "parses.parquet", tmp_path / "parses.json"
    settings = {"engine": "conllu", "language": "en", "path": str(path)}
    text = analysis_file(["Go", "Stop!"])
    call(parse, settings=settings, text=text, resource=path, output=output, report=report)
    assert [word.form for word in read_parses(output)[1]] == ["Stop", "!"]
    counts = {
        "trees": 2,
        "trees_of_a_repeated_text": 0,
        "sentences_without_a_tree": 1,
        "sentences_with_other_words": 0,
    }
    counts |= {"sentences": 2, "sentences_parsed": 1, "words": 2}
    engine = {"engine": "conllu", "model": "trees.conllu.gz", "sha256": file_hash(path)}
    assert read_json(report) == engine | counts


@pytest.mark.parametrize("name", ["en_ewt-ud-dev.conllu.gz", "en_ewt-ud-test.conllu.gz"])
def test_every_tree_of_a_treebank_is_placed(shared: Path, name: str) -> None:
    path = shared / "ud" / name
    if not path.is_file():
        pytest.skip(f"no gold trees in {shared}")
    trees = read_trees(path)
    for tree in trees:
        words = place(tree.tokens, tree.text)
        assert words, tree.text
        covered = {position for word in words for position in range(word.start, word.end)}
        assert covered >= {
            position for position, letter in enumerate(tree.text) if not letter.isspace()
        }


# Embedded parses.

ABOUT = {"engine": "p", "version": "1", "model": "m", "command": "c"}
RUNS = [
    row("1", "He", "2", "nsubj"),
    row("2", "runs", "0", "root", last="SpaceAfter=No"),
    row("3", ".", "2", "punct"),
]


@pytest.fixture
def resource(tmp_path: Path) -> Path:
    """Parses of two sentences."""
    path = tmp_path / "parses.conllu.gz"
    path.write_bytes(gzip.compress((sentence(*RUNS) + STOP).encode()))
    write_json(tmp_path / "parses.json", ABOUT | {"sentences": 2})
    return path


def test_stage_writes_trees_in_the_order_of_the_text(
    call, analysis_file, resource: Path, tmp_path: Path
) -> None:
    files = {"text": analysis_file(["Stop!", "He runs.", "Stop!"]), "resource": resource}
    files |= {
        "output": tmp_path / "parses/analysis.parquet",
        "report": tmp_path / "parses/analysis.json",
    }
    call(parse, settings={"engine": "embedded", "language": "en"}, **files)
    parses = read_parses(files["output"])
    expected = [["Stop", "!"], ["He", "runs", "."], ["Stop", "!"]]
    assert [[word.form for word in parses[i]] for i in range(3)] == expected
    places = [(word.start, word.end, word.head, word.relation) for word in parses[1]]
    assert places == [(0, 2, 2, "nsubj"), (3, 7, 0, "root"), (7, 8, 2, "punct")]
    assert read_json(files["report"]) == ABOUT | {"sentences": 3, "sentences_parsed": 3, "words": 7}


def test_a_sentence_without_a_parse_stops_the_stage(resource: Path) -> None:
    with pytest.raises(UserError, match=r"2 of 4 .*parser\.engine: stanza"):
        embedded_parses(["Stop!", "stop!", "He runs", "He runs."], resource=resource)


def shipped() -> list:
    """The embedded corpora of all configurations that look up their parses, the same one with the
    same sets only once."""
    cases: dict[str, Any] = {}
    for path in (ROOT / "config.yaml", *sorted((ROOT / "config").rglob("*.yaml"))):
        experiment = load(read(path), origin=str(path))
        for name, corpus in experiment.corpora.items():
            if (
                corpus.source.kind == "embedded"
                and experiment.for_corpus(name).parser.engine == "embedded"
            ):
                same = f"{corpus.source.name} {corpus.filters} {corpus.split}"
                cases.setdefault(same, pytest.param(corpus, id=f"{path.stem}-{name}"))
    return list(cases.values())


@pytest.mark.parametrize("corpus", shipped())
def test_kept_parses_cover_every_shipped_configuration(corpus: Corpus, tmp_path: Path) -> None:
    folder, cleaned = RESOURCES / corpus.source.name, tmp_path / "clean.parquet"
    clean(folder / "corpus.parquet", cleaned, settings=Settings(filters=corpus.filters))
    sets, _ = divide(read_index(cleaned), sizes=corpus.split)
    known = read_pairs(cleaned).source
    parses, about = embedded_parses(
        [known[row] for row in sets["analysis"]], resource=folder / "parses.conllu.gz"
    )
    assert len(parses) >= 0.9 * corpus.split.analysis and all(parses)
    assert about["engine"] == "spacy"
    assert about["command"].startswith("python resources/make_parses.py")


@pytest.mark.parametrize("corpus", ["libreoffice_en_ru", "tatoeba_en_fr", "tatoeba_en_de"])
def test_kept_parses_are_trees_over_the_whole_sentence(corpus: str) -> None:
    texts = [tree.text for tree in read_trees(RESOURCES / corpus / "parses.conllu.gz")]
    parses, _ = embedded_parses(texts, resource=RESOURCES / corpus / "parses.conllu.gz")
    assert len(set(texts)) == len(texts) >= 5000
    about = read_json(RESOURCES / corpus / "parses.json")
    assert about["corpus_sha256"] == file_hash(RESOURCES / corpus / "corpus.parquet"), (
        "run resources/make_parses.py"
    )
    assert (about["sentences"], about["words"]) == (len(texts), sum(map(len, parses)))
    for text, words in zip(texts, parses):
        assert "".join(word.form for word in words) == "".join(text.split())
        assert [word.relation for word in words if word.head == 0] == ["root"]
