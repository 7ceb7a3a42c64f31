"""The guide for a new figure in docs/extending.md, followed to the letter: two edits, and the figure is made."""

from pathlib import Path

from pages import blocks

GUIDE = Path(__file__).parents[2] / "docs" / "extending.md"


def test_a_figure_takes_two_edits(finished) -> None:
    module, row = blocks(GUIDE, "python")[:2]
    path = module.splitlines()[0].removeprefix("# ")
    assert not (finished.root / path).exists()
    (finished.root / path).write_text(module, encoding="utf-8")
    rows = finished.root / "src/specialized_heads/experiment/figures.py"
    text = rows.read_text(encoding="utf-8")
    rows.write_text(text.replace("RESULTS = [\n", f"RESULTS = [\n    {row.strip()},\n", 1), encoding="utf-8")

    target = "results/smoke/figures/entropy.pdf"
    run = finished.run(target)
    assert run.status == 0, run.printed[-5000:]
    assert run.rules == {"figure"}
    assert finished.file("figures/entropy.pdf").read_bytes().startswith(b"%PDF-")
    assert "EN-FR Tatoeba" in finished.file("figures/entropy.csv").read_text(encoding="utf-8")
    # It is made by default, and makes nothing else stale but the table of the environment.
    assert {path for _, path in finished.stale()} == {
        f"tables/environment.{end}" for end in ("html", "md", "tex", "csv")
    }
    finished.file("figures/entropy.pdf").unlink()
    assert ("figure", "figures/entropy.pdf") in finished.stale()
