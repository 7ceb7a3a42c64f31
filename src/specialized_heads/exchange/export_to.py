"""Write an exported model in the format of another engine, and check that its translations agree with ours.

A folder made by the rule `export` becomes one for CTranslate2 or for Hugging Face transformers, with its tokenisers, a README and
`check.json`, which compares its translations of a text with ours.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from specialized_heads import __version__, stage
from specialized_heads.exchange import huggingface
from specialized_heads.exchange.tokenisers import write_tokenisers
from specialized_heads.export import LONGEST, SOURCE, TARGET, Translator, load_exported
from specialized_heads.languages import without_region
from specialized_heads.model.decoding import in_batches, translate_all

CHECK, README = "check.json", "README.md"
EQUAL = 1e-3  # difference of two hypotheses' scores, nats per token, below which rounding decides between them

WRITTEN = """# {name}

Translates from {source} to {target}. Written by specialized-heads {version} for {engine}.

```python
{code}
print({undo})
```

{check}
"""

HF_CODE = """import transformers
folder = "PATH/OF/THIS/FOLDER"
model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
text = "A sentence."{apply}
ids = tokenizer({before}text, return_tensors="pt")
translation = tokenizer.decode(model.generate(**ids)[0], skip_special_tokens=True)"""

CTRANSLATE2_CODE = """import ctranslate2, sentencepiece
folder = "PATH/OF/THIS/FOLDER"
translator = ctranslate2.Translator(folder)
source = sentencepiece.SentencePieceProcessor(model_file=f"{{folder}}/source.model")
target = sentencepiece.SentencePieceProcessor(model_file=f"{{folder}}/target.model")
text = "A sentence."{apply}
pieces = {tags}source.encode(text, out_type=str)
result = translator.translate_batch([pieces], beam_size={beam}{prefix})[0]
translation = target.decode_pieces(result.hypotheses[0]{skip})"""

# What `corpus.preprocess` does before and after, for a model of lower-case Moses tokens.
APPLY = """
from sacremoses import MosesDetokenizer, MosesTokenizer
text = " ".join(MosesTokenizer("{source}").tokenize(text, escape=False)).lower()"""
UNDO = 'MosesDetokenizer("{target}").detokenize(translation.split(), unescape=False)'


@dataclass(frozen=True)
class Comparison:
    """Translations of a text by both engines.

    same: sentences with the same pieces; rounding: with others whose score under our model differs by less than `EQUAL`;
    better, worse: those that our model scores higher or lower than its own.
    """

    sentences: int
    same: int
    rounding: int
    better: int
    worse: int

    def __str__(self) -> str:
        if not self.sentences:
            return "Not compared with the original: no text was given."
        return (
            f"Of {self.sentences:,} sentences, {self.same:,} have the same translation as in the original; in {self.rounding:,} "
            f"rounding decides between hypotheses of equal score; in {self.better:,} the search finds a better hypothesis, in "
            f"{self.worse:,} a worse one, as the original model scores them."
        )


def export_to(folder: Path, output: Path, *, to: str, quantization: str = "float32", texts: list[str]) -> Comparison:
    """Write an exported model for `ctranslate2` or `hf` to a folder, which must not exist or hold an earlier export.

    `texts`: sentences whose translations are compared.
    """
    translator = load_exported(folder, device="cpu")
    _check_free(output)
    tags = len(translator.model.architecture.tokens.source_tags)
    sources = [ids for ids in translator.encode(texts) if tags < len(ids) <= LONGEST]
    if left_out := len(texts) - len(sources):
        said = "%d of %d lines are empty or have more than %d subwords, and are not compared"
        stage.log.warning(said, left_out, len(texts), LONGEST)
    # An earlier export stays until this one is complete.
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".export") as made:
        place = Path(made, output.name)
        place.mkdir()
        run = (_write_ctranslate2 if to == "ctranslate2" else _write_hf)(translator, place, quantization=quantization)
        comparison = _compare(translator, sources, run(sources) if sources else [])
        stage.write_file(place / README, _readme(translator, to=to, quantization=quantization, comparison=comparison))
        written = {"files": sorted(path.name for path in place.iterdir())}
        origin = {"original": str(folder), "to": to, "quantization": quantization}
        stage.write_json(place / CHECK, origin | vars(comparison) | written)
        shutil.rmtree(output, ignore_errors=True)
        place.rename(output)
    return comparison


def _check_free(output: Path) -> None:
    """Make the parents of the folder; a `UserError` if it holds anything but an earlier export."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        names = {path.name for path in output.iterdir()} if os.path.lexists(output) else set()
    except OSError as error:
        raise stage.UserError(f"{output}: cannot be made ({error.strerror}); name a new folder") from None
    earlier = stage.read_json(output / CHECK).get("files", []) if CHECK in names else []
    if others := names - {CHECK, *earlier}:
        raise stage.UserError(f"{output}: holds other files ({min(others)}); name a new folder")


Run = Callable[[list[list[int]]], list[list[int]]]


def _write_ctranslate2(translator: Translator, output: Path, *, quantization: str) -> Run:
    """Write a model for CTranslate2; returns what translates with it."""
    try:
        from specialized_heads.exchange import ctranslate
    except ImportError:
        raise stage.UserError("CTranslate2 is not installed; run `pip install ctranslate2` and try again") from None
    a = translator.model.architecture
    source = [translator.source.id_to_piece(number) for number in range(a.source_vocabulary)]
    target = [translator.target.id_to_piece(number) for number in range(a.target_vocabulary)]
    number_of = {piece: number for number, piece in enumerate(target)}
    ctranslate.write(translator.model, output, source=source, target=target, quantization=quantization)
    for name, processor in ((SOURCE, translator.source), (TARGET, translator.target)):
        stage.write_file(output / name, processor.serialized_model_proto())
    settings = translator.decoding.model_dump() | {"compute_type": ctranslate.computed(quantization)}
    translate = ctranslate.translator(output, tags=[target[number] for number in a.tokens.target_tags], **settings)

    def run(sources: list[list[int]]) -> list[list[int]]:
        outputs = translate([[source[number] for number in ids] for ids in sources])
        return [[number_of[piece] for piece in hypothesis] for hypothesis in outputs]

    return partial(in_batches, run)


def _write_hf(translator: Translator, output: Path, *, quantization: str) -> Run:
    """Write a model for transformers; returns what translates with them, or as this project reads them without transformers."""
    if quantization != "float32":
        raise stage.UserError("--quantization: transformers holds float32 weights; quantise for CTranslate2")
    a = translator.model.architecture
    protos = [processor.serialized_model_proto() for processor in (translator.source, translator.target)]
    settings = translator.decoding.model_dump()
    huggingface.write_folder(translator.model, output, beam=settings["beam"])
    write_tokenisers(*protos, output, tokens=a.tokens, marian=a.post_norm)
    try:
        from specialized_heads.exchange.generate import generator
    except ImportError:  # no transformers
        return partial(translate_all, huggingface.load_folder(output, a.tokens), **settings)
    return partial(in_batches, generator(output, eos=a.tokens.eos, max_length_ratio=settings["max_length_ratio"]))


def _compare(translator: Translator, sources: list[list[int]], theirs: list[list[int]]) -> Comparison:
    ours = translate_all(translator.model, sources, **translator.decoding.model_dump())
    counts: dict[str, int] = dict.fromkeys(("same", "rounding", "better", "worse"), 0)
    for source, our, their in zip(sources, ours, theirs, strict=True):
        if our == their:
            counts["same"] += 1
            continue
        difference = _score(translator, source, their) - _score(translator, source, our)
        counts["rounding" if abs(difference) < EQUAL else "better" if difference > 0 else "worse"] += 1
    return Comparison(sentences=len(sources), **counts)


@torch.inference_mode()
def _score(translator: Translator, source: list[int], target: list[int]) -> float:
    """The score of a hypothesis in beam search: log P / n, in nats."""
    model, tokens = translator.model, translator.model.architecture.tokens
    given = torch.tensor([[tokens.start, *target]])
    logits = model.logits(model(torch.tensor([[*source, tokens.eos]]), given))[0].log_softmax(-1)
    labels = torch.tensor([*target, tokens.eos])
    each = logits[torch.arange(len(labels)), labels][len(tokens.target_tags) :]
    return float(each.sum() / len(labels))


def _readme(translator: Translator, *, to: str, quantization: str, comparison: Comparison) -> str:
    card, tokens = translator.card, translator.model.architecture.tokens
    source_tags = [translator.source.id_to_piece(number) for number in tokens.source_tags]
    target_tags = [translator.target.id_to_piece(number) for number in tokens.target_tags]
    paper = card.preprocess == "paper"
    languages = {"source": without_region(card.source_language), "target": without_region(card.target_language)}
    before = "".join(source_tags) if translator.model.architecture.post_norm else ""  # the other tokenisers add them
    engine, code = "Hugging Face transformers 5. Removed heads are zeros", HF_CODE
    if to == "ctranslate2":
        engine, code = f"CTranslate2 ({quantization})", CTRANSLATE2_CODE
    code = code.format(
        **card.decoding.model_dump(),
        apply=APPLY.format(**languages) if paper else "",
        before=f"{before!r} + " if before else "",
        tags=f"{source_tags} + " if source_tags else "",
        prefix=f", target_prefix=[{target_tags}]" if target_tags else "",
        skip=f"[{len(target_tags)}:]" if target_tags else "",
    )
    return WRITTEN.format(
        name=f"{card.model} of {card.corpus}",
        source=card.source_language,
        target=card.target_language,
        version=__version__,
        engine=engine,
        code=code,
        undo=UNDO.format(**languages) if paper else "translation",
        check=comparison,
    )
