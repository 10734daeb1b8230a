import random

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from minicheck_eval.engine import attention_flex
from minicheck_eval.engine import layout as layout_module
from minicheck_eval.engine.attention import prepare_attention, tree_mask
from minicheck_eval.engine.attention_varlen import varlen
from minicheck_eval.engine.layout import lay_out
from minicheck_eval.engine.plan import TokenPrompt, plan


def flash_in_plain_words(q, k, v, *, queries_until, keys_until, most_queries, most_keys, window):
    """What FlashAttention computes, sequence by sequence; a causal query sees the keys up to its own, from the end."""
    found, sums = torch.empty_like(q), torch.empty(q.shape[:2])
    for i in range(len(queries_until) - 1):
        queries, keys = slice(*queries_until[i : i + 2]), slice(*keys_until[i : i + 2])
        n, m = queries.stop - queries.start, keys.stop - keys.start
        assert n <= most_queries
        assert m <= most_keys
        scores = torch.einsum("qhd,khd->hqk", q[queries], k[keys].repeat_interleave(2, 1)) / q.shape[-1] ** 0.5
        if window == (-1, 0):
            scores.masked_fill_(torch.ones(n, m, dtype=torch.bool).tril(m - n).logical_not(), float("-inf"))
        found[queries] = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v[keys].repeat_interleave(2, 1))
        sums[queries] = scores.logsumexp(-1).T
    return found, sums


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("kind", ["segments", "masked", "flex", "varlen"])
@pytest.mark.parametrize("group", [1, 20, 512])
@pytest.mark.parametrize("cells", [0, 1 << 22])
def test_each_kind_gives_what_the_masked_softmax_gives(kind, group, cells, random_prompts, monkeypatch):
    """Grouped or not, repeated or masked, in one part or two, it is plain attention under the tree's mask."""
    monkeypatch.setattr(layout_module, "GROUP_TOKENS", group)
    monkeypatch.setattr(layout_module, "MASK_CELLS", cells)
    cpu = torch.device("cpu")
    torch.manual_seed(3)
    for one in plan(random_prompts(random.Random(3)), budget_tokens=300, window_tokens=500).passes:
        layout = lay_out(one)
        q = torch.randn(4, one.tokens, 8)
        k, v = torch.randn(2, 2, one.tokens, 8)
        wide_k, wide_v = k.repeat_interleave(2, 0), v.repeat_interleave(2, 0)
        expected = scaled_dot_product_attention(q, wide_k, wide_v, attn_mask=tree_mask(layout, (0, one.tokens), cpu))
        attend = varlen(layout, cpu, flash_in_plain_words) if kind == "varlen" else prepare_attention(kind, layout, cpu)
        assert (expected - attend(q, k, v)).abs().max() < 1e-5


def test_flex_compiles_few_lengths(monkeypatch):
    """Passes of all sizes up to 16384 tokens have fewer lengths than PyTorch's compiler takes before it gives up."""
    lengths = set()

    def kernel(q, *_, **__):
        lengths.add(q.shape[2])
        return q

    monkeypatch.setattr(attention_flex, "_kernel", lambda _: kernel)
    monkeypatch.setattr("torch.nn.attention.flex_attention.create_block_mask", lambda *_, **__: None)
    for size in (2, 100, 127, 128, 129, 200, 500, 900, 1500, 2048, 3000, 5000, 7000, 8193, 12000, 16384):
        (one,) = plan([TokenPrompt((1,) * (size - 1), (2,))], budget_tokens=size, window_tokens=size).passes
        q = torch.randn(1, size, 1)
        assert torch.equal(q, attention_flex.flex(lay_out(one), torch.device("cpu"))(q, q, q))
    assert 8 > len(lengths)
