"""Dockerfile.gpu without a container engine: each step is carried out in a folder, with a virtual environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sysconfig
import venv
from dataclasses import dataclass, field
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
NO_INDEX = ("No matching distribution found for hatchling", "Failed to establish a new connection")
REFUSE_NETWORK = """
import socket
def refuse(self, address, *_):
    raise AssertionError(f"a connection to {address} was tried")
socket.socket.connect = socket.socket.connect_ex = refuse
"""


def instructions():
    """The steps as (word, rest), comments dropped and continued lines joined."""
    text = (CHECKOUT / "Dockerfile.gpu").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def only(word):
    (rest,) = [rest for found, rest in instructions() if found == word]
    return rest


@dataclass
class Image:
    """What the steps have made so far: a folder in the place of `/`."""

    root: Path
    environment: dict[str, str]
    folder: str = "/"
    user: str = "root"
    entry: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)

    def path(self, inside: str) -> Path:
        return self.root / (Path(self.folder) / inside).as_posix().lstrip("/")

    def run(self, command):
        return subprocess.run(
            command, cwd=self.path("."), env=self.environment, capture_output=True, text=True, check=False
        )

    def copy(self, *names):
        *sources, target = names
        for source in (CHECKOUT / one for one in sources):
            if source.is_dir():
                shutil.copytree(source, self.path(target), ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, self.path(target))

    def build(self, command):
        # A user of this folder, not of this machine.
        inside = command.replace("useradd ", f"useradd --prefix {self.root} ")
        done = self.run(["sh", "-e", "-c", inside])
        if any(sign in done.stderr for sign in NO_INDEX):
            pytest.skip("pip has no index to build with")
        assert 0 == done.returncode, done.stderr

    def step(self, word, rest):
        match word:
            case "FROM":
                pass
            case "ENV":
                for name, value in (pair.split("=", 1) for pair in rest.split()):
                    self.environment[name] = str(self.path(value)) if value.startswith("/") else value
            case "WORKDIR":
                self.folder = rest
                self.path(".").mkdir(parents=True, exist_ok=True)
            case "COPY":
                self.copy(*rest.split())
            case "RUN":
                self.build(rest)
            case "USER":
                self.user = rest
            case "ENTRYPOINT":
                self.entry = json.loads(rest)
            case "CMD":
                self.arguments = json.loads(rest)
            case _:
                raise AssertionError(f"{word} is not exercised")

    def files(self):
        return {path: path.lstat().st_mtime_ns for path in self.root.rglob("*") if "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def image(tmp_path_factory, nano):
    """The image after all steps; the weights, which are at hand, are not fetched again."""
    from minicheck_eval.store.paths import store_folder

    if not shutil.which("useradd") or os.geteuid() != 0:
        pytest.skip("useradd needs root")
    root = tmp_path_factory.mktemp("image")
    python = root / "usr" / "local"
    venv.create(python, with_pip=True, symlinks=True)
    (packages,) = python.glob("lib/python*/site-packages")
    # What the tests run with, torch above all, need not be installed once more.
    (packages / "host.pth").write_text("\n".join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}))
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    environment["PATH"] = f"{python / 'bin'}{os.pathsep}{environment['PATH']}"
    image = Image(root, environment)
    etc = root / "etc"
    etc.mkdir()
    for name in ("passwd", "group", "shadow", "gshadow", "login.defs"):
        (etc / name).write_text("")
    for word, rest in instructions():
        image.step(word, rest)
        if word == "ENV" and not (store := Path(image.environment["MINICHECK_EVAL_HOME"])).exists():
            store.mkdir(parents=True)
            for weights in filter(Path.is_dir, store_folder().iterdir()):
                (store / weights.name).symlink_to(weights)
    (packages / "sitecustomize.py").write_text(REFUSE_NETWORK)
    return image


def test_base_image_is_pinned():
    """The base image has a digest or the tag of one release, of a Python that the project supports."""
    tag = re.fullmatch(r"python:(3)\.(\d+)\.\d+-slim-[a-z]+(@sha256:[0-9a-f]{64})?", only("FROM"))
    assert tag
    assert (3, 11) <= (int(tag[1]), int(tag[2]))


def test_user_is_not_root_and_comes_last():
    """What is installed belongs to root; the judge runs as a user of its own that a step has made."""
    words = [word for word, _ in instructions()]
    assert words.index("USER") > max(i for i, word in enumerate(words) if word in ("RUN", "COPY"))
    assert only("USER") not in ("root", "0")
    assert any(word == "RUN" and re.search(rf"useradd .*\b{only('USER')}\b", rest) for word, rest in instructions())


def test_every_step_works_and_the_entry_point_starts(image):
    """The steps end without an error, and the image as it stands shows its help."""
    assert (["minicheck-eval"], "judge") == (image.entry, image.user)
    assert re.search(
        rf"^{image.user}:.*:/home/{image.user}:", (image.root / "etc" / "passwd").read_text(), re.MULTILINE
    )
    installed = Path(shutil.which("minicheck-eval", path=image.environment["PATH"]))
    assert image.root in installed.parents
    done = image.run([*image.entry, *image.arguments])
    assert 0 == done.returncode, done.stderr
    assert "Usage" in done.stdout


def test_judging_needs_no_network_and_writes_nothing(image):
    """An answer is judged where every connection is an error, and no file of the image is touched."""
    evidence = image.path("evidence.txt")
    evidence.write_text("The ferry to the island leaves every day at 8:15 from pier 4.", encoding="utf-8")
    before = image.files()
    asked = ["check", "--document", "evidence.txt", "--claim", "The ferry leaves from pier 4."]
    done = image.run([*image.entry, *asked])
    assert 0 == done.returncode, done.stderr
    assert before == image.files()
    where = image.run(["python", "-c", "import minicheck_eval; print(minicheck_eval.__file__)"])
    assert str(image.root) in where.stdout
    connected = image.run(["python", "-c", "import socket; socket.create_connection(('127.0.0.1', 9))"])
    assert "was tried" in connected.stderr
