"""Reads how a model of transformers is talked to from the chat template in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from minicheck_eval.backends.framed import ChatFrame
from minicheck_eval.errors import BadInput

__all__ = ["read_frame"]

SYSTEM, USER, REPLY = "SystemTextStandsHere", "UserTextStandsHere", "ReplyStandsHere"

FIXED_DATE = "{% macro strftime_now(format) %}26 Jul 2024{% endmacro %}"
"""Stands before a template, so that no verdict depends on the day; the date is the one of Llama's own templates."""

SETTINGS: dict[str, Any] = {"date_string": "26 Jul 2024", "enable_thinking": False}
"""What templates ask for besides the messages: a judge answers at once."""


def read_frame(folder: Path) -> ChatFrame:
    """Render the chat template of a model folder around marks, in the sandbox of transformers."""
    try:
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
        template = tokenizer.get_chat_template() if tokenizer.chat_template else ""
    except Exception as error:  # what a wrong file makes the library raise has no end
        raise BadInput(f"the tokenizer's files in {folder} cannot be read: {error}", hint="copy them anew") from error
    if not template:
        raise BadInput(
            f"{folder} has no chat template",
            hint="choose a model that was trained to chat (its name mostly ends with Instruct or it), and copy its "
            "chat_template.jinja and tokenizer_config.json into the folder",
        )
    unknown = [name for name in ("bos_token", "eos_token") if name in template and getattr(tokenizer, name) is None]
    if unknown:
        # The template would leave it out without a word.
        raise BadInput(
            f"the chat template in {folder} writes {unknown[0]}, and tokenizer_config.json does not say what it is",
            hint="copy the model's own tokenizer_config.json into the folder",
        )

    def render(*messages: tuple[str, str], ask: bool = True) -> str:
        said = [{"role": role, "content": text} for role, text in messages]
        settings = {"add_generation_prompt": ask, "chat_template": FIXED_DATE + template, **SETTINGS}
        return str(tokenizer.apply_chat_template(said, tokenize=False, **settings))

    try:
        alone = _parts(render(("user", USER)), USER)
        whole = _parts(render(("user", USER), ("assistant", REPLY), ask=False), USER, REPLY)
    except Exception as error:  # what a template raises has no end
        raise BadInput(f"the chat template in {folder} fails: {error}", hint="copy the folder anew") from error
    if alone is None or whole is None:
        raise BadInput(
            f"the chat template in {folder} does not put a question and a reply into the prompt once, as they are",
            hint="copy the model's own chat_template.jinja into the folder",
        )
    try:
        with_system = _parts(render(("system", SYSTEM), ("user", USER)), SYSTEM, USER)
    except Exception:  # noqa: BLE001 - that is how templates refuse a system role
        with_system = None
    return ChatFrame(
        with_system=None if with_system is None else (with_system[0], with_system[1], with_system[2]),
        without_system=(alone[0], alone[1]),
        turn_end=whole[-1],
    )


def _parts(text: str, *marks: str) -> list[str] | None:
    """Cut a text at marks; None unless each is there once, in order."""
    if any(text.count(mark) != 1 for mark in marks):
        return None
    parts = []
    for mark in marks:
        before, found, text = text.partition(mark)
        if not found:
            return None
        parts.append(before)
    return [*parts, text]
