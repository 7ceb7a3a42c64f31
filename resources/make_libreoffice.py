"""Make resources/libreoffice_en_ru from the help packages of Debian: text that has one id in both
languages.

For maintainers, on Debian 12 after `apt-get update`; the pipeline reads the result, which is kept
in the repository. From the root of the repository:

    python resources/make_libreoffice.py

Debian keeps few versions of a package. When the pinned one is gone, pin the present one and its
hashes, and make the parses of the analysis sentences again.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from lxml import etree

from specialized_heads.stage import UserError, file_hash, run, write_json

FOLDER = Path(__file__).parent / "libreoffice_en_ru"
VERSION = "4:7.4.7-1+deb12u14"
SHA256 = {
    "libreoffice-help-en-us": "8faa840285734d6cfe1ed25537b48f07e74bd6412e3917bf8e5f8a653f7b3712",
    "libreoffice-help-ru": "5a2f75d5b0dfcf660275070647af528a81be28b5d3e9c3ec2d419ef5518db7a2",
}
HELP = Path("usr/share/libreoffice/help")
LISTINGS = {"code", "codeintable", "smathcode"}  # classes of paragraphs
# A full stop before a lower-case letter mostly ends an abbreviation. Capitals: Latin with accents,
# Cyrillic.
SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=[A-ZÀ-ÖØ-ÞŒŠŽΑ-ΩЀ-Я\"“„«(])")
LICENCE = Path("/usr/share/common-licenses/MPL-2.0")

README = """\
# LibreOffice help, English to Russian

{pairs} pairs of sentences and headings of the LibreOffice 7.4 help, one pair per row of
`corpus.parquet` (columns `source`, `target`, `document`; zstd). `document` is the help page
({documents} pages). Paragraphs and headings are paired when they have the same id in both
languages, so the alignment is the translators' own. A paragraph is divided into sentences where
both sides have equally many, and stays whole otherwise. Where a text depends on the system, the
default is taken; program listings are left out. No filter is applied: {copies} pairs are not
translated, the target is the source.

**Licence.** MPL-2.0, in `LICENSE`. Copyright 2000, 2010 Oracle and/or its affiliates, LibreOffice
contributors and/or their affiliates.

**Provenance.** The Debian packages, version {version}:

{packages}

`provenance.json` says the same for machines.

**Made by** `python resources/make_libreoffice.py`, which fetches those packages with
`apt-get download` and checks their hashes.
"""


def fetch(folder: Path) -> list[dict[str, str]]:
    """Download the packages with apt, check their hashes and unpack them into `folder`."""
    packages = []
    for name, expected in SHA256.items():
        subprocess.run(["apt-get", "download", f"{name}={VERSION}"], cwd=folder, check=True)
        [file] = folder.glob(f"{name}_*.deb")
        if (found := file_hash(file)) != expected:
            raise UserError(f"{file.name}: sha256 is {found}; pinned is {expected}")
        subprocess.run(["dpkg-deb", "-x", str(file), str(folder)], check=True)
        packages.append(
            {"package": name, "version": VERSION, "file": file.name, "sha256": expected}
        )
    return packages


def paragraphs(html: str) -> dict[str, str]:
    """The non-empty paragraphs and headings of a page by id, the first one if an id occurs
    twice."""
    page = etree.HTML(
        html.encode(), etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    )
    texts: dict[str, str] = {}
    for element in page.iter(etree.Element):
        name = element.get("id", "")
        if name.startswith(("par_", "hd_")) and element.get("class") not in LISTINGS:
            texts.setdefault(name, " ".join(text_of(element).split()))
    return {name: text for name, text in texts.items() if text}


def text_of(element: etree._Element) -> str:
    """The text of an element.

    Of an inline switch (`<span class="switchinline">` with one hidden `<span>` per system or
    application) only the default is used, or the first option if there is none.
    """
    if element.tag == "br":
        return " "
    options = [
        child
        for child in element
        if "hidden" in child.attrib and element.get("class") == "switchinline"
    ]
    parts = [element.text or ""]
    for child in element:
        parts += ["" if child in options else text_of(child), child.tail or ""]
    if options:
        parts.append(
            text_of(max(options, key=lambda option: option.get("id", "").startswith("default")))
        )
    return "".join(parts)


def sentences(source: str, target: str) -> list[tuple[str, str]]:
    """The pairs of sentences of two paragraphs; the pair of paragraphs itself if the numbers
    differ."""
    sources, targets = SENTENCE_END.split(source), SENTENCE_END.split(target)
    return list(zip(sources, targets)) if len(sources) == len(targets) else [(source, target)]


def align(english: Path, russian: Path) -> list[tuple[str, str, str]]:
    """Pair the text of two trees of pages: paragraphs by path and id, then their sentences where
    the numbers agree.

    Rows of source, target and document.
    """
    pairs = []
    for path in sorted(english.rglob("*.html")):
        page = path.relative_to(english)
        if not (russian / page).is_file():
            continue
        texts, translations = (
            paragraphs(file.read_text(encoding="utf-8")) for file in (path, russian / page)
        )
        for name in filter(translations.__contains__, texts):
            for source, target in sentences(texts[name], translations[name]):
                pairs.append((source, target, page.with_suffix("").as_posix()))
    return pairs


def main() -> None:
    """Write corpus.parquet, LICENSE, provenance.json and README.md."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        packages = fetch(folder)
        pairs = align(folder / HELP / "en-US" / "text", folder / HELP / "ru" / "text")

    sources, targets, documents = zip(*pairs)
    table = pa.table({"source": sources, "target": targets, "document": documents})
    pq.write_table(table, FOLDER / "corpus.parquet", compression="zstd", compression_level=19)
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
        documents=len(set(documents)),
        copies=sum(map(str.__eq__, sources, targets)),
        version=VERSION,
        packages="\n".join(
            f"- {package['package']} (sha256 `{package['sha256']}`)" for package in packages
        ),
    )
    (FOLDER / "README.md").write_text(readme, encoding="utf-8")


if __name__ == "__main__":
    run(main)
