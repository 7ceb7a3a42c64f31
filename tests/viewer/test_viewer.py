"""The attention viewer: the page holds what the model does, shows it in a real browser, and is safe
with any text."""

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sentencepiece
from parallel_text import Pairs, write_pairs

from specialized_heads import viewer
from specialized_heads.corpus.tokens import encode, learn, load_tokens, write_tokens
from specialized_heads.heads import maps
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.checkpoint import save
from specialized_heads.model.transformer import Transformer
from specialized_heads.parsing.words import Word, write_parses

HOSTILE = 'A </script><img src=x onerror="alert(1)"> <!-- & sees'
TEXTS = [
    "too short",
    "The little farmer often watches the famous painter .",
    HOSTILE,
    "the silent tailor gladly follows a clever doctor .",
    "a sentence without a parse is left out here .",
    "the merchant praises the hungry gardener again .",
    "this one has no translation at all .",
]
TARGETS = [
    "court",
    "le petit fermier regarde le peintre .",
    HOSTILE,
    "le tailleur suit un docteur .",
]
TARGETS += ["x y", "le marchand .", ""]
SETTINGS = {
    "sentences": 5,
    "title": "EN-FR <b>Test</b>",
    "model": "pruned/all_lambda0.1",
    "seed": 1,
}
SETTINGS |= {"preprocess": "none", "language": "en", "device": "cpu"}


def tree(text: str) -> list[Word]:
    """Every word hangs on the last one, as its subject if it is the second."""
    spans = [(found.start(), found.end()) for found in re.finditer(r"\S+", text)]
    relations = (
        ["dep", "nsubj", *["dep"] * (len(spans) - 3), "root"]
        if len(spans) > 2
        else ["dep"] * len(spans)
    )
    heads = [len(spans)] * (len(spans) - 1) + [0]
    return [
        Word(text[a:b], a, b, head, name, "X")
        for (a, b), head, name in zip(spans, heads, relations)
    ]


def pruned(tiny_model: Callable[..., Transformer]) -> Transformer:
    model = tiny_model(vocabulary=80, head_width=6)
    model.keep_heads({"cross": [[1], [0, 1]]})
    return model


def row(
    kind: str, layer: int, head: int, functions: list[str] = (), **scores: Any
) -> dict[str, Any]:
    common = {
        "relevance": layer / 10 + head / 100,
        "confidence": 0.5,
        "nsubj_dependent_to_head": None,
    }
    relations = ["nsubj_dependent_to_head"] if "syntactic" in functions else []
    certain = relations if scores.get("nsubj_dependent_to_head_margin_low") else []
    labels = {"functions": list(functions), "relations": relations, "relations_certain": certain}
    return {"type": kind, "layer": layer, "head": head} | common | scores | labels


@pytest.fixture
def files(tmp_path: Path, tiny_model) -> dict[str, Path]:
    """A model without head cross-1-1, an analysis set, and everything that the stage reads."""
    names = (
        "model.safetensors",
        "source_bpe.model",
        "target_bpe.model",
        "text.parquet",
        "analysis.safetensors",
    )
    names += ("parses.parquet", "heads.parquet", "output.html")
    found = {name.split(".")[0]: tmp_path / name for name in names}
    processors = {}
    for side, texts in (("source", TEXTS), ("target", TARGETS)):
        blob = learn(texts * 20, size=70 if side == "source" else 60, name=side)
        found[f"{side}_bpe"].write_bytes(blob)
        processors[side] = sentencepiece.SentencePieceProcessor(model_proto=blob)
    save(pruned(tiny_model), found["model"], training={})
    write_pairs(found["text"], Pairs(TEXTS, TARGETS, [str(number) for number in range(len(TEXTS))]))
    sides = {
        "source": encode(TEXTS, processors["source"]),
        "target": encode(TARGETS, processors["target"]),
    }
    write_tokens(found["analysis"], [sides])
    write_parses(
        found["parses"], [[] if "without a parse" in text else tree(text) for text in TEXTS]
    )
    rows = [row(kind, layer, head) for kind in KINDS for layer in (1, 2) for head in (1, 2)]
    rows[1] = row("encoder", 1, 2, ["syntactic"], nsubj_dependent_to_head=0.625)
    rows[2] = row("encoder", 2, 1, ["positional"], confidence=0.91)
    rows[3]["relevance"] = float("nan")
    rows = [
        entry for entry in rows if (entry["type"], entry["layer"], entry["head"]) != ("cross", 1, 1)
    ]
    pq.write_table(pa.Table.from_pylist(rows), found["heads"])
    return found


@pytest.fixture
def made(call, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """`made(sentences=3)`: the page as the stage writes it. Pieces here are letters, so longer
    sentences are let in."""
    monkeypatch.setattr(viewer, "LENGTHS", range(10, 80))

    def make(**settings: Any) -> str:
        call(viewer, settings=SETTINGS | settings, **files)
        return files["output"].read_text(encoding="utf-8")

    return make


def data_of(text: str) -> dict[str, Any]:
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1]
    )


def test_sentences_are_the_first_that_qualify(made) -> None:
    data = data_of(made())
    shown = [sentence["text"] for sentence in data["sentences"]]
    assert shown == [TEXTS[number] for number in (1, 2, 3, 5, 6)]
    assert [sentence["text"] for sentence in data_of(made(sentences=2))["sentences"]] == shown[:2]
    assert (data["perLayer"], data["layers"]) == (2, {"encoder": 2, "decoder": 2, "cross": 2})
    assert data["wanted"] == 5 and data["index"] == "../../../index.html"


def test_maps_are_those_of_the_model(made, files: dict[str, Path], tiny_model) -> None:
    data = data_of(made())
    store = load_tokens(files["analysis"]).select([3])
    [batch] = maps.attention_maps(pruned(tiny_model), store)
    sentence = data["sentences"][2]
    sizes = {"source": len(sentence["source"]), "target": len(sentence["target"])}
    for kind, keys in {"encoder": "source", "decoder": "target", "cross": "source"}.items():
        stored = np.frombuffer(base64.b64decode(sentence["maps"][kind]), np.uint8) / 255
        stored = stored.reshape(
            len(data["order"][kind]),
            sizes["source" if kind == "encoder" else "target"],
            sizes[keys],
        )
        assert np.abs(stored - batch.weights[kind][0].numpy()).max() <= 0.5 / 255 + 1e-6
        assert np.abs(stored.sum(-1) - 1).max() < 0.1


def test_scores_are_those_of_the_table_whatever_its_columns(made, files: dict[str, Path]) -> None:
    heads = data_of(made())["heads"]
    assert heads[1]["functions"] == ["syntactic"]
    assert heads[1]["relations"] == ["nsubj_dependent_to_head"]
    expected = {"relevance": 0.12, "confidence": 0.5, "nsubj_dependent_to_head": 0.625}
    assert heads[1]["scores"] == expected
    assert heads[3]["scores"]["relevance"] is None
    table = pq.read_table(files["heads"]).select(["type", "layer", "head", "functions"])
    pq.write_table(
        table.append_column("new_score", pa.array([0.25] * table.num_rows)), files["heads"]
    )
    assert data_of(made())["heads"][0]["scores"] == {"new_score": 0.25}


def test_the_browser_shows_what_the_address_names_and_asks_for_nothing(made, shown) -> None:
    browser = shown(made(), "#encoder-2-1-sentence-3")
    assert browser.text("#shown") == "encoder self-attention, layer 2, head 1"
    assert browser.run(
        "return document.querySelector('#sentence').selectedOptions[0].textContent"
    ).endswith(TEXTS[3])
    assert "positional" in browser.text("#labels") and "0.910" in browser.text("#scores")
    requests = [url for url in browser.requests() if not url.startswith("data:")]
    assert len(requests) == 1 and requests[0].startswith("file:")


def test_arcs_margins_and_certain_relations_are_shown(made, files: dict[str, Path], shown) -> None:
    column = "nsubj_dependent_to_head"
    scores = {"nsubj_arcs": 57, column: 0.625, f"{column}_low": 0.5, f"{column}_high": 0.75}
    scores |= {f"{column}_baseline": 0.4}
    margins = {
        f"{column}_margin": 0.225,
        f"{column}_margin_low": 0.1,
        f"{column}_margin_high": 0.35,
    }
    heads, labelled = pq.read_table(files["heads"]).to_pylist(), scores | margins
    rows = [
        row("encoder", 1, 1, ["syntactic"], **labelled),
        row("encoder", 1, 2, **labelled),
        *heads[2:],
    ]
    pq.write_table(pa.Table.from_pylist(rows), files["heads"])  # with the columns of the first row
    browser = shown(made(), "#encoder-1-1-sentence-1")
    assert browser.text("#syntax tbody th, #syntax > tr th").startswith("nsubj57 arcs")
    cell = browser.text("#syntax > tr td:last-child")
    assert cell == "0.63 ✓0.50 to 0.75offset 0.40+0.23, +0.10 to +0.35"
    assert browser.text("#labels").endswith("nsubj, dependent → head ✓")
    assert browser.text("#heads").count("✓") == 1
    browser.click('[data-head="encoder-1-2"]')
    assert "✓" not in browser.text("#syntax > tr") + browser.text("#labels")


def test_a_click_on_a_head_changes_map_labels_and_address(made, shown) -> None:
    browser = shown(made(), "#encoder-2-1-sentence-1")
    weights = (
        "return [...document.querySelectorAll('#weights td')].map((cell) => cell.title).join()"
    )
    before = browser.run(weights), browser.text("#labels")
    browser.click('[data-head="encoder-1-2"]')
    assert browser.text("#shown") == "encoder self-attention, layer 1, head 2"
    after = browser.run(weights), browser.text("#labels")
    assert before[0] != after[0] and "syntactic" in after[1] and "nsubj" in after[1]
    assert browser.run("return location.hash") == "#encoder-1-2-sentence-1"
    # its relation in the tree
    assert browser.run("return document.querySelectorAll('#lines .strong').length") == 1


# the second stands after a pruned one
@pytest.mark.parametrize("head", [("encoder", 2, 2), ("cross", 2, 1)])
@pytest.mark.parametrize("tags", [0, 1])  # language tags that a source begins with
def test_the_map_in_the_page_is_the_map_in_the_data(made, shown, head, tags: int) -> None:
    kind, *numbers = head
    data = data_of(made()) | {"sourceTags": tags}
    position, sentence = data["order"][kind].index(numbers), data["sentences"][2]
    shape = (len(data["order"][kind]), -1, len(sentence["source"]))
    stored = np.frombuffer(base64.b64decode(sentence["maps"][kind]), np.uint8).reshape(shape) / 255
    stored[position, 0] = [0.0, 0.25, *[0.0] * (shape[2] - 3), 0.75]  # most of it on </s>
    stored[position, 1] = 1 / stored.shape[2]  # all alike: it cannot be said which was the largest
    sentence["maps"][kind] = viewer.encoded(stored)
    stored = np.rint(stored[position] * 255) / 255
    browser = shown(viewer.page(data), f"#{kind}-{numbers[0]}-{numbers[1]}-sentence-3")
    titles = browser.run(
        "return [...document.querySelectorAll('#weights tbody td')].map((cell) => cell.title)"
    )
    read = np.array([float(title.rsplit(" ", 1)[1]) for title in titles]).reshape(stored.shape)
    assert np.abs(read - stored).max() <= 0.0051
    framed = browser.run(
        "return [...document.querySelectorAll('#weights tbody tr')]"
        ".map((row) => [...row.querySelectorAll('td')].findIndex((cell) => cell.className === "
        "'most'))"
    )
    expected = [
        tags + row.argmax() if (row == row.max()).sum() == 1 else -1 for row in stored[:, tags:-1]
    ]
    # Tags and </s> do not look either.
    assert framed == (expected if kind == "cross" else [*[-1] * tags, *expected[tags:-1], -1])


def test_types_sentences_and_subwords_are_chosen_by_hand(made, shown) -> None:
    browser = shown(made(), "#encoder-2-1-sentence-1")
    browser.run("document.querySelector('[value=cross]').click()")
    assert browser.text("#shown").startswith("cross-attention")
    browser.click("#next")
    assert browser.run("return location.hash").endswith("-sentence-2")
    lines = "return document.querySelectorAll('#lines .attention').length"
    every = browser.run(lines)
    browser.click('[data-query="2"]')
    assert 0 < browser.run(lines) < every
    assert (
        browser.run(
            "return document.querySelector('[data-query=\"2\"]').getAttribute('aria-pressed')"
        )
        == "true"
    )
    browser.press('[data-query="2"]', "Enter")
    assert browser.run(lines) == every


def test_arrow_keys_go_from_head_to_head_and_pass_the_gap_of_a_pruned_one(made, shown) -> None:
    browser = shown(made(), "#encoder-1-1")
    for key, expected in (
        ("ArrowRight", "1, head 2"),
        ("ArrowDown", "2, head 2"),
        ("ArrowLeft", "2, head 1"),
    ):
        browser.press('#grid [aria-checked="true"]', key)
        assert browser.text("#shown") == f"encoder self-attention, layer {expected}"
    assert browser.run("return document.activeElement.getAttribute('data-head')") == "encoder-2-1"
    browser.go("#cross-2-1")
    assert (
        browser.run("return document.querySelector('#grid .pruned').title")
        == "layer 1, head 1: pruned"
    )
    assert "3/4" in browser.text("#types label:last-child")
    browser.press('#grid [aria-checked="true"]', "ArrowUp")
    assert browser.text("#shown").endswith("layer 2, head 1")


def test_the_table_has_labelled_heads_first_sorts_and_leads_to_heads(made, shown) -> None:
    browser = shown(made())
    first = (
        "return [...document.querySelectorAll('#heads tbody tr')].map((row) => "
        "row.cells[0].textContent)"
    )
    assert browser.run(first)[:3] == ["encoder 1-2", "encoder 2-1", "encoder 1-1"]
    assert browser.text("#shown").endswith("layer 1, head 2")  # a page opens with the first of them
    browser.click('[data-column="relevance"]')
    # without a score: last
    assert browser.run(first)[0] == "decoder 2-2" and browser.run(first)[-1] == "encoder 2-2"
    browser.click('[data-column="relevance"]')
    assert (
        browser.run("return document.querySelector('[aria-sort]').getAttribute('aria-sort')")
        == "ascending"
    )
    assert browser.run(first)[0] == "encoder 1-1" and browser.run(first)[-1] == "encoder 2-2"
    browser.click("#heads tbody tr:nth-child(2) a")
    assert browser.text("#shown") == "decoder self-attention, layer 1, head 1"
    assert browser.run("return document.querySelector('#heads .chosen').textContent").startswith(
        "decoder 1-1"
    )


def test_hostile_text_stays_text(made, shown) -> None:
    text = made()
    assert text.count("</script>") == 2
    browser = shown(text, "#encoder-1-1-sentence-2")
    assert (
        browser.run(
            "return document.querySelectorAll('img, b:not(.key b, .chip b, #grid b)').length"
        )
        == 0
    )
    assert HOSTILE in browser.run(
        "return document.querySelector('#sentence').selectedOptions[0].textContent"
    )
    assert "<b>Test</b>" in browser.text("#title")


def test_what_is_not_there_is_said(made, shown) -> None:
    browser = shown(made(), "#encoder-9-9")
    assert browser.text("#shown").startswith("This model has no head encoder-9-9.")
    browser.click("#next")
    assert browser.text("#shown") == "encoder self-attention, layer 1, head 2"
    browser.go("#encoder-2-1-sentence-99")
    assert browser.text("#shown").startswith(
        "This page has 5 sentences and no sentence 99. encoder"
    )
    browser.click("#previous")
    assert browser.run("return location.hash") == "#encoder-2-1-sentence-4"
    browser.go("#decoder-1-1-sentence-5")
    assert "no translation" in browser.text("#reading")


def test_a_model_without_heads_and_a_set_without_trees_have_a_page(made, files, shown) -> None:
    table = pq.read_table(files["heads"])
    pq.write_table(table.slice(0, 0), files["heads"])
    browser = shown(made())
    browser.click("#next")
    assert browser.text("#shown") == "This model has no heads."
    pq.write_table(table, files["heads"])
    write_parses(files["parses"], [])
    browser = shown(made(), "#encoder-2-1-sentence-1")
    assert "No sentence" in browser.text("#reading")
    assert browser.text("#shown") == "encoder self-attention, layer 2, head 1"


def test_the_index_has_a_link_to_every_page_and_the_numbers_of_heads(call, tmp_path: Path) -> None:
    rows = [("encoder", ["positional"]), ("encoder", []), ("cross", ["diagonal"])]
    table = pa.Table.from_pylist(
        [{"type": kind, "functions": functions} for kind, functions in rows]
    )
    tables = [tmp_path / f"{number}.parquet" for number in range(2)]
    for number, path in enumerate(tables):
        pq.write_table(table.slice(number), path)
    models = {"EN-FR <A>": "a/baseline", "B": "b/pruned/all_lambda0.1"}
    entries = [
        {"title": title, "model": path[2:], "page": f"{path}/seed1.html"}
        for title, path in models.items()
    ]
    output = tmp_path / "index.html"
    settings = {"experiment": "x", "entries": entries}
    call(viewer.index, settings=settings, heads=tables, output=output)
    text = output.read_text(encoding="utf-8")
    assert '<a href="a/baseline/seed1.html">baseline</a></td><td>2, 0, 1</td><td>2</td>' in text
    assert (
        '<a href="b/pruned/all_lambda0.1/seed1.html">pruned/all_lambda0.1</a></td><td>1, 0, '
        "1</td><td>1</td>" in text
    )
    assert text.count("<h2>") == text.count("<table") == text.count("</table>") == 2
    assert "EN-FR &lt;A&gt;" in text and "<A>" not in text
