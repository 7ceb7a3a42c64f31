"""Stage: the score of a task without each single head, with each head alone in its layer, or without the least important heads.

As `pruning.ablation` and `pruning.systematic` for translation (Michel et al. 2019, sections 3 and 4), whose lists of removals and
masks it uses. With `--importance` heads are removed in its order; otherwise one by one. Finished predictions are kept, so a
killed run resumes.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import torch

from specialized_heads import stage
from specialized_heads.classification import scores
from specialized_heads.classification.scores import TOKENS, compare, labels_of
from specialized_heads.corpus.tokens import TokenStore, load_tokens
from specialized_heads.model.bert import Bert
from specialized_heads.model.checkpoint import load_on
from specialized_heads.model.devices import matmul_precision
from specialized_heads.pruning import ablation, systematic
from specialized_heads.pruning.masking import NOTHING, Removal, fingerprint, mask, resumed, unmask
from specialized_heads.tables import read_table, write_table
from specialized_heads.training.batching import in_order, make_batch
from specialized_heads.training.state import claim, finishing

CODE = ("classification", "training")  # that predictions depend on, beside that of masks
NUMBERS = ("score", "score_low", "score_high", "score_full", "delta", "delta_low", "delta_high", "p_value")
SCORES = dict.fromkeys(NUMBERS, pa.float64()) | {"sentences": pa.int64(), "metric": pa.string()}


class Settings(scores.ScoreSettings):
    alone: bool = False  # also with each head alone in its layer


@torch.inference_mode()
def predict_without(model: Bert, store: TokenStore, removals: Sequence[Removal]) -> np.ndarray:
    """The label of each sentence under each removal, int64 (removals, sentences).

    Below the first layer of a removal, states are those of the whole model, which are computed once for all.
    """
    labels = np.zeros((len(removals), len(store)), np.int64)
    last = len(model.encoder) - 1
    first = [min((layer - 1 for _, layer, _ in removal), default=last) for removal in removals]
    for sentences in in_order(store, tokens=TOKENS):
        x, attn_mask = model.embed(make_batch(store, sentences).to(model.device).source)
        inputs = [x]  # of each layer of the whole model
        for layer in model.encoder[: max(first)]:
            inputs.append(layer(inputs[-1], attn_mask))
        for row, (removal, start) in enumerate(zip(removals, first, strict=True)):
            mask(model, [removal])
            labels[row, sentences] = model.classify(inputs[start], attn_mask, start=start).argmax(-1).cpu().numpy()
            unmask(model)
    return labels


@stage.command("model", "tokens", "output", "state", optional=("importance",), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    claim(files.state)  # before it may wait for a GPU that an earlier process holds, which then stops
    model, store = load_on(files.model, settings.device, settings.precision), load_tokens(files.tokens)
    if files.importance:
        importance = read_table(files.importance).to_pandas()
        wanted, like = systematic.removals(importance, by_type=False), systematic.SCHEMA
    else:
        wanted, like = ablation.removals(model.architecture, alone=settings.alone), ablation.SCHEMA
    precision = matmul_precision(settings.precision, model.device)
    computed = {"device": model.device.type, "precision": precision, "torch": torch.__version__}
    read = (files.model, files.model.with_suffix(".json"), files.tokens)
    stamp = fingerprint(*read, settings=computed, code=CODE)
    removals = [removal for _, removal in wanted]
    found = resumed(
        lambda group: predict_without(model, store, group).tolist(), removals, state=files.state, fingerprint=stamp
    )
    how = {"metric": settings.metric, "kinds": model.architecture.labels}
    scored = {
        removal: compare(labels_of(store), np.array(labels), np.array(found[NOTHING]), **how)._asdict()
        for removal, labels in found.items()
    }
    common = {"score_full": scored[NOTHING]["score"], "sentences": len(store), "metric": settings.metric}
    rows = [row | scored[removal] | common for row, removal in wanted]
    # The table of translation, but with the scores that classification has.
    schema = pa.schema([field for field in like if field.name not in ablation.SCORES] + list(SCORES.items()))
    with finishing(files.state):
        write_table(files.output, pa.Table.from_pylist(rows, schema=schema))
    stage.log.info("%d removals, %s of the whole model %.2f", len(rows), settings.metric, common["score_full"])
