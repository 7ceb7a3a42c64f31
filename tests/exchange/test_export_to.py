"""Models written for other engines translate as ours do."""

from pathlib import Path

import pytest
import sentencepiece
import torch
from engines import agrees
from exporting import SETTINGS, written
from published import marian, write_tokeniser
from small import WORDS

from specialized_heads.exchange import export
from specialized_heads.exchange.export_to import export_to
from specialized_heads.exchange.import_model import read_model
from specialized_heads.model.transformer import Transformer
from specialized_heads.stage import UserError

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

LENGTHS = enumerate([1, 7, 3, 12, 2, 5] * 5)
TEXTS = [" ".join(WORDS[start : start + length]) for start, length in LENGTHS]


@pytest.fixture
def imported(call, saved, tmp_path: Path) -> Path:
    """An exported MarianMT model, whose target side alone has Chinese characters, and which prefers
    one of them."""
    texts = {"source": WORDS[:40], "target": ["北京", "北", "a北 c京"] * 20}
    write_tokeniser(saved(marian()), texts)
    model, tokenisers = read_model(tmp_path / "theirs")
    target = sentencepiece.SentencePieceProcessor(model_proto=tokenisers.target)
    torch.nn.init.constant_(model.output_bias[target.piece_to_id("北")], 20.0)
    return exported_as(tmp_path / "imported", model, tokenisers.source, tokenisers.target, call)


def exported_as(folder: Path, model: Transformer, source: bytes, target: bytes, call) -> Path:
    output = folder / "exported" / "model.json"
    call(export, settings=SETTINGS, **written(folder, model, source, target), output=output)
    return output.parent


# That of `exported` has layers of 0 and 2 heads.
@pytest.mark.parametrize(
    "fixture, to", [("exported", "ctranslate2"), ("imported", "ctranslate2"), ("imported", "hf")]
)
def test_the_other_engine_translates_as_ours(
    fixture: str, to: str, request, tmp_path: Path
) -> None:
    folder = request.getfixturevalue(fixture)
    export_to(folder, tmp_path / "out", to=to)
    assert agrees(tmp_path / "out", TEXTS, original=folder)


@pytest.mark.parametrize(
    ("fixture", "to", "quantization"),
    [
        ("lower", "ctranslate2", "float32"),
        ("exported", "ctranslate2", "int8"),
        ("imported", "ctranslate2", "float32"),
        ("imported", "hf", "float32"),
    ],
)
def test_the_lines_of_the_readme_translate(
    fixture: str, to: str, quantization: str, request, tmp_path, capsys
) -> None:
    folder = request.getfixturevalue(fixture)
    readme = export_to(folder, tmp_path / "out", to=to, quantization=quantization).read_text()
    code = readme.split("```python\n")[1].split("```")[0]
    code = code.replace("PATH/OF/THIS/FOLDER", str(tmp_path / "out"))
    capsys.readouterr()
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["text"] == ("a sentence ." if fixture == "lower" else "A sentence.")
    translation = capsys.readouterr().out
    assert translation.strip()
    assert "<s>" not in translation
    assert ("北" in translation) == (fixture == "imported")


def test_an_export_is_written_to_a_new_or_an_empty_folder(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds other files \(.*\); name a new folder"):
        export_to(exported, exported, to="ctranslate2")
    with pytest.raises(UserError, match="transformers holds float32 weights"):
        export_to(exported, tmp_path / "ct2", to="hf", quantization="int8")
    # the folder that this has made is empty
    export_to(exported, tmp_path / "ct2", to="ctranslate2")
    with pytest.raises(UserError, match=r"holds other files \(README.md\)"):
        export_to(exported, tmp_path / "ct2", to="ctranslate2")
    with pytest.raises(UserError, match="cannot be made"):
        export_to(exported, tmp_path / "ct2" / "README.md" / "below", to="ctranslate2")


def test_no_other_format_has_fixed_patterns(
    tiny_model, model_files: dict[str, Path], call, tmp_path
) -> None:
    model = tiny_model(vocabulary=60, layers=1, heads=4, width=16, fixed_patterns=True)
    vocabularies = [model_files[name].read_bytes() for name in ("source_model", "target_model")]
    folder = exported_as(tmp_path / "fixed", model, *vocabularies, call)
    with pytest.raises(UserError, match="heads with fixed attention patterns, which"):
        export_to(folder, tmp_path / "out", to="ctranslate2")


def test_transformers_cannot_hold_models_trained_here(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="positions of models trained here; export this one to"):
        export_to(exported, tmp_path / "hf", to="hf")
