"""Source wmt: every published format in its real layout, the held-out sets, and the draw of
analysis sentences."""

import gzip
from collections import Counter
from pathlib import Path

import pytest
from packing import tarred, zipped

from specialized_heads.corpus.readers import wmt
from specialized_heads.corpus.readers.wmt import read_wmt, segments
from specialized_heads.experiment.sources import Wmt
from specialized_heads.stage import UserError


def text(name: str, language: str, lines: int = 3) -> str:
    return "".join(f"{name} {language} {n}\n" for n in range(1, lines + 1))


def sgm(tag: str, language: str, documents: dict[str, list[str]]) -> str:
    body = "".join(
        f'<doc sysid="ref" docid="{name}" genre="news" origlang="en">\n<p>\n'
        + "".join(f'<seg id="{n}">{segment}</seg>\n' for n, segment in enumerate(texts, start=1))
        + "</p>\n</doc>\n"
        for name, texts in documents.items()
    )
    return f'<{tag} setid="newstest" srclang="any" trglang="{language}">\n{body}</{tag}>\n'


def both(stem: str, other: str) -> dict[str, str]:
    """Two aligned files of a pair with English; a third in another language must not be taken for
    either."""
    return {
        f"{stem}.{other}": text(stem, other),
        f"{stem}.en": text(stem, "en"),
        f"{stem}.cs": text(stem, "cs", 9),
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Small releases of everything that resources/datasets.csv knows for EN-RU and EN-FR, under
    their names below data/."""
    folder = tmp_path / "data"
    (folder / "wmt").mkdir(parents=True)
    wmt = folder / "wmt"
    tarred(wmt / "training-parallel-europarl-v7.tgz", both("training/europarl-v7.fr-en", "fr"))
    tarred(
        wmt / "training-parallel-commoncrawl.tgz",
        both("commoncrawl.ru-en", "ru") | both("commoncrawl.fr-en", "fr"),
    )
    tarred(
        wmt / "training-parallel-nc-v13.tgz",
        both("training-parallel-nc-v13/news-commentary-v13.ru-en", "ru"),
    )
    giga = {side: gzip.compress(text("giga", side, 5).encode()) for side in ("en", "fr")}
    tarred(
        wmt / "training-giga-fren.tar",
        {f"giga-fren.release2.fixed.{side}.gz": giga[side] for side in giga},
    )
    tarred(
        wmt / "wiki-titles.tgz",
        {"wiki/ru-en/wiki.ru-en": "Кот ||| Cat\n ||| \nПёс ||| Dog ||| x\n"},
    )
    (wmt / "news-commentary-v14.en-ru.tsv.gz").write_bytes(
        gzip.compress("A cat.\tКот.\n\t\nA dog.\n".encode())
    )
    (wmt / "wikititles-v1.ru-en.tsv.gz").write_bytes(gzip.compress("Кот\tCat\n".encode()))
    zipped(
        wmt / "1mcorpus.zip",
        {f"corpus.en_ru.1m.{side}": text("yandex", side) for side in ("ru", "en")},
    )
    english = {
        "guardian.1": ["AT&amp;T", "  two\nlines "],
        "bbc.2": ["&#1076;&#x430; &unknown; &#55296; 3 < 4"],
    }
    russian = {"guardian.1": ["ATT", "две строки"], "bbc.2": ["да"]}
    tarred(
        wmt / "wmt19-dev.tgz",
        {
            "dev/newstest2013.en": text("dev", "en"),
            "dev/newstest2013.ru": text("dev", "ru"),
            "dev/newstest2014-ruen-src.ru.sgm": sgm("srcset", "ru", russian),
            "dev/newstest2014-ruen-ref.en.sgm": sgm("refset", "en", english),
            "dev/newstest2015-enru-src.en.sgm": sgm("srcset", "en", {"a": ["from English"]}),
            "dev/newstest2015-enru-ref.ru.sgm": sgm("refset", "ru", {"a": ["с английского"]}),
            "dev/newstest2015-ruen-src.ru.sgm": sgm("srcset", "ru", {"a": ["с русского"]}),
            "dev/newstest2015-ruen-ref.en.sgm": sgm("refset", "en", {"a": ["from Russian"]}),
        },
    )
    return folder


Row = tuple[str, str, str, str]


def rows(
    data: Path, *, languages=("en", "ru"), counts: Counter[str] | None = None, **keys: object
) -> list[Row]:
    keys = {
        "kind": "wmt",
        "train": ["commoncrawl_en_ru"],
        "dev": ["newstest2013"],
        "test": ["newstest2014"],
    } | keys
    source = Wmt.model_validate(keys)
    files = [data / file.file for file in source.datasets(languages)]
    batches = read_wmt(
        source, files, languages=languages, counts=Counter() if counts is None else counts
    )
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def pairs(found: list[Row], set_: str = "") -> list[tuple[str, str]]:
    return [row[:2] for row in found if row[3] == set_]


def lines(name: str, source: str, target: str) -> list[tuple[str, str]]:
    return [(f"{name} {source} {n}", f"{name} {target} {n}") for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("commoncrawl_en_ru", lines("commoncrawl.ru-en", "en", "ru")),
        (
            "news_commentary_v13_en_ru",
            lines("training-parallel-nc-v13/news-commentary-v13.ru-en", "en", "ru"),
        ),
        ("yandex_1m_en_ru", lines("yandex", "en", "ru")),
        ("news_commentary_v14_en_ru", [("A cat.", "Кот.")]),
        ("wiki_titles_v1_ru_en", [("Cat", "Кот")]),
        ("wiki_headlines_ru_en", [("Cat", "Кот")]),
    ],
)
def test_training_formats_in_both_directions(data, dataset, expected) -> None:
    assert pairs(rows(data, train=[dataset])) == expected
    assert pairs(rows(data, train=[dataset], languages=("ru", "en"))) == [
        pair[::-1] for pair in expected
    ]


def test_lines_without_two_columns_and_blank_ones_are_counted_once(data: Path) -> None:
    counts: Counter[str] = Counter()
    train = ["news_commentary_v14_en_ru", "wiki_headlines_ru_en"]
    rows(data, train=train, counts=counts)
    assert counts == {"not_two_columns": 2, "blank_line": 2}
    counts.clear()
    rows(data, train=train, analysis=train[:1], counts=counts)
    assert counts == {"not_two_columns": 2, "blank_line": 2}


def test_news_tests_have_documents_and_resolved_entities(data: Path) -> None:
    found = rows(data)
    assert pairs(found, "dev") == lines("dev", "en", "ru")
    assert [row for row in found if row[3] == "test"] == [
        ("AT&T", "ATT", "newstest2014/guardian.1", "test"),
        ("two lines", "две строки", "newstest2014/guardian.1", "test"),
        ("да &unknown; \ufffd 3 < 4", "да", "newstest2014/bbc.2", "test"),
    ]


def test_a_news_test_is_that_of_the_direction(data: Path) -> None:
    assert pairs(rows(data, test=["newstest2015"]), "test") == [("from English", "с английского")]
    backward = rows(data, test=["newstest2015"], languages=("ru", "en"))
    assert pairs(backward, "test") == [("с русского", "from Russian")]


def test_analysis_sentences_are_the_same_for_every_pair_and_not_trained_on(
    data: Path, monkeypatch
) -> None:
    monkeypatch.setattr(wmt, "ANALYSIS", 4)
    analysis = {"analysis": ["europarl_v7_en_fr", "giga_fren"]}
    english_french = {
        "languages": ("en", "fr"),
        "dev": ["giga_fren"],
        "test": ["europarl_v7_en_fr"],
    }
    everything = rows(data, train=analysis["analysis"], **english_french)
    # archives in an archive
    assert pairs(everything)[3:] == [(f"giga en {n}", f"giga fr {n}") for n in range(1, 6)]
    counts: Counter[str] = Counter()
    own = rows(data, train=analysis["analysis"], **english_french, **analysis, counts=counts)
    drawn = pairs(own, "analysis")
    assert len(drawn) == 4
    assert sorted(pairs(own) + drawn) == sorted(pairs(everything))
    assert not counts  # none is lost: a sentence that is drawn is one of the analysis set
    # With Russian the sentences are the same, and nothing is known of their translation.
    other = rows(data, **analysis)
    assert pairs(other, "analysis") == [(source, "") for source, _ in drawn]
    assert pairs(other) == lines("commoncrawl.ru-en", "en", "ru")
    assert rows(data, **analysis) == other


def test_blank_sentences_are_not_drawn(data: Path) -> None:
    path = data / "wmt" / "training-parallel-europarl-v7.tgz"
    stem = "training/europarl-v7.fr-en"
    tarred(path, {f"{stem}.en": "\none\n \ntwo\n", f"{stem}.fr": "vide\nun\nvide\n\n"})
    found = rows(data, analysis=["europarl_v7_en_fr"])
    assert pairs(found, "analysis") == [("one", ""), ("two", "")]


def test_sides_that_do_not_match_are_refused(data: Path) -> None:
    files = {
        "dev/newstest2015-enru-src.en.sgm": sgm("srcset", "en", {"a": ["1", "2"], "b": ["3"]}),
        "dev/newstest2015-enru-ref.ru.sgm": sgm("refset", "ru", {"a": ["1"], "b": ["2", "3"]}),
        "dev/newstest2013.en": "1\n",
        "dev/newstest2013.ru": "1\n",
    }
    tarred(data / "wmt" / "wmt19-dev.tgz", files)
    with pytest.raises(UserError, match="do not have the same documents and segments"):
        rows(data, train=["yandex_1m_en_ru"], test=["newstest2015"])


def test_a_news_test_that_is_not_in_the_archive_is_named(data: Path) -> None:
    with pytest.raises(UserError, match=r"wmt19-dev\.tgz: no newstest2018 from en to ru in it"):
        rows(data, test=["newstest2018"])


def test_a_damaged_file_inside_of_an_archive_is_refused(data: Path) -> None:
    packed = gzip.compress(text("giga", "en", 500).encode())
    files = {
        "giga-fren.release2.fixed.en.gz": packed[:-20],
        "giga-fren.release2.fixed.fr.gz": packed,
    }
    tarred(data / "wmt" / "training-giga-fren.tar", files)
    with pytest.raises(UserError, match=r"training-giga-fren\.tar: not a complete"):
        sets = {"train": ["giga_fren"], "dev": ["giga_fren"], "test": ["europarl_v7_en_fr"]}
        rows(data, **sets, languages=("en", "fr"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('<!DOCTYPE x [<!ENTITY b "haha">]><doc><seg>&b;</seg></doc>', "declares entities"),
        ('<doc docid="1"><seg>a</seg><seg>b</doc>', "document '1', segment 2: no </seg>"),
        ("<doc><seg>\udcff</seg></doc>", "not UTF-8"),
    ],
)
def test_hostile_or_broken_segments(content: str, message: str) -> None:
    with pytest.raises(UserError, match=f"x: {message}"):
        segments(content.encode("utf-8", "surrogateescape"), name="x")


def test_a_document_type_is_not_fetched() -> None:
    head = '<?xml version="1.0"?>\n<!DOCTYPE mteval SYSTEM "http://127.0.0.1:9/mteval.dtd">\n'
    found = segments(f'{head}<DOC docid="a"><SEG id="1"> x </SEG></DOC>'.encode(), name="x")
    assert found == [(("a", 1), "x")]
