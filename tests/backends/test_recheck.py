import random

import pytest
import torch

from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.backends.recheck import RecheckingBackend, measure_noise
from minicheck_eval.scoring import Failure, PromptTemplate, Score

TEMPLATE = PromptTemplate("{document}", " {claim}")
BORDERS = (("support", 0.37), ("mass", 0.5))
PROMPTS = [TEMPLATE.fill("document", f"claim {number}") for number in range(300)]
TRUTH = {prompt: number / 299 for number, prompt in enumerate(PROMPTS)}


class Noisy(FakeBackend):
    """Moves each score by what shares its batch, in log-odds, as bfloat16 does."""

    dtype = "bfloat16"

    def __init__(self, noise):
        super().__init__(lambda prompt: TRUTH[prompt])
        self.noise = noise

    def score(self, prompts):
        shaken = random.Random(len(prompts))
        scores = []
        for score in super().score(prompts):
            support = torch.logit(torch.tensor(score.support), 1e-4) + shaken.uniform(-self.noise, self.noise)
            scores.append(Score(float(support.sigmoid()), 1 - float(support.sigmoid())))
        return scores


def exact():
    return FakeBackend(lambda prompt: TRUTH[prompt])


@pytest.mark.parametrize("size", [1, 7, 300])
def test_no_verdict_depends_on_its_neighbours(size):
    """Whatever the batches, every score lies on the side of the threshold where it lies alone and exactly."""
    noise = measure_noise(Noisy(0.2), exact(), PROMPTS[::10])
    assert 0.1 < noise < 0.21
    judge = RecheckingBackend(Noisy(0.2), exact(), borders=BORDERS, noise=noise)
    batches = [PROMPTS[start : start + size] for start in range(0, len(PROMPTS), size)]
    for found in (
        [score for batch in batches for score in judge.score(batch)],
        [score for scores in judge.stream(iter(batches)) for score in scores],
    ):
        assert [TRUTH[prompt] > 0.37 for prompt in PROMPTS] == [score.support > 0.37 for score in found]


def test_only_what_is_near_is_computed_again():
    """Clear scores stay as they are; one near the threshold is replaced by the exact one."""
    second = exact()
    judge = RecheckingBackend(Noisy(0.02), second, borders=BORDERS, noise=0.02)
    judge.score(PROMPTS)
    again = [TRUTH[prompt] for batch in second.batches for prompt in batch]
    assert 0 < len(again) < 30
    assert all(abs(value - 0.37) < 0.05 for value in again)


def test_a_score_that_is_no_number_is_computed_again():
    """What overflows in the small format may have a value in the large one; other failures stay."""
    answers = {PROMPTS[0]: Failure("not_a_number", "nan"), PROMPTS[1]: Failure("too_long", "9 tokens")}
    judge = RecheckingBackend(FakeBackend(answers.get), exact(), borders=BORDERS, noise=0.01)
    assert [Score(0.0, 1.0, "No"), answers[PROMPTS[1]]] == judge.score(PROMPTS[:2])


def test_the_name_says_what_was_done():
    """Whoever reads the identity sees the second look and its band."""
    judge = RecheckingBackend(Noisy(0.02), exact(), borders=BORDERS, noise=0.02)
    assert "fake, rechecked in none within 0.125 of log-odds" == judge.name


def test_where_the_probes_tell_nothing_everything_is_computed_again():
    """A judge that is sure of all probes shows no noise, which is not the same as having none."""
    sure = [Score(1.0, 0.0), Score(0.0, 1.0)]
    fast, second = FakeBackend(lambda prompt: sure[len(prompt.text) % 2]), exact()
    noise = measure_noise(fast, second, [])
    assert noise == float("inf") == measure_noise(fast, fast, PROMPTS[:20])
    RecheckingBackend(fast, second, borders=BORDERS, noise=noise).score(PROMPTS)
    assert PROMPTS == second.batches[-1]
