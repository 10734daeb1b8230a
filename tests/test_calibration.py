"""Calibration files: what they hold, whom they belong to, and how a judge decides by them."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicheck_eval import Document, EvaluationRequest, Outcome, family
from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.calibration import Calibration, IsotonicMap, PlattMap, binding
from minicheck_eval.errors import BadInput
from minicheck_eval.evaluators.decision import DecisionConfig, decide_claim
from minicheck_eval.general import Task
from minicheck_eval.judge import identity_without_weights, open_judge
from minicheck_eval.manifest import load_manifest
from minicheck_eval.scoring import Score

CANARIES = {canary.claim: canary.support for canary in load_manifest("minicheck-nano").manifest.canaries}
SHARES = st.floats(0, 1)
REQUEST = EvaluationRequest.from_documents([Document("The shop opens at nine. It is blue.")], "It opens at six.")


@pytest.fixture(autouse=True)
def fake_model(monkeypatch):
    """Answer 0.6 to everything but the canaries."""
    fake = FakeBackend(lambda prompt: CANARIES.get(prompt.suffix[1].text, 0.6), window_tokens=2048)
    fake.dtype = "float32"
    monkeypatch.setattr(family, "_open_backend", lambda *_: fake)


@pytest.fixture
def nano_identity():
    return open_judge("minicheck-nano").identity


@pytest.fixture
def make_file(tmp_path, nano_identity):
    """Write a calibration of the embedded judge."""

    def make(**content):
        path = tmp_path / "calibration.json"
        path.write_bytes(Calibration(judge=binding(nano_identity.to_json()), **content).to_bytes())
        return path

    return make


def maps():
    platt = st.builds(PlattMap, slope=st.floats(0.01, 20), intercept=st.floats(-10, 10))
    points = st.lists(st.tuples(SHARES, SHARES), min_size=1, max_size=8, unique_by=lambda pair: pair[0])
    return platt | points.map(
        lambda pairs: IsotonicMap(supports=sorted(x for x, _ in pairs), probabilities=sorted(y for _, y in pairs))
    )


@given(maps(), SHARES, SHARES)
def test_maps_rise_and_stay_probabilities(support_map, one, other):
    """More support never means less, and what comes out is in [0, 1]."""
    low, high = sorted((one, other))
    assert 0 <= support_map(low) <= support_map(high) + 1e-12 <= 1 + 1e-12


@given(maps(), SHARES, SHARES)
def test_the_raw_threshold_decides_as_the_mapped_one(support_map, threshold, support):
    """On both scales the same supports are above the threshold, but for the last digits."""
    config = DecisionConfig(threshold=threshold, support_map=support_map)
    raw = config.raw_threshold
    if abs(support - raw) > 1e-9:
        assert (support > raw) is (support_map(support) > threshold)


@given(st.lists(SHARES, min_size=1, max_size=5), maps())
def test_a_mapped_claim_keeps_its_best_chunk(supports, support_map):
    """The evidence that is shown is the judge's own best, also where the map is level."""
    scores = [Score(support, 1 - support) for support in supports]
    plain = decide_claim(scores, DecisionConfig(threshold=0.0))
    mapped = decide_claim(scores, DecisionConfig(threshold=0.0, support_map=support_map))
    if plain.support:
        assert plain.best_chunk == mapped.best_chunk
        assert mapped.support == support_map(plain.support)


def test_a_map_that_changes_nothing():
    """Slope 1 and intercept 0 are the identity, and so are the ends of an isotonic map."""
    for support in (0.001, 0.3, 0.9):
        assert support == pytest.approx(PlattMap(slope=1.0, intercept=0.0)(support))
        assert support == pytest.approx(IsotonicMap(supports=[0.0, 1.0], probabilities=[0.0, 1.0])(support))


def test_a_threshold_alone(make_file):
    """The file's threshold takes the place of the manifest's, and the score stays the judge's own."""
    assert Outcome.PASS is open_judge("minicheck-nano").evaluate(REQUEST).outcome
    judge = open_judge("minicheck-nano", calibration=make_file(threshold=0.7))
    response = judge.evaluate(REQUEST)
    assert (Outcome.FAIL, 0.6, 0.7) == (response.outcome, response.score, judge.identity.threshold)
    assert "calibrated" not in response.metadata


def test_a_map_turns_supports_into_probabilities(make_file):
    """Score and claims' supports are mapped, the matrix stays as the judge gave it, and the verdict says so."""
    path = make_file(threshold=0.25, map=IsotonicMap(supports=[0.0, 1.0], probabilities=[0.0, 0.5]))
    response = open_judge("minicheck-nano", calibration=path).evaluate(REQUEST)
    assert (Outcome.PASS, 0.3) == (response.outcome, pytest.approx(response.score))
    claim = response.metadata["claims"][0]
    assert (pytest.approx(0.3), [0.6]) == (claim["support"], claim["supports"])
    assert (True, 0.25) == (response.metadata["calibrated"], response.metadata["threshold"])


def test_a_map_alone_moves_the_threshold_with_it(make_file):
    """Without a threshold of its own a map changes no verdict."""
    path = make_file(map=PlattMap(slope=3.0, intercept=-4.0))
    own = open_judge("minicheck-nano").identity.threshold
    judge = open_judge("minicheck-nano", calibration=path)
    assert PlattMap(slope=3.0, intercept=-4.0)(own) == judge.identity.threshold
    assert Outcome.PASS is judge.evaluate(REQUEST).outcome


def test_a_threshold_that_is_given_decides(make_file):
    """A caller's own threshold stands above the file's."""
    assert 0.9 == open_judge("minicheck-nano", threshold=0.9, calibration=make_file(threshold=0.7)).identity.threshold


def test_the_identity_names_the_calibration(make_file):
    """Another calibration is another judge; it is known before anything is opened, and notes change nothing."""
    path = make_file(threshold=0.7)
    opened = open_judge("minicheck-nano", calibration=path).identity
    assert opened.calibration == identity_without_weights("minicheck-nano", calibration=path).calibration != ""
    assert opened.calibration == Calibration.load(make_file(threshold=0.7, cases={"n": 1})).digest
    assert opened.digest != open_judge("minicheck-nano", threshold=0.7).identity.digest


@pytest.mark.parametrize("changed", [{"chunk_tokens": 100}, {"split_claims": False}, {"claim_aggregation": "mean"}])
def test_a_calibration_belongs_to_one_judge(make_file, changed):
    """Opened otherwise than it was calibrated, the judge is another, and the difference is named."""
    with pytest.raises(BadInput, match="made for another judge") as caught:
        open_judge("minicheck-nano", calibration=make_file(threshold=0.7), **changed)
    assert "there and" in str(caught.value)


def test_other_weights_are_another_judge(make_file, nano_identity):
    """The digests of the files bind a calibration; number format, threshold and package do not."""
    found = Calibration.load(make_file(threshold=0.7))
    found.check(replace(nano_identity, dtype="bfloat16", threshold=0.1, package="9", backend="another"))
    with pytest.raises(BadInput, match="digests"):
        found.check(replace(nano_identity, digests={"model.safetensors": "0" * 64}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threshold": 2.0}, "threshold"),
        ({"threshold": None}, "neither a threshold nor a map"),
        ({"schema_version": 2}, "schema_version"),
        ({"colour": "red"}, "unknown key"),
        ({"map": {"kind": "spline"}}, "map"),
        ({"map": {"kind": "platt", "slope": -1.0, "intercept": 0.0}}, "slope"),
        ({"map": {"kind": "isotonic", "supports": [0.5, 0.2], "probabilities": [0.1, 0.2]}}, "should rise"),
        ({"map": {"kind": "isotonic", "supports": [0.2, 0.5], "probabilities": [0.1]}}, "2 supports and 1"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(make_file, change, message):
    """What is wrong with a file is named, and nothing is guessed."""
    path = make_file(threshold=0.7)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(BadInput, match=message):
        open_judge("minicheck-nano", calibration=path)


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]"])
def test_a_file_that_is_none_is_refused(tmp_path, content):
    """A missing, empty or torn file is bad input with a hint."""
    path = tmp_path / "calibration.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        Calibration.load(path)
    assert "calibrate" in caught.value.hint


def test_a_file_is_read_as_it_was_written(make_file):
    """Numbers keep all their digits."""
    wanted = PlattMap(slope=1.0812271959748151, intercept=-0.1)
    assert wanted == Calibration.load(make_file(map=wanted)).map


def test_a_judge_tells_its_backends_which_repetition_this_is():
    """A backend that keeps repetitions apart is told; another one is left alone."""
    judge = open_judge("minicheck-nano")
    judge.repetition(3)
    assert not hasattr(judge.backend, "repeat")
    judge.backend.repeat = 0
    judge.repetition(3)
    assert 3 == judge.backend.repeat


def test_chat_models_are_calibrated_too_but_not_their_rubric():
    """A task takes threshold and map; a rubric gives no support."""
    found = Calibration(judge={}, threshold=0.7)
    assert 0.7 == Task.read(calibration=found).threshold
    assert 0.2 == Task.read(calibration=found, threshold=0.2).threshold
    with pytest.raises(BadInput, match="rubric"):
        Task.read(calibration=found, evaluator="rubric")
