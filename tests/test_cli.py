"""The command line, as a process: streams, order of lines, errors, and what it says of a model."""

import os
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest
from small import ENVIRONMENT, WORDS

import specialized_heads
from specialized_heads import cli
from specialized_heads.exchange.export import load_exported
from specialized_heads.exchange.folder import read_card
from specialized_heads.stage import UserError


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "specialized_heads.cli", *map(str, arguments)]


def run(*arguments: object, given: bytes = b"") -> subprocess.CompletedProcess:
    return subprocess.run(
        command(*arguments), input=given, capture_output=True, env=ENVIRONMENT, check=False
    )


def test_one_line_in_is_one_line_out(exported: Path) -> None:
    texts = [*WORDS[:30], "", WORDS[31] * 3, "  ", *WORDS[40:60]]
    given = "\n".join(texts).replace("\n", "\r\n", 1).encode()  # the last line has no end
    done = run("translate", exported, "--device", "cpu", "--batch", 7, "--beam", 3, given=given)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().split("\n")
    assert lines.pop() == ""
    assert lines == load_exported(exported, device="cpu", beam=3)(texts)
    assert (lines[30], lines[32]) == ("", "")


def test_answers_come_before_the_input_ends(exported: Path) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": ENVIRONMENT}
    with subprocess.Popen(command("translate", exported, "--device", "cpu"), **pipes) as process:
        for text in (WORDS[0], "", WORDS[5]):
            process.stdin.write(f"{text}\n".encode())
            process.stdin.flush()
            answered, _, _ = select.select([process.stdout], [], [], 120)  # seconds
            assert answered
            expected = load_exported(exported, device="cpu")(text) + "\n"
            assert process.stdout.readline().decode() == expected
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait() == 0


def test_a_line_that_is_not_utf8_ends_it_after_the_lines_before(exported: Path) -> None:
    given = f"{WORDS[0]}\n{WORDS[1]}\n".encode() + b"a\xff\n" + WORDS[2].encode()
    done = run("translate", exported, "--device", "cpu", given=given)
    assert done.returncode == 2
    where = "line 3 is not UTF-8 (invalid start byte at byte 2)"
    expected = f"error: standard input: {where}; the 2 lines before it have been translated\n"
    assert done.stderr.decode() == expected
    assert done.stdout.count(b"\n") == 2


def test_mistakes_end_in_one_line(exported: Path, tmp_path: Path) -> None:
    done = run("translate", tmp_path / "nowhere", given=b"a\n")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == f"error: {tmp_path / 'nowhere'}: no such folder\n"
    done = run("translate", exported, "--beam", 0)
    assert done.returncode == 2
    assert b"'0' is not a positive whole number" in done.stderr
    assert b"Traceback" not in done.stderr
    for arguments in (
        ["translate", exported],
        ["analyse", exported, "--output", tmp_path / "analysis"],
    ):
        done = run(*arguments, "--device", "mps")
        assert done.returncode == 2
        assert (
            b"argument --device: Apple's GPU (mps) is not supported; set cpu or auto\n"
            in done.stderr
        )


def test_version_and_help_are_quick_and_need_no_model() -> None:
    done = run("--version")
    assert done.stdout.decode() == f"specialized-heads {specialized_heads.__version__}\n"
    assert b"--beam" in run("translate", "--help").stdout
    imported = "import specialized_heads.cli, sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", imported], env=ENVIRONMENT, check=True)


def test_describe_says_heads_size_and_score(exported: Path) -> None:
    printed = run("describe", exported).stdout.decode()
    assert "pruned/encoder_heads2, seed 7, of words in experiment tiny" in printed
    assert "BLEU 12.3 [11.0, 13.0] on 1,000 sentences (sig)" in printed
    card = read_card(exported)
    assert f"{card.parameters:,} parameters, {card.bytes / 1e6:.1f} MB" in printed
    rows = [line.split() for line in printed.splitlines()[-3:]]
    expected = [["encoder", "0", "2", "2"], ["decoder", "4", "4", "8"], ["cross", "4", "4", "8"]]
    assert rows == expected


def test_a_given_baseline_is_described_and_translates() -> None:
    baseline = Path(__file__).parents[1] / "resources/baselines/reference_en_de/seed1"
    printed = run("describe", baseline).stdout.decode()
    assert "baseline, seed 1, of tatoeba_en_de\nen to de" in printed
    assert printed.splitlines()[-3].split() == ["encoder", *["8"] * 6, "48"]
    assert (
        run("translate", baseline, "--device", "cpu", given=b"Where is the dog?").stdout
        == b"Wo ist der Hund?\n"
    )


def test_a_reader_that_has_gone_is_no_error(exported: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command("describe", exported), stdout=writing, stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    "stream, message", [("<&-", "input is closed"), (">/dev/full", "output: the disk is full")]
)
def test_streams_that_take_or_give_nothing_end_in_one_line(exported, stream, message) -> None:
    shell = " ".join([*command("translate", exported), stream])
    done = subprocess.run(
        shell, shell=True, input=b"ai qa\n", capture_output=True, env=ENVIRONMENT, check=False
    )
    assert done.returncode == 2
    assert re.fullmatch(f"error: standard {message}; .*\n", done.stderr.decode())


def test_a_file_that_may_not_be_read_ends_it_in_one_line(monkeypatch, capsys) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("specialized_heads.exchange.folder.read_card", refuse)
    monkeypatch.setattr(sys, "argv", ["specialized-heads", "describe", "model"])
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert capsys.readouterr().err == (
        "error: model: permission denied; change its permissions and run again\n"
    )


def arriving(tmp_path: Path, content: bytes, *, most: int) -> list[list[bytes]]:
    (tmp_path / "text").write_bytes(content)
    with open(tmp_path / "text", "rb") as stream:
        return list(cli.arriving_lines(stream.fileno(), most=most))


def test_lines_are_complete_whatever_the_chunks(tmp_path: Path, monkeypatch) -> None:
    lines = [b"a" * length for length in (3, 0, 50, 1, 0)]
    for chunk in (1, 7, 1000):
        monkeypatch.setattr(cli, "CHUNK", chunk)
        groups = arriving(tmp_path, b"\n".join(lines) + b"\nrest", most=2)
        assert [line for group in groups for line in group] == [*lines, b"rest"]
        assert max(map(len, groups)) <= 2
    assert arriving(tmp_path, b"", most=2) == []


def test_a_line_without_end_is_not_held_in_memory(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(cli, "LONGEST_LINE", 100)
    monkeypatch.setattr(cli, "CHUNK", 64)
    with pytest.raises(UserError, match="line 2 has over 100 bytes; give one sentence per line"):
        arriving(tmp_path, b"a\n" + b"b" * 500, most=5)


def test_a_country_is_no_language(exported: Path, tmp_path: Path) -> None:
    done = run(
        "analyse",
        exported,
        "--text",
        "text.txt",
        "--output",
        tmp_path / "out",
        "--languages",
        "en",
        "jp",
    )
    said = (
        "error: --languages: 'jp' is not the code of a language (ISO 639); the likely one is 'ja'\n"
    )
    assert (done.returncode, done.stderr.decode()) == (2, said)
