"""Decides the cases of vectors/agentroa again, without this project's code.

    agentroa_vectors.py vectors/agentroa     prints {"permit": how many, …}

JSON comes from Python's own reader, numbers from `decimal`, signatures from `cryptography`. What is written here follows the
draft (sections 5.3, 7.4 and 8.4) and the readings that the vectors name. `vectors/README.md` describes the members of a
vector. Where a vector has `draft`, the algorithm of section 5.3 is run as it is written, too.
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


def any_number_of(inside):
    return lambda value: isinstance(value, list) and all(map(inside, value))


names = any_number_of(text)


def long_whole(value):
    return isinstance(value, decimal.Decimal) and not isinstance(value, Fraction) and 0 <= value < 2**64


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

PUBLIC_KEY = closed({"kty": one_of("OKP"), "crv": one_of("Ed25519"), "x": matches(r"[A-Za-z0-9_-]{43}")})
KEY = closed(
    {
        "signer": text,
        "role": one_of("authorizer", "agent", "gateway"),
        "organization": text,
        "public_key": PUBLIC_KEY,
        "not_before": moment,
    },
    agent_id=AGENT,
    policies=names,
    not_after=moment,
)
SUBJECTS = {"envelope": matches(r"env:[a-f0-9]{16}"), "attestation": matches(r"ara:[a-f0-9]{16}"), "key": text}
REVOCATION = closed(
    {
        "sequence": long_whole,
        "revoked_at": moment,
        "subject": lambda value: isinstance(value, dict) and len(value) == 1 and closed({}, **SUBJECTS)(value),
    }
)
VERSION = {"schema_version": one_of("1.0"), "registry_id": text, "epoch": long_whole, "sequence": long_whole, "issued_at": moment}
REGISTRY = closed(
    {
        **VERSION,
        "ttl_seconds": lambda value: whole(value) and value > 0,
        "keys": any_number_of(KEY),
        "agents": any_number_of(
            closed(
                {"agent_id": AGENT},
                oauth_clients=any_number_of(closed({"issuer": text, "client_id": text})),
                certificates=any_number_of(DIGEST),
                device_attestations=any_number_of(reference),
            )
        ),
        "servers": any_number_of(closed({"server_id": text, "tools": names})),
        "policies": any_number_of(
            closed({"policy_id": text, "policy_digest": DIGEST}, previous_digests=any_number_of(DIGEST))
        ),
        "classifications": names,
        "revocations": any_number_of(REVOCATION),
        "signatures": SIGNATURES,
    }
)
DELTA = closed(
    {**VERSION, "previous_sequence": long_whole, "revocations": some(REVOCATION, 65536), "signatures": SIGNATURES}
)


class Refused(Exception):
    """A registry or a delta that is not accepted."""


def accept(true, error):
    if not true:
        raise Refused(error)


def version(document):
    return document["epoch"], document["sequence"]


def subject(revocation):
    return next(iter(revocation["subject"].items()))


def unique(entries, name):
    return len({entry[name] for entry in entries}) == len(entries)


def read_registry(written):
    document = strict_or_refused(written)
    accept(REGISTRY(document) and is_consistent(document), "malformed")
    return document


def is_consistent(registry):
    def owned(key):
        agent = key.get("agent_id")
        fits = agent is None or organization(agent) == key["organization"]
        return fits and (key["role"] == "agent") == (agent is not None)

    order = registry["classifications"]
    return (
        all(map(owned, registry["keys"]))
        and all(revocation["sequence"] <= registry["sequence"] for revocation in registry["revocations"])
        and unique(registry["servers"], "server_id")
        and unique(registry["agents"], "agent_id")
        and unique(registry["policies"], "policy_id")
        and len(order) == len(set(order))
        and max(version(registry)) < 2**53
    )


def read_deltas(written):
    deltas = strict_or_refused(written)
    accept(isinstance(deltas, list) and len(deltas) <= 256, "malformed")
    for delta in deltas:
        accept(DELTA(delta) and delta["previous_sequence"] < delta["sequence"], "malformed")
        accept(max(version(delta)) < 2**53, "malformed")
        spans = (delta["previous_sequence"] < entry["sequence"] <= delta["sequence"] for entry in delta["revocations"])
        accept(all(spans), "malformed")
    return deltas


def strict_or_refused(written):
    try:
        return strict(written)
    except Denied:
        raise Refused("malformed") from None


class InForce:
    """A registry as a gateway keeps it: the version that was read as a whole, and the deltas that lead on from it."""

    def __init__(self, whole, deltas=()):
        self.whole, self.deltas = whole, list(deltas)

    def version(self):
        return version(self.deltas[-1] if self.deltas else self.whole)

    def revocations(self):
        return [entry for document in [self.whole, *self.deltas] for entry in document["revocations"]]

    def revoked(self):
        return set(map(subject, self.revocations()))

    def replaced(self, document, operator):
        self.check(document, operator)
        if digest(document) == digest(self.whole):
            return self
        after = InForce(document)
        for delta in self.deltas:
            starts_before = (delta["epoch"], delta["previous_sequence"]) < version(document)
            if not starts_before:
                accept(follows(after, delta), "rollback")
                after.deltas.append(delta)
        accept(version(document) > version(self.whole) and after.version() >= self.version(), "rollback")
        drops = document["epoch"] == self.version()[0] and not self.revoked() <= after.revoked()
        accept(not drops, "missing_revocation")
        return after

    def extended(self, deltas, operator):
        after = InForce(self.whole, self.deltas)
        for delta in deltas:
            after.check(delta, operator)
            if version(delta) > after.version():
                accept(follows(after, delta), "gap")
                after.deltas.append(delta)
            elif delta["epoch"] == after.version()[0]:
                accept(set(map(subject, delta["revocations"])) <= after.revoked(), "rollback")
        return after

    def check(self, document, operator):
        accept(is_signed(document, operator), "signature")
        accept(document["registry_id"] == self.whole["registry_id"], "other_registry")


def follows(registry, delta):
    return (delta["epoch"], delta["previous_sequence"]) == registry.version()


def is_signed(document, operator):
    return all(verifies(document, signature, operator) for signature in document["signatures"])


def take(step, current, operator):
    if "deltas" in step:
        return current.extended(read_deltas(step["deltas"]), operator)
    document = read_registry(step["registry"])
    if current is not None:
        return current.replaced(document, operator)
    accept(is_signed(document, operator), "signature")
    return InForce(document)


def steps(vector):
    """Reads the registries and deltas of a vector in order. An error leaves the registry in force as it was."""
    current = None
    for step in vector["steps"]:
        try:
            current = take(step, current, vector["operator"])
        except Refused as refused:
            yield {"outcome": "refuse", "error": refused.args[0]}
            continue
        epoch, sequence = current.version()
        revoked = [entry["subject"] for entry in current.revocations()]
        yield {"outcome": "accept", "epoch": epoch, "sequence": sequence, "revoked": revoked}


class Registry:
    def __init__(self, document, operator):
        self.document = document
        assert REGISTRY(document) and is_consistent(document), "malformed"
        assert is_signed(document, operator), "not signed by its operator"

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

    def is_presenter(self, presenter, name):
        return presenter.get("agent_id") == name or presenter in self.agent(name).get("oauth_clients", [])

    def tools(self, server):
        return [tool for entry in self.document["servers"] if entry["server_id"] == server for tool in entry["tools"]]


def bare(unpadded):
    return base64.urlsafe_b64decode(unpadded + "=" * (-len(unpadded) % 4))


def content(thing):
    return {name: value for name, value in thing.items() if name != "signatures"}


def verifies(thing, signature, jwk):
    return is_by(jwk, bare(signature["sig"]), jcs(content(thing)).encode())


def is_by(jwk, signature, signed):
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(bare(jwk["x"])).verify(signature, signed)
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
        signing = fitting[0]["public_key"]
        registry.not_revoked("key", thumbprint(signing))
        found += [key for key in keys if key["public_key"] == signing]
    return found


def authorizers(keys, registry):
    """Counts the persons behind keys: signers who share a key anywhere in the registry are one."""
    entries = [(key["signer"], key["public_key"]["x"]) for key in registry.document["keys"] if key["role"] == "authorizer"]

    def person(signer):
        names = {signer}
        while True:
            shared = {x for name, x in entries if name in names}
            wider = names | {name for name, x in entries if x in shared}
            if wider == names:
                return frozenset(names)
            names = wider

    return len({person(key["signer"]) for key in keys})


# --- VerifyChain -----------------------------------------------------------------------------------


def organization(agent):
    return agent.removeprefix("aha:").split("/")[0]


def verify_root(root, registry, now):
    def has_authority(key):
        allowed = key.get("policies") or [root["policy"]["policy_id"]]
        own = key["organization"] == organization(root["session"]["agent_id"])
        return key["role"] == "authorizer" and own and root["policy"]["policy_id"] in allowed

    keys = [key for key in signers(root, registry) if has_authority(key)]
    must(keys, "invalid_signature", "role")
    registry.not_revoked("envelope", root["envelope_id"])
    issued, expires = time(root["issued_at"]), time(root["expires_at"])
    must(now < expires, "envelope_expired", "expired")
    must(expires - issued <= MAX_LIFETIME, "chain_integrity_violation", "lifetime")
    must(issued - now <= CLOCK_SKEW, "chain_integrity_violation", "not_yet_valid")
    if "data_classification_ceiling" in scope_of(root):
        registry.rank(scope_of(root)["data_classification_ceiling"])
    return authorizers(keys, registry)


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
    signed_by = with_hop(0, verify_root, root, registry, now)
    scopes, holder, parent = [scope_of(root)], root["session"]["agent_id"], root
    for number, hop in enumerate(chain[1:], 1):
        with_hop(number, verify_hop, hop, parent, holder, root, registry, now)
        scopes.append(with_hop(number, narrowed, scopes[-1], scope_of(hop), registry))
        holder, parent = hop["delegated_agent"]["agent_id"], hop
    return signed_by, scopes, holder


# --- Enforce ------------------------------------------------------------------------------------------


def enforce(call, pinned, chain, verified, registry):
    signed_by, scopes, holder = verified
    root = chain[0]
    wildcard = call["call"].split(".")[0] + ".*"
    accepted_by = {call["call"], wildcard} if pinned else {call["call"]}
    granted = all(accepted_by & set(scope["capabilities"]) for scope in scopes)
    must(granted, "capability_not_in_scope", "capability", "capabilities")
    policy = root["policy"]
    for number, hop in enumerate(chain[1:], 1):
        same = hop["policy"]["policy_digest"] == policy["policy_digest"]
        with_hop(number, must, same, "policy_digest_mismatch", "chain")
    entries = [entry for entry in registry.document["policies"] if entry["policy_id"] == policy["policy_id"]]
    accepted = {digest for entry in entries for digest in [entry["policy_digest"], *entry.get("previous_digests", [])]}
    with_hop(0, must, policy["policy_digest"] in accepted, "policy_digest_mismatch", "not_in_force")
    with_hop(0, approved, root, signed_by, registry)
    presenter = call["presenter"]
    must(presenter, "auth_strength_insufficient", "presenter_missing")
    must(registry.is_presenter(presenter, holder), "auth_strength_insufficient", "presenter_mismatch")


def approved(root, signed_by, registry):
    required = root["authorization"]
    state, strength = required["approval_state"], required["auth_strength"]
    must(state != "pending", "approval_required", "approval")
    must(state != "granted" or "approval_artifact_ref" in required, "approval_required", "approval")
    must(state == "granted" or strength == "session_only", "approval_required", "approval")
    if strength == "dual_control":
        must(signed_by >= 2, "auth_strength_insufficient", "dual_control")
    elif strength != "session_only":
        known = registry.agent(root["session"]["agent_id"]).get("device_attestations", [])
        attested = root["session"].get("device_attestation_ref") in known
        must(attested, "auth_strength_insufficient", "device_attestation")


def decide(vector):
    registry = Registry(vector["registry"], vector["operator"])
    chain = read_chain(vector["chain"])
    verified = verify_chain(chain, registry, time(vector["at"]))
    enforce(vector, vector["pinned"], chain, verified, registry)
    return {"outcome": "permit"}


def or_denied(decide, *arguments):
    try:
        return decide(*arguments)
    except Denied as denied:
        denial = {"reason": denied.reason, "code": denied.code, "hop": denied.hop, "dimension": denied.dimension}
        return {"outcome": "deny", **denial}


# --- several calls under one envelope --------------------------------------------------------------


class Use:
    """What a gateway remembers of an envelope: first presenters, pinned tools, and what was spent."""

    def __init__(self):
        self.presenters, self.pinned, self.spent = {}, None, collections.Counter()

    def decide(self, call, registry):
        chain = read_chain(call["chain"])
        verified = verify_chain(chain, registry, time(call["at"]))
        pinned = self.pinned if self.pinned is not None else pinned_tools(chain[0], registry)
        enforce(call, call["call"] in pinned, chain, verified, registry)
        holder = verified[2]
        first = self.presenters.get(holder, call["presenter"])
        same = first == call["presenter"] or registry.is_presenter(first, holder)
        must(same, "replay_detected", "other_presenter")
        ledgers = [(hop, digest(content(thing)), scope_of(thing)) for hop, thing in enumerate(chain)]
        ledgers = [ledger for ledger in ledgers if "budget_ceiling" in ledger[2]]
        for hop, name, scope in ledgers:
            fits = self.spent[name] + call["cost"] <= scope["budget_ceiling"]
            with_hop(hop, must, fits, "budget_expansion_denied", "spent", "budget")
        self.presenters[holder], self.pinned = first, pinned
        self.spent.update({name: call.get("real_cost", call["cost"]) for _, name, _ in ledgers})
        return {"outcome": "permit"}


def pinned_tools(root, registry):
    wildcards = [name for name in scope_of(root)["capabilities"] if name.endswith(".*")]
    servers = [name.removeprefix("mcp:").removesuffix(".*") for name in wildcards]
    return {f"mcp:{server}.{tool}" for server in servers for tool in registry.tools(server)}


def calls(vector):
    use = Use()
    for call in vector["calls"]:
        registry = Registry(vector["registries"][int(call["registry"])], vector["operator"])
        yield or_denied(use.decide, call, registry)


# --- proofs of possession ----------------------------------------------------------------------------

MALFORMED_PROOF = ("auth_strength_insufficient", "proof_malformed")
PROOF_HEADER = closed({"alg": one_of("EdDSA"), "kid": text, "typ": one_of("roa-proof+jws")})
CLAIMS = closed(
    {
        "chain_digest": DIGEST,
        "capability": reference,
        "input_hash": DIGEST,
        "jti": text,
        "iat": lambda value: long_whole(value) and value < 253402300800,
        "aud": reference,
    }
)


def part(encoded):
    must(re.fullmatch(r"[A-Za-z0-9_-]*", encoded), *MALFORMED_PROOF)
    try:
        decoded = bare(encoded)
    except ValueError:
        raise Denied(*MALFORMED_PROOF) from None
    must(base64.urlsafe_b64encode(decoded).decode().rstrip("=") == encoded, *MALFORMED_PROOF)
    return decoded


def json_part(encoded, form):
    try:
        value = strict(part(encoded).decode())
    except (Denied, UnicodeDecodeError):
        raise Denied(*MALFORMED_PROOF) from None
    must(form(value), *MALFORMED_PROOF)
    return value


def check_proof(vector):
    registry = Registry(vector["registry"], vector["operator"])
    parts = vector["proof"].split(".")
    must(len(parts) == 3, *MALFORMED_PROOF)
    header, claims = json_part(parts[0], PROOF_HEADER), json_part(parts[1], CLAIMS)
    signature = part(parts[2])
    made = datetime.datetime.fromtimestamp(int(claims["iat"]), datetime.UTC)
    chain = strict(vector["chain"])
    agents = proving_agents(header["kid"], f"{parts[0]}.{parts[1]}".encode(), signature, made, registry)
    agent = holder(chain) if holder(chain) in agents else agents[0]
    must(claims["aud"] == vector["audience"], "auth_strength_insufficient", "proof_audience")
    arguments = {} if vector["arguments"] is None else vector["arguments"]
    stated = {"chain_digest": digest(chain), "capability": vector["call"], "input_hash": digest(arguments)}
    for member, value in stated.items():
        must(claims[member] == value, "auth_strength_insufficient", "proof_mismatch")
    now = time(vector["at"])
    in_time = made - now <= CLOCK_SKEW and now < made + CLOCK_SKEW
    must(in_time, "auth_strength_insufficient", "proof_time")
    ends_at = (made + CLOCK_SKEW).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"outcome": "accept", "agent_id": agent, "jti": claims["jti"], "ends_at": ends_at}


def holder(chain):
    return chain[-1]["delegated_agent"]["agent_id"] if len(chain) > 1 else chain[0]["session"]["agent_id"]


def proving_agents(name, signed, signature, made, registry):
    keys = [key for key in registry.keys(name, made) if key["role"] == "agent" and is_by(key["public_key"], signature, signed)]
    must(keys, "invalid_signature", "proof_signature")
    registry.not_revoked("key", thumbprint(keys[0]["public_key"]))
    return [key["agent_id"] for key in keys]


# --- the draft's algorithm, as it is written -------------------------------------------------------


def draft(chain, requested, now, registry):
    """VerifyChain of section 5.3. VerifySignature takes any key that the registry lists for the signer."""
    root = chain[0]
    if not draft_signature(root, registry):
        return "invalid_root_signature"
    if time(root["expires_at"]) < now:
        return "envelope_expired"
    current = scope_of(root)
    capabilities = expanded(current, registry)
    for hop, thing in enumerate(chain[1:], 1):
        scope = scope_of(thing)
        if thing["upstream_ref"]["ref_digest"] != digest(chain[hop - 1]):
            return "chain_integrity_violation"
        if not draft_signature(thing, registry):
            return f"invalid_ara_signature_at_hop_{hop}"
        if not expanded(scope, registry) <= capabilities:
            return f"scope_expansion_violation_at_hop_{hop}"
        if grows(scope, current, "budget_ceiling", 1):
            return f"budget_expansion_denied_at_hop_{hop}"
        if grows(scope, current, "slo_class", -1):
            return f"slo_relaxation_denied_at_hop_{hop}"
        current, capabilities = scope, expanded(scope, registry)
    if requested not in capabilities:
        return "capability_not_in_scope"
    for hop, thing in enumerate(chain[1:], 1):
        if thing["policy"]["policy_digest"] != root["policy"]["policy_digest"]:
            return f"policy_digest_mismatch_at_hop_{hop}"
    return "permit"


def grows(scope, current, member, sign):
    return member in scope and member in current and sign * scope[member] > sign * current[member]


def draft_signature(thing, registry):
    keys = registry.document["keys"]

    def fits(signature):
        own = (key for key in keys if key["signer"] == signature["signer"])
        return any(verifies(thing, signature, key["public_key"]) for key in own)

    return all(map(fits, thing["signatures"]))


def expanded(scope, registry):
    """The capabilities with each wildcard expanded to the current manifest of its server."""
    found = set()
    for name in scope["capabilities"]:
        server = name.removeprefix("mcp:").split(".")[0]
        found |= {f"mcp:{server}.{tool}" for tool in registry.tools(server)} if name.endswith(".*") else {name}
    return found


def draft_of_call(call, registry):
    return draft(strict(call["chain"]), call["call"], time(call["at"]), registry)


def drafts_of_calls(vector):
    """The draft's answers, with its cache of (envelope_id, session_id) pairs (section 8.4.2)."""
    seen = set()
    for call in vector["calls"]:
        answer = draft_of_call(call, Registry(vector["registries"][int(call["registry"])], vector["operator"]))
        root = strict(call["chain"])[0]
        pair = root["envelope_id"], root["session"]["session_id"]
        yield "replay_detected" if answer == "permit" and pair in seen else answer
        if answer == "permit":
            seen.add(pair)


# --- the vectors -------------------------------------------------------------------------------------


def answers(vector):
    """Pairs of what was found and what the vector states."""
    if "steps" in vector:
        yield from zip(steps(vector), (step["expected"] for step in vector["steps"]), strict=True)
    elif "calls" in vector:
        yield from zip(calls(vector), (call["expected"] for call in vector["calls"]), strict=True)
        for found, call in zip(drafts_of_calls(vector), vector["calls"], strict=True):
            yield found, call.get("draft", found)
    else:
        yield or_denied(check_proof if "proof" in vector else decide, vector), vector["expected"]
        if "draft" in vector:
            yield draft_of_call(vector, Registry(vector["registry"], vector["operator"])), vector["draft"]


def kind(vector):
    return "sequence" if "steps" in vector or "calls" in vector else vector["expected"]["outcome"]


def main(folder):
    counts = collections.Counter()
    for file in sorted(pathlib.Path(folder).rglob("*.json")):
        vector = json.loads(file.read_text(), parse_int=decimal.Decimal, parse_float=Fraction)
        for found, stated in answers(vector):
            assert found == stated, f"{file}: {found}, not {stated}"
        counts[kind(vector)] += 1
        counts["draft"] += "draft" in vector
    print(json.dumps(counts))


main(sys.argv[1])
