"""Sentences and chunks equal those of the reference implementation, for each model of the parity kit."""

import json

import pytest

from minicheck_eval.backends.local_tokenizer import PromptTokenizer
from minicheck_eval.text import ReferenceChunking, ReferenceRules

pytestmark = pytest.mark.shared

SMALL = {
    "tiny-flan-t5": {"chunk_unit": "words", "newline_size": 0},
    "tiny-roberta": {"chunk_unit": "tokens", "newline_size": 1},
    "tiny-deberta-v3": {"chunk_unit": "tokens", "newline_size": 0},
}


def read(shared, name):
    folder = shared / "parity" / name
    tokenizer = PromptTokenizer(folder / "tokenizer.json", parse_control_tokens=True)
    return json.loads((folder / "expected.json").read_text()), tokenizer.count


@pytest.fixture(scope="module")
def kit(shared):
    return read(shared, "tiny-internlm2")


def causal():
    return ReferenceRules(ReferenceChunking(chunk_size=32468, window=32768), empty_chunk=True)


def texts(pieces):
    return [piece.text for piece in pieces]


def test_sentences_are_the_references(kit):
    """Each sentence of a document and of a claim is the reference's, and so is its size in tokens."""
    expected, count = kit
    documents = {p["id"]: p["doc"] for p in expected["pairs"]}
    claims = {p["id"]: p["claim"] for p in expected["pairs"]}
    for name, wanted in expected["sentence_split"].items():
        items = list(causal()._items(documents[name]))
        assert wanted["doc"] == [item.of(documents[name]) for item in items], name
        assert wanted["doc_token_counts"] == causal()._sizes(documents[name], items, count), name
        assert wanted["claim"] == texts(causal().claims(claims[name], whole=False)), name


@pytest.mark.parametrize("size", [16, 64, 200, 1000, 32468])
def test_chunks_are_the_references(kit, size):
    """Each chunk, with its rewritten white space, is the reference's; its span leads from first to last sentence."""
    expected, count = kit
    documents = {p["id"]: p["doc"] for p in expected["pairs"]}
    for name, wanted in expected["chunking"][str(size)].items():
        pieces = causal().chunks(documents[name], size, count)
        assert wanted == texts(pieces), name
        assert all(piece.text.split() == piece.span.of(documents[name]).split() for piece in pieces), name


@pytest.mark.parametrize("config", ["default", "chunk30", "chunk100_batch3", "chunk30_maxlen64"])
@pytest.mark.parametrize("model", SMALL)
def test_chunks_of_the_small_models_are_the_references(shared, model, config):
    """Each model's own unit, line break size and sentence sizes give the reference's chunks, and no empty one."""
    expected, count = read(shared, model)
    settings = expected["configs"][config]
    chunking = ReferenceChunking(chunk_size=1, window=settings["max_model_len"], **SMALL[model])
    rules = ReferenceRules(chunking, empty_chunk=False)
    for pair in expected["pairs"]:
        chunks = rules.chunks(pair["doc"], settings["chunk_size"], count)
        assert expected["results"][config][pair["id"]]["doc_chunks"] == texts(chunks), pair["id"]


@pytest.mark.parametrize("model", SMALL)
def test_sentence_sizes_of_the_small_models_are_the_references(shared, model):
    """Sentences count words or tokens without special ones."""
    expected, count = read(shared, model)
    chunking = ReferenceChunking(chunk_size=1, window=expected["defaults"]["max_model_len"], **SMALL[model])
    rules = ReferenceRules(chunking, empty_chunk=False)
    for pair in expected["pairs"]:
        items = list(rules._items(pair["doc"]))
        assert pair["doc_sentences"] == [item.of(pair["doc"]) for item in items], pair["id"]
        assert pair["sentence_sizes"] == rules._sizes(pair["doc"], items, count), pair["id"]
