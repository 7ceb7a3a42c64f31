"""Beam search with cached keys and values, for a batch of sentences at once.

Each step scores one token per hypothesis: self-attention keys and values of the prefix are kept, those of the encoder's
output are computed once. Sentences that are finished leave the batch. With a beam of one this is greedy search.

One pass can translate each sentence by several models that differ only in the heads that are masked: the sentences stand
in the batch once per mask, and what no mask changes, often the whole encoder, is computed once.

Shapes: B sentences still open, W hypotheses per sentence (the beam), S source tokens, V target vocabulary.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from specialized_heads.corpus.vocabulary import BOS, EOS, PAD
from specialized_heads.model.gates import Mask
from specialized_heads.model.transformer import Transformer


@dataclass
class _Search:
    """Hypotheses of one sentence that have ended: (normalised score, token ids)."""

    limit: int
    finished: list[tuple[float, list[int]]] = field(default_factory=list)


class Cache:
    """Keys and values of every decoder layer: of the prefixes per hypothesis, of the encoder's output per sentence."""

    def __init__(self, model: Transformer, memory: Tensor, bias: Tensor) -> None:
        self.bias = bias
        self.cross = [layer.cross.project_memory(memory) if layer.cross.heads else None for layer in model.decoder]
        self.own: list[tuple[Tensor, Tensor] | None] = [None] * len(model.decoder)
        self.masks = [a.gate for a in model.attentions("decoder", "cross") if isinstance(a.gate, Mask)]

    def repeat(self, copies: int) -> None:
        """Let the batch of sentences follow itself so many times."""
        self.cross = [pair and tuple(part.repeat(copies, 1, 1, 1) for part in pair) for pair in self.cross]
        self.bias = self.bias.repeat(copies, 1, 1, 1)

    def select(self, hypotheses: Tensor, sentences: Tensor | None) -> None:
        """Keep (and reorder) hypotheses, and sentences where some have left the batch."""
        self.own = [pair and (pair[0][hypotheses], pair[1][hypotheses]) for pair in self.own]
        if sentences is not None:
            self.cross = [pair and (pair[0][sentences], pair[1][sentences]) for pair in self.cross]
            self.bias = self.bias[sentences]
            for mask in self.masks:
                mask.select(sentences)


def step(model: Transformer, tokens: Tensor, position: int, cache: Cache) -> Tensor:
    """Logits (B, W, V) of the next token.

    Args:
        tokens: last token of each hypothesis (B, W).
        position: its position in the target, from 0.
        cache: of the hypotheses; the new keys and values are appended.
    """
    b, w = tokens.shape
    x = model.embed(model.target_embedding, tokens.view(b * w, 1), start=position)
    for number, layer in enumerate(model.decoder):
        if layer.attention.heads:
            query, key, value = layer.attention.project(layer.attention_norm(x), None)
            if (past := cache.own[number]) is not None:
                key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
            cache.own[number] = (key, value)
            x = x + layer.attention.combine(layer.attention.attend(query, key, value, None))
        if (pair := cache.cross[number]) is not None:
            # The hypotheses of a sentence are so many queries to the same keys.
            query = layer.cross.split(torch.nn.functional.linear(layer.cross_norm(x), layer.cross.query).view(b, w, -1))
            x = x + layer.cross.combine(layer.cross.attend(query, *pair, cache.bias)).view_as(x)
        x = x + layer.feed_forward(layer.feed_forward_norm(x))
    return model.logits(model.decoder_norm(x)).float().view(b, w, -1)


@torch.inference_mode()
def translate(
    model: Transformer,
    sources: list[list[int]],
    *,
    beam: int,
    length_penalty: float,
    max_length_ratio: float,
    copies: int = 1,
) -> list[list[int]]:
    """Translate a batch of sentences.

    Args:
        model: in evaluation mode. Masks by sentence have a row for each sentence of each copy, in the order of the result;
            those of the decoder are used up, since finished sentences leave the batch.
        sources: ids of each sentence, without EOS.
        beam: W.
        length_penalty: α; a hypothesis of n tokens (EOS counted) scores log P / n^α.
        max_length_ratio: an output has at most so many times the source's tokens, plus 10.
        copies: how many times the whole batch is translated, for masks that differ between the copies.

    Returns:
        ids of the best hypothesis of each sentence, without EOS; all sentences of the first copy, then of the next.
    """
    device = model.source_embedding.device
    source = pad_sequence([torch.tensor([*ids, EOS]) for ids in sources], batch_first=True, padding_value=PAD)
    if any(isinstance(a.gate, Mask) and a.gate.by_sentence for a in model.attentions("encoder")):
        cache = Cache(model, *model.encode(source.repeat(copies, 1).to(device)))
    else:
        cache = Cache(model, *model.encode(source.to(device)))
        cache.repeat(copies)
    sources = sources * copies
    searches = [_Search(limit=int(max_length_ratio * len(ids)) + 10) for ids in sources]
    open_ = list(range(len(sources)))
    prefixes = torch.empty(len(sources), beam, 0, dtype=torch.long, device=device)
    tokens = torch.full((len(sources), beam), BOS, device=device)
    scores = torch.full((len(sources), beam), -torch.inf, device=device)
    scores[:, 0] = 0.0  # all hypotheses are the same at first: only one may branch
    position = 0
    while open_:
        logits = step(model, tokens, position, cache)
        mass = logits.logsumexp(-1, keepdim=True)  # over all tokens, those that no output may hold included
        logits[..., PAD] = logits[..., BOS] = -torch.inf
        position += 1
        # The best of a sentence are among the best of its hypotheses.
        likely, likely_token = logits.topk(min(2 * beam, logits.shape[-1]), dim=-1)
        candidates = (scores[..., None] + (likely - mass)).flatten(1)
        best, index = candidates.topk(2 * beam, dim=1)
        parent, token = index // likely.shape[-1], likely_token.flatten(1).gather(1, index)
        ends = token == EOS
        _collect(searches, open_, prefixes, best, parent, ends[:, :beam], position**length_penalty)
        # The best W candidates that go on; there are at least W, since each hypothesis can end in one way only.
        order = torch.argsort(ends.to(torch.int8), dim=1, stable=True)[:, :beam]
        scores, parent, token = best.gather(1, order), parent.gather(1, order), token.gather(1, order)
        prefixes = torch.cat([prefixes.gather(1, parent[..., None].expand_as(prefixes)), token[..., None]], dim=2)
        stay = []
        for row, sentence in enumerate(open_):
            search = searches[sentence]
            if len(search.finished) < beam and position < search.limit:
                stay.append(row)
            elif not search.finished:  # cut off at the limit: take the best prefix as it is
                search.finished.append((float(scores[row, 0]) / position**length_penalty, prefixes[row, 0].tolist()))
        kept = torch.tensor(stay, dtype=torch.long, device=device)
        scores, prefixes, tokens, parent = scores[kept], prefixes[kept], token[kept], parent[kept]
        cache.select((kept[:, None] * beam + parent).flatten(), kept if len(stay) < len(open_) else None)
        open_ = [open_[row] for row in stay]
    return [max(search.finished, key=lambda hypothesis: hypothesis[0])[1] for search in searches]


def _collect(
    searches: list[_Search],
    open_: list[int],
    prefixes: Tensor,
    best: Tensor,
    parent: Tensor,
    ends: Tensor,
    normaliser: float,
) -> None:
    """Move hypotheses whose best continuation is the end of the sentence to the finished ones."""
    for row, column in ends.nonzero().tolist():
        score = float(best[row, column])
        if score > -torch.inf:
            search = searches[open_[row]]
            search.finished.append((score / normaliser, prefixes[row, parent[row, column]].tolist()))
