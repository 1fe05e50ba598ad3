"""Does what a gateway told its caller hold, for somebody who has none of this project's code?

    gateway_evidence.py GATEWAY LOG KEY TOKEN < TOLD     prints {"verified": how many}

GATEWAY and LOG are URLs, KEY is the public key that signs the gateway's statements (hexadecimal), TOKEN one with which the log
shows bodies of audit records. TOLD is a JSON list, one
object for each answer: `verdict` as it came, `evidence` as it came, and `said`: what the caller said, by member name.

Checked for each: the Verdict's signature under the published key set; that the log has the entry that it names, exactly these
bytes, signed by KEY; that the record in it says the same; and that the key in `evidence` opens the record's commitments, and
none of another record.
"""

import base64
import hashlib
import hmac
import json
import sys
import urllib.request

import cbor2
from cryptography.hazmat.primitives.asymmetric import ed25519

CONTENT_TYPE, KID, CWT_CLAIMS = 3, 4, 15
ISS, SUB = 1, 2
OKP_CANONICAL = b'{"crv":"Ed25519","kty":"OKP","x":"%s"}'


def get(url, token=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
        return answer.read()


def unpadded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def b64(octets):
    return base64.urlsafe_b64encode(octets).rstrip(b"=")


def plain(value):
    """Whole numbers without a fraction, as JavaScript writes them."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain(member) for member in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def jcs(value):
    """RFC 8785, for members in ASCII and numbers that Python otherwise writes as JavaScript does."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def published(gateway):
    keys = {}
    for key in json.loads(get(f"{gateway}/.well-known/jwks.json"))["keys"]:
        assert key["kty"] == "OKP" and key["crv"] == "Ed25519" and "d" not in key, key
        thumbprint = b64(hashlib.sha256(OKP_CANONICAL % key["x"].encode()).digest()).decode()
        keys[thumbprint] = ed25519.Ed25519PublicKey.from_public_bytes(unpadded(key["x"]))
    return keys


def check_signature(verdict, keys):
    unsigned = {name: value for name, value in verdict.items() if name != "signature"}
    protected, payload, signature = verdict["signature"].split(".")
    assert payload == "", "the signature is detached"
    header = json.loads(unpadded(protected))
    assert header["alg"] == "EdDSA" and {"kid", "typ", "iat", "jti"} <= set(header), header
    assert not {"jwk", "jku", "x5u", "crit"} & set(header), header
    keys[header["kid"]].verify(unpadded(signature), protected.encode() + b"." + b64(jcs(unsigned)))
    return header


def statement(log, entry, key, token):
    """The payload of an entry, after all that anybody can check of it."""
    octets = get(f"{log}/v1/entries/{entry}/statement", token)
    tag = cbor2.loads(octets)
    protected, _, payload, signature = tag.value
    assert tag.tag == 18
    bare = cbor2.dumps(cbor2.CBORTag(18, [protected, {}, payload, signature]), canonical=True)
    assert hashlib.sha256(bare).hexdigest() == entry, "the entry's name is the digest of the statement"
    signed = cbor2.dumps(["Signature1", protected, b"", payload])
    key.verify(signature, signed)
    header = cbor2.loads(protected)
    assert header[CONTENT_TYPE] == "application/vap-audit+json", header
    okp = {1: 1, -1: 6, -2: key.public_bytes_raw()}
    assert header[KID] == hashlib.sha256(cbor2.dumps(okp, canonical=True)).digest(), "kid is the thumbprint of RFC 9679"
    record = json.loads(payload)
    assert payload == jcs(record), "a record is in its canonical form"
    claims = header[CWT_CLAIMS]
    assert (claims[ISS], claims[SUB]) == (record["gateway"], record["stream"])
    return record


def record_key(text):
    return bytes.fromhex(text) if len(text) == 64 else unpadded(text)


def commitment(key, member, value):
    return "hmac-sha256:" + hmac.new(key, member.encode() + b"\0" + jcs(value), hashlib.sha256).hexdigest()


def check(told, keys, log, key, token):
    verdict, evidence = told["verdict"], told["evidence"]
    header = check_signature(verdict, keys)
    base, _, entry = verdict["audit_ref"].rpartition("/entries/")
    assert base == log and evidence["audit_ref"] == verdict["audit_ref"], verdict["audit_ref"]
    record = statement(log, entry, key, token)
    assert (record["stream"], record["seq"]) == (verdict["session_id"], evidence["seq"]), record
    assert (record["verdict"], record["verification"]) == (verdict["verdict"], verdict["verification"]), record
    if "binding" in record:
        assert (record["binding"]["iat"], record["binding"]["jti"]) == (header["iat"], header["jti"]), record
    opens = record_key(evidence["key"])
    bare = {name: value for name, value in verdict.items() if name not in ("audit_ref", "signature")}
    said = {**told["said"], "verdict": bare}
    for member, value in said.items():
        assert record["committed"][member] == commitment(opens, member, value), f"{member} of {record}"
    text = json.dumps(record)
    for value in told["said"].values():
        assert not isinstance(value, str) or value not in text, f"{value!r} is in clear on the log"
    return entry, opens, record


def main(gateway, log, key, token):
    keys = published(gateway)
    signer = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
    told = json.load(sys.stdin)
    checked = [check(each, keys, log, signer, token) for each in told]
    assert len({entry for entry, _, _ in checked}) == len(checked), "an entry for each"
    for (_, opens, _), each, (_, _, other) in zip(checked, told, checked[1:] + checked[:1]):
        if len(checked) > 1:
            for member, value in each["said"].items():
                assert other["committed"].get(member) != commitment(opens, member, value), "one key opens one record"
    print(json.dumps({"verified": len(checked)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
