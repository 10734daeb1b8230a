"""Files of cases: what can be used, and what cannot, with file and line. A bad row never takes a good one with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from minicheck_eval.counts import counted
from minicheck_eval.errors import BadInput, CasesError
from minicheck_eval.harness.case import Case, case_from_row
from minicheck_eval.harness.case_file import CaseFile
from minicheck_eval.harness.csv_rows import read_csv
from minicheck_eval.harness.json_rows import read_json, read_jsonl
from minicheck_eval.harness.source import Problem, Row
from minicheck_eval.identity import file_digest

__all__ = ["Case", "Loaded", "Problem", "load", "read_cases"]

MOST_PROBLEMS = 10
READERS: Mapping[str, Callable[[Path], Iterator[Row | Problem]]] = {
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".json": read_json,
    ".csv": read_csv,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The cases of a file."""

    cases: Sequence[Case]
    """On the disk: each is read when it is asked for."""
    problems: tuple[Problem, ...]
    """What was left out."""
    digest: str
    """SHA-256 of the file's bytes."""


def read_cases(path: Path) -> Iterator[Case | Problem]:
    """Read a file of cases in its order; its name tells the format: .jsonl, .ndjson, .json or .csv, also .gz."""
    reader = READERS.get(Path(path.name.lower().removesuffix(".gz")).suffix)
    if reader is None:
        yield Problem(
            path=path, line=0, message=f"the name should end in {', '.join(READERS)}, or in one of these and .gz"
        )
        return
    seen: dict[str, int] = {}
    empty = True
    for row in reader(path):
        empty = False
        if isinstance(row, Problem):
            yield row
            continue
        try:
            case = case_from_row(row.value)
        except BadInput as error:
            yield Problem(path=path, line=row.line, message=str(error))
            continue
        if case.id in seen:
            message = f"the id {case.id[:60]!a} is already that of line {seen[case.id]}"
            yield Problem(path=path, line=row.line, message=message)
            continue
        seen[case.id] = row.line
        yield case
    if empty:
        yield Problem(path=path, line=0, message="the file holds no cases")


def load(path: Path, *, skip_bad: bool = False) -> Loaded:
    """Read all cases of a file; a problem raises `CasesError`, unless `skip_bad` goes on without the bad rows."""
    cases = CaseFile()
    problems = []
    for item in read_cases(path):
        if isinstance(item, Case):
            cases.append(item)
        else:
            problems.append(item)
    if problems and not skip_bad:
        hint = f"mend these rows, or go on with {counted(len(cases), 'good row')}: --skip-bad" if cases else None
        raise CasesError(_list_of(problems), hint=hint)
    if not cases:
        raise CasesError(f"no case can be used\n{_list_of(problems)}")
    return Loaded(cases=cases, problems=tuple(problems), digest=file_digest(path))


def _list_of(problems: Sequence[Problem]) -> str:
    lines = [str(problem) for problem in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        lines.append(f"and {len(problems) - MOST_PROBLEMS} more")
    return "\n".join(lines)
