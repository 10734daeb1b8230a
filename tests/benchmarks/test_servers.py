import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "servers.py"


def run(*arguments):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_all_ways_are_measured_beside_the_ideal(tmp_path):
    """Each server has the figures of each way; side by side is faster than one by one, and nothing beats the ideal."""
    out = tmp_path / "out.json"
    sizes = ["--slots", 4, "--documents", 16, "--claims", 4, "--words", 40, "--request-ms", 15, "--repeats", 1]
    done = run(*sizes, "--order", "scattered", "--out", out)
    assert 0 == done.returncode, done.stderr
    result = json.loads(out.read_text())
    assert {"ollama", "openai"} == set(result["servers"])
    for server in result["servers"].values():
        assert {"loop", "given", "found"} == set(server["ways"])
        assert 64 * 0.015 / 4 < server["ideal_seconds"]
        loop, given, found = (server["ways"][way] for way in ("loop", "given", "found"))
        assert 0 < loop["share_of_ideal"] < given["share_of_ideal"] < 1
        assert 0 < found["share_of_ideal"] < 1
        assert 0 < given["computed_tokens"][0] < loop["computed_tokens"][0]
    assert "of the ideal" in " ".join(done.stdout.split())


def test_the_help_says_what_is_measured():
    """It names the ideal, and every option."""
    done = run("--help")
    assert 0 == done.returncode
    assert "ideal" in done.stdout
    assert "--request-ms" in done.stdout
