"""A CCF ledger that none of our code is in: its tree, its receipts (vds 2), and receipts that lie.

Written from draft-ietf-scitt-receipts-ccf-profile with `cbor2`, `cryptography` and `hashlib`.

  ccf_ledger.py cases             prints fresh cases as a JSON array: what a verifier gets, and what it must answer
  ccf_ledger.py vectors FOLDER    writes the same cases as golden vectors under FOLDER (vectors/)
"""

import base64
import hashlib
import json
import os
import pathlib
import sys

import cbor2
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

ES256, ES384 = -7, -35
HASH_OF = {ES256: hashes.SHA256, ES384: hashes.SHA384}
WIDTH_OF = {ES256: 32, ES384: 48}
NOW = 1_795_000_000
LEDGER = "ledger.example:8000"
ISSUER = "https://issuer.example"
SUB = "scitt.ccf.signature.v1"
TXID = "2.19"
LEAVES = 11


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


# --- COSE ---------------------------------------------------------------------------------------


def sign(key, alg, protected, payload):
    signed = cbor2.dumps(["Signature1", protected, b"", payload])
    r, s = decode_dss_signature(key.sign(signed, ec.ECDSA(HASH_OF[alg]())))
    return r.to_bytes(WIDTH_OF[alg], "big") + s.to_bytes(WIDTH_OF[alg], "big")


def sign1(protected, unprotected, payload, signature):
    return cbor2.dumps(cbor2.CBORTag(18, [protected, unprotected, payload, signature]))


def statement(issuer, text):
    """A statement as its issuer sends it: the unprotected header is empty, so these bytes are what is hashed."""
    protected = cbor2.dumps({1: ES256, 3: "text/plain", 4: b"issuer-key", 15: {1: ISSUER, 2: text}})
    payload = text.encode()
    return sign1(protected, {}, payload, sign(issuer, ES256, protected, payload))


# --- the tree of a ledger -----------------------------------------------------------------------


class Leaf:
    def __init__(self, number, data):
        self.parts = [sha256(b"transaction %d" % number), f"ce:2.{number}:{os.urandom(32).hex()}", data]

    def hash(self):
        transaction, evidence, data = self.parts
        return sha256(transaction, sha256(evidence.encode()), data)


def root_of(hashes_of_leaves):
    if len(hashes_of_leaves) == 1:
        return hashes_of_leaves[0]
    k = split(len(hashes_of_leaves))
    return sha256(root_of(hashes_of_leaves[:k]), root_of(hashes_of_leaves[k:]))


def path_to(index, hashes_of_leaves):
    """From the leaf up: [whether the sibling is on the left, the sibling]."""
    if len(hashes_of_leaves) == 1:
        return []
    k = split(len(hashes_of_leaves))
    left, right = hashes_of_leaves[:k], hashes_of_leaves[k:]
    if index < k:
        return path_to(index, left) + [[False, root_of(right)]]
    return path_to(index - k, right) + [[True, root_of(left)]]


def split(size):
    """The largest power of two below the size."""
    return 1 << (size - 1).bit_length() - 1


class Ledger:
    """Leaves of others, and the statement at some places."""

    def __init__(self, key, data, places, size=LEAVES):
        self.key = key
        self.leaves = [Leaf(n, data if n in places else sha256(b"of others %d" % n)) for n in range(size)]

    def hashes(self):
        return [leaf.hash() for leaf in self.leaves]

    def root(self):
        return root_of(self.hashes())

    def proof(self, place):
        return {1: list(self.leaves[place].parts), 2: path_to(place, self.hashes())}

    def kid(self):
        return hashlib.sha256(spki(self.key)).hexdigest().encode()

    def header(self):
        claims = {1: LEDGER, 2: SUB, 6: NOW - 60}
        return {1: ES384, 4: self.kid(), 15: claims, 395: 2, "ccf.v1": {"txid": TXID}}

    def receipt(self, proofs, header=None, root=None, key=None, payload=None, kind=-1, wrap=cbor2.dumps):
        """An honest receipt, but for what is given."""
        header = self.header() if header is None else header
        protected = cbor2.dumps(header)
        alg = header[1]
        signature = sign(key or self.key, alg, protected, root or self.root())
        return sign1(protected, {396: {kind: [wrap(proof) for proof in proofs]}}, payload, signature)


def spki(key):
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.DER, kind)


def pem(key):
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, kind).decode()


def cose_key(key):
    numbers = key.public_key().public_numbers()
    curve, width = {256: (1, 32), 384: (2, 48)}[key.curve.key_size]
    return cbor2.dumps({1: 2, -1: curve, -2: numbers.x.to_bytes(width, "big"), -3: numbers.y.to_bytes(width, "big")})


# --- honest and other receipts ------------------------------------------------------------------


class Cases:
    def __init__(self):
        self.issuer = ec.generate_private_key(ec.SECP256R1())
        self.key = ec.generate_private_key(ec.SECP384R1())
        self.statement = statement(self.issuer, "release 4.2")
        self.data = sha256(self.statement)
        self.ledger = Ledger(self.key, self.data, {3, 8})
        self.all = []

    def accepted(self, name, why, receipt, root=None, outcome="verified", reason=None):
        root = root or self.ledger.root()
        self.add("accepted", name, why, receipt, outcome, reason, root=root.hex())

    def unproven(self, name, why, receipt, error, reason):
        self.add("unproven", name, why, receipt, "failed", reason, error=error)

    def refused(self, name, why, receipt, error):
        self.add("refused", name, why, receipt, "failed", "malformed-receipt", error=error)

    def add(self, kind, name, why, receipt, outcome, reason, **more):
        key, trust = cose_key(self.key).hex(), self.trust("rfc9942" if name.startswith("no-claims") else "rfc9943")
        self.all.append(
            dict(kind=kind, name=name, why=why, receipt=receipt, outcome=outcome, reason=reason, key=key, trust=trust)
            | more
        )

    def trust(self, profile):
        kid = base64.urlsafe_b64encode(self.ledger.kid()).rstrip(b"=").decode()
        log = f'[[log]]\niss = "{LEDGER}"\nprofile = "{profile}"\nkeys = [{{ kid = "{kid}", key = """\n{pem(self.key)}""" }}]\n'
        return log + f'\n[[issuer]]\niss = "{ISSUER}"\nkeys = ["""\n{pem(self.issuer)}"""]\n'


def honest(cases):
    ledger = cases.ledger
    add = cases.accepted
    add("as-the-service-issues-it", "ES384, a kid of hexadecimal digits, ccf.v1", ledger.receipt([ledger.proof(3)]))
    add("registered-twice", "two leaves of one statement lead to one root", ledger.receipt(map(ledger.proof, (3, 8))))
    last = Ledger(cases.key, cases.data, {LEAVES - 1})
    add("last-leaf", "the shortest path of a ragged tree", last.receipt([last.proof(LEAVES - 1)]), last.root())
    first = Ledger(cases.key, cases.data, {0}, 2)
    add("first-leaf-of-two", "a path of one step", first.receipt([first.proof(0)]), first.root())
    long = ledger.proof(3)
    long[1][1] = "e" * 1024
    leaf = Leaf(3, cases.data)
    leaf.parts = long[1]
    hashes_of_leaves = [leaf.hash() if n == 3 else each for n, each in enumerate(ledger.hashes())]
    long[2] = path_to(3, hashes_of_leaves)
    root = root_of(hashes_of_leaves)
    add("evidence-of-1024-bytes", "as long as the profile allows", ledger.receipt([long], root=root), root)
    bare = {1: ES384, 395: 2}
    add("no-claims-no-kid", "what RFC 9942 asks for, no more", ledger.receipt([ledger.proof(3)], bare))


def lying(cases):
    ledger, add = cases.ledger, cases.unproven
    proof = lambda: ledger.proof(3)
    mismatch, invalid = "receipt-root-mismatch", "receipt-proof-invalid"

    def other(name, why, proofs, error="signature", reason=mismatch, **more):
        add(name, why, ledger.receipt(proofs, **more), error, reason)

    other("data-hash-of-another-statement", "signed and in the ledger: it is not this statement's", [ledger.proof(4)], "statement")
    other("one-proof-of-another-statement", "the other proof is honest", [proof(), ledger.proof(4)], "statement")
    swapped = ledger.proof(4)
    swapped[1][2] = cases.data
    other("data-hash-put-into-another-leaf", "another's leaf with the hash of this statement", [swapped])
    flipped = proof()
    flipped[2][0][0] = not flipped[2][0][0]
    other("left-flipped", "the sibling is on the other side", [flipped])
    top = proof()
    top[2][-1][0] = not top[2][-1][0]
    other("left-flipped-at-the-root", "the same at the last step", [top])
    short = proof()
    short[2].pop()
    other("step-missing", "a path that ends below the root", [short])
    long = proof()
    long[2].append([True, sha256(b"above the root")])
    other("step-too-many", "a path that goes on above the root", [long])
    turned = proof()
    turned[2].reverse()
    other("steps-reversed", "from the root down", [turned])
    words = proof()
    words[1][1] = words[1][1] + "0"
    other("evidence-changed", "the evidence is in the leaf", [words])
    transaction = proof()
    transaction[1][0] = sha256(b"another transaction")
    other("transaction-changed", "so is the hash of the transaction", [transaction])
    root = sha256(b"another root")
    other("two-roots", "both proofs are of this statement, one leads elsewhere", [proof(), swapped], "roots", invalid)
    other("signed-another-root", "the path is honest, the signature is over another root", [proof()], root=root)
    key = ec.generate_private_key(ec.SECP384R1())
    other("signed-by-another-key", "an honest tree under a key that nobody trusts", [proof()], key=key)
    misread = "a root that only a wrong reading of the profile leads to: "
    root = fold(proof(), leaf=lambda *parts: b"".join(parts))
    other("leaf-not-hashed", misread + "early drafts forget to hash the leaf", [proof()], root=root)
    root = fold(proof(), prefixes=(b"\0", b"\1"))
    other("prefixes-of-rfc-9162", misread + "0x00 before leaves, 0x01 before nodes", [proof()], root=root)
    root = fold(proof(), turn=lambda left: not left)
    other("left-means-the-node", misread + "left as the side of the node", [proof()], root=root)
    header = ledger.header() | {1: ES256}
    p256 = ec.generate_private_key(ec.SECP256R1())
    add(
        "alg-of-another-curve",
        "ES256, and the ledger's key is on P-384",
        ledger.receipt([proof()], header, key=p256),
        "signature",
        "receipt-signature-invalid",
    )


def fold(proof, leaf=sha256, prefixes=(b"", b""), turn=lambda left: left):
    """The root that a proof leads to, or would for who reads the profile in another way."""
    transaction, evidence, data = proof[1]
    node = leaf(prefixes[0], transaction, sha256(evidence.encode()), data)
    for left, sibling in proof[2]:
        node = sha256(prefixes[1], sibling, node) if turn(left) else sha256(prefixes[1], node, sibling)
    return node


def malformed(cases):
    ledger, add = cases.ledger, cases.refused

    def with_leaf(name, why, leaf, error):
        add(name, why, ledger.receipt([{1: leaf, 2: ledger.proof(3)[2]}]), error)

    def with_path(name, why, path, error):
        add(name, why, ledger.receipt([{1: ledger.proof(3)[1], 2: path}]), error)

    transaction, evidence, data = ledger.proof(3)[1]
    hash_error = "a hash in a path must be 32 bytes"
    evidence_error = "a leaf's evidence must be text of 1 to 1024 bytes"
    step_error = "a step of a ledger's path must be an array of true or false and a hash"
    proof_error = "a ledger's inclusion proof must be a map of a leaf (1) and a path (2)"
    with_leaf("evidence-missing", "a leaf of two parts", [transaction, data], "a ledger's leaf must be an array of 3")
    with_leaf("evidence-empty", "at least one byte", [transaction, "", data], evidence_error)
    with_leaf("evidence-of-1025-bytes", "one too many", [transaction, "e" * 1025, data], evidence_error)
    with_leaf("evidence-of-bytes", "text it must be", [transaction, evidence.encode(), data], evidence_error)
    with_leaf("transaction-of-31-bytes", "no hash", [transaction[1:], evidence, data], hash_error)
    with_leaf("data-hash-of-33-bytes", "no hash", [transaction, evidence, data + b"\0"], hash_error)
    with_leaf("data-hash-missing", "a leaf that is anybody's", [transaction, evidence, None], hash_error)
    step = ledger.proof(3)[2][0]
    with_path("path-empty", "a ledger's path has at least one step", [], "a path must have 1 to 64 members")
    with_path("path-of-65", "no tree is that high", [step] * 65, "a path must have 1 to 64 members")
    with_path("left-is-a-number", "1 is not true", [[1, step[1]]], step_error)
    with_path("left-missing", "a path of bare hashes, as in RFC 9162", [step[1]], step_error)
    with_path("step-of-three", "a step is two things", [[True, step[1], step[1]]], step_error)
    with_path("sibling-of-31-bytes", "no hash", [[True, step[1][1:]]], hash_error)
    more = ledger.proof(3) | {3: b"more"}
    add("unknown-member", "the map of a proof is closed", ledger.receipt([more]), proof_error)
    add("leaf-missing", "a path from nowhere", ledger.receipt([{2: ledger.proof(3)[2]}]), proof_error)
    of_rfc9162 = [11, 3, [sibling for _, sibling in ledger.proof(3)[2]]]
    add("proof-of-rfc-9162", "a proof of vds 1 under vds 2", ledger.receipt([of_rfc9162]), proof_error)
    consistency = {1: sha256(b"anchor"), 2: [[False, sha256(b"right")]]}
    unknown = "proof type is not registered for this verifiable data structure"
    add("consistency-proof", "drafts have it under -2, and we do not read it", ledger.receipt([consistency], kind=-2), unknown)
    payload = "the payload must be nil"
    add("root-attached", "the root must be recomputed", ledger.receipt([ledger.proof(3)], payload=ledger.root()), payload)
    add("empty-payload", "nor anything else", ledger.receipt([ledger.proof(3)], payload=b""), payload)
    as_rfc9162 = ledger.header() | {395: 1}
    vds1 = "nested too deeply"
    add("vds-1-over-a-ledger-s-proof", "the structure is what the header signs", ledger.receipt([ledger.proof(3)], as_rfc9162), vds1)
    bare = "a proof must be a byte string"
    add("proof-not-wrapped", "a proof is a byte string that holds CBOR", ledger.receipt([ledger.proof(3)], wrap=lambda p: p), bare)
    twice = lambda p: b"\xa3" + cbor2.dumps(p)[1:] + b"\x01\x80"
    add("two-leaves-in-one-proof", "label 1 twice", ledger.receipt([ledger.proof(3)], wrap=twice), "duplicate map key")
    after = lambda p: cbor2.dumps(p) + b"\0"
    add("bytes-after-the-proof", "one item and no more", ledger.receipt([ledger.proof(3)], wrap=after), "bytes after the end of the item")


# --- writing ------------------------------------------------------------------------------------


def write(folder, cases):
    for case in cases.all:
        unit = {"why": case["why"], "input": case["receipt"].hex()}
        proven = {"key": case["key"], "entry": cases.data.hex()}
        place = {
            "accepted": ("ledger-receipt/accepted", unit | proven | {"root": case.get("root")}),
            "unproven": ("ledger-receipt/unproven", unit | proven | {"error": case.get("error")}),
            "refused": ("receipt/refused", unit | {"offset": None, "error": case.get("error")}),
        }[case["kind"]]
        name = case["name"] if case["kind"] != "refused" else "ledger-" + case["name"]
        save(folder / "scitt" / place[0] / f"{name}.json", place[1])
        if case["kind"] == "refused":
            continue
        whole = {"why": case["why"], "trust": case["trust"], "now": NOW, "statement": cases.statement.hex()}
        whole |= {"receipts": [case["receipt"].hex()], "payload": None}
        save(folder / "verifier" / "ccf" / f"{name}.json", whole | {"outcome": case["outcome"], "reason": case["reason"]})


def save(path, case):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(case, indent=2) + "\n")


def main():
    cases = Cases()
    for make in (honest, lying, malformed):
        make(cases)
    if sys.argv[1] == "vectors":
        write(pathlib.Path(sys.argv[2]), cases)
        return
    shown = ["name", "kind", "why", "trust", "outcome", "reason"]
    whole = [{key: case[key] for key in shown} | {"receipt": case["receipt"].hex()} for case in cases.all]
    print(json.dumps([case | {"statement": cases.statement.hex()} for case in whole]))


if __name__ == "__main__":
    main()
