"""Reads the terms of the statements in vectors/search-terms again, by the table, without this project's code and without
packages.

    search_terms_vectors.py crates/search-terms/table.json vectors/search-terms     prints {"header": how many, …}

The table and the rules are described in docs/search-index.md, the members of a vector in vectors/README.md.
"""

import base64
import hashlib
import json
import math
import pathlib
import struct
import sys

UNREADABLE, TOO_MANY_TERMS = 2, 3
MAX_TERMS, MAX_VALUE, WHOLE_VALUE = 4096, 512, 444
MAX_DEPTH, MAX_ITEMS = 127, 1 << 20
MAX_EXACT = 2**53 - 1


class Unreadable(Exception):
    pass


def must(true):
    if not true:
        raise Unreadable


def hexdigest(data):
    return hashlib.sha256(data).hexdigest()


# --- CBOR ---------------------------------------------------------------------------------------------


class Map(list):
    """The members of a map, as pairs."""


class Tag:
    def __init__(self, number, content):
        self.number, self.content = number, content


class Simple:
    def __init__(self, number):
        self.number = number


BREAK = object()


def same_key(value):
    """A value that is equal for equal keys of a map only."""
    if isinstance(value, Map):
        return "map", frozenset((same_key(key), same_key(inner)) for key, inner in value)
    if isinstance(value, list):
        return "array", tuple(map(same_key, value))
    if isinstance(value, Tag):
        return "tag", value.number, same_key(value.content)
    if isinstance(value, Simple):
        return "simple", value.number
    return type(value).__name__, value


class Cbor:
    def __init__(self, data):
        self.data, self.at, self.items = data, 0, 0

    def take(self, count):
        must(self.at + count <= len(self.data))
        self.at += count
        return self.data[self.at - count : self.at]

    def whole(self):
        value = self.value(0)
        must(value is not BREAK and self.at == len(self.data))
        return value

    def value(self, depth):
        (initial,) = self.take(1)
        major, info = initial >> 5, initial & 31
        must(info < 28 or info == 31)
        if initial == 0xFF:
            return BREAK
        self.items += 1
        must(self.items <= MAX_ITEMS)
        argument = info if info < 24 else None
        if 24 <= info < 28:
            argument = int.from_bytes(self.take(1 << (info - 24)), "big")
        return self.of_major(major, info, argument, depth)

    def of_major(self, major, info, argument, depth):
        if major < 2:
            must(argument is not None)
            return argument if major == 0 else -1 - argument
        if major < 4:
            data = self.string(major, argument)
            return data if major == 2 else data.decode()
        if major == 7:
            return self.simple(info, argument)
        must(depth < MAX_DEPTH)
        if major == 4:
            return list(self.elements(argument, depth + 1))
        if major == 5:
            return self.members(argument, depth + 1)
        must(argument is not None)
        return Tag(argument, self.inner(depth + 1))

    def string(self, major, length):
        if length is not None:
            data = self.take(length)
            if major == 3:
                data.decode()
            return data
        chunks = []
        while True:
            (initial,) = self.take(1)
            if initial == 0xFF:
                return b"".join(chunks)
            info = initial & 31
            must(initial >> 5 == major and info < 28)
            length = info if info < 24 else int.from_bytes(self.take(1 << (info - 24)), "big")
            chunks.append(self.string(major, length))

    def inner(self, depth):
        value = self.value(depth)
        must(value is not BREAK)
        return value

    def elements(self, length, depth):
        count = 0
        while length is None or count < length:
            value = self.value(depth)
            if value is BREAK:
                must(length is None)
                return
            yield value
            count += 1

    def members(self, length, depth):
        flat = list(self.elements(None if length is None else 2 * length, depth))
        must(len(flat) % 2 == 0)
        members = Map(zip(flat[::2], flat[1::2]))
        must(len({same_key(key) for key, _ in members}) == len(members))
        return members

    def simple(self, info, argument):
        must(argument is not None)
        if info >= 25:
            data = self.data[self.at - (1 << (info - 24)) : self.at]
            return struct.unpack({25: ">e", 26: ">f", 27: ">d"}[info], data)[0]
        must(info != 24 or argument >= 32)
        return {20: False, 21: True, 22: None}[argument] if argument in (20, 21, 22) else Simple(argument)


def read_cbor(data):
    try:
        return Cbor(data).whole()
    except UnicodeDecodeError:
        raise Unreadable from None


# --- JSON ---------------------------------------------------------------------------------------------


def members(pairs):
    must(len({name for name, _ in pairs}) == len(pairs))
    must(not any(name.startswith("$serde_json::private::") for name, _ in pairs))
    return dict(pairs)


def integer(digits):
    # Python has no minus zero among its integers, and no bound.
    must(math.isfinite(float(digits)))
    return -0.0 if digits == "-0" else int(digits)


def real(digits):
    number = float(digits)
    must(math.isfinite(number))
    return number


def refuse_constant(_):
    raise Unreadable


def check(value, depth=0):
    """Checks what Python's parser leaves open: lone surrogates, and the depth."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, (dict, list)):
        must(depth < MAX_DEPTH)
        for inner in value.values() if isinstance(value, dict) else value:
            check(inner, depth + 1)
        if isinstance(value, dict):
            "".join(value).encode()


def read_json(data):
    try:
        value = json.loads(
            data.decode(),
            object_pairs_hook=members,
            parse_int=integer,
            parse_float=real,
            parse_constant=refuse_constant,
        )
        check(value)
        return value
    except (ValueError, RecursionError, OverflowError):
        raise Unreadable from None


def number_text(number):
    """A number within 2^53 as RFC 8785 writes it: ECMAScript's form."""
    if number == int(number):
        return str(int(number))
    mantissa, _, power = repr(number).partition("e")
    sign, mantissa = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
    whole, _, fraction = mantissa.partition(".")
    exponent = int(power or 0) + len(whole)
    digits = (whole + fraction).rstrip("0")
    exponent -= len(digits) - len(digits.lstrip("0"))
    digits = digits.lstrip("0")
    # The number is 0.DIGITS times ten to the power of the exponent.
    if -6 < exponent <= 0:
        return sign + "0." + "0" * -exponent + digits
    if 0 < exponent <= 21:
        return sign + digits[:exponent] + "." + digits[exponent:]
    return sign + digits[0] + ("." + digits[1:] if digits[1:] else "") + f"e{exponent - 1:+d}"


def canonical(value):
    """Canonical JSON (RFC 8785); None if a value has no exact form in JSON."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (int, float)):
        return number_text(value) if abs(value) <= MAX_EXACT else None
    if isinstance(value, Map):
        if not all(isinstance(name, str) for name, _ in value):
            return None
        value = dict(value)
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        parts = [(json.dumps(name, ensure_ascii=False), canonical(value[name])) for name in names]
        return None if any(part is None for _, part in parts) else "{" + ",".join(map(":".join, parts)) + "}"
    if isinstance(value, list):
        parts = [canonical(element) for element in value]
        return None if None in parts else "[" + ",".join(parts) + "]"
    return None


# --- forms --------------------------------------------------------------------------------------------


def is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def as_text(value, in_cbor):
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return "b64u:" + base64.urlsafe_b64encode(value).decode().rstrip("=")
    if is_integer(value) and (in_cbor or -(2**63) <= value < 2**64):
        return str(value)
    return None


def as_hex(value, _):
    return value.hex() if isinstance(value, bytes) else None


def as_digest(value, _):
    if isinstance(value, bytes):
        return f"sha256:{value.hex()}" if len(value) == 32 else None
    if not isinstance(value, str):
        return None
    digits = value.removeprefix("sha256:")
    is_hex = len(digits) == 64 and all(digit in "0123456789abcdef" for digit in digits)
    return f"sha256:{digits}" if is_hex else None


def as_json_digest(value, _):
    text = canonical(value)
    return None if text is None else f"sha256:{hexdigest(text.encode())}"


def as_content_digest(value, in_cbor):
    if isinstance(value, str):
        return f"sha256:{hexdigest(value.encode())}"
    if isinstance(value, bytes):
        return f"sha256:{hexdigest(value)}"
    return as_json_digest(value, in_cbor)


def as_thumbprint(value, in_cbor):
    kty = member(value, "kty")
    names = {"EC": ["crv", "kty", "x", "y"], "OKP": ["crv", "kty", "x"]}.get(kty if isinstance(kty, str) else "", [])
    required = {name: member(value, name) for name in names}
    is_key = required and all(isinstance(text, str) for text in required.values())
    return as_json_digest(required, in_cbor) if is_key else None


def as_array(names):
    def read(value, _):
        texts = [member(value, name) for name in names]
        return canonical(texts) if all(isinstance(text, str) for text in texts) else None

    return read


FORMS = {
    "text": as_text,
    "hex": as_hex,
    "digest": as_digest,
    "content-digest": as_content_digest,
    "json-digest": as_json_digest,
    "jwk-thumbprint": as_thumbprint,
}


def form_of(selector):
    form = selector.get("form", "text")
    return FORMS[form] if isinstance(form, str) else as_array(form["json-array"])


# --- places -------------------------------------------------------------------------------------------


def member(value, name):
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, Map):
        return next((inner for key, inner in value if isinstance(key, str) and key == name), None)
    return None


def has(value, name):
    if isinstance(value, dict):
        return name in value
    return isinstance(value, Map) and any(isinstance(key, str) and key == name for key, _ in value)


def along(path, value):
    """The values at a path, in the order of the document."""
    steps = path.split("/")[1:]
    found = [value]
    for step in steps:
        if step == "*":
            found = [inner for one in found if isinstance(one, list) and not isinstance(one, Map) for inner in one]
        else:
            found = [member(one, step) for one in found if has(one, step)]
    return found


def in_header(path, header):
    value = header
    for label in path.split("/")[1:]:
        found = [inner for key, inner in value if is_integer(key) and key == int(label)]
        if not found:
            return []
        value = found[0]
    return [value]


def is_like(patterns, value):
    return any(value.startswith(one[:-1]) if one.endswith("*") else value == one for one in patterns)


# --- statements ---------------------------------------------------------------------------------------


class Terms:
    def __init__(self, kinds):
        self.kinds, self.found, self.has_more = kinds, set(), False

    def add(self, kind, value):
        term = (self.kinds[kind], shortened(value))
        if term not in self.found and len(self.found) == MAX_TERMS:
            self.has_more = True
        if not self.has_more:
            self.found.add(term)

    def select(self, selector, values, in_cbor):
        for value in values:
            text = form_of(selector)(value, in_cbor)
            if text is not None and is_like(selector.get("only", ["*"]), text) and not is_like(selector.get("except", []), text):
                self.add(selector["kind"], text)

    def of_items(self, terms, items, in_cbor):
        for item in items:
            for selector in terms["terms"]:
                self.within(selector, item, in_cbor)
            if "nested" in terms:
                self.of_items(terms, along(terms["nested"], item), in_cbor)

    def within(self, selector, value, in_cbor):
        for name, texts in selector.get("when", {}).items():
            text = member(value, name)
            if not isinstance(text, str) or text not in texts:
                return
        self.select(selector, along(selector["at"], value), in_cbor)


def shortened(value):
    data = value.encode()
    if len(data) <= WHOLE_VALUE and b"\0" not in data:
        return value
    beginning = data[:MAX_VALUE].decode(errors="ignore").replace("\0", "\ufffd")
    beginning = beginning.encode()[: MAX_VALUE - 65].decode(errors="ignore")
    return f"{beginning}#{hexdigest(data)}"


def document(encoding, payload):
    """The root of a payload, and whether it is CBOR."""
    if encoding == "json-in-cbor":
        payload = read_cbor(payload)
        must(isinstance(payload, bytes))
    elif encoding == "json-or-cbor" and not payload.startswith(b"{"):
        root = read_cbor(payload)
        return (root.content if isinstance(root, Tag) else root), True
    return read_json(payload), False


def read_statement(table, statement, served):
    message = read_cbor(statement)
    protected, _, payload, _ = message.content
    header = dict((key, value) for key, value in read_cbor(protected))
    payload = served if payload is None else payload
    terms, blind = Terms(table["kinds"]), set()
    common = table["all_statements"]
    header_terms(terms, common["header"], header)
    if payload is not None and header.get(258, -16) == -16:
        digest = payload.hex() if 258 in header else hexdigest(payload)
        for kind in common["content_digest"]:
            terms.add(kind, f"sha256:{digest}")
    row, encoding = row_of(table, header.get(259) if 258 in header else header.get(3))
    header_terms(terms, row.get("header", []), header)
    if payload is None:
        blind.add(UNREADABLE)
    elif row and 258 not in header:
        try:
            payload_terms(terms, row, *document(encoding, payload))
        except Unreadable:
            blind.add(UNREADABLE)
    if terms.has_more:
        blind.add(TOO_MANY_TERMS)
    return terms.found, blind


def row_of(table, content_type):
    if isinstance(content_type, str):
        name = content_type.split(";")[0].strip(" \t")
        for row in table["content_types"]:
            for known, encoding in row["names"].items():
                if name.isascii() and name.lower() == known:
                    return row, encoding
    return {}, None


def header_terms(terms, selectors, header):
    for selector in selectors:
        terms.select(selector, in_header(selector["at"], Map(header.items())), True)


def payload_terms(terms, row, root, in_cbor):
    for selector in row.get("payload", []):
        terms.within(selector, root, in_cbor)
    for items in row.get("lists", []):
        terms.of_items(items, along(items["at"], root), in_cbor)


# --- vectors ------------------------------------------------------------------------------------------


def key_of(kind, value):
    return hashlib.sha256(b"tabellion/term/1" + bytes([kind]) + value.encode()).digest()[:16]


def decide(table, vector):
    served = vector["payload"]
    found, blind = read_statement(
        table, bytes.fromhex(vector["statement"]), None if served is None else bytes.fromhex(served)
    )
    assert sorted(blind) == vector["blind"], (sorted(blind), vector["blind"])
    if "terms" in vector:
        assert sorted(map(list, found)) == sorted(vector["terms"]), (found, vector["terms"])
    else:
        keys = sorted([key_of(*term) for term in found] + [bytes(15) + bytes([code]) for code in blind])
        assert hexdigest(b"".join(keys)) == vector["keys_sha256"]


def main(table, folder):
    table = json.loads(pathlib.Path(table).read_text())
    counts = {}
    for path in sorted(pathlib.Path(folder).glob("*/*.json")):
        try:
            decide(table, json.loads(path.read_text()))
        except Exception as error:
            raise AssertionError(f"{path}: {error!r}") from error
        counts[path.parent.name] = counts.get(path.parent.name, 0) + 1
    print(json.dumps(counts))


if __name__ == "__main__":
    main(*sys.argv[1:])
