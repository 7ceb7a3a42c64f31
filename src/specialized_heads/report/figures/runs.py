"""What was run: the models of an experiment with their scores and training curves, the text of each
corpus, and the software, machine and code behind the results."""

import math
import os
import platform
import re
import subprocess
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import specialized_heads
from specialized_heads.evaluation import LEAST_ROUND_TRIP
from specialized_heads.experiment.names import MIN_DECIDED
from specialized_heads.model.devices import PROCESSOR, idle_gpus
from specialized_heads.processors import processors
from specialized_heads.report import style, sweep
from specialized_heads.report.data import TOTALS, Tables, with_ends
from specialized_heads.stage import code_hash, read_json

SCORES_CAPTION = (
    "All models. Target: λ per head, number of heads, or the updates of the baseline's training "
    "after which the checkpoint was kept; heads left in encoder self-attention, decoder "
    "self-attention and cross-attention; gates that end closed or fully open with probability "
    f"above 0.9 (with less than {MIN_DECIDED:.0%}, the choice of heads is a rounding; by order: "
    "too many or too few gates were open when a number of heads was chosen, so that the order of "
    "log α alone chose them); BLEU with 95% bootstrap interval, and chrF, of the test set; loss "
    "on the development set in nats per target token, if training has a log; updates of "
    "training, or of fine-tuning if the baseline was pruned; parameters with and without the "
    "embeddings of source, target and softmax."
)
KEYS = ["kind", "scope", "criterion", "lam", "target_heads", "update", "seed"]
SIGNATURES = {
    "BLEU": "signature",
    "BLEU of Moses tokens (tok. in table 2)": "signature_tokenised",
    "chrF": "signature_chrf",
}
SCORES = ["updates", *with_ends("bleu"), "chrf", *SIGNATURES.values(), "sentences"]
DECODING = ["beam", "max_length_ratio"]
SCORES_COLUMNS = ["corpus", *KEYS, *TOTALS, "gates_decided", "parameters"]
SCORES_COLUMNS += ["parameters_without_embeddings", "dev_loss", *SCORES]
ACROSS, HEIGHT = 3, 1.7  # panels beside each other; inches of a panel
MOST = 8  # entries of a panel's legend; of more models that many are named, evenly spaced
CURVES_COLUMNS = ["corpus", "kind", "scope", "criterion", "lam", "target_heads", "seed", "update"]
CURVES_COLUMNS += ["loss", "dev_loss"]
TITLES = {
    "pruned": "pruned",
    "scratch": "from scratch",
    "continued": "from scratch, second decay",
    "count": "as many heads, from scratch",
    "continued_count": "as many heads, second decay",
    "regularised": "with gates, from scratch",
    "continued_regularised": "with gates at first, second decay",
    "finetuned": "cut by a criterion, fine-tuned",
}
DEVELOPMENT = {"markersize": 2.5, "linestyle": "none"}
THIN = {"linewidth": 0.9}
DATA_CARD_CAPTION = (
    "Data card: source, licence and size of each corpus, and the pairs removed by reading, "
    "cleaning and splitting, each counted under the first reason that applied. The pairs read "
    "include pages and blocks that yielded no pairs. Lengths are in words separated by white "
    "space. No group is divided between sets: it is a document or, in text without documents, "
    "the pairs that share a sentence."
)
SPLITS = ("train", "dev", "test", "analysis")
DETAILS = ("sha256", "address", "characters")  # too long, or too many, for the table
Value = str | int | float
ENVIRONMENT_CAPTION = (
    "Software, machine and code of the job that wrote this table, after all "
    "others. It differs from machine to machine."
)
PACKAGES = (
    "torch", "numpy", "pandas", "pyarrow", "matplotlib", "safetensors", "sentencepiece",
    "sacremoses", "sacrebleu", "pydantic", "snakemake",
)  # fmt: skip
ROOT = Path(specialized_heads.__file__).parents[2]
CODE = ("Snakefile", "src", "workflow")  # below the root; an edit of these can change results


def scores_numbers(tables: Tables) -> pd.DataFrame:
    """One row per model; dev_loss: at the end of its training, in nats per target token, missing
    without a log."""
    models = tables.translation().reset_index(drop=True)
    # Beside tasks of a classifier, which lack these, they have become real numbers.
    return models.astype({"parameters_without_embeddings": "Int64", "beam": "Int64"})


def scores_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Table of models: one row per model and seed of the experiment, with its heads, size, training
    and scores.

    Parameters are given with and without the three embedding matrices (source, target, softmax),
    which pruning of heads leaves as they are. Notes below the table give the signatures of the
    scores, each once, and how each corpus was translated.
    """
    lines = []
    for row in rows.to_dict("records"):
        target = "" if row["kind"] == "baseline" else sweep.target(row["lam"], row["target_heads"])
        line = {
            "corpus": row["corpus"],
            "model": ", ".join(filter(None, [row["kind"], row["criterion"]])),
            "scope": row["scope"],
            "target": f"update {row['update']:.0f}" if row["kind"] == "checkpoint" else target,
            "seed": str(row["seed"]),
            "enc/dec/cross": sweep.by_type_text(row),
            "gates decided": _decided(row),
            "BLEU": sweep.interval_text(row, "bleu"),
            "chrF": f"{row['chrf']:.1f}",
            "dev loss": sweep.value_text(row["dev_loss"], digits=3),
            "updates": f"{row['updates']:,}",
            "parameters": f"{row['parameters']:,}",
            "without embeddings": f"{row['parameters_without_embeddings']:,}",
        }
        lines.append(line)
    return sweep.without_constant(pd.DataFrame(lines), "seed")


def _decided(row: dict) -> str:
    if row["lam"] == 0 or pd.isna(row["gates_decided"]):
        return ""
    return f"{row['gates_decided']:.0%}" + ", by order" * (row.get("gates_by_order") == 1)


def scores_notes(rows: pd.DataFrame) -> list[str]:
    """The signatures of the scores, with their corpora where they differ; then how each corpus was
    translated."""
    lines = []
    for name, column in SIGNATURES.items():
        signed = rows.groupby(column, sort=False)["corpus"].unique()
        for signature, titles in signed.items():
            of = f" of {', '.join(titles)}" if len(signed) > 1 else ""
            lines.append(f"{name}{of}: {signature}")
    if "bleu_round_trip" in rows:
        for title, most in (
            rows.groupby("corpus", sort=False)["bleu_round_trip"].first().dropna().items()
        ):
            low = (
                "; BLEU is too low by about as much, so compare tok. in table 2"
                if most < LEAST_ROUND_TRIP
                else ""
            )
            lines.append(
                f"References of {title}, made lower-case Moses tokens and text again: BLEU "
                f"{most:.2f}{low}."
            )
    for (beam, longest), same in rows.groupby(DECODING, sort=False):
        sizes = same.groupby("corpus", sort=False)["sentences"].first()
        sets = ", ".join(f"{title} ({size:,} test sentences)" for title, size in sizes.items())
        lines.append(
            f"Translation of {sets}: beam search with {beam} hypotheses, ranked by log P / length; "
            f"at most "
            f"{longest:g} times the source's subwords, plus 10."
        )
    return lines


def curves_numbers(tables: Tables) -> pd.DataFrame:
    """One row per record of each model's log; loss: of training, mean since the record before;
    unit: what it is per."""
    tasks = set(tables.tasks()["corpus"])
    units = ["sentence" if corpus in tasks else "token" for corpus in tables.logs["corpus"]]
    return (
        tables.logs.reindex(columns=CURVES_COLUMNS).assign(unit=units).astype({"dev_loss": float})
    )


def curves_draw(curves: pd.DataFrame) -> Figure:
    """Training curves: loss against updates, for each model of the experiment that was trained.

    One panel per corpus, kind of model and scope of pruning. Colours, dashes and markers are the λ
    or the number of heads or, where a criterion chose the heads, the criterion at all numbers of
    heads. Lines are the training loss, points the loss on the development set. The two differ in
    more than the data: the training loss includes label smoothing, dropout and random gates, the
    development loss does not. Points are moved aside a little so that all of them show.
    """
    groups = list(curves.groupby(["corpus", "kind", "scope"], sort=False))
    drawn, grid, panels = style.panels(len(groups), across=ACROSS, height=HEIGHT, more_height=0.4)
    inches = style.DOUBLE / grid.shape[1] - 0.4
    colour = {"color": style.PAPER_COLOUR}
    handles = [
        Line2D([], [], label="training", **colour, **THIN),
        Line2D([], [], label="development set", marker="o", **colour, **DEVELOPMENT),
    ]
    if (curves["kind"] != "baseline").any():
        text = "baseline's last on the development set"
        handles.append(Line2D([], [], label=text, **style.REFERENCE))
    for axes, ((corpus, kind, scope), same) in zip(panels, groups, strict=True):
        if kind != "baseline":
            base = curves[(curves["corpus"] == corpus) & (curves["kind"] == "baseline")].dropna(
                subset="dev_loss"
            )
            for loss in base.groupby("seed")["dev_loss"].last():
                axes.axhline(loss, **style.REFERENCE)
        _panel(axes, same)
        what = f"{TITLES[kind]} ({scope})" if scope else kind
        seeds = list(map(str, same["seed"].unique()))
        title = f"{corpus}, seed{'s' * (len(seeds) > 1)} {', '.join(seeds)}"
        axes.set_title(f"{style.wrap(title, inches=inches)}\n{style.wrap(what, inches=inches)}")
        axes.set_xlim(0, 1.08 * same["update"].max())
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.grid(axis="y")
    for axes in grid[:, 0]:
        axes.set_ylabel(f"loss, nats per {' or '.join(curves['unit'].unique())}")
    style.label_lowest(grid, "update")
    style.legend(drawn, handles, ncols=3)
    return drawn


def _panel(axes: Axes, curves: pd.DataFrame) -> None:
    """The models of one panel; the seeds of a model are lines of the same colour."""
    key, looks = [], list(_looks(curves))
    end = curves["update"].max()
    for place, (label, look, same) in enumerate(looks):
        for _, curve in same.groupby(["target_heads", "seed"], dropna=False):
            # A line of one point would be invisible.
            line = {
                "color": look.colour,
                "linestyle": look.line,
                "marker": "." if len(curve) == 1 else None,
            }
            axes.plot(curve["update"], curve["loss"], **line, **THIN)
            held_out = curve.dropna(subset="dev_loss")
            aside = end * style.dodge(place, len(looks))
            marker = {"color": look.colour, "marker": look.marker}
            axes.plot(held_out["update"] + aside, held_out["dev_loss"], **marker, **DEVELOPMENT)
        if label:
            key.append(style.key(look, label, markersize=2.5, **THIN))
    if key:
        axes.margins(y=0.15 + 0.15 * math.ceil(len(key) / 2))  # room for the rows of the legend
        axes.set_ylim(axes.dataLim.y0 - 0.05 * axes.dataLim.height, None)
        axes.legend(
            handles=key,
            loc="upper center",
            ncols=2,
            fontsize=5.5,
            handlelength=1.8,
            columnspacing=0.8,
        )


def _looks(curves: pd.DataFrame) -> Iterator[tuple[str, style.Series, pd.DataFrame]]:
    """The curves of a panel by their look: the label in the legend ("": none), the look, and the
    curves."""
    if curves["criterion"].iloc[0]:
        for name, same in style.by(curves, "criterion").items():
            yield name, style.CRITERIA[name], same
        return
    ordered = sweep.in_order(curves, sweep.WEAKEST_FIRST)
    targets = list(ordered.groupby(["lam", "target_heads"], dropna=False, sort=False))
    named = style.evenly(len(targets), most=MOST)
    for place, ((lam, asked), same) in enumerate(targets):
        label = sweep.target(lam, asked) if place in named and same["scope"].iloc[0] else ""
        yield label, style.ordered(place, len(targets)), same


def quantities(
    card: dict[str, Any], counts: dict[str, Any], parses: dict[str, Any]
) -> Iterator[tuple[str, str, Value]]:
    """Step, quantity and value of everything that raw stage, split stage and parser say of one
    corpus."""
    yield "source", "kind", card["kind"]
    yield "source", "licence", card["licence"]
    for number, file in enumerate(card["files"], start=1):
        yield "source", f"file {number}", file["file"]
        yield "source", f"file {number} bytes", file["bytes"]
        yield "source", f"file {number} sha256", file["sha256"]
        yield "source", f"file {number} address", file.get("url", "")
    for number, package in enumerate(card.get("made_from", []), start=1):
        yield "source", f"package {number}", f"{package['package']} {package['version']}"
    for step, total in (("reading", "read"), ("cleaning", "raw"), ("splitting", "clean")):
        yield step, "pairs", counts[total]
        for reason, pairs in counts[f"dropped_in_{step}"].items():
            yield step, f"dropped: {reason.replace('_', ' ')}", pairs
        if step == "cleaning":
            for change, pairs in counts["changed_in_cleaning"].items():
                yield step, f"changed: {change.replace('_', ' ')}", pairs
    for split in SPLITS:
        sizes = counts["splits"][split]
        yield split, "pairs", sizes["pairs"]
        yield split, "groups", sizes["groups"]
        for side in ("source", "target"):
            yield split, f"{side} words", sizes[f"{side}_words"]
            yield split, f"{side} characters", sizes[f"{side}_characters"]
            for statistic, length in sizes[f"{side}_length"].items():
                yield split, f"{side} length, {statistic}", length
    yield "analysis", "sentences with a tree", parses["sentences_parsed"]


def data_card_numbers(
    tables: Tables, cards: dict[str, Path], counts: dict[str, Path], parses: dict[str, Path]
) -> pd.DataFrame:
    """One row per corpus and quantity: corpus, part, quantity, value (text, pairs, words,
    characters or a length in words)."""
    rows = [
        (title, *row)
        for title in cards
        for row in quantities(*(read_json(files[title]) for files in (cards, counts, parses)))
    ]
    return pd.DataFrame(rows, columns=["corpus", "part", "quantity", "value"], dtype=object)


def data_card_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The data card: where the text of each corpus comes from, what each step removed and why, and
    what is left.

    The CSV has one row per corpus and quantity. The table has one row per quantity and one column
    per corpus; it omits the `DETAILS` and reasons that removed nothing.
    """
    corpora = list(rows["corpus"].unique())
    # What only later corpora have follows what the first one has of the same part.
    parts = list(rows["part"].unique())
    lines = []
    groups = rows.groupby(["part", "quantity"], sort=False)
    for (part, quantity), same in sorted(groups, key=lambda item: parts.index(item[0][0])):
        known = dict(zip(same["corpus"], same["value"], strict=True))
        idle = quantity.startswith(("dropped", "changed")) and not any(known.values())
        if not idle and not quantity.endswith(DETAILS):
            lines.append([part, quantity, *(_text(known.get(corpus, "–")) for corpus in corpora)])
    return pd.DataFrame(lines, columns=["part", "quantity", *corpora], dtype=object)


def _text(value: Value) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.1f}"


def git(*arguments: str) -> str:
    """The output of git in the project's folder; "" where it fails or is not installed."""
    command = ["git", "-C", str(ROOT), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def commit() -> str:
    """The git commit, and whether files that can change results differ from it."""
    # A copy of the project inside another repository is not a checkout of that repository.
    if not git("ls-files", "--error-unmatch", "src/specialized_heads/__init__.py"):
        return "not a git checkout"
    changed = len(git("status", "--porcelain", "--untracked-files=all", "--", *CODE).splitlines())
    since = f"{changed} file{'s' * (changed > 1)} changed" if changed else "unchanged"
    return f"{git('rev-parse', 'HEAD')}, {since}"


def environment_numbers(tables: Tables, *, engines: list[str], device: str) -> pd.DataFrame:
    """One row per fact, with the packages of these engines of dependency parsing."""
    parsers = ["stanza"] if "stanza" in engines else []
    usable = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    gpus = ", ".join(map(torch.cuda.get_device_name, usable)) or idle_gpus()
    # Linux alone has it.
    described = PROCESSOR.read_text(encoding="utf-8") if PROCESSOR.is_file() else ""
    names = re.findall(r"model name\s*: (.+)", described)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    # rules can have environments of their own
    installed = {found.name: found.version for found in distributions()}
    rows = [("software", "Python", platform.python_version())]
    rows += [
        ("software", name, installed.get(name, "not in this environment"))
        for name in (*PACKAGES, *parsers)
    ]
    rows += [
        ("software", "CUDA of torch", torch.version.cuda or "none"),
        ("machine", "system", platform.platform()),
        ("machine", "processor", names[0] if names else platform.machine()),
        ("machine", "instructions that torch uses", torch.backends.cpu.get_cpu_capability()),
        ("machine", "processors of this job", str(processors())),
        ("machine", "processors of the machine", str(os.cpu_count())),
        ("machine", "memory", f"{memory / 1e9:.1f} GB"),
        ("machine", "GPU", gpus or "none visible to this job"),
        ("machine", "configured device", device),
        ("code", "version", specialized_heads.__version__),
        ("code", "git commit", commit()),
        ("code", "SHA-256 of the source files", code_hash(".")),
    ]
    return pd.DataFrame(rows, columns=["part", "name", "value"])


def environment_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Table of the environment: versions, processor, GPUs and state of the code, of the job that
    writes it.

    It describes the software and hardware behind the results, provided that all jobs ran on the
    same kind of machine. The code is identified by its version, a hash of its source files and, in
    a git checkout, the commit.
    """
    return rows
