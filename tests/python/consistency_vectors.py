"""Writes vectors/consistency: receipts that lead from a known tree to a newer one, made without our code.

    python tests/python/consistency_vectors.py vectors/consistency     prints {"files": how many}

Hashes, proofs and the COSE messages are made here. The signatures are ES256, which differ in every run, and the log's secret
key was not kept; so the signatures are constants, and each is verified with `cryptography` over what is made here.
"""

import base64
import hashlib
import json
import pathlib
import sys

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

import rfc9162

LOG = (
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAESz8XdMX3i4BqdxNvHx5x0/+w4JOc4JhKYrXdx8LmzxjBLbr+txhUnX7UldqBdTJxhO9UNsyp61Dyhf/T"
    "H87vMA=="
)
STRANGER = (
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE/ooRC8wmfxXOujcjhC486lcDF/JJutY8RUYPS+NIHOnJyLguEPcXMj8PxFQXdCHG7RY3xFOSFO0Q3aP9"
    "6MQZwA=="
)
NOW, ISSUED_AT = 1_795_000_000, 1_794_999_940
# RFC 9942: the label of the proofs, and those of its kinds.
VERIFIABLE_PROOFS, INCLUSION, CONSISTENCY = 396, -1, -2
SIGNATURES = {
    "1-to-2": "a3a08ca8eddf3f3ac2549378601677a10e1578b3dbe1e2576da355d5bb91f107"
    "f58941673506a243c4f99d8c3c38e9fd9ea03e9e5ccf403907ea7bcb035ebbb3",
    "3-to-7": "3b7887b672150fef8db96e33e1a06abf5223bcb25510ebe000340bffec98780e"
    "b62d2f32f4195ebbe4ef5965faedf25eeefa54000e2e0db459234d5c170e648f",
    "4-to-8": "eb6356603a40b133dcfe20e4fdfb75217fe036412fa1e110dd44fe8a3493812d"
    "9cbc7df8c5d787314de988207809d1db595dcb5ca76a65f8bed52c669f8dd441",
    "6-to-8": "5b7df9d0733123f6e3732d98fff68cb71752243b9b827d1ce03bba3d505d0605"
    "835d526de1d4c729c145b202f40b44c600172ca25ba50130f6709774579dfe59",
    "7-to-17": "81c64190c58604bbf2ac4dbea35461a12fdf14f8600b5ac710a9d6d264ae9085"
    "62e8a607643bb848bb367fe0882d12950a1460a52337368f16ddd10e282dfab2",
    "5-to-9": "c1a99bf327402bc68920291b1818a3bdbb4a1a93b6dc5480598f0ef888c035ea"
    "87f449c6db3255fdb8b26ca533e9a3156127541e4b098f158e005c9223b1b3c0",
    "5-to-9 again": "f050ee170cfc714e84b52ac64de99679a14a2f5eaa61c7c8ec3920e778b8ad52"
    "d5a6bd1b9d4ba9f27e340f52096026cffe9cb63d7948ee9a1d403eac238b94c3",
}


def cbor(value):
    """Deterministic CBOR (RFC 8949, section 4.2) of what receipts consist of. A map keeps its order."""
    if value is None:
        return b"\xf6"
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    return head(5, len(value)) + b"".join(cbor(name) + cbor(inside) for name, inside in value.items())


def head(major, number):
    if number < 24:
        return bytes([major << 5 | number])
    width = next(width for width in (1, 2, 4, 8) if number < 1 << 8 * width)
    return bytes([major << 5 | 24 + width.bit_length() - 1]) + number.to_bytes(width, "big")


def public_key(encoded):
    return load_der_public_key(base64.b64decode(encoded))


def thumbprint(key):
    """The thumbprint of a COSE_Key (RFC 9679)."""
    numbers = key.public_numbers()
    x, y = (number.to_bytes(32, "big") for number in (numbers.x, numbers.y))
    return hashlib.sha256(cbor({1: 2, -1: 1, -2: x, -3: y})).digest()


def trust(encoded):
    pem = public_key(encoded).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    return (
        '[[log]]\niss = "https://log.example"\norigin = "log.example"\nleaf_rule = "sha256-of-statement"\n'
        f'keys = ["""\n{pem}"""]\n'
    )


def leaves(count):
    """The entries are the digests of the numbers from 0, as eight bytes."""
    return [rfc9162.leaf(hashlib.sha256(number.to_bytes(8, "big")).digest()) for number in range(count)]


def root(size):
    return rfc9162.root(leaves(size))


def protected(size):
    claims = {1: "https://log.example", 2: "log.example", 6: ISSUED_AT}
    return cbor({1: -7, 4: thumbprint(public_key(LOG)), 15: claims, 395: 1, "tree-size": size})


def signature(name, size):
    """A signature over the root of this size, verified."""
    signed = bytes.fromhex(SIGNATURES[name])
    r, s = (int.from_bytes(half, "big") for half in (signed[:32], signed[32:]))
    message = cbor(["Signature1", protected(size), b"", root(size)])
    public_key(LOG).verify(encode_dss_signature(r, s), message, ec.ECDSA(hashes.SHA256()))
    return signed


def receipt(size, numbers, path, signed, kind=CONSISTENCY, payload=None):
    proof = cbor([*numbers, path])
    message = [protected(size), {VERIFIABLE_PROOFS: {kind: [proof]}}, payload, signed]
    return b"\xd2" + cbor(message)


def between(older, newer, name=None, path=None, sizes=None, **other):
    path = rfc9162.proof(older, leaves(newer)) if path is None else path
    signed = signature(name or f"{older}-to-{newer}", newer)
    return receipt(newer, sizes or (older, newer), path, signed, **other)


def case(why, message, known, outcome, reason=None, believed=None, key=LOG, newer=None):
    return {
        "why": why,
        "trust": trust(key) if key else "",
        "now": NOW,
        "receipt": message.hex(),
        "known_size": known,
        "known_root": root(known if believed is None else believed).hex(),
        "outcome": outcome,
        "reason": reason,
        "newer_root": newer and root(newer).hex(),
    }


def sound():
    why = "The path leads from the known root to the one that is signed."
    for older, newer in [(1, 2), (3, 7), (4, 8), (6, 8), (7, 17)]:
        name = f"extends-{older}-to-{newer}"
        yield name, case(why, between(older, newer), older, "verified", newer=newer)


def damaged():
    """Receipts from 5 to 9 with one thing wrong."""
    path, again = rfc9162.proof(5, leaves(9)), "5-to-9 again"
    other = bytes([7] * 32)
    mismatch = ("failed", "consistency-mismatch")
    changed = between(5, 9, again, [path[0], other, *path[2:]])
    yield "changed-path", case("A hash of the path was changed.", changed, 5, *mismatch)
    longer = between(5, 9, again, [*path, other])
    yield "longer-path", case("The path has one hash too many for these sizes.", longer, 5, *mismatch)
    shorter = between(5, 9, again, path[:-1])
    yield "shorter-path", case("The path has one hash too few for these sizes.", shorter, 5, *mismatch)
    empty = between(9, 9, again)
    why = "A consistency proof has a path: equal sizes have none."
    yield "empty-path", case(why, empty, 9, "failed", "malformed-receipt")
    inclusion = between(5, 9, again, sizes=(9, 4), kind=INCLUSION)
    why = "The receipt proves inclusion, not consistency."
    yield "inclusion", case(why, inclusion, 5, "not-verified", "no-consistency-proof")
    attached = between(5, 9, payload=root(8))
    why = "The root that came attached is not the one that the path leads to."
    yield "other-root-attached", case(why, attached, 5, *mismatch)
    message = between(5, 9)
    forged = message[:-1] + bytes([message[-1] ^ 1])
    yield "forged-signature", case("A bit of the signature was changed.", forged, 5, *mismatch)


def other_trees():
    message, no = between(5, 9), "not-verified"
    why = "The proof starts from another size than the tree that is known."
    yield "other-size", case(why, message, 4, no, "consistency-other-size")
    why = "The tree that is known is not the beginning of what is signed."
    yield "rewritten", case(why, message, 5, "failed", "consistency-mismatch", believed=6)
    why = "The log is trusted, but not with the key that signed."
    yield "unknown-key", case(why, message, 5, no, "unknown-log-key", key=STRANGER)
    yield "unknown-log", case("No log of that issuer is trusted.", message, 5, no, "unknown-log", key=None)


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    written = {**dict(sound()), **dict(damaged()), **dict(other_trees())}
    for name, content in written.items():
        (out / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")
    print(json.dumps({"files": len(written)}))


main(pathlib.Path(sys.argv[1]))
