"""Models written for other engines translate as ours do."""

import json
from pathlib import Path

import pytest
import torch
from exporting import SCORE, SETTINGS
from published import marian, write_tokeniser
from sentencepiece import SentencePieceProcessor
from small import WORDS

from specialized_heads import export
from specialized_heads.exchange.export_to import export_to
from specialized_heads.exchange.import_model import read_model
from specialized_heads.model.checkpoint import save
from specialized_heads.model.transformer import Transformer
from specialized_heads.stage import UserError

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

TEXTS = [" ".join(WORDS[start : start + length]) for start, length in enumerate([1, 7, 3, 12, 2, 5] * 5)]


def test_ctranslate2_translates_an_uneven_model_as_ours(exported: Path, tmp_path: Path) -> None:
    comparison = export_to(exported, tmp_path / "ct2", to="ctranslate2", texts=TEXTS)  # encoder layers of 0 and 2 heads
    assert comparison.sentences == len(TEXTS)
    assert comparison.same + comparison.rounding == len(TEXTS)
    assert str(comparison) in (tmp_path / "ct2" / "README.md").read_text()


def test_lines_that_are_empty_or_too_long_are_counted_not_compared(imported: Path, tmp_path: Path, caplog) -> None:
    texts = ["\u200b", WORDS[0], "\u00a0\u00ad", " ".join(WORDS * 30)]
    assert export_to(imported, tmp_path / "ct2", to="ctranslate2", texts=texts).sentences == 1
    assert "3 of 4 lines are empty or have more than 256 subwords" in caplog.text


@pytest.fixture
def imported(call, saved, tmp_path: Path) -> Path:
    """An exported MarianMT model, whose target side alone has Chinese characters, and which prefers one of them."""
    write_tokeniser(saved(marian()), {"source": WORDS[:40], "target": ["北京", "北", "a北 c京"] * 20})
    model, tokenisers = read_model(tmp_path / "theirs")
    target = SentencePieceProcessor(model_proto=tokenisers.target)
    torch.nn.init.constant_(model.output_bias[target.piece_to_id("北")], 20.0)
    return exported_as(tmp_path / "imported", model, tokenisers.source, tokenisers.target, call)


def exported_as(folder: Path, model: Transformer, source: bytes, target: bytes, call) -> Path:
    folder.mkdir()
    files = {name: folder / f"made.{name}" for name in ("model", "source_model", "target_model", "score")}
    save(model, files["model"], training={"data_hash": "of the data"})
    files["source_model"].write_bytes(source)
    files["target_model"].write_bytes(target)
    files["score"].write_text(json.dumps(SCORE))
    call(export, settings=SETTINGS, **files, output=folder / "exported" / "model.json")
    return folder / "exported"


@pytest.mark.parametrize(
    ("fixture", "to", "quantization"),
    [
        ("lower", "ctranslate2", "float32"),
        ("exported", "ctranslate2", "int8"),
        ("imported", "ctranslate2", "float32"),
        ("imported", "hf", "float32"),
    ],
)
def test_the_lines_of_the_readme_translate(fixture: str, to: str, quantization: str, request, tmp_path, capsys) -> None:
    folder = request.getfixturevalue(fixture)
    export_to(folder, tmp_path / "out", to=to, quantization=quantization, texts=[])
    readme = (tmp_path / "out" / "README.md").read_text()
    code = readme.split("```python\n")[1].split("```")[0].replace("PATH/OF/THIS/FOLDER", str(tmp_path / "out"))
    capsys.readouterr()
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["text"] == ("a sentence ." if fixture == "lower" else "A sentence.")
    translation = capsys.readouterr().out
    assert translation.strip()
    assert "<s>" not in translation
    assert ("北" in translation) == (fixture == "imported")


def test_an_export_may_be_written_again_and_other_folders_may_not(exported: Path, tmp_path: Path) -> None:
    output = tmp_path / "ct2"
    for _ in range(2):
        export_to(exported, output, to="ctranslate2", texts=[])
    with pytest.raises(UserError, match="transformers holds float32 weights"):
        export_to(exported, output, to="hf", quantization="int8", texts=[])
    assert (output / "model.bin").is_file()  # the export stays until the next is complete
    (output / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"holds other files \(notes.txt\); name a new folder"):
        export_to(exported, output, to="ctranslate2", texts=[])
    with pytest.raises(UserError, match="cannot be made"):
        export_to(exported, output / "notes.txt" / "below", to="ctranslate2", texts=[])
    assert not list(tmp_path.glob(".*"))


def test_no_other_format_has_fixed_patterns(tiny_model, model_files: dict[str, Path], call, tmp_path) -> None:
    model = tiny_model(vocabulary=60, layers=1, heads=4, width=16, fixed_patterns=True)
    vocabularies = [model_files[name].read_bytes() for name in ("source_model", "target_model")]
    folder = exported_as(tmp_path / "fixed", model, *vocabularies, call)
    with pytest.raises(UserError, match="heads with fixed attention patterns, which"):
        export_to(folder, tmp_path / "out", to="ctranslate2", texts=[])


def test_transformers_cannot_hold_models_trained_here(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="positions of models trained here; export this one to ctranslate2"):
        export_to(exported, tmp_path / "hf", to="hf", texts=[])
