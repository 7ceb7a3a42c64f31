"""The table of known datasets, and which files a source needs of it."""

import re
from pathlib import PurePosixPath

import pytest

from specialized_heads.experiment.sources import Local, OpenSubtitles, Opus, Wmt, known
from specialized_heads.stage import UserError

NEWS = [f"newstest{year}" for year in range(2012, 2020)]


def wmt(**keys: object) -> Wmt:
    return Wmt(
        kind="wmt",
        **{"train": ["commoncrawl_en_ru"], "dev": ["newstest2013"], "test": ["newstest2014"]}
        | keys,
    )


def test_rows_are_complete_and_agree_on_shared_files() -> None:
    files: dict[str, tuple] = {}
    for dataset in known().values():
        assert dataset.url == "" or re.match(r"https?://", dataset.url)
        assert dataset.url or "register" in dataset.description
        assert dataset.sha256 is None or re.fullmatch("[0-9a-f]{64}", dataset.sha256)
        assert dataset.licence
        assert dataset.citation
        assert not PurePosixPath(dataset.file).is_absolute()
        about = (dataset.url, dataset.bytes, dataset.sha256)
        assert files.setdefault(dataset.file, about) == about


@pytest.mark.parametrize("languages", [("en", "ru"), ("ru", "en")])
def test_opus_names_a_pair_in_alphabetical_order(languages: tuple[str, str]) -> None:
    (moses,) = Opus(kind="opus", corpus="Tatoeba", version="v2023-04-12").datasets(languages)
    assert moses.url == "https://object.pouta.csc.fi/OPUS-Tatoeba/v2023-04-12/moses/en-ru.txt.zip"
    assert moses.file == "opus/Tatoeba/v2023-04-12/en-ru.txt.zip"
    subtitles = OpenSubtitles(kind="opensubtitles").datasets(languages)
    names = [
        file.url.removeprefix("https://object.pouta.csc.fi/OPUS-OpenSubtitles/v2018/")
        for file in subtitles
    ]
    assert names == ["xml/en-ru.xml.gz", f"raw/{languages[0]}.zip", f"raw/{languages[1]}.zip"]


@pytest.mark.parametrize("test", ["held.tsv", "./held.tsv", "data/../held.tsv"])
def test_one_file_is_not_two_sets(test: str) -> None:
    with pytest.raises(ValueError, match="the same file is named twice"):
        Local(kind="local", path="text.tsv", dev="held.tsv", test=test)


def test_a_doubled_slash_is_one() -> None:
    source = Local(kind="local", path="data//own.tsv", test="./data///test.tsv")
    assert (source.path, source.test) == ("data/own.tsv", "./data/test.tsv")


def test_a_file_with_several_datasets_is_wanted_once() -> None:
    source = wmt(
        train=["europarl_v7_en_fr"], dev=NEWS[:2], test=NEWS[2:3], analysis=["europarl_v7_en_fr"]
    )
    europarl, news = source.datasets(("en", "fr"))
    assert europarl.file == "wmt/training-parallel-europarl-v7.tgz"
    assert news.name == "newstest2012, newstest2013, newstest2014"
    assert news.citation.count("Findings") == 3
    # The text of the analysis may be of another pair.
    files = wmt(analysis=["europarl_v7_en_fr"]).datasets(("en", "ru"))
    assert europarl.file in [file.file for file in files]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"train": ["comoncrawl_en_ru"]},
            "unknown wmt dataset 'comoncrawl_en_ru'; nearest known: commoncrawl_en_ru",
        ),
        (
            {"train": ["europarl_v7_en_fr"]},
            "dataset europarl_v7_en_fr is en-fr, but the corpus needs en-ru",
        ),
    ],
)
def test_datasets_that_do_not_fit(keys: dict[str, list[str]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        wmt(**keys).datasets(("en", "ru"))


@pytest.mark.parametrize("name", ["../etc", "%2e%2e"])
def test_names_of_opus_cannot_lead_elsewhere(name: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        Opus(kind="opus", corpus=name, version="v1")
