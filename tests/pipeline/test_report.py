"""The report: one page that holds every figure and table, needs no network, and shows them in a real browser."""

import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser, chromium

CATEGORIES = ["Claims", "Data", "Figures and tables", "Heads", "Pruning", "Runs"]


@pytest.fixture(scope="module")
def unpacked(smoke, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the smoke experiment's report."""
    folder = tmp_path_factory.mktemp("report")
    run = smoke.run("--report", str(folder / "report.zip"))
    assert run.status == 0, run.printed[-5000:]
    with zipfile.ZipFile(folder / "report.zip") as archive:
        archive.extractall(folder)
    return folder / "report"


@pytest.fixture(scope="module")
def browser(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser with the report open, from disk."""
    with chromium(tmp_path_factory.mktemp("chromedriver")) as browser:
        browser.resize(1366, 768)
        browser.open("about:blank")
        browser.console("SEVERE"), browser.requests()
        browser.open((unpacked / "report.html").as_uri())
        wait_for(browser, ".prose a")
        yield browser


def held(browser: Browser) -> dict[str, dict[str, Any]]:
    """The results in the page, by file name."""
    return browser.run("return Object.fromEntries(Object.values(results).map(each => [each.name, each]))")


def entries(browser: Browser, selector: str) -> list[str]:
    return browser.run("return [...document.querySelectorAll(arguments[0])].map(each => each.textContent)", selector)


def wait_for(browser: Browser, selector: str) -> None:
    """Until the page has drawn it, at most ten seconds."""
    for _ in range(100):
        if entries(browser, selector):
            return
        time.sleep(0.1)
    raise AssertionError(f"{selector} is not shown")


def test_it_holds_every_figure_and_table_that_the_experiment_has(smoke, unpacked) -> None:
    figures = {path.name for path in smoke.file("figures").glob("*.png")}
    tables = {path.name for path in smoke.file("tables").glob("*.html")}
    assert {path.stem for path in smoke.file("tables").glob("*.csv")} == {Path(name).stem for name in tables}
    assert {f"figure{number}.png" for number in range(1, 11)} | {"front.png", "training_curves.png"} <= figures
    assert {"table1.html", "table2.html", "models.html", "data_card.html"} <= tables
    files = {path.name for path in unpacked.rglob("*") if path.is_file()}
    assert files == figures | tables | {"claims.html", "report.html"}
    assert (unpacked.parent / "report.zip").stat().st_size < 10_000_000


def test_it_opens_with_the_study_and_its_parts_in_order(browser) -> None:
    assert entries(browser, "nav li")[-len(CATEGORIES) :] == CATEGORIES
    assert "smoke" in browser.text(".prose")
    assert entries(browser, ".prose .system-message, .prose .problematic") == []
    assert entries(browser, ".prose a") == CATEGORIES


def test_the_figures_of_the_paper_are_listed_in_order_and_shown(browser) -> None:
    browser.click(".prose li:nth-child(3) a")
    wait_for(browser, "nav tbody tr")
    names = [name.split(":")[0].replace("\u2007", "") for name in entries(browser, "nav tbody tr")]
    assert names == [f"Figure {number}" for number in range(1, 11)] + ["Table 1", "Table 2"]
    browser.click("nav tbody tr:nth-child(7) a")
    picture = f'img[src="{held(browser)["figure7.png"]["data_uri"]}"]'
    wait_for(browser, picture)
    script = "const shown = document.querySelector(arguments[0]); return shown.decode().then(() => shown.naturalWidth)"
    assert browser.run(script, picture) > 1000
    browser.click("nav tbody tr:nth-child(12) a")
    wait_for(browser, f'iframe[src="{held(browser)["table2.html"]["data_uri"]}"]')


def test_it_asks_for_nothing_and_complains_about_nothing(browser) -> None:
    assert browser.console("SEVERE") == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:", "blob:"))] == []
