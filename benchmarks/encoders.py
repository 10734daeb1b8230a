"""Measure encoders (classifiers and seq2seq models) against scoring one case at a time, on this machine.

The models have the shapes of MiniCheck's encoders and RANDOM weights, and the texts are random words: times, tokens and
differences mean something, the supports themselves do not.  A case is one claim with one document, cut into chunks.

  case by case   as the MiniCheck package does: the chunks of a case in batches of 16, padded to the longest
  this package   all chunks of all cases together, sorted by length, in batches of a token budget
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import transformers

from minicheck_eval.backends.local_encoder import EncoderBackend
from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.engine.encode import Family
from minicheck_eval.scoring import Prompt, PromptTemplate, Score

CONTROL = ["<s>", "<pad>", "</s>", "<unk>"]
WORDS = 2000
TEMPLATE = PromptTemplate("<s>{document}</s>", "{claim}</s>")
REFERENCE_ROWS = 16
# width, feed-forward of the classifiers, feed-forward of T5, layers, heads
SHAPES = {"tiny": (64, 128, 128, 2, 4), "base": (768, 3072, 2048, 12, 12), "large": (1024, 4096, 2816, 24, 16)}
FAMILIES: dict[str, Family] = {"roberta": "classifier", "deberta-v3": "classifier", "flan-t5": "seq2seq"}
WINDOWS = {"roberta": 512, "deberta-v3": 2048, "flan-t5": 2048}
CHUNK_WORDS = {"roberta": 400, "deberta-v3": 400, "flan-t5": 500}


@dataclass(frozen=True, slots=True)
class Measured:
    """What one way of scoring took: `seconds` of each repeat, tokens of one repeat."""

    seconds: list[float]
    claims_per_second: float
    tokens_computed: int
    """Padding included."""
    padding_share: float


def build_model(family: str, shape: str, seed: int) -> Any:
    """Return a model with random weights."""
    width, wide, wide_t5, layers, heads = SHAPES[shape]
    kinds: Any = transformers
    torch.manual_seed(seed)
    if family == "flan-t5":
        sizes = {"d_model": width, "d_kv": width // heads, "d_ff": wide_t5, "num_layers": layers, "num_heads": heads}
        rest: dict[str, Any] = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
        config = kinds.T5Config(vocab_size=32128, pad_token_id=1, decoder_start_token_id=1, **sizes, **rest)
        return kinds.T5ForConditionalGeneration(config)
    sizes = {"hidden_size": width, "intermediate_size": wide, "num_hidden_layers": layers, "num_attention_heads": heads}
    if family == "roberta":
        config = kinds.RobertaConfig(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, **sizes)
        model = kinds.RobertaForSequenceClassification(config)
        head = model.classifier.out_proj
    else:
        attention = {"relative_attention": True, "position_buckets": 256, "pos_att_type": ["p2c", "c2p"]}
        rest = {"share_att_key": True, "norm_rel_ebd": "layer_norm", "position_biased_input": False, "pad_token_id": 1}
        config = kinds.DebertaV2Config(
            vocab_size=128100, type_vocab_size=0, pooler_hidden_size=width, **attention, **rest, **sizes
        )
        model = kinds.DebertaV2ForSequenceClassification(config)
        head = model.classifier
    with torch.no_grad():
        # With fresh weights every support is one half; a larger head lets differences show, at any width alike.
        head.weight.mul_(100 / width**0.5)
    return model


def build_tokenizer() -> PromptTokenizer:
    """Return a tokenizer for which each word is one token."""
    vocabulary = {word: i for i, word in enumerate([*CONTROL, *(f"w{i}" for i in range(WORDS))])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, "<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(CONTROL)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        made.save(str(path))
        return PromptTokenizer(path)


def build_cases(number: int, shortest: int, longest: int, chunk_words: int, seed: int) -> list[list[Prompt]]:
    """Return cases, each as the prompts of its chunks; document lengths are spread evenly on a logarithmic scale."""
    random = np.random.default_rng(seed)

    def words(size: int) -> list[str]:
        return [f"w{i}" for i in random.integers(WORDS, size=size)]

    cases = []
    for _ in range(number):
        document = words(round(shortest * (longest / shortest) ** random.random()))
        claim = " ".join(words(int(random.integers(8, 41))))
        starts = range(0, len(document), chunk_words)
        cases.append([TEMPLATE.fill(" ".join(document[at : at + chunk_words]), claim) for at in starts])
    return cases


def one_case_at_a_time(
    model: Any, tokenizer: PromptTokenizer, labels: list[int], cases: Sequence[Sequence[Prompt]]
) -> list[float]:
    """Score as the MiniCheck package does; return the support of each prompt."""
    supports: list[float] = []
    for case in cases:
        ids = [[*prompt.prefix, *prompt.suffix] for prompt in tokenizer.encode(case)]
        for start in range(0, len(ids), REFERENCE_ROWS):
            rows = ids[start : start + REFERENCE_ROWS]
            width = max(map(len, rows))
            padded = torch.tensor([row + [1] * (width - len(row)) for row in rows], device=model.device)
            mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=model.device)
            given: dict[str, Any] = {"input_ids": padded, "attention_mask": mask}
            if model.config.is_encoder_decoder:
                given["decoder_input_ids"] = torch.ones(len(rows), 1, dtype=torch.long, device=model.device)
            with torch.inference_mode():
                logits = model(**given).logits
            logits = logits[:, 0] if model.config.is_encoder_decoder else logits
            supports += logits[:, labels].float().softmax(-1)[:, 0].tolist()
    return supports


def together(backend: EncoderBackend, cases: Sequence[Sequence[Prompt]]) -> list[float]:
    """Score all prompts of all cases at once; return the support of each prompt."""
    scores = backend.score([prompt for case in cases for prompt in case])
    failed = [score for score in scores if not isinstance(score, Score)]
    if failed:
        sys.exit(f"{len(failed)} of {len(scores)} prompts have no score, the first: {failed[0]}")
    return [score.support for score in scores if isinstance(score, Score)]


def measure(
    model: Any, ways: dict[str, Callable[[], list[float]]], claims: int, repeats: int
) -> tuple[dict[str, Measured], float]:
    """Time each way, in turn; return what each took and the largest difference of support."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    tokens: dict[str, tuple[int, int]] = {}
    supports: dict[str, list[float]] = {}
    counted = [0, 0]

    def count(_: Any, __: Any, given: dict[str, Any]) -> None:
        counted[0] += given["input_ids"].numel()
        counted[1] += int(given["attention_mask"].sum())

    # The first round warms up, counts tokens, and is not timed.
    hook = model.register_forward_pre_hook(count, with_kwargs=True)
    for name, score in ways.items():
        counted[:] = [0, 0]
        supports[name] = score()
        tokens[name] = (counted[0], counted[1])
    hook.remove()
    for _ in range(repeats):
        for name, score in ways.items():
            began = time.perf_counter()
            score()
            seconds[name].append(time.perf_counter() - began)
    one, other = supports.values()
    measured = {
        name: Measured(
            seconds=seconds[name],
            claims_per_second=claims / statistics.median(seconds[name]),
            tokens_computed=tokens[name][0],
            padding_share=1 - tokens[name][1] / tokens[name][0],
        )
        for name in ways
    }
    return measured, max(abs(a - b) for a, b in zip(one, other, strict=True))


def run_family(family: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one family; return its part of the report."""
    model = build_model(family, options.shape, options.seed)
    model = model.to(options.device, getattr(torch, options.dtype)).eval()
    tokenizer = build_tokenizer()
    shortest, longest = options.words
    cases = build_cases(options.cases, shortest, longest, CHUNK_WORDS[family], options.seed)
    supported, unsupported = (209, 3) if FAMILIES[family] == "seq2seq" else (1, 0)
    backend = EncoderBackend(
        model,
        tokenizer,
        family=FAMILIES[family],
        supported=supported,
        unsupported=unsupported,
        window_tokens=WINDOWS[family],
        budget_tokens=options.budget,
    )
    ways = {
        "case by case": lambda: one_case_at_a_time(model, tokenizer, [supported, unsupported], cases),
        "this package": lambda: together(backend, cases),
    }
    measured, difference = measure(model, ways, len(cases), options.repeats)
    before, after = measured.values()
    return {
        "family": family,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "prompts": sum(map(len, cases)),
        "ways": {name: asdict(one) for name, one in measured.items()},
        "speed_up": statistics.median(before.seconds) / statistics.median(after.seconds),
        "largest_difference_of_support": difference,
    }


def main() -> None:
    """Measure, print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=[*FAMILIES, "all"], default="all")
    parser.add_argument("--shape", choices=SHAPES, default="large")
    parser.add_argument("--cases", type=int, default=40, help="claims, each with a document of its own")
    parser.add_argument("--words", type=int, nargs=2, default=(30, 1500), metavar=("MIN", "MAX"), help="of a document")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--budget", type=int, help="tokens of a batch, padding included (default: the package's)")
    parser.add_argument("--threads", type=int, help="of PyTorch (default: its own choice)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, metavar="JSON")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)

    families = list(FAMILIES) if options.family == "all" else [options.family]
    report = {
        "weights": "random",
        "settings": {name: value for name, value in vars(options).items() if name not in ("family", "out")},
        "threads": torch.get_num_threads(),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "families": [run_family(family, options) for family in families],
    }
    show(report)
    if options.out:
        options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def show(report: dict[str, Any]) -> None:
    """Print the table."""
    from rich.console import Console
    from rich.table import Table

    settings = report["settings"]
    print(f"{settings['shape']} shapes with RANDOM weights, {settings['dtype']} on {settings['device']}")
    print(f"{settings['cases']} claims, {report['threads']} threads, medians of {settings['repeats']}")
    table = Table("family", "scored")
    for heading in ("claims/s", "faster", "tokens", "padding", "difference"):
        table.add_column(heading, justify="right")
    for one in report["families"]:
        for name, way in one["ways"].items():
            ours = name == "this package"
            table.add_row(
                one["family"],
                name,
                f"{way['claims_per_second']:.2f}",
                f"{one['speed_up']:.2f} ×" if ours else "",
                f"{way['tokens_computed']:,}",
                f"{way['padding_share']:.1%}",
                f"{one['largest_difference_of_support']:.1e}" if ours else "",
            )
        table.add_section()
    Console().print(table)


if __name__ == "__main__":
    main()
