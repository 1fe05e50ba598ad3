"""Runs the test vectors through the Python package; sdk/typescript/tests/vectors.mjs does the same for TypeScript.

    vectors.py FOLDER     prints how many cases of each family passed, as JSON; the first that fails ends it

FOLDER is `vectors`. Some cases are for functions that the SDKs do not have (OTHER_FUNCTIONS).
"""

import hashlib
import json
import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path

from tabellion import core
from tabellion.errors import CoreError
from vector_policies import policy_for

#: Families of statements that a log under a policy admits or refuses.
DECIDED = (
    "aer",
    "agentroa-chain",
    "agentroa-policy",
    "agentroa-registry",
    "conversation",
    "erasure",
    "index-head",
    "jwk-set",
    "operator",
    "vap",
    "vrf",
)
#: Cases for the reader of bytes, the default nesting, and a reader of JWKs that does not look whether the point is on the curve.
OTHER_FUNCTIONS = {
    "json": {"invalid-utf-8.json", "overlong-utf-8.json", "surrogate-in-utf-8.json", "utf-16.json", "depth-65.json", "depth-attack.json"},
    "jwk": {"p-384.json", "p-521.json"},
}


def bytes_of(hexadecimal):
    return core.encode(bytes.fromhex(hexadecimal))


def tried(operation, **arguments):
    """Returns the result and no error, or no result and the error."""
    try:
        return core.call(operation, **arguments), None
    except CoreError as error:
        return None, error


@lru_cache(maxsize=None)
def tests_policy(vectors):
    """Returns the policy of the Rust tests as TOML."""
    return json.loads((vectors / "policy/sound/tests.json").read_text())["toml"]


def outcome(verdict, error, refused):
    return refused if error else [verdict["verdict"]["outcome"], verdict["verdict"]["reason"]]


def bundle(case, _):
    given = dict(evidence=case["bundle"].encode(), trust=case["trust"], witness_policy=case["witness_policy"], now=case["now"])
    return outcome(*tried("verify", **given), ["malformed", None]), [case["outcome"], case["reason"]]


def verifier(case, _):
    given = dict(evidence=bytes_of(case["statement"]), trust=case["trust"], now=case["now"])
    given["receipts"] = [bytes_of(receipt) for receipt in case["receipts"]]
    if case.get("payload") is not None:
        given["payload"] = bytes_of(case["payload"])
    return outcome(*tried("verify", **given), ["failed", "malformed-statement"]), [case["outcome"], case.get("reason")]


def consistency(case, _):
    known = {"size": case["known_size"], "root": case["known_root"]}
    verdict, _ = tried("verify-consistency", receipt=bytes_of(case["receipt"]), known=known, trust=case["trust"], now=case["now"])
    given = [verdict["outcome"], verdict["reason"], verdict["root"]]
    return given, [case["outcome"], case["reason"], case["newer_root"]]


def inclusion_proof(case, _):
    names = ("leaf_hash", "leaf_index", "tree_size", "path", "root")
    return tried("inclusion-proof", **{name: case[name] for name in names})[1] is None, case["valid"]


def consistency_proof(case, _):
    names = ("older_size", "newer_size", "older_root", "newer_root", "path")
    return tried("consistency-proof", **{name: case[name] for name in names})[1] is None, case["valid"]


def tree_root(case, _):
    return core.call("tree-root", entries=[bytes_of(entry) for entry in case["entries"]])["root"], case["root"]


def note(case, _):
    result, _ = tried("verify-note", note=case["note"], keys=case["keys"])
    return result and result["signed_by"], case.get("signed_by")


def vkey(case, _):
    result, _ = tried("read-verifier-key", key=case["vkey"])
    return [result and result["name"], result and result["id"]], [case["name"], case["id"]]


def checkpoint(case, _):
    result, _ = tried("read-checkpoint", text=case["text"])
    names = ("origin", "size", "root", "extensions")
    return [result and result[name] for name in names], [case.get(name) for name in names]


def cosignature(case, _):
    result, _ = tried("read-cosignature", note=case["note"], witness=case["witness"])
    return result and result["time"], case.get("time")


def accepted_statement(case, _):
    read = core.call("read-statement", statement=bytes_of(case["input"]))
    detached = case["detached"] and bytes_of(case["detached"])
    _, invalid = tried("verify-signature", statement=bytes_of(case["input"]), public_key=case["key"], payload=detached)
    names = ("entry", "twin", "alg", "iss", "sub", "missing")
    given = [read[name] for name in names] + [read["statement"], read["kid"], read["receipts"], invalid is None]
    expected = [case[name] for name in names] + [bytes_of(case["s"]), case["kid"] and bytes_of(case["kid"])]
    return given, expected + [[bytes_of(receipt) for receipt in case["receipts"]], case["signature"] == "valid"]


def refused_statement(case, _):
    _, error = tried("read-statement", statement=bytes_of(case["input"]))
    return [error.code, error.message, error.offset], ["malformed-statement", case["error"], case["offset"]]


def accepted_receipt(case, _):
    known = {"size": case.get("older_size"), "root": case.get("older_root")}
    which = {"leaf": case["leaf"]} if case.get("leaf") else {"known": known}
    result = core.call("receipt-root", receipt=bytes_of(case["input"]), public_key=case["key"], **which)
    names = ("root", "tree_size", "signed_tree_size", "leaf_index")
    return [result[name] for name in names], [case.get(name) for name in names]


def refused_receipt(case, _):
    key = core.call("public-key", private_key=core.generate_key().private_key)["did"]
    _, error = tried("receipt-root", receipt=bytes_of(case["input"]), public_key=key, leaf="00" * 32)
    return error and error.message, case["error"]


def unproven_receipt(case, _):
    codes = {
        "signature": ["receipt-signature-invalid"],
        "proof": ["receipt-proof-invalid"],
        "payload": ["receipt-payload-differs"],
        "no inclusion proof": ["no-inclusion-proof"],
        "consistency": ["no-consistency-proof", "consistency-other-size"],
        "statement": ["receipt-statement-differs"],
    }
    _, error = tried("receipt-root", receipt=bytes_of(case["input"]), public_key=case["key"], leaf=case["leaf"])
    return (error and error.code) in codes[case["error"]], True


def problem(case, _):
    result, _ = tried("read-problem", problem=bytes_of(case["input"]))
    names = ("title", "detail", "instance", "code", "rule", "offset")
    return [result is not None, *(result and result[name] for name in names)], [case["valid"], *(case.get(name) for name in names)]


def did(case, _):
    result, _ = tried("read-key", public_key=case["did"])
    return result and result["cose_key"], case["cose_key"] and bytes_of(case["cose_key"])


def accepted_key(case, _):
    forms = [case[name] for name in ("input", "spki_pem", "did_key", "did_jwk")]
    keys = [core.call("read-key", public_key=form) for form in forms]
    return [[key["did"], key["pem"]] for key in keys], [[case["did_key"], case["spki_pem"]]] * len(forms)


def refused_key(case, _):
    _, error = tried("read-key", public_key=case["input"])
    return error and error.message, case["error"]


def canonical_json(case, _):
    return core.decode(core.call("digest-json", json=case["text"])["canonical"]).decode(), case["canonical"]


def strict_json(case, _):
    text = case["text"] if "text" in case else bytes.fromhex(case["hex"]).decode()
    _, error = tried("digest-json", json=text)
    if case["valid"]:
        return error, None
    where = f"at byte {case['offset']}, {case['pointer'] or 'top level'}: "
    return error and error.message[: len(where)], where


def jwk(case, _):
    result, _ = tried("read-key", public_key=case["text"])
    return result and core.decode(result["thumbprint"]).hex(), case.get("thumbprint")


def verdict(case, _):
    signed, key = (case["expected"]["accept"][name] for name in ("signed", "jwk"))
    # The messages of these cases are all `{}`.
    answered = "{}" if "req" in case["binding"] else None
    facts = core.call("verify-verdict", verdict=signed, public_key=json.dumps(key), message=answered)
    stated = case["verdict"]
    return facts, {"verdict": stated["verdict"], "session_id": stated["session_id"], "iat": case["binding"]["iat"]}


def message(case, _):
    result, error = tried("read-message", method=case["method"], text=case["text"], own=case.get("own"))
    if error:
        return error.code, case["expected"].get("refuse", "").partition(" ")[0]
    expected = case["expected"].get("accept", {})
    return {name: result[name] for name in expected}, expected


def pattern(case, _):
    result, _ = tried("match-pattern", tool=case["tool"], allow=case["allow"], deny=case["deny"])
    return result["allowed"], "accept" in case["expected"]


def decided_statement(case, folder):
    if "entry_id" in case:
        return core.call("read-statement", statement=bytes_of(case["statement"]))["entry"], case["entry_id"]
    statement = bytes_of(case["statement"])
    given = {
        "policy": policy_for(tests_policy(folder.parents[1]), folder.parent.name, case),
        "entries": [bytes_of(entry) for entry in case.get("log", ())],
    }
    trial = core.call("try-policy", statement=statement, now=case.get("at"), **given)
    decided = trial["rule"] if trial["outcome"] == "refused" else trial["outcome"]
    shown = {"content": bytes_of(case["disclosed"])} if "disclosed" in case else {}
    _, broken = tried("check-content", statement=statement, **shown)
    if shown and decided == "admitted" and broken:
        # What is disclosed is checked after the admission.
        decided = broken.code
    # A rule of the content that is broken is the one that decided, as it holds under every policy.
    rules = [decided, broken.code if broken else decided]
    if case["expected"] == "admit":
        return rules, ["admitted"] * 2
    return [*rules, case["expected"], bool(case["why"])], [*[case["rule"]] * 2, "refuse", True]


def vap(case, folder):
    if folder.name.startswith("vap-audit-"):
        payload = core.call("read-statement", statement=bytes_of(case["statement"]))["payload"]
        errors = [tried("check-object", payload=payload)[1], tried("check-content", statement=bytes_of(case["statement"]))[1]]
        if len({error and error.code for error in errors}) > 1:
            return errors, "the same rule"
    return decided_statement(case, folder)


def decided(case, _):
    trial = core.call("try-policy", policy=case["policy"], statement=bytes_of(case["statement"]))
    answers = {"admitted": {"admitted_by": trial["rule"]}, "undecided": {"undecided": trial["rule"]}}
    return answers.get(trial["outcome"]) or {"refused_by": trial["rule"], "place": trial["place"]}, case["answer"]


def sound_policy(case, _):
    read = [core.call("check-policy", policy=case[form]) for form in ("toml", "payload")]
    return read, [{"mistakes": [], "digest": case["digest"], "payload": case["payload"]}] * 2


def mistaken_policy(case, _):
    return core.call("check-policy", policy=case["toml"]), {"mistakes": case["mistakes"]}


def registry_of(case):
    return {"document": json.dumps(case["registry"], ensure_ascii=False), "operators": [json.dumps(case["operator"])]}


def denial(found):
    return {name: found[name] for name in ("outcome", "reason", "code", "hop", "dimension")} if found["outcome"] == "deny" else None


def chain(case, _):
    given = {"chain": case["chain"], "registry": registry_of(case), "at": case["at"], "clock_skew": 60}
    call = {"capability": case["call"], "presenter": case["presenter"], "pinned": case["pinned"]}
    found = core.call("verify-chain", call=call, **given)
    return denial(found) or {"outcome": found["outcome"]}, case["expected"]


def proof(case, _):
    given = {"chain": case["chain"], "registry": registry_of(case), "at": case["at"], "clock_skew": 60}
    given.update(proof=case["proof"], capability=case["call"], audience=case["audience"])
    if case["arguments"] is not None:
        given["arguments"] = json.dumps(case["arguments"])
    found = core.call("verify-proof", **given)
    return denial(found) or found, case["expected"]


def search_terms(case, _):
    payload = {} if case["payload"] is None else {"payload": bytes_of(case["payload"])}
    read = core.call("read-terms", statement=bytes_of(case["statement"]), **payload)
    blind = [code["number"] for code in read["blind"]]
    if "terms" in case:
        return [[[term["number"], term["value"]] for term in read["terms"]], blind], [case["terms"], case["blind"]]
    keys = sorted({item["key"] for item in read["terms"] + read["blind"]})
    return [hashlib.sha256(bytes.fromhex("".join(keys))).hexdigest(), blind], [case["keys_sha256"], case["blind"]]


FAMILIES = {
    "bundle": bundle,
    "verifier": verifier,
    "consistency": consistency,
    "merkle/inclusion": inclusion_proof,
    "merkle/consistency": consistency_proof,
    "merkle/roots": tree_root,
    "tlog/note": note,
    "tlog/vkey": vkey,
    "tlog/checkpoint": checkpoint,
    "tlog/cosignature": cosignature,
    "scitt/statement/accepted": accepted_statement,
    "scitt/statement/refused": refused_statement,
    "scitt/receipt/accepted": accepted_receipt,
    "scitt/receipt/refused": refused_receipt,
    "scitt/receipt/unproven": unproven_receipt,
    "scitt/problem": problem,
    "scitt/did": did,
    "scitt/keys/accepted": accepted_key,
    "scitt/keys/refused": refused_key,
    "jose/jcs": canonical_json,
    "jose/json": strict_json,
    "jose/jwk": jwk,
    "admission/message": message,
    "admission/pattern": pattern,
    "admission/verdict": verdict,
    **dict.fromkeys(DECIDED, decided_statement),
    "vap": vap,
    "policy/decided": decided,
    "policy/sound": sound_policy,
    "policy/mistaken": mistaken_policy,
    "search-terms": search_terms,
    **{f"agentroa/{kind}": chain for kind in ("call", "chain", "permit", "pseudocode", "scope", "signature")},
    "agentroa/proof": proof,
}


def main(vectors):
    passed = Counter()
    for family, run in FAMILIES.items():
        for file in sorted((vectors / family).rglob("*.json")):
            if file.name in OTHER_FUNCTIONS.get(file.parent.name, ()):
                continue
            given, expected = run(json.loads(file.read_text()), file.parent)
            if given != expected:
                sys.exit(f"{file}: given {given}, expected {expected}")
            passed[family] += 1
    print(json.dumps(passed))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
