"""How Snakemake itself is run: what it costs beside the jobs."""

CORPORA = [
    f"results/smoke/{corpus}/corpus/tokens/train.safetensors" for corpus in ("tatoeba_en_fr", "libreoffice_en_ru")
]


def test_snakemake_looks_for_work_when_a_job_has_ended_and_not_every_second(project) -> None:
    """Two chains of jobs and one core: a job of one chain waits while one of the other runs, for seconds."""
    run = project.run("--cores", "1", "--verbose", "--", *CORPORA)
    assert run.status == 0, run.printed[-5000:]
    finished = run.printed.count("Finished jobid:")
    assert finished >= 8
    assert run.printed.count("Ready jobs:") == finished
