"""Train the adapter of minicheck-nano: LoRA on SmolLM2-135M-Instruct, one document with all its claims at a time.

Each training row is a small tree, as in the engine: the document once, every claim a branch of it that sees the
document and itself.  The loss is the cross-entropy of the first reply token ("Yes" or "No") over the whole vocabulary,
so that the trained score means what the score of the larger judges means: the probability of a yes among all tokens.

    python train.py --base BASE_DIR --data DIR_OF_JSONL_GZ --out OUT_DIR --minutes 90

BASE_DIR holds the dense base weights (`python train.py --unpack FILE.gguf --base BASE_DIR` writes them).
Rows of the data are `dataset, document, claim, label`.  Nothing outside DATA is read; checkpoints are judged on documents
held out from DATA itself.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import random
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch.nn import functional as F

YES, NO = "Yes", "No"

# Share of each data set's documents that is used, and how many premises of a short data set make up one document.
RECIPE = {
    "defacto": (1.0, 1),
    "fib": (1.0, 1),
    "bump": (1.0, 1),
    "cg2c_doc": (1.0, 1),
    "scifact": (1.0, 1),
    "faithdial_audit": (1.0, 2),
    "fm2": (1.0, 6),
    "fever_symmetric": (1.0, 6),
    "docnli_fever": (0.5, 3),
    "paws": (0.3, 8),
    "docnli_mnli": (0.3, 10),
    "scitail": (1.0, 10),
    "snli_counterfactual": (0.15, 2),
    "snli_dev": (0.15, 2),
    "conjnli": (1.0, 8),
}
GROUNDED = {"defacto", "fib", "bump", "cg2c_doc", "scifact"}
HELD_OUT_PERCENT = 4
LENGTHS = (192, 320, 448, 576, 768, 1024, 1472)


@dataclass
class Branch:
    """One claim of a tree, its label and how much it counts."""

    claim: str
    label: int
    weight: float


@dataclass
class Tree:
    """One document and the claims asked of it."""

    dataset: str
    document: str
    branches: list[Branch] = field(default_factory=list)


# ---------------------------------------------------------------- data


def read_rows(folder: Path) -> dict[str, dict[str, list[tuple[str, int]]]]:
    """Return data set → document → claims with labels."""
    data: dict[str, dict[str, list[tuple[str, int]]]] = {}
    for name in RECIPE:
        documents: dict[str, list[tuple[str, int]]] = defaultdict(list)
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                documents[" ".join(row["document"].split())].append((row["claim"].strip(), int(row["label"])))
        data[name] = dict(documents)
    return data


def is_held_out(document: str) -> bool:
    """Tell whether a document belongs to the validation part: a fixed share by digest, so that it never moves."""
    return int(hashlib.sha256(document.encode()).hexdigest(), 16) % 100 < HELD_OUT_PERCENT


def class_weights(documents: dict[str, list[tuple[str, int]]]) -> dict[int, float]:
    """Weigh the two labels of a data set alike, within reason."""
    labels = [label for claims in documents.values() for _, label in claims]
    share = sum(labels) / len(labels)
    return {1: min(4.0, 0.5 / share), 0: min(4.0, 0.5 / (1 - share))}


def sentences(text: str) -> list[str]:
    return [s for s in re.split(r"(?<=[.!?])\s+(?=[\"'A-Z0-9])", text) if s]


def words(text: str) -> set[str]:
    return {w for w in re.findall(r"\w+", text.lower()) if len(w) > 3}


NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def spoil(claim: str, document: str, rng: random.Random) -> str | None:
    """Change one fact of a supported claim (a number, a name, a negation); None where nothing can be changed safely."""
    ways = [spoil_number, spoil_name, spoil_negation]
    rng.shuffle(ways)
    if NUMBER.search(claim) and rng.random() < 0.6:
        ways.insert(0, spoil_number)
    for way in ways:
        spoiled = way(claim, document, rng)
        if spoiled and spoiled != claim and spoiled not in document:
            return spoiled
    return None


def spoil_number(claim: str, document: str, rng: random.Random) -> str | None:
    found = list(NUMBER.finditer(claim))
    if not found:
        return None
    spot = rng.choice(found)
    others = [n for n in NUMBER.findall(document) if n != spot[0] and len(n) == len(spot[0])]
    if others and rng.random() < 0.4:
        new = rng.choice(others)
    else:
        digits = [i for i, c in enumerate(spot[0]) if c.isdigit()]
        at = rng.choice(digits)
        choices = [d for d in "123456789" if d != spot[0][at]]
        new = spot[0][:at] + rng.choice(choices) + spot[0][at + 1 :]
    return claim[: spot.start()] + new + claim[spot.end() :]


def spoil_name(claim: str, document: str, rng: random.Random) -> str | None:
    found = list(NAME.finditer(claim))
    if not found:
        return None
    spot = rng.choice(found)
    others = [n for n in NAME.findall(document) if n not in claim and spot[0] not in n]
    return claim[: spot.start()] + rng.choice(others) + claim[spot.end() :] if others else None


NEGATIONS = [(" is ", " is not "), (" was ", " was not "), (" are ", " are not "), (" were ", " were not "),
             (" has ", " has not "), (" have ", " have not "), (" will ", " will not "), (" can ", " cannot "),
             (" must ", " need not "), (" more than ", " less than "), (" before ", " after "), (" increased ", " decreased "),
             (" first ", " last "), (" all ", " none of the "), (" won ", " lost "), (" men ", " women ")]  # fmt: skip


def spoil_negation(claim: str, _document: str, rng: random.Random) -> str | None:
    pairs = [(a, b) for x, y in NEGATIONS for a, b in ((y, x), (x, y)) if a in claim]
    pairs = [p for p in pairs if p[0] != " is " or " is not " not in claim]
    if not pairs:
        return None
    old, new = rng.choice(pairs)
    return claim.replace(old, new, 1)


def grounded_tree(name: str, document: str, claims: list[tuple[str, int]], weights: dict[int, float], rng: random.Random,
                  strangers: list[str]) -> Tree:  # fmt: skip
    """One long document: its own claims, spoiled ones, sentences of it, and sentences taken out of it."""
    tree = Tree(name, document)
    for claim, label in rng.sample(claims, min(len(claims), 10)):
        tree.branches.append(Branch(claim, label, weights[label]))
        if label == 1 and rng.random() < 0.6 and (bad := spoil(claim, document, rng)):
            tree.branches.append(Branch(bad, 0, 0.7))
    parts = sentences(document)
    if len(parts) >= 6:
        needed = set().union(*(words(c) for c, label in claims if label == 1)) if claims else set()
        takeable = [s for s in parts[1:] if len(s.split()) > 6 and len(words(s) & needed) <= 0.34 * len(words(s))]
        if takeable and rng.random() < 0.5:
            gone = rng.choice(takeable)
            parts = [s for s in parts if s != gone]
            tree.document = " ".join(parts)
            tree.branches.append(Branch(gone, 0, 0.5))
    longer = [s for s in parts if 6 < len(s.split()) < 50]
    if longer:
        copied = rng.choice(longer)
        tree.branches.append(Branch(copied, 1, 0.4))
        if bad := spoil(rng.choice(longer), document, rng):
            tree.branches.append(Branch(bad, 0, 0.4))
    if strangers and rng.random() < 0.15:
        tree.branches.append(Branch(rng.choice(strangers), 0, 0.3))
    return tree


def short_tree(name: str, group: list[tuple[str, list[tuple[str, int]]]], weights: dict[int, float], rng: random.Random,
               filler: list[str]) -> Tree:  # fmt: skip
    """Several short premises of one data set (and some sentences of others) as one document, the claims of all asked of it."""
    pieces = [premise for premise, _ in group]
    if rng.random() < 0.5:
        pieces += rng.sample(filler, min(len(filler), rng.randint(1, 8)))
    rng.shuffle(pieces)
    tree = Tree(name, rng.choice([" ", " ", "\n"]).join(pieces))
    for premise, claims in group:
        for claim, label in rng.sample(claims, min(len(claims), 3)):
            tree.branches.append(Branch(claim, label, weights[label]))
            if label == 1 and rng.random() < 0.15 and (bad := spoil(claim, premise, rng)):
                tree.branches.append(Branch(bad, 0, 0.6))
    return tree


def make_trees(data: dict[str, dict[str, list[tuple[str, int]]]], seed: int) -> list[Tree]:
    """All training trees of one pass over the data, in random order."""
    rng = random.Random(seed)
    filler = [
        s for d in list(data["fib"])[:400] if not is_held_out(d) for s in sentences(d)[1:4] if 5 < len(s.split()) < 40
    ]
    trees = []
    for name, (share, together) in RECIPE.items():
        weights = class_weights(data[name])
        items = [(d, c) for d, c in data[name].items() if not is_held_out(d)]
        items = rng.sample(items, int(len(items) * share))
        if name in GROUNDED:
            strangers = [c for _, claims in items for c, label in claims if label == 1]
            trees += [grounded_tree(name, d, c, weights, rng, strangers) for d, c in items]
            continue
        while items:
            size = rng.randint(1, together)
            group, items = items[:size], items[size:]
            trees.append(short_tree(name, group, weights, rng, filler))
    rng.shuffle(trees)
    return trees


def validation_trees(data: dict[str, dict[str, list[tuple[str, int]]]], most: int = 60) -> list[Tree]:
    """Return the held-out documents of each data set with their own claims, nothing added."""
    trees = []
    for name in (
        "defacto",
        "fib",
        "bump",
        "cg2c_doc",
        "scifact",
        "docnli_fever",
        "fm2",
        "faithdial_audit",
        "paws",
        "docnli_mnli",
    ):
        held_out = [(d, c) for d, c in data[name].items() if is_held_out(d)][:most]
        trees += [Tree(name, d, [Branch(claim, label, 1.0) for claim, label in claims[:10]]) for d, claims in held_out]
    return trees


# ---------------------------------------------------------------- rows of tokens


@dataclass
class Row:
    """Token ids of a tree: the trunk, then the branches; `branch` is 0 on the trunk, k on the k-th branch."""

    ids: list[int]
    positions: list[int]
    branch: list[int]
    leaves: list[int]
    labels: list[int]
    weights: list[float]
    dataset: str


class Frame:
    """Turns trees into rows; text of documents and claims never becomes a control token."""

    def __init__(self, base: Path, longest: int) -> None:
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
        self.tokenizer.encode_special_tokens = True
        self.start, self.end = (self.tokenizer.token_to_id(t) for t in ("<|im_start|>", "<|im_end|>"))
        self.yes, self.no = (self.encode(t)[0] for t in (YES, NO))
        self.longest = longest

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def row(self, tree: Tree) -> Row:
        tail = [self.end, *self.encode("\n"), self.start, *self.encode("assistant\n")]
        claims: list[list[int]] = []
        for b in tree.branches:
            tokens = self.encode(" " + b.claim)[:200] + tail
            if sum(map(len, claims)) + len(tokens) > self.longest // 2:
                break
            claims.append(tokens)
        ids = [self.start, *self.encode("user\nDocument: " + tree.document)]
        ids = ids[: max(200, self.longest - sum(map(len, claims)))]
        ids += self.encode("\nClaim:")
        row = Row(ids, list(range(len(ids))), [0] * len(ids), [], [], [], tree.dataset)
        trunk = len(ids)
        for number, (tokens, branch) in enumerate(zip(claims, tree.branches[: len(claims)], strict=True), 1):
            row.ids += tokens
            row.positions += range(trunk, trunk + len(tokens))
            row.branch += [number] * len(tokens)
            row.leaves.append(len(row.ids) - 1)
            row.labels.append(self.yes if branch.label else self.no)
            row.weights.append(branch.weight)
        return row


def batches(rows: list[Row], tokens: int, rng: random.Random) -> Iterator[tuple[int, list[Row]]]:
    """Rows of like length together: (padded length, rows); few different shapes, so that compiled layers are reused."""
    full, waiting = [], defaultdict(list)
    for row in rows:
        length = next(n for n in LENGTHS if n >= len(row.ids))
        waiting[length].append(row)
        if len(waiting[length]) == max(1, tokens // length):
            full.append((length, waiting.pop(length)))
    full += waiting.items()
    rng.shuffle(full)
    yield from full


def tensors(batch: list[Row], length: int, count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Ids and positions [count, length], additive mask [count, 1, length, length]: a token sees its trunk and its branch."""
    ids = torch.zeros(count, length, dtype=torch.long)
    positions = torch.zeros_like(ids)
    branch = torch.full_like(ids, -1)
    for i, r in enumerate(batch):
        n = len(r.ids)
        ids[i, :n], positions[i, :n], branch[i, :n] = (
            torch.tensor(r.ids),
            torch.tensor(r.positions),
            torch.tensor(r.branch),
        )
    key, query = branch[:, None, :], branch[:, :, None]
    seen = ((key == 0) | (key == query)) & torch.ones(length, length, dtype=torch.bool).tril()
    mask = torch.zeros(seen.shape).masked_fill(~seen, -1e9)[:, None]
    return ids, positions, mask


# ---------------------------------------------------------------- model


class LoRA(torch.nn.Module):
    """A frozen linear layer plus a trained product of two thin matrices (arXiv 2106.09685)."""

    def __init__(self, linear: torch.nn.Linear, rank: int, scale: float) -> None:
        super().__init__()
        self.linear, self.scale = linear, scale
        self.a = torch.nn.Parameter(torch.randn(rank, linear.in_features) / math.sqrt(linear.in_features))
        self.b = torch.nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        thin = F.linear(x, self.a.to(x.dtype))
        return self.linear(x) + F.linear(thin, (self.b * self.scale).to(x.dtype))


def add_adapters(model: torch.nn.Module, rank: int, scale: float) -> dict[str, LoRA]:
    model.requires_grad_(False)
    adapters = {}
    for name, module in list(model.named_modules()):
        if isinstance(module, torch.nn.Linear) and name != "lm_head":
            parent, child = name.rsplit(".", 1)
            adapters[name] = LoRA(module, rank, scale)
            setattr(model.get_submodule(parent), child, adapters[name])
    return adapters


def save_adapters(adapters: dict[str, LoRA], path: Path) -> None:
    """Write the adapter as float16 safetensors; the scale is folded into B, so that the merged weight is W + B·A."""
    from safetensors.torch import save_file

    tensors_ = {}
    for name, adapter in adapters.items():
        tensors_[f"{name}.lora_a"] = adapter.a.detach().to(torch.float16).contiguous()
        tensors_[f"{name}.lora_b"] = (adapter.b.detach() * adapter.scale).to(torch.float16).contiguous()
    save_file(tensors_, path)


def leaf_logits(model: torch.nn.Module, batch: list[Row], length: int, tokens: int) -> torch.Tensor:
    """Full-vocabulary logits at every leaf of the batch, [leaves, vocabulary], in float32."""
    ids, positions, mask = tensors(batch, length, max(1, tokens // length))
    dtype = model.lm_head.weight.dtype
    hidden = model.model(ids, attention_mask=mask.to(dtype), position_ids=positions, use_cache=False).last_hidden_state
    rows = torch.tensor([i for i, r in enumerate(batch) for _ in r.leaves])
    columns = torch.tensor([leaf for r in batch for leaf in r.leaves])
    return model.lm_head(hidden[rows, columns]).float()


@torch.no_grad()
def validate(model: torch.nn.Module, rows: list[Row], frame: Frame, tokens: int) -> dict[str, tuple[float, float]]:
    """Balanced accuracy at 0.5 and AUC for each data set."""
    scores: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for length, batch in batches(rows, tokens, random.Random(0)):
        yes = leaf_logits(model, batch, length, tokens).softmax(-1)[:, frame.yes].tolist()
        leaves = [(r.dataset, int(label == frame.yes)) for r in batch for label in r.labels]
        for (dataset, label), score in zip(leaves, yes, strict=True):
            scores[dataset].append((score, label))
    return {name: (balanced_accuracy(pairs), auc(pairs)) for name, pairs in scores.items()}


def balanced_accuracy(pairs: list[tuple[float, int]]) -> float:
    right = {label: [(score > 0.5) == bool(label) for score, got in pairs if got == label] for label in (0, 1)}
    return sum(sum(r) / max(1, len(r)) for r in right.values()) / 2


def auc(pairs: list[tuple[float, int]]) -> float:
    from scipy.stats import mannwhitneyu

    scores = {label: [score for score, got in pairs if got == label] for label in (0, 1)}
    return float(mannwhitneyu(scores[1], scores[0]).statistic) / max(1, len(scores[0]) * len(scores[1]))


# ---------------------------------------------------------------- main


def unpack(gguf: Path, base: Path) -> None:
    """Write the dense weights and the tokenizer of a GGUF file as a transformers directory."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    dense = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32, quantization_config=dense
    )
    del model.config.quantization_config
    model.save_pretrained(base)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(base)


def train(options: argparse.Namespace) -> None:
    from transformers import AutoModelForCausalLM

    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    data = read_rows(options.data)
    frame = Frame(options.base, options.longest)
    held_out = [frame.row(t) for t in validation_trees(data)]
    model = AutoModelForCausalLM.from_pretrained(options.base, dtype=torch.bfloat16, attn_implementation="eager")
    adapters = add_adapters(model, options.rank, options.scale)
    torch._dynamo.config.recompile_limit = 64
    for layer in model.model.layers:
        layer.compile(dynamic=False)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=options.lr, betas=(0.9, 0.98), weight_decay=0.0)
    options.out.mkdir(parents=True, exist_ok=True)
    log = (options.out / "train-log.jsonl").open("a", encoding="utf-8")
    began, next_check, step, epoch = time.monotonic(), options.check_minutes * 60.0, 0, 0
    budget_s = options.minutes * 60.0
    recent: list[float] = []
    while True:
        rows = [frame.row(t) for t in make_trees(data, options.seed + epoch)]
        print(f"pass {epoch}: {len(rows)} trees, {sum(len(r.leaves) for r in rows)} claims, "
              f"{sum(len(r.ids) for r in rows)} tokens", flush=True)  # fmt: skip
        for length, batch in batches(rows, options.tokens, random.Random(options.seed + epoch)):
            spent = time.monotonic() - began
            if spent > budget_s:
                save_adapters(adapters, options.out / "adapter.safetensors")
                result = validate(model, held_out, frame, options.tokens)
                print("final", json.dumps(result), file=log, flush=True)
                return
            # Warm up by steps, hold, and fall to zero over the last 45 % of the time: the length of training is a time, not a
            # count of steps.
            rate = min(1.0, (step + 1) / 40) * min(1.0, (1 - spent / budget_s) / 0.45 + 0.02)
            for group in optimizer.param_groups:
                group["lr"] = options.lr * rate
            logits = leaf_logits(model, batch, length, options.tokens)
            labels = torch.tensor([x for r in batch for x in r.labels])
            weights = torch.tensor([w for r in batch for w in r.weights])
            loss = (F.cross_entropy(logits, labels, reduction="none") * weights).sum() / weights.sum()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            step += 1
            recent = [*recent[-49:], float(loss.detach())]
            if step % 10 == 0:
                print(json.dumps({"step": step, "minutes": round(spent / 60, 1), "loss": round(sum(recent) / len(recent), 4),
                                  "claims": len(labels)}), file=log, flush=True)  # fmt: skip
            if spent > next_check:
                next_check += options.check_minutes * 60.0
                save_adapters(adapters, options.out / "adapter.safetensors")
                print("check", json.dumps(validate(model, held_out, frame, options.tokens)), file=log, flush=True)
        epoch += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--unpack", type=Path, metavar="GGUF")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--check-minutes", type=float, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--lr", type=float, default=6e-4)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--longest", type=int, default=1440)
    parser.add_argument("--seed", type=int, default=20)
    options = parser.parse_args()
    if options.unpack:
        unpack(options.unpack, options.base)
    if options.data:
        train(options)


if __name__ == "__main__":
    main()
