"""Replies in words are those of transformers, one prompt at a time, whatever is answered beside them."""

import json
import shutil
import sys

import pytest
import torch
from transformers import AutoModelForCausalLM, GenerationConfig

from minicheck_eval.backends.local import LocalBackend
from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.backends.placement import Placement
from minicheck_eval.errors import BadInput
from minicheck_eval.loading import load_chat
from minicheck_eval.scoring import Failure, Prompt, Reply, Segment

CPU = Placement(device="cpu")
SCHEMA = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "maxLength": 20},
        "score": {"type": "integer", "minimum": 1, "maximum": 5},
    },
    "required": ["reason", "score"],
    "additionalProperties": False,
}


def say(text, system="Answer with Yes or No."):
    return Prompt((Segment(text, False),), (), system)


PROMPTS = [say("Is it so?"), say("The ferry leaves at nine. " * 6), say("Is it so?"), say("No"), say("Document: x")]


@pytest.fixture(scope="session")
def patient(chat_folder, tmp_path_factory):
    """Make a copy of a model whose likeliest token is soon the end of a turn, so that replies have an end."""
    root = tmp_path_factory.mktemp("patient")

    def make(kind):
        folder = root / kind
        if not folder.is_dir():
            shutil.copytree(chat_folder(kind), folder)
            backend = load_chat(folder, CPU)
            model = AutoModelForCausalLM.from_pretrained(folder)
            (end, *_) = backend._inner._replier._stop
            with torch.no_grad():
                model.get_output_embeddings().weight[end] *= 4
            model.save_pretrained(folder)
        return folder

    return make


def one_by_one(folder, backend, prompts, most_tokens):
    """What the library says to each prompt alone, greedily, as text, and whether it came to an end."""
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    model.generation_config = GenerationConfig()
    tokenizer = PromptTokenizer(folder / "tokenizer.json")
    stop = backend._inner._replier._stop
    for prompt in tokenizer.encode([backend.frame.frame(prompt) for prompt in prompts]):
        ids = torch.tensor([[*prompt.prefix, *prompt.suffix]])
        settings = GenerationConfig(
            max_new_tokens=most_tokens, do_sample=False, eos_token_id=stop, pad_token_id=stop[0]
        )
        written = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=settings)[
            0, ids.shape[1] :
        ].tolist()
        ended = written[-1] in stop
        yield Reply(tokenizer.decode(written[:-1] if ended else written), complete=ended)


def test_replies_are_those_of_each_prompt_alone(chat_model):
    """Prompts of all lengths side by side change no word, also where a sliding window is shorter than they are."""
    backend = load_chat(chat_model, CPU)
    found = backend.reply(PROMPTS, most_tokens=12)
    assert list(one_by_one(chat_model, backend, PROMPTS, 12)) == found
    assert found[0] == found[2]
    assert len({reply.text for reply in found}) > 1


@pytest.mark.parametrize("kind", ["llama", "gemma2", "phi3"])
def test_a_reply_ends_with_its_turn(kind, patient):
    """The control token that ends a turn is no part of the reply, and says that it is complete."""
    folder = patient(kind)
    backend = load_chat(folder, CPU)
    found = backend.reply(PROMPTS, most_tokens=40)
    assert list(one_by_one(folder, backend, PROMPTS, 40)) == found
    assert any(reply.complete for reply in found)


def test_the_end_of_a_turn_is_known_from_the_template(chat_folder, tmp_path):
    """Where a model's own settings name another end, as those of base models do, a turn ends all the same."""
    folder = shutil.copytree(chat_folder("gemma2"), tmp_path / "m")
    (folder / "generation_config.json").write_text('{"eos_token_id": 1}')
    tokenizer = PromptTokenizer(folder / "tokenizer.json")
    backend = load_chat(folder, CPU)
    assert {1, tokenizer.control_id("<end_of_turn>")} == set(backend._inner._replier._stop)


def test_the_makers_settings_of_generation_do_not_apply(chat_folder, tmp_path):
    """A penalty on repeated words, or sampling, would make another judge of the same model."""
    plain = chat_folder("llama")
    folder = shutil.copytree(plain, tmp_path / "m")
    settings = {"eos_token_id": 2, "repetition_penalty": 50.0, "do_sample": True, "temperature": 9.0, "max_length": 1}
    (folder / "generation_config.json").write_text(json.dumps(settings))
    assert load_chat(plain, CPU).reply(PROMPTS, most_tokens=12) == load_chat(folder, CPU).reply(PROMPTS, most_tokens=12)


def test_a_reply_keeps_to_its_limit_and_to_the_window(chat_folder):
    """What is cut off says so; a prompt that fills the window has no reply, and fails alone."""
    whole = load_chat(chat_folder("llama"), CPU)
    backend = load_chat(chat_folder("llama"), CPU, window_tokens=120)
    longer = whole.reply(PROMPTS[:1], most_tokens=300)[0].text
    full, cut = backend.reply([say("no " * 200), PROMPTS[0]], most_tokens=300)
    assert isinstance(full, Failure)
    assert "too_long" == full.reason
    assert not cut.complete
    assert 0 < len(cut.text) < len(longer)
    assert longer.startswith(cut.text.rstrip("\ufffd"))


@pytest.mark.parametrize("kind", ["llama", "gemma2", "phi3"])
def test_an_end_beyond_the_window_is_none(kind, patient):
    """A reply that would end one token later is cut off, though its neighbours have room for more."""
    backend = load_chat(patient(kind), CPU)
    ended = [p for p in PROMPTS if (r := backend.reply([p], most_tokens=40)[0]).complete and r.text]
    assert ended
    before = backend.usage
    (whole,) = backend.reply(ended[:1], most_tokens=40)
    spent = backend.usage.minus(before)
    window = spent.asked_tokens + spent.reply_tokens
    assert [whole] == load_chat(patient(kind), CPU, window_tokens=window).reply(ended[:1], most_tokens=40)
    (cut, _) = load_chat(patient(kind), CPU, window_tokens=window - 1).reply([ended[0], say("x")], most_tokens=40)
    assert Reply(whole.text, complete=False) == cut


def test_usage_counts_what_was_asked_and_written(chat_folder):
    """Replies cost tokens, calls and seconds, beside those of scores."""
    backend = load_chat(chat_folder("llama"), CPU)
    backend.score(PROMPTS[:1])
    before = backend.usage
    backend.reply(PROMPTS, most_tokens=5)
    spent = backend.usage.minus(before)
    assert (5, 1) == (spent.prompts, spent.calls)
    assert spent.asked_tokens > 0
    assert spent.computed_tokens > 0
    assert spent.seconds > 0
    assert 4 <= spent.reply_tokens <= 20, "the same prompt is answered once"


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gemma2", "mistral", "phi3"])
def test_a_reply_is_held_to_its_schema(kind, chat_folder):
    """Even a model of random weights replies with JSON that keeps to the schema, in each kind of vocabulary."""
    backend = load_chat(chat_folder(kind), CPU)
    for reply in backend.reply(PROMPTS, schema=SCHEMA, most_tokens=200):
        assert reply.complete
        value = json.loads(reply.text)
        assert ["reason", "score"] == list(value)
        assert 1 <= value["score"] <= 5
        assert 20 >= len(value["reason"])


def test_a_held_reply_does_not_depend_on_its_neighbours(chat_folder):
    """Rows that end earlier than others are left alone."""
    backend = load_chat(chat_folder("llama"), CPU)
    together = backend.reply(PROMPTS, schema=SCHEMA, most_tokens=200)
    assert [backend.reply([prompt], schema=SCHEMA, most_tokens=200)[0] for prompt in PROMPTS] == together


def test_a_schema_that_cannot_be_held_to_is_refused(chat_folder):
    """What the library does not know is an error, and is not left out in silence."""
    with pytest.raises(BadInput, match="cannot be held to this JSON Schema"):
        load_chat(chat_folder("llama"), CPU).reply(PROMPTS, schema={"type": "nonsense"})


def test_without_llguidance_the_command_is_told(chat_folder, monkeypatch):
    """A schema without the library that holds to it is an error with its remedy; free replies need none."""
    monkeypatch.setitem(sys.modules, "llguidance", None)
    backend = load_chat(chat_folder("llama"), CPU)
    assert isinstance(backend.reply(PROMPTS, most_tokens=2)[0], Reply)
    with pytest.raises(BadInput) as caught:
        backend.reply(PROMPTS, schema=SCHEMA)
    assert "pip install 'minicheck-eval[constrained]'" == caught.value.hint


def local(folder, model):
    return LocalBackend(model, PromptTokenizer(folder / "tokenizer.json"), yes=[5], no=[6], window_tokens=500)


def test_numbers_that_run_over_are_no_reply(chat_folder):
    """A token that is likeliest among no numbers means nothing."""
    folder = chat_folder("llama")
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    with torch.no_grad():
        model.lm_head.weight[7] = float("nan")
    (found,) = local(folder, model).reply(PROMPTS[:1], most_tokens=3)
    assert isinstance(found, Failure)
    assert "not_a_number" == found.reason


def test_a_batch_without_room_is_split(chat_folder):
    """Where the memory ends fewer prompts go together, and one that does not fit alone fails alone."""
    folder = chat_folder("llama")
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    generate = model.generate
    longest = PromptTokenizer(folder / "tokenizer.json").count([PROMPTS[1].text])[0]

    def crowded(input_ids, **given):
        if input_ids.numel() >= longest:
            raise torch.OutOfMemoryError("no room")
        return generate(input_ids, **given)

    expected = local(folder, model).reply(PROMPTS, most_tokens=6)
    model.generate = crowded
    found = local(folder, model).reply(PROMPTS, most_tokens=6)
    assert isinstance(found[1], Failure)
    assert "out_of_memory" == found[1].reason
    assert expected[:1] + expected[2:] == found[:1] + found[2:]
