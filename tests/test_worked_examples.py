"""Two examples that evaluators are known to get wrong, carried through from the file to the verdict."""

import json

import pytest

from minicheck_eval.cli import main
from minicheck_eval.contract import Document, EvaluationRequest, Outcome
from minicheck_eval.judge import open_judge
from minicheck_eval.testing import FakeOllama

LEAVE = [
    {"id": "handbook-7", "text": "Every employee has 28 days of paid leave a year."},
    {"id": "handbook-8", "text": "Up to five days may be carried over to March of the next year."},
]
QUESTION = "How many days of leave do I have?"


def rests_on_context(text):
    """Say yes where each number of the answer, or of the claim, stands in the context, as a careful model would."""
    context, _, answer = text.rpartition("Answer:") if "Answer:" in text else text.rpartition("Claim:")
    said = answer.split("\n\n")[0]
    numbers = [word.strip(".,?") for word in said.split() if word.strip(".,?").replace(".", "").isdigit()]
    shared = sum(word in context.lower() for word in said.lower().split())
    supported = all(number in context.split("Question:")[0] for number in numbers) and shared > len(said.split()) / 2
    return 0.95 if supported else 0.05


@pytest.fixture
def server():
    with FakeOllama(rests_on_context) as server:
        yield server


@pytest.fixture
def run(server, tmp_path, capsys):
    """Run one case as a user would; return exit code and verdict."""

    def run_one(evaluator, **case):
        (tmp_path / "cases.jsonl").write_text(json.dumps({"id": "one", **case}) + "\n")
        judge = f"ollama:{server.url}#bespoke-minicheck"
        command = ["run", str(tmp_path / "cases.jsonl"), "--judge", judge, "--out", str(tmp_path / "r")]
        with pytest.raises(SystemExit) as ended:
            main([*command, "--evaluators", evaluator])
        capsys.readouterr()
        record = json.loads((tmp_path / "r/results.jsonl").read_text())
        return ended.value.code, record["verdicts"][evaluator]

    return run_one


@pytest.mark.parametrize("evaluator", ["fact-checking", "relevancy"])
@pytest.mark.parametrize(
    ("answer", "passes"),
    [("You have 28 days of paid leave a year.", True), ("You have 25 days of leave, as the law says.", False)],
)
def test_an_answer_from_elsewhere_does_not_pass(run, evaluator, answer, passes):
    """With two documents at hand, an answer that rests on neither fails, and one that rests on the first passes."""
    code, verdict = run(evaluator, question=QUESTION, documents=LEAVE, answer=answer)
    assert (0 if passes else 1, passes) == (code, verdict["pass"])


@pytest.mark.parametrize("evaluator", ["fact-checking", "relevancy"])
@pytest.mark.parametrize(
    ("in_scope", "outcome", "reason"), [(True, "fail", "empty_evidence"), (False, "not_checkable", "no_evidence")]
)
def test_a_true_answer_without_evidence_is_not_passed(run, evaluator, in_scope, outcome, reason):
    """Which is larger, 0.18 or 0.2? Whatever the judge knows, without evidence it is not asked and nothing passes."""
    case = {"question": "Which is larger, 0.18 or 0.2?", "answer": "0.2 is larger than 0.18.", "in_scope": in_scope}
    code, verdict = run(evaluator, **case)
    assert (1, outcome, reason) == (code, verdict["outcome"], verdict["metadata"]["reason"])


@pytest.mark.parametrize("evaluator", ["fact-checking", "relevancy"])
def test_without_evidence_a_judge_is_not_even_asked(server, evaluator):
    """The same holds for a judge that is used without a run."""
    with open_judge(f"ollama:{server.url}#bespoke-minicheck", evaluator=evaluator) as judge:
        asked = len(server.requests)
        request = EvaluationRequest("Which is larger, 0.18 or 0.2?", [Document(" ")], "0.2 is larger than 0.18.")
        response = judge.evaluate(request)
        chats = [r for r in server.requests[asked:] if r.path == "/api/chat"]
    assert (Outcome.NOT_CHECKABLE, []) == (response.outcome, chats)
