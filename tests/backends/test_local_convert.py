"""Published pickles become safetensors: the same tensors under the same names, and nothing is run."""

import shutil

import pytest
import torch
from safetensors.torch import load_file

from minicheck_eval.backends.local_convert import convert
from minicheck_eval.backends.local_models import load_encoder
from minicheck_eval.errors import IntegrityError

CPU = {"dtype": torch.float32, "device": torch.device("cpu")}


class Runs:
    """An object that would run code when it is unpickled."""

    def __reduce__(self):
        return (print, ("it ran",))


def test_tied_tensors_survive(tiny_models, tmp_path):
    """Names that share one tensor are all written, and the model is the same."""
    model = load_encoder(tiny_models("t5"), **CPU)
    state = model.state_dict()
    shared = [name for name, tensor in state.items() if tensor.data_ptr() == state["shared.weight"].data_ptr()]
    assert {"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"} == set(shared)
    folder = tmp_path / "converted"
    shutil.copytree(tiny_models("t5"), folder)
    torch.save(state, tmp_path / "pytorch_model.bin")
    convert(tmp_path / "pytorch_model.bin", folder / "model.safetensors")
    assert set(state) == set(load_file(folder / "model.safetensors"))
    ids = torch.tensor([[5, 9, 40, 2]])
    asked = {"input_ids": ids, "decoder_input_ids": torch.zeros(1, 1, dtype=torch.long)}
    with torch.inference_mode():
        assert torch.equal(model(**asked).logits, load_encoder(folder, **CPU)(**asked).logits)


def test_conversion_gives_the_same_bytes_each_time(tmp_path):
    """What is made twice from one pickle has one digest."""
    torch.save({"b": torch.arange(6.0).view(2, 3).T, "a": torch.ones(3)}, tmp_path / "x.bin")
    convert(tmp_path / "x.bin", tmp_path / "1")
    convert(tmp_path / "x.bin", tmp_path / "2")
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    assert torch.equal(torch.arange(6.0).view(2, 3).T, load_file(tmp_path / "1")["b"])


@pytest.mark.parametrize(
    ("content", "message"),
    [(Runs(), "is not a file of tensors"), ([torch.ones(2)], "something else"), ({"a": 1}, "something else")],
)
def test_anything_but_tensors_is_refused(tmp_path, capsys, content, message):
    """A pickle that would run code is not run, and one without named tensors is no model."""
    torch.save(content, tmp_path / "x.bin")
    with pytest.raises(IntegrityError, match=message):
        convert(tmp_path / "x.bin", tmp_path / "y.safetensors")
    assert "it ran" not in capsys.readouterr().out
    assert not (tmp_path / "y.safetensors").exists()


def test_a_cut_pickle_is_refused(tmp_path):
    """A file that is cut short is an error in words."""
    torch.save({"a": torch.ones(1000)}, tmp_path / "x.bin")
    (tmp_path / "x.bin").write_bytes((tmp_path / "x.bin").read_bytes()[:-500])
    with pytest.raises(IntegrityError, match=r"x\.bin is not a file of tensors"):
        convert(tmp_path / "x.bin", tmp_path / "y.safetensors")
