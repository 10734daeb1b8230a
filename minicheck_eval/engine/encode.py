"""Carry out a batch with an encoder of transformers: pad on the right, run once, read the two labels."""

from __future__ import annotations

from typing import Any, Literal

import torch

from minicheck_eval.engine.batches import Batch

__all__ = ["Family", "run_batch"]

Family = Literal["seq2seq", "classifier"]


def run_batch(model: Any, batch: Batch, *, family: Family, labels: torch.Tensor) -> list[list[float]]:
    """Run one batch and return, for each row, the softmax over the given labels alone.

    Labels are the ids of tokens that a seq2seq model may say first, or the classes of a classifier.
    """
    with torch.inference_mode():
        padding = model.config.pad_token_id or 0
        rows = [[*ids, *[padding] * (batch.width - len(ids))] for ids in batch.rows]
        lengths = torch.tensor([len(ids) for ids in batch.rows], device=labels.device)
        given = {
            "input_ids": torch.tensor(rows, device=labels.device),  # [rows, width]
            "attention_mask": torch.arange(batch.width, device=labels.device) < lengths[:, None],  # [rows, width]
        }
        if family == "seq2seq":
            start = torch.full_like(lengths[:, None], model.config.decoder_start_token_id)  # [rows, 1]
            logits = model(**given, decoder_input_ids=start, use_cache=False).logits[:, 0]  # [rows, vocabulary]
        else:
            logits = model(**given).logits  # [rows, classes]
        answers: list[list[float]] = logits[:, labels].float().softmax(-1).tolist()
        return answers
