"""Models written for other engines translate as ours do."""

import json
from pathlib import Path

import pytest
import torch
from small import WORDS

from specialized_heads.exchange.export_to import Comparison, export_to
from specialized_heads.export import load_exported
from specialized_heads.model.checkpoint import weights_of
from specialized_heads.stage import UserError

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

TEXTS = [" ".join(WORDS[start : start + length]) for start, length in enumerate([1, 7, 3, 12, 2, 5] * 5)]


def test_ctranslate2_translates_an_uneven_model_as_ours(exported: Path, tmp_path: Path) -> None:
    comparison = export_to(exported, tmp_path / "ct2", to="ctranslate2", texts=TEXTS)  # encoder layers of 0 and 2 heads
    assert comparison.sentences == len(TEXTS)
    assert comparison.same + comparison.rounding == len(TEXTS)
    assert json.loads((tmp_path / "ct2" / "check.json").read_text())["same"] == comparison.same
    assert str(comparison) in (tmp_path / "ct2" / "README.md").read_text()


def test_quantisation_leaves_the_original_as_it_is(exported: Path, tmp_path: Path) -> None:
    translator = load_exported(exported, device="cpu")
    before = {name: weight.clone() for name, weight in weights_of(translator.model).items()}
    pieces = [
        [processor.id_to_piece(number) for number in range(processor.vocab_size())]
        for processor in (translator.source, translator.target)
    ]
    (tmp_path / "ct2").mkdir()
    from specialized_heads.exchange import ctranslate  # needs CTranslate2

    ctranslate.write(translator.model, tmp_path / "ct2", source=pieces[0], target=pieces[1], quantization="int8")
    after = weights_of(translator.model)
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())


def test_the_lines_of_the_readme_translate(exported: Path, tmp_path: Path, capsys) -> None:
    export_to(exported, tmp_path / "ct2", to="ctranslate2", quantization="int8", texts=[])
    readme = (tmp_path / "ct2" / "README.md").read_text()
    code = readme.split("```python\n")[1].split("```")[0].replace("PATH/OF/THIS/FOLDER", str(tmp_path / "ct2"))
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_an_export_may_be_written_again_and_other_folders_may_not(exported: Path, tmp_path: Path) -> None:
    for _ in range(2):
        export_to(exported, tmp_path / "ct2", to="ctranslate2", texts=[])
    with pytest.raises(UserError, match="holds other files; name a new folder"):
        export_to(exported, exported, to="ctranslate2", texts=[])


def test_transformers_cannot_hold_positions_from_0(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="positions that start at 0, not 1, which the format of M2M100 cannot hold"):
        export_to(exported, tmp_path / "hf", to="hf", texts=[])
    with pytest.raises(UserError, match="transformers holds float32 weights"):
        export_to(exported, tmp_path / "hf", to="hf", quantization="int8", texts=[])


def test_a_comparison_says_what_decided() -> None:
    text = str(Comparison(sentences=1000, same=990, rounding=7, better=2, worse=1))
    assert text.startswith("Of 1,000 sentences, 990 have the same translation")
    assert str(Comparison(0, 0, 0, 0, 0)) == "Not compared with the original: no text was given."
