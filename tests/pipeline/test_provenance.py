"""The crate of the smoke experiment: valid by its profile, and true to the run."""

import base64
import json
from pathlib import Path

import pandas as pd
import pytest
import rocrate

from specialized_heads.config.file import read
from specialized_heads.stage import file_hash


@pytest.fixture(scope="module")
def entities(smoke) -> dict[str, dict]:
    """The entities of the crate, by name."""
    graph = json.loads(smoke.file("ro-crate-metadata.json").read_text(encoding="utf-8"))["@graph"]
    assert len({entity["@id"] for entity in graph}) == len(graph)
    return {entity["@id"]: entity for entity in graph}


def of_type(entities: dict[str, dict], kind: str) -> list[dict]:
    return [entity for entity in entities.values() if entity["@type"] == kind]


def test_it_is_a_provenance_run_crate(smoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the validator of the RO-Crate project. It needs no network: the library that writes crates has the terms."""
    pytest.importorskip("rocrate_validator", reason="roc-validator is not installed (pip install roc-validator)")
    from rocrate_validator import services
    from rocrate_validator.models import Severity
    from rocrate_validator.utils import document_loader, http

    # The library has the context of 1.3; that of 1.1 has the terms of Bioschemas at other addresses.
    newest = Path(rocrate.__file__).with_name("data") / "ro-crate.jsonld"
    text = newest.read_text(encoding="utf-8").replace("https://bioschemas.org/terms/", "https://bioschemas.org/")
    context = json.loads(text)
    context["@context"] |= {
        name: f"https://bioschemas.org/ComputationalWorkflow#{name}" for name in ("input", "output")
    }

    class Answer:
        status_code, ok, from_cache, headers = 200, True, True, {"Content-Type": "application/ld+json"}
        text, content = json.dumps(context), json.dumps(context).encode()

        def json(self) -> dict:
            return context

        def raise_for_status(self) -> None:
            pass

    monkeypatch.setattr(document_loader, "_fetch_json_ld", lambda source: context)
    monkeypatch.setattr(http.HttpRequester, "get", lambda *arguments, **options: Answer(), raising=False)
    settings = services.ValidationSettings(
        rocrate_uri=str(smoke.file("")),
        profile_identifier="provenance-run-crate",
        requirement_severity=Severity.REQUIRED,
        offline=True,
    )
    result = services.validate(settings)
    assert [(issue.check.identifier, issue.violatingEntity, issue.message) for issue in result.get_issues()] == []


def test_every_job_of_the_run_is_in_it(smoke, smoke_run, entities) -> None:
    jobs = [entity for entity in of_type(entities, "CreateAction") if entity["@id"].startswith("#job-")]
    measured = pd.read_csv(smoke.file("tables/run_times.csv"))
    assert len(jobs) == len(measured) + 2  # and the two tables about all jobs
    tools = {entities[job["instrument"]["@id"]]["@id"].removeprefix("#tool-") for job in jobs}
    assert tools == set(measured["rule"]) | {"run_times", "environment"}
    assert all(job["startTime"] <= job["endTime"] and job["result"] for job in jobs)
    assert len(of_type(entities, "ControlAction")) == len(jobs)


def test_a_training_has_its_settings_files_time_and_memory(smoke, entities) -> None:
    weights = "tatoeba_en_fr/models/baseline/seed1/model.safetensors"
    [job] = [
        each
        for each in of_type(entities, "CreateAction")
        if {"@id": weights} in each["result"] and each["@id"] != "#run"
    ]
    given = [entities[each["@id"]] for each in job["object"]]
    assert {"tatoeba_en_fr/corpus/tokens/train.safetensors"} < {each["@id"] for each in given}
    [settings] = [json.loads(each["value"]) for each in given if each["@type"] == "PropertyValue"]
    assert settings["training"]["updates"] == read(smoke.root / "config" / "smoke.yaml")["training"]["updates"]
    assert entities[job["instrument"]["@id"]]["name"] == "specialized_heads.training.train"
    assert {entities[each["@id"]]["propertyID"] for each in job["resourceUsage"]} >= {"s", "max_rss"}
    assert entities[weights]["sha256"] == file_hash(smoke.file(weights))


def test_the_text_has_its_hash_and_licence(smoke, entities) -> None:
    path = smoke.root / "resources" / "libreoffice_en_ru" / "corpus.parquet"
    digest = base64.urlsafe_b64encode(bytes.fromhex(file_hash(path))).decode().rstrip("=")
    text = entities[f"ni:///sha-256;{digest}"]
    assert (text["name"], text["sha256"]) == ("resources/libreoffice_en_ru/corpus.parquet", file_hash(path))
    assert entities[text["license"]["@id"]]["name"] == "MPL-2.0"
    assert text["@id"] in {each["@id"] for each in entities["#run"]["object"]}


def test_software_has_its_version(smoke, entities) -> None:
    table = pd.read_csv(smoke.file("tables/environment.csv")).set_index("name")["value"]
    for name in ("torch", "snakemake", "Python"):
        assert entities[f"#software-{name}"]["softwareVersion"] == table[name]
    assert table["SHA-256 of the source files"] in entities["Snakefile"]["identifier"]
