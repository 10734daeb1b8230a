"""Fixtures that many tests share."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path

import pytest
from hypothesis import settings

from minicheck_eval.errors import ModelUnavailable

# Workers that share the cores compute with one thread each; many times as slow is what more of them are.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# How long an example takes says more about the machine than about the code.
settings.register_profile("house", deadline=None)
settings.load_profile("house")


@pytest.fixture(autouse=True)
def no_pipeline(monkeypatch):
    """Let each test say for itself whether it runs in a pipeline, wherever all of them run."""
    monkeypatch.delenv("CI", raising=False)


@pytest.fixture(scope="session")
def nano():
    """The embedded judge; tests that need it are skipped where its weights cannot be had."""
    from minicheck_eval.judge import open_judge

    try:
        return open_judge("minicheck-nano")
    except ModelUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def no_network(monkeypatch):
    """Make every connection to anything but this process an error."""

    def refuse(self, address, *_):
        raise AssertionError(f"a connection to {address} was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **_: refuse(None, a))


@pytest.fixture(scope="session")
def shared():
    """The folder of labelled data and reference numbers beside the checkout; tests that need it are skipped without."""
    folder = Path(__file__).parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    return folder


CONTROL = ["<unk>", "<s>", "</s>", "<pad>", "[CLS]", "[SEP]", "<|im_start|>", "<|im_end|>"]
SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory):
    """Make folders of tiny models with random weights, in the format of transformers: one for each kind."""
    root = tmp_path_factory.mktemp("tiny-models")
    return lambda kind: _tiny(root / kind, kind)


@pytest.fixture
def tiny_model(tiny_models, tmp_path):
    """Make a copy of a tiny model that a test may change."""
    return lambda kind: Path(shutil.copytree(tiny_models(kind), tmp_path / f"my-{kind}"))


def _tiny(folder, kind):
    if folder.is_dir():
        return folder
    import torch
    import transformers as tf

    torch.manual_seed(7)
    tokenizer = _tokenizer()
    size = {"vocab_size": tokenizer.get_vocab_size()}
    rope = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
    match kind:
        case "llama" | "internlm2":
            config = tf.LlamaConfig(**size, **SIZES, **rope, num_key_value_heads=2, max_position_embeddings=2048)
            model = _says_yes_or_no(tf.LlamaForCausalLM(config), tokenizer)
        case "t5":
            layers = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}
            config = tf.T5Config(**size, **layers, tie_word_embeddings=False, decoder_start_token_id=0)
            model = tf.T5ForConditionalGeneration(config)
        case "roberta":
            config = tf.RobertaConfig(**size, **SIZES, pad_token_id=3, max_position_embeddings=260, type_vocab_size=1)
            model = tf.RobertaForSequenceClassification(config)
        case "deberta-v2":
            relative = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}
            config = tf.DebertaV2Config(**size, **SIZES, **relative, max_position_embeddings=64, pad_token_id=3)
            model = tf.DebertaV2ForSequenceClassification(config)
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    if kind == "t5":
        _untie(folder)
    if kind == "internlm2":
        _as_internlm2(folder)
    return folder


def _tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    from minicheck_eval.manifest import load_manifest

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=CONTROL, initial_alphabet=alphabet, show_progress=False
    )
    # The prompt is in it, so that it has few tokens, and small windows do.
    prompt = load_manifest("bespoke-minicheck-7b").manifest.prompt.prefix
    words = ["Yes", "No", "yes", "YES", "The shop opens at nine and the ferry leaves from pier four.", prompt]
    tokenizer.train_from_iterator(words * 20, trainer)
    return tokenizer


def _says_yes_or_no(model, tokenizer):
    """Let the first number of every hidden state speak against all tokens but Yes and No."""
    import torch

    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] = 1
        model.lm_head.weight[:, 0] = -10
        for label in ("Yes", "No"):
            model.lm_head.weight[tokenizer.token_to_id(label)] = torch.randn(64)
            model.lm_head.weight[tokenizer.token_to_id(label), 0] = 0
    return model


def _untie(folder):
    """Give a T5 an output layer of its own, as Flan-T5 has."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = tensors["shared.weight"].flip(0).contiguous()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    shape = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**shape, "tie_word_embeddings": False}))


def _as_internlm2(folder):
    """Write a Llama under InternLM2's names, with one tensor for query, key and value."""
    import torch
    from safetensors.torch import load_file, save_file

    names = {
        "model.embed_tokens": "model.tok_embeddings", "lm_head": "output", "self_attn.o_proj": "attention.wo",
        "mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2",
        "input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm",
    }  # fmt: skip
    tensors = load_file(folder / "model.safetensors")
    renamed = {}
    for layer in range(2):
        stem = f"model.layers.{layer}"
        q, k, v = (tensors.pop(f"{stem}.self_attn.{part}_proj.weight") for part in "qkv")
        # For each of two key-value heads of 16 rows: its two query heads, its key, its value.
        heads = [part for i in range(2) for part in (q[32 * i :][:32], k[16 * i :][:16], v[16 * i :][:16])]
        renamed[f"{stem}.attention.wqkv.weight"] = torch.cat(heads)
    for name, tensor in tensors.items():
        for old, new in names.items():
            name = name.replace(old, new)  # noqa: PLW2901 - one rename after the other
        renamed[name] = tensor
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})
    shape = json.loads((folder / "config.json").read_text())
    shape.pop("rope_parameters")
    own = {"model_type": "internlm2", "rope_theta": 10000, "bias": False, "rope_scaling": {"type": "dynamic"}}
    (folder / "config.json").write_text(json.dumps({**shape, **own}))
