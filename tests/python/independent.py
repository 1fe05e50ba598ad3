"""Programs that none of us wrote, in the place of ours: issuers, a client, and a verifier of receipts.

Statements are made by pycose and by scitt-cose, signed with keys of `cryptography`, registered with `urllib`,
and their receipts verified by scitt-cose with nothing but the log's published key set. No code of this project is used.

  independent.py keys DIR               makes the issuers' keys, prints them as JSON: name -> public key, PEM
  independent.py register URL DIR N     registers N statements of each kind and verifies everything; prints a summary
  independent.py audit URL DIR          verifies again, with fresh receipts, what an earlier `register` registered
"""

import hashlib
import json
import pathlib
import sys
import time
import urllib.error
import urllib.request

import cbor2
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from pycose.algorithms import EdDSA, Es256, Es384
from pycose.headers import Algorithm, ContentType, KID
from pycose.keys import EC2Key, OKPKey
from pycose.keys.curves import P256, P384, Ed25519
from pycose.messages import Sign1Message
from scitt_cose import build_signed_statement, parse_signed_statement, verify_receipt

KID_OF_ALL = b"key-1"
CWT_CLAIMS = 15
CURVES = {1: ec.SECP256R1(), 2: ec.SECP384R1(), 3: ec.SECP521R1()}
# The service may say "later": a client waits at least as long as it is told, and not for ever.
TRIES = 50


# --- issuers ------------------------------------------------------------------------------------


def new_keys():
    return {
        "es256": ec.generate_private_key(ec.SECP256R1()),
        "es384": ec.generate_private_key(ec.SECP384R1()),
        "eddsa": ed25519.Ed25519PrivateKey.generate(),
    }


def private_pem(key):
    kind = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption())


def public_pem(key):
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_bytes(serialization.Encoding.PEM, kind)


def make_keys(folder):
    printed = {}
    for name, key in new_keys().items():
        (folder / f"{name}.pem").write_bytes(private_pem(key))
        printed[name] = public_pem(key.public_key()).decode()
    print(json.dumps(printed))


def load_keys(folder):
    names = ["es256", "es384", "eddsa"]
    return {name: serialization.load_pem_private_key((folder / f"{name}.pem").read_bytes(), None) for name in names}


def issuer(name):
    return f"https://{name}.independent.example"


def by_scitt_cose(name, key, n):
    algorithm = {"es256": "ES256", "es384": "ES384", "eddsa": "EdDSA"}[name]
    return build_signed_statement(
        json.dumps({"by": "scitt-cose", "n": n}).encode(),
        alg=algorithm,
        private_key_pem=private_pem(key),
        issuer=issuer(name),
        subject=f"scitt-cose-{n}",
        content_type="application/json",
        kid=KID_OF_ALL,
    )


def by_pycose(name, key, n):
    algorithm, cose_key = pycose_key(name, key)
    message = Sign1Message(
        # Not in the order of deterministic CBOR: what was signed is what counts.
        phdr={
            CWT_CLAIMS: {2: f"pycose-{n}", 1: issuer(name)},
            KID: KID_OF_ALL,
            ContentType: "application/json",
            Algorithm: algorithm,
        },
        uhdr={},
        payload=json.dumps({"by": "pycose", "n": n}).encode(),
    )
    message.key = cose_key
    return message.encode()


def pycose_key(name, key):
    if name == "eddsa":
        seed = key.private_bytes_raw()
        return EdDSA, OKPKey(crv=Ed25519, x=key.public_key().public_bytes_raw(), d=seed)
    numbers = key.private_numbers()
    curve, algorithm, width = {"es256": (P256, Es256, 32), "es384": (P384, Es384, 48)}[name]
    x, y, d = (n.to_bytes(width, "big") for n in (numbers.public_numbers.x, numbers.public_numbers.y, numbers.private_value))
    return algorithm, EC2Key(crv=curve, x=x, y=y, d=d)


# --- a client -----------------------------------------------------------------------------------


def ask(url, body=None, accept="application/cose"):
    headers = {"Accept": accept}
    if body is not None:
        headers["Content-Type"] = "application/cose"
    request = urllib.request.Request(url, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.headers, refusal.read()


def register(url, statement):
    status, headers, receipt = ask(f"{url}/entries", statement)
    for _ in range(TRIES):
        if status not in (429, 503):
            break
        time.sleep(int(headers["Retry-After"]))
        status, headers, receipt = ask(f"{url}/entries", statement)
    where = headers["Location"]
    for _ in range(TRIES):
        if status not in (202, 204):
            break
        time.sleep(int(headers["Retry-After"]))
        status, headers, receipt = ask(where)
    if status not in (200, 201):
        raise SystemExit(f"{status}: {cbor2.loads(receipt)}")
    return where, receipt


def published_keys(url):
    status, headers, body = ask(f"{url}/.well-known/scitt-keys", accept="application/cbor")
    assert (status, headers["Content-Type"]) == (200, "application/cbor"), (status, body)
    return {member[2]: pem_of(member) for member in cbor2.loads(body)}


def pem_of(cose_key):
    """A COSE_Key (RFC 9053 section 7) as PEM."""
    if cose_key[1] == 1:
        return public_pem(ed25519.Ed25519PublicKey.from_public_bytes(cose_key[-2]))
    x, y = (int.from_bytes(cose_key[label], "big") for label in (-2, -3))
    return public_pem(ec.EllipticCurvePublicNumbers(x, y, CURVES[cose_key[-1]]).public_key())


# --- a verifier ---------------------------------------------------------------------------------


def leaf_entry(statement):
    """SHA-256 of the statement with its unprotected header emptied: what this log says its leaves are."""
    protected, _, payload, signature = cbor2.loads(statement).value
    return hashlib.sha256(cbor2.dumps(cbor2.CBORTag(18, [protected, {}, payload, signature]))).hexdigest()


def kid_of(receipt):
    return cbor2.loads(cbor2.loads(receipt).value[0])[4]


def verified(statement, receipt, keys):
    result = verify_receipt(receipt, leaf_entry_hex=leaf_entry(statement), log_public_key_pem=keys[kid_of(receipt)])
    assert result.ok, result.errors
    return result


def expect_refused(receipt, entry, key, why):
    result = verify_receipt(receipt, leaf_entry_hex=entry, log_public_key_pem=key)
    assert not result.ok, f"verified although {why}"


def expect_tampering_is_seen(statement, other, receipt, keys):
    entry, key = leaf_entry(statement), keys[kid_of(receipt)]
    expect_refused(receipt, leaf_entry(other), key, "it is for another statement")
    expect_refused(receipt, entry, public_pem(ec.generate_private_key(ec.SECP256R1()).public_key()), "the key is a stranger's")
    protected, unprotected, payload, signature = cbor2.loads(receipt).value

    def forged(**parts):
        whole = {"protected": protected, "unprotected": unprotected, "payload": payload, "signature": signature}
        return cbor2.dumps(cbor2.CBORTag(18, list((whole | parts).values())))

    assert verify_receipt(forged(), leaf_entry_hex=entry, log_public_key_pem=key).ok, "unharmed, it verifies"
    expect_refused(forged(signature=flipped(signature)), entry, key, "its signature was changed")
    [proof] = unprotected[396][-1]
    size, index, path = cbor2.loads(proof)
    changed_path = [flipped(path[0]), *path[1:]]
    for changed, why in [
        ([size, index, changed_path], "its path was changed"),
        ([size, index, path[:-1]], "its path was cut"),
        ([size, (index + 1) % size, path], "its index was changed"),
    ]:
        expect_refused(forged(unprotected={396: {-1: [cbor2.dumps(changed)]}}), entry, key, why)
    header = cbor2.loads(protected)
    header[15] = {**header[15], 1: "https://other.example"}
    expect_refused(forged(protected=cbor2.dumps(header)), entry, key, "its issuer was changed")


def flipped(data):
    return bytes([data[0] ^ 1]) + data[1:]


# --- what is run --------------------------------------------------------------------------------


def run_register(url, folder, count):
    issuers, keys = load_keys(folder), published_keys(url)
    kept, leaves, sizes = [], set(), set()
    for n in range(count):
        for name, key in issuers.items():
            for make in (by_scitt_cose, by_pycose):
                statement = make(name, key, n)
                where, receipt = register(url, statement)
                result = verified(statement, receipt, keys)
                assert where == f"{url}/entries/{leaf_entry(statement)}", where
                kept.append((statement, where, receipt))
                leaves.add(result.leaf_index)
                sizes.add(result.tree_size)
    assert len(leaves) == len(kept), "every statement has a leaf of its own"
    for (statement, _, receipt), (other, _, _) in zip(kept, kept[1:]):
        expect_tampering_is_seen(statement, other, receipt, keys)
    again = kept[0]
    assert register(url, again[0])[0] == again[1], "registered again, it is at the same place"
    (folder / "kept.cbor").write_bytes(cbor2.dumps(kept))
    tell(kept, sizes)


def run_audit(url, folder):
    kept, keys, sizes = cbor2.loads((folder / "kept.cbor").read_bytes()), published_keys(url), set()
    issuers = load_keys(folder)
    for statement, where, old in kept:
        status, _, fresh = ask(url + where[where.index("/entries/"):])
        assert status == 200, status
        old_result, result = verified(statement, old, keys), verified(statement, fresh, keys)
        assert result.leaf_index == old_result.leaf_index, "a leaf never moves"
        sizes.add(result.tree_size)
        status, _, stored = ask(url + where[where.index("/entries/"):].replace("/entries/", "/v1/entries/") + "/statement")
        name = issuer_of(statement)
        parsed = parse_signed_statement(stored, public_key_pem=public_pem(issuers[name].public_key()))
        assert status == 200 and parsed["signature_verified"], "stored as it was signed"
        status, _, transparent = ask(url + where[where.index("/entries/"):].replace("/entries/", "/v1/entries/") + "/transparent")
        attached = cbor2.loads(transparent).value[1][394]
        assert status == 200 and [verified(statement, receipt, keys).ok for receipt in attached] == [True]
    tell(kept, sizes)


def issuer_of(statement):
    claims = cbor2.loads(cbor2.loads(statement).value[0])[CWT_CLAIMS]
    return claims[1].removeprefix("https://").split(".")[0]


def tell(kept, sizes):
    print(json.dumps({"verified": len(kept), "tree_sizes": len(sizes)}))


def main(command, *arguments):
    if command == "keys":
        make_keys(pathlib.Path(arguments[0]))
    elif command == "register":
        run_register(arguments[0], pathlib.Path(arguments[1]), int(arguments[2]))
    elif command == "audit":
        run_audit(arguments[0], pathlib.Path(arguments[1]))
    else:
        raise SystemExit(__doc__)


main(*sys.argv[1:])
