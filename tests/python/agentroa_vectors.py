"""Decides the cases of vectors/agentroa again, without this project's code.

    agentroa_vectors.py vectors/agentroa     prints {"permit": how many, …}

JSON comes from Python's own reader, numbers from `decimal`, signatures from `cryptography`. What is written here follows the
draft (sections 5.3 and 7.4) and the readings that the vectors name.
"""

import base64
import collections
import datetime
import decimal
import hashlib
import json
import pathlib
import re
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ed25519

CLOCK_SKEW = datetime.timedelta(seconds=60)
MAX_LIFETIME = datetime.timedelta(days=1)


class Denied(Exception):
    def __init__(self, reason, code, dimension=None):
        super().__init__(reason, code)
        self.reason, self.code, self.dimension, self.hop = reason, code, dimension, None


def must(true, *denial):
    if not true:
        raise Denied(*denial)


MALFORMED = ("chain_integrity_violation", "malformed")

# --- JSON and its canonical form ----------------------------------------------------------------


def members(pairs):
    must(len({name for name, _ in pairs}) == len(pairs), *MALFORMED)
    return dict(pairs)


class Fraction(decimal.Decimal):
    """A number that is written with a point or an exponent."""


def strict(text):
    must(not text.startswith("\ufeff"), *MALFORMED)
    try:
        return json.loads(text, object_pairs_hook=members, parse_float=Fraction, parse_int=decimal.Decimal)
    except json.JSONDecodeError:
        raise Denied(*MALFORMED) from None


def jcs(value):
    if isinstance(value, dict):
        inside = (f"{json.dumps(name, ensure_ascii=False)}:{jcs(value[name])}" for name in sorted(value))
        return "{" + ",".join(inside) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(jcs, value)) + "]"
    if isinstance(value, decimal.Decimal):
        double = float(value)
        assert decimal.Decimal(repr(double)) == value, f"{value} is beyond a double"
        return json.dumps(int(double) if double.is_integer() else double)
    return json.dumps(value, ensure_ascii=False)


def digest(value):
    return "sha256:" + hashlib.sha256(jcs(value).encode()).hexdigest()


# --- the form of the objects ----------------------------------------------------------------------


def text(value, most=256):
    return isinstance(value, str) and 0 < len(value) <= most and not re.search(r"[\x00-\x1f\x7f-\x9f]", value)


def reference(value):
    return text(value, 8192)


def matches(pattern):
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def one_of(*words):
    return lambda value: value in words


def whole(value):
    return isinstance(value, decimal.Decimal) and not isinstance(value, Fraction) and 0 <= value < 2**32


def amount(value):
    return isinstance(value, decimal.Decimal) and value >= 0


def boolean(value):
    return isinstance(value, bool)


def capabilities(value):
    named = matches(r"mcp:[A-Za-z0-9_-]+\.(\*|[^*\x00-\x1f\x7f]+)")
    return isinstance(value, list) and 0 < len(value) == len(set(value)) and all(map(named, value))


def moment(value):
    shape = matches(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")
    try:
        return shape(value) and bool(time(value))
    except ValueError:
        return False


def time(value):
    return datetime.datetime.fromisoformat(value)


def closed(required, **optional):
    def fits(value):
        return (
            isinstance(value, dict)
            and required.keys() <= value.keys() <= required.keys() | optional.keys()
            and all({**required, **optional}[name](inside) for name, inside in value.items())
        )

    return fits


def some(inside, most):
    return lambda value: isinstance(value, list) and 0 < len(value) <= most and all(map(inside, value))


def names(value):
    return isinstance(value, list) and all(map(text, value))


AGENT = matches(r"aha:[a-zA-Z0-9_-]+/[a-zA-Z0-9_-]+/[a-zA-Z0-9_-]+")
DIGEST = matches(r"sha256:[a-f0-9]{64}")
SIGNATURES = some(closed({"signer": text, "alg": one_of("EdDSA"), "sig": matches(r"[A-Za-z0-9_-]{86}")}), 16)
CEILINGS = {
    "data_classification_ceiling": text,
    "budget_ceiling": amount,
    "budget_unit": text,
    "price_class": whole,
    "slo_class": whole,
}
ENVELOPE = closed(
    {
        "schema_version": one_of("1.0"),
        "envelope_id": matches(r"env:[a-f0-9]{16}"),
        "issued_at": moment,
        "expires_at": moment,
        "session": closed(
            {
                "session_id": text,
                "channel": one_of("api", "mcp_client", "voice", "browser", "mobile_app"),
                "agent_id": AGENT,
            },
            device_attestation_ref=reference,
        ),
        "authorized_scope": closed(
            {"capabilities": capabilities, "max_delegation_depth": whole, "cross_org_permitted": boolean}, **CEILINGS
        ),
        "policy": closed({"policy_id": text, "policy_version": text, "policy_digest": DIGEST}, policy_uri=reference),
        "authorization": closed(
            {
                "auth_strength": one_of(
                    "session_only", "device_bound", "device_bound_with_attestation", "dual_control"
                ),
                "approval_state": one_of("pending", "granted", "not_required"),
            },
            approval_artifact_ref=reference,
        ),
        "evidence": closed({"session_hash": text, "model_provenance": names}),
        "signatures": SIGNATURES,
    }
)
ATTESTATION = closed(
    {
        "schema_version": one_of("1.0"),
        "ara_id": matches(r"ara:[a-f0-9]{16}"),
        "issued_at": moment,
        "upstream_ref": closed({"ref_type": one_of("roa_envelope", "ara"), "ref_id": text, "ref_digest": DIGEST}),
        "delegating_agent": closed({"agent_id": AGENT, "session_id": text}),
        "delegated_agent": closed({"agent_id": AGENT}, capability_declaration_ref=reference),
        "delegated_scope": closed(
            {"capabilities": capabilities}, task_context=lambda value: text(value, 4096), max_delegation_depth=whole, **CEILINGS
        ),
        "policy": closed({"policy_digest": DIGEST, "policy_version": text}),
        "signatures": SIGNATURES,
    }
)


def scope_of(thing):
    return thing.get("authorized_scope") or thing["delegated_scope"]


def read_chain(presented):
    objects = strict(presented)
    must(isinstance(objects, list) and 0 < len(objects) <= 33, *MALFORMED)
    for hop, thing in enumerate(objects):
        with_hop(hop, read_object, thing, ATTESTATION if hop else ENVELOPE)
    return objects


def read_object(thing, form):
    must(form(thing), *MALFORMED)
    must("budget_ceiling" not in scope_of(thing) or "budget_unit" in scope_of(thing), *MALFORMED)
    must("expires_at" not in thing or time(thing["issued_at"]) < time(thing["expires_at"]), *MALFORMED)
    must(not reserved(thing), *MALFORMED)


def reserved(thing):
    """Whether an object has a value that stands for a missing envelope in a receipt (R-8)."""
    agent = "aha:unknown/unknown/unknown"
    if "delegated_agent" in thing:
        return thing["delegated_agent"]["agent_id"] == agent
    session, policy = thing["session"], thing["policy"]
    return (
        thing["envelope_id"] == "env:" + 16 * "0"
        or (session["session_id"] == "none" or session["agent_id"] == agent)
        or (policy["policy_id"] == "none" or policy["policy_digest"] == "sha256:" + 64 * "0")
    )


def with_hop(hop, check, *arguments):
    try:
        return check(*arguments)
    except Denied as denied:
        denied.hop = hop
        raise


# --- the registry ------------------------------------------------------------------------------------


class Registry:
    def __init__(self, document, operator):
        self.document = document
        for signature in document["signatures"]:
            assert verifies(document, signature, operator), "not signed by its operator"

    def keys(self, signer, at):
        for key in self.document["keys"]:
            begun = time(key["not_before"]) <= at
            if key["signer"] == signer and begun and ("not_after" not in key or at < time(key["not_after"])):
                yield key

    def not_revoked(self, kind, name):
        subjects = [revocation["subject"] for revocation in self.document["revocations"]]
        must({kind: name} not in subjects, "envelope_revoked", "revoked")

    def rank(self, label):
        order = self.document["classifications"]
        must(label in order, "scope_expansion_violation", "classification", "classification")
        return order.index(label)

    def agent(self, name):
        return next((agent for agent in self.document["agents"] if agent["agent_id"] == name), {})


def bare(unpadded):
    return base64.urlsafe_b64decode(unpadded + "=" * (-len(unpadded) % 4))


def verifies(thing, signature, jwk):
    content = {name: value for name, value in thing.items() if name != "signatures"}
    try:
        key = ed25519.Ed25519PublicKey.from_public_bytes(bare(jwk["x"]))
        key.verify(bare(signature["sig"]), jcs(content).encode())
        return True
    except InvalidSignature:
        return False


def thumbprint(jwk):
    required = {"crv": jwk["crv"], "kty": jwk["kty"], "x": jwk["x"]}
    return base64.urlsafe_b64encode(hashlib.sha256(jcs(required).encode()).digest()).rstrip(b"=").decode()


def signers(thing, registry):
    found = []
    for signature in thing["signatures"]:
        keys = list(registry.keys(signature["signer"], time(thing["issued_at"])))
        must(keys, "invalid_signature", "unknown_signer")
        fitting = [key for key in keys if verifies(thing, signature, key["public_key"])]
        must(fitting, "invalid_signature", "signature")
        registry.not_revoked("key", thumbprint(fitting[0]["public_key"]))
        found.append(fitting[0])
    return found


# --- VerifyChain -----------------------------------------------------------------------------------


def organization(agent):
    return agent.removeprefix("aha:").split("/")[0]


def verify_root(root, registry, now):
    def has_authority(key):
        allowed = key.get("policies") or [root["policy"]["policy_id"]]
        own = key["organization"] == organization(root["session"]["agent_id"])
        return key["role"] == "authorizer" and own and root["policy"]["policy_id"] in allowed

    keys = [key for key in signers(root, registry) if has_authority(key)]
    authorizers = min(len({key["signer"] for key in keys}), len({key["public_key"]["x"] for key in keys}))
    must(authorizers, "invalid_signature", "role")
    registry.not_revoked("envelope", root["envelope_id"])
    issued, expires = time(root["issued_at"]), time(root["expires_at"])
    must(now < expires, "envelope_expired", "expired")
    must(expires - issued <= MAX_LIFETIME, "chain_integrity_violation", "lifetime")
    must(issued - now <= CLOCK_SKEW, "chain_integrity_violation", "not_yet_valid")
    if "data_classification_ceiling" in scope_of(root):
        registry.rank(scope_of(root)["data_classification_ceiling"])
    return authorizers


def verify_hop(hop, parent, holder, root, registry, now):
    name = parent.get("envelope_id") or parent["ara_id"]
    kind = "roa_envelope" if parent is root else "ara"
    expected = {"ref_type": kind, "ref_id": name, "ref_digest": digest(parent)}
    must(hop["upstream_ref"] == expected, "chain_integrity_violation", "upstream_ref")
    delegating = hop["delegating_agent"]
    session_fits = parent is not root or delegating["session_id"] == root["session"]["session_id"]
    must(delegating["agent_id"] == holder and session_fits, "chain_integrity_violation", "holder")
    own = [key for key in signers(hop, registry) if key["role"] == "agent" and key.get("agent_id") == holder]
    must(own, "invalid_signature", "role")
    registry.not_revoked("attestation", hop["ara_id"])
    issued = time(hop["issued_at"])
    must(issued - now <= CLOCK_SKEW, "chain_integrity_violation", "not_yet_valid")
    within = time(parent["issued_at"]) <= issued < time(root["expires_at"])
    must(within, "chain_integrity_violation", "window")
    same = organization(hop["delegated_agent"]["agent_id"]) == organization(root["session"]["agent_id"])
    permitted = same or scope_of(root)["cross_org_permitted"]
    must(permitted, "scope_expansion_violation", "cross_org", "organization")


def narrowed(scope, declared, registry):
    """The meet of the scope so far and what a hop declares; what it omits is inherited."""
    after = dict(scope)
    must(scope["max_delegation_depth"] >= 1, "chain_integrity_violation", "depth", "depth")
    after["max_delegation_depth"] = declared.get("max_delegation_depth", scope["max_delegation_depth"] - 1)
    falls = after["max_delegation_depth"] < scope["max_delegation_depth"]
    must(falls, "chain_integrity_violation", "depth", "depth")
    before = set(scope["capabilities"])
    for capability in declared["capabilities"]:
        wildcard = capability.split(".")[0] + ".*"
        known = capability in before or wildcard in before
        must(known, "scope_expansion_violation", "capabilities", "capabilities")
    after["capabilities"] = declared["capabilities"]
    if "data_classification_ceiling" in declared:
        rank = registry.rank(declared["data_classification_ceiling"])
        ceiling = scope.get("data_classification_ceiling")
        fits = ceiling is None or rank <= registry.rank(ceiling)
        must(fits, "scope_expansion_violation", "classification", "classification")
        after["data_classification_ceiling"] = declared["data_classification_ceiling"]
    if "budget_ceiling" in declared:
        if "budget_ceiling" in scope:
            must(scope["budget_unit"] == declared["budget_unit"], "budget_expansion_denied", "unit", "budget")
            fits = declared["budget_ceiling"] <= scope["budget_ceiling"]
            must(fits, "budget_expansion_denied", "ceiling", "budget")
        after.update({name: declared[name] for name in ("budget_ceiling", "budget_unit")})
    if "price_class" in declared:
        fits = declared["price_class"] <= scope.get("price_class", declared["price_class"])
        must(fits, "budget_expansion_denied", "price", "price")
        after["price_class"] = declared["price_class"]
    if "slo_class" in declared:
        fits = declared["slo_class"] >= scope.get("slo_class", declared["slo_class"])
        must(fits, "slo_relaxation_denied", "slo", "slo")
        after["slo_class"] = declared["slo_class"]
    return after


def verify_chain(chain, registry, now):
    root = chain[0]
    authorizers = with_hop(0, verify_root, root, registry, now)
    scope, holder, parent = scope_of(root), root["session"]["agent_id"], root
    for number, hop in enumerate(chain[1:], 1):
        with_hop(number, verify_hop, hop, parent, holder, root, registry, now)
        scope = with_hop(number, narrowed, scope, scope_of(hop), registry)
        holder, parent = hop["delegated_agent"]["agent_id"], hop
    return authorizers, scope, holder


# --- Enforce ------------------------------------------------------------------------------------------


def enforce(vector, chain, registry):
    authorizers, scope, holder = verify_chain(chain, registry, time(vector["at"]))
    root = chain[0]
    wildcard = vector["call"].split(".")[0] + ".*"
    granted = vector["call"] in scope["capabilities"] or (vector["pinned"] and wildcard in scope["capabilities"])
    must(granted, "capability_not_in_scope", "capability", "capabilities")
    policy = root["policy"]
    for number, hop in enumerate(chain[1:], 1):
        same = hop["policy"]["policy_digest"] == policy["policy_digest"]
        with_hop(number, must, same, "policy_digest_mismatch", "chain")
    entries = [entry for entry in registry.document["policies"] if entry["policy_id"] == policy["policy_id"]]
    accepted = {digest for entry in entries for digest in [entry["policy_digest"], *entry.get("previous_digests", [])]}
    with_hop(0, must, policy["policy_digest"] in accepted, "policy_digest_mismatch", "not_in_force")
    with_hop(0, approved, root, authorizers, registry)
    presenter = vector["presenter"]
    must(presenter, "auth_strength_insufficient", "presenter_missing")
    proven = presenter.get("agent_id") == holder or presenter in registry.agent(holder).get("oauth_clients", [])
    must(proven, "auth_strength_insufficient", "presenter_mismatch")


def approved(root, authorizers, registry):
    required = root["authorization"]
    state, strength = required["approval_state"], required["auth_strength"]
    must(state != "pending", "approval_required", "approval")
    must(state != "granted" or "approval_artifact_ref" in required, "approval_required", "approval")
    must(state == "granted" or strength == "session_only", "approval_required", "approval")
    if strength == "dual_control":
        must(authorizers >= 2, "auth_strength_insufficient", "dual_control")
    elif strength != "session_only":
        known = registry.agent(root["session"]["agent_id"]).get("device_attestations", [])
        attested = root["session"].get("device_attestation_ref") in known
        must(attested, "auth_strength_insufficient", "device_attestation")


def decide(vector):
    registry = Registry(vector["registry"], vector["operator"])
    try:
        enforce(vector, read_chain(vector["chain"]), registry)
        return {"outcome": "permit"}
    except Denied as denied:
        denial = {"reason": denied.reason, "code": denied.code, "hop": denied.hop, "dimension": denied.dimension}
        return {"outcome": "deny", **denial}


def main(folder):
    counts = collections.Counter()
    for file in sorted(pathlib.Path(folder).rglob("*.json")):
        vector = json.loads(file.read_text(), parse_int=decimal.Decimal, parse_float=Fraction)
        decided = decide(vector)
        assert decided == vector["expected"], f"{file}: {decided}, not {vector['expected']}"
        counts[decided["outcome"]] += 1
    print(json.dumps(counts))


main(sys.argv[1])
