"""Write quality.md."""

from pathlib import Path
from statistics import median

from benchmarks.engine.report import spread, table, wrapped
from benchmarks.quality.systems import SYSTEMS
from benchmarks.quality.trainings import BLEU, LOSS, Result, updates_until


def report(
    output: Path,
    about: list[str],
    trainings: dict[str, list[list[Result]]],
    seconds: dict[str, list[float]],
    facts: dict[str, str],
) -> None:
    """Write the tables.

    Args:
        output: path without suffix.
        about: paragraphs on how the results were made.
        trainings: for each system, one list of results per seed, shortest schedule first.
        seconds: for each system, seconds per update, one value per round.
        facts: about the machine and the run.
    """
    rows, points = [], []
    for name, by_seed in trainings.items():
        pace = median(seconds[name]) / 60  # minutes per update
        cells = [
            SYSTEMS[name].title,
            f"{by_seed[0][0].learning_rate:g}",
            spread(seconds[name], "{:.3f}"),
        ]
        for quantity, goal in (("dev_loss", LOSS), ("bleu", BLEU)):
            lengths = [updates_until(results, quantity, goal) for results in by_seed]
            known = [length * pace for length in lengths if length is not None]
            longest = max(results[-1].updates for results in by_seed)
            missed = f"not in {longest * pace:.1f}"
            cells.append(spread(known, "{:.1f}") if len(known) == len(lengths) else missed)
        rows.append(cells)
        for results in by_seed:
            for result in results:
                reached = (
                    f"{result.updates * pace:.1f}",
                    f"{result.dev_loss:.3f}",
                    f"{result.bleu:.1f}",
                )
                points.append([SYSTEMS[name].title, result.seed, result.updates, *reached])
    header = (
        "system",
        "learning rate",
        "seconds per update",
        f"minutes to loss {LOSS}",
        f"minutes to {BLEU:g} BLEU",
    )
    sections = [
        "# Time to quality",
        "Made by `python -m benchmarks.quality CORPUS` (`benchmarks/quality/`). " + about[0],
        *about[1:],
        table(("", ""), [(f"**{key}**", value) for key, value in facts.items()]),
        "Medians of the seeds, or of the rounds, and their range. Lengths between two schedules "
        "are interpolated.",
        table(header, rows),
        "All training runs with the chosen rate:",
        table(("system", "seed", "updates", "minutes", "development loss", "BLEU"), points),
    ]
    output.with_suffix(".md").write_text(
        "\n\n".join(map(wrapped, sections)) + "\n", encoding="utf-8"
    )
