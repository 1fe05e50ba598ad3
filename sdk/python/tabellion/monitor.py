"""One observation of a log: its newest checkpoint is genuine, and its tree continues the one that was seen before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple, Optional

from . import core
from .errors import CoreError, NotVerified, SplitView, Unreachable
from .files import write_durably
from .http import Http


class Observation(NamedTuple):
    """A verified tree of a log, and the size of the one before, if there was one."""

    origin: str
    size: int
    root: str
    previous_size: Optional[int]


def observe(http: Http, trust: str, state: Path, witness_policy: Optional[str]) -> Observation:
    """Verifies the newest checkpoint and, if `state` exists, its consistency; then remembers it in `state`.

    Raises `NotVerified` for a checkpoint that no trusted key signed or that lacks the quorum of the witness policy, and
    `SplitView` if the trees contradict each other; `state` is then unchanged.
    """
    known = json.loads(state.read_text()) if state.exists() else None
    checkpoint = http.retrying("checkpoint", {"Accept": "*/*"}).body
    seen = _verified(checkpoint, trust, witness_policy)
    if known is not None:
        _check_growth(http, known, seen, checkpoint.decode("utf-8", "replace"))
    remembered = {**seen, "checkpoint": checkpoint.decode("utf-8", "replace")}
    if known is None or seen["size"] >= known["size"]:
        write_durably(state, json.dumps(remembered).encode())
    return Observation(seen["origin"], seen["size"], seen["root"], known and known["size"])


def _verified(checkpoint: bytes, trust: str, witness_policy: Optional[str]) -> core.Json:
    verdict = core.verify(checkpoint, trust, witness_policy=witness_policy)
    if verdict["outcome"] != "verified":
        raise NotVerified(verdict)
    facts = verdict["checkpoint"]
    return {"origin": facts["origin"], "size": facts["tree_size"], "root": facts["root"]}


def _check_growth(http: Http, known: core.Json, seen: core.Json, checkpoint: str) -> None:
    if seen["origin"] != known["origin"]:
        raise Unreachable(f"the service serves {seen['origin']}, and not {known['origin']}")
    older, newer = sorted((known, seen), key=lambda tree: tree["size"])
    evidence = {"known": known["checkpoint"], "seen": checkpoint}
    if older["size"] == newer["size"]:
        if older["root"] != newer["root"]:
            raise SplitView(f"two trees of size {older['size']} have different roots", evidence)
        return
    if known["size"] == 0:
        return
    if seen["size"] == 0:
        # Every tree continues the empty one, so a proof would show nothing.
        raise SplitView(f"the tree of size {known['size']} is gone: the log shows an empty one", evidence)
    path = f"v1/proof/consistency?first={older['size']}&second={newer['size']}"
    proof = http.retrying(path, {"Accept": "application/json"}).json()
    try:
        core.verify_tree_growth(older["size"], older["root"], newer["size"], newer["root"], proof["path"])
    except CoreError as error:
        if error.code != "proof-invalid":
            raise Unreachable(f"the service's answer is not a consistency proof: {error.message}") from None
        text = f"the tree of size {newer['size']} does not continue that of size {older['size']}: {error.message}"
        raise SplitView(text, evidence) from None
    except (KeyError, TypeError):
        raise Unreachable("the service's answer is not a consistency proof") from None
