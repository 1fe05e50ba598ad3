"""Decides the cases of vectors/lookup-tree again, without this project's code and without packages.

    lookup_tree_vectors.py vectors/lookup-tree     prints {"key": how many, …}

A posting is a number of 192 bits here, so that a prefix is a shift and an interval is a pair of numbers. The members of a vector
are described in vectors/README.md.
"""

import hashlib
import json
import pathlib
import sys

BITS, BUCKET = 192, 16
ERASED, UNREADABLE, TOO_MANY_TERMS = 1, 2, 3
TAIL = 255
MAX_RUNS, MAX_HEAD, MAX_PROOF = 192, 16 << 10, 16 << 20


class Malformed(Exception):
    pass


class Refused(Exception):
    pass


def must(true, error, why):
    if not true:
        raise error(why)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


# --- postings and the tree of a run -------------------------------------------------------------------


def key_of(kind, value):
    return sha256(b"tabellion/term/1", bytes([kind]), value)[:16]


def posting_of(key, leaf):
    return int.from_bytes(key, "big") << 64 | leaf


def is_blind(posting):
    return ERASED <= posting >> 64 <= TOO_MANY_TERMS


def ascending(postings):
    return all(one < other for one, other in zip(postings, postings[1:]))


def bucket_hash(postings):
    return sha256(b"\x02", len(postings).to_bytes(2, "big"), *(posting.to_bytes(24, "big") for posting in postings))


def inner_hash(depth, prefix, left, right):
    return sha256(b"\x03", bytes([depth]), (prefix << (BITS - depth)).to_bytes(24, "big"), left, right)


def root_of(postings):
    if len(postings) <= BUCKET:
        return bucket_hash(postings)
    depth = BITS - (postings[0] ^ postings[-1]).bit_length()
    ones = [posting for posting in postings if posting >> (BITS - 1 - depth) & 1]
    zeros = postings[: len(postings) - len(ones)]
    return inner_hash(depth, postings[0] >> (BITS - depth), root_of(zeros), root_of(ones))


# --- CBOR, deterministic only -------------------------------------------------------------------------


class Cbor:
    """Reads unsigned integers, byte strings, arrays and maps in their deterministic encoding."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        must(self.at + count <= len(self.data), Malformed, "the input ends")
        self.at += count
        return self.data[self.at - count : self.at]

    def head(self):
        (initial,) = self.take(1)
        major, info = initial >> 5, initial & 31
        if info < 24:
            return major, info
        must(info < 28, Malformed, "reserved or indefinite")
        length = 1 << (info - 24)
        argument = int.from_bytes(self.take(length), "big")
        shortest = 24 if length == 1 else 1 << (4 * length)
        must(argument >= shortest, Malformed, "not in its shortest form")
        return major, argument

    def expect(self, major):
        found, argument = self.head()
        must(found == major, Malformed, f"major type {found}, not {major}")
        return argument

    def number(self):
        return self.expect(0)

    def bytes(self, length=None):
        given = self.take(self.expect(2))
        must(length in (None, len(given)), Malformed, "length of a byte string")
        return given

    def array(self):
        return self.expect(4)

    def end(self):
        must(self.at == len(self.data), Malformed, "bytes after the item")


# --- heads ----------------------------------------------------------------------------------------------


def run_length(level):
    return 4096 * 8**level


def schedule(size):
    """The runs of a size as (level, number, first leaf, leaf after the last one)."""
    runs, start = [], 0
    while True:
        serving = [
            level
            for level in range(18)
            if start % run_length(level) == 0
            and start + run_length(level) + (run_length(level) // 8 if level else 0) <= size
        ]
        if not serving:
            break
        length = run_length(max(serving))
        runs.append((max(serving), start // length, start, start + length))
        start += length
    return runs + ([(TAIL, 0, start, size)] if start < size else [])


def read_head(data):
    must(len(data) <= MAX_HEAD, Malformed, "too long")
    cbor = Cbor(data)
    must(cbor.expect(5) == 5, Malformed, "five members")

    def member(label, read):
        must(cbor.number() == label, Malformed, "labels ascend from 1")
        return read()

    head = {
        "series": member(1, lambda: cbor.bytes(32)).hex(),
        "size": member(2, cbor.number),
        "log_root": member(3, lambda: cbor.bytes(32)).hex(),
        "horizon": member(4, cbor.number),
        "runs": member(5, lambda: read_runs(cbor)),
        "digest": sha256(data).hex(),
    }
    cbor.end()
    return head


def read_runs(cbor):
    count = cbor.array()
    must(count <= MAX_RUNS, Malformed, "too many runs")
    return [read_run(cbor) for _ in range(count)]


def read_run(cbor):
    must(cbor.array() == 5, Malformed, "a run has five members")
    level, number, postings, blind = (cbor.number() for _ in range(4))
    must(level <= 255, Malformed, "a level has 8 bits")
    root = cbor.bytes(32).hex()
    return {"level": level, "number": number, "postings": postings, "blind": blind, "root": root}


def has_scheduled_runs(head):
    expected = [run[:2] for run in schedule(head["size"])]
    return [(run["level"], run["number"]) for run in head["runs"]] == expected


# --- run proofs -----------------------------------------------------------------------------------------


def read_proof(data):
    must(len(data) <= MAX_PROOF, Malformed, "too long")
    cbor = Cbor(data)
    part = read_part(cbor)
    cbor.end()
    return part


def read_part(cbor, nesting=0):
    must(nesting <= BITS, Malformed, "nested too deeply")
    if cbor.data[cbor.at : cbor.at + 1] == b"\x58":
        return "hidden", cbor.bytes(32)
    members = cbor.array()
    if members == 2:
        kind, data = cbor.number(), cbor.bytes()
        must(kind in (0, 1), Malformed, "kind of a list")
        return ("whole", read_groups(data)) if kind else ("bucket", read_postings(data))
    must(members == 4, Malformed, "members of a part")
    depth = cbor.number()
    must(depth <= BITS, Malformed, "depth of a prefix")
    filled = -(-depth // 8) * 8
    prefix = int.from_bytes(cbor.bytes(filled // 8), "big")
    must(prefix & ((1 << (filled - depth)) - 1) == 0, Malformed, "bits after a prefix")
    return "inner", depth, prefix >> (filled - depth), read_part(cbor, nesting + 1), read_part(cbor, nesting + 1)


def read_postings(data):
    must(len(data) % 24 == 0, Malformed, "postings have 24 bytes")
    return [int.from_bytes(data[at : at + 24], "big") for at in range(0, len(data), 24)]


def read_groups(data):
    reader, postings, last_key = Cbor(data), [], None
    while reader.at < len(data):
        key = reader.take(16)
        must(last_key is None or last_key < key, Malformed, "keys ascend")
        count, leaf, last_key = read_varint(reader), 0, key
        must(count > 0, Malformed, "an empty group")
        must(count <= len(data), Malformed, "a group of more leaves than bytes")
        for nth in range(count):
            difference = read_varint(reader)
            must(nth == 0 or difference > 0, Malformed, "leaves ascend")
            leaf += difference
            must(leaf < 1 << 64, Malformed, "a leaf has 64 bits")
            postings.append(posting_of(key, leaf))
    return postings


def read_varint(reader):
    number, shift = 0, 0
    while True:
        (byte,) = reader.take(1)
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            must(byte or shift == 7, Malformed, "not in its shortest form")
            must(number < 1 << 64, Malformed, "a number has 64 bits")
            return number
        must(shift < 70, Malformed, "a number has 64 bits")


class Question:
    """Intervals of postings, both ends included."""

    def __init__(self, keys, leaves, run_leaves, blind):
        start, end = max(leaves[0], run_leaves[0]), min(leaves[1], run_leaves[1])
        codes = [bytes(15) + bytes([code]) for code in (ERASED, UNREADABLE, TOO_MANY_TERMS)] if blind else []
        self.intervals = [(posting_of(key, start), posting_of(key, end - 1)) for key in codes + keys if start < end]

    def meets(self, first, last):
        return any(start <= last and first <= end for start, end in self.intervals)

    def has(self, posting):
        return self.meets(posting, posting)


def verify_run(part, question, root):
    """Returns the postings of the question, if the proof leads to the root."""
    found = []
    implied = check(part, 0, 0, question, found)
    must(implied == root, Refused, "root")
    return found


def check(part, depth, prefix, question, found):
    """Checks a part at the place of this prefix of `depth` bits, and returns its hash."""
    first = prefix << (BITS - depth)
    last = first | ((1 << (BITS - depth)) - 1)
    match part:
        case "hidden", hash:
            must(not question.meets(first, last), Refused, "hidden")
            return hash
        case ("bucket" | "whole") as kind, postings:
            must((len(postings) <= BUCKET) == (kind == "bucket"), Refused, "size of a list")
            must(ascending(postings), Refused, "order")
            must(all(first <= posting <= last for posting in postings), Refused, "place of a posting")
            asked = [posting for posting in postings if question.has(posting)]
            must(kind == "bucket" or asked == postings, Refused, "a whole subtree with others")
            found += asked
            return root_of(postings)
        case "inner", below, longer, left, right:
            must(depth <= below < BITS and longer >> (below - depth) == prefix, Refused, "place of a prefix")
            left = check(left, below + 1, longer << 1, question, found)
            right = check(right, below + 1, longer << 1 | 1, question, found)
            return inner_hash(below, longer, left, right)


# --- the cases ------------------------------------------------------------------------------------------


def decide_key(case):
    assert key_of(case["kind"], case["value"].encode()).hex() == case["key"]


def decide_root(case):
    postings = [int(posting, 16) for posting in case["postings"]]
    sound = ascending(postings)
    assert (root_of(postings).hex() if sound else None) == case["root"]
    assert (sum(map(is_blind, postings)) if sound else None) == case["blind"]


def decide_schedule(case):
    expected = [(run["level"], run["number"], *run["leaves"]) for run in case["runs"]]
    assert schedule(case["size"]) == expected


def decide_head(case):
    try:
        head = read_head(bytes.fromhex(case["head"]))
    except Malformed:
        head = None
    assert head == case["contents"]
    verdict = "malformed" if head is None else "accept" if has_scheduled_runs(head) else "wrong-runs"
    assert verdict == case["expected"], verdict


def decide_proof(case):
    keys = [bytes.fromhex(key) for key in case["keys"]]
    question = Question(keys, case["leaves"], case["run_leaves"], case["blind"])
    try:
        found = verify_run(read_proof(bytes.fromhex(case["proof"])), question, bytes.fromhex(case["root"]))
    except Malformed:
        assert case["expected"] == "malformed"
    except Refused as why:
        assert case["expected"] not in ("accept", "malformed"), why
    else:
        assert case["expected"] == "accept"
        assert [posting.to_bytes(24, "big").hex() for posting in sorted(found)] == case["found"]


def decide_answer(case):
    try:
        found = verify_answer(case)
    except Refused as why:
        assert case["expected"] != "accept", why
        return
    assert case["expected"] == "accept"
    leaf = (1 << 64) - 1
    leaves = [posting & leaf for posting in found if not is_blind(posting)]
    blind = [[posting & leaf, posting >> 64] for posting in found if is_blind(posting)]
    assert {"leaves": leaves, "blind": blind} == case["found"]


def verify_answer(case):
    head, found = read_head(bytes.fromhex(case["head"])), []
    proofs = {(proof["level"], proof["number"]): proof["proof"] for proof in case["proofs"]}
    must(case["leaves"][1] <= head["size"], Refused, "beyond the head")
    must(has_scheduled_runs(head), Refused, "runs")
    for (level, number, *leaves), run in zip(schedule(head["size"]), head["runs"]):
        question = Question([bytes.fromhex(case["key"])], case["leaves"], leaves, run["blind"])
        if question.intervals:
            must((level, number) in proofs, Refused, "a run without a proof")
            proof = read_proof(bytes.fromhex(proofs.pop((level, number))))
            found += verify_run(proof, question, bytes.fromhex(run["root"]))
    must(not proofs, Refused, "a proof too many")
    return sorted(found)


def main(vectors):
    decided = {}
    for family in sorted(vectors.iterdir()):
        decide = globals()[f"decide_{family.name}"]
        for file in sorted(family.glob("*.json")):
            try:
                decide(json.loads(file.read_text()))
            except Exception as why:
                raise SystemExit(f"{file}: {why!r}") from why
            decided[family.name] = decided.get(family.name, 0) + 1
    print(json.dumps(decided))


main(pathlib.Path(sys.argv[1]))
