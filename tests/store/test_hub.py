"""Judges are fetched from a hub on loopback with the real client of huggingface_hub, and verified."""

import json
import shutil
import subprocess
import sys

import pytest

from minicheck_eval.errors import BadInput, IntegrityError, ManifestError, ModelUnavailable
from minicheck_eval.identity import file_digest
from minicheck_eval.judge import identity_without_weights, open_judge
from minicheck_eval.loading import fetch
from minicheck_eval.manifest import load_manifest

COMMIT = "c0ffee" + "0" * 34
MANIFEST = """
schema = 1
name = "tiny"
summary = "a test"
family = "classifier"
licence = "for tests alone"
revision = "{commit}"
[hub]
repository = "maker/tiny"
revision = "{commit}"
megabytes = 1
[[weights]]
name = "{weights}"
{pin}
[prompt]
prefix = "<s>{{document}}</s>"
suffix = "{{claim}}</s>"
[classes]
supported = 1
unsupported = 0
[limits]
window_tokens = 200
chunk_tokens = 100
[decision]
threshold = 0.5
"""
PAIR = (["The shop opens at nine."], ["The ferry leaves."])


@pytest.fixture
def make_judge(tmp_path, monkeypatch):
    """Write the manifest of a judge on the hub."""
    monkeypatch.setenv("MINICHECK_EVAL_HOME", str(tmp_path / "home"))
    folder = tmp_path / "judge"
    folder.mkdir()

    def make(weights="model.safetensors", sha256=None):
        pin = f'sha256 = "{sha256}"' if sha256 else ""
        (folder / "manifest.toml").write_text(MANIFEST.format(commit=COMMIT, weights=weights, pin=pin))
        return load_manifest(str(folder))

    return make


@pytest.fixture
def model(tiny_models):
    return tiny_models("roberta")


@pytest.fixture
def published(hub, model):
    """The hub with a model, whose weights are safetensors."""
    hub.files = {name: (model / name).read_bytes() for name in ("config.json", "tokenizer.json", "model.safetensors")}
    assert len(hub.files["tokenizer.json"]) < 50_000 < len(hub.files["model.safetensors"])
    return hub


def pickle_of(model, path):
    """Save the model as its makers did, with two names for one tensor."""
    import torch
    from safetensors.torch import load_file

    torch.save(load_file(model / "model.safetensors"), path)
    return path


def test_a_judge_is_fetched_once_verified_and_locked(published, make_judge, model, capsys):
    """The listed files come from the pinned commit; the lock holds their digests; later openings ask nobody."""
    judge = make_judge()
    folder = fetch(judge).folder
    err = capsys.readouterr().err
    assert "licence: for tests alone" in err
    lock = json.loads((folder / "lock.json").read_text())
    digests = {name: file_digest(model / name) for name in published.files}
    assert (COMMIT, "maker/tiny", digests) == (lock["commit"], lock["repository"], lock["files"])
    assert {*published.files, "lock.json"} == {path.name for path in folder.iterdir()}
    asked = len(published.asked)
    opened = open_judge(str(judge.folder))
    assert digests == opened.identity.digests
    assert opened.score(*PAIR).support_prob_per_chunk == open_judge(str(model)).score(*PAIR).support_prob_per_chunk
    assert asked == len(published.asked)
    assert not capsys.readouterr().err


def test_an_opened_judge_touches_no_network(published, make_judge, no_network_after):
    """With the weights at hand opening and asking make no connection."""
    judge = make_judge()
    fetch(judge)
    no_network_after()
    assert 1 == len(open_judge(str(judge.folder)).score(*PAIR).pred_label)


@pytest.fixture
def no_network_after(request):
    return lambda: request.getfixturevalue("no_network")


def test_a_pickle_is_converted_once_and_gone(published, make_judge, model, tmp_path):
    """The published pickle is verified, kept as safetensors and not needed again; verdicts are the same."""
    published.files["pytorch_model.bin"] = pickle_of(model, tmp_path / "pytorch_model.bin").read_bytes()
    pinned = file_digest(tmp_path / "pytorch_model.bin")
    judge = make_judge("pytorch_model.bin", pinned)
    assert {"pytorch_model.bin": pinned} == identity_without_weights(str(judge.folder)).digests
    opened = open_judge(str(judge.folder))
    folder = fetch(judge).folder
    assert not (folder / "pytorch_model.bin").exists()
    assert pinned == opened.identity.digests["pytorch_model.bin"]
    assert opened.score(*PAIR).support_prob_per_chunk == open_judge(str(model)).score(*PAIR).support_prob_per_chunk
    (folder / "model.safetensors").unlink()
    open_judge(str(judge.folder))


def test_a_folder_at_hand_needs_no_network(make_judge, model, tmp_path, no_network, capsys):
    """Files brought by hand are taken; those without a published digest are locked as they are, and it is said."""
    judge = make_judge(sha256=file_digest(model / "model.safetensors"))
    assert (fetch(judge, model).folder / "model.safetensors").is_file()
    assert "tokenizer.json has no published digest and is locked as it is" in capsys.readouterr().err
    assert 1 == len(open_judge(str(judge.folder)).score(*PAIR).pred_label)


def test_wrong_files_at_hand_are_refused(make_judge, model, tmp_path):
    """A folder that lacks a file, or has another one than the pinned, is an error that names it."""
    judge = make_judge(sha256="0" * 64)
    with pytest.raises(IntegrityError, match="the manifest of tiny says 0000"):
        fetch(judge, model)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelUnavailable, match=r"tokenizer\.json is not there"):
        fetch(make_judge(sha256="1" * 64), tmp_path / "empty")
    with pytest.raises(BadInput, match="is not a folder"):
        fetch(judge, model / "config.json")


@pytest.mark.parametrize(
    ("fault", "error", "told"),
    [
        ("gone", ModelUnavailable, ("no such repository", "HF_TOKEN")),
        ("gated", ModelUnavailable, ("access is restricted", "HF_TOKEN")),
        ("revision", ModelUnavailable, ("no such revision", "--from FOLDER")),
        ("other commit", IntegrityError, ("answered with commit bbbb", "HF_ENDPOINT")),
        ("no digest", IntegrityError, ("cannot be verified", "--from FOLDER")),
        ("damaged", IntegrityError, ("not what the server announced", "again")),
    ],
)
def test_what_the_hub_does_wrong_is_told(published, make_judge, fault, error, told):
    """Each fault of the hub is an error in words with a way on, and leaves nothing that would be used."""
    published.fault = fault
    judge = make_judge()
    with pytest.raises(error, match=told[0]) as caught:
        fetch(judge)
    assert told[1] in caught.value.hint
    published.fault = ""
    assert (fetch(judge).folder / "model.safetensors").is_file()


def test_a_missing_file_is_told(published, make_judge):
    """A repository without a listed file is an error that names the file."""
    del published.files["model.safetensors"]
    with pytest.raises(ModelUnavailable, match=r"model\.safetensors of maker/tiny .* no such file"):
        fetch(make_judge())


def test_weights_with_another_digest_than_pinned_are_refused(published, make_judge):
    """What the hub itself announces does not outweigh the manifest."""
    with pytest.raises(IntegrityError, match=r"model\.safetensors has SHA-256 .*, the manifest of tiny says 0000"):
        fetch(make_judge(sha256="0" * 64))


def test_a_cut_connection_is_gone_on_with(published, make_judge):
    """After a cut the rest is asked for, not the whole."""
    published.fault = "cut once"
    fetch(make_judge())
    half = len(published.files["model.safetensors"]) // 2
    assert f"GET /large/model.safetensors bytes={half - half % 1000}-" in published.asked


def test_a_later_fetch_keeps_the_files_that_came(published, make_judge, monkeypatch):
    """When the line stays dead there is an error; the next fetch asks for what is missing alone."""
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _: None)
    published.fault = "cut"
    judge = make_judge()
    with pytest.raises(ModelUnavailable, match=r"model\.safetensors of maker/tiny") as caught:
        fetch(judge)
    assert "files that came are kept" in caught.value.hint
    published.fault, published.asked[:] = "", []
    fetch(judge)
    assert {"model.safetensors"} == {line.split()[1].rpartition("/")[2] for line in published.asked}


def test_another_content_at_the_same_revision_is_refused(published, make_judge):
    """What was once locked cannot be replaced in silence; the error says how to accept it."""
    judge = make_judge()
    folder = fetch(judge).folder
    (folder / "tokenizer.json").unlink()
    published.files["tokenizer.json"] += b" "
    with pytest.raises(IntegrityError, match=r"tokenizer\.json has SHA-256 .* at the same revision") as caught:
        fetch(judge)
    assert str(folder) in caught.value.hint
    shutil.rmtree(folder)
    fetch(judge)


@pytest.fixture
def sharded(hub, make_judge, model, tmp_path):
    """A judge whose weights are published in several files."""
    from transformers import RobertaForSequenceClassification

    folder = tmp_path / "sharded"
    RobertaForSequenceClassification.from_pretrained(model).save_pretrained(folder, max_shard_size="40kB")
    shutil.copy(model / "tokenizer.json", folder)
    hub.files = {path.name: path.read_bytes() for path in folder.iterdir()}
    judge = make_judge("model.safetensors.index.json")
    more = "".join(f'[[weights]]\nname = "{name}"\n' for name in hub.files if name.startswith("model-"))
    with (judge.folder / "manifest.toml").open("a") as stream:
        stream.write(more)
    return load_manifest(str(judge.folder))


def test_weights_that_were_never_verified_are_not_loaded(sharded, model):
    """A stray file that the library would prefer to the verified shards is refused."""
    folder = fetch(sharded).folder
    open_judge(str(sharded.folder))
    shutil.copy(model / "model.safetensors", folder)
    with pytest.raises(IntegrityError, match=r"model\.safetensors is no file of tiny") as caught:
        open_judge(str(sharded.folder))
    assert "remove it" in caught.value.hint


def test_a_shard_that_the_manifest_does_not_list_is_not_loaded(sharded):
    """What the index names beyond the manifest was not verified."""
    folder = fetch(sharded).folder
    path = sharded.folder / "manifest.toml"
    shard = next(file.name for file in sharded.manifest.weights if file.name.startswith("model-"))
    path.write_text(path.read_text().replace(f'[[weights]]\nname = "{shard}"\n', ""))
    shorter = load_manifest(str(sharded.folder))
    other = fetch_into_place(shorter, folder)
    assert (other / shard).is_file()
    with pytest.raises(IntegrityError, match="is no file of tiny"):
        open_judge(str(sharded.folder))


def fetch_into_place(judge, folder):
    """Give a judge the files of another's folder in the store."""
    from minicheck_eval.store.hub_weights import HubWeights

    return shutil.copytree(folder, HubWeights(judge.manifest, judge.manifest.hub).folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_file_that_changed_on_the_disk_is_refused(published, make_judge, name):
    """Each opening checks the files against the lock; the error names the file and the remedy."""
    judge = make_judge()
    path = fetch(judge).folder / name
    good = path.read_bytes()
    path.write_bytes(good + b" ")
    with pytest.raises(IntegrityError, match=name) as caught:
        open_judge(str(judge.folder))
    assert "remove it and run `minicheck-eval fetch tiny`" in caught.value.hint
    path.unlink()
    open_judge(str(judge.folder))
    assert good == path.read_bytes()


def test_a_damaged_lock_is_refused(published, make_judge):
    """A lock that cannot be read is an error, not a reason to lock anew."""
    judge = make_judge()
    (fetch(judge).folder / "lock.json").write_text("{")
    with pytest.raises(IntegrityError, match=r"lock\.json is damaged"):
        open_judge(str(judge.folder))


def test_a_pickle_that_is_none_is_refused(make_judge, model, tmp_path):
    """A file that would run code, or that holds no tensors, is not converted."""
    import pickle

    evil = tmp_path / "evil"
    shutil.copytree(model, evil)
    (evil / "pytorch_model.bin").write_bytes(pickle.dumps(print))
    judge = make_judge("pytorch_model.bin")
    with pytest.raises(IntegrityError, match="is not a file of tensors"):
        fetch(judge, evil)


def test_offline_with_nothing_at_hand_says_so(make_judge):
    """With HF_HUB_OFFLINE the client is asked for nothing, and the error says how to bring the files."""
    judge = make_judge()
    import os

    command = [sys.executable, "-m", "minicheck_eval", "fetch", str(judge.folder)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "HF_HUB_OFFLINE": "1"}
    )
    assert 3 == done.returncode
    assert "the hub cannot be reached" in done.stderr
    assert "--from FOLDER" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_hub_that_does_not_answer_is_told(hub, make_judge, monkeypatch):
    """Without a network there is one error that says how to bring the files, at once."""
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    hub.server.server_close()
    with pytest.raises(ModelUnavailable, match=r"tokenizer\.json of maker/tiny") as caught:
        fetch(make_judge())
    assert "--from FOLDER" in caught.value.hint


def test_a_manifest_may_not_leave_the_revision_open(make_judge):
    """A branch is no revision: what it names may change."""
    judge = make_judge()
    path = judge.folder / "manifest.toml"
    path.write_text(path.read_text().replace(COMMIT, "main"))
    with pytest.raises(ManifestError, match="revision"):
        load_manifest(str(judge.folder))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('[[weights]]\nname = "second.bin"', "a pickle holds a model alone"),
        ('[[weights]]\nname = "model.safetensors"', "a pickle holds a model alone"),
        ('[config]\nname = "other.json"', "a model is loaded by its config.json"),
    ],
)
def test_a_manifest_names_files_that_can_be_verified_and_loaded(make_judge, more, message):
    """Pickles that would overwrite each other are refused, and a configuration that would not be the one loaded."""
    path = make_judge("pytorch_model.bin").folder / "manifest.toml"
    path.write_text(f"{path.read_text()}\n{more}\n")
    with pytest.raises(ManifestError, match=message):
        load_manifest(str(path.parent))
