"""Analyse the heads of a model on a text without a configuration: the table of heads and the
attention viewer.

This runs the stages of the pipeline, each in its own process, in one folder. If no translations are
given, the model translates the text. Lines of more than `LONGEST` subwords on either side are
skipped. Without a parser, words are separated at white space, and no head can be syntactic.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from specialized_heads import stage
from specialized_heads.corpus.normalise import normalise
from specialized_heads.corpus.preprocess import Mode, apply
from specialized_heads.corpus.readers.local import plain_lines
from specialized_heads.corpus.tokens import encode_ids, load_bpe
from specialized_heads.evaluation import read_lines
from specialized_heads.exchange.export import LONGEST
from specialized_heads.exchange.folder import (
    DESCRIPTION,
    SOURCE,
    TARGET,
    WEIGHTS,
    make_folder,
    read_card,
)
from specialized_heads.exchange.import_model import read_model
from specialized_heads.exchange.reading import CONFIG
from specialized_heads.experiment.sections import Decoding, Heads
from specialized_heads.experiment.stages import FUNCTION_KEYS
from specialized_heads.model.checkpoint import save
from specialized_heads.parsing.parse import read_trees
from specialized_heads.parsing.words import Word, write_parses
from specialized_heads.processors import processors
from specialized_heads.tables import read_table, write_table

VIEWED = 20  # sentences in the viewer
FEW = 100  # with fewer sentences, labels of heads are uncertain
WORD = re.compile(r"\S+")
SHOWN = ["layer", "head", "confidence", "relevance", "positional_offset", "positional_share"]
SHOWN += ["rarest", "labels"]


def analyse(
    folder: Path,
    text: Path | None,
    output: Path,
    *,
    translations: Path | None = None,
    parser: str = "none",
    trees: Path | None = None,
    languages: tuple[str, str] = ("en", "en"),
    tags: tuple[str | None, str | None] = (None, None),
    device: str = "auto",
) -> Path:
    """Write `heads.parquet`, `heads.csv` and `viewer.html` to a folder.

    Args:
        folder: of the model, in any format that `import_model` reads.
        text: source sentences, one per line; None: those of the trees.
        output: a new folder, or that of an earlier analysis; it keeps what the stages made.
        translations: of the text, line by line; None: the model translates.
        parser: none, stanza or conllu, which needs `trees`.
    """
    if (parser == "conllu") != bool(trees):
        raise stage.UserError(
            "--trees FILE and --parser conllu need each other; give both or neither"
        )
    if not (text := text or trees):
        raise stage.UserError(
            "--text: missing; name a file of sentences, or trees with --parser conllu --trees FILE"
        )
    if not folder.is_dir():
        raise stage.UserError(
            f"{folder}: there is no such folder; name that of an exported or imported model"
        )
    make_folder(output)
    special = output / "tokens.json"  # written first: it marks the folder of an analysis
    if (others := sorted(output.iterdir())) and not special.is_file():
        raise stage.UserError(
            f"{output}: holds other files ({others[0].name}), which the analysis might overwrite; "
            "name a new folder"
        )
    given = (tree.text for tree in read_trees(text)) if text == trees else plain_lines(text)
    sources = _sentences(text, given)
    targets = _sentences(translations, plain_lines(translations)) if translations else []
    if translations and len(targets) != len(sources):
        said = f"{len(targets)} lines for {len(sources)} of {text}; give one per sentence"
        raise stage.UserError(f"{translations}: {said}")

    model, tokenisers = read_model(folder, source_tag=tags[0], target_tag=tags[1])
    mode = tokenisers.preprocess
    stage.write_json(special, asdict(tokenisers.tokens))
    save(model, output / WEIGHTS, training={"imported": folder.name})
    (output / SOURCE).write_bytes(tokenisers.source)
    (output / TARGET).write_bytes(tokenisers.target)
    long = _too_long(text, sources, output / SOURCE, language=languages[0], mode=mode)
    if translations:
        long |= _too_long(translations, targets, output / TARGET, language=languages[1], mode=mode)
    if long:
        said = "%s: skips %d of %d lines, which have more than %d subwords; the first is line %d"
        stage.log.warning(said, text, len(long), len(sources), LONGEST, min(long))
    sources, targets = (
        [line for number, line in enumerate(lines, start=1) if number not in long]
        for lines in (sources, targets)
    )
    if not sources:
        raise stage.UserError(
            f"{text}: every line has more than {LONGEST} subwords; give one sentence per line"
        )
    if len(sources) < FEW:
        said = "%s: the labels of heads are uncertain, because they come from %d sentences; give "
        stage.log.warning(f"{said}at least %d", text, len(sources), FEW)

    pairs, tokens, parses = (
        output / name for name in ("text.parquet", "tokens.safetensors", "parses.parquet")
    )

    def encode(targets: list[str]) -> None:
        columns = {"source": sources, "target": targets, "document": [""] * len(sources)}
        write_table(pairs, pa.table(columns))
        settings = {"preprocess": mode, "source_language": languages[0]}
        settings |= {"target_language": languages[1]}
        models = {"source_model": output / SOURCE, "target_model": output / TARGET}
        _run("corpus.tokens", settings, **models, text=pairs, special=special, output=tokens)

    if not translations:
        encode([""] * len(sources))
        settings = {"decoding": Decoding().model_dump(), "preprocess": mode}
        settings |= {"language": languages[1], "device": device}
        made = {"output": output / "translation.txt"}
        made |= {"tokenised": output / "translation.tokenised.txt"}
        files = {"model": output / WEIGHTS, "tokens": tokens, "bpe": output / TARGET} | made
        _run("model.decoding", settings, threads=processors(), **files)
        targets = read_lines(made["output"], references=sources)
    encode(targets)
    if parser == "none":
        write_parses(parses, [_words(line) for line in sources])
    else:
        settings = {"engine": parser, "language": languages[0]}
        settings |= {"path": str(trees) if trees else None}
        files = {"resource": trees} if trees else {}
        files |= {"text": pairs, "output": parses, "report": output / "parses.json"}
        _run("parsing.parse", settings, **files)
    default, relevance = Heads(), output / "relevance.parquet"
    settings = {"rules": default.relevance_rules[:1], "seed": 1, "device": device}
    settings |= {"predictions": default.relevance_predictions}
    files = {"model": output / WEIGHTS, "dev": tokens}
    files |= {"output": relevance, "report": output / "relevance.json"}
    _run("heads.relevance", settings, **files)
    table, job = output / "heads.parquet", {"preprocess": mode, "language": languages[0]}
    job |= {"seed": 1, "device": device}
    inputs = {"model": output / WEIGHTS, "text": pairs, "analysis": tokens, "parses": parses}
    files = {"bpe": output / SOURCE, "train": tokens, "relevance": relevance}
    files |= {
        "output": table,
        "examples": output / "examples.json",
        "report": output / "heads.json",
    }
    functions = {"heads": default.model_dump(include=FUNCTION_KEYS)}
    _run("heads.analyse", job | functions, **inputs, **files)
    read_table(table).to_pandas().to_csv(output / "heads.csv", index=False)
    exported = (folder / DESCRIPTION).is_file() and not (folder / CONFIG).exists()
    name = read_card(folder).model if exported else "imported model"
    title = f"{folder.resolve().name}, {len(sources)} sentences"
    viewed = {"sentences": VIEWED, "title": title, "model": name, "alone": True}
    files = {"source_bpe": output / SOURCE, "target_bpe": output / TARGET, "heads": table}
    _run("viewer", job | viewed, **inputs, **files, output=output / "viewer.html")
    return table


def summary(table: Path) -> str:
    """The encoder heads with a function, and the most confident of the others, as lines of text."""
    heads = read_table(table).to_pandas()
    encoder = heads[heads["type"] == "encoder"].assign(
        labels=lambda rows: rows["functions"].map(", ".join)
    )
    most = max(10, (encoder["labels"] != "").sum())
    shown = encoder.sort_values(["labels", "confidence"], ascending=False).head(most)
    return shown[SHOWN].to_string(index=False, float_format="{:.2f}".format)


def _sentences(path: Path, texts: Iterable[str]) -> list[str]:
    """The sentences of a file, normalised as in the clean stage."""
    sentences = [normalise(text)[0] for text in texts]
    if "" in sentences:
        said = f"sentence {sentences.index('') + 1} is empty; remove it, and its translation"
        raise stage.UserError(f"{path}: {said}")
    if not sentences:
        raise stage.UserError(f"{path}: has no sentences")
    return sentences


def _too_long(path: Path, lines: list[str], model: Path, *, language: str, mode: Mode) -> set[int]:
    """The lines of a file, from 1, with more than `LONGEST` subwords; a line without any is a
    `UserError`."""
    rows = encode_ids(apply(lines, language=language, mode=mode), load_bpe(model))
    if [] in rows:
        said = f"line {rows.index([]) + 1} is empty for the model; remove it, and its translation"
        raise stage.UserError(f"{path}: {said}")
    return {number for number, row in enumerate(rows, start=1) if len(row) > LONGEST}


def _words(line: str) -> list[Word]:
    """The words of a sentence as a flat tree under the first."""
    return [
        Word(match[0], *match.span(), int(number > 0), "dep" if number else "root", "X")
        for number, match in enumerate(WORD.finditer(line))
    ]


def _run(module: str, settings: dict[str, Any], *, threads: int = 1, **files: Path) -> None:
    """Run a stage, as Snakemake does; its last line of error becomes a `UserError`.

    On a terminal the stage itself shows its progress, warnings and error; elsewhere its warnings
    are repeated.
    """
    print(f"{module} ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", f"specialized_heads.{module}"]
    for name, path in files.items():
        command += [f"--{name.replace('_', '-')}", str(path)]
    command += ["--settings", json.dumps(settings)]
    shown, environment = sys.stderr.isatty(), os.environ | {"OMP_NUM_THREADS": str(threads)}
    stderr = None if shown else subprocess.PIPE
    done = subprocess.run(command, stderr=stderr, env=environment, text=True, check=False)
    if done.returncode and shown:
        raise stage.UserError(f"{module} failed; its error is the line above")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise stage.UserError(f"{module}: {last.removeprefix('error: ')}")
    for warning in [] if shown else stage.WARNING.findall(done.stderr):
        print(f"{module}: warning: {warning}", file=sys.stderr, flush=True)
