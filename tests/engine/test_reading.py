import torch

from minicheck_eval.engine.reading import read

YES, NO = torch.tensor([0, 1]), torch.tensor([2])


def logits(*probabilities):
    return torch.tensor([probabilities]).log()


def test_probabilities_are_of_the_whole_vocabulary():
    """The tokens of each answer are summed, and all other tokens have their share."""
    found = read(logits(0.1, 0.2, 0.3, 0.15, 0.1, 0.1, 0.05), YES, NO)
    assert torch.allclose(torch.tensor([0.3]), found.yes)
    assert torch.allclose(torch.tensor([0.3]), found.no)
    assert [2] == found.top.tolist()


def test_a_yes_outside_the_five_likeliest_counts_nothing_by_the_rule():
    """By the rule of the MiniCheck package a sixth token is not seen; P(no) is not touched."""
    rows = torch.cat(
        [
            logits(0.03, 0.3, 0.2, 0.1, 0.1, 0.17, 0.1),
            logits(0.02, 0.01, 0.03, 0.3, 0.3, 0.2, 0.14),
        ]
    )
    found = read(rows, YES, NO, top5=True)
    assert torch.allclose(torch.tensor([0.3, 0.0]), found.yes)
    assert 0.0 == found.yes[1].item()
    assert torch.allclose(torch.tensor([0.2, 0.03]), found.no)


def test_what_is_no_number_stays_none():
    """The rule does not turn a broken answer into a zero."""
    assert read(torch.full((1, 7), torch.nan), YES, NO, top5=True).yes.isnan().all()
