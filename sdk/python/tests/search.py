"""Verifies the answer of a proven search: `search.py ANSWER TRUST` prints the outcome, the subject that was asked for, and how many entries have it."""

import sys
from pathlib import Path

import tabellion

answer, trust = Path(sys.argv[1]).read_bytes(), Path(sys.argv[2]).read_text()
verdict = tabellion.verify_search(answer, trust)
assert tabellion.verify_search(answer, "")["outcome"] == "not-proven"
try:
    tabellion.verify_search(answer[:-1], trust)
    raise AssertionError("a truncated answer was read")
except tabellion.CoreError as error:
    assert error.code == "malformed-answer", error
print(verdict["outcome"], verdict["question"]["terms"][0]["value"], len(verdict["found"]))
