"""Stanza engine, with a real (small) pipeline: one tree per sentence with offsets in it; models fetched beforehand."""

import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from specialized_heads.parsing.words import read_parses, write_parses
from specialized_heads.stage import UserError, file_hash, read_json, write_json

stanza = pytest.importorskip("stanza", reason="Stanza is not installed")
from specialized_heads.parsing import stanza_engine  # noqa: E402

TEXTS = ["The small cat doesn't see him.", "", "Wait... Stop! Now.", " 漢字 😀  cat", "   ", "Кот спит."]


@pytest.fixture(scope="module")
def pipeline(shared: Path) -> stanza.Pipeline:
    if not (shared / "stanza").is_dir():
        pytest.skip(f"no Stanza models in {shared}")
    return stanza_engine.load_pipeline(language="en", directory=str(shared / "stanza"), package="default")


def test_one_tree_per_sentence_with_its_own_offsets(pipeline) -> None:
    parses = stanza_engine.parse_sentences(pipeline, TEXTS)
    assert len(parses) == len(TEXTS)
    assert parses[1] == parses[4] == []
    assert [word.form for word in parses[0]] == ["The", "small", "cat", "does", "n't", "see", "him", "."]
    for text, words in zip(TEXTS, parses):
        assert [text[word.start : word.end] for word in words] == [word.form for word in words]
        assert [word.relation for word in words if word.head == 0] == ["root"] * bool(words)
        assert all(0 <= word.head <= len(words) for word in words)
    by_form = {word.form: word for word in parses[0]}
    assert by_form["cat"].relation == "nsubj" and parses[0][by_form["cat"].head - 1].form == "see"
    assert by_form["him"].relation == "obj" and by_form["small"].relation == "amod"


def test_a_sentence_is_parsed_alike_wherever_it_stands(pipeline) -> None:
    texts = [f"The cat number {i} sleeps." for i in range(stanza_engine.BATCH + 5)]
    parses = stanza_engine.parse_sentences(pipeline, [*texts, texts[0]])
    assert parses[-1] == parses[0]
    assert len(parses) == len(texts) + 1 and all(parses)


def test_a_blank_line_inside_a_text_keeps_its_trees_together(pipeline) -> None:
    parts = ["The cat sleeps.", "He sees it."]
    together, *apart = stanza_engine.parse_sentences(pipeline, ["\n\n".join(parts), *parts])
    assert [word.form for word in together] == [word.form for words in apart for word in words]
    heads = [word.head and together[word.head - 1].form for word in together]
    assert heads == [word.head and words[word.head - 1].form for words in apart for word in words]
    assert [(w.start, w.end) for w in together[-4:]] == [(w.start + 17, w.end + 17) for w in apart[1]]


@pytest.mark.parametrize(
    ("text", "token", "parts", "expected"),
    [
        ("du chat", "du", ("de", "le"), [("de", 0, 2, 3), ("le", 0, 2, 3), ("chat", 3, 7, 0)]),
        ("don't go", "don't", ("do", "n't"), [("do", 0, 2, 3), ("n't", 2, 5, 3), ("go", 6, 8, 0)]),
        ("don’t go", "don’t", ("do", "n't"), [("do", 0, 5, 3), ("n't", 0, 5, 3), ("go", 6, 8, 0)]),
    ],
)
def test_words_of_a_multi_word_token_divide_it_if_they_spell_it(text: str, token: str, parts, expected) -> None:
    end, last = len(token), text.split()[-1]
    rows = [
        ("1-2", token, "_", "_", "_", f"start_char=0|end_char={end}"),
        ("1", parts[0], "AUX", "3", "aux", "_"),
        ("2", parts[1], "PART", "3", "advmod", "_"),
        ("3", last, "VERB", "0", "root", f"start_char={end + 1}|end_char={len(text)}"),
    ]
    lines = [
        f"{n}\t{form}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t{misc}" for n, form, tag, head, relation, misc in rows
    ]
    document = stanza.utils.conll.CoNLL.conll2doc(input_str="\n".join(lines) + "\n\n")

    class Expander:
        """Stands for a pipeline with a model of multi-word tokens."""

        def bulk_process(self, texts: list[str]) -> list[stanza.Document]:
            return [document for _ in texts]

    (words,) = stanza_engine.parse_sentences(Expander(), [text])
    assert [(word.form, word.start, word.end, word.head) for word in words] == expected


def test_stage_gives_the_same_bytes_in_another_process(stage, analysis_file, pipeline, shared: Path, tmp_path) -> None:
    settings = {"engine": "stanza", "language": "en", "directory": str(shared / "stanza")}
    output, report = tmp_path / "parses.parquet", tmp_path / "parses.json"
    result = stage("parse", settings=settings, text=analysis_file(TEXTS), output=output, report=report)
    assert result.returncode == 0, result.stderr
    write_parses(tmp_path / "here.parquet", stanza_engine.parse_sentences(pipeline, TEXTS))
    assert output.read_bytes() == (tmp_path / "here.parquet").read_bytes()
    about = read_json(report)
    assert about["engine"] == "stanza" and about["version"] == stanza.__version__ and "ewt_small" in about["model"]
    assert (about["sentences"], about["sentences_parsed"]) == (6, 4)
    assert about["words"] == sum(map(len, read_parses(output).values()))
    assert str(shared) not in report.read_text()


def test_missing_models_are_a_mistake_of_the_user(shared: Path, tmp_path: Path) -> None:
    for directory, language, package in (
        (tmp_path / "none", "en", "default"),
        (shared / "stanza", "ru", "default"),
        (shared / "stanza", "en", "gum"),
    ):
        where = {"language": language, "directory": str(directory), "package": package}
        said = rf"\(python -c .*stanza.download\('{language}', model_dir='{directory}'.*check parser.directory, package and"
        with pytest.raises(UserError, match=said):
            stanza_engine.load_pipeline(**where)


def test_a_region_counts_where_stanza_knows_it(pipeline, shared: Path, tmp_path: Path) -> None:
    resources = read_json(shared / "stanza/resources.json")
    write_json(tmp_path / "resources.json", resources | {"en-gb": {"alias": "en", "lang_name": "British"}})
    (tmp_path / "en").symlink_to(shared / "stanza/en")
    chinese = {"zh", "zh-hans", "zh-hant"}
    for language in ("zh-Hant", "zho_Hant", "zh_Hant_TW", "cmn-Hant", "zh_TW"):
        assert stanza_engine._code(language, known=chinese) == "zh-hant"
    assert stanza_engine._code("zh_CN", known=chinese) == "zh"
    for language, code in (("en_GB", "en-gb"), ("en-GB", "en-gb"), ("en_US", "en"), ("EN", "en")):
        loaded = stanza_engine.load_pipeline(language=language, directory=str(tmp_path), package="default")
        assert stanza_engine.describe(loaded, package="default")["model"].startswith(f"{code}/default")


def test_a_package_without_a_parser_is_a_mistake_of_the_user(pipeline, shared: Path, tmp_path: Path) -> None:
    shutil.copytree(shared / "stanza", tmp_path / "stanza", copy_function=shutil.copyfile)
    for path in (tmp_path / "stanza").rglob("*"):
        path.chmod(0o755)
    resources = read_json(tmp_path / "stanza/resources.json")
    del resources["en"]["packages"]["default"]["depparse"]
    write_json(tmp_path / "stanza/resources.json", resources)
    with pytest.raises(UserError, match="no depparse"):
        stanza_engine.load_pipeline(language="en", directory=str(tmp_path / "stanza"), package="default")


def test_missing_models_are_fetched_once_and_before_parsing(stage, analysis_file, pipeline, shared, tmp_path) -> None:
    """A local server stands for the model hub."""
    hub = tmp_path / "hub"
    shutil.copytree(shared / "stanza/en", hub / "en", copy_function=shutil.copyfile)
    shutil.copyfile(shared / "stanza/resources.json", hub / f"resources_{stanza.__resources_version__}.json")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(hub)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    environment = {"STANZA_RESOURCES_URL": url, "STANZA_MODEL_URL": url + "/{lang}/{filename}", "no_proxy": "127.0.0.1"}
    where = {"language": "en", "directory": str(tmp_path / "models"), "package": "default"}
    manifest, output = tmp_path / "models.json", tmp_path / "out.parquet"
    fetch = partial(
        stage,
        "stanza_engine",
        settings={"models": [where | {"download": True}]},
        environment=environment,
        output=manifest,
    )
    parse = partial(
        stage,
        "parse",
        settings=where | {"engine": "stanza"},
        environment=environment,
        text=analysis_file(["The cat sleeps."]),
        output=output,
        report=tmp_path / "out.json",
    )
    early = parse()
    assert early.returncode == 2 and not list((tmp_path / "models").rglob("*.pt"))  # the hub is there, but is not asked
    fetched = fetch()
    assert fetched.returncode == 0, fetched.stderr
    (about,) = read_json(manifest)
    assert about["model"].startswith("en/default") and str(tmp_path) not in manifest.read_text()
    assert about["sha256"]["depparse/ewt_small.pt"] == file_hash(shared / "stanza/en/depparse/ewt_small.pt")
    server.shutdown()
    server.server_close()
    parsed = parse()  # the hub is gone, the models are there
    assert parsed.returncode == 0, parsed.stderr
    assert [word.form for word in read_parses(output)[0]] == ["The", "cat", "sleeps", "."]
    before = manifest.read_bytes()
    again = fetch()
    assert again.returncode == 0 and manifest.read_bytes() == before, again.stderr
    shutil.rmtree(tmp_path / "models")
    manifest.unlink()
    unreachable = fetch()
    assert unreachable.returncode == 2
    assert "could not be fetched" in unreachable.stderr and "parser.directory" in unreachable.stderr
    assert "Traceback" not in unreachable.stderr and not manifest.exists()
