"""Decides the cases of vectors/admission again, without this project's code.

    admission_vectors.py vectors/admission     prints {"message": how many, …}

JSON comes from Python's own reader, numbers from `decimal`, signatures from `cryptography`. What is written here follows the
readings that the vectors name. Of `message`, only the digests of what is accepted; of the rest, everything.
"""

import base64
import collections
import datetime
import decimal
import hashlib
import hmac
import json
import pathlib
import re
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

NESTED = ("scope_commitment", "intent", "amendment")
HEADER = {"alg", "kid", "typ", "iat", "jti", "aud"}


class Refused(Exception):
    """For this reason."""


def must(true, reason):
    if not true:
        raise Refused(reason)


def members(pairs):
    assert len({name for name, _ in pairs}) == len(pairs), "a member twice"
    return dict(pairs)


def exactly(text):
    return json.loads(text, object_pairs_hook=members, parse_float=decimal.Decimal, parse_int=decimal.Decimal)


def number(value):
    """As JavaScript writes it; the vectors need no exponents."""
    double = float(value)
    assert decimal.Decimal(repr(double)) == value, f"{value} is beyond a double"
    return int(double) if double.is_integer() else double


def jcs(value):
    if isinstance(value, dict):
        inside = (f"{json.dumps(name, ensure_ascii=False)}:{jcs(value[name])}" for name in sorted(value))
        return "{" + ",".join(inside) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(jcs, value)) + "]"
    if isinstance(value, decimal.Decimal):
        return json.dumps(number(value))
    return json.dumps(value, ensure_ascii=False)


def digest(text):
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unpadded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def time(text):
    return datetime.datetime.fromisoformat(text)


def message(case):
    if "refuse" in case["expected"]:
        return None
    slot = exactly(case["text"])
    told, name = case["expected"]["accept"], next((name for name in NESTED if name in slot), None)
    said = slot if "type" in slot else slot[name]
    raw = told.get("canon") == "raw"
    return {**told, "digest": digest(case["text"].strip(" \t\r\n") if raw else jcs(said)), "session_id": said["session_id"], "type": said["type"],
            "shape": "flat" if "type" in slot else "nested"}


def arguments(case):
    try:
        must(exactly(case["declared"]) == exactly(case["called"]), "call_mismatch")
    except AssertionError:
        raise Refused("call_mismatch") from None
    return "equal"


def pattern(case):
    def any_of(patterns):
        literal = lambda text: ".*".join(map(re.escape, text.split("*")))
        return any(re.fullmatch(literal(text), case["tool"], re.DOTALL) for text in patterns)

    must(any_of(case["allow"]) and not any_of(case["deny"]), "scope_escape")
    return "allowed"


def rule(case):
    """Denies where the member at `path` is more than `most`, or missing, or null; `arguments` must mean one thing to all."""

    def whole(text):
        must(abs(int(text)) < 2**53, "policy_failed")
        return int(text)

    def fraction(text):
        must(decimal.Decimal(repr(float(text))) == decimal.Decimal(text), "policy_failed")
        return decimal.Decimal(text)

    def named(pairs):
        must(not any(name.startswith("$serde_json::private::") for name, _ in pairs), "policy_failed")
        return members(pairs)

    try:
        value = json.loads(case["arguments"], object_pairs_hook=named, parse_float=fraction, parse_int=whole)
    except AssertionError:
        raise Refused("policy_failed") from None
    for name in case["path"].split("."):
        value = value.get(name) if isinstance(value, dict) else None
    must(value is not None and value <= case["most"], "policy:large")
    return "forwarded"


def link(effective, ceiling):
    before = jcs(effective["budget"])
    budget = effective["budget"] = dict(effective["budget"])
    ceiling = ceiling or {}
    if "max_calls" in ceiling:
        budget["max_calls"] = min(budget.get("max_calls", ceiling["max_calls"]), ceiling["max_calls"])
    latest = ceiling.get("deadline")
    if latest and ("deadline" not in budget or time(budget["deadline"]) > time(latest)):
        budget["deadline"] = latest
    limits = {**ceiling.get("limits", {}), **budget.get("limits", {})}
    if limits:
        budget["limits"] = {meter: min(most, ceiling.get("limits", {}).get(meter, most)) for meter, most in limits.items()}
    text = jcs(effective)
    return {"effective": text, "digest": digest(text), "verdict": "served" if jcs(budget) == before else "downgraded"}


def raise_budget(budget, added):
    for raised, name in (("add_calls", "max_calls"), ("extend_deadline", "deadline")):
        must(raised not in added or name in budget, "no_such_limit")
    if "add_calls" in added:
        budget["max_calls"] += added["add_calls"]
    if "extend_deadline" in added:
        must(time(added["extend_deadline"]) > time(budget["deadline"]), "deadline_not_later")
        budget["deadline"] = added["extend_deadline"]
    budget["limits"] = dict(budget.get("limits", {}))
    for meter, amount in added.get("add_limits", {}).items():
        must(amount > 0, "malformed")
        must(meter in budget["limits"], "no_such_limit")
        budget["limits"][meter] += amount
    if not budget["limits"]:
        del budget["limits"]


def chain(case):
    ceiling = exactly(json.dumps(case["ceiling"]))
    effective = exactly(case["commitment"])
    effective.pop("signature", None)
    links = [link(effective, ceiling)]
    for text in case["amendments"]:
        last = links[-1]
        amendment, effective = exactly(text.replace('"@"', f'"{last["digest"]}"')), exactly(last["effective"])
        must(amendment["prev_commitment_digest"].lower() == last["digest"], "chain_broken")
        scope, budget = amendment.get("add_scope", {}), amendment.get("increase_budget", {})
        must(any(scope.values()) or budget, "nothing_to_add")
        for name, added in scope.items():
            known = effective["scope"].setdefault(name, [])
            known += [text for text in dict.fromkeys(added) if text not in known]
        raise_budget(effective["budget"], budget)
        effective["prev_commitment_digest"] = last["digest"]
        if "new_plan_digest" in amendment:
            effective["plan_digest"] = amendment["new_plan_digest"]
        links.append(link(effective, ceiling))
    return links


def thumbprint(jwk):
    needed = {name: jwk[name] for name in ("crv", "kty", "x", "y") if name in jwk}
    return b64(hashlib.sha256(jcs(needed).encode()).digest())


def holds(jwk, alg, signature, signed):
    try:
        if jwk["kty"] == "OKP" and alg in ("EdDSA", "Ed25519"):
            ed25519.Ed25519PublicKey.from_public_bytes(unpadded(jwk["x"])).verify(signature, signed)
            return True
        if jwk["crv"] == "P-256" and alg == "ES256" and len(signature) == 64:
            x, y, r, s = (int.from_bytes(part, "big") for part in (unpadded(jwk["x"]), unpadded(jwk["y"]), signature[:32], signature[32:]))
            key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
            key.verify(encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA256()))
            return True
    except InvalidSignature:
        pass
    return False


def signature(case):
    said, demands, now = exactly(case["text"]), case["demands"], time(case["now"])
    amends = said["type"] == "scope_amendment"
    if "signature" not in said:
        must(not demands["signed"] and not (amends and demands["amendments_signed"]), "signature_required")
        begins, own = said["type"] == "scope_commitment", [key for key in case["keys"] if key.get("agent_id") == case["agent_id"]]
        must(not (begins and own), "signature_required")
        return "unsigned"
    parts = said.pop("signature").split(".")
    try:
        payload = jcs(said).encode()
    except AssertionError:
        raise Refused("not_canonical") from None
    must(len(parts) == 3, "invalid_signature")
    header = json.loads(unpadded(parts[0]))
    must(set(header) <= HEADER and header["alg"] in ("EdDSA", "Ed25519", "ES256"), "invalid_signature")
    must(parts[1] in ("", b64(payload)), "invalid_signature")
    signed = f"{parts[0]}.{b64(payload)}".encode()
    keys = [key for key in case["keys"] if header["kid"] in (key["jwk"].get("kid"), thumbprint(key["jwk"]))]
    must(keys, "unknown_key")
    keys = [key for key in keys if (key["agent_id"] == case["agent_id"] if "agent_id" in key else amends)]
    must(keys, "key_not_authorised")
    begun = lambda key: "not_before" not in key or time(key["not_before"]) <= now
    keys = [key for key in keys if begun(key) and ("not_after" not in key or now < time(key["not_after"]))]
    must(keys, "key_not_valid_now")
    keys = [key for key in keys if holds(key["jwk"], header["alg"], unpadded(parts[2]), signed)]
    must(keys, "invalid_signature")
    must(not demands["freshness"] or {"iat", "jti", "aud"} <= set(header), "freshness_required")
    must(header.get("aud", demands["audience"]) == demands["audience"], "wrong_audience")
    must("iat" not in header or abs(now.timestamp() - header["iat"]) <= 60, "stale")
    return {"signed_by": thumbprint(keys[0]["jwk"])}


def verdict(case):
    told = case["expected"]["accept"]
    said = exactly(told["signed"])
    assert jcs(said) == told["signed"], "not canonical"
    head, attached, signature = said.pop("signature").split(".")
    assert attached == "" and jcs(said) == jcs(exactly(json.dumps(case["verdict"])))
    header = json.loads(unpadded(head))
    expected = {"alg": "EdDSA", "kid": thumbprint(told["jwk"]), "typ": "vap-verdict+jws", **case["binding"]}
    assert header == expected, header
    secret = ed25519.Ed25519PrivateKey.from_private_bytes(bytes.fromhex(case["seed"]))
    made = secret.sign(f"{head}.{b64(jcs(said).encode())}".encode())
    assert hmac.compare_digest(made, unpadded(signature)), "another signature"
    return told


def main(folder):
    decided = collections.Counter()
    for path in sorted(folder.glob("*/*.json")):
        case, kind = json.loads(path.read_text()), path.parent.name
        try:
            told = globals()[kind](case)
            outcome = {"accept": told}
        except Refused as refused:
            told, outcome = True, {"refuse": str(refused)}
        if told is not None:
            assert outcome == case["expected"], f"{path}: {outcome}"
            decided[kind] += 1
    print(json.dumps(decided))


main(pathlib.Path(sys.argv[1]))
