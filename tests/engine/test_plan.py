import random

from hypothesis import given, settings
from hypothesis import strategies as st

from minicheck_eval.engine.plan import TokenPrompt, plan

ids = st.lists(st.integers(0, 2), max_size=6).map(tuple)
prompts = st.lists(st.builds(TokenPrompt, ids, ids), max_size=40)


def spelled(one, leaf):
    """The tokens from the root to a leaf, and a check that depths and order fit."""
    tokens, place = (), leaf.node
    while place >= 0:
        node = one.nodes[place]
        tokens, place = (*node.ids, *tokens), node.parent
        assert node.parent < one.nodes.index(node)
        assert node.depth == (0 if place < 0 else one.nodes[place].depth + len(one.nodes[place].ids))
    return tokens


def places(planned):
    return sorted(i for one in planned.passes for leaf in one.leaves for i in leaf.prompts)


@given(prompts, st.integers(1, 30), st.integers(2, 12))
@settings(deadline=None)
def test_each_prompt_is_planned_exactly_once(asked, budget, window):
    """Every prompt within the window has one leaf, and the way to it spells the prompt."""
    planned = plan(asked, budget_tokens=budget, window_tokens=window)
    assert list(range(len(asked))) == sorted([*places(planned), *planned.too_long])
    for one in planned.passes:
        for leaf in one.leaves:
            for i in leaf.prompts:
                assert (*asked[i].prefix, *asked[i].suffix) == spelled(one, leaf)
    assert all(len(asked[i]) > window or not len(asked[i]) for i in planned.too_long)
    assert sum(len(asked[i]) for i in places(planned)) == planned.asked_tokens


@given(prompts, st.integers(1, 30))
@settings(deadline=None)
def test_a_pass_keeps_to_the_budget(asked, budget):
    """Only a pass that holds one single prompt may exceed the budget, where passes are not stretched."""
    for one in plan(asked, budget_tokens=budget, window_tokens=100, stretched=False).passes:
        assert one.tokens <= budget or 1 == len(one.leaves)


@given(prompts, st.integers(2, 30))
def test_a_stretched_pass_has_a_fourth_more_than_its_prefix(asked, budget):
    """A pass beyond its budget holds one long prefix and, beside it, a fourth of the prefix or of the budget."""
    for one in plan(asked, budget_tokens=budget, window_tokens=100).passes:
        if one.tokens > budget and len(one.leaves) > 1:
            longest = max(node.depth + len(node.ids) for node in one.nodes)
            assert one.tokens <= longest + max(budget, longest) // 4


def test_a_prefix_that_fills_the_budget_is_shared_all_the_same():
    """A document longer than a pass is not computed anew for each of its claims."""
    document = tuple(range(3000))
    asked = [TokenPrompt(document, (5000 + i,) * 20) for i in range(48)]
    assert 48 * 3020 == plan(asked, budget_tokens=2048, window_tokens=9000, stretched=False).computed_tokens
    planned = plan(asked, budget_tokens=2048, window_tokens=9000)
    # 3,750 tokens hold the document and 37 claims.
    assert 2 * 3000 + 48 * 20 == planned.computed_tokens


def test_a_budget_of_one_token_keeps_each_prompt_alone():
    """Who wants prompts alone gets them alone, whatever they share."""
    asked = [TokenPrompt((1,) * 100, (i, i)) for i in range(2, 9)]
    assert [1] * 7 == [len(one.leaves) for one in plan(asked, budget_tokens=1, window_tokens=1000).passes]


@given(prompts)
@settings(deadline=None)
def test_nodes_stand_in_depth_first_order(asked):
    """Between a node and any of its descendants stand only its descendants, as the mask needs it."""
    for one in plan(asked, budget_tokens=1000, window_tokens=100).passes:
        path = []
        for i, node in enumerate(one.nodes):
            while path and path[-1] != node.parent:
                path.pop()
            assert node.parent == (path[-1] if path else -1)
            path.append(i)


@given(st.lists(st.builds(TokenPrompt, st.sampled_from([(), (0,), (0, 1), (1, 1, 2)]), ids), max_size=40))
@settings(deadline=None)
def test_no_shared_token_of_a_pass_is_computed_twice(asked):
    """With one split point for each prefix a single pass computes as many tokens as there are different beginnings."""
    whole = [TokenPrompt(p.prefix + p.suffix, ()) for p in asked]
    beginnings = {p.prefix[: n + 1] for p in whole for n in range(len(p))}
    assert len(beginnings) == plan(whole, budget_tokens=10**6, window_tokens=100).computed_tokens


@given(prompts, st.integers(4, 30), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_the_input_does_not_change_the_passes(asked, budget, shuffler):
    """The same prompts in another order are computed in the same passes."""
    shuffled = list(asked)
    shuffler.shuffle(shuffled)

    def nodes(given):
        return [one.nodes for one in plan(given, budget_tokens=budget, window_tokens=100).passes]

    assert nodes(asked) == nodes(shuffled)


def test_shared_tokens_are_computed_once():
    """A head is computed once for all documents, a document once for all its claims, a repeated pair not at all."""
    head = tuple(range(50))
    documents = [head + tuple(range(100 + 10 * d, 110 + 10 * d)) for d in range(3)]
    asked = [TokenPrompt(document, (200 + i, 300)) for document in documents for i in range(10)] * 2
    planned = plan(asked, budget_tokens=1000, window_tokens=1000)
    assert 50 + 3 * 10 + 30 * 2 == planned.computed_tokens
    assert 60 * 62 == planned.asked_tokens
    assert 1 == len(planned.passes)


def test_many_prompts_are_planned_quickly():
    """A hundred thousand prompts are grouped without comparing each with each."""
    rng = random.Random(0)
    documents = [tuple(rng.randrange(1000) for _ in range(30)) for _ in range(2000)]
    asked = [TokenPrompt(rng.choice(documents), (i % 997, i // 997)) for i in range(100_000)]
    assert 100_000 == len(places(plan(asked, budget_tokens=4096, window_tokens=4096)))
