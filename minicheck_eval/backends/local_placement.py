"""Carries out a placement with transformers and accelerate: one GPU, several, CPU, or both with a warning."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict

import torch
from transformers import BitsAndBytesConfig
from transformers.utils import logging

from minicheck_eval.backends.placement import Placement
from minicheck_eval.errors import BackendError, BadInput, IntegrityError

__all__ = ["Place", "load", "place_of"]

HEADS = ("lm_head", "classifier", "pooler")
"""The layers that the answer is read from stay as they are in quantized models."""


class Place(TypedDict, total=False):
    """What transformers is told."""

    dtype: torch.dtype
    device: torch.device | None
    """None: accelerate decides, over all GPUs and the CPU's memory."""
    max_memory: Mapping[str | int, str] | None
    quantization_config: Any


def place_of(placement: Placement, family: str) -> Place:
    """Choose what was left open: the GPUs where there are any, and the number format that suits the family."""
    free = placement.device == "auto" and (torch.cuda.is_available() or bool(placement.max_memory))
    device = None if free else torch.device("cpu" if placement.device == "auto" else placement.device)
    if device is not None and device.type == "cuda" and not torch.cuda.is_available():
        raise BadInput(f"there is no {device} on this machine", hint="choose --device cpu")
    on_gpu = torch.cuda.is_available() if device is None else device.type != "cpu"
    dtype = _dtype(placement.dtype, family, on_gpu=on_gpu)
    quantization = None
    if placement.quantization:
        quantization = BitsAndBytesConfig(  # type: ignore[no-untyped-call]
            load_in_8bit=placement.quantization.startswith("8bit"),
            load_in_4bit=placement.quantization.startswith("4bit"),
            bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=dtype,
            llm_int8_skip_modules=list(HEADS),
        )
    return Place(dtype=dtype, device=device, max_memory=placement.max_memory or None, quantization_config=quantization)


def _dtype(name: str, family: str, *, on_gpu: bool) -> torch.dtype:
    if name == "auto" and on_gpu:
        # In float16 the activations of T5 run over, and an encoder is small anyway.
        older = "float16" if family == "causal" else "float32"
        name = "bfloat16" if not torch.cuda.is_available() or torch.cuda.is_bf16_supported() else older
    chosen: torch.dtype = getattr(torch, "float32" if name == "auto" else name)
    return chosen


def load(model_class: Any, make_config: Callable[[], Any], folder: Path, place: Place) -> Any:
    """Return the model in evaluation mode; every tensor of the model must be in the files, and none besides."""
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    # Its report on the tensors would come twice: what is wrong is said below, as an error.
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    device = place.get("device")
    try:
        model, info = model_class.from_pretrained(
            folder,
            config=make_config(),
            dtype=place["dtype"],
            device_map="auto" if device is None else {"": device},
            max_memory=place.get("max_memory"),
            quantization_config=place.get("quantization_config"),
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,  # so that they are reported below, by name
            output_loading_info=True,
        )
    except torch.OutOfMemoryError as error:
        hint = "choose --max-memory, --quantize 8bit or 4bit, or a smaller judge"
        raise BackendError(f"{folder} does not fit into the memory of {device or 'the GPUs'}", hint=hint) from error
    except Exception as error:  # what a wrong config.json makes the library raise has no end
        if "offloaded to the disk" in str(error):
            raise _no_room(folder) from error
        raise BackendError(
            f"{folder} could not be loaded: {type(error).__name__}: {error}",
            hint="is config.json the one of these weights? copy the model anew",
        ) from error
    finally:
        logging.set_verbosity(verbosity)
    _check_tensors(info, folder)
    _check_devices(getattr(model, "hf_device_map", {}), folder)
    return model.eval()


def _check_tensors(info: Mapping[str, Any], folder: Path) -> None:
    words = {"missing_keys": "lacks", "unexpected_keys": "has besides", "mismatched_keys": "has in another shape"}
    wrong = [f"{words.get(name, name)} {_first(keys)}" for name, keys in info.items() if keys]
    if wrong:
        raise IntegrityError(
            f"{folder} does not hold the tensors of its config.json: it {'; '.join(wrong)}",
            hint="config.json and weights are of different models, or were copied in part: copy the model anew",
        )


def _first(keys: Any) -> str:
    names = sorted(map(str, keys))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")  # noqa: PLR2004 - three are enough to see


def _check_devices(places: Mapping[str, Any], folder: Path) -> None:
    """Refuse weights on the disk, and say so where weights wait in the CPU's memory for a GPU."""
    count = Counter(str(place) for place in places.values())
    if count["disk"]:
        raise _no_room(folder)
    if 0 < count["cpu"] < len(places):
        print(  # noqa: T201 - a warning; stdout stays free for results
            f"warning: {count['cpu']} of {len(places)} parts of {folder.name} wait in the CPU's memory, since the GPU "
            "has no room for them: judging will be many times slower (--quantize and smaller judges help)",
            file=sys.stderr,
        )


def _no_room(folder: Path) -> BackendError:
    return BackendError(
        f"{folder} does not fit: parts of the model have no room in memory and would lie on the disk",
        hint="raise --max-memory, choose --quantize 8bit or 4bit, or a smaller judge",
    )
