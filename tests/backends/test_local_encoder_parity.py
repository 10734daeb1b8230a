"""Token ids and supports equal those of the reference implementation on tiny encoders with random weights."""

import json

import pytest
import transformers

from minicheck_eval.backends.local_encoder import EncoderBackend
from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.scoring import Failure, PromptTemplate

pytestmark = pytest.mark.shared

MODELS = {
    "tiny-flan-t5": ("predict: {document}</s>", "{claim}</s>"),
    "tiny-roberta": ("<s>{document}</s>", "{claim}</s>"),
    "tiny-deberta-v3": ("[CLS]{document}[SEP]", "{claim}[SEP]"),
}
CONFIGS = ["default", "chunk30", "chunk100_batch3", "chunk30_maxlen64"]
SKIPPED = {"a20-eos-in-doc"}
"""Control tokens stand in its texts, so it differs on purpose: here such text stays text."""
EMPTY = {"a14-empty-doc", "a15-blank-doc", "a16-newline-doc"}
"""The reference raises."""


class Kit:
    def __init__(self, folder):
        self.expected = json.loads((folder / "expected.json").read_text())
        self.tokenizer = PromptTokenizer(folder / "tokenizer.json")
        config = transformers.AutoConfig.from_pretrained(folder)
        self.model = getattr(transformers, config.architectures[0]).from_pretrained(folder).float().eval()
        self.template = PromptTemplate(*MODELS[folder.name])

    def backend(self, config, *, truncate=True):
        labels = self.expected["labels"]
        return EncoderBackend(
            self.model,
            self.tokenizer,
            family="seq2seq" if self.model.config.is_encoder_decoder else "classifier",
            supported=labels["supported"],
            unsupported=labels["unsupported"],
            window_tokens=self.expected["configs"][config]["max_model_len"],
            truncate=truncate,
        )

    def pairs(self, config):
        """Each pair that the reference scored, with its result and one prompt for each chunk."""
        for pair in self.expected["pairs"]:
            if pair["id"] not in SKIPPED | EMPTY:
                result = self.expected["results"][config][pair["id"]]
                yield pair["id"], result, [self.template.fill(chunk, pair["claim"]) for chunk in result["doc_chunks"]]


@pytest.fixture(scope="module", params=MODELS)
def kit(request, shared):
    return Kit(shared / "parity" / request.param)


def test_only_pairs_with_control_tokens_or_without_text_are_left_out(kit):
    """What the other tests skip is what differs on purpose and what the reference cannot score."""
    control = kit.tokenizer._control
    pairs = {pair["id"]: pair["doc"] + pair["claim"] for pair in kit.expected["pairs"]}
    assert 37 == len(pairs)
    assert SKIPPED == {name for name, text in pairs.items() if any(mark in text for mark in control)}
    for config in CONFIGS:
        results = kit.expected["results"][config]
        assert EMPTY == {name for name, result in results.items() if "raises" in result}


@pytest.mark.parametrize("config", ["default", "chunk30_maxlen64"])
def test_token_ids_are_the_references(kit, config):
    """Every chunk with its claim has the reference's ids, also where these were cut."""
    backend = kit.backend(config)
    for name, result, prompts in kit.pairs(config):
        ids = [list(backend._ids(prompt)) for prompt in kit.tokenizer.encode(prompts)]
        # The last pair of the kit lists the ids of all pairs before its own.
        assert result["input_ids"][-len(ids) :] == ids, name


@pytest.mark.parametrize("config", CONFIGS)
def test_supports_and_labels_are_the_references(kit, config):
    """All chunks of all pairs, batched together, have the reference's support within 1e-5 in float32."""
    pairs = list(kit.pairs(config))
    assert 33 == len(pairs)
    scores = iter(kit.backend(config).score([prompt for _, _, prompts in pairs for prompt in prompts]))
    for name, result, prompts in pairs:
        found = [next(scores).support for _ in prompts]
        assert result["support_prob_per_chunk"] == pytest.approx(found, abs=1e-5), name
        assert result["max_support_prob"] == pytest.approx(max(found), abs=1e-5), name
        assert result["label"] == int(max(found) > 0.5), name


@pytest.mark.parametrize("config", CONFIGS)
def test_nothing_is_cut_unless_asked(kit, config):
    """By default what the reference would cut is a failure, and what just fits the window is scored."""
    window = kit.expected["configs"][config]["max_model_len"]
    for name, result, prompts in kit.pairs(config):
        lengths = [len(prompt) for prompt in kit.tokenizer.encode(prompts)]
        assert result["n_input_tokens"] == [min(window, length) for length in lengths], name
        # The kit calls an input that just fits truncated as well.
        assert result["truncated"] == [length >= window for length in lengths], name
        scores = kit.backend(config, truncate=False).score(prompts)
        reasons = [score.reason if isinstance(score, Failure) else None for score in scores]
        assert ["too_long" if length > window else None for length in lengths] == reasons, name
