"""Write an exported model in the format of another engine.

A folder made by the rule `export` becomes one for CTranslate2 or for Hugging Face transformers, with its tokenisers and a README.
"""

from pathlib import Path

from specialized_heads import __version__, stage
from specialized_heads.exchange import huggingface
from specialized_heads.exchange.tokenisers import write_tokenisers
from specialized_heads.export import SOURCE, TARGET, Translator, load_exported
from specialized_heads.languages import without_region

WRITTEN = """# {name}

Translates from {source} to {target}. Written by specialized-heads {version} for {engine}.

```python
{code}
print({undo})
```
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
limit = int({max_length_ratio:g} * len(pieces)) + 10
result = translator.translate_batch([pieces], beam_size={beam}, max_decoding_length=limit{prefix})[0]
translation = target.decode_pieces(result.hypotheses[0]{skip})"""

# What `corpus.preprocess` does before and after, for a model of lower-case Moses tokens.
APPLY = """
from sacremoses import MosesDetokenizer, MosesTokenizer
text = " ".join(MosesTokenizer("{source}").tokenize(text, escape=False)).lower()"""
UNDO = 'MosesDetokenizer("{target}").detokenize(translation.split(), unescape=False)'


def export_to(folder: Path, output: Path, *, to: str, quantization: str = "float32") -> Path:
    """Write an exported model for `ctranslate2` or `hf` to a folder, which must be new or empty; returns its README."""
    translator = load_exported(folder, device="cpu")
    try:
        output.mkdir(parents=True, exist_ok=True)
        names = sorted(path.name for path in output.iterdir())
    except OSError as error:
        raise stage.UserError(f"{output}: cannot be made ({error.strerror}); name a new folder") from None
    if names:
        raise stage.UserError(f"{output}: holds other files ({names[0]}); name a new folder")
    if to == "ctranslate2":
        _write_ctranslate2(translator, output, quantization=quantization)
    else:
        _write_hf(translator, output, quantization=quantization)
    stage.write_file(output / "README.md", _readme(translator, to=to, quantization=quantization))
    return output / "README.md"


def _write_ctranslate2(translator: Translator, output: Path, *, quantization: str) -> None:
    with stage.optional("ctranslate2"):
        from specialized_heads.exchange import ctranslate
    a = translator.model.architecture
    source = [translator.source.id_to_piece(number) for number in range(a.source_vocabulary)]
    target = [translator.target.id_to_piece(number) for number in range(a.target_vocabulary)]
    ctranslate.write(translator.model, output, source=source, target=target, quantization=quantization)
    stage.write_file(output / SOURCE, translator.source.serialized_model_proto())
    stage.write_file(output / TARGET, translator.target.serialized_model_proto())


def _write_hf(translator: Translator, output: Path, *, quantization: str) -> None:
    if quantization != "float32":
        raise stage.UserError("--quantization: transformers holds float32 weights; quantise for CTranslate2")
    a = translator.model.architecture
    huggingface.write_folder(translator.model, output, beam=translator.decoding.beam)
    protos = [processor.serialized_model_proto() for processor in (translator.source, translator.target)]
    write_tokenisers(*protos, output, tokens=a.tokens, marian=a.post_norm)


def _readme(translator: Translator, *, to: str, quantization: str) -> str:
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
    )
