"""The functions of the core (`sdk/core`): statements, receipts, verification and VAP messages, offline.

Every function gives the same results and codes as `tabellion` itself and as the TypeScript package. Errors are `CoreError`.
"""

from __future__ import annotations

import base64
import json
import time
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple, Union

from . import _core
from .errors import CoreError

Json = Dict[str, Any]


class SigningKey(NamedTuple):
    """A signing key: PKCS#8 in PEM, with the public key as a DID, a JWK and its thumbprint (RFC 7638)."""

    private_key: str
    did: str
    jwk: Json
    thumbprint: str

    def __repr__(self) -> str:
        return f"SigningKey(did={self.did!r})"


class SignedStatement(NamedTuple):
    """A signed statement, and its entry ID: the SHA-256 digest that names it in every log."""

    bytes: bytes
    entry: str


class SignedMessage(NamedTuple):
    """A VAP message, ready to be sent, and its digest without the signature."""

    message: Json
    digest: str


def call(operation: str, **arguments: Any) -> Any:
    """Performs an operation of the core. Byte strings are encoded; arguments that are `None` are left out."""
    request = {name: _encoded(value) for name, value in arguments.items() if value is not None}
    answer = json.loads(_core.answer(json.dumps({"operation": operation, **request}).encode()))
    if "error" in answer:
        error = answer["error"]
        raise CoreError(error["code"], error["what"], error.get("offset"))
    return answer["result"]


def _encoded(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return encode(bytes(value))
    if isinstance(value, (list, tuple)):
        return [_encoded(item) for item in value]
    return value


def encode(value: bytes) -> str:
    """Encodes bytes as unpadded base64url."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Decodes unpadded base64url."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def generate_key(algorithm: str = "EdDSA") -> SigningKey:
    """Generates a signing key. Algorithms are named as in COSE: EdDSA, ES256, ES384, ES512."""
    return _signing_key(call("generate-key", algorithm=algorithm))


def load_key(pem: str) -> SigningKey:
    """Reads a signing key from a PKCS#8 block in PEM, as `tabellion issuer new` writes it."""
    return _signing_key({**call("public-key", private_key=pem), "private_key": pem})


def _signing_key(key: Mapping[str, Any]) -> SigningKey:
    return SigningKey(key["private_key"], key["did"], key["jwk"], key["thumbprint"])


def sign_statement(
    key: SigningKey,
    payload: bytes,
    *,
    content_type: str,
    subject: str,
    issuer: Optional[str] = None,
    kid: Optional[str] = None,
    issued_at: Optional[int] = None,
    detached: bool = False,
) -> SignedStatement:
    """Signs a statement. Without `issuer`, that is the `did:key` of the key. Without `kid`, the key is named by that DID, or for
    another issuer by its thumbprint."""
    signed = call(
        "sign-statement",
        private_key=key.private_key,
        payload=payload,
        content_type=content_type,
        sub=subject,
        iss=issuer,
        kid=kid,
        iat=issued_at,
        detached=detached,
    )
    return SignedStatement(decode(signed["statement"]), signed["entry"])


def read_statement(statement: bytes) -> Json:
    """Reads a statement: `entry`, `iss`, `sub`, `content_type`, `payload`, `receipts` … Nothing is verified."""
    facts = call("read-statement", statement=statement)
    facts["statement"] = decode(facts["statement"])
    facts["receipts"] = [decode(receipt) for receipt in facts["receipts"]]
    facts["payload"] = None if facts["payload"] is None else decode(facts["payload"])
    return facts


def attach(statement: bytes, receipts: Iterable[bytes]) -> bytes:
    """Attaches receipts: the result is a Transparent Statement."""
    return decode(call("attach", statement=statement, receipts=list(receipts))["statement"])


def strip(statement: bytes) -> "tuple[bytes, List[bytes]]":
    """Removes the receipts; returns the statement and the receipts."""
    stripped = call("strip", statement=statement)
    return decode(stripped["statement"]), [decode(receipt) for receipt in stripped["receipts"]]


def verify(
    evidence: bytes,
    trust: str,
    *,
    receipts: Iterable[bytes] = (),
    payload: Optional[bytes] = None,
    witness_policy: Optional[str] = None,
    gateway_keys: Iterable[str] = (),
    now: Optional[int] = None,
) -> Json:
    """Verifies an evidence bundle, a statement with its receipts, or a checkpoint, offline; also by the rules of content types.

    `trust` is the text of a trust.toml: the keys of logs and issuers come from there alone. `gateway_keys` are those of the gateway that
    signed within an execution receipt. Returns the verdict: `outcome` is `verified`, `failed` or `not-verified`, `reason` the code, and
    `checks` lists all that was checked and what was not.
    """
    return call(
        "verify",
        evidence=evidence,
        trust=trust,
        receipts=list(receipts),
        payload=payload,
        witness_policy=witness_policy,
        gateway_keys=list(gateway_keys),
        now=_now(now),
    )["verdict"]


def check_content(statement: bytes, content: Optional[bytes] = None) -> str:
    """Checks a statement against the rules of its content type, for example before it is registered. No signature is verified.

    `content` is the payload of a detached statement, or what the statement holds the hash of. Returns how far the check went:
    `complete`, `no-rules`, `header-only` or `payload-missing`. A broken rule is the code of the `CoreError`; for content that has
    another hash, it is `payload-digest-mismatch`.
    """
    return call("check-content", statement=statement, content=content)["checked"]


def check_policy(policy: str) -> Json:
    """Checks a registration policy (TOML, or the JSON of a policy statement). `mistakes` lists all that is wrong, each with its `key`
    and `problem`; without any, there are the `digest` and the `payload`."""
    return call("check-policy", policy=policy)


def try_policy(
    policy: str,
    statement: bytes,
    *,
    payload: Optional[bytes] = None,
    entries: Iterable[Union[bytes, Tuple[bytes, bytes]]] = (),
    now: Optional[int] = None,
) -> Json:
    """Decides about a statement as a log under this policy does that has only these `entries`: `tabellion policy test` with entries.
    An entry is a statement, or a detached statement and its payload.

    `outcome` is `admitted`, `refused` or `undecided`, and `rule` the rule that decided; or `registered`, if it is the entry at `leaf`
    already. `max_entries` says how many entries the log may have with an admitted one. `asks_the_log` says that other entries were
    looked up. A log with others may decide otherwise then, and refuses a claim that one of them makes, such as a `receipt_id`. Without
    `now`, rules about time are left open.
    """
    given = [_with_payload(*entry) if isinstance(entry, tuple) else entry for entry in entries]
    return call("try-policy", policy=policy, statement=statement, payload=payload, entries=given, now=now)


def _with_payload(statement: bytes, payload: bytes) -> Json:
    return {"statement": encode(statement), "payload": encode(payload)}


def verify_chain(
    chain: str,
    registry: str,
    operators: Iterable[str],
    *,
    capability: Optional[str] = None,
    presenter: Optional[Mapping[str, str]] = None,
    pinned: Optional[bool] = None,
    now: Optional[int] = None,
) -> Json:
    """Verifies a delegation chain of AgentROA under a registry that one of the `operators` signed: `tabellion roa verify`.

    With `capability` (`mcp:SERVER.TOOL`), also decides whether `presenter` may call the tool: `{"agent_id": …}` after `verify_proof`,
    `{"issuer": …, "client_id": …}` after OAuth, or `{"certificate": "sha256:…"}`. Nobody may call without one. `outcome` is `permit`, with
    the `holder` and its `capabilities`, or `deny`, with `reason` and `code`. Budgets that are spent are for the caller to remember.
    """
    call_of = {"capability": capability, "presenter": presenter and dict(presenter), "pinned": pinned}
    return call(
        "verify-chain",
        chain=chain,
        registry={"document": registry, "operators": list(operators)},
        call=None if capability is None else call_of,
        at=_utc(now),
    )


def verify_proof(
    proof: str,
    chain: str,
    registry: str,
    operators: Iterable[str],
    *,
    capability: str,
    audience: str,
    arguments: Any = None,
    now: Optional[int] = None,
) -> Json:
    """Verifies an agent's proof (a compact JWS) that it makes this call under a chain of AgentROA.

    `outcome` is `accept`, with `agent_id`, `jti` and `ends_at`, or `deny`. The caller refuses a `jti` that it has seen, until `ends_at`.
    """
    return call(
        "verify-proof",
        proof=proof,
        chain=chain,
        registry={"document": registry, "operators": list(operators)},
        capability=capability,
        audience=audience,
        arguments=None if arguments is None else json.dumps(arguments, ensure_ascii=False),
        at=_utc(now),
    )


def read_terms(statement: bytes, payload: Optional[bytes] = None) -> Json:
    """Reads the terms under which a log's index has an entry. With a `blind` code, the entry may have others too."""
    return call("read-terms", statement=statement, payload=payload)


def verify_search(
    answer: bytes,
    trust: str,
    *,
    witness_policy: Optional[str] = None,
    monitors: Iterable[str] = (),
    attestations: Iterable[str] = (),
    now: Optional[int] = None,
) -> Json:
    """Verifies offline that the answer of a search is complete: a file of `tabellion entry search --prove`.

    `monitors` are verifier keys, each of which must have attested the index; without any, the trust file decides. `outcome` is
    `complete`, `complete-but` (then `gaps` lists what is open), `not-proven` or `wrong`. `question` is what was asked: compare it with what
    you wanted to know. `found` are the entries.
    """
    return call(
        "verify-search",
        answer=answer,
        trust=trust,
        witness_policy=witness_policy,
        monitors=list(monitors),
        attestations=list(attestations),
        now=_now(now),
    )


def verify_consistency(receipt: bytes, size: int, root: str, trust: str, *, now: Optional[int] = None) -> Json:
    """Verifies by a consistency receipt that the tree of this size and root is the beginning of the one it signs."""
    known = {"size": size, "root": root}
    return call("verify-consistency", receipt=receipt, known=known, trust=trust, now=_now(now))


def verify_tree_growth(older_size: int, older_root: str, newer_size: int, newer_root: str, path: List[str]) -> None:
    """Verifies a Merkle consistency proof between two roots (RFC 9162), all in hexadecimal."""
    call(
        "consistency-proof",
        older_size=older_size,
        older_root=older_root,
        newer_size=newer_size,
        newer_root=newer_root,
        path=path,
    )


def sign_message(
    message: Mapping[str, Any],
    key: Optional[SigningKey] = None,
    *,
    kid: Optional[str] = None,
    issued_at: Optional[int] = None,
    jti: Optional[str] = None,
    audience: Optional[str] = None,
) -> SignedMessage:
    """Checks a VAP message as a gateway does, and signs it if there is a key."""
    signed = call(
        "sign-message",
        message=json.dumps(message, ensure_ascii=False),
        private_key=key.private_key if key else None,
        kid=kid,
        iat=issued_at,
        jti=jti,
        aud=audience,
    )
    return SignedMessage(json.loads(signed["message"]), signed["digest"])


def verify_verdict(verdict: Mapping[str, Any], public_key: str, message: Optional[Mapping[str, Any]] = None) -> Json:
    """Verifies the signature of a gateway's Verdict, and that it answers `message`."""
    return call(
        "verify-verdict",
        verdict=json.dumps(verdict, ensure_ascii=False),
        public_key=public_key,
        message=None if message is None else json.dumps(message, ensure_ascii=False),
    )


def digest_json(value: Any) -> str:
    """Returns the digest of a JSON value over its canonical form (RFC 8785): `sha256:` and hexadecimal digits."""
    return call("digest-json", json=json.dumps(value, ensure_ascii=False))["digest"]


def allows(tool: str, allow: Iterable[str], deny: Iterable[str] = ()) -> bool:
    """Returns whether a scope allows a tool: a pattern matches it, and none of `deny` does."""
    return call("match-pattern", tool=tool, allow=list(allow), deny=list(deny))["allowed"]


def _utc(now: Optional[int]) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(_now(now)))


def _now(now: Optional[int]) -> int:
    return int(time.time()) if now is None else now
