"""Corpora that are fetched: small releases in the layout of the real ones, from a server of this machine, up to the splits.

The configuration's `mirrors` lead every published address to the server, so addresses, names and hashes are those of
`resources/datasets.csv`; only the hashes and sizes are put in their place there.
"""

import csv
import functools
import gzip
import http.server
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from specialized_heads.stage import file_hash, read_json

FILMS = range(20)
STATMT = "www.statmt.org"


def english(number: int, what: str) -> str:
    """A sentence of its own for each number: what differs must be letters, since digits do not count for overlap."""
    return f"The {chr(97 + number) * 3} {what} ends well."


def russian(number: int, what: str) -> str:
    return f"Этот {chr(0x430 + number) * 3} {what} кончается хорошо."


@pytest.fixture
def releases(tmp_path: Path) -> Path:
    """The folder that is served: one folder per host."""
    folder = tmp_path / "releases"
    folder.mkdir()
    return folder


@pytest.fixture
def server(releases: Path) -> Iterator[str]:
    """The address of a server for that folder."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(releases))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}/"
        running.shutdown()
        thread.join()


@pytest.fixture
def configured(project, server: str):
    """`configured(source, ...)`: the project with one corpus of this source, fetched from the server."""

    def configure(source: dict[str, Any], **more: Any) -> Any:
        values = project.settings()
        corpus = {"title": "Mine", "source": source, "target_language": "ru"} | more
        downloads = {"mirrors": {"http://": server, "https://": server}}
        values |= {"corpora": {"mine": corpus}, "parser": {"engine": "stanza"}, "downloads": downloads}
        return project.configured(values)

    return configure


def put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def tar(path: Path, files: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))


def check_hashes(project: Any, releases: Path) -> None:
    """Give the table of datasets the sizes and hashes of the small releases."""
    table = project.root / "resources" / "datasets.csv"
    with open(table, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        file = releases / row["url"].partition("//")[2]
        small = bool(row["url"]) and file.is_file()
        row["bytes"], row["sha256"] = (file.stat().st_size, file_hash(file)) if small else ("", "")
    with open(table, "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def texts(project: Any, split: str) -> list[tuple[str, str]]:
    frame = pd.read_parquet(project.file(f"mine/corpus/{split}.parquet"))
    return list(zip(frame["source"], frame["target"], strict=True))


def release_subtitles(releases: Path) -> None:
    """Films with three links each: one that overlaps enough, one that does not, and one of which nothing is known."""
    root = releases / "object.pouta.csc.fi" / "OPUS-OpenSubtitles" / "v2018"
    groups = "".join(
        f' <linkGrp targType="s" fromDoc="en/1999/{n}/1{n}.xml.gz" toDoc="ru/1999/{n}/2{n}.xml.gz" >\n'
        '  <link id="SL1" xtargets="1;1" overlap="0.95" />\n  <link id="SL2" xtargets="2;2" overlap="0.5" />\n'
        '  <link id="SL3" xtargets="3;3" />\n </linkGrp>\n'
        for n in FILMS
    )
    head = '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE cesAlign PUBLIC "-//CES//DTD XML cesAlign//EN" "">\n'
    put(root / "xml/en-ru.xml.gz", gzip.compress(f'{head}<cesAlign version="1.0">\n{groups}</cesAlign>\n'.encode()))
    for language, number, sentence in (("en", 1, english), ("ru", 2, russian)):
        path = root / f"raw/{language}.zip"
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for n in FILMS:
                body = "".join(
                    f'<s id="{i}">\n<time id="T{i}S" value="00:00:0{i},000" />\n{sentence(n, what)}\n</s>\n'
                    for i, what in enumerate(("film", "noise", "riddle"), start=1)
                )
                xml = f'<?xml version="1.0" encoding="utf-8"?>\n<document id="{number}{n}">\n{body}</document>\n'
                archive.writestr(f"OpenSubtitles/raw/{language}/1999/{n}/{number}{n}.xml", xml)


def test_only_subtitles_that_overlap_in_time_become_a_corpus(configured, releases: Path) -> None:
    release_subtitles(releases)
    workflow = configured({"kind": "opensubtitles"}, split={"dev": 3, "test": 4, "analysis": 5})
    run = workflow.run("results/smoke/mine/corpus/counts.json")
    assert run.status == 0, run.printed[-5000:]

    splits = {name: texts(workflow, name) for name in ("train", "dev", "test", "analysis")}
    assert {name: len(pairs) for name, pairs in splits.items()} == {"train": 8, "dev": 3, "test": 4, "analysis": 5}
    expected = [(english(n, "film"), russian(n, "film")) for n in FILMS]
    assert sorted(pair for pairs in splits.values() for pair in pairs) == sorted(expected)

    card = read_json(workflow.file("mine/corpus/raw.json"))
    assert (card["read"], card["pairs"]) == (60, 20)
    assert card["dropped"] == {"no_overlap_attribute": 20, "overlap_below_threshold": 20}
    assert "http://www.opensubtitles.org/" in card["licence"]
    assert [file["url"].rpartition("/")[2] for file in card["files"]] == ["en-ru.xml.gz", "en.zip", "ru.zip"]
    # What was fetched is not fetched again.
    assert "Nothing to be done" in workflow.run("--dry-run", "results/smoke/mine/corpus/counts.json").printed


def test_news_text_with_held_out_sets_of_its_own_becomes_a_corpus(configured, project, releases: Path) -> None:
    """The test set occurs in the training text, and the analysis sentences are of another pair."""
    crawl = [(english(n, "page"), russian(n, "page")) for n in range(12)]
    test = [crawl[3], (english(1, "test"), russian(1, "test"))]

    def sides(stem: str, pairs: list[tuple[str, str]], *languages: str) -> dict[str, str]:
        columns = zip(*pairs, strict=True)
        return {f"{stem}.{name}": "".join(f"{x}\n" for x in column) for name, column in zip(languages, columns)}

    tar(
        releases / STATMT / "wmt13/training-parallel-commoncrawl.tgz",
        sides("commoncrawl.ru-en", crawl, "en", "ru"),
    )
    french = [(english(n, "debate"), f"Le débat {n} se termine bien.") for n in range(10)]
    tar(
        releases / STATMT / "wmt13/training-parallel-europarl-v7.tgz",
        sides("training/europarl-v7.fr-en", french, "en", "fr"),
    )
    segments = {
        f"dev/newstest2014-ruen-{side}.{language}.sgm": f'<{side}set setid="newstest2014" srclang="any">\n'
        f'<doc docid="paper.1" origlang="en">\n'
        + "".join(f'<seg id="{i}">{pair[n]}</seg>\n' for i, pair in enumerate(test, start=1))
        + f"</doc>\n</{side}set>\n"
        for side, language, n in (("src", "en", 0), ("ref", "ru", 1))
    }
    development = [(english(n, "dev"), russian(n, "dev")) for n in range(3)]
    tar(
        releases / "data.statmt.org/wmt19/translation-task/dev.tgz",
        sides("dev/newstest2013", development, "en", "ru") | segments,
    )
    check_hashes(project, releases)
    source = {
        "kind": "wmt",
        "train": ["commoncrawl_en_ru", "yandex_1m_en_ru"],
        "dev": ["newstest2013"],
        "test": ["newstest2014"],
        "analysis": ["europarl_v7_en_fr"],
    }
    workflow = configured(source)
    counts = "results/smoke/mine/corpus/counts.json"

    missing = workflow.run(counts)
    assert missing.status == 1
    assert "data/wmt/1mcorpus.zip" in missing.printed
    by_hand = project.root / "data/wmt/1mcorpus.zip"
    by_hand.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(by_hand, "w") as archive:
        for name, text in sides("corpus.en_ru.1m", [(english(0, "site"), russian(0, "site"))], "en", "ru").items():
            archive.writestr(name, text)

    run = workflow.run(counts)
    assert run.status == 0, run.printed[-5000:]
    assert by_hand.is_file()
    assert texts(workflow, "test") == test
    assert texts(workflow, "dev") == development
    analysis = texts(workflow, "analysis")
    assert set(analysis) == {(sentence, "") for sentence, _ in french}
    site = (english(0, "site"), russian(0, "site"))
    assert sorted(texts(workflow, "train")) == sorted([*(pair for pair in crawl if pair != crawl[3]), site])
