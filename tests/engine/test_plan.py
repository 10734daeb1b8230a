import random

from hypothesis import given, settings
from hypothesis import strategies as st

from minicheck_eval.engine.plan import TokenPrompt, plan

ids = st.lists(st.integers(0, 3), min_size=1, max_size=6).map(tuple)
prompts = st.lists(st.builds(TokenPrompt, ids, ids), max_size=40)


def covered(planned):
    return sorted(i for one in planned.passes for tree in one.trees for b in tree.branches for i in b.prompts)


@given(prompts, st.integers(1, 30), st.integers(2, 12))
@settings(deadline=None)
def test_each_prompt_is_planned_exactly_once(asked, budget, window):
    """Every prompt within the window stands in one branch; its tree and branch spell the prompt."""
    planned = plan(asked, budget_tokens=budget, window_tokens=window)
    assert list(range(len(asked))) == sorted([*covered(planned), *planned.too_long])
    for one in planned.passes:
        for tree in one.trees:
            for branch in tree.branches:
                for i in branch.prompts:
                    assert asked[i] == TokenPrompt(tree.trunk, branch.ids)
    assert all(len(asked[i]) > window for i in planned.too_long)


@given(prompts, st.integers(1, 30))
@settings(deadline=None)
def test_a_pass_keeps_to_the_budget(asked, budget):
    """Only a pass that holds one single branch may exceed the budget."""
    for one in plan(asked, budget_tokens=budget, window_tokens=100).passes:
        assert one.tokens <= budget or [1] == [len(tree.branches) for tree in one.trees]


@given(prompts, st.integers(4, 30), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_the_input_does_not_change_the_passes(asked, budget, shuffler):
    """The same prompts in another order are computed in the same passes."""
    shuffled = list(asked)
    shuffler.shuffle(shuffled)

    def shape(given):
        planned = plan(given, budget_tokens=budget, window_tokens=100)
        return [[(t.trunk, [b.ids for b in t.branches]) for t in one.trees] for one in planned.passes]

    assert shape(asked) == shape(shuffled)


def test_shared_tokens_are_computed_once():
    """Ten claims on one document compute the document once; a repeated pair costs nothing."""
    document = tuple(range(100))
    asked = [TokenPrompt(document, (200 + i, 300)) for i in range(10)] * 2
    planned = plan(asked, budget_tokens=1000, window_tokens=1000)
    assert 100 + 10 * 2 == planned.computed_tokens
    assert 20 * 102 == planned.asked_tokens
    assert 1 == len(planned.passes)


def test_many_prompts_are_planned_quickly():
    """A hundred thousand prompts are grouped without comparing each with each."""
    rng = random.Random(0)
    documents = [tuple(rng.randrange(1000) for _ in range(30)) for _ in range(2000)]
    asked = [TokenPrompt(rng.choice(documents), (i % 997, i // 997)) for i in range(100_000)]
    assert 100_000 == len(covered(plan(asked, budget_tokens=4096, window_tokens=4096)))
