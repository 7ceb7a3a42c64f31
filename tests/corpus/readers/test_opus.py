"""Source opensubtitles: alignment and text in the layout of OPUS's release, and hostile XML."""

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from packing import zipped

from specialized_heads.corpus.readers import archives
from specialized_heads.corpus.readers.opus import read_opensubtitles, sentences
from specialized_heads.experiment.sources import OpenSubtitles
from specialized_heads.stage import UserError

HEAD = (
    '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE cesAlign PUBLIC "-//CES//DTD XML '
    'cesAlign//EN" "">\n'
)
HEAD += '<cesAlign version="1.0">\n'
GROUP = ' <linkGrp targType="s" fromDoc="en/{0}.xml.gz" toDoc="ru/{0}9.xml.gz" >\n{1} </linkGrp>\n'
LINKS = """\
    <link id="SL1" xtargets="1;1" overlap="0.95" />
    <link id="SL2" xtargets="2;2" overlap="0.5" />
    <link id="SL3" xtargets="3;3" />
    <link id="SL4" xtargets="4 5;4" overlap="0.9" />
    <link id="SL5" xtargets="6;" />
    <link id="SL6" xtargets=";5" overlap="1.0" />
    <link id="SL7" xtargets="6;6" overlap="nan" />
    <link id="SL8" xtargets="7;7" overlap="0.99" />
"""
FILMS = ("1999/0133093/3660124", "0/1084944/3377035")


def document(texts: list[str]) -> str:
    """A raw document: sentences around times, the text in lines of its own, and what OPUS says of
    the file at the end."""
    body = "".join(
        f'  <s id="{n}">\n    <time id="T{n}S" value="00:00:0{n},000" />\n{text}\n'
        f'    <time id="T{n}E" value="00:00:0{n},900" />\n  </s>\n'
        for n, text in enumerate(texts, start=1)
    )
    about = (
        "  <meta>\n    <subtitle>\n      <language>English</language>\n    </subtitle>\n  </meta>\n"
    )
    return f'<?xml version="1.0" encoding="utf-8"?>\n<document id="1">\n{body}{about}</document>\n'


ENGLISH = [
    "I'm  here.",
    "Too early.",
    "No times.",
    "Tom &amp;\nJerry",
    "came &lt;late&gt;.",
    "Alone.",
    "",
]
RUSSIAN = [
    "Я здесь.",
    "Рано.",
    "Нет времени.",
    "Том и Джерри опоздали.",
    "Один.",
    "Ничто.",
    "Пусто.",
]


@pytest.fixture
def release(tmp_path: Path) -> Callable[..., list[Path]]:
    """`release()`: alignment, English and Russian text of two films, as files; parts of it can be
    replaced."""

    def write(
        *, alignment: str = "", english: dict[str, str] | None = None, suffix: str = ".xml"
    ) -> list[Path]:
        groups = "".join(GROUP.format(name, LINKS) for name in FILMS)
        path = tmp_path / "en-ru.xml.gz"
        path.write_bytes(gzip.compress((alignment or f"{HEAD}{groups}</cesAlign>\n").encode()))
        texts = {"en": dict.fromkeys(FILMS, document(ENGLISH)) | (english or {})}
        texts["ru"] = {f"{name}9": document(RUSSIAN) for name in FILMS}
        pack = gzip.compress if suffix.endswith(".gz") else bytes
        for language, documents in texts.items():
            names = {
                f"OpenSubtitles/raw/{language}/{name}{suffix}": text
                for name, text in documents.items()
            }
            zipped(
                tmp_path / f"{language}.zip",
                {name: pack(text.encode()) for name, text in names.items()},
            )
        return [path, tmp_path / "en.zip", tmp_path / "ru.zip"]

    return write


def rows(
    files: list[Path], *, languages: tuple[str, str] = ("en", "ru")
) -> tuple[list[tuple[str, ...]], Counter[str]]:
    counts: Counter[str] = Counter()
    source = OpenSubtitles(kind="opensubtitles")
    batches = read_opensubtitles(source, files, languages=languages, counts=counts)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()], counts


PASSING = [("I'm here.", "Я здесь."), ("Tom & Jerry came <late>.", "Том и Джерри опоздали.")]


@pytest.mark.parametrize("suffix", [".xml", ".xml.gz"])
def test_only_links_with_enough_overlap_pass_and_the_others_are_counted(release, suffix) -> None:
    found, counts = rows(release(suffix=suffix))
    assert found == [(*pair, name.rpartition("/")[0], "") for name in FILMS for pair in PASSING]
    expected = {"one_side_empty": 4, "no_overlap_attribute": 2, "overlap_below_threshold": 4}
    expected |= {"no_text": 2}
    assert counts == expected
    assert len(found) + counts.total() == 2 * LINKS.count("<link ")


def test_the_other_direction_has_the_same_pairs(release) -> None:
    alignment, english, russian = release()
    forward, counts = rows([alignment, english, russian])
    backward, other_counts = rows([alignment, russian, english], languages=("ru", "en"))
    assert backward == [(target, source, *rest) for source, target, *rest in forward]
    assert other_counts == counts


def test_opus_own_reader_finds_the_same_pairs(release, tmp_path: Path) -> None:
    """`leave_non_alignments_out` is its name for links with an empty side; it passes text that is
    empty."""
    opustools = pytest.importorskip(
        "opustools", reason="opustools is not installed; pip install opustools"
    )
    alignment, english, russian = files = release()
    plain = tmp_path / "plain.xml"
    # Its comparison lets a value that is no number pass.
    plain.write_bytes(gzip.decompress(alignment.read_bytes()).replace(b"nan", b"0.1"))
    sides = {"source": "en", "target": "ru", "source_zip": str(english), "target_zip": str(russian)}
    sides |= {"directory": "OpenSubtitles", "preprocess": "raw", "alignment_file": str(plain)}
    links = opustools.OpusRead(
        **sides, attribute="overlap", threshold=0.9, leave_non_alignments_out=True
    )
    pairs = [tuple(" ".join(text.split()) for text in pair) for pair in links.yieldPairs()]
    assert [pair for pair in pairs if all(pair)] == [row[:2] for row in rows(files)[0]]


def test_missing_documents_and_sentences_are_counted(release) -> None:
    link = '<link xtargets="1;1" overlap="1" />'
    groups = GROUP.format("1950/7/7", link * 3) + GROUP.format(
        FILMS[0], link + link.replace('"1;1"', '"99;1"')
    )
    found, counts = rows(release(alignment=f"{HEAD}{groups}</cesAlign>"))
    assert [row[0] for row in found] == ["I'm here."]
    assert counts == {"no_document": 3, "no_sentence": 1}


def test_a_broken_document_costs_its_links_alone(release) -> None:
    found, counts = rows(release(english={FILMS[0]: document(ENGLISH)[:-30]}))
    assert [row[:2] for row in found] == PASSING
    assert counts["broken_document"] == 3


def test_tokens_of_the_other_release_are_joined() -> None:
    tokens = (
        '<document><s id="1">\n <w id="1.1">Hello</w>\n <w id="1.2">!</w>\n</s><s '
        'id="2"/></document>'
    )
    assert sentences(tokens.encode(), name="x") == {"1": "Hello !", "2": ""}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<link xtargets="1;1" />', r"line 4: <link xtargets=\"1;1\"> is not as in OPUS"),
        (GROUP.format("a", '<link overlap="0.9" />'), r"line 5: <link overlap=\"0.9\"> is not as"),
        (GROUP.format("a", '<link xtargets="1;1" overlap="much" />'), "line 5: <link"),
        ('<linkGrp fromDoc="en/a.xml.gz"></linkGrp>', "line 4: <linkGrp"),
        (GROUP.format("a", "<link "), "not well-formed"),
        (GROUP.format(FILMS[0], LINKS), "not well-formed XML .* fetch it again"),  # stops short
    ],
)
def test_alignments_that_are_none(release, text: str, message: str) -> None:
    with pytest.raises(UserError, match=rf"en-ru\.xml\.gz: .*{message}|en-ru\.xml\.gz: {message}"):
        rows(release(alignment=f"{HEAD}{text}"))


HOSTILE = {
    "bomb": '<!DOCTYPE x [<!ENTITY a "haha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>',
    "file": '<!DOCTYPE x [<!ENTITY b SYSTEM "file:///etc/passwd">]>',
    "undeclared": '<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">',
}


@pytest.mark.parametrize("doctype", HOSTILE.values(), ids=HOSTILE)
def test_entities_are_refused_in_text_and_alignment(release, doctype: str) -> None:
    text = f'<?xml version="1.0"?>{doctype}<document><s id="1">&b;</s></document>'
    with pytest.raises(UserError, match=r"en\.zip: OpenSubtitles/raw/en/.*entities of its own"):
        rows(release(english={FILMS[0]: text}))
    alignment = f'<?xml version="1.0"?>{doctype}<cesAlign>&b;</cesAlign>'
    with pytest.raises(UserError, match=r"en-ru\.xml\.gz: .*entities of its own"):
        rows(release(alignment=alignment))


def test_a_document_that_unfolds_too_far_is_refused(release, monkeypatch) -> None:
    files = release(english={FILMS[0]: document(["a" * 200_000])})
    monkeypatch.setattr(archives, "LARGEST", 100_000)
    with pytest.raises(UserError, match="larger than 100000 bytes"):
        rows(files)
