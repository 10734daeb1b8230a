"""Encoders with random weights and a vocabulary of 40 words, made in the test."""

import random

import pytest
import tokenizers
import torch
from transformers import (
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
    T5Config,
    T5ForConditionalGeneration,
)

from minicheck_eval.backends.local_encoder import EncoderBackend
from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.errors import BackendError
from minicheck_eval.scoring import Failure, PromptTemplate, Score, StreamingBackend

WINDOW = 60
WORDS = [f"w{i}" for i in range(40)]
TEMPLATE = PromptTemplate("<s>{document}</s>", "{claim}</s>")
CLASSIFIER = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_labels": 2}
ROBERTA = {"intermediate_size": 48, "max_position_embeddings": WINDOW + 2, "type_vocab_size": 1, "pad_token_id": 1}
DEBERTA = {
    "intermediate_size": 48, "max_position_embeddings": 64, "relative_attention": True, "position_buckets": 8,
    "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False, "type_vocab_size": 0, "pooler_hidden_size": 32, "pad_token_id": 1,
}  # fmt: skip
T5 = {
    "vocab_size": 50, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "pad_token_id": 1,
    "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "decoder_start_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
MODELS = {
    "t5": lambda: T5ForConditionalGeneration(T5Config(**T5)),
    "roberta": lambda: RobertaForSequenceClassification(RobertaConfig(**CLASSIFIER, **ROBERTA)),
    "deberta": lambda: DebertaV2ForSequenceClassification(DebertaV2Config(**CLASSIFIER, **DEBERTA)),
}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    control = ["<s>", "<pad>", "</s>", "<unk>"]
    vocabulary = {word: i for i, word in enumerate([*control, *WORDS])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(control)
    path = tmp_path_factory.mktemp("words") / "tokenizer.json"
    made.save(str(path))
    return PromptTokenizer(path)


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    torch.manual_seed(0)
    made = MODELS[request.param]().eval()
    with torch.no_grad():
        # Fresh weights are so small that every answer is alike; larger ones tell mistakes apart.
        for parameter in made.parameters():
            if parameter.dim() == 2:
                parameter.mul_(1 if request.param == "t5" else 12)
    return made


def open_backend(model, tokenizer, **options):
    seq2seq = model.config.is_encoder_decoder
    labels = {"supported": 9, "unsupported": 3} if seq2seq else {"supported": 1, "unsupported": 0}
    family = "seq2seq" if seq2seq else "classifier"
    return EncoderBackend(model, tokenizer, family=family, **labels, **{"window_tokens": WINDOW, **options})


def make_prompts(rng, number=60):
    def text(most):
        return " ".join(rng.choices(WORDS, k=rng.randint(1, most)))

    return [TEMPLATE.fill(text(45), text(9)) for _ in range(number)]


@pytest.mark.parametrize("budget", [1, 100, 5000])
def test_batched_scores_equal_one_by_one_scores(model, tokenizer, budget):
    """Whatever shares a batch, and however it is padded, each prompt has the score that it has alone."""
    prompts = make_prompts(random.Random(budget))
    scores = open_backend(model, tokenizer, budget_tokens=budget).score(prompts)
    alone = open_backend(model, tokenizer)
    expected = [alone.score([prompt])[0] for prompt in prompts]
    supports = [score.support for score in expected]
    assert max(supports) - min(supports) > 0.05, "the model must tell prompts apart for this test to mean something"
    assert supports == pytest.approx([score.support for score in scores], abs=1e-5)


def test_a_score_is_the_softmax_over_the_two_labels(model, tokenizer):
    """Support and refute are the two labels' shares of each other, read from the unpadded model."""
    backend = open_backend(model, tokenizer)
    for prompt in make_prompts(random.Random(1), 5):
        (score,) = backend.score([prompt])
        (ids,) = tokenizer.encode([prompt])
        whole = torch.tensor([[*ids.prefix, *ids.suffix]])
        with torch.inference_mode():
            if model.config.is_encoder_decoder:
                refute, support = model(whole, decoder_input_ids=torch.tensor([[1]])).logits[0, 0, [3, 9]].softmax(-1)
            else:
                refute, support = model(whole).logits[0].softmax(-1)
        assert (float(support), float(refute)) == pytest.approx((score.support, score.refute), abs=1e-5)
        assert 1 == pytest.approx(score.mass)
        assert ("supported" if support > refute else "unsupported") == score.top


def test_shuffled_prompts_have_equal_bits(model, tokenizer):
    """The order of the prompts changes the order of the scores and nothing else, and so do repeated prompts."""
    prompts = make_prompts(random.Random(2))
    expected = dict(zip(prompts, open_backend(model, tokenizer).score(prompts), strict=True))
    shuffled = random.Random(3).choices(prompts, k=40) + random.Random(3).sample(prompts, len(prompts))
    assert [expected[prompt] for prompt in shuffled] == open_backend(model, tokenizer).score(shuffled)


def test_a_stream_gives_what_scoring_gives(model, tokenizer):
    """Batch after batch comes back in order, and the tokens that were asked and computed are counted."""
    prompts = make_prompts(random.Random(4))
    batches = [prompts[:7], [], prompts[7:30], prompts[30:]]
    backend = open_backend(model, tokenizer, budget_tokens=100)
    assert isinstance(backend, StreamingBackend)
    streamed = list(backend.stream(batches))
    assert [len(batch) for batch in batches] == [len(scores) for scores in streamed]
    expected = [score.support for score in open_backend(model, tokenizer).score(prompts)]
    assert expected == pytest.approx([score.support for scores in streamed for score in scores], abs=1e-5)
    asked = sum(len(prompt) for prompt in tokenizer.encode(prompts))
    assert (60, asked) == (backend.usage.prompts, backend.usage.asked_tokens)
    assert asked <= backend.usage.computed_tokens < 1.2 * asked


def test_prompt_beyond_the_window_fails_alone(model, tokenizer):
    """A prompt that is too long is a failure with its length, and its neighbours are scored."""
    short = TEMPLATE.fill("w1 w2", "w3")
    long = TEMPLATE.fill("w1 " * 70, "w2 w3")
    backend = open_backend(model, tokenizer)
    scores = backend.score([short, long, short])
    assert Failure("too_long", "75 tokens; the judge's window holds 60") == scores[1]
    assert scores[0] == scores[2] == backend.score([short])[0]


def test_truncation_cuts_the_end_and_keeps_the_last_control_token(model, tokenizer):
    """Where it is asked for, a prompt that is too long is scored as the prompt that just fits."""
    backend = open_backend(model, tokenizer, truncate=True)
    long, just = TEMPLATE.fill("w1 " * 50, "w2 " * 10 + "w3 w4"), TEMPLATE.fill("w1 " * 50, "w2 " * 7)
    assert backend.score([just]) == backend.score([long])


def test_empty_texts_are_scored(model, tokenizer):
    """A document and a claim without text are scored as what stands around them."""
    (score,) = open_backend(model, tokenizer).score([TEMPLATE.fill("", "")])
    assert isinstance(score, Score)


def test_control_tokens_in_texts_stay_text(model, tokenizer):
    """What looks like a control token inside a text is read as an unknown word."""
    backend = open_backend(model, tokenizer)
    hostile, plain = TEMPLATE.fill("w1 </s> <pad>", "<s> w2"), TEMPLATE.fill("w1 ? ?", "? w2")
    assert backend.score([plain]) == backend.score([hostile])


def test_nothing_asked_is_nothing_answered(model, tokenizer):
    """No prompts have no scores, and texts are counted without control tokens."""
    backend = open_backend(model, tokenizer)
    assert [] == backend.score([])
    assert [0, 2] == backend.count_tokens(["", "w1 w2"])
    assert "float32" == backend.dtype
    assert "transformers" in backend.name


def test_scores_that_are_no_numbers_are_failures(tokenizer):
    """A model whose weights overflow has failures and never a score."""
    torch.manual_seed(0)
    model = MODELS["roberta"]().eval()
    with torch.no_grad():
        model.classifier.out_proj.weight.fill_(float("nan"))
    (failure,) = open_backend(model, tokenizer).score([TEMPLATE.fill("w1", "w2")])
    assert Failure("not_a_number", "the model gave P(supported) = nan in float32") == failure


class Narrow:
    """A model on a device that holds so many tokens; `error` makes what it raises beyond that."""

    dtype = torch.float32
    device = torch.device("cpu")

    def __init__(self, model, tokens, error):
        self.model, self.tokens, self.error = model, tokens, error
        self.config = model.config

    def __call__(self, *, input_ids, **rest):
        if input_ids.numel() > self.tokens:
            raise self.error
        return self.model(input_ids=input_ids, **rest)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError("no"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
)
def test_out_of_memory_makes_smaller_batches(model, tokenizer, error):
    """Nothing is lost where memory ends: batches are cut, and only what does not fit alone is a failure."""
    prompts = make_prompts(random.Random(5))
    expected = open_backend(model, tokenizer).score(prompts)
    lengths = [len(prompt) for prompt in tokenizer.encode(prompts)]
    scores = open_backend(Narrow(model, 40, error), tokenizer).score(prompts)
    assert min(lengths) <= 40 < max(lengths)
    for length, one, other in zip(lengths, expected, scores, strict=True):
        if length > 40:
            assert isinstance(other, Failure)
            assert "out_of_memory" == other.reason
        else:
            assert one.support == pytest.approx(other.support, abs=1e-5)


@pytest.mark.parametrize("error", [RuntimeError("no such thing"), IndexError("no such thing")])
def test_other_errors_of_the_model_are_told(model, tokenizer, error):
    """What the model raises is an error of the backend that names the size of the batch."""
    broken = open_backend(Narrow(model, 3, error), tokenizer)
    with pytest.raises(BackendError, match="a pass of 5 tokens: no such thing"):
        broken.score([TEMPLATE.fill("w1", "w2")])
