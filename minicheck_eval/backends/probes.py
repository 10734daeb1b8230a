"""Documents and claims on which a judge's numerical noise is measured: some true, some false, some beside the point."""

from __future__ import annotations

from minicheck_eval.scoring import Prompt, PromptTemplate

__all__ = ["probes"]

DOCUMENTS = (
    """The ferry to the outer island leaves the main harbour at 7:15 every weekday and at 9:00 on Saturdays. It does
not run on Sundays between November and March. A single ticket costs 12 euros; children under six travel free,
and bicycles need a ticket of their own for 4 euros. The crossing takes fifty minutes in calm weather. Seats
cannot be reserved, but groups of more than ten are asked to call the harbour office a day ahead.""",
    """Copper conducts heat better than iron, and silver better than copper. In the workshop the three rods were heated
at one end with the same flame, and the time was taken until wax melted at the other end. Silver took 41
seconds, copper 48 seconds and iron four minutes and ten seconds. The rods were of equal length and thickness.
The test was repeated three times, and the mean was written down.""",
)
CLAIMS = (
    "The ferry does not run on Sundays in winter.",
    "A child of five pays 4 euros for the crossing.",
    "The crossing takes less than an hour when the sea is calm.",
    "Silver carried the heat faster than copper did.",
    "The iron rod was thicker than the others.",
    "Each test was done more than once.",
)


def probes(template: PromptTemplate) -> list[Prompt]:
    """Return a prompt for each document with each claim."""
    return [template.fill(" ".join(document.split()), claim) for document in DOCUMENTS for claim in CLAIMS]
