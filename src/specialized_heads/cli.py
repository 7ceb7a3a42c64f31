"""The command `specialized-heads`: use exported models, and exchange models with other projects.

`translate` translates lines as they arrive on standard input: it takes all complete lines that are
available, at most `--batch` at a time, so it suits both a pipe of a million lines and a person at a
terminal. It writes one line per input line, in order.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from specialized_heads import __version__
from specialized_heads.languages import known
from specialized_heads.processors import processors
from specialized_heads.stage import NO_MPS, UserError, disk_errors, one_line, report

LONGEST_LINE = 1_000_000  # bytes; bounds the memory for a line without end
CHUNK = 1 << 16
DEVICES = ("auto", "cpu", "cuda")
EXPORTED = "folder of an exported model or of a given baseline"
QUANTIZATIONS = ("float32", "int8", "int16", "float16", "bfloat16")


def main() -> None:
    """Run the command line; a `UserError` prints one line to stderr and exits with code 2."""
    parser = argparse.ArgumentParser(
        prog="specialized-heads", description="Use and exchange translation models."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, run: Callable[[argparse.Namespace], None], *, help: str
    ) -> Callable[..., object]:
        """Define a command; returns what defines its arguments."""
        defined = commands.add_parser(name, help=help)
        defined.set_defaults(run=run)
        return defined.add_argument

    model, folder = {"type": Path, "metavar": "MODEL"}, {"type": Path, "metavar": "FOLDER"}
    device = {"type": _device, "choices": DEVICES, "default": "auto"}

    argument = command("translate", _translate, help="translate standard input, line by line")
    argument("model", help=EXPORTED, **model)
    said = "hypotheses per sentence (default: as in the experiment)"
    argument("--beam", type=_positive, help=said)
    argument("--device", help="auto: a GPU if there is one", **device)
    said = "maximum number of lines to translate at once (default: 100)"
    argument("--batch", type=_positive, default=100, help=said)

    argument = command("describe", _describe, help="show the heads, size and scores of a model")
    argument("model", help=EXPORTED, **model)

    said = "write a model for CTranslate2 or Hugging Face transformers"
    argument = command("export", _export, help=said)
    argument("model", help=EXPORTED, **model)
    argument("output", help="folder to write", **folder)
    argument("--to", choices=("ctranslate2", "hf"), required=True, help="hf: transformers")
    types = {"choices": QUANTIZATIONS, "default": "float32"}
    argument("--quantization", help="type of CTranslate2's weights", **types)

    said = "write the table of heads and the attention viewer for a text"
    argument = command("analyse", _analyse, help=said)
    argument("model", help="folder of an exported, published or given model", **model)
    argument("--text", type=Path, help="source sentences, one per line (default: those of --trees)")
    said = "line by line (default: the model translates the text)"
    argument("--translations", type=Path, help=said)
    argument("--output", required=True, help="where to write the results", **folder)
    parsers = {"choices": ("none", "stanza", "conllu"), "default": "none"}
    argument("--parser", help="for the source side", **parsers)
    argument("--trees", type=Path, metavar="FILE", help="CoNLL-U file, for --parser conllu")
    sides = {"nargs": 2, "metavar": ("SOURCE", "TARGET")}
    argument("--languages", default=("en", "en"), help="language codes", **sides)
    said = "language tags, such as eng_Latn deu_Latn; of Marian models the source's alone, such as "
    argument("--tags", default=[], help=f"{said}'>>fra<<'", **(sides | {"nargs": "+"}))
    argument("--device", **device)

    said = "convert pickled weights to safetensors; executes nothing in them"
    argument = command("convert", _convert, help=said)
    argument("model", help="folder with weights that PyTorch saved (pytorch_model.bin)", **folder)

    said = "judge the claims of both papers over several experiments"
    argument = command("claims", _claims, help=said)
    tables = {"type": Path, "nargs": "+", "metavar": "DATA"}
    argument("data", help="folders of tables, such as results/default/data", **tables)
    argument("--notes", type=Path, metavar="FILE", help="CSV with the columns claim and note")
    written = {"type": Path, "default": Path("evidence"), "metavar": "NAME"}
    argument("--output", help="writes NAME.md and NAME.csv", **written)

    args = parser.parse_args()
    # Otherwise torch would take all processors of the machine.
    os.environ.setdefault("OMP_NUM_THREADS", str(processors()))
    try:
        if sys.stdout is None:
            raise UserError("standard output is closed; connect it to a file, a pipe or a terminal")
        with disk_errors(Path("standard output")):
            args.run(args)
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of the output has gone
        _drop_output()
        sys.exit(141)
    except Exception as error:
        code = report(error)
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError:  # the disk is full
            _drop_output()
        sys.exit(code)


def _drop_output() -> None:
    """Discard the rest of the output, which Python would try to write at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _positive(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def _device(text: str) -> str:
    if text == "mps":
        raise argparse.ArgumentTypeError(NO_MPS)
    return text


def _translate(args: argparse.Namespace) -> None:
    # torch takes seconds, which --help should not
    from specialized_heads.exchange.export import load_exported

    if sys.stdin is None:
        raise UserError("standard input is closed; supply text, one sentence per line")
    translator = load_exported(args.model, device=args.device, beam=args.beam)
    number = 0
    for lines in arriving_lines(sys.stdin.fileno(), most=args.batch):
        texts, problem = [], None
        for line in lines:
            number += 1
            try:
                texts.append(line.decode("utf-8"))
            except UnicodeDecodeError as error:
                where = f"{error.reason} at byte {error.start + 1}"
                problem = f"standard input: line {number} is not UTF-8 ({where})"
                break
        sys.stdout.buffer.write("".join(f"{line}\n" for line in translator(texts)).encode("utf-8"))
        sys.stdout.buffer.flush()
        if problem:
            raise UserError(f"{problem}; the {number - 1} lines before it have been translated")


def arriving_lines(descriptor: int, *, most: int) -> Iterator[list[bytes]]:
    """Groups of at most `most` complete lines, without line ends, that can be read without waiting.

    At the end comes the last line if it is unterminated. A line longer than `LONGEST_LINE` is a
    `UserError`.
    """
    rest, number = b"", 0
    while chunk := os.read(descriptor, CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        for start in range(0, len(lines), most):
            yield [line.removesuffix(b"\r") for line in lines[start : start + most]]
        number += len(lines)
        if len(rest) > LONGEST_LINE:
            said = f"has over {LONGEST_LINE:,} bytes; give one sentence per line"
            raise UserError(f"standard input: line {number + 1} {said}")
    if rest:
        yield [rest.removesuffix(b"\r")]


def _describe(args: argparse.Namespace) -> None:
    from specialized_heads.exchange.folder import read_card
    from specialized_heads.model.architecture import KINDS

    card = read_card(args.model)
    scores, origin = "given baseline: no scores", card.corpus
    if card.scores:
        s = card.scores
        scores = (
            f"BLEU {s.bleu:.1f} [{s.bleu_low:.1f}, {s.bleu_high:.1f}] on {s.sentences:,} "
            f"sentences ({s.signature})"
        )
        origin = f"{card.corpus} in experiment {card.experiment}"
    for line in (
        f"{card.model}, seed {card.seed}, of {origin}",
        f"{card.source_language} to {card.target_language}, preprocessing: {card.preprocess}, beam "
        f"{card.decoding.beam}",
        scores,
        f"{card.parameters:,} parameters, {card.bytes / 1e6:.1f} MB, written by version "
        f"{card.version}",
    ):
        print(one_line(line))
    heads = {kind: [len(layer) for layer in getattr(card.architecture, kind)] for kind in KINDS}
    layers = max(map(len, heads.values()))
    rows = {"heads": [*(f"layer {number + 1}" for number in range(layers)), "total"]}
    for kind, counts in heads.items():
        rows[kind] = [*counts, *[""] * (layers - len(counts)), sum(counts)]
    for name, cells in rows.items():
        print(name.ljust(10) + "".join(str(cell).rjust(9) for cell in cells))


def _export(args: argparse.Namespace) -> None:
    from specialized_heads.exchange.export_to import export_to

    with disk_errors(args.output):
        path = export_to(args.model, args.output, to=args.to, quantization=args.quantization)
    print(path)


def _analyse(args: argparse.Namespace) -> None:
    from specialized_heads.exchange.analyse import analyse, summary

    if len(args.tags) > 2:
        remedy = "give that of the source and, if there is one, of the target"
        raise UserError(f"--tags: {len(args.tags)} tags; {remedy}")
    try:
        args.languages = [known(code) for code in args.languages]
    except ValueError as error:
        raise UserError(f"--languages: {error}") from None
    names = ("translations", "parser", "trees", "languages", "device")
    options = {name: getattr(args, name) for name in names}
    options["tags"] = (*args.tags, None, None)[:2]
    with disk_errors(args.output):
        table = analyse(args.model, args.text, args.output, **options)
    print(summary(table))
    print(f"all heads: {table.with_suffix('.csv')}; attention maps: {args.output / 'viewer.html'}")


def _claims(args: argparse.Namespace) -> None:
    from specialized_heads.report.claims.across import write

    print(write(args.data, output=args.output, notes=args.notes))


def _convert(args: argparse.Namespace) -> None:
    from specialized_heads.exchange.reading import convert

    with disk_errors(args.model):
        path = convert(args.model)
    print(path)


if __name__ == "__main__":
    main()
