"""Looks at the files of weights in a model folder before they are loaded: safetensors alone, whole, none missing."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors import SafetensorError, safe_open

from minicheck_eval.errors import BadInput, IntegrityError, ModelUnavailable
from minicheck_eval.manifest.schema import is_pickle

__all__ = ["check_tensor_files", "tensor_files"]

ONE, INDEX = "model.safetensors", "model.safetensors.index.json"
ADAPTER = "adapter_config.json"


def tensor_files(folder: Path) -> list[Path]:
    """Return the files of weights: model.safetensors, or the index and all that it names."""
    if (folder / ONE).is_file():
        return [folder / ONE]
    index = folder / INDEX
    if not index.is_file():
        raise _missing(folder)
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise IntegrityError(f"{index} is no index of safetensors: {error}", hint="copy the file anew") from error
    if wrong := [name for name in names if Path(name).name != name or not name.endswith(".safetensors")]:
        raise BadInput(
            f"{index} names files that are no safetensors beside it: {wrong[:3]}", hint="copy the model anew"
        )
    if absent := [name for name in names if not (folder / name).is_file()]:
        raise ModelUnavailable(f"{folder / absent[0]} is not there, but {INDEX} names it", hint="copy the model anew")
    return [index, *(folder / name for name in names)]


def check_tensor_files(folder: Path) -> list[Path]:
    """Return the files of weights after reading their headers; a file that is cut short is an error, and an adapter."""
    if (folder / ADAPTER).exists():
        raise BadInput(
            f"{folder / ADAPTER} is there: the folder holds an adapter, which would change the model's weights",
            hint="merge it (merge_and_unload of peft, then save_pretrained) and name the merged model's folder, or "
            f"remove {ADAPTER} and the adapter's tensors",
        )
    files = tensor_files(folder)
    for path in files:
        if path.name == INDEX:
            continue
        try:
            with safe_open(path, framework="numpy") as tensors:
                count = len(tensors.keys())
        except (SafetensorError, OSError) as error:
            raise IntegrityError(
                f"{path} is not a whole safetensors file: {error}", hint="copy or fetch the file anew"
            ) from error
        if not count:
            raise IntegrityError(f"{path} holds no tensors", hint="copy or fetch the file anew")
    return files


def _missing(folder: Path) -> BadInput | ModelUnavailable:
    pickles = sorted(path.name for path in folder.iterdir() if is_pickle(path.name)) if folder.is_dir() else []
    if pickles:
        return BadInput(
            f"{folder / pickles[0]} is a pickle, which may run code when it is read; only safetensors are loaded",
            hint="the published weights of a known judge: run `minicheck-eval fetch JUDGE --from FOLDER`, which checks "
            "their digest and keeps them as safetensors; any other model: save it with save_pretrained of transformers",
        )
    return ModelUnavailable(f"{folder} holds no {ONE}", hint="copy the weights into the folder, as safetensors")
