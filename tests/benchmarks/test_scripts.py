import importlib.util
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TOY = ["--shape", "tiny", "--dtype", "float32", "--threads", "1"]
ENGINE_KEYS = {
    "note", "failed", "seconds", "median_seconds", "processor_seconds", "claims_per_second", "ours_times_faster",
    "tokens_computed",
    "unique_flops_per_second", "share_of_peak", "share_of_square", "peak_bytes", "support_told",
    "largest_support_difference", "prepare_seconds", "prepare_share",
}  # fmt: skip


def script(name, *arguments):
    command = [sys.executable, str(BENCHMARKS / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def llama_server():
    """A server that answers as llama.cpp's does, and P(yes) = 0.5 to everything."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self, value):
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.answer({"status": "ok"} if self.path == "/health" else {"model_path": "/models/some.gguf"})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body)
            yes = {"id": 10539, "token": "Yes", "logprob": -0.6931471805599453}
            first = {**yes, "top_logprobs": [{"id": 1, "token": "a", "logprob": -0.7}, yes]}
            self.answer({"completion_probabilities": [first], "timings": {"prompt_n": len(body["prompt"])}})

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    server.asked = asked
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_throughput_measures_all_engines_side_by_side(tmp_path, llama_server):
    """Each engine has all figures, they agree in float32, sharing is seen in the tokens, and what is absent is said."""
    out = tmp_path / "out.json"
    sizes = ["--documents", 2, "--claims-per-document", 3, "--words", "40", "--repeats", 2, "--batch-sizes", "2,4"]
    server = f"http://127.0.0.1:{llama_server.server_address[1]}"
    done = script("throughput.py", *TOY, *sizes, "--llama-server", server, "--out", out)
    assert 0 == done.returncode, done.stderr
    result = json.loads(out.read_text())
    assert {"command", "model", "workload", "machine", "engines", "skipped"} == set(result)
    assert result["model"]["random_weights"]
    engines, work = result["engines"], result["workload"]
    assert (2, 6) == (work["documents"], work["prompts"])
    if importlib.util.find_spec("vllm") is None:
        assert "not installed" in result["skipped"]["vllm"]
        assert "vllm: skipped" in done.stdout
        assert {"ours", "generate", "single", "llama.cpp"} == set(engines)
    for name in ("ours", "generate", "single"):
        assert ENGINE_KEYS == set(engines[name])
        assert (2, 6) == (len(engines[name]["seconds"]), engines[name]["support_told"])
        assert 1e-5 >= engines[name]["largest_support_difference"]
        assert 0 < engines[name]["share_of_peak"] < 1
        assert 0 < engines[name]["peak_bytes"]
    assert work["unique_tokens"] <= engines["ours"]["tokens_computed"] < work["asked_tokens"]
    assert work["asked_tokens"] == engines["single"]["tokens_computed"] == engines["llama.cpp"]["tokens_computed"]
    assert work["asked_tokens"] <= engines["generate"]["tokens_computed"]
    assert 0 < engines["ours"]["prepare_share"] < 1
    assert "some.gguf" in engines["llama.cpp"]["note"]
    assert {1} == {body["n_predict"] for body in llama_server.asked}


def test_throughput_reads_real_documents_and_an_engine_that_fails_fails_alone(tmp_path):
    """Documents of a file are judged; the reason of a failure stands in the file, and the exit status is 1."""
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out.json"
    texts = [("It rains in Rome.", "It rains."), ("It rains in Rome.", "It snows."), ("Ada left.", "Ada stayed.")]
    rows.write_text("".join(json.dumps({"document": d, "claim": c}) + "\n" for d, c in texts))
    missing = ["--llama-server", tmp_path / "nothing", "--gguf", tmp_path / "nothing.gguf"]
    options = ["--engines", "ours,llama.cpp", "--jsonl", rows, "--repeats", 1, "--out", out]
    done = script("throughput.py", *TOY, *options, *missing)
    assert 1 == done.returncode, done.stderr
    result = json.loads(out.read_text())
    assert (2, 3) == (result["workload"]["documents"], result["workload"]["prompts"])
    assert 3 == result["engines"]["ours"]["support_told"]
    assert "FileNotFoundError" in result["engines"]["llama.cpp"]["failed"]


def test_scaling_measures_each_point_and_draws_them(tmp_path):
    """Each point has its cost and its own peak memory; a point whose time is over says how far it came."""
    out, picture = tmp_path / "out.json", tmp_path / "curves.svg"
    drawn = importlib.util.find_spec("matplotlib") is not None
    points = ["--claims", "1,8", "--lengths", "", "--budgets", "", "--cases", "100000", "--documents", 2]
    limits = ["--words", 60, "--max-seconds", 3, "--out", out, *(["--plot", picture] if drawn else [])]
    done = script("scaling.py", *TOY, *points, *limits)
    assert 0 == done.returncode, done.stderr
    result = json.loads(out.read_text())
    one, eight, many = result["points"]
    assert ["claims per document"] * 2 + ["cases"] == [p["curve"] for p in result["points"]]
    assert (2, 16) == (one["prompts"], eight["prompts"])
    assert one["tokens_computed"] < eight["tokens_computed"] < 8 * one["tokens_computed"]
    assert not eight["cut_short"]
    assert many["cut_short"]
    assert 0 < many["prompts"] < many["asked"] == 100_000
    assert all(point["peak_bytes"] > 0 and point["seconds_per_claim"] > 0 for point in result["points"])
    assert "time over" in " ".join(done.stdout.split())
    if drawn:
        assert "<svg" in picture.read_text(encoding="utf-8")


def test_gpu_script_runs_at_toy_size(tmp_path):
    """Each implementation of attention leaves its file, with figures or with the reason why it cannot run here."""
    environment = {**os.environ, "PYTHON": sys.executable, "ATTENTION": "segments unheard-of"}
    command = ["sh", str(BENCHMARKS / "gpu.sh"), "--toy", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    assert {"segments", "unheard-of"} == set(found), done.stderr
    ours = found["segments"]["engines"]["ours"]
    assert ours["failed"] is None, ours
    assert "attention segments" in ours["note"]
    assert "unheard-of" in found["unheard-of"]["engines"]["ours"]["failed"]
    assert 1 == done.returncode
    assert found["segments"]["machine"]["peak_flops"] > 0
    assert (tmp_path / "torch.txt").read_text()


def test_gpu_script_installs_what_only_the_checkout_has(tmp_path):
    """A package that can be imported in the checkout alone is not installed: it is installed then."""
    python, log = tmp_path / "python", tmp_path / "log"
    asked = f'#!/bin/sh\necho "$*" >>"{log}"\ncase "$*" in *"import minicheck_eval"*) [ -f pyproject.toml ] ;; esac\n'
    python.write_text(asked)
    python.chmod(0o755)
    environment = {**os.environ, "PYTHON": str(python), "ATTENTION": "segments"}
    subprocess.run(["sh", str(BENCHMARKS / "gpu.sh"), "--toy", str(tmp_path / "out")], env=environment, check=True)
    assert "-m pip install --quiet ." in log.read_text().splitlines()
