"""Manuals: the blocks of a page, which pages belong together, and which of their blocks are pairs."""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from specialized_heads.corpus.debian.manuals import ENGLISH, align, html, mallard, rows, without_language
from specialized_heads.corpus.debian.package import pack
from specialized_heads.stage import UserError

RUSSIAN = {"ru", "ru_RU", "ru-RU"}


def test_blocks_of_an_html_page() -> None:
    page = """<html><head><title>Not shown</title></head><body>
      <div class="navheader"><p>Next</p></div>
      <h1><span class="section-number">1.</span> Title<a class="headerlink">¶</a></h1>
      <p>First <b>line</b>,<br/>second &amp; last
      <p>Unclosed
      <ul><li>Outer<ul><li><p>inner</p></li></ul></li></ul>
      <pre>code <p>listing</p></pre><div class="para">Book</div><div>Loose</div>
      <ul class="docnav"><li>Up</li></ul></body></html>"""
    assert html(page) == [
        ("h1", "1. Title"),
        ("p", "First line, second & last"),
        ("p", "Unclosed"),
        ("li", "Outer"),
        ("li", ""),
        ("p", "inner"),
        ("div", "Book"),
    ]


def test_blocks_of_a_mallard_page() -> None:
    page = """<page xmlns="http://projectmallard.org/1.0/">
      <info><desc>What it is.</desc><title type="sort">1</title><credit><name>A. Writer</name></credit></info>
      <title>Keys</title>
      <steps><item><p>Press <keyseq><key>Ctrl</key><key>C</key></keyseq>, then <guiseq><gui>File</gui>
        <gui>Save</gui></guiseq>.</p></item></steps>
      <screen>ls</screen><p>See <link xref="other"/>.</p><p>See <link href="x">this</link>.</p></page>"""
    assert mallard(page) == [
        ("desc", "What it is."),
        ("h1", ""),
        ("h1", "Keys"),
        ("p", "Press Ctrl+C, then File ▸ Save."),
        ("p", ""),
        ("p", "See this."),
    ]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("usr/share/help/ru/gnome-help/keys.page", "usr/share/help/gnome-help/keys.page"),
        ("usr/share/doc/debian/FAQ/ru/support.ru.html", "usr/share/doc/debian/FAQ/support.html"),
        ("usr/share/doc/maint-guide-ru/html/start.ru.html", "usr/share/doc/maint-guide/html/start.html"),
        ("usr/share/doc/handbook/ru-RU/index.html.gz", "usr/share/doc/handbook/index.html"),
        ("usr/share/doc/handbook/index.html", None),
        ("usr/share/doc/guru/index.html", None),
        ("usr/share/help/de/gnome-help/keys.page", None),
    ],
)
def test_place_of_a_page_without_its_language(name: str, place: str | None) -> None:
    assert without_language(name, languages=RUSSIAN) == place


def test_english_pages_have_one_place_under_each_of_its_names() -> None:
    names = ["help/C/keys.page", "help/en/keys.page", "help/en-US/keys.page"]
    assert {without_language(name, languages=ENGLISH) for name in names} == {"help/keys.page"}


def test_sections_of_one_structure_are_paired_and_others_counted() -> None:
    source = [("h1", "1.2. One"), ("p", "First. Second. [3]"), ("h2", "Two"), ("p", "Only"), ("p", "here"), ("h2", "3")]
    target = [("h1", "1.2. Раз"), ("p", "Первое. Второе [3]."), ("h2", "Два"), ("p", "Одно"), ("h2", "3")]
    counts = Counter[str]()
    assert list(align(source, target, counts=counts)) == [("One", "Раз"), ("First.", "Первое."), ("Second.", "Второе.")]
    assert counts == {"structure_differs": 3, "no_text": 1}


def test_other_headings_drop_the_page() -> None:
    counts = Counter[str]()
    assert not list(align([("h1", "A"), ("p", "B")], [("h2", "А"), ("p", "Б")], counts=counts))
    assert counts == {"structure_differs": 2}


def test_pages_of_two_packages_are_paired(tmp_path: Path) -> None:
    english, russian = tmp_path / "faq.tar.gz", tmp_path / "faq-ru.tar.gz"
    pack(
        english,
        [
            ("doc/faq/a.en.html", b"<p>Why?</p>"),
            ("doc/faq/b.en.html.gz", gzip.compress(b"<p>How?</p>")),
            ("doc/faq/de/a.de.html", b"<p>Warum?</p>"),
            ("doc/faq/broken.en.html", b"<p>Caf\xe9</p>"),
        ],
    )
    texts = {"b": "Как?", "a": "Почему?", "alone": "Где?", "broken": "Кафе"}
    pack(russian, [(f"doc/faq-ru/{name}.ru.html", f"<p>{text}</p>".encode()) for name, text in texts.items()])
    for paths in ([english, russian], [russian, english]):
        counts = Counter[str]()
        assert sorted(rows(paths, language="ru", counts=counts)) == [
            ("How?", "Как?", "manuals/doc/faq/b.html"),
            ("Why?", "Почему?", "manuals/doc/faq/a.html"),
        ]
        assert counts == {"page_without_original": 1, "broken_page": 1}
    with pytest.raises(UserError, match="no page in English and in fr; name the package of the translation"):
        list(rows([english, russian], language="fr", counts=Counter()))
