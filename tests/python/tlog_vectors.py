"""Writes vectors/tlog/{cosignature,add-checkpoint}: cosignatures and requests to witnesses, made without our code.

    python tests/python/tlog_vectors.py vectors/tlog     prints {"files": how many}

Ed25519 comes from `cryptography`; notes are written here, after the texts of C2SP. The notes, keys and checkpoints beside
them are by tlog_text_vectors.py.
"""

import base64
import hashlib
import json
import pathlib
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import rfc9162

ORIGIN = "log.example/2026"


class Key:
    def __init__(self, name, seed, kind):
        self.name, self.kind = name, kind
        self.secret = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        typed = bytes([kind]) + self.secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.id = hashlib.sha256(name.encode() + b"\n" + typed).digest()[:4]
        self.vkey = f"{name}+{self.id.hex()}+{b64(typed)}"

    def line(self, signature):
        return f"\u2014 {self.name} {b64(self.id + signature)}\n"

    def sign(self, text):
        return self.line(self.secret.sign(text.encode()))

    def cosign(self, text, time, said=None):
        """The time in the line is `said`; the time that is signed is `time`."""
        message = f"cosignature/v1\ntime {time}\n{text}".encode()
        return self.line((time if said is None else said).to_bytes(8, "big") + self.secret.sign(message))


def b64(data):
    return base64.b64encode(data).decode()


LOG, STRANGER = Key(ORIGIN, 1, 1), Key(ORIGIN, 2, 1)
WITNESS, OTHER = Key("witness.example/w1", 3, 4), Key("witness.example/w2", 4, 4)
LEAVES = [rfc9162.leaf(bytes([n])) for n in range(16)]


def text(size, at=None, origin=ORIGIN, more=""):
    return f"{origin}\n{size}\n{b64(rfc9162.root(LEAVES[:size]) if at is None else at)}\n{more}"


def note(body, *lines):
    return body + "\n" + "".join(lines)


def checkpoint(size, key=LOG, **other):
    body = text(size, **other)
    return note(body, key.sign(body))


def request(old, hashes, cp):
    return f"old {old}\n" + "".join(b64(h) + "\n" for h in hashes) + "\n" + cp


def cosignatures():
    body = text(5)
    longer = text(5, more="an extension line\n")
    log, good = LOG.sign(body), WITNESS.cosign(body, 1_700_000_000)
    late = WITNESS.cosign(body, 1_800_000_000)
    yield "one", "The witness's own.", note(body, log, good), 1_700_000_000
    yield "the-newest-counts", "A witness cosigns again as time goes by.", note(body, log, late, good), 1_800_000_000
    yield "extension-lines-are-signed", "The whole text is signed.", note(
        longer, LOG.sign(longer), WITNESS.cosign(longer, 7)), 7
    yield "time-zero", "A time like any other.", note(body, log, WITNESS.cosign(body, 0)), 0
    yield "another-witness", "Not this witness's.", note(body, log, OTHER.cosign(body, 5)), None
    yield "no-cosignature", "The log's word alone.", note(body, log), None
    yield "time-changed", "Made to look fresher than it is.", note(
        body, log, WITNESS.cosign(body, 1_700_000_000, said=1_800_000_000)), None
    yield "of-another-checkpoint", "Cut from another note.", note(
        body, log, WITNESS.cosign(text(4), 1_700_000_000)), None
    yield "extension-line-cut-off", "Signed with a line that is gone.", note(
        body, log, WITNESS.cosign(longer, 1_700_000_000)), None
    yield "plain-signature", "The witness's key over the text, without a time.", note(
        body, log, WITNESS.sign(body)), None
    yield "one-good-one-bad", "A bad line of a known key spoils the note.", note(
        body, log, good, WITNESS.cosign(body, 1, said=2)), None
    yield "time-beyond-63-bits", "Some readers would take it for a negative number.", note(
        body, log, WITNESS.cosign(body, 1 << 63)), None
    short = WITNESS.line((5).to_bytes(8, "big") + WITNESS.secret.sign(b"x")[:-1])
    yield "short", "A byte is missing.", note(body, log, short), None


def requests():
    first, same = request(0, [], checkpoint(5)), request(5, [], checkpoint(5))
    grown = request(5, rfc9162.proof(5, LEAVES[:11]), checkpoint(11))
    yield "first", "Nothing seen, nothing to prove.", None, first, 200
    yield "the-same-again", "A log that did not grow asks for a fresh time.", 5, same, 200
    yield "grown", "A proof from what was seen.", 5, grown, 200
    yield "grown-from-a-perfect-tree", "The proof has no first hash of its own.", 8, request(
        8, rfc9162.proof(8, LEAVES[:11]), checkpoint(11)), 200
    yield "the-empty-tree", "A log may begin with it.", None, request(0, [], checkpoint(0)), 200
    yield "extension-lines", "They are signed and otherwise ignored.", None, request(
        0, [], checkpoint(5, more="anything\n")), 200
    yield "unknown-signatures", "Lines of keys that nobody knows are ignored.", None, request(
        0, [], checkpoint(5) + STRANGER.sign(text(5)) + OTHER.cosign(text(5), 1)), 200
    yield "seen-more", "The witness answers what it has seen.", 11, grown, 409
    yield "seen-nothing", "The proof is from a size that was never seen.", None, grown, 409
    yield "seen-but-asked-from-zero", "A log that does not know learns the size.", 5, first, 409
    yield "rolled-back", "Smaller than what was seen.", 11, same, 409
    yield "old-beyond-the-checkpoint", "Nothing is proven backwards.", 11, request(11, [], checkpoint(5)), 400
    yield "forked-at-the-same-size", "Two roots of one size.", 5, request(
        5, [], checkpoint(5, at=hashlib.sha256(b"other").digest())), 422
    yield "forked-below", "The proof does not lead from what was seen.", 5, request(
        5, rfc9162.proof(5, LEAVES[:4] + LEAVES[10:] + LEAVES[:1]), checkpoint(11)), 422
    yield "grown-without-proof", "A proof is missing.", 5, request(5, [], checkpoint(11)), 422
    yield "a-hash-too-many", "A proof has one length.", 5, request(
        5, rfc9162.proof(5, LEAVES[:11]) + [LEAVES[0]], checkpoint(11)), 422
    yield "a-proof-from-zero", "From nothing, nothing is proven.", None, request(0, [LEAVES[0]], checkpoint(5)), 422
    yield "a-proof-between-equal-sizes", "There is nothing to prove.", 5, request(5, [LEAVES[0]], checkpoint(5)), 422
    yield "the-empty-tree-with-a-root", "The empty tree has one root.", None, request(
        0, [], checkpoint(0, at=LEAVES[0])), 422
    yield "signed-by-a-stranger", "The name is right and the key is not.", None, request(
        0, [], checkpoint(5, key=STRANGER)), 403
    yield "a-bad-signature-of-the-log", "The log's key, over another text.", None, request(
        0, [], note(text(5), LOG.sign(text(4)))), 403
    yield "no-old", "The first line is missing.", None, "\n" + checkpoint(5), 400
    yield "old-with-a-leading-zero", "Sizes are written in one way.", 5, grown.replace("old 5", "old 05"), 400
    yield "old-negative", "Sizes are numbers.", 5, grown.replace("old 5", "old -5"), 400
    yield "a-hash-without-padding", "Base64 is written in one way.", 5, grown.replace("=\n", "\n", 1), 400
    yield "a-hash-too-short", "Hashes have 32 bytes.", 5, request(5, [b"x" * 31], checkpoint(11)), 400
    yield "64-hashes", "No tree needs so many.", 5, request(5, [LEAVES[0]] * 64, checkpoint(11)), 400
    yield "no-blank-line", "The checkpoint does not begin.", 5, "old 5\n" + b64(LEAVES[0]) + "\n", 400
    yield "no-checkpoint", "Nothing after the blank line.", 5, "old 5\n\n", 400
    yield "no-signature", "A note without lines.", None, "old 0\n\n" + text(5), 400
    yield "carriage-returns", "Lines end with a newline.", 5, grown.replace("\n", "\r\n"), 400


def write(folder, name, case):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(case, indent=2, ensure_ascii=False) + "\n")


def main(out):
    files = 0
    for name, why, body, time in cosignatures():
        folder = out / "cosignature" / ("" if time is not None else "refused")
        write(folder, name, {"why": why, "witness": WITNESS.vkey, "note": body, "time": time})
        files += 1
    for name, why, seen, body, status in requests():
        folder = out / "add-checkpoint" / ("" if status == 200 else "refused")
        was = seen and {"size": seen, "root": b64(rfc9162.root(LEAVES[:seen]))}
        case = {"why": why, "log": LOG.vkey, "seen": was, "request": body, "status": status}
        write(folder, name, case)
        files += 1
    print(json.dumps({"files": files}))


main(pathlib.Path(sys.argv[1]))
