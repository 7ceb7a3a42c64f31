"""Whether other engines translate with an exported model as this project does."""

from pathlib import Path

import torch

from specialized_heads.exchange.export import Translator, load_exported
from specialized_heads.model.decoding import translate_all

# difference of two hypotheses' scores, nats per token, below which rounding decides between them
EQUAL = 1e-3


def agrees(folder: Path, texts: list[str], *, original: Path) -> bool:
    """Whether a model written for another engine translates texts as the original, up to hypotheses
    of equal score."""
    translator = load_exported(original, device="cpu")
    sources = translator.encode(texts)
    theirs = (under_ctranslate2 if (folder / "model.bin").exists() else under_transformers)(
        folder, translator, sources
    )
    ours = translate_all(translator.model, sources, **translator.decoding.model_dump())
    return len(ours) == len(theirs) == len(texts) and all(
        our == their
        or abs(score(translator, source, our) - score(translator, source, their)) < EQUAL
        for source, our, their in zip(sources, ours, theirs, strict=True)
    )


def under_ctranslate2(
    folder: Path, translator: Translator, sources: list[list[int]]
) -> list[list[int]]:
    import ctranslate2

    engine = ctranslate2.Translator(str(folder), intra_threads=1)
    tags = translator.model.architecture.tokens.target_tags
    piece, number_of = translator.target.id_to_piece, translator.target.piece_to_id
    outputs = []
    for ids in sources:
        [result] = engine.translate_batch(
            [[translator.source.id_to_piece(number) for number in ids]],
            target_prefix=[[piece(number) for number in tags]] if tags else None,
            beam_size=translator.decoding.beam,
            min_decoding_length=0,
            max_decoding_length=longest(translator, ids),
        )
        outputs.append([number_of(word) for word in result.hypotheses[0]])
    return outputs


@torch.inference_mode()
def under_transformers(
    folder: Path, translator: Translator, sources: list[list[int]]
) -> list[list[int]]:
    from transformers import AutoModelForSeq2SeqLM

    model, eos = (
        AutoModelForSeq2SeqLM.from_pretrained(folder).eval(),
        translator.model.architecture.tokens.eos,
    )
    outputs = []
    for ids in sources:
        [row] = model.generate(
            torch.tensor([[*ids, eos]]), max_new_tokens=longest(translator, ids)
        )[:, 1:].tolist()
        outputs.append(row[: row.index(eos)] if eos in row else row)
    return outputs


def longest(translator: Translator, ids: list[int]) -> int:
    return int(translator.decoding.max_length_ratio * len(ids)) + 10


@torch.inference_mode()
def score(translator: Translator, source: list[int], target: list[int]) -> float:
    """The score of a hypothesis in beam search: log P / n, in nats."""
    model, tokens = translator.model, translator.model.architecture.tokens
    given = torch.tensor([[tokens.start, *target]])
    logits = model.logits(model(torch.tensor([[*source, tokens.eos]]), given))[0].log_softmax(-1)
    labels = torch.tensor([*target, tokens.eos])
    each = logits[torch.arange(len(labels)), labels][len(tokens.target_tags) :]
    return float(each.sum() / len(labels))
