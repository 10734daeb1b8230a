import dataclasses

import pytest

from minicheck_eval.identity import JudgeIdentity, canonical_json, digest

IDENTITY = JudgeIdentity(
    judge="j", model="m", revision="r", digests={"w": "0"}, backend="b", dtype="float32", prompt_digest="p",
    labels_digest="l", window_tokens=100, least_mass=0.5, package="1",
    chunk_tokens=10, threshold=0.5, chunk_aggregation="max", claim_aggregation="min", splitter="s",
)  # fmt: skip


def test_canonical_json_has_one_spelling():
    """The order of keys and white space do not matter, the order of lists does."""
    assert '{"a":[1,2],"b":"ü"}' == canonical_json({"b": "ü", "a": [1, 2]})
    assert digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    assert digest([1, 2]) != digest([2, 1])
    assert 64 == len(digest("\ud800"))


def test_canonical_json_has_no_nan():
    """NaN has no JSON and is refused."""
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(JudgeIdentity)])
def test_every_field_is_in_the_digest(field):
    """A change in any field is another judge."""
    changed = {"digests": {"w": "1"}, "chunk_tokens": 11, "window_tokens": 11, "threshold": 0.6, "least_mass": 0.6}.get(
        field, "changed"
    )
    assert IDENTITY.digest != dataclasses.replace(IDENTITY, **{field: changed}).digest
