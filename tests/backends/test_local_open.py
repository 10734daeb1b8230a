"""Any model that was trained to chat is a judge: its scores are those of transformers, one prompt at a time."""

import json
import shutil

import pytest
import torch
from transformers import AutoModelForCausalLM

from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.backends.placement import Placement
from minicheck_eval.errors import BadInput, IntegrityError, ManifestError, ModelUnavailable
from minicheck_eval.loading import load_chat
from minicheck_eval.scoring import Failure, Prompt, Score, Segment, score_stream
from minicheck_eval.store.weights import chat_digests

CPU = Placement(device="cpu")
DOCUMENTS = ("The ferry leaves at nine.", "A ticket costs 12 euros, and 4 for a bicycle. " * 3)
CLAIMS = (" It leaves at nine.", " It is free.", " A bicycle costs 4 euros.")
PROMPTS = [
    Prompt((Segment(f"Document: {document}\nClaim:", False),), (Segment(claim, False),), system)
    for system in ("Answer with Yes or No.", "")
    for document in DOCUMENTS
    for claim in CLAIMS
]


def by_transformers(folder, backend, prompts):
    """P(yes) and P(no) of each prompt, alone and without any mask."""
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = PromptTokenizer(folder / "tokenizer.json")
    found = []
    for prompt in tokenizer.encode([backend.frame.frame(prompt) for prompt in prompts]):
        with torch.inference_mode():
            logits = model(torch.tensor([[*prompt.prefix, *prompt.suffix]]), use_cache=False).logits[0, -1]
        probabilities = logits.softmax(-1)
        words = [tokenizer.text(i).strip().lower() for i in range(len(probabilities))]
        found.append(
            tuple(
                sum(p for p, w in zip(probabilities.tolist(), words, strict=True) if w == word)
                for word in ("yes", "no")
            )
        )
    return found


@pytest.mark.parametrize("alone", [False, True])
def test_scores_are_those_of_transformers(chat_model, alone):
    """Every token that reads yes or no counts; together or alone, each prompt has its own score within 1e-5."""
    backend = load_chat(chat_model, CPU, alone=alone)
    expected = by_transformers(chat_model, backend, PROMPTS)
    assert max(yes for yes, _ in expected) - min(yes for yes, _ in expected) > 1e-3
    for (yes, no), score in zip(expected, backend.score(PROMPTS), strict=True):
        assert isinstance(score, Score)
        assert (score.support, score.refute) == pytest.approx((yes, no), abs=1e-5)
    usage = backend.usage
    assert (usage.prompts, usage.calls) == (len(PROMPTS), len(PROMPTS) if alone else 1)
    assert usage.computed_tokens == usage.asked_tokens if alone else usage.computed_tokens < usage.asked_tokens


def test_a_stream_gives_what_scoring_gives(chat_model):
    """Batches come back in order."""
    backend = load_chat(chat_model, CPU)
    batches = list(score_stream(backend, [PROMPTS[:2], PROMPTS[2:]]))
    assert [2, len(PROMPTS) - 2] == [len(batch) for batch in batches]
    for one, other in zip([s for batch in batches for s in batch], backend.score(PROMPTS), strict=True):
        assert one.support == pytest.approx(other.support, abs=1e-5)


def test_the_window_leaves_room_for_the_frame(chat_model):
    """What fits the window as the judge tells it is scored; what does not fails alone."""
    backend = load_chat(chat_model, CPU, window_tokens=150)
    size = backend.window_tokens
    assert 0 < size < 150
    fits = Prompt((Segment("no" * 1000, False),), (), "")
    while backend.count_tokens([fits.text])[0] > size:
        fits = Prompt((Segment(fits.text[:-2], False),), (), "")
    found = backend.score([fits, Prompt((Segment("no " * 300, False),), (), "")])
    assert isinstance(found[0], Score)
    assert isinstance(found[1], Failure)
    assert "too_long" == found[1].reason


@pytest.mark.parametrize("kind", ["llama", "gemma2", "mistral"])
def test_the_kind_of_attention_is_not_the_folders_to_choose(kind, chat_folder, tmp_path):
    """A config.json that asks for a kind that cannot carry the mask of a tree changes no score."""
    plain = chat_folder(kind)
    folder = shutil.copytree(plain, tmp_path / "m")
    changed(folder, attn_implementation="flex_attention", _attn_implementation="flex_attention")
    assert load_chat(plain, CPU).score(PROMPTS) == load_chat(folder, CPU).score(PROMPTS)


@pytest.mark.parametrize("kind", ["gpt2", "mamba"])
def test_a_model_of_another_kind_is_asked_one_prompt_at_a_time(kind, chat_folder, tmp_path):
    """What no test shows to pack is never packed: absolute positions and recurrent models answer as in transformers."""
    import transformers as tf

    folder = shutil.copytree(chat_folder("llama"), tmp_path / "m")
    size = json.loads((folder / "config.json").read_text())["vocab_size"]
    shape = {"vocab_size": size, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 0}
    torch.manual_seed(1)
    if kind == "gpt2":
        model = tf.GPT2LMHeadModel(tf.GPT2Config(**shape, n_embd=32, n_layer=2, n_head=2, n_positions=300))
    else:
        model = tf.MambaForCausalLM(tf.MambaConfig(**shape, hidden_size=32, num_hidden_layers=2, state_size=4))
    model.save_pretrained(folder)
    backend = load_chat(folder, CPU, window_tokens=300)
    for (yes, no), score in zip(by_transformers(folder, backend, PROMPTS), backend.score(PROMPTS), strict=True):
        assert (score.support, score.refute) == pytest.approx((yes, no), abs=1e-5)
    assert len(PROMPTS) == backend.usage.calls
    together = backend.reply(PROMPTS, most_tokens=4)
    assert 2 * len(PROMPTS) == backend.usage.calls
    assert [backend.reply([prompt], most_tokens=4)[0] for prompt in PROMPTS] == together


def test_a_model_without_a_longest_prompt_is_asked_for_one(chat_folder, tmp_path):
    """A recurrent model does not say how long a prompt may be, so its user does."""
    folder = shutil.copytree(chat_folder("llama"), tmp_path / "m")
    shape = {"model_type": "mamba", "vocab_size": json.loads((folder / "config.json").read_text())["vocab_size"]}
    (folder / "config.json").write_text(json.dumps(shape))
    with pytest.raises(BadInput, match="does not say how long") as caught:
        load_chat(folder, CPU)
    assert "give its window in tokens" == caught.value.hint


def changed(folder, **changes):
    shape = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**shape, **changes}))


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda m: (m / "config.json").unlink(), ManifestError, "is not there"),
        (lambda m: (m / "tokenizer.json").unlink(), ModelUnavailable, "is not there"),
        (lambda m: (m / "model.safetensors").unlink(), ModelUnavailable, "holds no model.safetensors"),
        (lambda m: (m / "chat_template.jinja").unlink(), BadInput, "has no chat template"),
        (lambda m: (m / "adapter_config.json").write_text("{}"), BadInput, "adapter"),
        (lambda m: changed(m, vocab_size=10), IntegrityError, "has ids up to"),
        (lambda m: changed(m, num_hidden_layers=3, layer_types=["full_attention"] * 3), IntegrityError, "lacks"),
        (lambda m: changed(m, num_hidden_layers=1, layer_types=["full_attention"] * 1), IntegrityError, "has besides"),
        (lambda m: changed(m, model_type="nobody-knows"), BadInput, "does not load"),
        (
            lambda m: changed(
                m, model_type="own", auto_map={"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.Own"}
            ),
            BadInput,
            "does not load",
        ),
    ],
)
def test_a_folder_that_is_no_use_is_refused(chat_folder, tmp_path, spoil, error, message):
    """What can be wrong is told in words, before a verdict is given; code beside a model is never run."""
    folder = shutil.copytree(chat_folder("qwen3"), tmp_path / "m")
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    spoil(folder)
    with pytest.raises(error, match=message) as caught:
        load_chat(folder, CPU)
    assert caught.value.hint
    assert not (tmp_path / "ran").exists()


def test_all_that_shapes_the_model_has_a_digest(chat_folder, tmp_path):
    """Weights, vocabulary, template and settings: whoever changes one of them has another judge."""
    folder = shutil.copytree(chat_folder("llama"), tmp_path / "m")
    before = chat_digests(folder)
    for name in before:
        path = folder / name
        kept = path.read_bytes()
        path.write_bytes(kept + b" ")
        assert {name} == {n for n, found in chat_digests(folder).items() if found != before[n]}
        path.write_bytes(kept)
    assert {"model.safetensors", "tokenizer.json", "chat_template.jinja", "config.json"} <= set(before)


def test_a_window_that_the_frame_fills_is_refused(chat_model):
    """No question fits there, and nothing is loaded."""
    with pytest.raises(BadInput, match="a window of 4 tokens does not hold"):
        load_chat(chat_model, CPU, window_tokens=4)


def test_a_window_beyond_the_model_is_refused(chat_model):
    """Positions that the model was never trained for are not used."""
    with pytest.raises(BadInput, match="513 tokens is asked for, and the model has 512"):
        load_chat(chat_model, CPU, window_tokens=513)


def test_a_vocabulary_without_yes_is_refused(tmp_path, chat_folder):
    """A judge that cannot say yes in one token has no score."""
    folder = shutil.copytree(chat_folder("llama"), tmp_path / "m")
    described = json.loads((folder / "tokenizer.json").read_text())
    model = described["model"]
    gone = [piece for piece in model["vocab"] if piece.lower().strip("ġ") == "yes"]
    assert gone
    model["vocab"] = {f"{piece}{piece}" if piece in gone else piece: i for piece, i in model["vocab"].items()}
    model["merges"] = [pair for pair in model["merges"] if "".join(pair) not in gone and not set(pair) & set(gone)]
    (folder / "tokenizer.json").write_text(json.dumps(described))
    with pytest.raises(ManifestError, match=r"'yes' is \d tokens"):
        load_chat(folder, CPU)
