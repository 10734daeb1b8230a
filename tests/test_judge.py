import numpy as np
import pytest

from minicheck_eval import Document, EvaluationRequest, Evaluator, Outcome, family
from minicheck_eval import judge as door
from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.errors import BadInput, IntegrityError
from minicheck_eval.judge import open_judge
from minicheck_eval.manifest import load_manifest
from minicheck_eval.scoring import Failure

CANARIES = {canary.claim: canary.support for canary in load_manifest("minicheck-nano").manifest.canaries}


def answer(prompt):
    document, claim = prompt.prefix[1].text, prompt.suffix[1].text
    if "broken" in claim:
        return Failure("out_of_memory", "gone")
    return CANARIES.get(claim, 0.9 if claim in document else 0.1)


@pytest.fixture
def backend(monkeypatch):
    """The real door over a fake model."""
    fake = FakeBackend(answer, window_tokens=2048)
    fake.dtype = "float32"
    monkeypatch.setattr(family, "_open_backend", lambda *_: fake)
    return fake


def test_what_is_not_given_comes_from_the_manifest(backend):
    """Threshold, aggregation and chunk size are the manifest's; the identity holds them and the digests."""
    manifest = load_manifest("minicheck-nano").manifest
    identity = open_judge("minicheck-nano").identity
    assert manifest.decision.threshold == identity.threshold
    assert manifest.limits.chunk_tokens == identity.chunk_tokens
    assert ("max", "min") == (identity.chunk_aggregation, identity.claim_aggregation)
    assert {manifest.base.sha256, *(f.sha256 for f in manifest.files)} == set(identity.digests.values())


def test_what_is_given_is_used_and_recorded(backend):
    """A caller's threshold, chunk size and aggregation decide, and change the identity."""
    judge = open_judge("minicheck-nano", threshold=0.95, chunk_tokens=50, claim_aggregation="mean", split_claims=False)
    assert (0.95, 50, "mean") == (
        judge.identity.threshold,
        judge.identity.chunk_tokens,
        judge.identity.claim_aggregation,
    )
    assert judge.identity.digest != open_judge("minicheck-nano").identity.digest
    assert (
        Outcome.FAIL is judge.evaluate(EvaluationRequest.from_documents([Document("It is so.")], "It is so.")).outcome
    )


@pytest.mark.parametrize(
    "wrong", [{"threshold": 2.0}, {"threshold": -0.1}, {"claim_aggregation": "median"}, {"chunk_tokens": 5000}]
)
def test_wrong_settings_are_refused(backend, wrong):
    """A setting that cannot be used is bad input."""
    with pytest.raises(BadInput):
        open_judge("minicheck-nano", **wrong)


def test_a_judge_that_answers_otherwise_is_not_opened(backend):
    """When the model computes something else than it should, there is an error and no verdict."""
    backend.answer = lambda _: 0.5
    with pytest.raises(IntegrityError, match="does not answer as it should"):
        open_judge("minicheck-nano")


def test_judge_is_an_evaluator(backend):
    """A judge keeps the evaluator's contract."""
    assert isinstance(open_judge("minicheck-nano"), Evaluator)


def test_score_is_a_drop_in_for_minicheck(backend):
    """Labels, probabilities, chunks used and the probability of each chunk come back for each pair, claims whole."""
    docs = ["It rains. It pours.", "It rains. It pours.", "", "It rains."]
    claims = ["It rains. It pours.", "It snows.", "It rains.", "broken"]
    labels, supports, chunks, per_chunk = open_judge("minicheck-nano").score(docs=docs, claims=claims)
    assert [1, 0, None, None] == labels
    assert [0.9, 0.1, None, None] == supports
    assert [["It rains. It pours."], ["It rains. It pours."], [], ["It rains."]] == chunks
    assert [[0.9], [0.1], [], [None]] == per_chunk
    assert ([], [], [], []) == open_judge("minicheck-nano").score([], [])


def test_score_takes_a_chunk_size(backend):
    """Documents are cut as the caller asks, and the best chunk counts."""
    labels, _, chunks, per_chunk = open_judge("minicheck-nano").score(
        ["It rains. It pours."], ["It pours."], chunk_size=2
    )
    assert ([1], [["It rains.", "It pours."]], [[0.1, 0.9]]) == (labels, chunks, per_chunk)


def test_score_takes_lists_and_no_single_string(backend):
    """A string is not taken for a list of its characters."""
    with pytest.raises(BadInput, match="one string"):
        open_judge("minicheck-nano").score("abc", "abc")


def test_score_needs_one_document_for_each_claim(backend):
    """Lists of unequal length are refused."""
    with pytest.raises(BadInput, match=r"2 documents for 1 claim\b"):
        open_judge("minicheck-nano").score(["a", "b"], ["c"])


def test_embedded_judge_tells_supported_from_unsupported(nano):
    """The real model says yes to what its document says, and no to what it does not."""
    document = "The refund is paid within 14 days after the parcel has arrived at our warehouse in Leipzig."
    labels, supports, _, _ = nano.score(
        [document] * 2, ["The refund is paid within 14 days.", "The refund is paid in cash at the shop in Vienna."]
    )
    assert [1, 0] == labels
    assert supports[0] > supports[1]


def test_embedded_judges_verdict_does_not_depend_on_its_neighbours(nano):
    """A pair scored alone and among many others has the same support within 1e-5."""
    docs = [f"Order {i} was sent on day {i % 28 + 1} by {name}." for i, name in enumerate(["Ann", "Bob", "Eve"] * 10)]
    claims = [f"Order {i} was sent by Bob." for i in range(30)]
    together = nano.score(docs, claims).max_support_prob
    alone = [nano.score([d], [c]).max_support_prob[0] for d, c in zip(docs[:6], claims[:6], strict=True)]
    np.testing.assert_allclose(alone, together[:6], atol=1e-5)


def test_embedded_judge_works_without_network(nano, no_network):
    """With its weights on the machine, opening and asking touch no network."""
    assert 1 == len(open_judge("minicheck-nano").score(["A cat sat."], ["A cat sat."]).pred_label)


def test_embedded_judge_calls_a_claim_beyond_its_window_invalid(nano):
    """A claim is never cut: one that is too long has no verdict and says why."""
    claim = "The shop sells " + "apples and " * 2000 + "pears."
    response = nano.evaluate(EvaluationRequest.from_documents([Document("The shop sells pears.")], claim))
    assert Outcome.INVALID is response.outcome
    assert "too_long" == response.metadata["claims"][0]["reason"]
    assert "2048" in response.metadata["claims"][0]["detail"]


def test_a_second_look_decides_what_is_near_the_threshold(nano):
    """Where bfloat16 among neighbours gives another verdict than float32 alone, the second look gives float32's."""
    documents = ["The tower was built in 1889 and is 330 metres high.", "Bread needs flour, water, salt and yeast."]
    claims = ["The tower is a bridge.", "The tower is taller than 300 metres.", "Bread needs sugar.", "Salt is needed."]
    exact, fast = nano.evaluator.backend, door.open_judge("minicheck-nano", dtype="bfloat16").evaluator.backend
    prompts = [nano.evaluator.template.fill(document, claim) for document in documents for claim in claims]
    alone = [exact.score([prompt])[0].support for prompt in prompts]
    together = [score.support for score in fast.score(prompts)]
    moved = max(range(len(prompts)), key=lambda i: abs(alone[i] - together[i]) * (0.05 < alone[i] < 0.95))
    border = (alone[moved] + together[moved]) / 2
    assert (alone[moved] > border) != (together[moved] > border)
    judge = door.open_judge("minicheck-nano", dtype="bfloat16", recheck=True, threshold=border)
    assert "rechecked in float32 within" in judge.identity.backend
    assert ("bfloat16", True) == (judge.identity.dtype, judge.identity.recheck)
    twice = [score.support for score in judge.evaluator.backend.score(prompts)]
    assert [support > border for support in alone] == [support > border for support in twice]


def test_a_mean_cannot_be_looked_at_twice():
    """A second look is at single claims, so that a mean over claims is refused."""
    with pytest.raises(BadInput, match="mean"):
        door.open_judge("minicheck-nano", recheck=True, claim_aggregation="mean")
