"""Stage: the attention maps, labels and trees of a model's heads for some sentences, as one HTML
file that opens from disk in any browser.

The sentences are the first of the analysis set that are parsed, aligned with their subwords, of a
readable length (`LENGTHS`) on the source side, and no longer than that on the target side. Maps are
those of the analysis: the model reads the source and the reference translation. Weights are stored
in 256 steps, so the error is at most 0.002.

`assets/page.html`, `page.css` and the scripts are joined with the data into one file. Text from
a corpus enters it only as JSON, in which every `<` is escaped, and the script writes it into the
page as text; a content security policy forbids anything from elsewhere. The stage `index` makes one
page with links to the pages of all models of an experiment, by corpus.
"""

import base64
import html
import json
import math
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field
from sentencepiece import SentencePieceProcessor

from specialized_heads import stage
from specialized_heads.corpus.preprocess import Mode, apply
from specialized_heads.corpus.tokens import TokenStore, load_bpe, load_tokens
from specialized_heads.heads import maps
from specialized_heads.heads.syntactic import align
from specialized_heads.model.architecture import KINDS
from specialized_heads.model.checkpoint import architecture_of, load_on
from specialized_heads.model.transformer import Transformer
from specialized_heads.parsing.relations import STANFORD
from specialized_heads.parsing.words import Word, read_parses
from specialized_heads.tables import HEAD, read_columns, read_table

LENGTHS = range(5, 26)  # subwords
STEPS = 255
LISTS = ("functions", "relations", "relations_certain")
FILES = Path(__file__).parent / "assets"

Json = dict[str, Any]


class Settings(stage.Section):
    sentences: int = Field(ge=1)
    title: str  # of the corpus
    model: str  # as in paths
    seed: int
    preprocess: Mode
    language: str  # of the source side
    device: str
    alone: bool = False  # without a page of all models to link to


class Entry(stage.Section):
    """A page: its model, the title of its corpus, and its path relative to the index."""

    title: str
    model: str
    page: str


class IndexSettings(stage.Section):
    experiment: str
    entries: list[Entry] = Field(min_length=1)


def choose(
    store: TokenStore,
    texts: list[str],
    processed: list[str],
    parses: dict[int, list[Word]],
    bpe: SentencePieceProcessor,
    *,
    number: int,
) -> dict[int, list[list[int]]]:
    """Choose the sentences to show: the pieces of each word, by number of the sentence, in order.

    `texts` are the source side as the parser read it, `processed` the same as BPE read it.
    """
    source, target = store.source_lengths, store.target_lengths
    readable = {
        sentence: parses[sentence]
        for sentence in sorted(parses)
        if source[sentence] in LENGTHS and target[sentence] < LENGTHS.stop
    }
    tags = len(store.tokens.source_tags)
    aligned, _ = align(readable, texts, bpe, [], processed=processed, tags=tags)
    return {sentence: aligned[sentence].words for sentence in list(aligned)[:number]}


def encoded(weights: np.ndarray) -> str:
    """Weights (H, T, S) in steps of 1/255, one byte each, row by row, as base64."""
    return base64.b64encode(np.rint(weights * STEPS).astype(np.uint8).tobytes()).decode()


def sentence_maps(
    model: Transformer, store: TokenStore, sentences: list[int]
) -> list[dict[str, str | None]]:
    """The maps of all heads for each of these sentences, by attention type.

    Rows are queries and columns keys, as in `shown_tokens`. None: a sentence without a target has
    no maps of the decoder.
    """
    picked = store.select(sentences)
    return [
        {
            kind: encoded(weights.float().numpy())
            if kind == "encoder" or len(picked.target_ids(number))
            else None
            for kind, weights in by_kind.items()
        }
        for number, by_kind in enumerate(maps.of_sentences(model, picked))
    ]


def shown_tokens(
    store: TokenStore, sentence: int, source: SentencePieceProcessor, target: SentencePieceProcessor
) -> tuple[list[str], list[str]]:
    """Subwords of both sides as the model reads them: the source with its end mark, the target with
    its start mark."""
    pieces = [source.id_to_piece(int(token)) for token in store.source_ids(sentence)]
    translation = [target.id_to_piece(int(token)) for token in store.target_ids(sentence)]
    start, end = target.id_to_piece(store.tokens.start), source.id_to_piece(store.tokens.eos)
    return [*pieces, end], [start, *translation] if translation else []


def read_heads(path: Path) -> list[Json]:
    """All columns of a heads table, by head: labels as lists, scores with four decimals or None."""
    rows = []
    for row in read_table(path).to_pylist():
        scores = {
            name: None if value is None or math.isnan(value) else round(value, 4)
            for name, value in row.items()
            if name not in HEAD and isinstance(value, int | float | None) and name not in LISTS
        }
        labels = {name: row.get(name) or [] for name in LISTS}
        rows.append({name: row[name] for name in HEAD} | labels | {"scores": scores})
    return rows


def page(data: Json) -> str:
    """The whole page. `data` is what `page.js` describes."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.replace("<", "\\u003c")
    shell = (FILES / "page.html").read_text(encoding="utf-8")
    parts = {"CSS": "page.css", "JS": "page.js", "TABLE": "table.js", "LINES": "lines.js"}
    for name, file in parts.items():
        shell = shell.replace(f"/* {name} */", (FILES / file).read_text(encoding="utf-8"))
    return shell.replace("/* DATA */", text)


@stage.command("output", many=("heads",), settings=IndexSettings)
def index(files: stage.Files, settings: IndexSettings) -> None:
    """`--heads` are the tables of heads of the entries."""
    name, css = html.escape(settings.experiment), (FILES / "page.css").read_text(encoding="utf-8")
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<link rel="icon" href="data:,">',
        f"<title>Attention heads: {name}</title>\n<style>\n{css}</style>\n</head>\n<body>",
        f"<header><h1>Attention heads: {name}</h1></header>",
    ]
    columns = ("model", "heads (encoder, decoder, cross)", "with a function")
    head = "".join(f"<th>{name}</th>" for name in columns)
    pairs = zip(settings.entries, files.heads, strict=True)
    for title, models in groupby(pairs, key=lambda pair: pair[0].title):
        parts.append(f"<h2>{html.escape(title)}</h2>\n<table class='models'>\n<tr>{head}</tr>")
        for entry, table in models:
            rows = read_table(table, columns=["type", "functions"]).to_pylist()
            counts = Counter(row["type"] for row in rows)
            left = ", ".join(str(counts[kind]) for kind in KINDS)
            labelled = sum(bool(row["functions"]) for row in rows)
            link = f'<a href="{html.escape(entry.page)}">{html.escape(entry.model)}</a>'
            parts.append(f"<tr><td>{link}</td><td>{left}</td><td>{labelled}</td></tr>")
        parts.append("</table>")
    stage.write_file(files.output, "\n".join([*parts, "</body>", "</html>", ""]))


NAMES = ("model", "source-bpe", "target-bpe", "text", "analysis", "parses", "heads", "output")


@stage.command(*NAMES, optional=("whole",), settings=Settings)
def main(files: stage.Files, settings: Settings) -> None:
    """`--whole` is the description of the model before pruning; without it, nothing was pruned."""
    model = load_on(files.model, settings.device)
    source, target = load_bpe(files.source_bpe), load_bpe(files.target_bpe)
    store, parses = load_tokens(files.analysis), read_parses(files.parses)
    texts, translations = read_columns(files.text, "source", "target")
    processed = apply(texts, language=settings.language, mode=settings.preprocess)
    chosen = choose(store, texts, processed, parses, source, number=settings.sentences)
    sentences, weights_of = [], sentence_maps(model, store, list(chosen))
    for (number, pieces), weights in zip(chosen.items(), weights_of, strict=True):
        subwords, translation = shown_tokens(store, number, source, target)
        words = [
            {"form": word.form, "head": word.head, "relation": word.relation, "pieces": places}
            for word, places in zip(parses[number], pieces, strict=True)
        ]
        sentences.append(
            {"text": texts[number], "translation": translations[number], "source": subwords}
            | {"target": translation, "words": words, "maps": weights}
        )
    whole = architecture_of(files.whole or files.model)
    numbers = [head for kind in KINDS for layer in getattr(whole, kind) for head in layer]
    up = "../" * (len(settings.model.split("/")) + 1)
    data = {
        "title": settings.title,
        "model": settings.model,
        "seed": settings.seed,
        "wanted": settings.sentences,
        "index": "" if settings.alone else f"{up}index.html",
        "perLayer": max(numbers, default=-1) + 1,
        "layers": {kind: len(getattr(whole, kind)) for kind in KINDS},
        "order": {kind: maps.head_numbers(model, kind) for kind in KINDS},
        "heads": read_heads(files.heads),
        "sentences": sentences,
        "sourceTags": len(store.tokens.source_tags),
        "sameRelation": STANFORD,
    }
    stage.write_file(files.output, page(data))
    sizes = len(sentences), len(store), settings.sentences, files.output.stat().st_size / 1e6
    said = "page with %d of %d sentences of the analysis set, %d requested; %.1f MB"
    stage.log.info(said, *sizes)
