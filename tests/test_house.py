"""The rules of the house that no linter knows."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import minicheck_eval

CHECKOUT = Path(__file__).parents[1]
FILES = sorted((CHECKOUT / "minicheck_eval").rglob("*.py"))
DEMO = CHECKOUT / "tests" / "ci_demo"
REPLAY = [
    *("run", str(DEMO / "cases.jsonl"), "--tape", str(DEMO / "tapes"), "--mode", "replay-only", "--min-rate", "0.8"),
    *("--report", "html,json,markdown,junit"),
]
HEAVY = ("torch", "transformers", "scipy", "numpy", "gguf")


def test_public_surface_is_pinned():
    """What users may rely on is this list."""
    expected = [
        "Document", "EvaluationRequest", "EvaluationResponse", "Evaluator", "Judge", "Observation", "Outcome",
        "open_judge", "supporting_text",
    ]  # fmt: skip
    assert expected == minicheck_eval.__all__
    assert all(hasattr(minicheck_eval, name) for name in expected)


@pytest.mark.parametrize(
    "code",
    [
        "import minicheck_eval",
        "from minicheck_eval.cli import main; main(['--help'])",
        "from minicheck_eval.cli import main; main(['run', '--help'])",
        "from minicheck_eval.cli import main; main(['check', '--help'])",
        "from minicheck_eval.cli import main; main(['compare', '--help'])",
        "from minicheck_eval.cli import main; main(['plan-size', '--help'])",
        "import minicheck_eval.testing",
        f"from minicheck_eval.cli import main; main({REPLAY})",
        "import minicheck_eval.reports, minicheck_eval.harness.cases, minicheck_eval.evaluators.decision",
    ],
)
def test_start_up_loads_nothing_heavy(code, tmp_path):
    """Help, import, replay and reports start without torch and its kin."""
    program = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print('LOADED', [m for m in {HEAVY} if m in sys.modules], file=sys.stderr))\n{code}"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    assert "LOADED []" == done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(CHECKOUT)))
def test_files_and_functions_stay_small(path):
    """A file keeps to 300 lines and a function to 50."""
    text = path.read_text(encoding="utf-8")
    assert 300 >= len(text.splitlines())
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = {f.name: f.end_lineno - f.lineno + 1 for f in functions if f.end_lineno - f.lineno + 1 > 50}
    assert {} == long


def test_every_module_says_what_it_owns():
    """Each module of the package has a docstring."""
    assert [] == [str(p) for p in FILES if not ast.get_docstring(ast.parse(p.read_text(encoding="utf-8")))]


def test_every_test_states_its_behaviour():
    """Each test has a sentence that says what is expected."""
    silent = [
        f"{path.name}:{node.name}"
        for path in sorted((CHECKOUT / "tests").rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not ast.get_docstring(node)
    ]
    assert [] == silent
