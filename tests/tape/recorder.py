"""A recorder for the tests to kill: records claims in batches, and says on stdout what is on the disk."""

import sys
from pathlib import Path

import minicheck_eval.tape.tape as module
from minicheck_eval.backends.fake import FakeBackend
from minicheck_eval.scoring import PromptTemplate
from minicheck_eval.tape.backend import TapeBackend
from minicheck_eval.tape.header import TapeHeader
from minicheck_eval.tape.options import Mode
from minicheck_eval.tape.tape import Tape

BATCH = 20
TEMPLATE = PromptTemplate("Document: {document}\n", "Claim: {claim}", system="Judge.")


def main(folder: str, first: str, last: str) -> None:
    module.MOST_UNMERGED = 150  # so that many merges are met
    judge = FakeBackend(lambda prompt: int(prompt.text.rpartition(" ")[2]) / 10_000)
    tape = TapeBackend(Tape.record(Path(folder), TapeHeader(model="fake")), Mode.RECORD, judge)
    for start in range(int(first), int(last), BATCH):
        claims = range(start, min(start + BATCH, int(last)))
        tape.score([TEMPLATE.fill(f"document {claim // 7}", str(claim)) for claim in claims])
        sys.stdout.write(f"{claims[-1]}\n")
        sys.stdout.flush()
    tape.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
