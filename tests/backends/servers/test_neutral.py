"""Control tokens in the texts of users become plain text, and nothing else changes."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicheck_eval.backends.servers.neutral import neutralised

CONTROL = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|start_header_id|>", "<|END_OF_TURN_TOKEN|>",
    "<｜begin▁of▁sentence｜>", "<｜User｜>", "<|turn>", "<turn|>", '<|"|>', "<s>", "</s>", "<bos>", "<eos>", "<EOS>",
    "<unk>", "<UNK>", "<pad>", "<PAD>", "<mask>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<start_of_turn>",
    "<end_of_turn>", "<end_of_utterance>", "[CLS]", "[SEP]", "[MASK]", "[PAD]", "[gMASK]", "<sop>", "<think>",
    "</think>", "<tool_call>", "</tool_call>", "<extra_id_0>", "<unused7>", "[unused7]", "[UNUSED_TOKEN_145]",
    "[TOOL_CALLS]", "[/SYSTEM_PROMPT]", "[THINK]", "[|user|]", "[|endofturn|]", "<reserved_106>", "<BOS_TOKEN>",
    "<fim_prefix>", "<fim-prefix>", "<PRE>", "<EOT>", "<seed:bos>", "</seed:think>", "<mask:0>", "<image>", "[IMG]",
    "[img-0]", "<__media__>", "]~b]", "]~!b[", "[e~[", "<用户>",
]  # fmt: skip

ORDINARY = [
    "E = mc<sup>2</sup> and <strong>bold</strong>, <br/>, <p class=\"a\">, <h1>, <pre>, <span>, <a href='#'>",
    "<!-- a comment --> <my-element> <soap:Body> <?xml version='1.0'?> <video> <audio> <summary>",
    "x < y, a <b, 3 > 2, p(x|y) > 0.5, [1], [12, p. 4], [sic], [...], [Smith et al. 2019], usage: run [args] [prefix]",
    "Array[Int], a[i][j], [x | x <- xs], vector<int>, List<String>, the <|> operator, x |> f, f <| x > y, x <- d |> f",
    "",
]


@pytest.mark.parametrize("token", CONTROL)
def test_control_tokens_are_broken(token):
    """Each control token in use is broken by a space behind its first character, wherever it stands."""
    expected = f"{token[0]} {token[1:]}"
    if token.startswith("<<"):
        assert (expected, True) == neutralised(token)
    plain, found = neutralised(f"The ferry{token}{token} leaves {token}.")
    assert found
    assert token not in plain
    assert f"The ferry{token}{token} leaves {token}.".replace(" ", "") == plain.replace(" ", "")


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays(text):
    """HTML, comparisons, references, generics and operators stay as they are."""
    assert (text, False) == neutralised(text)


def test_tokens_inside_tokens_are_broken():
    """A token that stands inside the remains of another one is broken too."""
    plain, found = neutralised("<|a<|im_end|><s></s>|>[<bos>CLS][[SEP]]")
    assert found
    assert not re.search(r"<\||<s>|</s>|<bos>|\[SEP\]", plain.replace("<|a", ""))


@given(st.lists(st.sampled_from([*CONTROL, *"<>[]|/ _~", "s", "INST", "a", "im_end", "b", "\n"]), max_size=12))
def test_twice_is_once_and_nothing_new_arises(parts):
    """Whatever tokens and pieces of them are put together, one pass leaves none, and only spaces are added."""
    text = "".join(parts)
    plain, found = neutralised(text)
    assert (plain, False) == neutralised(plain)
    assert found == (plain != text)
    assert text.replace(" ", "") == plain.replace(" ", "")


@pytest.mark.parametrize("piece", ["<", "<|", "[", "<a", "[A_", "<a_", "|", "[|"])
def test_hostile_text_takes_linear_time(piece):
    """A long text of openings alone is done in a moment."""
    start = time.perf_counter()
    neutralised(piece * (200_000 // len(piece)))
    assert 5 > time.perf_counter() - start
