"""The benchmark of replay, on a tape of a few answers."""

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "replay.py"


def test_every_case_is_replayed_and_counted(tmp_path):
    """Every stage answers all cases, and the tape is kept where it was asked for."""
    command = [sys.executable, str(BENCHMARK), "--records", "150", "--folder", str(tmp_path / "tape")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    found = json.loads(done.stdout)
    assert [("seam", 150), ("run", 150), ("reports", 150)] == [
        (stage["stage"], stage["cases"]) for stage in found["stages"]
    ]
    assert found["tape_bytes"] == sum(path.stat().st_size for path in (tmp_path / "tape").glob("*.jsonl"))
    assert all(0 < stage["peak_bytes"] < 1e9 for stage in found["stages"])
