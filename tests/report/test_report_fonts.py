"""Letters of any language in figures."""

import pytest
from matplotlib.figure import Figure
from matplotlib.font_manager import findSystemFonts

from specialized_heads.report import fonts, style


def figure_of(text: str) -> Figure:
    figure = Figure()
    figure.subplots().set_title(text)
    return figure


def test_only_letters_that_the_font_lacks_are_missing() -> None:
    assert fonts.missing(figure_of("Größe λ Москва عربي עברית → …")) == set()
    assert fonts.missing(figure_of("EN → 中文")) == {"中", "文"}


def test_fonts_are_searched_for_what_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    assert fonts.having(set()) == []
    nobody = "\U0010fffd"  # of a private area
    with caplog.at_level("WARNING"):
        assert fonts.having({nobody}) == []
    assert "no font on this machine has" in caplog.text
    letters = {"中", "文"}
    if not any(letters <= set(map(chr, fonts._letters_of(path))) for path in findSystemFonts()):
        pytest.skip("no font with Chinese letters is installed")
    families = fonts.having(letters)
    assert len(families) == 1
    with style.sheet(families):
        figure = Figure()
        assert families[0] in figure.subplots().set_title("中文").get_fontfamily()


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("EN-RU, n = 100", "EN-RU, n = 100"),
        ("عربي → 中文: 4 heads", "<عربي> → 中文: 4 heads"),
        ("עברית (4 heads)", "<עברית> (4 heads)"),
        ("كتاب عربي, n = 3", "<كتاب عربي>, n = 3"),
    ],
)
def test_what_stands_beside_letters_from_right_to_left_stays_in_order(text: str, marked: str) -> None:
    figure = figure_of(text)
    fonts.keep_order(figure)
    assert figure.axes[0].get_title() == marked.replace("<", fonts.MARK).replace(">", fonts.MARK)
