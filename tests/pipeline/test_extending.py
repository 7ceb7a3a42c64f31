"""The guide for a new figure in docs/extending.md, followed to the letter: three edits, and the figure is made."""

from pathlib import Path

from pages import blocks

GUIDE = Path(__file__).parents[2] / "docs" / "extending.md"


def test_a_figure_takes_three_edits(finished) -> None:
    module, row = blocks(GUIDE, "python")[:2]
    caption = blocks(GUIDE, "rst")[0]
    path = module.splitlines()[0].removeprefix("# ")
    assert not (finished.root / path).exists()
    (finished.root / path).write_text(module, encoding="utf-8")
    (finished.root / "workflow/report/entropy.rst").write_text(caption, encoding="utf-8")
    rows = finished.root / "src/specialized_heads/experiment/figures.py"
    before, start, after = rows.read_text(encoding="utf-8").partition("def _functions(")
    after = after.replace("    return [\n", f"    return [\n        {row.strip()},\n", 1)
    rows.write_text(before + start + after, encoding="utf-8")

    target = "results/smoke/figures/entropy.pdf"
    run = finished.run(target)
    assert run.status == 0, run.printed[-5000:]
    assert run.rules == {"entropy"}
    assert finished.file("figures/entropy.pdf").read_bytes().startswith(b"%PDF-")
    assert "EN-FR Tatoeba" in finished.file("figures/entropy.csv").read_text(encoding="utf-8")
    # It is made by default, and makes nothing else stale but the table of the environment.
    assert {rule for rule, _ in finished.stale()} == {"environment"}
    finished.file("figures/entropy.pdf").unlink()
    assert ("entropy", "figures/entropy.pdf") in finished.stale()
