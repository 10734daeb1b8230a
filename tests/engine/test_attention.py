import random

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from minicheck_eval.engine import layout as layout_module
from minicheck_eval.engine.attention import ATTENTIONS, prepare_attention, tree_mask
from minicheck_eval.engine.layout import lay_out
from minicheck_eval.engine.plan import plan


@pytest.mark.parametrize("kind", sorted(ATTENTIONS))
@pytest.mark.parametrize("group", [1, 20, 512])
@pytest.mark.parametrize("cells", [0, 1 << 22])
def test_each_kind_gives_what_the_masked_softmax_gives(kind, group, cells, random_prompts, monkeypatch):
    """Grouped or not, repeated or masked, attention equals plain attention under the mask of the tree."""
    monkeypatch.setattr(layout_module, "GROUP_TOKENS", group)
    monkeypatch.setattr(layout_module, "MASK_CELLS", cells)
    torch.manual_seed(3)
    for one in plan(random_prompts(random.Random(3)), budget_tokens=300, window_tokens=500).passes:
        layout = lay_out(one)
        q = torch.randn(4, one.tokens, 8)
        k, v = torch.randn(2, 2, one.tokens, 8)
        wide_k, wide_v = k.repeat_interleave(2, 0), v.repeat_interleave(2, 0)
        mask = tree_mask(layout, (0, one.tokens), torch.device("cpu"))
        expected = scaled_dot_product_attention(q, wide_k, wide_v, attn_mask=mask)
        got = prepare_attention(kind, layout, torch.device("cpu"))(q, k, v)
        assert (expected - got).abs().max() < 1e-5
