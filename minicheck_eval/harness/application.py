"""The application under test: found by its name, called for each case, and timed out, retried and bounded."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event, Thread
from types import ModuleType, TracebackType
from typing import Any, Self

from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from minicheck_eval.contract import Observation
from minicheck_eval.errors import BadInput, CouldNotJudge
from minicheck_eval.harness.case import Case
from minicheck_eval.harness.files import encode
from minicheck_eval.harness.observation import read_observation
from minicheck_eval.harness.observed import Observed
from minicheck_eval.identity import file_digest

__all__ = ["App", "Application", "load_app"]

FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 10.0
LEAST_PATIENCE_S = 10.0
"""For an event loop on a busy machine."""


@dataclass(frozen=True, slots=True)
class App:
    """A function that answers a question, as it was found."""

    name: str
    function: Callable[..., Any]
    digest: str
    """SHA-256 of the file that it stands in; empty where there is none."""
    takes_case: bool
    """It has a parameter `case` and gets the whole case; else it gets the question."""

    def to_json(self) -> dict[str, Any]:
        """Return what a run says of it."""
        return {"name": self.name, "sha256": self.digest}


def load_app(name: str) -> App:
    """Find `module:function`, from the working directory or from what is installed."""
    module_name, colon, path = name.partition(":")
    if not module_name or not colon or not path:
        raise BadInput(f"the application {name!r} has no module and function", hint="name both: module:function")
    function: Any = _import(module_name, name)
    for part in path.split("."):
        if not hasattr(function, part):
            raise BadInput(f"{module_name} has no {path!r}", hint="name a function in it: module:function")
        function = getattr(function, part)
    if not callable(function):
        raise BadInput(f"{name} is a {type(function).__name__}", hint="name a function that takes a question")
    file = getattr(sys.modules[module_name], "__file__", None)
    return App(name, function, file_digest(Path(file)) if file else "", _takes_case(function))


def _import(module: str, name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(module)
    except Exception as error:  # whatever an application's module raises, it cannot be used
        message = f"the application {name} cannot be imported: {type(error).__name__}: {error}"
        raise BadInput(message, hint=f"try: python -c 'import {module}'") from error


def _takes_case(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return "case" in parameters


class Application:
    """Asks an app about cases, `concurrency` of them at once, each `retries` times more where it raises.

    One event loop serves all calls, since asynchronous clients belong to theirs; plain functions run in threads.
    """

    def __init__(self, app: App, *, concurrency: int = 4, retries: int = 2, timeout_s: float = 60.0) -> None:
        self.app = app
        self._timeout_s = timeout_s
        self._loop = asyncio.new_event_loop()
        self._room = asyncio.Semaphore(concurrency)
        self._again = AsyncRetrying(
            stop=stop_after_attempt(retries + 1),
            wait=wait_random_exponential(multiplier=FIRST_WAIT_S, max=LONGEST_WAIT_S),
            retry=retry_if_exception(_may_heal),
            reraise=True,
        )
        self._thread = Thread(target=self._loop.run_forever, name="application", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the event loop, and whatever still runs in it."""
        if not self._loop.is_closed() and self._turns():
            asyncio.run_coroutine_threadsafe(self._cancel(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def observe(self, cases: Sequence[Case]) -> list[Observed]:
        """Ask the app about each case; what it raised is kept in place of an answer.

        Answers that a file had are gone, and so are the labels, which were about them.
        """
        asked = asyncio.run_coroutine_threadsafe(self._observe(cases), self._loop)
        while not wait([asked], timeout=self._timeout_s).done:
            if not self._turns():
                raise CouldNotJudge(
                    f"the application {self.app.name} holds up its event loop: no call of it ends",
                    hint="an asynchronous function has to await what takes time; a plain one gets a thread",
                )
        return asked.result()

    def _turns(self) -> bool:
        """Tell whether the event loop still gets to what it is given: nothing else can time out what blocks it."""
        turn = Event()
        self._loop.call_soon_threadsafe(turn.set)
        return turn.wait(max(self._timeout_s, LEAST_PATIENCE_S))

    async def _observe(self, cases: Sequence[Case]) -> list[Observed]:
        return list(await asyncio.gather(*map(self._one, cases)))

    async def _one(self, case: Case) -> Observed:
        try:
            async with self._room:
                seen: Observation = await self._again.copy()(self._ask, case)
            observed = replace(case, answer=seen.answer, documents=seen.documents, label=None)
            encode(observed.to_json())
        except Exception as error:  # noqa: BLE001 - an application may raise whatever it likes: the other cases must not suffer
            return Observed(replace(case, answer=None, documents=(), label=None), self._said(error))
        return Observed(observed)

    def _said(self, error: Exception) -> str:
        words = _words(error)
        if isinstance(error, TimeoutError) and not words:
            return f"it gave no answer within {self._timeout_s:g} s"
        return f"{type(error).__name__}: {words}"

    async def _ask(self, case: Case) -> Observation:
        function = self.app.function
        # What an application does to its case must not reach the record.
        call = partial(function, case=deepcopy(case)) if self.app.takes_case else partial(function, case.question)
        async with asyncio.timeout(self._timeout_s):
            # A task of its own, so that one that cancels itself cancels nothing else.
            task = asyncio.ensure_future(self._called(call))
            try:
                return await task
            except asyncio.CancelledError:
                if (own := asyncio.current_task()) is not None and own.cancelling():
                    raise
                raise RuntimeError("it cancelled itself") from None

    async def _called(self, call: Callable[[], Any]) -> Observation:
        """Return what the application gives; where it wants to end the program only its own call fails."""
        try:
            value = call() if _is_async(self.app.function) else await self._in_thread(call)
            return _copy(read_observation(await value if inspect.isawaitable(value) else value))
        except (Exception, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            raise RuntimeError(f"it ended with {type(error).__name__}: {_words(error)}") from error

    def _in_thread(self, call: Callable[[], Any]) -> asyncio.Future[Any]:
        # A thread of its own that nobody waits for: one that hangs must not hold up the end of the run.
        future = self._loop.create_future()

        def settle(finish: Callable[[Any], None], result: object) -> None:
            if not future.done():
                finish(result)

        def work() -> None:
            try:
                outcome = partial(settle, future.set_result, call())
            except StopIteration as error:  # it cannot be put into a future
                outcome = partial(settle, future.set_exception, RuntimeError(f"StopIteration: {error}"))
            except BaseException as error:  # noqa: BLE001 - it belongs to who waits for the answer
                outcome = partial(settle, future.set_exception, error)
            with suppress(RuntimeError):  # the run is over, and its loop closed
                self._loop.call_soon_threadsafe(outcome)

        Thread(target=work, name="application-call", daemon=True).start()
        return future

    async def _cancel(self) -> None:
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an error that cannot be written is still one
        return "without words"


def _copy(seen: Observation) -> Observation:
    # An application may go on using its metadata for the next question.
    return Observation(seen.answer, [replace(one, metadata=dict(one.metadata)) for one in seen.documents])


def _may_heal(error: BaseException) -> bool:
    # What was returned and cannot be read will not be better the next time.
    return isinstance(error, Exception) and not isinstance(error, BadInput)
