"""Token ids and supports equal those of the reference implementation on a tiny InternLM2 with random weights."""

import json
import math
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

LONG_TOKENS = 600

THETAS = ("theta_1e6", "theta_3052773.67", "theta_formula_tiny")


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
    return folder, template, expected


def plain(pairs):
    return [p for p in pairs if not any(mark in p["doc"] + p["claim"] for mark in CONTROL)]


def tokenizer(folder, *, parity=False, bos="one_bos"):
    return PromptTokenizer(folder / "tokenizer.json", parse_control_tokens=parity, double_bos=bos == "two_bos")


def filled(template, pairs, *, paste=False):
    template = PromptTemplate(template.prefix, template.suffix, paste_claim=paste)
    return [template.fill(p["doc"], p["claim"]) for p in pairs]


def load(folder, rope_theta=None):
    return load_llama(folder, dtype=torch.float32, device=torch.device("cpu"), rope_theta=rope_theta)


def test_token_ids_are_the_references(kit):
    """Every prompt without control tokens in its texts has the reference's ids, with one BOS, whatever is shared."""
    folder, template, expected = kit
    pairs = plain(expected["pairs"])
    assert 25 <= len(pairs)
    for pair, prompt in zip(pairs, tokenizer(folder).encode(filled(template, pairs)), strict=True):
        assert pair["ids_one_bos"] == [*prompt.prefix, *prompt.suffix], pair["id"]


@pytest.mark.parametrize("bos", ["one_bos", "two_bos"])
def test_with_parity_all_token_ids_are_the_references(kit, bos):
    """With parity every prompt has the reference's ids, those with control tokens and placeholders included."""
    folder, template, expected = kit
    pairs = expected["pairs"]
    prompts = tokenizer(folder, parity=True, bos=bos).encode(filled(template, pairs, paste=True))
    for pair, prompt in zip(pairs, prompts, strict=True):
        assert pair[f"ids_{bos}"] == [*prompt.prefix, *prompt.suffix], pair["id"]
    shared = {p["id"]: prompt.prefix for p, prompt in zip(pairs, prompts, strict=True)}
    assert shared["a35-3k-three-sentences"] == shared["a36-same-long-doc"]


def test_golden_ids_of_the_published_example(shared, kit):
    """The published example has the published model's ids, with one BOS and with two."""
    folder, template, _ = kit
    examples = json.loads((shared / "reference" / "golden_ids.json").read_text())["examples"]
    for bos, parity in (("one_bos", False), ("one_bos", True), ("two_bos", True)):
        prompts = tokenizer(folder, parity=parity, bos=bos).encode(filled(template, examples))
        for example, prompt in zip(examples, prompts, strict=True):
            assert example[f"ids_{bos}"] == [*prompt.prefix, *prompt.suffix]


def test_supports_are_the_references(kit):
    """All pairs, packed together, have the reference's support within 1e-5 in float32."""
    folder, template, expected = kit
    pairs = plain(expected["pairs"])
    labels = {"yes": ["Yes", "yes", "YES"], "no": ["No"]}
    backend = LocalBackend(load(folder), tokenizer(folder), window_tokens=32768, **labels)
    for pair, score in zip(pairs, backend.score(filled(template, pairs)), strict=True):
        assert isinstance(score, Score)
        wanted = pair["results"]["theta_1e6"]["one_bos"]
        assert wanted["support_prob_all_yes_ids"] == pytest.approx(score.support, abs=1e-5), pair["id"]


@pytest.mark.parametrize("bos", ["one_bos", "two_bos"])
@pytest.mark.parametrize("theta", THETAS)
def test_with_parity_every_probability_is_the_references(kit, theta, bos):
    """Log-probabilities of each label and the support by the top-5 rule are the reference's within 1e-5.

    Long pairs are asked once, as the package does.
    """
    folder, template, expected = kit
    long = (theta, bos) == ("theta_1e6", "two_bos")
    pairs = [pair for pair in expected["pairs"] if long or pair["n_tokens_two_bos"] < LONG_TOKENS]
    model = load(folder, expected["rope_theta"][theta])
    prompts = filled(template, pairs, paste=True)
    settings = {"tokenizer": tokenizer(folder, parity=True, bos=bos), "window_tokens": 32768}
    by_rule = LocalBackend(model, yes=["Yes"], no=["No"], top5_rule=True, **settings).score(prompts)
    capital = LocalBackend(model, yes=["Yes"], no=["No"], **settings).score(prompts)
    others = LocalBackend(model, yes=["yes"], no=["YES"], **settings).score(prompts)
    for pair, ruled, one, other in zip(pairs, by_rule, capital, others, strict=True):
        wanted = pair["results"][theta][bos]
        assert wanted["support_prob"] == pytest.approx(ruled.support, abs=1e-5), pair["id"]
        assert (0.0 == wanted["support_prob"]) == (0.0 == ruled.support), pair["id"]
        found = {"Yes": one.support, "No": one.refute, "yes": other.support, "YES": other.refute}
        assert wanted["logprob"] == pytest.approx({k: math.log(p) for k, p in found.items()}, abs=1e-5), pair["id"]


def test_the_top5_rule_finds_its_tokens_by_their_text(kit):
    """Tokens that say yes in any case count; one with a leading space does not."""
    folder, _, expected = kit
    ids = expected["token_ids"]
    assert sorted([ids["Yes"], ids["yes"], ids["YES"]]) == tokenizer(folder).ids_of_word("yes")
    zeros = [
        r["two_bos"] for p in expected["pairs"] for r in p["results"].values() if r["two_bos"]["support_prob"] == 0
    ]
    assert zeros


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
        load(broken)
