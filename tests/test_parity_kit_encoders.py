"""Encoders with parity return what the reference implementation returned, end to end, on three tiny models."""

import json

import pytest
import transformers

from minicheck_eval.backends.local_encoder import EncoderBackend
from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.evaluators.decision import DecisionConfig
from minicheck_eval.evaluators.fact_checking import FactCheckingEvaluator
from minicheck_eval.identity import JudgeIdentity
from minicheck_eval.judge import Judge, open_judge
from minicheck_eval.parity import resolve
from minicheck_eval.scoring import PromptTemplate
from minicheck_eval.text import ReferenceChunking, ReferenceRules

pytestmark = pytest.mark.shared

MODELS = {
    "tiny-flan-t5": ("predict: {document}</s>", "{claim}</s>", {"chunk_unit": "words", "newline_size": 0}),
    "tiny-roberta": ("<s>{document}</s>", "{claim}</s>", {"newline_size": 1}),
    "tiny-deberta-v3": ("[CLS]{document}[SEP]", "{claim}[SEP]", {"newline_size": 0}),
}
CONFIGS = ["default", "chunk30", "chunk100_batch3", "chunk30_maxlen64"]


class Kit:
    def __init__(self, folder):
        self.expected = json.loads((folder / "expected.json").read_text())
        config = transformers.AutoConfig.from_pretrained(folder)
        self.model = getattr(transformers, config.architectures[0]).from_pretrained(folder).float().eval()
        self.family = "seq2seq" if self.model.config.is_encoder_decoder else "classifier"
        self.parity = resolve("reference", family=self.family)
        parse = self.parity.parse_control_tokens
        self.tokenizer = PromptTokenizer(folder / "tokenizer.json", parse_control_tokens=parse)
        prefix, suffix, self.chunking = MODELS[folder.name]
        self.template = PromptTemplate(prefix, suffix, paste_claim=self.parity.paste_claim)

    def judge(self, config):
        """Return a judge with the settings of the reference's run, made without the door, which wants weights."""
        size, window = (self.expected["configs"][config][key] for key in ("chunk_size", "max_model_len"))
        labels = {key: self.expected["labels"][key] for key in ("supported", "unsupported")}
        backend = EncoderBackend(
            self.model,
            self.tokenizer,
            family=self.family,
            window_tokens=window,
            truncate=self.parity.truncate,
            **labels,
        )
        evaluator = FactCheckingEvaluator(
            backend,
            template=self.template,
            chunk_tokens=size,
            decision=DecisionConfig(threshold=0.5),
            split_claims=not self.parity.whole_claims,
            rules=ReferenceRules(ReferenceChunking(chunk_size=size, window=window, **self.chunking), empty_chunk=False),
        )
        identity = JudgeIdentity(
            judge="tiny", model="tiny", revision="1", backend=backend.name, dtype=backend.dtype, prompt_digest="",
            labels_digest="", window_tokens=window, chunk_tokens=size, threshold=0.5, least_mass=0.5,
            chunk_aggregation="max", claim_aggregation="min", splitter="", package="", parity=self.parity,
        )  # fmt: skip
        return Judge(identity=identity, evaluator=evaluator, backends={identity.judge: evaluator.backend})


@pytest.fixture(scope="module", params=MODELS)
def kit(request, shared):
    return Kit(shared / "parity" / request.param)


@pytest.mark.parametrize("config", CONFIGS)
def test_scores_are_the_references(kit, config):
    """Labels, supports, chunks and the support of each chunk, where the claim is cut off too; empty texts have none."""
    pairs = kit.expected["pairs"]
    scores = kit.judge(config).score([p["doc"] for p in pairs], [p["claim"] for p in pairs])
    for pair, label, support, chunks, by_chunk in zip(pairs, *scores, strict=True):
        wanted = kit.expected["results"][config][pair["id"]]
        assert wanted["doc_chunks"] == chunks, pair["id"]
        if "raises" in wanted:
            assert (None, None, []) == (label, support, by_chunk), pair["id"]
            continue
        assert wanted["label"] == label, pair["id"]
        assert wanted["max_support_prob"] == pytest.approx(support, abs=1e-5), pair["id"]
        assert wanted["support_prob_per_chunk"] == pytest.approx(by_chunk, abs=1e-5), pair["id"]


@pytest.mark.parametrize("name", MODELS)
def test_the_folder_is_the_judge(shared, name):
    """Opened as a folder, with the settings of its published relative, the model scores as the reference does."""
    folder = shared / "parity" / name
    expected = json.loads((folder / "expected.json").read_text())
    judge = open_judge(str(folder), parity="reference", dtype="float32", device="cpu")
    results = expected["results"]["default"]
    pairs = [pair for pair in expected["pairs"] if "raises" not in results[pair["id"]]]
    assert 30 <= len(pairs)
    scores = judge.score([pair["doc"] for pair in pairs], [pair["claim"] for pair in pairs])
    for pair, label, support in zip(pairs, scores.pred_label, scores.max_support_prob, strict=True):
        wanted = results[pair["id"]]
        assert wanted["label"] == label, pair["id"]
        assert wanted["max_support_prob"] == pytest.approx(support, abs=1e-5), pair["id"]
