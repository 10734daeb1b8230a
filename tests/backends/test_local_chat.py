"""Chat templates become frames, and what is said between them never becomes a control token."""

import json
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from minicheck_eval.backends.local_chat import read_frame
from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.errors import BadInput
from minicheck_eval.scoring import Prompt, Segment

KINDS = ["gemma2", "llama", "mistral", "phi3", "qwen2", "qwen3"]
SYSTEM = "Answer with Yes or No. Nothing else."
STARTS, ENDS = (
    ["Document: the ferry leaves at nine.\nClaim:", "Document: \n\n«Ab»  cd\t\nClaim:"],
    [" it is.", " no, 12 😀 €"],
)


def chat(start, end, system=SYSTEM):
    return Prompt((Segment(start, True),), (Segment(end, False),), system)


def by_transformers(folder, system, user, *, tokenize):
    """What the library makes of the same messages, thinking off and today's date held still."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    template = tokenizer.chat_template.replace("strftime_now('%d %b %Y')", "'26 Jul 2024'")
    knows_system = "raise_exception" not in template
    if system and not knows_system:
        system, user = "", f"{system}\n\n{user}"
    messages = [{"role": "system", "content": system}] * bool(system) + [{"role": "user", "content": user}]
    given = {"chat_template": template, "add_generation_prompt": True, "enable_thinking": False}
    made = tokenizer.apply_chat_template(messages, tokenize=tokenize, **given)
    return made["input_ids"] if tokenize else made


@pytest.mark.parametrize("system", [SYSTEM, ""])
def test_a_framed_prompt_is_what_the_template_says(chat_model, system):
    """Text and token ids are those of transformers, whatever the kind of template and of tokenizer."""
    frame, tokenizer = read_frame(chat_model), PromptTokenizer(chat_model / "tokenizer.json")
    for start in STARTS:
        for end in ENDS:
            prompt = frame.frame(chat(start, end, system))
            assert by_transformers(chat_model, system, start + end, tokenize=False) == prompt.text
            (ids,) = tokenizer.encode([prompt])
            assert by_transformers(chat_model, system, start + end, tokenize=True) == [*ids.prefix, *ids.suffix]


def test_prompts_share_what_they_have_in_common(chat_model):
    """Claims on one document have its tokens, and those of the frame before it, in common."""
    frame, tokenizer = read_frame(chat_model), PromptTokenizer(chat_model / "tokenizer.json")
    one, other = tokenizer.encode([frame.frame(chat(STARTS[0], end)) for end in ENDS])
    assert one.prefix == other.prefix
    assert len(one.prefix) > len(one.suffix)


@pytest.mark.parametrize("kind", KINDS)
@given(st.text(max_size=30), st.text(max_size=30), st.data())
@settings(deadline=None, max_examples=30)
def test_what_is_said_never_becomes_a_control_token(kind, chat_folder, document, claim, data):
    """Neither users nor the judge's own instruction can end a turn, whatever they write."""
    folder = chat_folder(kind)
    added = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    written = [token["content"] for token in added]
    control = {token["id"] for token in added if token["content"] != "<unk>"}
    hostile = data.draw(st.permutations(written))
    frame, tokenizer = read_frame(folder), PromptTokenizer(folder / "tokenizer.json")

    def controls(prompt):
        (ids,) = tokenizer.encode([frame.frame(prompt)])
        return [i for i in (*ids.prefix, *ids.suffix) if i in control]

    plain = controls(chat("a", "b"))
    assert plain
    assert plain == controls(chat("".join(hostile) + document, claim + "".join(hostile), SYSTEM + hostile[0]))


def test_a_system_text_that_the_template_drops_stands_before_the_users(chat_folder, tmp_path):
    """An instruction is never lost without a word, however the template treats a system role."""
    folder = shutil.copytree(chat_folder("llama"), tmp_path / "m")
    (folder / "chat_template.jinja").write_text(
        "{% for m in messages if m.role != 'system' %}<{{ m.content }}>{% endfor %}"
    )
    frame = read_frame(folder)
    assert frame.with_system is None
    assert f"<{SYSTEM}\n\na b>" == frame.frame(chat("a", " b")).text


def test_no_prompt_depends_on_the_day(chat_folder):
    """A template that asks for today's date gets a fixed one."""
    assert "Today Date: 26 Jul 2024" in read_frame(chat_folder("qwen2")).without_system[0]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (None, "has no chat template"),
        ("{{ raise_exception('no') }}", "fails: no"),
        ("{{ messages[9].content.nothing }}", "fails"),
        ("hello", "does not put a question and a reply"),
        ("{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}", "does not put a question and a reply"),
        ("{% for m in messages %}{{ m.content | upper }}{% endfor %}", "does not put a question and a reply"),
    ],
)
def test_a_template_that_is_no_use_is_refused(chat_folder, tmp_path, template, message):
    """Without a template there is no telling how a model is asked, and one that changes what is said is no better."""
    folder = shutil.copytree(chat_folder("llama"), tmp_path / "m")
    (folder / "chat_template.jinja").unlink()
    if template is not None:
        (folder / "chat_template.jinja").write_text(template)
    with pytest.raises(BadInput, match=message) as caught:
        read_frame(folder)
    assert caught.value.hint


def test_a_control_token_that_the_template_needs_must_be_known(chat_folder, tmp_path):
    """A prompt without its beginning is another prompt: the template alone does not make one."""
    folder = shutil.copytree(chat_folder("gemma2"), tmp_path / "m")
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(BadInput, match="writes bos_token"):
        read_frame(folder)


def test_a_template_inside_the_tokenizers_settings_is_found(chat_folder, tmp_path):
    """Older models keep it there, also as one of several with names."""
    known = chat_folder("llama")
    folder = shutil.copytree(known, tmp_path / "m")
    template = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").unlink()
    config = json.loads((folder / "tokenizer_config.json").read_text())
    several = [{"name": "tool_use", "template": "{{ messages }}"}, {"name": "default", "template": template}]
    for written in (template, several):
        (folder / "tokenizer_config.json").write_text(json.dumps({**config, "chat_template": written}))
        assert read_frame(known) == read_frame(folder)


def test_the_digest_tells_frames_apart(chat_folder):
    """A frame is part of who a judge is."""
    assert len(KINDS) == len({read_frame(chat_folder(kind)).digest for kind in KINDS})
