"""A judge with parity returns what the reference implementation returned, end to end, on a tiny InternLM2."""

import json
from dataclasses import replace

import pytest

from minicheck_eval.judge import open_judge
from minicheck_eval.parity import PRESETS, Parity

pytestmark = pytest.mark.shared

MODES = {"claim_split": False, "claim_whole": True}
AS_PRESETS = [
    ("claim_split", "theta_1e6/two_bos", "reference"),
    ("claim_whole", "theta_3052773.67/two_bos", "published"),
]
OTHERS = [
    (mode, variant)
    for mode in MODES
    for variant in ("theta_1e6/one_bos", "theta_1e6/two_bos", "theta_3052773.67/one_bos", "theta_3052773.67/two_bos")
    if (mode, variant) not in [preset[:2] for preset in AS_PRESETS]
]
LONG_CHARACTERS = 2000


@pytest.fixture(scope="module")
def expected(shared):
    return json.loads((shared / "parity" / "tiny-internlm2" / "expected.json").read_text())


@pytest.fixture
def open_tiny(shared):
    folder = shared / "parity" / "tiny-internlm2"

    def opened(parity):
        # A folder has no published numbers to ask for by name; the habits behind them can be asked for one by one.
        habits = PRESETS["published"] if parity == "published" else parity
        return open_judge(str(folder), parity=habits, dtype="float32", device="cpu")

    return opened


def check(judge, expected, mode, variant, pairs):
    for size, wanted in expected["scoring"][mode].items():
        chunk_size = None if size == "default" else int(size)
        scores = judge.score([p["doc"] for p in pairs], [p["claim"] for p in pairs], chunk_size)
        for pair, label, support, chunks, by_chunk in zip(pairs, *scores, strict=True):
            place = f"{pair['id']} {size}"
            result = wanted[pair["id"]]["results"][variant]
            matrix = by_chunk if mode == "claim_split" else [[one] for one in by_chunk]
            assert result["label"] == label, place
            assert result["max_support_prob"] == pytest.approx(support, abs=1e-5), place
            assert len(result["support_prob_per_chunk"]) == len(chunks), place
            for row, found in zip(result["support_prob_per_chunk"], matrix, strict=True):
                assert row == pytest.approx(found, abs=1e-5), place


@pytest.mark.parametrize(("mode", "variant", "name"), AS_PRESETS)
def test_presets_return_the_references_scores(open_tiny, expected, mode, variant, name):
    """All pairs at all chunk sizes: labels, supports and the support of each chunk and sentence."""
    check(open_tiny(name), expected, mode, variant, expected["pairs"])


@pytest.mark.parametrize(("mode", "variant"), OTHERS)
def test_every_mix_of_habits_returns_the_references_scores(open_tiny, expected, mode, variant):
    """Whole or split claims, each base and each count of BOS make the reference's scores of the shorter pairs."""
    theta, bos = variant.split("/")
    mixed = {"whole_claims": MODES[mode], "double_bos": bos == "two_bos", "rope_theta": expected["rope_theta"][theta]}
    habits = {"top5_rule": True, "reference_texts": True, "parse_control_tokens": True, "paste_claim": True}
    pairs = [pair for pair in expected["pairs"] if len(pair["doc"]) < LONG_CHARACTERS]
    check(open_tiny(Parity(**habits, **mixed)), expected, mode, variant, pairs)


@pytest.mark.parametrize(("mode", "variant", "name"), AS_PRESETS)
def test_where_the_reference_raises_there_is_no_label(open_tiny, expected, mode, variant, name):
    """An empty claim has no verdict where claims are split, and its score where the reference gives one."""
    cases = [case for case in expected["reference_errors"] if case["mode"] == mode]
    # The reference's scores of empty claims were made with the configured base.
    parity = PRESETS[name] if mode == "claim_split" else replace(PRESETS[name], rope_theta=None)
    scores = open_tiny(parity).score([case["doc"] for case in cases], [case["claim"] for case in cases])
    for case, label, support in zip(cases, scores.pred_label, scores.max_support_prob, strict=True):
        if case["raises"]:
            assert (None, None) == (label, support)
        else:
            assert (1, pytest.approx(case["max_support_prob"], abs=1e-5)) == (label, support)


def test_a_document_with_placeholders_and_control_tokens_is_safe_by_default(open_tiny, expected):
    """Without parity such pairs have other scores than in the reference; all else equal, the rest has the same."""
    pairs = {pair["id"].split("-")[0]: pair for pair in expected["pairs"]}
    for name, same in (("a01", True), ("a18", False), ("a19", False), ("a21", False)):
        pair = pairs[name]
        found = open_tiny(None).score([pair["doc"]], [pair["claim"]]).max_support_prob[0]
        wanted = pair["results"]["theta_1e6"]["one_bos"]["support_prob_all_yes_ids"]
        assert same == (wanted == pytest.approx(found, abs=1e-5)), name
