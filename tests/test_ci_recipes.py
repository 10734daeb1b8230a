"""The two jobs in CI that README shows: their commands, carried out on a recorded demo, without network and torch.

A changed prompt or judge needs a new recording, in tests/ci_demo:
`minicheck-eval run cases.jsonl --tape tapes --mode record-always --out /tmp/run`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
import yaml

import minicheck_eval
from minicheck_eval.tape.record import line_of, read_line

CHECKOUT = Path(__file__).parents[1]
DEMO = Path(__file__).parent / "ci_demo"
INSTALL = "pip install minicheck-eval"
GITHUB, GITLAB = "github", "gitlab"
NOTHING_TO_JUDGE_WITH = """
import socket, sys
def refuse(*_, **__):
    raise AssertionError("a connection was tried")
socket.socket.connect = socket.socket.connect_ex = socket.socket.bind = refuse
socket.getaddrinfo = socket.create_connection = refuse
class Missing:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("torch", "transformers", "tokenizers", "accelerate"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""
TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\+00:00)?")
REPORTS = ("report.json", "report.md", "junit.xml", "report.html")
ANSWER = "A paper invoice sent by post costs 2 euros."
CLAIM = f'"suffix": ["{ANSWER}"]'


def snippets():
    """The blocks of YAML in README's section and the jobs in them, by the names of job and service."""
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^### Two jobs in CI\n(.*?)^### ", text, re.MULTILINE | re.DOTALL)
    found = {}
    for block in re.findall(r"^```yaml\n(.*?)^```", section, re.MULTILINE | re.DOTALL):
        read = yaml.safe_load(block)
        service = GITHUB if "jobs" in read else GITLAB
        found |= {(name, service): (block, job) for name, job in read.get("jobs", read).items()}
    return found


def commands(job, service):
    """What a job runs, in its order: what decides, and what is carried out whatever came before."""
    _, job = snippets()[job, service]
    if service == GITLAB:
        return job["script"], job.get("after_script", [])
    steps = [step for step in job["steps"] if "run" in step]
    return tuple(
        [step["run"] for step in steps if (step.get("if") == "always()") is always] for always in (False, True)
    )


@pytest.fixture
def project(tmp_path):
    """A copy of the recorded demo."""
    return Path(shutil.copytree(DEMO, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__", "runs")))


@pytest.fixture
def shell(tmp_path):
    """Run a line as CI does, in a folder; unless it may judge, without weights, torch and network."""
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text(NOTHING_TO_JUDGE_WITH)
    package = str(Path(minicheck_eval.__file__).parents[1])

    def shell(line, folder, *, judging=False):
        environment = {**os.environ, "CI": "true", "PYTHONPATH": package, "COLUMNS": "300"}
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        if not judging:
            environment["PYTHONPATH"] = f"{blocked}{os.pathsep}{package}"
            environment["MINICHECK_EVAL_HOME"] = str(tmp_path / "nothing")
        return subprocess.run(
            ["bash", "-e", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )

    return shell


@pytest.fixture
def carry_out(shell, project):
    """Carry out a job, but for the installation; return its exit code and all that it printed."""

    def carry_out(job, service, **how):
        deciding, always = commands(job, service)
        code, said = 0, ""
        for line in [line for line in deciding if line != INSTALL]:
            done = shell(line, project, **how)
            code, said = done.returncode, said + done.stdout + done.stderr
            if code:
                break
        for line in always:
            done = shell(line, project, **how)
            said += done.stdout + done.stderr
        return code, said

    return carry_out


def change(project, answer):
    """Let the application give another answer to one question."""
    path = project / "cases.jsonl"
    assert 1 == path.read_text().count(f'"answer": "{ANSWER}"')
    path.write_text(path.read_text().replace(f'"answer": "{ANSWER}"', f'"answer": "{answer}"'))


both = pytest.mark.parametrize("service", [GITHUB, GITLAB])


def test_without_the_installed_package_the_jobs_have_nothing(shell, project):
    """The blockade holds: neither torch nor the network can be had, and the command is this package's."""
    for module in ("torch", "transformers"):
        assert "ModuleNotFoundError" in shell(f"python -c 'import {module}'", project).stderr
    connect = "python -c \"import socket; socket.create_connection(('127.0.0.1', 9))\""
    assert "a connection was tried" in shell(connect, project).stderr
    where = shell("python -c 'import minicheck_eval; print(minicheck_eval.__file__)'", project)
    assert minicheck_eval.__file__ == where.stdout.strip()


@pytest.mark.parametrize("key", [(job, service) for job in ("grounding", "drift") for service in (GITHUB, GITLAB)])
def test_a_snippet_has_ten_lines_and_begins_with_the_installation(key):
    """A fresh user copies at most ten lines, and what pip installs is this project, whose script the rest calls."""
    block, _ = snippets()[key]
    assert 10 >= len([line for line in block.splitlines() if not line.startswith("#")])
    deciding, always = commands(*key)
    assert INSTALL == deciding[0]
    assert f'name = "{INSTALL.removeprefix("pip install ")}"' in (CHECKOUT / "pyproject.toml").read_text()
    assert all(line.startswith("minicheck-eval ") for line in [*deciding[1:], *always])


def test_both_services_run_the_same():
    """What GitHub runs is what GitLab runs, but for a report that is not to fail the job."""
    for job in ("grounding", "drift"):
        one, other = ([*chain(*commands(job, service))] for service in (GITHUB, GITLAB))
        assert [line.removesuffix(" || true") for line in one] == other


def test_each_job_starts_when_it_should():
    """Pull requests replay; the judge is asked at night and before a release, and never by a pull request."""
    starts = {key: yaml.safe_load(block) for key, (block, _) in snippets().items()}
    # "on" is a truth value of YAML.
    assert "pull_request" == starts["grounding", GITHUB][True]
    drift = starts["drift", GITHUB][True]
    assert {"schedule", "release"} == set(drift)
    assert re.fullmatch(r"\d+ \d+ \* \* \*", drift["schedule"][0]["cron"])
    (rule,) = starts["drift", GITLAB]["drift"]["rules"]
    assert '$CI_PIPELINE_SOURCE == "schedule" || $CI_COMMIT_TAG' == rule["if"]
    assert "rules" not in starts["grounding", GITLAB]["grounding"]
    for service in (GITHUB, GITLAB):
        asking = [line for line in chain(*commands("grounding", service)) if " run " in line]
        assert all("--mode replay-only" in line or "--evaluators retrieval" in line for line in asking)


@both
def test_a_pull_request_that_changes_nothing_is_green(carry_out, service):
    """Retrieval is checked with the application's own retriever, and all verdicts come from the tape."""
    code, said = carry_out("grounding", service)
    assert 0 == code, said
    assert "answered by my_app:retrieve" in said
    assert "(replay-only)" in said
    assert "0 calls" in said


@both
def test_a_changed_answer_makes_a_pull_request_red(carry_out, project, service):
    """No old verdict is used: the job fails and shows what was recorded in the place of the answer."""
    change(project, "A paper invoice sent by post costs 9 euros.")
    code, said = carry_out("grounding", service)
    assert 3 == code, said
    assert "costs 2 euros.', asked '…oice sent by post costs 9 euros.'" in " ".join(said.split())


@both
def test_a_retriever_that_misses_makes_a_pull_request_red(carry_out, project, service):
    """The deterministic check fails before anything is replayed."""
    app = project / "my_app.py"
    app.write_text(app.read_text().replace("best[:2]", "best[-1:]"))
    code, said = carry_out("grounding", service)
    assert 1 == code, said
    assert "(replay-only)" not in said


def test_a_worse_answer_that_was_recorded_fails_the_gate(nano, carry_out, project, shell):
    """Recording again, as README says, makes the tape whole; two unsupported answers of five are too many."""
    path = project / "cases.jsonl"
    path.write_text(
        path.read_text().replace("Gas cartridges cannot be returned, because", "The kayak is blue, because")
    )
    assert 3 == carry_out("grounding", GITHUB)[0]
    record = "minicheck-eval run cases.jsonl --tape tapes"
    recorded = shell(f"CI= {record} --min-rate 0 --out runs/recorded", project, judging=True)
    assert f"`{record}`" in (CHECKOUT / "README.md").read_text()
    assert 0 == recorded.returncode, recorded.stdout + recorded.stderr
    code, said = carry_out("grounding", GITHUB)
    assert 1 == code, said
    assert "fact-checking, returns: 3 of 5 passed" in said


def replay(shell, project, rate, more=""):
    return shell(
        f"minicheck-eval run cases.jsonl --tape tapes --mode replay-only --min-rate {rate} "
        f"--report html,json,markdown,junit --out runs/all {more}",
        project,
    )


@pytest.mark.parametrize(("rate", "expected"), [("0.8", 0), ("0.9", 1)])
def test_the_recorded_demo_replays_to_the_same_bytes(shell, project, rate, expected, tmp_path):
    """Every report and everything printed is the same on each run, times aside, and so in another folder."""
    other = Path(shutil.copytree(project, tmp_path / "elsewhere" / "again"))
    seen = []
    for folder in (project, project, other):
        done = replay(shell, folder, rate)
        assert expected == done.returncode, done.stdout + done.stderr
        files = [(folder / "runs" / "all" / name).read_bytes().decode() for name in REPORTS]
        assert all(TIMES.search(text) for text in files)
        seen.append([TIMES.sub("TIME", text) for text in [done.stdout, *files]])
    assert seen[0] == seen[1] == seen[2]
    assert "replay-only" in seen[0][1]


def test_a_replay_ends_as_the_live_run(nano, shell, project):
    """Exit codes and outcomes are those of the judge that is asked now."""

    def outcomes(out):
        lines = (project / "runs" / out / "results.jsonl").read_text().splitlines()
        return {row["id"]: row["verdicts"]["fact-checking"]["outcome"] for row in map(json.loads, lines)}

    for rate in ("0.8", "0.9"):
        line = f"minicheck-eval run cases.jsonl --min-rate {rate} --out runs/live-{rate}"
        live = shell(line, project, judging=True)
        assert live.returncode == replay(shell, project, rate).returncode
        assert outcomes(f"live-{rate}") == outcomes("all")


@both
def test_the_judge_asked_live_shows_no_drift(nano, carry_out, service):
    """At night the judge answers as it did, up to what another machine does to the last digits."""
    code, said = carry_out("drift", service, judging=True)
    assert 0 == code, said
    assert "(record-always)" in said
    assert re.search(r"minicheck-nano: \d+ answers are the same, \d+ changed \(0 of them across the threshold", said)
    assert "0 only on the old tape, 0 only on the new one" in said


def test_drift_is_reported_and_compared(nano, carry_out, shell, project):
    """Where the judge said otherwise when it was recorded, the answers that crossed are listed, and so is the case."""
    (shard,) = [path for path in (project / "tapes").rglob("*.jsonl") if CLAIM in path.read_text()]
    lines = shard.read_bytes().splitlines(keepends=True)
    for place, line in enumerate(lines):
        if CLAIM.encode() in line:
            said = read_line(line, "the demo")
            key, day, kind = said.pop("key"), said.pop("recorded"), said.pop("kind")
            lines[place] = line_of(key, day, kind, {**said, "support": 0.03, "refute": 0.97, "top": "No"})
    shard.write_bytes(b"".join(lines))
    code, said = carry_out("drift", GITHUB, judging=True)
    assert 0 == code, said
    assert "(1 of them across the threshold" in said
    assert re.search(rf"^! 0\.030 → 0\.\d+ .*{ANSWER}", said, re.MULTILINE)
    assert 0 == replay(shell, project, "0.8", "--out runs/tape").returncode
    compare = "minicheck-eval compare runs/live runs/tape"
    assert f"`{compare}`" in (CHECKOUT / "README.md").read_text()
    done = shell(compare, project)
    assert 0 == done.returncode, done.stderr
    assert "billing-08" in done.stdout
