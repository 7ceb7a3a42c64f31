"""Stanza engine, with a real (small) pipeline: one tree per sentence with offsets in it; models
fetched beforehand."""

import json
import os
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from specialized_heads.parsing.words import read_parses, write_parses
from specialized_heads.stage import UserError, file_hash, read_json, write_json

stanza = pytest.importorskip("stanza", reason="Stanza is not installed")
from specialized_heads.parsing import stanza_engine  # noqa: E402

TEXTS = [
    "The small cat doesn't see him.",
    "",
    "Wait... Stop! Now.",
    " 漢字 😀  cat",
    "   ",
    "Кот спит.",
]


def stage(
    module: str, *, settings: dict, environment: dict[str, str], **files: Path
) -> subprocess.CompletedProcess:
    """A stage in a process of its own."""
    command = [
        sys.executable,
        "-m",
        f"specialized_heads.parsing.{module}",
        "--settings",
        json.dumps(settings),
    ]
    command += [part for name, path in files.items() for part in (f"--{name}", str(path))]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)


@pytest.fixture(scope="module")
def pipeline(shared: Path) -> stanza.Pipeline:
    if not (shared / "stanza").is_dir():
        pytest.skip(f"no Stanza models in {shared}")
    return stanza_engine.load_pipeline(
        language="en", directory=str(shared / "stanza"), package="default"
    )


def test_one_tree_per_sentence_with_its_own_offsets(pipeline) -> None:
    parses = stanza_engine.parse_sentences(pipeline, TEXTS)
    assert len(parses) == len(TEXTS)
    assert parses[1] == parses[4] == []
    expected = ["The", "small", "cat", "does", "n't", "see", "him", "."]
    assert [word.form for word in parses[0]] == expected
    for text, words in zip(TEXTS, parses):
        assert [text[word.start : word.end] for word in words] == [word.form for word in words]
        assert [word.relation for word in words if word.head == 0] == ["root"] * bool(words)
    by_form = {word.form: word for word in parses[0]}
    assert by_form["cat"].relation == "nsubj" and parses[0][by_form["cat"].head - 1].form == "see"
    assert by_form["him"].relation == "obj" and by_form["small"].relation == "amod"


def test_a_sentence_is_parsed_alike_wherever_it_stands(pipeline) -> None:
    texts = [f"The cat number {i} sleeps." for i in range(stanza_engine.BATCH + 5)]
    parses = stanza_engine.parse_sentences(pipeline, [*texts, texts[0]])
    assert parses[-1] == parses[0]
    assert len(parses) == len(texts) + 1 and all(parses)


def test_stage_gives_the_same_bytes_in_another_process(
    analysis_file, pipeline, shared: Path, tmp_path
) -> None:
    settings = {"engine": "stanza", "language": "en", "directory": str(shared / "stanza")}
    output, report = tmp_path / "parses.parquet", tmp_path / "parses.json"
    files = {"text": analysis_file(TEXTS), "output": output, "report": report}
    result = stage("parse", settings=settings, environment={}, **files)
    assert result.returncode == 0, result.stderr
    write_parses(tmp_path / "here.parquet", stanza_engine.parse_sentences(pipeline, TEXTS))
    assert output.read_bytes() == (tmp_path / "here.parquet").read_bytes()
    about = read_json(report)
    assert about["engine"] == "stanza" and about["version"] == stanza.__version__
    assert "ewt_small" in about["model"]
    assert (about["sentences"], about["sentences_parsed"]) == (6, 4)
    assert about["words"] == sum(map(len, read_parses(output).values()))
    assert str(shared) not in report.read_text()


def test_missing_models_are_a_mistake_of_the_user(shared: Path, tmp_path: Path) -> None:
    for directory, language, package in (
        (tmp_path / "none", "en", "default"),
        (shared / "stanza", "en", "gum"),
    ):
        where = {"language": language, "directory": str(directory), "package": package}
        said = (
            rf"\(python -c .*stanza.download\('{language}', model_dir='{directory}'.*check "
            rf"parser.directory, package and"
        )
        said += r".* resources/make_parses\.py"
        with pytest.raises(UserError, match=said):
            stanza_engine.load_pipeline(**where)


def test_a_region_counts_where_stanza_knows_it(pipeline, shared: Path, tmp_path: Path) -> None:
    resources = read_json(shared / "stanza/resources.json")
    write_json(
        tmp_path / "resources.json", resources | {"en-gb": {"alias": "en", "lang_name": "British"}}
    )
    (tmp_path / "en").symlink_to(shared / "stanza/en")
    assert stanza_engine._code("zho_Hant", known={"zh", "zh-hans", "zh-hant"}) == "zh-hant"
    for language, code in (("en_GB", "en-gb"), ("en_US", "en")):
        loaded = stanza_engine.load_pipeline(
            language=language, directory=str(tmp_path), package="default"
        )
        assert stanza_engine.describe(loaded, package="default")["model"].startswith(
            f"{code}/default"
        )


def test_missing_models_are_fetched_once_and_before_parsing(
    analysis_file, pipeline, shared, tmp_path
) -> None:
    """A local server stands for the model hub."""
    hub = tmp_path / "hub"
    shutil.copytree(shared / "stanza/en", hub / "en", copy_function=shutil.copyfile)
    shutil.copyfile(
        shared / "stanza/resources.json", hub / f"resources_{stanza.__resources_version__}.json"
    )
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(hub))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    environment = {
        "STANZA_RESOURCES_URL": url,
        "STANZA_MODEL_URL": url + "/{lang}/{filename}",
        "no_proxy": "127.0.0.1",
    }
    where = {"language": "en", "directory": str(tmp_path / "models"), "package": "default"}
    manifest, output = tmp_path / "models.json", tmp_path / "out.parquet"
    files = {
        "text": analysis_file(["The cat sleeps."]),
        "output": output,
        "report": tmp_path / "out.json",
    }
    models = {"models": [where | {"download": True}]}
    fetch = partial(
        stage, "stanza_engine", settings=models, environment=environment, output=manifest
    )
    parse = partial(
        stage, "parse", settings=where | {"engine": "stanza"}, environment=environment, **files
    )
    early = parse()
    # the hub is there, but is not asked
    assert early.returncode == 2 and not list((tmp_path / "models").rglob("*.pt"))
    fetched = fetch()
    assert fetched.returncode == 0, fetched.stderr
    (about,) = read_json(manifest)
    assert about["model"].startswith("en/default") and str(tmp_path) not in manifest.read_text()
    assert about["sha256"]["depparse/ewt_small.pt"] == file_hash(
        shared / "stanza/en/depparse/ewt_small.pt"
    )
    server.shutdown()
    server.server_close()
    parsed = parse()  # the hub is gone, the models are there
    assert parsed.returncode == 0, parsed.stderr
    assert [word.form for word in read_parses(output)[0]] == ["The", "cat", "sleeps", "."]
    shutil.rmtree(tmp_path / "models")
    manifest.unlink()
    unreachable = fetch()
    assert unreachable.returncode == 2 and not manifest.exists()
    assert "could not be fetched" in unreachable.stderr and "parser.directory" in unreachable.stderr
