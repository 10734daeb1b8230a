"""The steps of num_ctx, and the signs of a prompt that was cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicheck_eval.backends.servers.ollama_window import (
    Era,
    TooLong,
    looks_cut,
    next_step,
    read_too_long,
    step_for,
    steps,
)

OLD, MIDDLE, NEW = Era.of("0.12.5"), Era.of("0.24.0"), Era.of("0.33.0")


def test_steps_are_few_powers_of_two():
    """A run over a window of 32,768 tokens uses five values of num_ctx at most, and a small window one."""
    assert [2048, 4096, 8192, 16384, 32768] == steps(32768)
    assert [1500] == steps(1500)
    assert [2048] == steps(2048)
    assert [2048, 4096, 5000] == steps(5000)


@pytest.mark.parametrize(
    ("tokens", "expected"), [(1, 2048), (2047, 2048), (2048, 4096), (4999, 5000), (5000, 5000), (9999, 5000)]
)
def test_a_step_holds_the_prompt_and_the_reply(tokens, expected):
    """The step has room for one token more than the prompt, or is the window."""
    assert expected == step_for(tokens, 5000)


def test_steps_go_up_and_end_at_the_window():
    """After each step comes the next one, and after the window none."""
    assert [4096, 8192, None] == [next_step(step, 8192) for step in (2048, 4096, 8192)]


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_step_is_never_above_the_window(tokens, window):
    """Whatever is asked for, the step is one of the window's, and holds the tokens where any does."""
    step = step_for(tokens, window)
    assert step in steps(window)
    assert step > tokens or step == window


@pytest.mark.parametrize(
    ("version", "logprobs", "refuses", "half", "cached"),
    [
        ("0.3.9", False, False, False, True),
        ("0.12.5", False, False, False, True),
        ("0.12.6", False, True, False, True),
        ("0.12.10", False, True, False, True),
        ("0.12.11", True, True, False, True),
        ("0.24.0", True, True, False, True),
        ("v0.25.0-rc0", True, True, True, True),
        ("0.30.0", True, True, True, False),
        ("0.30.1", True, True, True, True),
        ("0.33.0-rc2", True, True, True, True),
        ("1.0", True, True, True, True),
        ("0.0.0", True, True, True, True),
        ("dev", True, True, True, True),
    ],
)
def test_a_version_tells_what_the_server_can_do(version, logprobs, refuses, half, cached):
    """Versions are compared as numbers, and a build without a number counts as new."""
    era = Era.of(version)
    found = (era.gives_logprobs, era.refuses_long_prompts, era.keeps_half, era.counts_cached_tokens)
    assert (logprobs, refuses, half, cached) == found


@pytest.mark.parametrize("count", [2050, 2051, 4096])
def test_new_versions_cut_to_half_or_all(count):
    """From 0.30 a cut prompt of num_ctx 4096 has 2050 or 2051 tokens; a full context is suspicious as ever."""
    assert looks_cut(count, 4096, 20_000, NEW)
    assert not looks_cut(count, 4096, 4000, NEW)


def test_old_versions_cut_to_the_whole_context():
    """Before 0.30 a cut prompt fills num_ctx, and half of it is a number like any other."""
    for era in (OLD, MIDDLE):
        assert looks_cut(4096, 4096, 20_000, era)
        assert not looks_cut(2050, 4096, 8000, era)
        assert not looks_cut(4095, 4096, 16_000, era)


def test_too_few_tokens_for_the_bytes_are_suspicious():
    """A prompt of 60,000 bytes is not read with 1,500 tokens, in whatever way it was cut."""
    assert looks_cut(1500, 4096, 60_000, MIDDLE)
    assert not looks_cut(1500, 4096, 6000, MIDDLE)


def test_no_count_is_suspicious():
    """Without a count only the bytes can show that the prompt was read whole."""
    assert looks_cut(None, 2048, 2048, OLD)
    assert not looks_cut(None, 2048, 2047, OLD)


ENGINE = {
    "code": 400,
    "message": "request (402 tokens) exceeds the available context size (256 tokens), try increasing it",
    "type": "exceed_context_size_error",
    "n_prompt_tokens": 402,
    "n_ctx": 256,
}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (json.dumps({"error": ENGINE}), TooLong(402)),
        (json.dumps({"error": json.dumps({"error": ENGINE})}), TooLong(402)),
        (ENGINE["message"], TooLong(402)),
        ("the input length exceeds the context length", TooLong()),
        ("the prompt is longer than the context length currently available to the model; ...", TooLong()),
        ('model "x" not found', None),
        ("invalid option", None),
        ("", None),
    ],
)
def test_refusals_for_length_are_read(error, expected):
    """The errors of all versions are known, with the counts where the engine gives them."""
    assert expected == read_too_long(error)
