"""What becomes of text with wrong encodings, and of its punctuation on the way to lower-case Moses
tokens and back."""

from typing import Any

import pandas as pd
import pytest

from specialized_heads.corpus.preprocess import apply, undo
from specialized_heads.stage import read_json

WORDS = [
    f"{first}{second}"
    for first in ("ka", "lo", "mi", "ne", "pu")
    for second in ("ta", "ro", "si", "ve", "du", "fa")
]
SENTENCES = [
    f"{WORDS[i % 30]} {WORDS[i * 7 % 29]} {WORDS[i * 11 % 23]} {WORDS[i // 30]}" for i in range(600)
]


def corpus(project, name: str, targets: list[str], *, language: str = "fr") -> dict[str, Any]:
    """The settings of a corpus whose file has these targets."""
    lines = "".join(
        f"the {source}\t{target}\n" for source, target in zip(SENTENCES, targets, strict=True)
    )
    (project.root / f"{name}.tsv").write_bytes(lines.encode("utf-8"))
    source = {"kind": "local", "path": f"{name}.tsv", "group_by": "sentence"}
    split = {"dev": 20, "test": 60, "analysis": 20}
    return {"title": name, "source": source, "target_language": language, "split": split}


def test_wrong_encodings_are_repaired_and_what_is_lost_is_dropped_and_counted(project) -> None:
    odd = {
        "windows_1252": ("l\x92eau, 5\x80 \x93{}\x94\x85", "l’eau, 5€ “{}”…"),
        "entities": ("&#146; &#55357;&#56832; &#xD83D;&#xDE00; {}", "’ 😀 😀 {}"),
        "mojibake": ("lâ€™eau cafÃ© {}", "l’eau café {}"),
        "soft_hyphens": ("caf\xadé {}", "café {}"),
        "byte_order_marks": ("\ufeffcafé {}", "café {}"),
        "control_characters": ("caf\x81é {}", "café {}"),
        "format_characters": ("caf\u200bé {}", "café {}"),
        "joiners": ("می\u200cخواهم 👩🏽\u200d🚀 🏴\U000e0067\U000e0062\U000e007f {}",) * 2,
        "lost_character": ("&#55357; {}", None),
    }
    targets, expected = list(SENTENCES), set(SENTENCES)
    for place, (raw, clean) in enumerate(odd.values()):
        for i in range(place, 90, 9):  # ten of each
            targets[i] = raw.format(SENTENCES[i])
            expected -= {SENTENCES[i]}
            expected |= {clean.format(SENTENCES[i])} if clean else set()
    values = project.settings()
    values |= {
        "corpora": {"mine": corpus(project, "mine", targets)},
        "parser": {"engine": "stanza"},
    }
    run = project.configured(values).run("results/smoke/mine/corpus/counts.json")
    assert run.status == 0, run.printed[-5000:]
    counts = read_json(project.file("mine/corpus/counts.json"))
    changed = {name: number for name, number in counts["changed_in_cleaning"].items() if number}
    assert changed == dict.fromkeys(set(odd) - {"joiners", "lost_character"}, 10) | {
        "entities": 20,
        "invisible": 40,
    }
    assert (
        counts["dropped_in_cleaning"]["lost_character"]
        == sum(counts["dropped_in_cleaning"].values())
        == 10
    )
    assert set(pd.read_parquet(project.file("mine/corpus/clean.parquet"))["target"]) == expected


def test_scores_of_moses_tokens_say_what_the_way_back_costs(project) -> None:
    # Tokens do not tell whether a sign has spaces around it.
    texts = {
        "kept": "C’est l’eau de {}, “d’ici” : чита́ю 👍🏽.",
        "lost": "5€–6€×{}÷7€ → 8€ ou 9€×10€",
    }
    corpora = {
        name: corpus(project, name, [text.format(s) for s in SENTENCES])
        for name, text in texts.items()
    }
    values = project.settings()
    values |= {
        "corpora": corpora,
        "vocabulary": {"source": 100, "target": 150, "preprocess": "paper"},
    }
    values |= {"parser": {"engine": "stanza"}}
    values["training"] |= {"updates": 2, "warmup": 1}
    files = [f"{name}/models/baseline/seed1/score.json" for name in texts]
    run = project.configured(values).run(*(f"results/smoke/{file}" for file in files))
    assert run.status == 0, run.printed[-5000:]
    kept, lost = (read_json(project.file(file))["bleu_round_trip"] for file in files)
    assert kept == pytest.approx(100) and lost < 99
    said = {
        name: "".join(p.read_text() for p in project.file(f"{name}/logs").rglob("*score*"))
        for name in texts
    }
    assert "made tokens and text again, reach" in said["lost"]
    assert "made tokens" not in said["kept"]


def test_signs_and_scripts_come_back_from_moses_tokens() -> None:
    texts = {
        "fr": ["l’eau d’ici et aujourd’hui : « bon » ?", "l'eau, “non” dit-il."],
        "sv": ["han sade ”nej” och ”ja”, sedan ’hm’."],
        "ru": ["я чита́ю, вода́ холодная; что‑то 20° и 5 м²"],
        "en": [
            "she said “don’t” and “it’s o’brien’s.” the dogs’ tails ‘no way’ rest.",
            "👍🏽👩🏽\u200d🚀! 🇩🇪🇫🇷",
        ],
        "de": ["sie: „geht’s gut?“ und »nein«. 5 € und €5, 1990–2000…"],
        "uk": ["п'ять м'ячів і об’єкт"],
        "ca": ["l'aigua d'aquí, col·legi"],
        "nl": ["foto's zo'n ‘nee’ zei"],
        "pl": ["powiedział: „nie”."],
        "ko": ["그는 “네”라고 말했다."],
        "zh": ["你好，世界。“我们”去（北京）《书》！"],
        "ja": ["「はい」と言った。トム・ハンクス、3人…"],
        "th": ["ไม่ใช่ “ครับ” ผมชื่อทอม"],
        "km": ["ខ្ញុំ “បាទ” នៅ។"],
        "bo": ["བོད་སྐད་ཡིན།"],
        "hy": ["ինչպե՞ս ես։"],
        "ar": ["قال: «نعم»، شُكْراً"],
        "he": ["שָׁלוֹם בית־ספר"],
    }
    for language, lines in texts.items():
        assert (
            undo(apply(lines, language=language, mode="paper"), language=language, mode="paper")
            == lines
        )
