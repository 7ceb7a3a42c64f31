"""LibreOffice help: what is read from a page, and how the pages of two packages are paired."""

from collections import Counter
from pathlib import Path

import pytest

from specialized_heads.corpus.debian.libreoffice import paragraphs, rows
from specialized_heads.corpus.debian.package import pack


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ('<p id="par_1">Fish &amp; <b>chips</b><!-- x -->\n  &lt;now&gt;<br>here </p>', "Fish & chips <now> here"),
        (
            (
                '<p id="par_1">Press <span class="switchinline"><span hidden="true" id="MAC1">Command</span>'
                '<span hidden="true" id="default1"><span class="keycode">Ctrl</span></span></span><span>+Enter</span>.</p>'
            ),
            "Press Ctrl+Enter.",
        ),
        (
            (
                '<p id="par_1">In <span class="switchinline"><span hidden="true" id="CALC1">Calc</span>'
                '<span hidden="true" id="WRITER1">Writer</span></span> only</p>'
            ),
            "In Calc only",
        ),
    ],
)
def test_text_of_a_paragraph(html: str, text: str) -> None:
    assert paragraphs(f"<body><p>outside</p><!-- - -->{html}<p id='par_2'> </p></body>") == {"par_1": text}


BROKEN = ["", "\0", "<!-- -->", "<?xml version='1.0' encoding='latin-1'?>"]
BROKEN.append("<p id='par_1'>One.</p><![payload[two]]>" + "<span>" * 9999)


@pytest.mark.parametrize("page", BROKEN)
def test_broken_pages_are_read_as_far_as_they_go(page: str) -> None:
    assert paragraphs(page) in ({}, {"par_1": "One."})


def test_program_listings_are_left_out() -> None:
    assert paragraphs('<p id="par_1" class="code">Sub Main</p><h1 id="hd_1">Main</h1>') == {"hd_1": "Main"}


def test_packages_are_paired_by_page_and_id(tmp_path: Path) -> None:
    pages = {
        "en-US": {
            "b/two": '<h1 id="hd_1">Two</h1>',
            "a/one": '<p id="par_1">One. Fine.</p><p id="par_2">Only here.</p>',
            "alone": '<p id="par_1">Alone.</p>',
        },
        "ru": {"a/one": '<p id="par_3">Иное.</p><p id="par_1">Раз. Хорошо.</p>', "b/two": '<h1 id="hd_1">Два</h1>'},
    }
    for language, texts in pages.items():
        place = f"usr/share/libreoffice/help/{language}"
        contents = [(f"{place}/text/{name}.html", html.encode()) for name, html in texts.items()]
        pack(tmp_path / f"{language}.tar.gz", [*contents, (f"{place}/index.html", b"<p id='par_1'>Start</p>")])
    counts = Counter[str]()
    assert list(rows([tmp_path / "en-US.tar.gz", tmp_path / "ru.tar.gz"], language="ru", counts=counts)) == [
        ("One.", "Раз.", "libreoffice/a/one"),
        ("Fine.", "Хорошо.", "libreoffice/a/one"),
        ("Two", "Два", "libreoffice/b/two"),
    ]
    assert counts == {"paragraph_without_translation": 1, "page_without_translation": 1}
