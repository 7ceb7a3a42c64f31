"""Make resources/libreoffice_en_ru from the help packages of Debian: text that has one id in both languages.

For maintainers, on Debian 12; the pipeline reads the result, which is kept in the repository. From the repository root:

    python resources/make_libreoffice.py

Debian keeps few versions of a package. When the pinned one is gone, pin the present one and its hashes, and make the
parses of the analysis sentences again.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

from specialized_heads.corpus.pairs import Pairs, write_pairs
from specialized_heads.stage import file_hash, write_json

FOLDER = Path(__file__).parent / "libreoffice_en_ru"
VERSION = "4:7.4.7-1+deb12u14"
SHA256 = {
    "libreoffice-help-en-us": "8faa840285734d6cfe1ed25537b48f07e74bd6412e3917bf8e5f8a653f7b3712",
    "libreoffice-help-ru": "5a2f75d5b0dfcf660275070647af528a81be28b5d3e9c3ec2d419ef5518db7a2",
}
HELP = Path("usr/share/libreoffice/help")
LICENCE = Path("/usr/share/common-licenses/MPL-2.0")
# Ends of sentences; a full stop before a small letter is mostly an abbreviation.
SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=[A-ZА-ЯЁ\"“«(])")
CODE = {"code", "codeintable", "smathcode"}

README = """\
# LibreOffice help, English to Russian

{pairs} pairs of sentences and headings of the LibreOffice 7.4 help, one pair per row of `corpus.parquet` (columns
`source`, `target`, `document`; zstd). `document` is the help page ({documents} pages). Paragraphs and headings are paired
when they have the same id in both languages, so the alignment is the translators' own. A paragraph is divided into
sentences where both sides have equally many, and stays whole otherwise. Where a text depends on the system, the default
is taken; program listings are left out. No filter is applied: {copies} pairs are not translated, the target is the source.

**Licence.** MPL-2.0, in `LICENSE`. Copyright 2000, 2010 Oracle and/or its affiliates, LibreOffice contributors and/or
their affiliates.

**Provenance.** The Debian packages, version {version}:

{packages}

`provenance.json` says the same for machines.

**Made by** `python resources/make_libreoffice.py`, which fetches those packages with `apt-get download` and checks their
hashes.
"""


class Paragraphs(HTMLParser):
    """Collects the text of paragraphs and headings by id, in `texts`.

    Of an inline switch (`<span class="switchinline">` with one hidden `<span>` per system or application) only the default
    is taken, or the first where there is no default; the browser would choose one of them.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: dict[str, str] = {}
        self.open_element: tuple[str, str] | None = None  # tag and id of the paragraph being read
        self.text: list[str] = []
        self.spans: list[str] = []  # kinds of the open spans: switch, option, plain
        self.outer: list[list[str]] = []  # text around each open option
        self.options: list[list[tuple[bool, str]]] = []  # of each open switch: is it the default, and its text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        name, style = attributes.get("id") or "", attributes.get("class") or ""
        if self.open_element is None:
            if name.startswith(("par_", "hd_")) and style not in CODE:
                self.open_element, self.text, self.spans = (tag, name), [], []
            return
        if tag == "br":
            self.text.append(" ")
        if tag != "span":
            return
        if style == "switchinline":
            self.spans.append("switch")
            self.options.append([])
        elif "hidden" in attributes and self.options:
            self.spans.append("option")
            self.options[-1].append((name.startswith("default"), ""))
            self.outer.append(self.text)
            self.text = []
        else:
            self.spans.append("plain")

    def handle_endtag(self, tag: str) -> None:
        if self.open_element is None:
            return
        if tag == self.open_element[0]:
            self.texts.setdefault(self.open_element[1], " ".join("".join(self.text).split()))
            self.open_element, self.outer, self.options = None, [], []
        elif tag == "span" and self.spans:
            kind = self.spans.pop()
            if kind == "option":
                is_default, _ = self.options[-1].pop()
                self.options[-1].append((is_default, "".join(self.text)))
                self.text = self.outer.pop()
            elif kind == "switch" and (options := self.options.pop()):
                self.text.append(max(options, key=lambda option: option[0])[1])

    def handle_data(self, data: str) -> None:
        if self.open_element is not None:
            self.text.append(data)


def fetch(folder: Path) -> list[dict[str, str]]:
    """Download the packages with apt, check their hashes and unpack them into `folder`."""
    subprocess.run(["apt-get", "download", *(f"{name}={VERSION}" for name in SHA256)], check=True, cwd=folder)
    packages = []
    for name, expected in SHA256.items():
        (file,) = folder.glob(f"{name}_*.deb")
        if (found := file_hash(file)) != expected:
            sys.exit(f"{file.name}: sha256 is {found}, expected {expected}")
        subprocess.run(["dpkg-deb", "-x", str(file), str(folder)], check=True)
        packages.append({"package": name, "version": VERSION, "file": file.name, "sha256": expected})
    return packages


def read_page(path: Path) -> dict[str, str]:
    """The non-empty paragraphs of a page by id, the first one where an id occurs twice."""
    page = Paragraphs()
    page.feed(path.read_text(encoding="utf-8"))
    return {name: text for name, text in page.texts.items() if text}


def align(english: Path, russian: Path) -> Pairs:
    """Pair the text of two trees of pages: paragraphs by path and id, then their sentences where the numbers agree."""
    pairs = Pairs([], [], [])
    for path in sorted(english.rglob("*.html")):
        page = path.relative_to(english)
        if not (russian / page).is_file():
            continue
        translations = read_page(russian / page)
        for name, source in read_page(path).items():
            if name in translations:
                sources, targets = SENTENCE_END.split(source), SENTENCE_END.split(translations[name])
                if len(sources) != len(targets):
                    sources, targets = [source], [translations[name]]
                pairs.source.extend(sources)
                pairs.target.extend(targets)
                pairs.document.extend([page.with_suffix("").as_posix()] * len(sources))
    return pairs


def main() -> None:
    """Write corpus.parquet, LICENSE, provenance.json and README.md."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        packages = fetch(folder)
        pairs = align(folder / HELP / "en-US" / "text", folder / HELP / "ru" / "text")

    write_pairs(FOLDER / "corpus.parquet", pairs, compression_level=19)
    shutil.copyfile(LICENCE, FOLDER / "LICENSE")
    provenance = {
        "name": FOLDER.name,
        "source_language": "en",
        "target_language": "ru",
        "licence": "MPL-2.0",
        "pairs": len(pairs),
        "packages": packages,
        "corpus_sha256": file_hash(FOLDER / "corpus.parquet"),
    }
    write_json(FOLDER / "provenance.json", provenance)
    readme = README.format(
        pairs=len(pairs),
        documents=len(set(pairs.document)),
        copies=sum(map(str.__eq__, pairs.source, pairs.target)),
        version=VERSION,
        packages="\n".join(f"- {package['package']} (sha256 `{package['sha256']}`)" for package in packages),
    )
    (FOLDER / "README.md").write_text(readme, encoding="utf-8")


if __name__ == "__main__":
    main()
