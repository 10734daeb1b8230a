"""With the weights on the machine, the whole main job works where every connection fails."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Runs the command line in a process whose sockets cannot connect and whose names do not resolve.
BLOCKED = """
import socket, sys

def refuse(*arguments, **_):
    sys.stderr.write(f"NETWORK {arguments}\\n")
    raise OSError("no network")

socket.socket.connect = socket.socket.connect_ex = refuse
socket.getaddrinfo = socket.create_connection = refuse

from minicheck_eval.cli import main

main(sys.argv[1:])
"""


@pytest.fixture
def blocked(nano, tmp_path):
    """Run a command without network, in an empty folder; `nano` says that the weights are here."""

    def run(*arguments):
        command = [sys.executable, "-c", BLOCKED, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert "NETWORK" not in done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


def test_demo_works_without_network(blocked):
    """The demo judges its cases and shows its report."""
    done = blocked("demo")
    assert 0 == done.returncode, done.stderr
    assert "out-of-scope" in done.stdout


def test_run_and_check_work_without_network(blocked, tmp_path):
    """A file of cases is judged and logged, and a single text is checked."""
    row = {"id": "1", "documents": ["The shop opens at nine."], "answer": "The shop opens at nine."}
    Path(tmp_path / "cases.jsonl").write_text(json.dumps(row) + "\n")
    assert 0 == blocked("run", "cases.jsonl", "--out", "out").returncode
    assert (
        "pass" == json.loads((tmp_path / "out" / "results.jsonl").read_text())["verdicts"]["fact-checking"]["outcome"]
    )
    Path(tmp_path / "evidence.txt").write_text("The shop opens at nine.")
    done = blocked("check", "--document", "evidence.txt", "--claim", "The shop opens at nine.", "--json")
    assert (0, True) == (done.returncode, json.loads(done.stdout)["pass"])
