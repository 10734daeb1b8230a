"""The reliability diagram: how often people call an answer supported, against the support that the judge gave it."""

from __future__ import annotations

from io import BytesIO

from minicheck_eval.errors import BadInput
from minicheck_eval.harness.calibration_agreement import Agreement

__all__ = ["reliability_svg"]


def reliability_svg(found: Agreement, title: str) -> bytes:
    """Draw the diagram as SVG; the same numbers give the same bytes."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BadInput(
            "a diagram needs Matplotlib", hint="install it: pip install 'minicheck-eval[benchmarks]'"
        ) from error
    supports = [one.mean_support for one in found.bins]
    shares = [one.supported.value for one in found.bins]
    below = [one.supported.value - one.supported.low for one in found.bins]
    above = [one.supported.high - one.supported.value for one in found.bins]
    # Names of judges are text: a dollar sign begins no formula.
    with rc_context({"svg.hashsalt": "reliability", "svg.fonttype": "none", "text.parse_math": False}):
        figure = Figure(figsize=(5, 6.4), layout="constrained")
        upper, lower = figure.subplots(2, 1, height_ratios=[4, 1], sharex=True)
        upper.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1, label="as often as the judge says")
        # A point at 1 is not cut in half.
        drawn = {"fmt": "o-", "capsize": 3, "clip_on": False, "zorder": 3}
        upper.errorbar(supports, shares, [below, above], **drawn, label="this judge, with 95 % intervals")
        upper.set(ylabel="supported by label", xlim=(0, 1), ylim=(0, 1), title=title)
        figure.legend(loc="outside lower center", fontsize="small", ncols=2, frameon=False)
        lower.bar([one.low for one in found.bins], [one.supported.n for one in found.bins], 0.1, align="edge", ec="w")
        lower.set(xlabel="support by the judge", ylabel="answers")
        content = BytesIO()
        figure.savefig(content, format="svg", metadata={"Date": None})
    return content.getvalue()
