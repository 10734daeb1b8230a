"""Models of other kinds than Llama, with random weights: packed scores are those of each prompt alone."""

import random

import pytest
import torch
import transformers as tf

from minicheck_eval.engine.plan import plan
from minicheck_eval.engine.reading import read
from minicheck_eval.engine.run import PACKING, TreeModel, packs

YES, NO = torch.tensor([5, 6]), torch.tensor([7])
SIZES = {
    "vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 512, "tie_word_embeddings": False,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
KINDS = {
    "llama": (tf.LlamaConfig, {"hidden_act": "gelu"}),
    "mistral": (tf.MistralConfig, {"sliding_window": 12}),
    "mistral-without-window": (tf.MistralConfig, {"sliding_window": None}),
    "qwen2": (tf.Qwen2Config, {}),
    "qwen2-sliding": (tf.Qwen2Config, {"use_sliding_window": True, "sliding_window": 12, "max_window_layers": 1}),
    "qwen3": (tf.Qwen3Config, {"head_dim": 8}),
    "gemma": (tf.GemmaConfig, {"head_dim": 8}),
    "gemma2": (tf.Gemma2Config, {"head_dim": 8, "sliding_window": 12, "query_pre_attn_scalar": 8}),
    "gemma3_text": (tf.Gemma3TextConfig, {"head_dim": 8, "sliding_window": 12, "query_pre_attn_scalar": 8}),
    "phi3": (tf.Phi3Config, {"sliding_window": 12}),
    "granite": (tf.GraniteConfig, {}),
    "olmo2": (tf.Olmo2Config, {}),
    "smollm3": (tf.SmolLM3Config, {}),
}


def make(kind):
    config_class, changes = KINDS[kind]
    torch.manual_seed(3)
    model = tf.AutoModelForCausalLM.from_config(config_class(**{**SIZES, **changes})).eval()
    with torch.no_grad():
        # Fresh weights are so small that every answer is alike; larger ones tell mistakes apart.
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(8 if model.config.model_type != "granite" else 20)
    return model


def alone(model, prompt):
    with torch.inference_mode():
        logits = model(torch.tensor([[*prompt.prefix, *prompt.suffix]]), use_cache=False).logits[0, -1]
    return logits.softmax(-1)


@pytest.mark.parametrize("kind", KINDS)
def test_packed_scores_equal_one_by_one_scores(kind, random_prompts):
    """Whatever shares a pass, each leaf reads what its prompt alone would give, within 1e-5, sliding or not."""
    model = make(kind)
    assert packs(model.config)
    prompts = random_prompts(random.Random(5))
    assert max(map(len, prompts)) > 2 * 12, "a window of 12 must matter"
    tree, got = TreeModel(model), {}
    (one,) = plan(prompts, budget_tokens=5000, window_tokens=500).passes
    for leaf, yes, no in zip(one.leaves, *(c.tolist() for c in read(tree.logits(one), YES, NO)[:2]), strict=True):
        got.update(dict.fromkeys(leaf.prompts, (yes, no)))
    supports = []
    for i, prompt in enumerate(prompts):
        expected = alone(model, prompt)
        supports.append(float(expected[YES].sum()))
        assert got[i] == pytest.approx((supports[-1], float(expected[NO].sum())), abs=1e-5)
    assert max(supports) - min(supports) > 0.01, "the model must tell prompts apart for this test to mean something"


def test_every_kind_that_packs_is_tested():
    """No kind of model is let share passes without a test."""
    assert {make(kind).config.model_type for kind in KINDS} == PACKING


@pytest.mark.parametrize("rope", ["dynamic", "longrope"])
def test_a_rope_that_depends_on_the_length_goes_alone(rope):
    """A short prompt beside a long one would get the long one's positions."""
    parameters = {"rope_type": rope, "rope_theta": 10000.0, "factor": 2.0}
    if rope == "longrope":
        parameters |= {"short_factor": [1.0] * 4, "long_factor": [2.0] * 4, "original_max_position_embeddings": 64}
    assert not packs(tf.LlamaConfig(**SIZES, rope_parameters=parameters))


@pytest.mark.parametrize("config", [tf.MambaConfig(vocab_size=97, hidden_size=32), tf.GPT2Config(vocab_size=97)])
def test_other_kinds_go_alone(config):
    """A model of a kind that no test shows to pack is never asked to."""
    assert not packs(config)
