"""Beam search with cached keys and values, for a batch of sentences at once; and the stage that
translates a data set.

Each step scores one token per hypothesis. Keys and values are cached: those of the prefixes grow
with each step, those of the encoder's output are computed once. Finished sentences leave the batch.
A beam of 1 is greedy search.

On a CPU, several batches of a small model are translated at once, one thread each. One pass can
also evaluate many head masks: the batch is tiled, one copy per mask, and whatever no mask changes
(often the whole encoder) is computed once.

The stage writes two files, one sentence per line, in the order of the set. One holds detokenised
text. The other holds lower-case Moses tokens, which the paper scores: the model's own if it was
trained on such tokens (`vocabulary.preprocess: paper`), otherwise those of the detokenised text.

Shapes: B sentences still open, W hypotheses per sentence (the beam), S source tokens, V target
vocabulary.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from specialized_heads import stage
from specialized_heads.corpus.preprocess import Mode, apply, undo
from specialized_heads.corpus.tokens import cut, load_bpe, load_tokens
from specialized_heads.experiment.sections import Decoding
from specialized_heads.model.checkpoint import load_on
from specialized_heads.model.gates import Mask
from specialized_heads.model.transformer import DecoderLayer, Transformer

TOKENS = 2000  # source tokens per batch, padding included; each becomes `beam` rows
SMALL = 512  # width up to which operations are too small to be divided among threads

Output = TypeVar("Output")


class Cache:
    """Keys and values of every decoder layer: of the prefix per hypothesis, of the encoder's output
    per sentence."""

    def __init__(self, model: Transformer, memory: Tensor, attn_mask: Tensor) -> None:
        self.attn_mask = attn_mask
        layers = [layer.cross for layer in model.decoder]
        self.cross = [
            each.project(memory, "key", "value") if each.heads else None for each in layers
        ]
        self.prefix: list[tuple[Tensor, Tensor] | None] = [None] * len(model.decoder)
        gates = [attention.gate for attention in model.attentions("decoder", "cross")]
        self.masks = [gate for gate in gates if isinstance(gate, Mask)]

    def repeat(self, copies: int) -> None:
        """Tile the batch of sentences `copies` times."""
        self.cross = [
            pair and tuple(part.repeat(copies, 1, 1, 1) for part in pair) for pair in self.cross
        ]
        self.attn_mask = self.attn_mask.repeat(copies, 1, 1, 1)

    def select(self, hypotheses: Tensor, sentences: Tensor | None) -> None:
        """Keep and reorder hypotheses; keep these sentences if some have left the batch."""
        self.prefix = [pair and (pair[0][hypotheses], pair[1][hypotheses]) for pair in self.prefix]
        if sentences is not None:
            self.cross = [pair and (pair[0][sentences], pair[1][sentences]) for pair in self.cross]
            self.attn_mask = self.attn_mask[sentences]
            for mask in self.masks:
                mask.select(sentences)


def step(model: Transformer, tokens: Tensor, position: int, cache: Cache) -> Tensor:
    """Logits (B, W, V) of the next token, after the `tokens` (B, W) at a position (from 0); appends
    to the cache."""
    b, w = tokens.shape
    x = model.embed(model.target_embedding, tokens.view(b * w, 1), start=position)
    for number, layer in enumerate(model.decoder):
        to_prefix = partial(attend_to_prefix, layer, cache=cache, number=number)
        to_memory = partial(attend_to_memory, layer, cache=cache, number=number, beam=w)
        x = layer.sublayer(x, layer.attention_norm, to_prefix, "decoder")
        x = layer.sublayer(x, layer.cross_norm, to_memory, "cross")
        x = layer.through_feed_forward(x)
    return model.logits(model.decoder_norm(x)).float().view(b, w, -1)


def attend_to_prefix(layer: DecoderLayer, x: Tensor, *, cache: Cache, number: int) -> Tensor:
    """Self-attention of the last token of each hypothesis (B * W, 1, D)."""
    if not layer.attention.heads:
        return layer.attention(x, None, None)
    query, key, value = layer.attention.project(x, "query", "key", "value")
    if (past := cache.prefix[number]) is not None:
        key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
    cache.prefix[number] = (key, value)
    return layer.attention.combine(layer.attention.attend(query, key, value, None))


def attend_to_memory(
    layer: DecoderLayer, x: Tensor, *, cache: Cache, number: int, beam: int
) -> Tensor:
    """Cross-attention of the last token of each hypothesis (B * W, 1, D); those of a sentence are
    queries over the same keys."""
    if (pair := cache.cross[number]) is None:
        return layer.cross(x, None, None)
    (query,) = layer.cross.project(x.view(-1, beam, x.shape[-1]), "query")
    return layer.cross.combine(layer.cross.attend(query, *pair, cache.attn_mask)).view_as(x)


@dataclass
class Sentence:
    """A sentence in beam search; it leaves the batch with W finished hypotheses or at the limit."""

    limit: int  # tokens of an output at most
    finished: list[tuple[float, list[int]]] = field(default_factory=list)  # log P / length, ids


@torch.inference_mode()
def translate(
    model: Transformer,
    sources: list[list[int]],
    *,
    beam: int,
    max_length_ratio: float,
    copies: int = 1,
) -> list[list[int]]:
    """Translate a batch of sentences.

    Args:
        model: in evaluation mode. A mask that differs by sentence has one row per sentence of every
            copy, in the order of the result; those of the decoder lose rows as sentences finish, so
            they cannot be used again.
        sources: ids of each sentence, without EOS.
        beam: W. A hypothesis of n tokens (EOS included) scores log P / n.
        max_length_ratio: an output has at most `max_length_ratio` times the tokens of its source,
        plus 10.
        copies: number of times the batch is translated, for masks that differ between copies.

    Returns:
        ids of the best hypothesis of each sentence, without EOS: all sentences of the first copy,
        then of the second, ...
    """
    device, special = model.source_embedding.device, model.architecture.tokens
    rows = [torch.tensor([*ids, special.eos]) for ids in sources]
    source = pad_sequence(rows, batch_first=True, padding_value=special.pad)
    gates = [attention.gate for attention in model.attentions("encoder")]
    if any(isinstance(gate, Mask) and gate.by_sentence for gate in gates):
        cache = Cache(model, *model.encode(source.repeat(copies, 1).to(device)))
    else:
        cache = Cache(model, *model.encode(source.to(device)))
        cache.repeat(copies)
    sentences = [Sentence(int(max_length_ratio * len(ids)) + 10) for ids in sources * copies]
    open_ = sentences
    # The first step has one hypothesis per sentence; its best continuations fill the beam.
    prefixes = torch.empty(len(sentences), 1, 0, dtype=torch.long, device=device)
    tokens = torch.full((len(sentences), 1), special.start, device=device)
    scores = torch.zeros(len(sentences), 1, device=device)
    length = 0  # of the prefixes
    while open_:
        log_p = next_token(model, tokens, length, cache)
        length += 1
        best, parent, token = candidates(scores, log_p, number=2 * beam)  # (B, 2W) or fewer

        # Those among the best W that end are finished hypotheses.
        ends = token == special.eos
        for row, column in ends[:, :beam].nonzero().tolist():
            if (score := float(best[row, column])) > -torch.inf:
                ids = prefixes[row, parent[row, column]].tolist()
                open_[row].finished.append((score / length, ids))

        # The best W of the others fill the beam, or as many as there surely are: each hypothesis
        # can end in only one way.
        width = min(beam, best.shape[1] - tokens.shape[1])
        order = torch.argsort(ends.to(torch.int8), dim=1, stable=True)[:, :width]
        scores, parent, token = (x.gather(1, order) for x in (best, parent, token))
        before = prefixes.gather(1, parent[..., None].expand(-1, -1, length - 1))
        prefixes = torch.cat([before, token[..., None]], dim=2)

        # Sentences with W finished hypotheses, or at their limit, leave the batch.
        for row, sentence in enumerate(open_):
            if length == sentence.limit and not sentence.finished:  # take the best prefix as it is
                sentence.finished.append((float(scores[row, 0]), prefixes[row, 0].tolist()))
        stay = [
            row
            for row, sentence in enumerate(open_)
            if len(sentence.finished) < beam and length < sentence.limit
        ]
        kept = torch.tensor(stay, dtype=torch.long, device=device)
        hypotheses = kept[:, None] * tokens.shape[1] + parent[kept]
        cache.select(hypotheses.flatten(), kept if len(stay) < len(open_) else None)
        scores, prefixes, tokens = scores[kept], prefixes[kept], token[kept]
        open_ = [open_[row] for row in stay]
    return [max(sentence.finished, key=itemgetter(0))[1] for sentence in sentences]


def next_token(model: Transformer, tokens: Tensor, position: int, cache: Cache) -> Tensor:
    """Log-probabilities (B, W, V) of the next token, after the `tokens` (B, W) at a position (from
    0); appends to the cache."""
    special = model.architecture.tokens
    log_p = torch.log_softmax(step(model, tokens, position, cache), -1)
    never = {special.pad, special.start} - {special.eos}
    log_p[..., sorted(never)] = -torch.inf
    if position < len(special.target_tags):
        log_p.fill_(-torch.inf)
        log_p[..., special.target_tags[position]] = 0.0  # as certain as the start token
    return log_p


def candidates(scores: Tensor, log_p: Tensor, *, number: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best continuations of each sentence, `number` or all, by descending score: score,
    hypothesis and token (B, number).

    From the scores (B, W) of its hypotheses and the log-probabilities (B, W, V) of the next token.
    """
    # A sentence's best candidates are among the best of each of its hypotheses.
    likely, likely_token = log_p.topk(min(number, log_p.shape[-1]), dim=-1)
    totals = (scores[..., None] + likely).flatten(1)
    best, index = totals.topk(min(number, totals.shape[1]), dim=1)
    return best, index // likely.shape[-1], likely_token.flatten(1).gather(1, index)


def translate_all(
    model: Transformer, sources: Sequence[list[int]], *, show: bool = False, **settings: float
) -> list[list[int]]:
    """Translate sentences, ids without EOS, as `translate`, in batches of similar length with all
    threads.

    `show`: with a progress bar. Masks must not differ by sentence.
    """
    small = model.device.type == "cpu" and model.architecture.width <= SMALL
    threads = torch.get_num_threads() if small else 1
    return in_batches(partial(translate, model, **settings), sources, threads=threads, show=show)


def in_batches(
    translate_batch: Callable[[list[list[int]]], Sequence[Output]],
    sources: Sequence[list[int]],
    *,
    tokens: int = TOKENS,
    threads: int = 1,
    show: bool = False,
) -> list[Output]:
    """The outputs of sentences in their order, which `translate_batch` makes in batches of similar
    length.

    Args:
        tokens: source tokens per batch at most, padding included; a longer sentence is a batch of
        its own.
        threads: number of batches translated at once, each on its own thread; must be 1 if masks
        differ by sentence.
    """
    lengths = np.array([len(ids) + 1 for ids in sources], dtype=int)
    order = np.argsort(lengths, kind="stable")
    batches = cut(lengths[order], order, tokens)
    batches.reverse()  # the longest first, so that no thread ends late
    outputs: dict[int, Output] = {}
    with mapped(min(threads, len(batches))) as map_:
        made = map_(lambda batch: translate_batch([sources[index] for index in batch]), batches)
        if show:
            made = stage.progress(made, what="translating", total=len(batches), unit="batch")
        for batch, translations in zip(batches, made, strict=True):
            outputs |= zip(batch.tolist(), translations, strict=True)
    return [outputs[index] for index in range(len(sources))]


@contextmanager
def mapped(threads: int) -> Iterator[Callable[..., Iterable]]:
    """A function like `map` that uses this many threads, each of which computes on its own; with
    fewer than two, `map`."""
    if threads < 2:
        yield map
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)


class Settings(stage.Section):
    decoding: Decoding
    preprocess: Mode
    language: str  # of the translations
    device: str


@stage.command("model", "tokens", "bpe", "output", "tokenised", settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    model = load_on(files.model, settings.device)
    store, bpe = load_tokens(files.tokens), load_bpe(files.bpe)
    sources = [store.source_ids(i).tolist() for i in range(len(store))]
    outputs = translate_all(model, sources, show=True, **settings.decoding.model_dump())
    translations = [bpe.decode(ids).replace("\n", " ") for ids in outputs]
    if settings.preprocess == "paper":
        tokenised = [" ".join(line.split()) for line in translations]
    else:
        tokenised = apply(translations, language=settings.language, mode="paper")
    detokenised = undo(translations, language=settings.language, mode=settings.preprocess)
    for path, lines in ((files.output, detokenised), (files.tokenised, tokenised)):
        stage.write_file(path, "".join(line + "\n" for line in lines))
    stage.log.info("%d sentences translated", len(translations))
