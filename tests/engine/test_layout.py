import random

import pytest

from minicheck_eval.engine import layout as layout_module
from minicheck_eval.engine.layout import lay_out
from minicheck_eval.engine.plan import plan


def paths(one):
    """For each token of a pass, the tokens that it sees: those of its path, up to itself."""
    starts, start = [], 0
    for node in one.nodes:
        starts.append(start)
        start += len(node.ids)
    seen = []
    for i, node in enumerate(one.nodes):
        above, parent = set(), node.parent
        while parent >= 0:
            above |= set(range(starts[parent], starts[parent] + len(one.nodes[parent].ids)))
            parent = one.nodes[parent].parent
        seen += [above | set(range(starts[i], starts[i] + n + 1)) for n in range(len(node.ids))]
    return seen


@pytest.mark.parametrize("group", [1, 8, 40, 512])
@pytest.mark.parametrize("cells", [0, 1 << 22])
@pytest.mark.parametrize("seed", range(8))
def test_segments_show_each_token_its_path(group, cells, seed, random_prompts, monkeypatch):
    """Whatever the sizes, every token is a query once, and a segment shows it exactly the tokens of its path."""
    monkeypatch.setattr(layout_module, "GROUP_TOKENS", group)
    monkeypatch.setattr(layout_module, "MASK_CELLS", cells)
    prompts = random_prompts(random.Random(seed), documents=5, claims=seed % 4 + 1)
    for one in plan(prompts, budget_tokens=400, window_tokens=500).passes:
        layout = lay_out(one)
        expected = paths(one)
        queries = []
        for segment in layout.segments:
            above = {token for start, end in segment.above for token in range(start, end)}
            assert segment.depth == len(above)
            for query in range(*segment.queries):
                own = {
                    key
                    for node, end in zip(layout.ranges, layout.ends, strict=True)
                    for key in range(*node)
                    if segment.queries[0] <= key <= query < end
                }
                assert expected[query] == above | own
                if segment.is_chain:
                    assert own == set(range(segment.queries[0], query + 1))
                queries.append(query)
        assert list(range(one.tokens)) == queries


def test_claims_of_a_document_are_one_segment(random_prompts):
    """A long document has a segment of its own, and all its claims share another."""
    from minicheck_eval.engine.plan import TokenPrompt

    head, document = tuple(range(70)), tuple(range(900, 1600))
    prompts = [TokenPrompt(head + document, (2000 + i, 3, 4)) for i in range(6)]
    prompts.append(TokenPrompt((*head, 1, *range(600)), (5, 6)))
    (one,) = plan(prompts, budget_tokens=4000, window_tokens=4000).passes
    layout = lay_out(one)
    assert [(70, 0), (603, 70), (700, 70), (18, 770)] == [
        (segment.queries[1] - segment.queries[0], segment.depth) for segment in layout.segments
    ]
    assert [True, True, True, False] == [segment.is_chain for segment in layout.segments]
