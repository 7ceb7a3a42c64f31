"""A corpus that is fetched: small releases in the layout of the real ones, in a folder that mirrors
the servers.

Addresses and names are those of `resources/datasets.csv`; hashes and sizes of the small releases
are put in their place there.
"""

from pathlib import Path

import pandas as pd
from packing import tarred, zipped

from specialized_heads.stage import file_hash

Pairs = list[tuple[str, str]]
SITE = [("The site ends well.", "Этот сайт кончается хорошо.")]
FOLDER = "my data's"  # spaces and quotes may stand in any path


def some(number: int, what: str) -> Pairs:
    """Sentences of their own for each number: what differs must be letters, since digits do not
    count for overlap."""
    letters = [(chr(97 + n) * 3, chr(0x430 + n) * 3) for n in range(number)]
    return [
        (f"The {a} {what} ends well.", f"Этот {b} {what} кончается хорошо.") for a, b in letters
    ]


def sides(stem: str, pairs: Pairs, *languages: str) -> dict[str, str]:
    columns = zip(*pairs, strict=True)
    return {
        f"{stem}.{name}": "".join(f"{x}\n" for x in column)
        for name, column in zip(languages, columns)
    }


def release(path: Path, files: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    (tarred if path.suffix == ".tgz" else zipped)(path, files)


def test_news_text_with_held_out_sets_of_its_own_becomes_a_corpus(project, tmp_path: Path) -> None:
    """The test set occurs in the training text, and the analysis sentences are of another pair."""
    crawl, development = some(12, "page"), some(3, "dev")
    test = [crawl[3], *some(1, "test")]
    french = [
        (english, f"Le débat {n} se termine bien.")
        for n, (english, _) in enumerate(some(10, "debate"))
    ]
    segments = {
        f"dev/newstest2014-ruen-{side}.{language}.sgm": f'<{side}set setid="newstest2014" '
        f'srclang="any">\n'
        f'<doc docid="paper.1" origlang="en">\n'
        + "".join(f'<seg id="{i}">{pair[n]}</seg>\n' for i, pair in enumerate(test, start=1))
        + f"</doc>\n</{side}set>\n"
        for side, language, n in (("src", "en", 0), ("ref", "ru", 1))
    }
    releases = tmp_path / "releases"
    wmt13, wmt19 = (
        releases / "www.statmt.org/wmt13",
        releases / "data.statmt.org/wmt19/translation-task",
    )
    release(
        wmt13 / "training-parallel-commoncrawl.tgz", sides("commoncrawl.ru-en", crawl, "en", "ru")
    )
    release(
        wmt13 / "training-parallel-europarl-v7.tgz",
        sides("training/europarl-v7.fr-en", french, "en", "fr"),
    )
    release(wmt19 / "dev.tgz", sides("dev/newstest2013", development, "en", "ru") | segments)
    # gets the sizes and hashes of the small releases
    table = project.root / "resources" / "datasets.csv"
    rows = pd.read_csv(table, dtype=str, keep_default_na=False)
    for place, url in rows["url"].items():
        file = releases / url.partition("//")[2]
        known = (str(file.stat().st_size), file_hash(file)) if file.is_file() else ("", "")
        rows.loc[place, ["bytes", "sha256"]] = known
    rows.to_csv(table, index=False)
    values = project.settings()
    source = {
        "kind": "wmt",
        "train": ["commoncrawl_en_ru", "yandex_1m_en_ru"],
        "analysis": ["europarl_v7_en_fr"],
    }
    source |= {"dev": ["newstest2013"], "test": ["newstest2014"]}
    values["corpora"] = {"mine": {"title": "Mine", "source": source, "target_language": "ru"}}
    mirrors = dict.fromkeys(("http://", "https://"), f"{releases.as_uri()}/")
    values |= {
        "parser": {"engine": "stanza"},
        "downloads": {"directory": FOLDER, "mirrors": mirrors},
    }
    workflow, counts = project.configured(values), "results/smoke/mine/corpus/counts.json"

    missing = workflow.run(counts)
    assert missing.status == 1
    assert "wmt/1mcorpus.zip" in missing.printed
    # Snakemake deletes what a job declares before it starts
    by_hand = project.root / FOLDER / "wmt/1mcorpus.zip"
    release(by_hand, sides("corpus.en_ru.1m", SITE, "en", "ru"))

    run = workflow.run(counts)
    assert run.status == 0, run.printed[-5000:]
    assert by_hand.is_file()

    def texts(split: str) -> Pairs:
        frame = pd.read_parquet(workflow.file(f"mine/corpus/{split}.parquet"))
        return list(zip(frame["source"], frame["target"], strict=True))

    assert (texts("test"), texts("dev")) == (test, development)
    assert set(texts("analysis")) == {(sentence, "") for sentence, _ in french}
    assert sorted(texts("train")) == sorted([*(pair for pair in crawl if pair != crawl[3]), *SITE])
    # What was fetched is not fetched again, from wherever.
    values["downloads"]["mirrors"] = {"http://": "http://127.0.0.1:9/"}
    assert "Nothing to be done" in project.configured(values).run("--dry-run", counts).printed
