"""The notebook docs/tour.ipynb runs in a fresh clone, on results of other experiments too, and what
its text states holds."""

import base64
import json
from pathlib import Path
from typing import Any

import matplotlib.image
import matplotlib.pyplot as plt
import pytest
from pages import ROOT

NOTEBOOK = ROOT / "docs" / "tour.ipynb"
BOOK = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
CODE = [cell for cell in BOOK["cells"] if cell["cell_type"] == "code"]
FOLDER = "reference/long_pruning/data"


def run(folder: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The variables after all cells, each of which but the first has drawn one figure."""
    monkeypatch.chdir(NOTEBOOK.parent)
    names: dict[str, Any] = {}
    with plt.rc_context({"backend": "Agg"}):
        for number, cell in enumerate(CODE):
            source = "".join(cell["source"])
            exec(source.replace(FOLDER, folder), names)
            assert len(plt.get_fignums()) == min(number, 1)
            assert all(axes.has_data() for axes in plt.gcf().axes)
            plt.close("all")
    return names


def test_what_the_text_states_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(FOLDER, monkeypatch)
    text = " ".join("".join(line for cell in BOOK["cells"] for line in cell["source"]).split())
    baseline, top = found["baseline"], found["top"]
    with_one = [(heads["function"] != "no function").sum() for heads in (top, baseline)]
    lost = found["pruned"].set_index("encoder_heads").sort_index()["difference"]
    some, few = -lost.loc[12:15], -lost.loc[:2]
    margins = 100 * (found["best"] - found["relations"]["baseline_accuracy"].to_numpy())
    subjects = margins["nsubj_head_to_dependent"]
    survival, ranks = (
        100 * baseline.groupby(key)["survival"].mean() for key in ("function", "rank")
    )
    for statement in (
        f"{with_one[0]} of these {len(top)} have a function, but only {with_one[1]} of all "
        f"{len(baseline)} heads",
        f"with 12 to 15 of 48 heads left, models lose {some.min():.1f} to {some.max():.1f} BLEU, "
        f"with one or two left {few.min():.1f} to {few.max():.1f}",
        f"{subjects.min():.0f} to {subjects.max():.0f} points more often than the best fixed "
        "offset",
        f"positional heads survive in {survival['positional']:.0f}% of the models, syntactic heads "
        f"in {survival['syntactic']:.0f}%, others in {survival['no function']:.0f}%",
        f"the most confident head of a layer survives in {ranks[1]:.0f}%, the least confident in "
        f"{ranks[8]:.0f}%",
    ):
        assert statement in text
    assert (len(some), len(few)) == (5, 3)
    assert margins.filter(regex="amod|advmod").to_numpy().max() < 2  # "no head is 2 points better"
    gates = found["mean"]
    late = gates.loc[1000:]
    assert late.index[-1] == 3000 and (late.iloc[0] - late.iloc[-1]).max() < 2
    assert (gates.loc[100:].diff(axis=1).iloc[:, 1:] < 0).all(axis=None)  # "the larger λ, …"


def test_it_runs_on_results_of_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run("reference/default/data", monkeypatch)
    assert set(found["models"]["experiment"]) == {"default"}


def test_its_pictures_are_kept_and_nothing_that_differs_from_run_to_run(tmp_path: Path) -> None:
    assert [len(cell["outputs"]) for cell in CODE] == [0, 1, 1, 1, 1, 1]
    for number, cell in enumerate(CODE, start=1):
        assert cell["metadata"] == {} and cell["execution_count"] == number
        for output in cell["outputs"]:
            (picture := tmp_path / "picture.png").write_bytes(
                base64.b64decode(output["data"]["image/png"])
            )
            assert picture.stat().st_size < 60_000
            assert 600 < matplotlib.image.imread(picture).shape[1] < 720  # on any screen
