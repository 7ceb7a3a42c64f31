"""LibreOffice help out of two packages. What is read from a page: test_make_libreoffice.py."""

from collections import Counter
from pathlib import Path

from specialized_heads.corpus.debian.libreoffice import rows
from specialized_heads.corpus.debian.package import pack


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
