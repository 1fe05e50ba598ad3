"""Writes vectors/tlog/{note,checkpoint,vkey}: published examples, and each way in which one may not be what it seems.

    python tests/python/tlog_text_vectors.py vectors/tlog     prints {"files": how many}

The examples are those of the C2SP specifications and of Go's sumdb/note. Their secret keys are not ours, so their signatures
are constants, which are verified here with `cryptography`. Everything else is an edit of them, made without our code.
"""

import base64
import hashlib
import json
import pathlib
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

EXAMPLE = "This is an example message.\n"
FOO = "example.com/foo"
FOO_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
FOO_SIGNATURE = "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM="
GO = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
PETER_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PETER_SIGNATURE = "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
ENOCH_KEY = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
ENOCH_SIGNATURE = "rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ="
SUM_KEY = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8"
SOFA = "example.com/behind-the-sofa"
SOFA_ROOT = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="
# The order of the group of Ed25519.
ORDER = 2**252 + 27742317777372353535851937790883648493


def b64(data):
    return base64.b64encode(data).decode()


def raw(encoded):
    return base64.b64decode(encoded)


def line(name, signature, dash="\u2014"):
    return f"{dash} {name} {signature}\n"


def check_published():
    for text, key, signature in [
        (EXAMPLE, FOO_KEY, FOO_SIGNATURE),
        (GO, PETER_KEY, PETER_SIGNATURE),
        (GO, ENOCH_KEY, ENOCH_SIGNATURE),
    ]:
        public = Ed25519PublicKey.from_public_bytes(raw(key.split("+", 2)[2])[1:])
        public.verify(raw(signature)[4:], text.encode())


# A signature of nobody: a key id and 64 bytes.
NOBODY = b64(b"\0\0\0\1" + bytes(64))
FOO_LINE, PETER_LINE, ENOCH_LINE = (
    line(FOO, FOO_SIGNATURE),
    line("PeterNeumann", PETER_SIGNATURE),
    line("EnochRoot", ENOCH_SIGNATURE),
)
SPECIFICATION = EXAMPLE + "\n" + FOO_LINE


def foo(signature):
    return EXAMPLE + "\n" + line(FOO, signature)


def nobodies(count):
    return "".join(line(f"witness.example/{number}", NOBODY) for number in range(count))


def malleable(signature):
    """The same signature with S raised by the order of the group."""
    head, s = raw(signature)[:36], int.from_bytes(raw(signature)[36:], "little")
    return b64(head + (s + ORDER).to_bytes(32, "little"))


def notes():
    """Name, reason, note, known keys and signers."""
    two = GO + "\n" + PETER_LINE + ENOCH_LINE
    peter, enoch, both = [PETER_KEY], [ENOCH_KEY], [PETER_KEY, ENOCH_KEY]
    one = GO + "\n" + PETER_LINE
    yield "go-one-key", "The example of golang.org/x/mod/sumdb/note.", one, peter, ["PeterNeumann"]
    yield "go-two-keys", "The same, signed by two; both are known.", two, both, ["PeterNeumann", "EnochRoot"]
    yield "unknown-key-is-ignored", "Signed by two, of whom one is known.", two, enoch, ["EnochRoot"]
    bad = two.replace("SO3N", "SO3J")
    why = "One good signature does not make up for a bad one of a known key."
    yield "one-known-signature-is-bad", why, bad, both, None
    yield "base64url", "The other alphabet.", one.replace("/", "_"), peter, None
    yield "no-known-key", "Nobody known has signed.", SPECIFICATION, peter, None
    yield "no-keys", "No key is known.", SPECIFICATION, [], None
    for name, why, note in signed_by_foo():
        yield name, why, note, [FOO_KEY], [FOO]
    for name, why, note in not_signed_by_foo():
        yield name, why, note, [FOO_KEY], None


def signed_by_foo():
    text = EXAMPLE + "\n"
    yield "specification", "The example of the signed-note specification.", SPECIFICATION
    yield "same-signature-twice", "The same line again is harmless.", SPECIFICATION + FOO_LINE
    why = "A signature that shares the id with a known key, and not the name."
    yield "same-id-other-name-is-ignored", why, text + line("example.com/bar", FOO_SIGNATURE) + FOO_LINE
    why = "A signature that shares the name with a known key, and not the id."
    yield "same-name-other-id-is-ignored", why, text + line(FOO, NOBODY) + FOO_LINE
    yield "seventeen-signatures", "Sixteen signatures at least must be read.", text + nobodies(16) + FOO_LINE
    why = "A long signature of a key that nobody here knows."
    long = b64(b"\1\2\3\4" + bytes(2420))
    yield "unknown-signature-type-is-ignored", why, SPECIFICATION + line("example.com/pq", long)


def not_signed_by_foo():
    yield from other_texts()
    yield from other_lines()
    yield from other_encodings()


def other_texts():
    yield "changed-text", "One letter of the text is another.", SPECIFICATION.replace("This", "this")
    yield "empty", "Nothing.", ""
    yield "newlines-only", "Nothing but newlines.", "\n\n\n"
    yield "no-empty-line", "Text and signatures are separated.", EXAMPLE + FOO_LINE
    yield "no-signatures", "No signatures.", EXAMPLE + "\n"
    yield "no-final-newline", "Every line ends.", SPECIFICATION[:-1]
    yield "carriage-returns", "Line ends are newlines only.", SPECIFICATION.replace("\n", "\r\n")
    yield "nul-in-text", "No control characters.", "a\0b\n\n" + FOO_LINE
    yield "tab-in-text", "No control characters.", "a\tb\n\n" + FOO_LINE
    yield "too-long", "A limit must be somewhere; here it is 256 KiB.", "a" * (256 << 10) + "\n\n" + FOO_LINE
    yield "empty-line-at-the-end", "No signatures follow the last empty line.", SPECIFICATION + "\n"
    why = "What stands before the last empty line is text."
    yield "empty-line-among-signatures", why, SPECIFICATION + "\n" + ENOCH_LINE


def other_lines():
    text, dash = EXAMPLE + "\n", "A signature line starts with an em dash."
    yield "en-dash-for-em-dash", dash, text + line(FOO, FOO_SIGNATURE, "\u2013")
    yield "hyphen-for-em-dash", dash, text + line(FOO, FOO_SIGNATURE, "-")
    yield "no-name", "A key has a name.", text + line("", FOO_SIGNATURE)
    yield "two-spaces", "One space separates.", text + line(FOO, " " + FOO_SIGNATURE)
    yield "something-after-the-signature", "A line has three parts.", foo(FOO_SIGNATURE + " more")
    yield "not-a-signature-line", "Something else among the signatures.", SPECIFICATION + "signed, me\n"
    yield "plus-in-name", "Names have no plus.", SPECIFICATION + line("a+b", NOBODY)
    why = "Names have no spaces, of whatever kind."
    yield "no-break-space-in-name", why, SPECIFICATION + line("a\u00a0b", NOBODY)
    yield "empty-signature", "No signature at all.", SPECIFICATION + line("example.com/x", "")
    yield "id-only", "Nothing follows the key id.", SPECIFICATION + line("example.com/x", b64(b"abcd"))
    yield "too-many-signatures", "A limit must be somewhere; here it is 64.", text + TOO_MANY + FOO_LINE
    why = "The id of a known key under another name."
    yield "only-the-id-is-known", why, text + line("example.com/bar", FOO_SIGNATURE)
    yield "only-the-name-is-known", "The name of a known key with another id.", foo(NOBODY)


TOO_MANY = nobodies(16) * 4


def other_encodings():
    whole = raw(FOO_SIGNATURE)
    changed = FOO_SIGNATURE.replace("Ztg1E", "ZtgxE")
    yield "changed-signature", "One bit of the signature is wrong.", foo(changed)
    why = "Both are that key's, so it is not to be believed."
    yield "a-good-and-a-bad-signature-of-one-key", why, SPECIFICATION + line(FOO, changed)
    why = "The same signature with S raised by the order of the group."
    yield "malleable-signature", why, foo(malleable(FOO_SIGNATURE))
    yield "long-signature", "A byte too many at the end of the signature.", foo(b64(whole + b"\0"))
    yield "short-signature", "A byte is missing at the end of the signature.", foo(b64(whole[:-1]))
    why = "Bits that stand for nothing: a second text for one signature."
    yield "base64-with-trailing-bits", why, foo(FOO_SIGNATURE.replace("aQM=", "aQN="))
    yield "base64-without-padding", "Padding is part of the encoding.", foo(FOO_SIGNATURE.rstrip("="))
    why = "Padding ends a base64 text: decoders that read on give one note two spellings."
    yield "two-encodings-in-a-row", why, foo(b64(whole[:-1]) + b64(whole[-1:]))


def checkpoint(size="5", root=SOFA_ROOT, origin=SOFA, more=""):
    return f"{origin}\n{size}\n{root}\n{more}"


def checkpoints():
    empty = b64(hashlib.sha256(b"").digest())
    yield "specification", "The example of the tlog-checkpoint specification.", checkpoint("20852163"), True
    yield "empty-tree", "The tree without leaves.", checkpoint("0", empty), True
    yield "largest-size", "The largest size.", checkpoint(str(2**64 - 1)), True
    why = "The specification advises against it, and demands that it be read."
    yield "origin-with-spaces-and-plus", why, checkpoint("1", origin="My log + friends"), True
    why = "Lines that mean something to the log only."
    yield "extension-lines", why, checkpoint("20852163", more='timestamp 1\n{"a": 1}\n'), True
    for name, why, text in [*other_sizes(empty), *other_roots(), *other_forms()]:
        yield name, why, text, False


def other_sizes(empty):
    once, none = "One size has one text.", "No size."
    yield "leading-zero", once, checkpoint("05")
    yield "double-zero", once, checkpoint("00", empty)
    yield "plus-sign", once, checkpoint("+5")
    yield "negative", none, checkpoint("-1")
    yield "hexadecimal", none, checkpoint("0x5")
    yield "no-size", none, checkpoint("")
    yield "space-before-size", none, checkpoint(" 5")
    yield "size-too-large", "2^64.", checkpoint(str(2**64))


def other_roots():
    yield "empty-tree-with-some-root", "The tree without leaves has one root only.", checkpoint("0")
    why = "The root of the empty tree is a hash, not zeros."
    yield "empty-tree-with-zero-root", why, checkpoint("0", b64(bytes(32)))
    yield "long-root", "33 bytes.", checkpoint(root=b64(bytes(33)))
    yield "short-root", "31 bytes.", checkpoint(root=b64(bytes(31)))
    yield "root-in-base64url", "The other alphabet.", checkpoint(root=SOFA_ROOT.replace("/", "_"))
    yield "root-in-hex", "Not base64 of 32 bytes.", checkpoint(root=raw(SOFA_ROOT).hex())
    yield "root-with-trailing-bits", "Bits that stand for nothing.", checkpoint(root=SOFA_ROOT.replace("I=", "J="))
    yield "root-without-padding", "Padding is part of the encoding.", checkpoint(root=SOFA_ROOT.rstrip("="))


def other_forms():
    yield "empty", "Nothing.", ""
    yield "one-line", "All but the origin is missing.", f"{SOFA}\n"
    yield "two-lines", "The root is missing.", f"{SOFA}\n5\n"
    yield "no-origin", "The first line is empty.", checkpoint(origin="")
    yield "no-final-newline", "Every line ends.", checkpoint()[:-1]
    yield "carriage-returns", "Line ends are newlines only.", checkpoint().replace("\n", "\r\n")
    yield "empty-extension-line", "Extension lines are not empty.", checkpoint(more="\nx\n")
    yield "empty-last-line", "Extension lines are not empty.", checkpoint(more="\n")


def vkey(typed, name=FOO):
    """A key with the id that its name and content have."""
    identifier = hashlib.sha256(name.encode() + b"\n" + typed).hexdigest()[:8]
    return f"{name}+{identifier}+{b64(typed)}"


FOO_TYPED = raw(FOO_KEY.split("+", 2)[2])


def keys():
    yield "specification", "The key of the signed-note specification.", FOO_KEY, True
    yield "go", "A key of golang.org/x/mod/sumdb/note.", PETER_KEY, True
    yield "pluses-in-base64", "The key of sum.golang.org: only the first two pluses separate.", SUM_KEY, True
    why = "A witness's key (tlog-cosignature): its signatures have a time."
    yield "cosignature", why, vkey(b"\4" + FOO_TYPED[1:]), True
    for name, why, text in [*other_key_texts(), *other_keys()]:
        yield name, why, text, False


def other_key_texts():
    once, digits = "One key has one text.", "Eight digits."
    yield "empty", "Nothing.", ""
    yield "one-part", "Two parts are missing.", FOO
    yield "two-parts", "A part is missing.", FOO_KEY.rsplit("+", 1)[0]
    yield "nothing-in-base64", "Not even the type.", FOO_KEY.rsplit("+", 1)[0] + "+"
    yield "no-name", "A key has a name.", FOO_KEY.removeprefix(FOO)
    yield "other-name", "The id covers the name.", FOO_KEY.replace("foo", "bar")
    yield "wrong-id", "The id is that of another key.", FOO_KEY.replace("530d903a", "530d903b")
    yield "uppercase-id", once, FOO_KEY.replace("530d903a", "530D903A")
    yield "newline-at-the-end", once, FOO_KEY + "\n"
    yield "short-id", digits, SUM_KEY.replace("+033d", "+33d")
    yield "signed-id", digits, SUM_KEY.replace("+033d", "++33d")
    yield "newline-in-name", "Names have no newlines.", vkey(FOO_TYPED, "a\nb")
    yield "space-in-name", "Names have no spaces.", vkey(FOO_TYPED, "a b")


def other_keys():
    long = vkey(FOO_TYPED + b"\0")
    yield "long-key", "33 bytes.", long
    yield "base64-without-padding", "Padding is part of the encoding.", long.rstrip("=")
    yield "short-key", "31 bytes.", vkey(FOO_TYPED[:-1])
    yield "no-key", "The type alone.", vkey(b"\1")
    yield "ecdsa", "A type that is not supported.", vkey(b"\2" + FOO_TYPED[1:])
    why = "A post-quantum cosigner (ML-DSA-44): its lines are carried along, its key is not used."
    yield "ml-dsa-cosignature", why, vkey(b"\6" + bytes(1312))
    why = "For the neutral element, anybody can make signatures."
    yield "identity-point", why, vkey(b"\1\1" + bytes(31))
    why = "For a point of small order, anybody can make signatures."
    yield "small-order-point", why, vkey(b"\1" + bytes(32))
    yield "not-on-the-curve", "Not a point.", vkey(b"\1\2" + bytes(31))


def note_case(why, note, known, signers):
    return {"why": why, "note": note, "keys": known, "signed_by": signers}


def checkpoint_case(why, text, is_sound):
    origin, size, root, *more = text.split("\n")[:-1] if is_sound else [None] * 3
    root, extensions = (raw(root).hex(), more) if is_sound else (None, None)
    return {"why": why, "text": text, "origin": origin, "size": size, "root": root, "extensions": extensions}


def key_case(why, text, is_sound):
    name, identifier = text.split("+")[:2] if is_sound else (None, None)
    return {"why": why, "vkey": text, "name": name, "id": identifier}


def cases():
    for name, why, note, known, signers in notes():
        yield "note", name, signers is not None, note_case(why, note, known, signers)
    for name, why, text, is_sound in checkpoints():
        yield "checkpoint", name, is_sound, checkpoint_case(why, text, is_sound)
    for name, why, text, is_sound in keys():
        yield "vkey", name, is_sound, key_case(why, text, is_sound)


def main(out):
    check_published()
    files = 0
    for kind, name, is_sound, case in cases():
        folder = out / kind / ("" if is_sound else "refused")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(case, indent=2) + "\n")
        files += 1
    print(json.dumps({"files": files}))


main(pathlib.Path(sys.argv[1]))
