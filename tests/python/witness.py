"""C2SP tlog-witness, a second implementation: a log's side and a witness's side, with the Ed25519 of `cryptography` and nothing of ours.

Trees, proofs, notes and cosignatures are written here from the specifications (RFC 6962 2.1, signed-note, tlog-checkpoint,
tlog-cosignature, tlog-witness).

  witness.py keys FILE                  makes a log's key, prints its vkey
  witness.py client URL VKEY FILE       has the log with that key witnessed at URL, right and wrong; prints a summary
  witness.py serve VKEY                 witnesses the log with that vkey; prints its URL and its own vkey
"""

import base64
import hashlib
import http.client
import http.server
import json
import pathlib
import struct
import sys
import time
import urllib.parse

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ORIGIN = "python.example/log"
WITNESS = "python.example/witness"
LOG_KEY, COSIGNATURE = 1, 4
RAW = (serialization.Encoding.Raw, serialization.PublicFormat.Raw)

# --- RFC 6962, 2.1 ------------------------------------------------------------------------------


def sha(data):
    return hashlib.sha256(data).digest()


def split(n):
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def mth(leaves):
    if not leaves:
        return sha(b"")
    if len(leaves) == 1:
        return sha(b"\0" + leaves[0])
    k = split(len(leaves))
    return sha(b"\1" + mth(leaves[:k]) + mth(leaves[k:]))


def consistency(m, leaves, whole=True):
    n = len(leaves)
    if m == n:
        return [] if whole else [mth(leaves)]
    k = split(n)
    if m <= k:
        return consistency(m, leaves[:k], whole) + [mth(leaves[k:])]
    return consistency(m - k, leaves[k:], False) + [mth(leaves[:k])]


def extends(old, old_root, new, new_root, proof):
    """RFC 9162, 2.1.4.2."""
    if old == new:
        return not proof and old_root == new_root
    if not proof:
        return False
    if old & (old - 1) == 0:
        proof = [old_root] + proof
    fn, sn = old - 1, new - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = proof[0]
    for c in proof[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            fr, sr = sha(b"\1" + c + fr), sha(b"\1" + c + sr)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = sha(b"\1" + sr + c)
        fn, sn = fn >> 1, sn >> 1
    return fr == old_root and sr == new_root and sn == 0


# --- signed notes ---------------------------------------------------------------------------------


def b64(data):
    return base64.b64encode(data).decode()


def key_id(name, kind, public):
    return sha(name.encode() + b"\n" + bytes([kind]) + public)[:4]


def vkey(name, kind, public):
    return f"{name}+{key_id(name, kind, public).hex()}+{b64(bytes([kind]) + public)}"


def read_vkey(text, kind):
    name, ident, key = text.split("+", 2)
    key = base64.b64decode(key, validate=True)
    assert key[0] == kind and key_id(name, kind, key[1:]).hex() == ident
    return name, bytes.fromhex(ident), Ed25519PublicKey.from_public_bytes(key[1:])


def line(name, ident, blob):
    return f"\u2014 {name} {b64(ident + blob)}\n"


def checkpoint(key, leaves, origin=ORIGIN, root=None):
    text = f"{origin}\n{len(leaves)}\n{b64(root or mth(leaves))}\n"
    ident = key_id(ORIGIN, LOG_KEY, key.public_key().public_bytes(*RAW))
    return text, text + "\n" + line(ORIGIN, ident, key.sign(text.encode()))


def message(text, when):
    return f"cosignature/v1\ntime {when}\n{text}".encode()


# --- a log's side -----------------------------------------------------------------------------------


class Asker:
    """One connection for all requests, as the specification recommends."""

    def __init__(self, url):
        self.connection = http.client.HTTPConnection(urllib.parse.urlparse(url).netloc, timeout=30)

    def ask(self, method, path, body=None):
        self.connection.request(method, path, body)
        answer = self.connection.getresponse()
        return answer.status, answer.headers.get("Content-Type"), answer.read()

    def add(self, old, proof, note):
        lines = [f"old {old}"] + [b64(hash) for hash in proof]
        return self.ask("POST", "/add-checkpoint", ("\n".join(lines) + "\n\n" + note).encode())


def check_cosignature(body, text, witness, began):
    name, ident, public = witness
    assert body.endswith(b"\n")
    cosigned = False
    for one in body.decode().splitlines():
        dash, whose, blob = one.split(" ")
        blob = base64.b64decode(blob, validate=True)
        if dash == "\u2014" and whose == name and blob[:4] == ident:
            (when,) = struct.unpack(">Q", blob[4:12])
            assert began - 1 <= when <= time.time() + 1, when
            public.verify(blob[12:], message(text, when))
            cosigned = True
    assert cosigned, body


def be_a_client(url, witness, key_file):
    key = serialization.load_pem_private_key(pathlib.Path(key_file).read_bytes(), None)
    witness = read_vkey(witness, COSIGNATURE)
    leaves = [f"leaf {n}".encode() for n in range(600)]
    asker, grown, cosigned, refused = Asker(url), 0, 0, 0
    first = time.time()
    # What it has seen is learnt by asking with nothing.
    text, note = checkpoint(key, leaves[:1])
    status, _, body = asker.add(0, [], note)
    assert status == 200, (status, body)
    check_cosignature(body, text, witness, first)
    old = 1
    for size in [1, 2, 3, 4, 7, 8, 9, 64, 255, 256, 257, 511, 512, 600]:
        text, note = checkpoint(key, leaves[:size])
        began = time.time()
        status, kind, body = asker.add(0, [], note)
        assert (status, kind, body) == (409, "text/x.tlog.size", f"{old}\n".encode()), (status, kind, body)
        right = consistency(old, leaves[:size])
        replaced = [right[:i] + [sha(b"")] + right[i + 1 :] for i in range(len(right))]
        for wrong in [right + [b"\0" * 32], right[:-1], *replaced]:
            if wrong != right:
                status, _, body = asker.add(old, wrong, note)
                assert status == 422, (status, body)
                refused += 1
        grown += 1
        status, _, body = asker.add(old, right, note)
        assert status == 200, (status, body)
        check_cosignature(body, text, witness, began)
        cosigned, old = cosigned + 1, size
    refused += refusals(asker, key, leaves)
    status, kind, body = asker.ask("GET", f"/{sha(ORIGIN.encode()).hex()}/checkpoint")
    assert status == 200 and kind.startswith("text/plain"), (status, kind)
    text = checkpoint(key, leaves)[0]
    assert body.decode().startswith(text + "\n"), body
    ours = b"".join(one for one in body.splitlines(True) if WITNESS_LINE in one)
    check_cosignature(ours, text, witness, first)
    print(json.dumps({"grown": grown, "cosigned": cosigned, "refused": refused}))


WITNESS_LINE = "\u2014 witness.example/".encode()


def refusals(asker, key, leaves):
    stranger = Ed25519PrivateKey.generate()
    size = len(leaves)
    fork = leaves[:-1] + [b"another"]
    cases = [
        (404, size, [], checkpoint(key, leaves, origin="another.example/log")[1]),
        (403, size, [], checkpoint(stranger, leaves)[1]),
        (400, size + 1, [], checkpoint(key, leaves)[1]),
        (422, size, [], checkpoint(key, fork)[1]),
        (422, size, [], checkpoint(key, fork + [b"x"])[1]),
        (422, size, [sha(b"")], checkpoint(key, leaves)[1]),
        (409, size - 1, consistency(size - 1, leaves), checkpoint(key, leaves)[1]),
        (409, 5, consistency(5, leaves[:9]), checkpoint(key, leaves[:9])[1]),
        (400, "x", [], checkpoint(key, leaves)[1]),
        (400, f"0{size}", [], checkpoint(key, leaves)[1]),
        (400, size, [], "nonsense"),
    ]
    for expected, old, proof, note in cases:
        status, _, body = asker.add(old, proof, note)
        assert status == expected, (expected, status, body)
    return len(cases)


# --- a witness's side -------------------------------------------------------------------------------


def serve(log):
    name, ident, public = read_vkey(log, LOG_KEY)
    key = Ed25519PrivateKey.generate()
    own = key.public_key().public_bytes(*RAW)
    state = {"size": 0, "root": sha(b"")}

    def decide(body):
        head, note = body.split("\n\n", 1)
        old, *proof = head.split("\n")
        old, proof = int(old.removeprefix("old ")), [base64.b64decode(one, validate=True) for one in proof]
        text, lines = note.rsplit("\n\n", 1)
        text += "\n"
        origin, size, root = text.split("\n")[:3]
        size, root = int(size), base64.b64decode(root, validate=True)
        if origin != name:
            return 404, "text/plain", ""
        signed = [base64.b64decode(one.split(" ")[2]) for one in lines.splitlines() if one.split(" ")[1] == name]
        signed = [blob[4:] for blob in signed if blob[:4] == ident]
        try:
            for blob in signed:
                public.verify(blob, text.encode())
        except InvalidSignature:
            signed = []
        if not signed:
            return 403, "text/plain", ""
        if old > size:
            return 400, "text/plain", ""
        if old != state["size"]:
            return 409, "text/x.tlog.size", f"{state['size']}\n"
        right = not proof if old == 0 else extends(old, state["root"], size, root, proof)
        if not right:
            return 422, "text/plain", ""
        state.update(size=size, root=root)
        when = int(time.time())
        blob = struct.pack(">Q", when) + key.sign(message(text, when))
        # A stranger's line first: it is to be ignored.
        strange = line("stranger.example", b"\1\2\3\4", b"\0" * 72)
        return 200, "text/plain", strange + line(WITNESS, key_id(WITNESS, COSIGNATURE, own), blob)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            right = self.path == "/w/add-checkpoint"
            status, kind, answer = decide(body) if right else (404, "text/plain", "")
            answer = answer.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    url = f"http://127.0.0.1:{server.server_address[1]}/w"
    print(json.dumps({"url": url, "vkey": vkey(WITNESS, COSIGNATURE, own)}), flush=True)
    server.serve_forever()


def make_key(file):
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    pathlib.Path(file).write_bytes(pem)
    print(json.dumps({"vkey": vkey(ORIGIN, LOG_KEY, key.public_key().public_bytes(*RAW))}))


if __name__ == "__main__":
    {"keys": make_key, "client": be_a_client, "serve": serve}[sys.argv[1]](*sys.argv[2:])
