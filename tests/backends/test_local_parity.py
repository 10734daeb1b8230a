"""Token ids and supports equal those of the reference implementation on a tiny InternLM2 with random weights."""

import json
import shutil

import pytest
import torch

from minicheck_eval.backends.local import LocalBackend
from minicheck_eval.backends.local_llama import load_llama
from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.errors import IntegrityError
from minicheck_eval.scoring import PromptTemplate, Score

pytestmark = pytest.mark.shared

CONTROL = ("<|", "</s>", "<s>", "<unk>", "[UNUSED", "[CLAIM]")
"""Pairs with these in their texts differ on purpose: here such text never becomes a control token or is filled."""


@pytest.fixture(scope="module")
def kit(shared):
    folder = shared / "parity" / "tiny-internlm2"
    expected = json.loads((folder / "expected.json").read_text())
    user = expected["user_prompt_template"].replace("[DOCUMENT]", "{document}")
    before, after = user.split(" [CLAIM]")
    template = PromptTemplate(
        f"<s><|im_start|>system\n{expected['system_prompt']}<|im_end|>\n<|im_start|>user\n{before}",
        f" {{claim}}{after}<|im_end|>\n<|im_start|>assistant\n",
    )
    pairs = [p for p in expected["pairs"] if not any(mark in p["doc"] + p["claim"] for mark in CONTROL)]
    return folder, template, pairs


def backend(folder):
    labels = {"yes": ["Yes", "yes", "YES"], "no": ["No"]}
    model = load_llama(folder, dtype=torch.float32, device=torch.device("cpu"))
    return LocalBackend(model, PromptTokenizer(folder / "tokenizer.json"), window_tokens=32768, **labels)


def test_token_ids_are_the_references(kit):
    """Every prompt has the reference's ids, with one BOS, whatever is shared."""
    folder, template, pairs = kit
    assert 25 <= len(pairs)
    prompts = PromptTokenizer(folder / "tokenizer.json").encode([template.fill(p["doc"], p["claim"]) for p in pairs])
    for pair, prompt in zip(pairs, prompts, strict=True):
        assert pair["ids_one_bos"] == [*prompt.prefix, *prompt.suffix], pair["id"]


def test_golden_ids_of_the_published_example(shared, kit):
    """The published example has the published model's ids."""
    folder, template, _ = kit
    golden = json.loads((shared / "reference" / "golden_ids.json").read_text())
    prompts = [template.fill(example["doc"], example["claim"]) for example in golden["examples"]]
    for example, prompt in zip(
        golden["examples"], PromptTokenizer(folder / "tokenizer.json").encode(prompts), strict=True
    ):
        assert example["ids_one_bos"] == [*prompt.prefix, *prompt.suffix]


def test_supports_are_the_references(kit):
    """All pairs, packed together, have the reference's support within 1e-5 in float32."""
    folder, template, pairs = kit
    scores = backend(folder).score([template.fill(p["doc"], p["claim"]) for p in pairs])
    for pair, score in zip(pairs, scores, strict=True):
        assert isinstance(score, Score)
        expected = pair["results"]["theta_1e6"]["one_bos"]
        assert expected["support_prob_all_yes_ids"] == pytest.approx(score.support, abs=1e-5), pair["id"]


def test_a_model_without_all_its_tensors_is_refused(kit, tmp_path):
    """A file that lacks tensors is an error; missing weights are never made up."""
    from safetensors.torch import load_file, save_file

    folder, _, _ = kit
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.attention.wo.weight"]
    save_file(tensors, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(IntegrityError, match="does not hold the tensors"):
        backend(broken)
