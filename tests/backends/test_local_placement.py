"""Models are put where and as they are asked to be; on a CPU, with the real accelerate."""

import importlib.util

import pytest
import torch

from minicheck_eval.backends.local_placement import _check_devices, place_of
from minicheck_eval.backends.placement import Placement
from minicheck_eval.errors import BackendError, BadInput
from minicheck_eval.judge import identity_without_weights, open_judge

KINDS = ["internlm2", "t5", "roberta", "deberta-v2"]
PAIR = (["The shop opens at nine."], ["The ferry leaves."])
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="is about a machine without GPU")


def support(judge):
    return judge.score(*PAIR).support_prob_per_chunk[0][0]


@without_gpu
@pytest.mark.parametrize("kind", KINDS)
def test_accelerate_places_what_fits(tiny_models, kind):
    """With room enough for all of it the model is placed by accelerate and gives the same support."""
    folder = str(tiny_models(kind))
    assert support(open_judge(folder)) == support(open_judge(folder, max_memory="cpu=1GiB"))


@without_gpu
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_without_room_is_refused(tiny_models, kind):
    """Weights are never left on the disk: the error says what to raise."""
    with pytest.raises(BackendError, match="does not fit") as caught:
        open_judge(str(tiny_models(kind)), max_memory="cpu=60KB")
    assert "--max-memory" in caught.value.hint


@pytest.mark.parametrize("kind", KINDS)
def test_number_format_is_the_callers_and_recorded(tiny_models, kind):
    """The format that was asked for computes, and is in the identity."""
    folder = str(tiny_models(kind))
    exact, coarse = open_judge(folder, device="cpu"), open_judge(folder, dtype="bfloat16", device="cpu")
    assert ("float32", "bfloat16") == (exact.identity.dtype, coarse.identity.dtype)
    assert support(exact) == pytest.approx(support(coarse), abs=0.05)
    assert support(exact) != support(coarse)


@without_gpu
def test_auto_is_float32_on_a_cpu():
    """Without a GPU nothing is given up of exactness."""
    place = place_of(Placement(), "causal")
    assert (torch.float32, torch.device("cpu")) == (place["dtype"], place["device"])


@without_gpu
def test_a_missing_gpu_is_told(tiny_models):
    """A GPU that is not there is bad input, before weights are read."""
    with pytest.raises(BadInput, match="there is no cuda:3"):
        open_judge(str(tiny_models("roberta")), device="cuda:3")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"dtype": "int7"}, "dtype 'int7'"),
        ({"device": "gpu"}, "device 'gpu'"),
        ({"max_memory": "20GiB"}, "max_memory '20GiB'"),
        ({"max_memory": "0=20"}, "max_memory '0=20'"),
        ({"max_memory": "cpu=1GiB", "device": "cpu"}, "leave one|and the device"),
        ({"quantize": "3bit"}, "quantize '3bit'"),
    ],
)
def test_wrong_placements_are_refused(tiny_models, wrong, message):
    """What is not understood is bad input that says how it is written."""
    with pytest.raises(BadInput, match=message) as caught:
        open_judge(str(tiny_models("roberta")), **wrong)
    assert caught.value.hint


def test_memory_limits_are_read_by_place():
    """GPUs are named by number, the CPU by name."""
    placement = Placement.read(dtype="auto", device="auto", max_memory="0=20GiB, 1=4.5GB,CPU=30GiB", quantize=None)
    assert {0: "20GiB", 1: "4.5GB", "cpu": "30GiB"} == placement.max_memory


def test_weights_that_wait_in_the_cpus_memory_are_told(capsys, tmp_path):
    """Offloading is slow, so it is said on stderr; a model in one place is no news."""
    _check_devices({"embed": 0, "layer": 0, "head": "cpu"}, tmp_path)
    assert "warning: 1 of 3 parts" in capsys.readouterr().err
    _check_devices({"embed": 0, "head": 1}, tmp_path)
    _check_devices({"": "cpu"}, tmp_path)
    assert not capsys.readouterr().err


def test_a_rotary_base_of_ones_own_replaces_the_configured(tiny_models):
    """Another base gives other answers; the configured one gives the same."""
    from minicheck_eval.backends.local_llama import load_llama

    ids = torch.tensor([list(range(20))])
    answers = []
    for theta in (None, 10000.0, 3e6):
        model = load_llama(tiny_models("internlm2"), dtype=torch.float32, device=torch.device("cpu"), rope_theta=theta)
        with torch.inference_mode():
            answers.append(model(ids).logits)
    assert torch.equal(answers[0], answers[1])
    assert not torch.allclose(answers[0], answers[2])


@pytest.mark.skipif(importlib.util.find_spec("bitsandbytes") is not None, reason="is about the extra not installed")
def test_without_the_extra_quantized_weights_are_bad_input(tiny_models):
    """The error names what to install."""
    with pytest.raises(BadInput, match="bitsandbytes") as caught:
        open_judge(str(tiny_models("internlm2")), quantize="8bit")
    assert "minicheck-eval[quant]" in caught.value.hint


@pytest.mark.skipif(importlib.util.find_spec("bitsandbytes") is None, reason="needs the extra `quant`")
@pytest.mark.filterwarnings("ignore:MatMul8bitLt")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bits", ["8bit", "4bit"])
def test_quantized_weights_are_used_and_named(tiny_models, kind, bits):
    """Support is near that of the full weights, and the identity names bits and library."""
    folder = str(tiny_models(kind))
    judge = open_judge(folder, quantize=bits, device="cpu")
    assert judge.identity.quantization.startswith(f"{bits} (bitsandbytes ")
    assert judge.identity.quantization == identity_without_weights(folder, quantize=bits).quantization
    exact = support(open_judge(folder, device="cpu"))
    assert support(judge) == pytest.approx(exact, abs=0.2)
    assert support(judge) != exact
