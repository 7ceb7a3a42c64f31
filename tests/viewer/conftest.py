"""A browser, and a page in it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chromium import Browser, chromium


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for all tests of this folder."""
    with chromium(tmp_path_factory.mktemp("chromedriver")) as browser:
        yield browser


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Browser]]:
    """`shown(text, "#encoder-1-2")`: the browser with a page of this text, opened from disk. No
    page may log an error."""

    def show(text: str, fragment: str = "") -> Browser:
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        browser.resize(1366, 768)
        assert browser.console() == []
        browser.open("about:blank")
        browser.requests()
        browser.open(path.as_uri() + fragment)
        return browser

    yield show
    assert browser.console() == []
