"""The index leads to every page and says how many heads each model has."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from specialized_heads.viewer import index


def test_every_page_has_a_link_and_its_numbers(call, tmp_path: Path) -> None:
    rows = [("encoder", ["positional"]), ("encoder", []), ("cross", ["diagonal"])]
    table = pa.Table.from_pylist([{"type": kind, "functions": functions} for kind, functions in rows])
    tables = [tmp_path / f"{number}.parquet" for number in range(3)]
    for number, path in enumerate(tables):
        pq.write_table(table.slice(number), path)
    entries = [
        {"title": "EN-FR <A>", "model": "baseline", "page": "a/baseline/seed1.html"},
        {"title": "EN-FR <A>", "model": "pruned/all_lambda0.1", "page": "a/pruned/all_lambda0.1/seed1.html"},
        {"title": "B", "model": "baseline", "page": "b/baseline/seed1.html"},
    ]
    output = tmp_path / "index.html"
    call(index, settings={"experiment": "x", "entries": entries}, heads=tables, output=output)
    text = output.read_text(encoding="utf-8")
    assert '<a href="a/baseline/seed1.html">baseline</a></td><td>2, 0, 1</td><td>2</td>' in text
    assert '<a href="a/pruned/all_lambda0.1/seed1.html">pruned/all_lambda0.1</a></td><td>1, 0, 1</td><td>1</td>' in text
    assert text.count("<h2>") == text.count("<table") == text.count("</table>") == 2
    assert "EN-FR &lt;A&gt;" in text and "<A>" not in text
