"""A run that is killed with SIGKILL at any moment goes on with the same command."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import minicheck_eval

PROGRAM = Path(__file__).with_name("interrupted_run.py")
KILLS = 20
CASES = 500
PATIENCE_S = 60


def write_cases(path: Path) -> None:
    with path.open("w", encoding="utf-8") as stream:
        for i in range(CASES):
            documents = [] if i % 50 == 0 else [{"id": f"d{i}", "text": f"Fact {i} is known. " * (i % 5 + 1)}]
            row = {
                "id": f"c{i}",
                "question": f"c{i}",
                "slice": f"s{i % 3}",
                "documents": documents,
                "answer": f"Fact {i}.",
            }
            stream.write(json.dumps({**row, "must_retrieve": [f"d{i}"] if i % 4 == 0 else []}) + "\n")


def start(*paths: Path) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(Path(minicheck_eval.__file__).parents[1])}
    return subprocess.Popen([sys.executable, str(PROGRAM), *map(str, paths)], env=environment)


def whole_ids(results: Path) -> list[str]:
    lines = results.read_bytes().split(b"\n")[:-1] if results.exists() else []
    return [json.loads(line)["id"] for line in lines]


def kill_at(process: subprocess.Popen, results: Path, size: int) -> None:
    """Kill the process as soon as its journal has reached a size."""
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None and (not results.exists() or results.stat().st_size < size):
        assert time.monotonic() < deadline
        time.sleep(0.0005)
    process.kill()
    process.wait()


def comparable(results: Path) -> list[dict]:
    records = [json.loads(line) for line in results.read_bytes().splitlines()]
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


def test_a_run_killed_at_20_moments_equals_an_undisturbed_one(tmp_path):
    """Nothing is lost, no case is judged again once its record is on the disk, and the results are the same."""
    cases = tmp_path / "cases.jsonl"
    write_cases(cases)
    calm = start(cases, tmp_path / "calm", tmp_path / "calm-asked")
    assert 0 == calm.wait()
    expected = tmp_path / "calm" / "results.jsonl"
    generator = random.Random(20)
    moments = sorted(generator.randrange(expected.stat().st_size) for _ in range(KILLS))
    results, asked = tmp_path / "killed" / "results.jsonl", tmp_path / "asked"
    told = 0
    for i, size in enumerate(moments):
        before = whole_ids(results)
        kill_at(start(cases, tmp_path / "killed", asked), results, size)
        # Every other time the end of the journal did not reach the disk, as when the power fails.
        if i % 2 and results.exists():
            os.truncate(results, max(0, results.stat().st_size - generator.randrange(1, 900)))
        questions = asked.read_text().splitlines() if asked.exists() else []
        assert set() == set(before) & set(questions[told:])
        told = len(questions)
        assert len(set(whole_ids(results))) == len(whole_ids(results))
    assert 0 == start(cases, tmp_path / "killed", asked).wait()
    assert comparable(expected) == comparable(results)
    assert CASES == len(set(whole_ids(results))) == len(whole_ids(results))
    headers = [json.loads((folder / "run.json").read_bytes()) for folder in (tmp_path / "calm", tmp_path / "killed")]
    assert ["finished", "finished"] == [header["status"] for header in headers]
    assert headers[0]["summary"] == headers[1]["summary"]
    assert headers[0]["decision"] == headers[1]["decision"]
