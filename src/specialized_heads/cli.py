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
from specialized_heads.stage import NO_MPS, UserError, disk_errors, one_line, processors

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

    argument = command(
        "translate", _translate, help="translate standard input, one sentence per line"
    )
    argument("model", type=Path, metavar="MODEL", help=EXPORTED)
    argument(
        "--beam", type=_positive, help="hypotheses per sentence (default: as in the experiment)"
    )
    argument(
        "--device",
        type=_device,
        choices=DEVICES,
        default="auto",
        help="auto: a GPU if there is one",
    )
    argument(
        "--batch",
        type=_positive,
        default=100,
        help="maximum number of lines to translate at once (default: 100)",
    )
    argument = command("describe", _describe, help="show the heads, size and scores of a model")
    argument("model", type=Path, metavar="MODEL", help=EXPORTED)
    argument = command(
        "export", _export, help="write a model for CTranslate2 or Hugging Face transformers"
    )
    argument("model", type=Path, metavar="MODEL", help=EXPORTED)
    argument("output", type=Path, metavar="FOLDER", help="folder to write")
    argument("--to", choices=("ctranslate2", "hf"), required=True, help="hf: transformers")
    argument(
        "--quantization",
        choices=QUANTIZATIONS,
        default="float32",
        help="type of CTranslate2's weights",
    )
    argument = command(
        "analyse", _analyse, help="write the table of heads and the attention viewer for a text"
    )
    argument(
        "model", type=Path, metavar="MODEL", help="folder of an exported, published or given model"
    )
    argument("--text", type=Path, help="source sentences, one per line (default: those of --trees)")
    argument(
        "--translations", type=Path, help="line by line (default: the model translates the text)"
    )
    argument(
        "--output", type=Path, required=True, metavar="FOLDER", help="where to write the results"
    )
    argument(
        "--parser", choices=("none", "stanza", "conllu"), default="none", help="for the source side"
    )
    argument("--trees", type=Path, metavar="FILE", help="CoNLL-U file, for --parser conllu")
    sides = {"nargs": 2, "metavar": ("SOURCE", "TARGET")}
    argument("--languages", default=("en", "en"), help="language codes", **sides)
    tags = (
        "language tags, such as eng_Latn deu_Latn; of Marian models the source's alone, such as "
        "'>>fra<<'"
    )
    argument("--tags", default=[], help=tags, **(sides | {"nargs": "+"}))
    argument("--device", type=_device, choices=DEVICES, default="auto")
    argument = command(
        "convert", _convert, help="convert pickled weights to safetensors; executes nothing in them"
    )
    argument("model", type=Path, metavar="FOLDER", help="folder with pytorch_model.bin")
    argument = command(
        "claims", _claims, help="judge the claims of both papers over several experiments"
    )
    argument(
        "data",
        type=Path,
        nargs="+",
        metavar="DATA",
        help="folders of tables, such as results/default/data",
    )
    argument("--notes", type=Path, metavar="FILE", help="CSV with the columns claim and note")
    argument(
        "--output",
        type=Path,
        default=Path("evidence"),
        metavar="NAME",
        help="writes NAME.md and NAME.csv",
    )
    args = parser.parse_args()
    # torch would take all processors of the machine
    os.environ.setdefault("OMP_NUM_THREADS", str(processors()))
    try:
        if sys.stdout is None:
            raise UserError("standard output is closed; connect it to a file, a pipe or a terminal")
        with disk_errors(Path("standard output")):
            args.run(args)
            sys.stdout.flush()
    except UserError as error:
        print(f"error: {one_line(error)}", file=sys.stderr)
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError:  # the disk is full
            _drop_output()
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of the output has gone
        _drop_output()
        sys.exit(141)


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
                problem = (
                    f"standard input: line {number} is not UTF-8 ({error.reason} at byte "
                    f"{error.start + 1})"
                )
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
            raise UserError(
                f"standard input: line {number + 1} has over {LONGEST_LINE:,} bytes; give one "
                f"sentence per line"
            )
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
    print(
        "heads".ljust(10)
        + "".join(f"layer {number}".rjust(9) for number in range(1, layers + 1))
        + "total".rjust(9)
    )
    for kind, counts in heads.items():
        cells = [*counts, *[""] * (layers - len(counts)), sum(counts)]
        print(kind.ljust(10) + "".join(str(cell).rjust(9) for cell in cells))


def _export(args: argparse.Namespace) -> None:
    from specialized_heads.exchange.export_to import export_to

    print(export_to(args.model, args.output, to=args.to, quantization=args.quantization))


def _analyse(args: argparse.Namespace) -> None:
    from specialized_heads.exchange.analyse import analyse, summary

    if len(args.tags) > 2:
        raise UserError(
            f"--tags: {len(args.tags)} tags; give that of the source and, if there is one, of the "
            f"target"
        )
    try:
        args.languages = [known(code) for code in args.languages]
    except ValueError as error:
        raise UserError(f"--languages: {error}") from None
    options = {
        name: getattr(args, name)
        for name in ("translations", "parser", "trees", "languages", "device")
    }
    table = analyse(
        args.model, args.text, args.output, tags=(*args.tags, None, None)[:2], **options
    )
    print(summary(table))
    print(f"all heads: {table.with_suffix('.csv')}; attention maps: {args.output / 'viewer.html'}")


def _claims(args: argparse.Namespace) -> None:
    from specialized_heads.report.claims.across import write

    print(write(args.data, output=args.output, notes=args.notes))


def _convert(args: argparse.Namespace) -> None:
    from specialized_heads.exchange.reading import convert

    print(convert(args.model))


if __name__ == "__main__":
    main()
