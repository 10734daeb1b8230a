"""A tiny llama with random weights, made in the test, and prompts for it."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from minicheck_eval.engine.plan import TokenPrompt


@pytest.fixture
def tiny_model():
    return make_model


@pytest.fixture
def random_prompts():
    return make_prompts


def make_model(seed=0, **changes):
    settings = {
        "vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 512, "tie_word_embeddings": False,
    }  # fmt: skip
    torch.manual_seed(seed)
    model = LlamaForCausalLM(LlamaConfig(**{**settings, **changes})).eval()
    with torch.no_grad():
        # Fresh weights are so small that every answer is alike; larger ones tell mistakes apart.
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(8)
    return model


def make_prompts(rng, documents=6, claims=3, most=40):
    made = []
    for _ in range(documents):
        prefix = tuple(rng.randrange(97) for _ in range(rng.randint(1, most)))
        made += [TokenPrompt(prefix, tuple(rng.randrange(97) for _ in range(rng.randint(1, 9)))) for _ in range(claims)]
    rng.shuffle(made)
    return made
