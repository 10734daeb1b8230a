import gzip
import json
import sys
from pathlib import Path

import pytest

from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.engine.plan import TokenPrompt
from minicheck_eval.manifest import models_folder

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def modules():
    """The scripts' shared modules, found as the scripts find them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield


@pytest.fixture(scope="module")
def tokenizer():
    return PromptTokenizer(models_folder() / "minicheck-nano" / "tokenizer.json")


def test_unique_work_is_that_of_a_hand_count():
    """Shared tokens count once; each token attends to itself and all above it; each distinct prompt is one leaf."""
    from hotpath.shapes import Shape, unique_work

    prompts = [TokenPrompt((1, 2, 3), (4,)), TokenPrompt((1, 2, 3), (5, 6)), TokenPrompt((1, 2, 3), (4,))]
    work = unique_work(prompts)
    # 1 2 3 attend to 1, 2 and 3 tokens; 4 to 4; 5 and 6 to 4 and 5.
    assert (13, 6, 1 + 2 + 3 + 4 + 4 + 5, 2) == (work.asked_tokens, work.unique_tokens, work.pairs, work.leaves)
    shape = Shape(100, 8, 16, layers=2, heads=2, kv_heads=1, head_size=4, rope_base=1e4, tied=True)
    block = 8 * 8 + 8 * 4 + 8 * 4 + 8 * 8 + 3 * 8 * 16
    assert 2 * block == shape.block_parameters
    scores_and_values = 2 * (2 * 2 * 2 * 4) * 19
    assert 2 * (2 * block) * 6 + scores_and_values + 2 * 100 * 8 * 2 == work.flops(shape)


def test_shapes_count_the_weights_of_real_models():
    """The named shapes have as many weights in their blocks as the published models."""
    from hotpath.shapes import SHAPES

    assert 106_168_320 == SHAPES["smollm2-135m"].block_parameters
    seven = SHAPES["bespoke-7b"]
    norms = 4096 * (2 * seven.layers + 1)
    assert 7_737_757_696 == seven.block_parameters + 2 * seven.vocabulary * seven.width + norms
    assert 131_072 == seven.kv_bytes_per_token(2)


def test_random_model_has_its_shape_and_only_its_seed_decides_the_weights(tmp_path):
    """A model of a named shape has that many weights, equal for equal seeds, and its config reads back as the shape."""
    import torch

    from hotpath.models import random_model
    from hotpath.shapes import SHAPES, read_shape

    shape = SHAPES["tiny"]
    one, same, other = (random_model(shape, torch.float32, torch.device("cpu"), seed=seed) for seed in (0, 0, 1))
    weights = [p for name, p in one.named_parameters() if p.dim() > 1 and "embed" not in name]
    assert shape.block_parameters == sum(p.numel() for p in weights)
    pairs = list(zip(one.parameters(), same.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert any(not torch.equal(a, c) for a, _, c in pairs)
    one.config.save_pretrained(tmp_path)
    assert shape == read_shape(tmp_path)


def test_prompts_have_the_layout_and_length_of_real_ones(tokenizer):
    """A constant head of some 75 tokens, then the document at English token counts, then the claim; equal by seed."""
    from hotpath.workloads import TEMPLATE, Synthetic, prompts

    workload = Synthetic(4, 3, (300, 800))
    cases = list(workload.cases())
    assert cases == list(workload.cases())
    assert cases != list(Synthetic(4, 3, (300, 800), seed=1).cases())
    assert all(300 <= len(case.document.split()) <= 800 for case in cases)
    encoded = tokenizer.encode(prompts(cases))
    (frame,) = tokenizer.encode([TEMPLATE.fill("", "")])
    assert 70 <= len(frame.prefix) <= 80
    for case, first in zip(cases, encoded[::3], strict=True):
        assert frame.prefix[:70] == first.prefix[:70]
        assert 1.2 <= (len(first.prefix) - len(frame.prefix)) / len(case.document.split()) <= 1.7
    assert 12 == len(encoded) == len({one.prefix + one.suffix for one in encoded})
    assert [prompts(cases[:3]), prompts(cases[3:])] == list(workload.batches(3))


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_claims_of_a_file_are_gathered_by_document(tmp_path, suffix):
    """Rows of one document become one case, in order of first appearance; a wrong row ends with file and line."""
    from hotpath.workloads import Case, read_cases

    path = tmp_path / f"rows{suffix}"
    rows = [{"document": d, "claim": c, "label": 1} for d, c in ["ax", "by", "az"]]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    assert [Case("a", ("x", "z")), Case("b", ("y",))] == read_cases(path, None)
    assert [Case("a", ("x", "z"))] == read_cases(path, 1)
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(text + '{"document": "a"}\n')
    with pytest.raises(SystemExit, match=r"wrong\.jsonl:4"):
        read_cases(wrong, None)


def test_figures_are_medians_and_ratios_to_ours():
    """Times are medians, differences the largest over what both answered, and shares those of needed arithmetic."""
    from hotpath.measure import Results
    from hotpath.processes import Measured
    from hotpath.settings import Run
    from hotpath.shapes import SHAPES, Work
    from hotpath.tables import engine_figures, machine_figures

    def results(seconds, support):
        runs = [Measured(Run(s, support, 100, s / 10, len(support)), 1000 * i) for i, s in enumerate(seconds)]
        return Results("note", runs)

    rates = [{"a": 10.0, "b": 40.0}, {"a": 20.0, "b": 30.0}]
    peak = Results("", [Measured(Run(1, peak_flops=one), None) for one in rates])
    machine = machine_figures(peak)
    assert (40.0, 20.0) == (machine["peak_flops"], machine["square_flops"])
    work = Work(100, 50, 500, 2)
    measured = {
        "ours": results([1.0, 2.0, 9.0], [0.5, 0.25]),
        "single": results([6.0, 5.0, 4.0], [0.5, 0.75]),
        "vllm": results([4.0], [None, 0.5]),
        "llama.cpp": Results(failed="gone"),
    }
    figures = engine_figures(measured, work=work, shape=SHAPES["tiny"], machine=machine)
    ours, single = figures["ours"], figures["single"]
    assert (2.0, 1.0, 1.0, 0.1, 2000) == (
        ours["median_seconds"], ours["claims_per_second"], ours["ours_times_faster"], ours["prepare_share"],
        ours["peak_bytes"],
    )  # fmt: skip
    assert (2.5, 0.5) == (single["ours_times_faster"], single["largest_support_difference"])
    assert (0.25, 1) == (figures["vllm"]["largest_support_difference"], figures["vllm"]["support_told"])
    assert pytest.approx(work.flops(SHAPES["tiny"]) / 2.0 / 40.0) == ours["share_of_peak"]
    assert pytest.approx(ours["share_of_peak"] * 2) == ours["share_of_square"]
    assert {"failed": "gone"} == figures["llama.cpp"]


def test_an_engine_that_dies_says_its_last_words(tmp_path):
    """A process that ends without an answer is an error with the end of its log, not a wait without end."""
    from hotpath.processes import EngineFailed, EngineProcess
    from hotpath.settings import Settings

    interpreter = tmp_path / "python"
    interpreter.write_text("#!/bin/sh\necho no such luck >&2\nexit 3\n")
    interpreter.chmod(0o755)
    settings = Settings("ours", "none", "none")
    with pytest.raises(EngineFailed, match="no such luck"):
        EngineProcess(settings, log=tmp_path / "log", interpreter=str(interpreter))
    with pytest.raises(EngineFailed, match="ModuleNotFoundError"):
        EngineProcess(Settings("vllm", str(workload(tmp_path)), "none"), log=tmp_path / "log")


def workload(folder):
    path = folder / "workload.json"
    path.write_text(json.dumps({"cases": [], "ids": [[1]]}))
    if "vllm" in sys.modules:
        pytest.skip("vllm is installed")
    return path
