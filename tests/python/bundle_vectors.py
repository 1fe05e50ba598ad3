"""Decides the cases of vectors/bundle again, without this project's code.

    bundle_vectors.py vectors/bundle     prints {"verified": how many, …}

Written from docs/bundles.md, docs/offline.md, crates/bundle/schemas/bundle.json and the RFCs they name. Signatures come from
`cryptography`, JSON and TOML from Python; CBOR is read here. A check that cannot be made is remembered, and one that fails ends
the case.
"""

import base64
import hashlib
import json
import pathlib
import re
import sys
import tomllib

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils

import rfc9162

INDEX = 2**53 - 1
POLICY = "application/vnd.tabellion.policy+json"


class Malformed(Exception):
    """The file is no bundle."""


class Failed(Exception):
    """Something in the bundle is wrong."""


def must(true, error, why):
    if not true:
        raise error(why)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


# --- the file -----------------------------------------------------------------------------------


def without_duplicates(pairs):
    must(len({name for name, _ in pairs}) == len(pairs), Malformed, "a member twice")
    return dict(pairs)


def members(value, required, optional=()):
    must(isinstance(value, dict), Malformed, "an object")
    must(set(required) <= set(value) <= {*required, *optional}, Malformed, f"members {sorted(value)}")


def array(value, most):
    must(isinstance(value, list) and len(value) <= most, Malformed, "a list")
    return value


def text(value):
    must(isinstance(value, str), Malformed, "a text")
    return value


def index(value):
    must(type(value) is int and 0 <= value <= INDEX, Malformed, "an index")
    return value


def hash_of(value):
    must(re.fullmatch("[0-9a-f]{64}", text(value)), Malformed, "a hash")
    return bytes.fromhex(value)


def binary(value):
    must(re.fullmatch("[A-Za-z0-9_-]*", text(value)), Malformed, "base64url")
    must(len(value) % 4 != 1, Malformed, "base64url")
    decoded = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
    must(base64.urlsafe_b64encode(decoded).decode().rstrip("=") == value, Malformed, "base64url")
    return decoded


def canonical(value):
    """RFC 8785, for the values of a bundle: no number has a fraction. Names are ASCII, so that any order of texts is the same."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def read_entry(entry):
    members(entry, ["proof", "receipt", "statement"], ["admitted_by", "payload"])
    members(entry["proof"], ["index", "path"])
    path = [hash_of(step) for step in array(entry["proof"]["path"], 64)]
    admitted = entry.get("admitted_by")
    if "admitted_by" in entry:
        members(admitted, ["policy", "rule"])
        index(admitted["policy"]), text(admitted["rule"])
    return {
        "statement": binary(entry["statement"]),
        "receipt": binary(entry["receipt"]),
        "payload": binary(entry["payload"]) if "payload" in entry else None,
        "index": index(entry["proof"]["index"]),
        "path": path,
        "policy": admitted and admitted["policy"],
    }


def read_bundle(file):
    try:
        bundle = json.loads(file, object_pairs_hook=without_duplicates)
    except ValueError as error:
        raise Malformed(str(error)) from error
    members(bundle, ["bundle", "checkpoint", "claims", "entries", "policies", "selections"])
    must(canonical(bundle) == file.encode(), Malformed, "not canonical")
    must(bundle["bundle"] == 1 and type(bundle["bundle"]) is int, Malformed, "another version")
    members(bundle["claims"], ["created_at", "log_url", "trust"], ["witness_policy"])
    for claim in [bundle["checkpoint"], *bundle["claims"].values()]:
        text(claim)
    for selection in array(bundle["selections"], 64):
        members(selection, ["by", "entries", "indexed_to", "name"])
        must(selection["by"] in ("session", "agent"), Malformed, "by")
        index(selection["indexed_to"]), text(selection["name"])
        for entry in array(selection["entries"], 10_000):
            hash_of(entry)
    entries = [read_entry(entry) for entry in array(bundle["entries"], 10_000)]
    policies = [read_entry(entry) for entry in array(bundle["policies"], 1_000)]
    for listed in entries, policies:
        places = [entry["index"] for entry in listed]
        must(places == sorted(set(places)), Malformed, "by leaf index")
    return bundle, entries, policies


# --- CBOR and COSE ------------------------------------------------------------------------------


def cbor_head(data, at):
    must(at < len(data), Failed, "CBOR ends early")
    major, info = data[at] >> 5, data[at] & 31
    if info < 24:
        return major, info, at + 1
    must(info < 28, Failed, "CBOR of indefinite length")
    width = 1 << (info - 24)
    must(at + 1 + width <= len(data), Failed, "CBOR ends early")
    return major, int.from_bytes(data[at + 1 : at + 1 + width]), at + 1 + width


def cbor_item(data, at=0):
    """The item at `at`, and where the next one begins."""
    major, number, at = cbor_head(data, at)
    if major < 2:
        return (number if major == 0 else -1 - number), at
    if major in (2, 3):
        must(at + number <= len(data), Failed, "CBOR ends early")
        taken = data[at : at + number]
        return (taken if major == 2 else taken.decode()), at + number
    if major == 6:
        value, at = cbor_item(data, at)
        return ("tag", number, value), at
    if major == 7:
        return {20: False, 21: True, 22: None}.get(number, ("simple", number)), at
    values = []
    for _ in range(number * (major - 3)):
        value, at = cbor_item(data, at)
        values.append(value)
    if major == 4:
        return values, at
    names = values[::2]
    must(len({repr(name) for name in names}) == len(names), Failed, "a label twice")
    return dict(zip(names, values[1::2])), at


def cbor(data):
    value, end = cbor_item(data)
    must(end == len(data), Failed, "bytes after the CBOR")
    return value


def byte_string(data):
    for first, width in ((24, 0), (2**8, 1), (2**16, 2)):
        if len(data) < first:
            info = len(data) if width == 0 else 23 + width
            return bytes([0x40 | info]) + (len(data).to_bytes(width) if width else b"") + data
    return b"\x5a" + len(data).to_bytes(4) + data


class Sign1:
    def __init__(self, data):
        must(data[:2] == b"\xd2\x84", Failed, "no COSE_Sign1 with its tag")
        self.protected, at = cbor_item(data, 2)
        start = at
        self.unprotected, at = cbor_item(data, at)
        self.without_unprotected = data[:start] + b"\xa0" + data[at:]
        self.payload, at = cbor_item(data, at)
        self.signature, at = cbor_item(data, at)
        must(at == len(data), Failed, "bytes after the message")
        must(isinstance(self.protected, bytes) and isinstance(self.unprotected, dict), Failed, "headers")
        must(isinstance(self.signature, bytes), Failed, "signature")
        must(self.payload is None or isinstance(self.payload, bytes), Failed, "payload")
        self.header = cbor(self.protected)
        must(isinstance(self.header, dict), Failed, "protected header")
        must(not set(self.header) & set(self.unprotected), Failed, "a label in both headers")
        claims = self.header.get(15)
        self.claims = claims if isinstance(claims, dict) else {}

    def is_signed_by(self, key, payload):
        signed = b"\x84\x6aSignature1" + byte_string(self.protected) + b"\x40" + byte_string(payload)
        algorithm = self.header.get(1)
        try:
            if isinstance(key, ed25519.Ed25519PublicKey):
                must(algorithm in (-8, -19), InvalidSignature, "algorithm")
                key.verify(self.signature, signed)
            else:
                curve, digest = {
                    -7: ("secp256r1", hashes.SHA256), -9: ("secp256r1", hashes.SHA256),
                    -35: ("secp384r1", hashes.SHA384), -51: ("secp384r1", hashes.SHA384),
                    -36: ("secp521r1", hashes.SHA512), -52: ("secp521r1", hashes.SHA512),
                }.get(algorithm, (None, None))
                width = (key.curve.key_size + 7) // 8
                must(key.curve.name == curve and len(self.signature) == 2 * width, InvalidSignature, "form")
                halves = [int.from_bytes(self.signature[at : at + width]) for at in (0, width)]
                key.verify(utils.encode_dss_signature(*halves), signed, ec.ECDSA(digest()))
            return True
        except InvalidSignature:
            return False


def thumbprint(key):
    """RFC 9679, with SHA-256."""
    if isinstance(key, ed25519.Ed25519PublicKey):
        raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return sha256(b"\xa3\x01\x01\x20\x06\x21", byte_string(raw))
    numbers, width = key.public_numbers(), (key.curve.key_size + 7) // 8
    curve = {"secp256r1": 1, "secp384r1": 2, "secp521r1": 3}[key.curve.name]
    x, y = (byte_string(number.to_bytes(width)) for number in (numbers.x, numbers.y))
    return sha256(b"\xa4\x01\x02\x20", bytes([curve]), b"\x21", x, b"\x22", y)


# --- the tree and the checkpoint ----------------------------------------------------------------


def root_over(digest, place, size, path):
    root = rfc9162.implied_root(rfc9162.leaf(digest), place, size, path)
    must(root is not None, Failed, "the path does not fit the tree")
    return root


def note_key(vkey):
    name, key_id, key = vkey.split("+", 2)
    key = base64.b64decode(key)
    return name, bytes.fromhex(key_id), ed25519.Ed25519PublicKey.from_public_bytes(key[1:])


def note_signature(signatures, vkey):
    name, key_id, key = note_key(vkey)
    found = [rest for signer, rest in signatures if signer == name and rest[:4] == key_id]
    return key, found[0][4:] if found else None


def is_signed(key, signature, signed):
    try:
        key.verify(signature, signed)
        return True
    except InvalidSignature:
        return False


def read_checkpoint(checkpoint):
    parts = re.fullmatch("((?:.+\n)+)\n((?:— \\S+ \\S+\n)+)", checkpoint)
    must(parts, Failed, "no signed note")
    signatures = [line.split(" ")[1:] for line in parts[2].splitlines()]
    signatures = [(name, base64.b64decode(blob, validate=True)) for name, blob in signatures]
    lines = parts[1].splitlines()
    must(len(lines) >= 3 and re.fullmatch("0|[1-9][0-9]*", lines[1]), Failed, "no checkpoint")
    return lines[0], int(lines[1]), base64.b64decode(lines[2], validate=True), parts[1].encode(), signatures


def is_quorum(policy, body, signatures):
    """C2SP tlog-policy."""
    met, quorum = {"none": True}, None
    for words in (line.split() for line in policy.splitlines()):
        if words[:1] == ["witness"]:
            key, blob = note_signature(signatures, words[2])
            is_cosigned = blob is not None and len(blob) == 72
            message = b"cosignature/v1\ntime %d\n" % int.from_bytes((blob or b"")[:8]) + body
            met[words[1]] = is_cosigned and is_signed(key, blob[8:], message)
        elif words[:1] == ["group"]:
            needed = {"any": 1, "all": len(words) - 3}.get(words[2]) or int(words[2])
            met[words[1]] = sum(met[name] for name in words[3:]) >= needed
        elif words[:1] == ["quorum"]:
            quorum = words[1]
    return met[quorum]


# --- trust and the verdict ----------------------------------------------------------------------


def public_key(listed):
    """A key of a trust file: PEM, or a table with it."""
    pem = listed if isinstance(listed, str) else listed["key"]
    return serialization.load_pem_public_key(pem.encode())


class Verification:
    def __init__(self, trust):
        trust = tomllib.loads(trust)
        self.logs, self.missing = trust.get("log", []), []
        self.issuers = {issuer["iss"]: issuer["keys"] for issuer in trust.get("issuer", [])}

    def verify(self, file, witness_policy):
        bundle, entries, policies = read_bundle(file)
        must(bundle["checkpoint"], Failed, "no checkpoint")
        origin, size, root, body, signatures = read_checkpoint(bundle["checkpoint"])
        self.check_checkpoint(origin, body, signatures, witness_policy)
        for listed in (entries, policies):
            for entry in listed:
                statement = Sign1(entry["statement"])
                if listed is entries:
                    self.check_statement(entry, statement)
                entry["id"] = sha256(statement.without_unprotected)
                self.check_receipt(entry)
                found = root_over(entry["id"], entry["index"], size, entry["path"])
                must(found == root, Failed, "the proof leads to another root")
                entry["content_type"] = statement.header.get(3)
        self.check_policies(entries, policies)
        known = {entry["id"].hex() for entry in entries}
        for selection in bundle["selections"]:
            must(set(selection["entries"]) <= known, Failed, "an entry of a selection is not in the bundle")
        if not entries:
            self.missing.append("no entry")
        return "not-verified" if self.missing else "verified"

    def check_checkpoint(self, origin, body, signatures, witness_policy):
        if witness_policy is not None:
            must(is_quorum(witness_policy, body, signatures), Failed, "too few witnesses")
        log = next((log for log in self.logs if log.get("origin") == origin), None)
        for vkey in (log or {}).get("checkpoint_keys", []):
            key, signature = note_signature(signatures, vkey)
            if signature is not None:
                must(is_signed(key, signature, body), Failed, "the log did not sign the checkpoint")
                return
        self.missing.append("no key for the checkpoint")

    def check_statement(self, entry, statement):
        issuer = statement.claims.get(1)
        must(isinstance(issuer, str) and isinstance(statement.claims.get(2), str), Failed, "CWT claims")
        payload = statement.payload
        if payload is None:
            payload = entry["payload"]
        if payload is None:
            self.missing.append("no payload")
        elif issuer not in self.issuers:
            self.missing.append(f"no key of {issuer}")
        else:
            keys = map(public_key, self.issuers[issuer])
            must(any(statement.is_signed_by(key, payload) for key in keys), Failed, "issuer's signature")

    def check_receipt(self, entry):
        receipt = Sign1(entry["receipt"])
        must(receipt.header.get(395) == 1, Failed, "verifiable data structure")
        proofs = receipt.unprotected.get(396)
        must(isinstance(proofs, dict) and isinstance(proofs.get(-1), list) and proofs[-1], Failed, "proofs")
        size, place, path = cbor(proofs[-1][0])
        root = root_over(entry["id"], place, size, path)
        must(receipt.header.get("tree-size", size) == size, Failed, "another size than the signed one")
        must(receipt.payload in (None, root), Failed, "another root")
        must(place == entry["index"], Failed, "another leaf than that of the proof")
        log = next((log for log in self.logs if log["iss"] == receipt.claims.get(1)), None)
        if log is None:
            self.missing.append("no key of the log")
            return
        keys = [key for key in map(public_key, log["keys"]) if thumbprint(key) == receipt.header.get(4)]
        if not keys:
            self.missing.append("no such key of the log")
            return
        must(receipt.is_signed_by(keys[0], root), Failed, "the log's signature")

    def check_policies(self, entries, policies):
        places = {policy["index"] for policy in policies}
        for policy in policies:
            must(policy["content_type"] == POLICY, Failed, "no policy")
        for entry in entries:
            must(entry["policy"] is not None and entry["policy"] in places, Failed, "its policy is missing")
            is_first = entry["index"] == entry["policy"] == 0
            must(entry["policy"] < entry["index"] or is_first, Failed, "its policy came later")


def decided(case):
    try:
        return Verification(case["trust"]).verify(case["bundle"], case.get("witness_policy"))
    except Malformed:
        return "malformed"
    except Failed:
        return "failed"


def main(folder):
    counts = {}
    for path in sorted(pathlib.Path(folder).glob("*/*.json")):
        case = json.loads(path.read_text())
        outcome = decided(case)
        assert outcome == case["outcome"], f"{path}: {outcome}, not {case['outcome']}"
        counts[outcome] = counts.get(outcome, 0) + 1
    print(json.dumps(counts))


if __name__ == "__main__":
    main(*sys.argv[1:])
