"""Stage: the relevance of every head of one model, averaged over predictions for the development
set (section 4).

The table has one row per head and, for each rule, the mean and its standard error, `<rule>_error`.
The report has the number of predictions, and for each rule its conservation (the median and largest
deviation from 1 of the relevance that arrives at each level) and its stability between random
halves of the set. All rules are measured on the same predictions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import torch

from specialized_heads import stage
from specialized_heads.corpus.tokens import TokenStore, cut, load_tokens
from specialized_heads.heads.maps import head_numbers
from specialized_heads.heads.propagation import Relevance, Rule, propagate
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.checkpoint import load_on
from specialized_heads.model.transformer import Transformer
from specialized_heads.tables import HEAD, write_table
from specialized_heads.training.batching import make_batch

# Floats in the largest tensor, relevance of N steps at P positions; bounds the memory of a batch.
BATCH_FLOATS = 1_000_000
GPU_BATCH_FLOATS = 2**24
SPLITS = 100  # random halves of a set that stability compares


@dataclass(frozen=True)
class Average:
    """Relevance by one rule over generation steps of a set of N sentences.

    heads: per (attention type, layer), (H,): mean over steps of the relevance normalised over the
        heads of the layer (A.3).
    errors: standard errors of these means (H,), with sentences as the independent units; NaN for a
        single sentence.
    sums: the same as `heads`, summed over the steps of each sentence (N, H).
    steps: number of steps of each sentence (N,).
    conservation: per level, from the logit down, the median and the largest |total - 1| over steps.
    """

    heads: dict[tuple[str, int], np.ndarray]
    errors: dict[tuple[str, int], np.ndarray]
    sums: dict[tuple[str, int], np.ndarray]
    steps: np.ndarray
    conservation: dict[str, dict[str, float]]


def average_relevance(
    model: Transformer, store: TokenStore, *, rules: Sequence[str], predictions: int, seed: int
) -> dict[str, Average]:
    """Mean relevance of each head over drawn generation steps of a set (section 4), the same steps
    for each rule.

    A step predicts a token or EOS; forced target tags are not predictions. At each step the
    relevances of the heads of a layer are divided by the sum of their absolute values; a layer that
    no relevance reaches counts as 0.

    Args:
        predictions: number of steps to draw; a set with fewer is used whole.
    """
    tags = len(store.tokens.target_tags)
    sentence, position = draw(store.target_lengths - tags + 1, number=predictions, seed=seed)
    position += tags
    last = np.zeros(len(store), np.int64)
    np.maximum.at(last, sentence, position)
    longest = np.maximum(store.source_lengths, last) + 1
    order = np.lexsort((position, sentence, longest[sentence]))
    sentence, position = sentence[order], position[order]
    widest = max(model.architecture.feed_forward, model.architecture.width)
    floats = BATCH_FLOATS if model.device.type == "cpu" else GPU_BATCH_FLOATS
    pieces = cut(longest[sentence], np.arange(len(sentence)), floats // widest)
    parts, chosen = [], list(map(Rule.named, rules))
    for piece in stage.progress(pieces, what="relevance", unit="batch"):
        sentences, rows = np.unique(sentence[piece], return_inverse=True)
        batch = make_batch(store, sentences)
        seen = batch.target_in[:, : last[sentences].max() + 1]  # no step sees what follows
        batch = replace(batch, target_in=seen).to(model.device)
        steps = {
            name: torch.from_numpy(numbers).to(model.device, non_blocking=True)
            for name, numbers in (("rows", rows), ("positions", position[piece]))
        }
        parts.append(propagate(model, batch, rules=chosen, **steps))
    keys = [(attention.kind, attention.layer) for attention in model.attentions()]
    return {
        rule: summarise(rule, [part[number] for part in parts], keys, sentence, size=len(store))
        for number, rule in enumerate(rules)
    }


def draw(steps: np.ndarray, *, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw generation steps without replacement, each with the same probability, spread over
    sentences and positions.

    Every k-th step is drawn from the sentences in random order, so that a sentence has its part to
    within one step.

    Args:
        steps: of each sentence (N,).

    Returns:
        sentence and position, from 0, of each drawn step, in order.
    """
    sentence = np.repeat(np.arange(len(steps)), steps)
    position = np.arange(len(sentence)) - np.repeat(np.cumsum(steps) - steps, steps)
    if number < len(sentence):
        random = np.random.default_rng(seed)
        shuffled = np.argsort(random.permutation(len(steps))[sentence], kind="stable")
        places = (np.arange(number) + random.random()) * len(sentence) / number
        chosen = np.sort(shuffled[places.astype(np.int64)])
        sentence, position = sentence[chosen], position[chosen]
    return sentence, position


def summarise(
    rule: str,
    parts: list[Relevance],
    keys: list[tuple[str, int]],
    sentence: np.ndarray,
    *,
    size: int,
) -> Average:
    """Average the relevance of the steps of all batches, given the sentence of each (steps,) and
    the number of sentences."""
    steps = np.bincount(sentence, minlength=size)
    clusters = np.count_nonzero(steps)
    heads, errors, sums = {}, {}, {}
    for kind, layer in keys:
        relevance = torch.cat([part.heads[kind, layer] for part in parts]).double().cpu().numpy()
        if not np.isfinite(relevance).all():
            raise stage.UserError(
                f"heads.relevance_rules: {rule}: the relevance of {kind} layer {layer + 1} is not "
                f"finite; choose another rule"
            )
        scale = np.abs(relevance).sum(1, keepdims=True)
        shares = np.divide(relevance, scale, out=np.zeros_like(relevance), where=scale > 0)
        total = np.zeros((size, shares.shape[1]))
        np.add.at(total, sentence, shares)
        mean = total.sum(0) / steps.sum()
        squares = ((total - steps[:, None] * mean) ** 2).sum(0)
        error = np.full(len(mean), np.nan)
        if clusters > 1:
            error = np.sqrt(squares * clusters / (clusters - 1)) / steps.sum()
        heads[kind, layer], errors[kind, layer], sums[kind, layer] = mean, error, total
    conservation = {}
    for level in parts[0].totals:
        deviation = (torch.cat([part.totals[level] for part in parts]).cpu() - 1).abs()
        median, largest = float(deviation.median()), float(deviation.max())
        conservation[level] = {"median": median, "largest": largest}
    return Average(heads, errors, sums, steps, conservation)


def stability(average: Average) -> dict[str, list[dict[str, float]]]:
    """Agreement between random halves of the set on the most relevant head of each layer.

    Returns:
        per attention type, for each layer with two heads or more that relevance reaches: `layer`,
        from 1, and `top_head`, the share of `SPLITS` random splits whose halves agree. Splits count
        whose halves both have predictions.
    """
    alternating = np.tile(np.arange(len(average.steps)) % 2, (SPLITS, 1))
    sides = np.random.default_rng(1).permuted(alternating, axis=1)
    halves = np.stack([sides, 1 - sides])
    halves = halves[:, (halves @ average.steps).all(axis=0)]
    rows: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for (kind, layer), sums in average.sums.items():
        if halves.size == 0 or sums.shape[1] < 2 or not sums.any():
            continue
        means = np.stack([half @ sums / (half @ average.steps)[:, None] for half in halves])
        first, second = means.argmax(-1)
        rows[kind].append({"layer": layer + 1, "top_head": (first == second).mean()})
    return rows


class Settings(stage.Section):
    rules: list[str]
    predictions: int
    seed: int
    device: str


@stage.command("model", "dev", "output", "report", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    model = load_on(files.model, settings.device)
    dev = load_tokens(files.dev)
    how = settings.model_dump(include={"rules", "predictions", "seed"})
    averages = average_relevance(model, dev, **how)
    heads = [(kind, layer, head) for kind in KINDS for layer, head in head_numbers(model, kind)]
    columns = [[head[field] for head in heads] for field in range(3)]
    schema = pa.schema(HEAD)
    report = {"sentences": len(dev), "conservation": {}, "stability": {}}
    for rule, average in averages.items():
        for name, values in ((rule, average.heads), (f"{rule}_error", average.errors)):
            columns.append(np.concatenate(list(values.values())))
            schema = schema.append(pa.field(name, pa.float64()))
        report["steps"] = int(average.steps.sum())
        report["conservation"][rule] = average.conservation
        report["stability"][rule] = stability(average)
        worst = max(level["largest"] for level in average.conservation.values())
        said = "%s: %d predictions, relevance conserved to %.1e"
        stage.log.info(said, rule, report["steps"], worst)
    write_table(files.output, pa.table(columns, schema=schema))
    stage.write_json(files.report, report)
