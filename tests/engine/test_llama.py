import copy

import pytest
import torch
from transformers import MistralConfig, MistralForCausalLM

from minicheck_eval.engine.llama import PackedLlama
from minicheck_eval.engine.plan import TokenPrompt, plan
from minicheck_eval.engine.run import TreeModel

CHANGES = [
    {},
    {"attention_bias": True, "mlp_bias": True},
    {"num_key_value_heads": 4, "head_dim": 12},
    {"tie_word_embeddings": True, "rms_norm_eps": 1e-3},
    {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}},
]


@pytest.mark.parametrize("changes", CHANGES)
@pytest.mark.parametrize("rows", [3, 512])
def test_logits_are_those_of_transformers(changes, rows, tiny_model):
    """Every shape of Llama gives the logits that transformers' own forward pass gives, whatever the tiles."""
    model = tiny_model(1, **changes)
    ids = tuple(range(3, 40))
    with torch.inference_mode():
        expected = copy.deepcopy(model)(torch.tensor([ids]), use_cache=False).logits[0, -1]
    tree = TreeModel(model)
    tree._packed._rows = rows
    (one,) = plan([TokenPrompt(ids[:20], ids[20:])], budget_tokens=100, window_tokens=100).passes
    assert (expected - tree.logits(one)[0]).abs().max() < 1e-4


def test_the_model_keeps_its_own_weights(tiny_model):
    """Joining projections changes nothing for whoever else uses the model, and holds no weight twice."""
    model = tiny_model(2)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    PackedLlama(model.model)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    attention = model.model.layers[0].self_attn
    assert attention.q_proj.weight.untyped_storage().data_ptr() == attention.v_proj.weight.untyped_storage().data_ptr()


def test_another_model_runs_as_transformers_runs_it():
    """A model that is no plain Llama gets the mask of the tree, and the same logits as each prompt alone."""
    torch.manual_seed(0)
    config = MistralConfig(
        vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, sliding_window=None,
    )  # fmt: skip
    model = MistralForCausalLM(config).eval()
    assert not PackedLlama.fits(model.model)
    prompts = [TokenPrompt(tuple(range(30)), (40 + i, 3, 5)) for i in range(4)]
    (one,) = plan(prompts, budget_tokens=100, window_tokens=100).passes
    got = TreeModel(model).logits(one)
    for leaf, logits in zip(one.leaves, got, strict=True):
        prompt = prompts[leaf.prompts[0]]
        with torch.inference_mode():
            expected = model(torch.tensor([prompt.prefix + prompt.suffix]), use_cache=False).logits[0, -1]
        assert (expected - logits).abs().max() < 1e-5
