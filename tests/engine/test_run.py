import random

import pytest
import torch

from minicheck_eval.engine.plan import plan
from minicheck_eval.engine.reading import read
from minicheck_eval.engine.run import TreeModel

YES, NO = torch.tensor([5, 6]), torch.tensor([7])


def oracle(model, prompt):
    """One prompt alone, unpacked, without mask."""
    with torch.inference_mode():
        logits = model(torch.tensor([[*prompt.prefix, *prompt.suffix]]), use_cache=False).logits[0, -1]
    probabilities = logits.softmax(-1)
    return float(probabilities[YES].sum()), float(probabilities[NO].sum()), int(logits.argmax())


@pytest.mark.parametrize("budget", [1, 30, 200, 5000])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("attention", ["segments", "masked"])
def test_packed_scores_equal_one_by_one_scores(budget, seed, attention, tiny_model, random_prompts):
    """Whatever shares a pass, each leaf reads what its prompt alone would give, within 1e-5 in float32."""
    model = tiny_model(seed)
    prompts = random_prompts(random.Random(seed))
    expected = [oracle(model, prompt) for prompt in prompts]
    assert max(e[0] for e in expected) > 0.05, "the model must tell prompts apart for this test to mean something"
    got = {}
    tree = TreeModel(model, attention)
    for one in plan(prompts, budget_tokens=budget, window_tokens=500).passes:
        columns = [column.tolist() for column in read(tree.logits(one), YES, NO)]
        for leaf, *values in zip(one.leaves, *columns, strict=True):
            got.update(dict.fromkeys(leaf.prompts, values))
    for i, (yes, no, top) in enumerate(expected):
        assert yes == pytest.approx(got[i][0], abs=1e-5)
        assert no == pytest.approx(got[i][1], abs=1e-5)
        assert top == got[i][2]
