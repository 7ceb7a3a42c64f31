"""Stage: the provenance of an experiment's results, as a Workflow Run RO-Crate (profile Provenance Run Crate 0.5).

The folder of the results becomes the crate. Its jobs are those that led to the tables of run times and environment, and so to
everything: Snakemake's records say of each file by which rule, from which files, with which parameters and when it was made. Only
these are followed, so files of former configurations are left out. Time and memory are those of the benchmarks; names, hashes and
licences of the text are those of the corpora's cards. A file from outside the folder is named by the hash of its content.
"""

import base64
import csv
import hashlib
import json
import mimetypes
import shlex
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rocrate.model import ContextEntity, DataEntity, Entity
from rocrate.rocrate import ROCrate

import specialized_heads
from specialized_heads.stage import Files, Section, atomic, command, file_hash, log, read_json, write_file

RECORDS = Path(".snakemake", "metadata")  # of Snakemake, in the working directory
LAST = ("tables/run_times.md", "tables/environment.md")  # made after everything else, and from it
PROFILES = {  # by address, name
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/ro/wfrun/provenance/0.5": "Provenance Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
TERMS = {"resourceUsage": "https://w3id.org/ro/terms/workflow-run#resourceUsage"}  # beyond the context of RO-Crate 1.1
# Columns of benchmarks.
USAGE = {"s": ("wall time", "s"), "cpu_time": ("CPU time", "s"), "max_rss": ("peak memory", "MiB")}
WORKFLOW = "Snakefile"  # a copy beside the results, since a crate holds its workflow
SNAKEFILE = Path(specialized_heads.__file__).parents[2] / "workflow" / WORKFLOW


class Settings(Section):
    experiment: str


@dataclass
class Job:
    """A finished job. Files are below the folder of the results where they can be, else as Snakemake names them."""

    rule: str
    log: str
    inputs: list[str]
    command: str
    parameters: list[str]
    started: float  # seconds since 1970
    ended: float
    outputs: list[str] = field(default_factory=list)

    @property
    def module(self) -> str:
        """What the job runs."""
        words = self._words()
        found = [word for word in words if word.startswith(f"{specialized_heads.__name__}.")]
        return found[-1] if found else self.rule  # a figure follows the module that makes all figures

    @property
    def settings(self) -> str:
        """Its settings as JSON; empty for a job without any."""
        words = self._words()
        return words[words.index("--settings") + 1] if "--settings" in words else ""

    @property
    def code(self) -> list[str]:
        """The hash of the source code that it runs, if its rule has one."""
        values = [value.strip("'") for value in self.parameters]
        return [value for value in values if len(value) == 64 and set(value) <= set("0123456789abcdef")]

    def _words(self) -> list[str]:
        return shlex.split(self.command) if self.command else []


def read_records(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Snakemake's records by file: a path, or an address in a bucket. Their names are base64, long ones in several parts."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = "".join(part.removeprefix("@") for part in path.relative_to(folder).parts)
        try:
            yield base64.urlsafe_b64decode(name).decode(), json.loads(path.read_text(encoding="utf-8"))
        except ValueError:  # a record that is being written
            log.info("%s: not a record of Snakemake; left out", path)


def jobs_of(results: Path, experiment: str, records: Iterable[tuple[str, dict[str, Any]]]) -> list[Job]:
    """The jobs that the last tables follow from, by their start."""

    def local(name: str) -> str:
        """A file below the results; other names stay."""
        if "://" in name:
            return name.partition(f"/results/{experiment}/")[2] or name
        return name.removeprefix(f"{results.as_posix()}/")

    made: dict[str, Job] = {}
    by_log: dict[tuple[str, ...], Job] = {}
    records = [(name, record) for name, record in records if record.get("starttime")]
    latest: dict[tuple[str, ...], float] = {}
    for _, record in records:
        key = (record["rule"], *record["log"])
        latest[key] = max(latest.get(key, 0.0), record["starttime"])
    for name, record in records:
        if record["endtime"] < latest[record["rule"], *record["log"]]:  # of an earlier run, which made more files
            continue
        job = by_log.setdefault(
            (record["rule"], *record["log"]),
            Job(
                record["rule"],
                *record["log"][:1] or [""],
                [local(each) for each in record["input"]],
                record["shellcmd"] or "",
                record["params"] or [],
                record["starttime"],
                record["endtime"],
            ),
        )
        job.outputs.append(local(name))
        job.ended = max(job.ended, record["endtime"])
        made[local(name)] = job
    waiting, found = list(LAST), {}
    while waiting:
        job = made.get(waiting.pop())
        if job and id(job) not in found:
            found[id(job)] = job
            waiting += job.inputs
    return sorted(found.values(), key=lambda job: (job.started, job.rule, job.outputs))


def describe(
    results: Path, jobs: list[Job], *, experiment: str, environment: list[dict[str, str]], cards: list[Path]
) -> ROCrate:
    """The crate of the results.

    Args:
        results: their folder.
        jobs: by their start.
        experiment: its name.
        environment: rows of the table of this name: part, name, value.
        cards: `corpus/raw.json` of each corpus.
    """
    crate = ROCrate(version="1.1")
    crate.metadata.extra_terms.update(TERMS)
    software = {row["name"]: row["value"] for row in environment if row["part"] == "software"}
    code = {row["name"]: row["value"] for row in environment if row["part"] == "code"}

    def entity(identifier: str, kind: str, /, **properties: Any) -> Entity:
        """An entity that is made once."""
        known = crate.dereference(identifier)
        return known or crate.add(ContextEntity(crate, identifier, properties={"@type": kind} | properties))

    def file(name: str, *, path: Path, **more: Any) -> Entity:
        """A file of the crate, or from outside, with size and hash where it can be read here."""
        inside = path.is_relative_to(results)
        known = {"contentSize": str(path.stat().st_size), "sha256": file_hash(path)} if path.is_file() else {}
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        properties = {"@type": "File", "name": name, "encodingFormat": kind} | known | more
        identifier = name if inside else more.pop("url", "") or content_name(properties.get("sha256"), name)
        return crate.dereference(identifier) or crate.add(DataEntity(crate, identifier, properties=properties))

    licences = {}
    outside: dict[str, Entity] = {}  # by hash
    for card in map(read_json, cards):
        for each in card["files"]:
            licence = each.get("licence") or card.get("licence") or "unknown, see the owner of the text"
            licences[licence] = entity(f"#licence-{slug(licence)}", "CreativeWork", name=licence)
            more = {"sha256": each["sha256"], "contentSize": str(each["bytes"]), "license": licences[licence]}
            more |= {"url": each["url"]} if each.get("url") else {}
            name = f"{card.get('name', '')}/{each['file']}".lstrip("/")
            outside[each["sha256"]] = file(name, path=Path(each["file"]).absolute(), **more)

    def file_of_job(name: str) -> Entity:
        if (results / name).exists() or not Path(name).is_file():
            return file(name, path=results / name)
        known = outside.get(file_hash(Path(name))) or file(name, path=Path(name).absolute())
        known["name"] = name
        return known

    tools, steps, runs, controls, made = {}, {}, [], [], []
    for number, job in enumerate(jobs, start=1):
        if job.rule not in tools:
            version = {"softwareVersion": specialized_heads.__version__} | (
                {"identifier": job.code} if job.code else {}
            )
            tools[job.rule] = entity(f"#tool-{job.rule}", "SoftwareApplication", name=job.module, **version)
            position = {"position": str(len(tools)), "workExample": tools[job.rule]}
            steps[job.rule] = entity(f"#step-{job.rule}", "HowToStep", name=job.rule, **position)
        given = [file_of_job(name) for name in job.inputs]
        if job.settings:
            given.append(entity(f"#settings-{number}", "PropertyValue", name="settings", value=job.settings))
        outputs = [file_of_job(name) for name in sorted(job.outputs)]
        made += outputs
        usage = [entity(f"#usage-{number}-{each['propertyID']}", "PropertyValue", **each) for each in measured(job)]
        action = entity(
            f"#job-{number}",
            "CreateAction",
            name=f"{job.rule}: {sorted(job.outputs)[0]}",
            instrument=tools[job.rule],
            object=given,
            result=outputs,
            startTime=moment(job.started),
            endTime=moment(job.ended),
            actionStatus="http://schema.org/CompletedActionStatus",
            **{"resourceUsage": usage} if usage else {},
        )
        runs.append(action)
        properties = {"instrument": steps[job.rule], "object": action, "name": f"control of job {number}"}
        controls.append(entity(f"#control-{number}", "ControlAction", **properties))

    language = entity(
        "https://w3id.org/workflowhub/workflow-ro-crate#snakemake",
        "ComputerLanguage",
        name="Snakemake",
        url="https://snakemake.readthedocs.io",
        version=software["snakemake"],
    )
    parameters = {
        name: entity(f"#parameter-{name}", "FormalParameter", name=name, additionalType="File", description=text)
        for name, text in {"configuration": "the experiment", "report": "figures, tables and claims"}.items()
    }
    for parameter in parameters.values():
        parameter["conformsTo"] = entity("https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE", "CreativeWork")
    workflow = crate.add(
        DataEntity(
            crate,
            WORKFLOW,
            properties={
                "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"],
                "name": "specialized-heads: workflow/Snakefile",
                "sha256": file_hash(SNAKEFILE),
                "version": specialized_heads.__version__,
                "identifier": [code[name] for name in ("git commit", "SHA-256 of the source files") if code.get(name)],
                "license": entity("https://spdx.org/licenses/MIT", "CreativeWork", name="MIT"),
                "programmingLanguage": language,
                "hasPart": list(tools.values()),
                "step": list(steps.values()),
                "input": parameters["configuration"],
                "output": parameters["report"],
                "softwareRequirements": [
                    entity(f"#software-{slug(name)}", "SoftwareApplication", name=name, softwareVersion=value)
                    for name, value in software.items()
                ],
            },
        )
    )
    configuration = file("configuration.yaml", path=results / "configuration.yaml")
    configuration["exampleOfWork"] = parameters["configuration"]
    shown = [each for each in made if each.id.startswith(("figures/", "tables/", "claims"))]
    for each in shown:
        each["exampleOfWork"] = parameters["report"]
    times = {"startTime": moment(min(job.started for job in jobs)), "endTime": moment(max(job.ended for job in jobs))}
    whole = entity("#run", "CreateAction", name=f"run of {experiment}", instrument=workflow, **times)
    whole["object"], whole["result"] = [configuration, *outside.values()], shown
    engine = entity("#software-snakemake", "SoftwareApplication")
    organised = entity("#organisation", "OrganizeAction", name=f"Snakemake runs {experiment}", **times)
    organised["instrument"], organised["object"], organised["result"] = engine, controls, whole

    root = crate.root_dataset
    crate.name = f"specialized-heads: {experiment}"
    crate.description = (
        f"Results of the experiment {experiment}, with the jobs, text and software that they were made by."
    )
    crate.datePublished = datetime.fromisoformat(times["endTime"])
    crate.license = list(licences.values())
    crate.mainEntity = workflow
    root["conformsTo"] = [
        entity(address, "CreativeWork", name=name, version=address.split("/")[-1]) for address, name in PROFILES.items()
    ]
    root["mentions"] = [organised, whole, *runs]
    return crate


def content_name(sha256: str | None, name: str) -> str:
    """The address of a file by its content (RFC 6920); by its name where its content is not at hand."""
    if not sha256:
        return f"urn:x-file:{name}"
    return f"ni:///sha-256;{base64.urlsafe_b64encode(bytes.fromhex(sha256)).decode().rstrip('=')}"


def measured(job: Job) -> list[dict[str, str]]:
    """What Snakemake measured of a job; its benchmark is named after its log."""
    path = Path(job.log.replace("/logs/", "/benchmarks/")).with_suffix(".tsv")
    if not path.is_file():
        return []
    with open(path, encoding="utf-8", newline="") as stream:
        [row, *_] = csv.DictReader(stream, delimiter="\t")
    return [
        {"propertyID": column, "name": name, "value": row[column], "unitText": unit}
        for column, (name, unit) in USAGE.items()
        if row.get(column, "-") not in ("-", "NA")
    ]


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def slug(text: str) -> str:
    """Part of an identifier, from any text."""
    plain = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in text)
    return (
        plain if plain == text or len(plain) < 40 else f"{plain[:30]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    )


@command("environment", "output", "workflow", many=("cards",), settings=Settings)
def main(files: Files, settings: Settings) -> None:
    experiment = settings.experiment
    results = files.output.parent
    jobs = jobs_of(results, experiment, read_records(RECORDS))
    with open(files.environment, encoding="utf-8", newline="") as stream:
        environment = list(csv.DictReader(stream))
    crate = describe(results, jobs, experiment=experiment, environment=environment, cards=files.cards)
    described = crate.metadata.generate()
    lines = ",\n".join(json.dumps(each, ensure_ascii=False, sort_keys=True) for each in described["@graph"])
    with atomic(files.workflow) as temporary:
        shutil.copyfile(SNAKEFILE, temporary)
    write_file(files.output, f'{{"@context": {json.dumps(described["@context"])},\n"@graph": [\n{lines}\n]}}\n')
    log.info("%d jobs of %d rules", len(jobs), len({job.rule for job in jobs}))
