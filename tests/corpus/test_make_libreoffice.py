"""The maker of the embedded EN-RU corpus: what it reads from a help page, and how it pairs two pages."""

import importlib.util
from pathlib import Path

import pytest

MAKER = Path(__file__).parents[2] / "resources" / "make_libreoffice.py"


@pytest.fixture(scope="module")
def maker():
    spec = importlib.util.spec_from_file_location("make_libreoffice", MAKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ('<p id="par_1">Fish &amp; <b>chips</b>\n  &lt;now&gt;<br>here </p>', "Fish & chips <now> here"),
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
def test_text_of_a_paragraph(maker, tmp_path: Path, html: str, text: str) -> None:
    (tmp_path / "page.html").write_text(f"<body><p>outside</p>{html}<p id='par_2'> </p></body>", encoding="utf-8")
    assert maker.read_page(tmp_path / "page.html") == {"par_1": text}


def test_program_listings_are_left_out(maker, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text('<p id="par_1" class="code">Sub Main</p><h1 id="hd_1">Main</h1>')
    assert maker.read_page(tmp_path / "page.html") == {"hd_1": "Main"}


def test_pages_are_paired_by_id_and_divided_where_both_agree(maker, tmp_path: Path) -> None:
    pages = {
        "en/a/page.html": '<p id="par_1">One. Two, e.g. this.</p><p id="par_2">Only. English.</p><p id="par_3">A. B.</p>',
        "ru/a/page.html": '<p id="par_3">А и Б.</p><p id="par_1">Раз. Два, это.</p>',
        "en/alone.html": '<p id="par_1">Alone.</p>',
    }
    for name, html in pages.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(html, encoding="utf-8")
    pairs = maker.align(tmp_path / "en", tmp_path / "ru")
    assert pairs.source == ["One.", "Two, e.g. this.", "A. B."]
    assert pairs.target == ["Раз.", "Два, это.", "А и Б."]
    assert pairs.document == ["a/page"] * 3
