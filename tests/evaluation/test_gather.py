"""The table of all models: its columns, and what stands in them for a baseline and a pruned model."""

import json
import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from specialized_heads.evaluation import gather
from specialized_heads.model.checkpoint import save

COLUMNS = [
    *("kind", "scope", "lam", "asked", "criterion", "moment", "seed"),
    *("bleu", "bleu_low", "bleu_high", "chrf", "p_value", "difference", "difference_low", "difference_high"),
    *("signature", "signature_chrf"),
    *("bleu_tokenised", "bleu_tokenised_low", "bleu_tokenised_high", "signature_tokenised", "sentences"),
    *("encoder_heads", "decoder_heads", "cross_heads", "encoder_total", "decoder_total", "cross_total"),
    *("parameters", "updates", "gates_expected", "gates_decided", "gates_loss_hard", "gates_loss_soft"),
]
DIFFERENCE = ("p_value", "difference", "difference_low", "difference_high")
ROWS = [
    {"kind": "baseline", "scope": "", "lam": None, "asked": None, "criterion": "", "moment": None, "seed": 1},
    {"kind": "pruned", "scope": "all", "lam": 0.01, "asked": None, "criterion": "", "moment": None, "seed": 1},
]


@pytest.fixture
def files(tiny_model, tmp_path: Path) -> dict[str, Path | list[Path]]:
    models, scores = [], []
    for name in ("baseline", "pruned"):
        model = tiny_model()
        if name == "pruned":
            model.keep_heads({"encoder": [[], [1]], "cross": [[0], [0, 1]]})
        gates = {"gates": {"expected": 3.5, "decided": 0.75, "loss_hard": 2.5, "loss_soft": 2.25}}
        training = {"training": {"updates": 40}} | (gates if name == "pruned" else {})
        save(model, tmp_path / f"{name}.safetensors", training=training)
        score = {"bleu": 20.5, "bleu_low": 19.0, "bleu_high": 22.0, "chrf": 50.0, "signature": "s"}
        score |= {"bleu_tokenised": 21.5, "bleu_tokenised_low": 20.0, "bleu_tokenised_high": 23.0}
        score |= {"signature_tokenised": "t", "signature_chrf": "c", "sentences": 60}
        score |= dict.fromkeys(DIFFERENCE, None if name == "baseline" else 0.03)
        (tmp_path / f"{name}.score.json").write_text(json.dumps(score))
        models.append(tmp_path / f"{name}.json")
        scores.append(tmp_path / f"{name}.score.json")
    return {"models": models, "scores": scores, "output": tmp_path / "scores.parquet"}


def test_columns_and_rows(call, files, tiny_model) -> None:
    call(gather, settings={"rows": ROWS}, **files)
    table = pq.read_table(files["output"])
    assert table.column_names == COLUMNS
    baseline, pruned = table.to_pylist()
    assert baseline["encoder_heads"] == baseline["cross_heads"] == [2, 2]
    assert (pruned["encoder_heads"], pruned["decoder_heads"], pruned["cross_heads"]) == ([0, 1], [2, 2], [1, 2])
    assert (pruned["encoder_total"], pruned["decoder_total"], pruned["cross_total"]) == (1, 4, 3)
    assert baseline["parameters"] == sum(p.numel() for p in tiny_model().parameters())
    assert baseline["parameters"] - pruned["parameters"] == 4 * (4 * 8 * 4)  # four heads of four 8 × 4 matrices
    assert {name: pruned[name] for name in ROWS[1]} == ROWS[1]
    assert pruned["updates"] == 40
    assert (pruned["bleu"], pruned["p_value"], pruned["signature"]) == (20.5, 0.03, "s")
    assert (pruned["bleu_tokenised"], pruned["signature_tokenised"]) == (21.5, "t")
    assert [pruned[f"gates_{name}"] for name in gather.GATES] == [3.5, 0.75, 2.5, 2.25]
    assert {baseline[f"gates_{name}"] for name in gather.GATES} == {None}
    frame = table.to_pandas()
    assert math.isnan(frame.loc[0, "lam"])
    assert math.isnan(frame.loc[0, "p_value"])


def test_a_checkpoint_has_had_the_updates_of_its_moment(call, files) -> None:
    checkpoint = ROWS[0] | {"kind": "checkpoint", "moment": 20}
    call(gather, settings={"rows": [ROWS[0], checkpoint]}, **files)
    assert pq.read_table(files["output"]).column("updates").to_pylist() == [40, 20]


def test_as_many_models_as_rows(call, files) -> None:
    with pytest.raises(ValueError):
        call(gather, settings={"rows": ROWS[:1]}, **files)
