"""Stand-ins for models and their servers, for your own tests: deterministic, fast, and without weights.

    from minicheck_eval import open_judge
    from minicheck_eval.testing import FakeOllama, Faults

    with FakeOllama(lambda text: 0.9 if "Paris" in text else 0.1, faults=Faults(reset=0.1)) as server:
        judge = open_judge(f"ollama:{server.url}#bespoke-minicheck")

`FakeBackend` answers on the scoring seam, without HTTP.  `FakeOllama` and `FakeOpenAI` are real HTTP servers on the
loopback that answer as the real ones do, cut prompts and errors included, and fail as often as `Faults` says.
"""

from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.testing.fake_ollama import FakeModel, FakeOllama
from minicheck_eval.testing.fake_openai import FakeOpenAI
from minicheck_eval.testing.faults import Faults

__all__ = ["FakeBackend", "FakeModel", "FakeOllama", "FakeOpenAI", "Faults"]
