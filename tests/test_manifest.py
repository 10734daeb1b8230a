import shutil

import pytest

from minicheck_eval.errors import ManifestError
from minicheck_eval.identity import file_digest
from minicheck_eval.manifest import judge_names, load_manifest


@pytest.mark.parametrize("name", judge_names())
def test_every_manifest_is_whole(name):
    """Each judge that ships is read, has its name and its licence, and the digests of the files that lie beside it."""
    located = load_manifest(name)
    assert name == located.manifest.name
    assert located.manifest.licence
    at_hand = [file for file in located.manifest.files if (located.folder / file.name).is_file()]
    assert {f.name: f.sha256 for f in at_hand} == {f.name: file_digest(located.folder / f.name) for f in at_hand}
    assert located.manifest.hub or len(at_hand) == len(located.manifest.files)


def test_embedded_judge_has_canaries_and_measured_accuracy():
    """The embedded judge checks itself when it is opened, and says how good it is."""
    manifest = load_manifest("minicheck-nano").manifest
    assert 2 <= len(manifest.canaries)
    assert {True, False} == {canary.support > manifest.decision.threshold for canary in manifest.canaries}
    assert 10 == len(manifest.accuracy)


RELATIVES = ["bespoke-minicheck-7b", "minicheck-deberta-v3-large", "minicheck-flan-t5-large", "minicheck-roberta-large"]


@pytest.mark.parametrize("name", RELATIVES)
def test_relatives_are_pinned_and_say_what_was_published(name):
    """A judge from the hub has a commit, rules of the reference, and published figures apart from ours."""
    manifest = load_manifest(name).manifest
    assert manifest.hub.revision == manifest.revision
    assert any(file.sha256 for file in manifest.weights)
    assert (0.5, 11, {}) == (manifest.decision.threshold, len(manifest.published.balanced_accuracy), manifest.accuracy)
    mean = sum(manifest.published.balanced_accuracy.values()) / 11
    assert manifest.published.average == pytest.approx(mean, abs=0.001)
    assert manifest.reference.window == manifest.limits.window_tokens


def test_non_commercial_weights_say_so():
    """Whoever fetches the 7B judge is told that its weights are non-commercial."""
    assert "non-commercial" in load_manifest("bespoke-minicheck-7b").manifest.licence


def test_unknown_judge_is_an_error_that_lists_the_known():
    """A wrong name says which names there are."""
    with pytest.raises(ManifestError, match="no judge 'minicheck-nan'") as caught:
        load_manifest("minicheck-nan")
    assert "minicheck-nano" in caught.value.hint


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("schema = 1", "schema = 2", "schema"),
        ('family = "causal"', 'family = "oracle"', "family"),
        ('name = "minicheck-nano"', 'nmae = "x"', "nmae: unknown key"),
        ("{claim}", "{clam}", "slots"),
        ("schema = 1", "schema = ", "Invalid value"),
        ("threshold = ", "threshold = 1", "threshold"),
    ],
)
def test_wrong_manifest_names_the_file_and_the_key(tmp_path, old, new, part):
    """A manifest of one's own is checked; the error names the file and what is wrong."""
    folder = tmp_path / "own"
    shutil.copytree(load_manifest("minicheck-nano").folder, folder)
    path = folder / "manifest.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ManifestError, match=part) as caught:
        load_manifest(str(folder))
    assert str(path) in str(caught.value)
