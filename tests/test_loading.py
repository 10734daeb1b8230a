"""Judges are opened from folders of tiny models on disk, and what is wrong with a folder is told before any scoring."""

import json

import pytest

from minicheck_eval.errors import BackendError, BadInput, IntegrityError, ManifestError, ModelUnavailable
from minicheck_eval.identity import file_digest
from minicheck_eval.judge import identity_without_weights, open_judge
from minicheck_eval.manifest import load_manifest

FAMILY = ["internlm2", "t5", "roberta", "deberta-v2"]
PAIR = (["The shop opens at nine."], ["The ferry leaves."])
MANIFEST = """
schema = 1
name = "my-judge"
summary = "tiny"
family = "causal"
licence = "none"
[prompt]
prefix = "{document}\\nClaim:"
suffix = " {claim}\\n"
[labels]
yes = ["Yes"]
no = ["No"]
[limits]
window_tokens = 500
chunk_tokens = 100
[decision]
threshold = 0.5
"""


def support(judge):
    return judge.score(*PAIR).support_prob_per_chunk[0][0]


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("kind", FAMILY)
def test_a_model_folder_is_asked_as_its_published_relative(tiny_model, kind, no_network):
    """The kind of model is read from config.json; prompt, answers and limits are its relative's."""
    folder = tiny_model(kind)
    judge = open_judge(str(folder))
    assert 0 < support(judge) < 1
    assert folder.name == judge.identity.judge
    files = ["config.json", "tokenizer.json", "model.safetensors"]
    assert {name: file_digest(folder / name) for name in files} == judge.identity.digests


def test_limits_of_a_folder_are_what_its_config_allows(tiny_model):
    """A model with fewer positions than its relative has a smaller window, and keeps the room for prompt and claim."""
    sizes = {kind: identity_without_weights(str(tiny_model(kind))) for kind in FAMILY}
    assert {"internlm2": 2048, "t5": 2048, "roberta": 256, "deberta-v2": 2048} == {
        kind: identity.window_tokens for kind, identity in sizes.items()
    }
    assert (144, 1748) == (sizes["roberta"].chunk_tokens, sizes["internlm2"].chunk_tokens)


def test_internlm2_is_llama_by_other_names(tiny_model):
    """The same weights under InternLM2's names and layout give the same support."""
    folders = [tiny_model("llama"), tiny_model("internlm2")]
    for folder in folders:
        (folder / "manifest.toml").write_text(MANIFEST)
    assert support(open_judge(str(folders[0]))) == pytest.approx(support(open_judge(str(folders[1]))), abs=1e-6)


def test_each_claim_is_judged_alone_whatever_attention_the_config_names(tiny_model, monkeypatch):
    """Under eager attention the mask of a packed pass would hide nothing from a model that runs as the library's."""
    from minicheck_eval.engine.llama import PackedLlama

    folder = tiny_model("llama")
    (folder / "manifest.toml").write_text(MANIFEST)
    edit(folder / "config.json", attn_implementation="eager", _attn_implementation="eager")
    monkeypatch.setattr(PackedLlama, "fits", staticmethod(lambda _: False))
    backend = open_judge(str(folder)).evaluator.backend
    template = load_manifest(str(folder)).manifest.template
    prompts = [template.fill(PAIR[0][0], claim) for claim in ("The shop opens.", "The ferry leaves from pier four.")]
    alone = [backend.score([prompt])[0].support for prompt in prompts]
    assert pytest.approx(alone, abs=1e-5) == [score.support for score in backend.score(prompts)]


def test_a_llama_needs_a_manifest_and_the_hint_is_one(tiny_model):
    """A model that does not say how it is asked is refused; the manifest in the hint works as it stands."""
    folder = tiny_model("llama")
    with pytest.raises(ManifestError, match="does not say how it is asked") as caught:
        open_judge(str(folder))
    manifest = caught.value.hint.partition("\n")[2]
    (folder / "manifest.toml").write_text(manifest)
    assert "my-judge" == open_judge(str(folder)).identity.judge


def test_weights_in_several_files_are_one_model(tiny_model):
    """A sharded folder with its index gives what the single file gives, and all its files are in the identity."""
    from transformers import RobertaForSequenceClassification

    folder = tiny_model("roberta")
    whole = support(open_judge(str(folder)))
    model = RobertaForSequenceClassification.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="40kB")
    judge = open_judge(str(folder))
    assert whole == support(judge)
    shards = {path.name for path in folder.glob("model-*.safetensors")}
    assert 2 <= len(shards)
    assert {"model.safetensors.index.json", *shards} <= set(judge.identity.digests)


def test_a_changed_file_is_another_judge(tiny_model):
    """Digests are those of the files as they are now, also in one process."""
    folder = tiny_model("roberta")
    before = identity_without_weights(str(folder)).digest
    edit(folder / "tokenizer.json", note="changed")
    assert before != identity_without_weights(str(folder)).digest


def test_files_that_the_manifest_pins_are_checked(tiny_model):
    """A folder's manifest may name digests; another file is refused."""
    folder = tiny_model("llama")
    pin = '[[weights]]\nname = "model.safetensors"\nsha256 = "{}"\n'
    (folder / "manifest.toml").write_text(MANIFEST + pin.format(file_digest(folder / "model.safetensors")))
    open_judge(str(folder))
    (folder / "manifest.toml").write_text(MANIFEST + pin.format("0" * 64))
    with pytest.raises(IntegrityError, match=r"model\.safetensors has SHA-256"):
        open_judge(str(folder))


def tensors_of(folder):
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def write(folder, tensors):
    from safetensors.torch import save_file

    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def lack(name):
    def damage(folder):
        tensors = tensors_of(folder)
        del tensors[name]
        write(folder, tensors)

    return damage


def add(folder):
    import torch

    write(folder, {**tensors_of(folder), "model.layers.9.extra.weight": torch.zeros(3)})


def reshape(name):
    def damage(folder):
        tensors = tensors_of(folder)
        tensors[name] = tensors[name][:-1].contiguous()
        write(folder, tensors)

    return damage


def cut(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def rewrite(name, text):
    return lambda folder: (folder / name).write_text(text)


def drop_head_of_shards(folder):
    """Cut a model into several files, leave the output layer out, and let it lie beside them."""
    from safetensors.torch import save_file

    tensors = tensors_of(folder)
    save_file({"lm_head.weight": tensors.pop("lm_head.weight")}, folder / "stray.safetensors")
    save_file(tensors, folder / "model-1.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": dict.fromkeys(tensors, "model-1.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def remove(name):
    return lambda folder: (folder / name).unlink()


def change(**changes):
    return lambda folder: edit(folder / "config.json", **changes)


BROKEN = [
    ("internlm2", lack("model.layers.1.attention.wqkv.weight"), IntegrityError, "lacks model.layers.1"),
    ("t5", lack("lm_head.weight"), IntegrityError, "lacks lm_head.weight"),
    ("t5", lack("shared.weight"), IntegrityError, "lacks shared.weight"),
    ("roberta", change(vocab_size=5), IntegrityError, "has ids up to"),
    ("roberta", lack("classifier.dense.weight"), IntegrityError, "lacks classifier.dense.weight"),
    ("internlm2", add, IntegrityError, "has besides model.layers.9.extra.weight"),
    ("roberta", add, IntegrityError, "has besides model.layers.9.extra.weight"),
    ("internlm2", reshape("output.weight"), IntegrityError, "in another shape"),
    ("deberta-v2", reshape("classifier.weight"), IntegrityError, "in another shape"),
    ("t5", cut, IntegrityError, "model.safetensors is not a whole safetensors file"),
    ("roberta", pickled, BadInput, "pytorch_model.bin is a pickle"),
    ("t5", drop_head_of_shards, IntegrityError, "lacks lm_head.weight"),
    ("roberta", rewrite("adapter_config.json", "{}"), BadInput, "the folder holds an adapter"),
    ("roberta", remove("model.safetensors"), ModelUnavailable, "holds no model.safetensors"),
    ("roberta", remove("tokenizer.json"), ModelUnavailable, "tokenizer.json is not there"),
    ("roberta", rewrite("tokenizer.json", "{}"), IntegrityError, "tokenizer.json is no tokenizer"),
    ("roberta", remove("config.json"), ManifestError, "config.json is not there"),
    ("roberta", rewrite("config.json", "{'a': 1}"), ManifestError, "config.json cannot be read as JSON"),
    ("roberta", rewrite("config.json", "[]"), ManifestError, "config.json names no model_type"),
    ("roberta", change(model_type="bloom"), ManifestError, "type 'bloom'"),
    ("internlm2", change(rope_theta=None), BackendError, "could not be loaded"),
    ("roberta", change(id2label={"0": "x"}), ManifestError, "has 1 answers"),
    ("t5", change(vocab_size=100), ManifestError, "has 100 answers"),
    ("roberta", change(max_position_embeddings=8), ManifestError, "its prompt alone"),
]


@pytest.mark.parametrize(("kind", "damage", "error", "message"), BROKEN)
def test_a_damaged_folder_is_told_with_its_file_and_what_to_do(tiny_model, kind, damage, error, message):
    """Nothing is scored with a model that is not whole; the error names the place and the remedy."""
    folder = tiny_model(kind)
    damage(folder)
    with pytest.raises(error) as caught:
        open_judge(str(folder))
    assert message in str(caught.value)
    assert folder.name in str(caught.value)
    assert caught.value.hint


def test_the_tokenizer_of_another_family_is_refused(tiny_model):
    """A prompt that would end without its control token is no prompt of this model."""
    folder = tiny_model("deberta-v2")
    words = (folder / "tokenizer.json").read_text(encoding="utf-8")
    (folder / "tokenizer.json").write_text(words.replace("[SEP]", "[END]"), encoding="utf-8")
    with pytest.raises(IntegrityError, match="not of the model") as caught:
        open_judge(str(folder))
    assert "tokenizer.json of this model" in caught.value.hint


@pytest.fixture
def unreadable_weights(tiny_model, monkeypatch):
    """A judge whose weights may not be loaded: what is wrong must be found before."""
    from minicheck_eval.backends import local_open

    def refuse(*_, **__):
        raise AssertionError("the weights were loaded")

    monkeypatch.setattr(local_open, "load_llama", refuse)
    folder = tiny_model("llama")
    (folder / "manifest.toml").write_text(MANIFEST)
    return folder


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('yes = ["Yes"]', 'yes = ["Yes, it is"]', "tokens"),
        ("window_tokens = 500", "window_tokens = 5", "its prompt alone"),
        ("window_tokens = 500", "window_tokens = 5000", "the model has 2048 positions"),
        ("chunk_tokens = 100", "chunk_tokens = 500", "chunks of 500 tokens do not fit"),
        ('family = "causal"', 'family = "classifier"', r"\[classes\]"),
        ('[labels]\nyes = ["Yes"]\nno = ["No"]', "", r"\[labels\]"),
    ],
)
def test_what_the_manifest_gets_wrong_is_told_before_weights_are_read(unreadable_weights, old, new, message):
    """Labels, window and chunks are checked with the tokenizer alone."""
    assert old in MANIFEST
    (unreadable_weights / "manifest.toml").write_text(MANIFEST.replace(old, new))
    with pytest.raises(BadInput, match=message):
        open_judge(str(unreadable_weights))


def test_too_many_chunk_tokens_are_refused_before_weights_are_read(unreadable_weights):
    """A setting that cannot be used costs no loading."""
    with pytest.raises(BadInput, match="do not fit") as caught:
        open_judge(str(unreadable_weights), chunk_tokens=499)
    assert "choose chunk_tokens from 1 to" in caught.value.hint


def test_a_vocabulary_without_the_label_is_refused(unreadable_weights):
    """A label that would be read as the unknown token is no label."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "No": 1}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(unreadable_weights / "tokenizer.json"))
    with pytest.raises(ManifestError, match="no token for the label 'Yes'"):
        open_judge(str(unreadable_weights))


@pytest.mark.parametrize("kind", ["internlm2", "t5", "roberta"])
def test_weights_that_are_not_numbers_give_no_verdict(tiny_model, kind):
    """NaN in the weights is a failure of every claim with its reason, never a score."""
    import torch

    from minicheck_eval.contract import Document, EvaluationRequest, Outcome

    folder = tiny_model(kind)
    tensors = tensors_of(folder)
    name = {"internlm2": "output.weight", "t5": "lm_head.weight", "roberta": "classifier.out_proj.bias"}[kind]
    write(folder, {**tensors, name: torch.full_like(tensors[name], torch.nan)})
    request = EvaluationRequest.from_documents([Document("The shop opens at nine.")], "The shop opens.")
    response = open_judge(str(folder)).evaluate(request)
    assert not response.outcome.judged
    assert Outcome.PASS is not response.outcome
    assert "not_a_number" == response.metadata["claims"][0]["reason"]
