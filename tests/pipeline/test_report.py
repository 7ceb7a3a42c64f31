"""The report: one page that holds every figure and table, needs no network, and opens in a real
browser."""

import zipfile
from pathlib import Path

import pytest
from chromium import chromium
from workflows import wait_for

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


def test_it_holds_every_figure_and_table_that_the_experiment_has(smoke, unpacked) -> None:
    figures = {path.name for path in smoke.file("figures").glob("*.png")}
    tables = {path.name for path in smoke.file("tables").glob("*.html")}
    assert {path.stem for path in smoke.file("tables").glob("*.csv")} == {
        Path(name).stem for name in tables
    }
    assert {f"figure{number}.png" for number in range(1, 11)} | {
        "front.png",
        "training_curves.png",
    } <= figures
    assert {"table1.html", "table2.html", "models.html", "data_card.html"} <= tables
    files = {path.name for path in unpacked.rglob("*") if path.is_file()}
    assert files == figures | tables | {"claims.html", "report.html"}


def test_it_opens_without_a_network_and_lists_its_parts_in_order(
    unpacked: Path, tmp_path: Path
) -> None:
    with chromium(tmp_path) as browser:

        def texts(selector: str) -> list[str]:
            script = (
                "return [...document.querySelectorAll(arguments[0])].map(each => each.textContent)"
            )
            return browser.run(script, selector)

        browser.resize(1366, 768)
        browser.open("about:blank")
        browser.console(), browser.requests()
        browser.open((unpacked / "report.html").as_uri())
        wait_for(lambda: texts(".prose a"))
        assert texts("nav li")[-len(CATEGORIES) :] == texts(".prose a") == CATEGORIES
        assert texts(".prose .system-message, .prose .problematic") == []
        browser.click(".prose li:nth-child(3) a")
        wait_for(lambda: texts("nav tbody tr"))
        names = [name.split(":")[0].replace("\u2007", "") for name in texts("nav tbody tr")]
        assert names == [f"Figure {number}" for number in range(1, 11)] + ["Table 1", "Table 2"]
        assert browser.console("SEVERE") == []
        assert [
            url for url in browser.requests() if not url.startswith(("file:", "data:", "blob:"))
        ] == []
