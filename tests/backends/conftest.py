"""Tiny models that chat, with random weights: their tokenizers and templates are of the kinds that are common."""

import json

import pytest

SYSTEM_REFUSED = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
TEMPLATES = {
    # As SmolLM's and Qwen's: a system text of their own where none is given.
    "llama": "{% for m in messages %}{% if loop.first and m['role'] != 'system' %}<|im_start|>system\nBe kind."
    "<|im_end|>\n{% endif %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    # As Qwen3's: it thinks unless it is told not to.
    "qwen3": "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}",
    # As Llama 3's: the beginning is written out, texts are trimmed, and the system text has today's date.
    "qwen2": "{{ bos_token }}{% if strftime_now is defined %}{% set date = strftime_now('%d %b %Y') %}{% endif %}"
    "<|start_header_id|>system<|end_header_id|>\n\nToday Date: {{ date }}\n\n"
    "{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] | trim }}{% set messages = messages[1:] %}"
    "{% endif %}<|eot_id|>{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n"
    "{{ m['content'] | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}",
    # As Gemma's: no system role, and other names.
    "gemma2": "{{ bos_token }}" + SYSTEM_REFUSED + "{% for m in messages %}"
    "<start_of_turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n{{ m['content'] | trim }}<end_of_turn>\n"
    "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}",
    # As Mistral's: the system text is part of the user's, and brackets are control tokens.
    "mistral": "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{% set system = messages[0]['content'] + '\n\n' %}{% set messages = messages[1:] %}"
    "{% endif %}{% for m in messages %}{% if m['role'] == 'user' %}[INST]{{ system if loop.first }}{{ m['content'] }}"
    "[/INST]{% else %} {{ m['content'] }}{{ eos_token }}{% endif %}{% endfor %}",
    # As Phi's: its control tokens swallow the line break behind them.
    "phi3": "{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% else %}{{ eos_token }}{% endif %}",
}  # fmt: skip
CONTROL = {
    "llama": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    "qwen3": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    "qwen2": ["<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"],
    "gemma2": ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"],
    "mistral": ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"],
    "phi3": ["<unk>", "<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"],
}
ENDS = {
    "llama": "<|im_end|>",
    "qwen3": "<|im_end|>",
    "qwen2": "<|eot_id|>",
    "gemma2": "<eos>",
    "mistral": "</s>",
    "phi3": "</s>",
}
STARTS = {"qwen2": "<|begin_of_text|>", "gemma2": "<bos>"}
TEXT = "Yes No yes no YES NO system user assistant model Document: the ferry leaves at nine. Claim: it costs 12 euros."
SIZES = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 512, "tie_word_embeddings": False,
}  # fmt: skip


@pytest.fixture(scope="session")
def chat_folder(tmp_path_factory):
    """Make the folder of a tiny model of a kind that chats."""
    root = tmp_path_factory.mktemp("chat-models")
    return lambda kind: root / kind if (root / kind).is_dir() else _make(root / kind, kind)


@pytest.fixture(params=sorted(TEMPLATES))
def chat_model(request, chat_folder):
    """The folder of each tiny model that chats, in turn."""
    return chat_folder(request.param)


def _make(folder, kind):
    import torch
    import transformers as tf

    folder.mkdir()
    tokenizer = _byte_level(kind) if kind in ("llama", "qwen2", "qwen3") else _sentence_piece(kind)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "chat_template.jinja").write_text(TEMPLATES[kind])
    names = {"bos_token": STARTS.get(kind, "<s>" if kind in ("mistral", "phi3") else None), "eos_token": ENDS[kind]}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **names}))
    ids = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    ends = {"eos_token_id": ids[ENDS[kind]], "bos_token_id": ids.get(names["bos_token"]), "pad_token_id": None}
    # Some rows more than there are tokens, as many models have.
    size = {"vocab_size": len(tokenizer["model"]["vocab"]) + 32, **SIZES, **ends}
    sliding = {"sliding_window": 16}
    config = {
        "llama": lambda: tf.LlamaConfig(**size),
        "qwen2": lambda: tf.Qwen2Config(**size),
        "qwen3": lambda: tf.Qwen3Config(**size, head_dim=8),
        "gemma2": lambda: tf.Gemma2Config(**size, **sliding, head_dim=8, query_pre_attn_scalar=8),
        "mistral": lambda: tf.MistralConfig(**size, **sliding),
        "phi3": lambda: tf.Phi3Config(**size, **sliding),
    }[kind]()
    torch.manual_seed(11)
    model = tf.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        # Fresh weights are so small that every answer is alike; larger ones tell mistakes apart.
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(8)
    model.save_pretrained(folder)
    return folder


def _byte_level(kind):
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    words = pre_tokenizers.Split(Regex(r" ?\w+| ?[^\s\w]+|\s+(?!\S)|\s+"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=450, initial_alphabet=alphabet, special_tokens=CONTROL[kind], show_progress=False
    )
    tokenizer.train_from_iterator([TEXT] * 20, trainer)
    if kind == "qwen3":
        # Control tokens all the same, though they are a part of what a model says.
        tokenizer.add_tokens([AddedToken(text, normalized=False) for text in ("<think>", "</think>")])
    described = json.loads(tokenizer.to_str())
    described["model"]["ignore_merges"] = kind == "qwen2"
    return described


def _sentence_piece(kind):
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    space = normalizers.Replace(" ", "▁")
    trained = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.pre_tokenizer = trained
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=CONTROL[kind], show_progress=False)
    tokenizer.train_from_iterator([TEXT] * 20, trainer)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    if kind == "gemma2":
        tokenizer.pre_tokenizer, tokenizer.normalizer = pre_tokenizers.Split(" ", "merged_with_previous"), space
    if kind == "phi3":
        tokenizer.pre_tokenizer, tokenizer.normalizer = None, normalizers.Sequence([normalizers.Prepend("▁"), space])
    pieces = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(pieces if kind == "gemma2" else [*pieces, decoders.Strip(" ", 1, 0)])
    described = json.loads(tokenizer.to_str())
    vocabulary = described["model"]["vocab"]
    vocabulary.update({f"<0x{byte:02X}>": len(vocabulary) + byte for byte in range(256)})
    for token in described["added_tokens"]:
        token["rstrip"] = kind == "phi3" and token["content"].startswith("<|")
    return described
