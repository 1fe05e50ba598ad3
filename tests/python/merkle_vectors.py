"""Writes vectors/merkle: sound proofs over the eight classic leaves, and each of them damaged, made without our code.

    python tests/python/merkle_vectors.py vectors/merkle     prints {"files": how many}

The algorithms of RFC 9162 decide whether a damaged proof is valid.
"""

import json
import pathlib
import sys

import rfc9162

ENTRIES = [
    bytes.fromhex(entry)
    for entry in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
LEAVES = [rfc9162.leaf(entry) for entry in ENTRIES]
# Proofs of these leaves of these trees, and between these sizes.
INCLUSION = [(0, 1), (0, 2), (2, 3), (1, 5), (4, 5), (3, 7), (6, 7), (0, 8), (5, 8)]
CONSISTENCY = [(1, 2), (1, 8), (2, 5), (3, 7), (4, 7), (6, 7), (6, 8), (7, 8), (8, 8)]

AS_MADE = "The proof as it is made."
WRONG_NUMBERS = "The numbers are not those the proof was made for."
WRONG_SIZES = "The sizes are not those the proof was made for."
STILL_VALID = (
    "Other {0} than the proof was made for, and it verifies: a proof does not authenticate the {0} that come with it."
)


def inclusion(why, index, size, leaf, root, path):
    return {
        "why": why,
        "valid": rfc9162.implied_root(leaf, index, size, path) == root,
        "leaf_index": index,
        "tree_size": size,
        "leaf_hash": leaf.hex(),
        "root": root.hex(),
        "path": [hash.hex() for hash in path],
    }


def consistency(why, sizes, roots, path):
    if sizes[0] == sizes[1] > 0:
        # Equal sizes are outside the RFC's algorithm: equal roots and no path is all there can be.
        valid = not path and roots[0] == roots[1]
    else:
        valid = rfc9162.implied_roots(*sizes, roots[0], path) == tuple(roots)
    return {
        "why": why,
        "valid": valid,
        "older_size": sizes[0],
        "newer_size": sizes[1],
        "older_root": roots[0].hex(),
        "newer_root": roots[1].hex(),
        "path": [hash.hex() for hash in path],
    }


def explained(make, wrong, noun):
    """The reason for a proof with other numbers, which may verify all the same."""
    case = make(wrong)
    return make(STILL_VALID.format(noun)) if case["valid"] else case


def damaged_inclusions(index, size):
    leaf, root, path = LEAVES[index], rfc9162.root(LEAVES[:size]), rfc9162.path(index, LEAVES[:size])
    yield "sound", inclusion(AS_MADE, index, size, leaf, root, path)
    numbers = {
        "index-minus-1": (index - 1, size),
        "index-plus-1": (index + 1, size),
        "index-plus-2": (index + 2, size),
        "index-doubled": (index * 2, size),
        "size-minus-1": (index, size - 1),
        "size-plus-1": (index, size + 1),
        "size-doubled": (index, size * 2),
        "size-halved": (index, size // 2),
        "size-0": (index, 0),
    }
    for name, (i, n) in numbers.items():
        if i >= 0 and (i, n) != (index, size):
            yield name, explained(lambda why, i=i, n=n: inclusion(why, i, n, leaf, root, path), WRONG_NUMBERS, "numbers")
    other = rfc9162.leaf(b"another entry")
    yield "other-leaf", inclusion("The leaf is not in the tree.", index, size, other, root, path)
    yield "other-root", inclusion("The root is of another tree.", index, size, leaf, other, path)
    yield "empty-root", inclusion("The root is of the empty tree.", index, size, leaf, rfc9162.EMPTY, path)
    for name, why, damaged in damaged_paths(path, root):
        yield name, inclusion(why, index, size, leaf, root, damaged)


def damaged_consistencies(older, newer):
    roots = first, second = rfc9162.root(LEAVES[:older]), rfc9162.root(LEAVES[:newer])
    path = rfc9162.proof(older, LEAVES[:newer])
    yield "sound", consistency(AS_MADE, (older, newer), roots, path)
    sizes = {
        "sizes-swapped": (newer, older),
        "older-minus-1": (older - 1, newer),
        "older-plus-1": (older + 1, newer),
        "older-doubled": (older * 2, newer),
        "older-0": (0, newer),
        "newer-minus-1": (older, newer - 1),
        "newer-plus-1": (older, newer + 1),
        "newer-doubled": (older, newer * 2),
        "newer-is-older": (older, older),
        "both-0": (0, 0),
    }
    for name, wrong in sizes.items():
        if wrong != (older, newer):
            yield name, explained(lambda why, wrong=wrong: consistency(why, wrong, roots, path), WRONG_SIZES, "sizes")
    other = rfc9162.leaf(b"another entry")
    wrong_roots = {
        "roots-swapped": ("The roots are in the wrong order.", (second, first)),
        "other-older-root": ("The older tree is another one.", (other, second)),
        "other-newer-root": ("The newer tree is another one.", (first, other)),
        "older-root-twice": ("The newer tree is said to be the older one.", (first, first)),
        "newer-root-twice": ("The older tree is said to be the newer one.", (second, second)),
    }
    for name, (why, wrong) in wrong_roots.items():
        if wrong != roots:
            yield name, consistency(why, (older, newer), wrong, path)
    for name, why, damaged in damaged_paths(path, first):
        yield name, consistency(why, (older, newer), roots, damaged)


def damaged_paths(path, root):
    """The path with one thing wrong. `root` is what a careless implementation may compare with."""
    extra = rfc9162.leaf(b"extra")
    yield "trailing-hash", "A hash too many at the end.", [*path, extra]
    yield "trailing-root", "The root follows the path.", [*path, root]
    yield "leading-hash", "A hash too many at the start.", [extra, *path]
    yield "leading-root", "The root stands before the path.", [root, *path]
    yield "much-too-long", "More hashes than any tree has levels.", [extra] * 70
    if len(path) > 1:
        yield "reversed", "The path is in the wrong order.", path[::-1]
        yield "last-hash-twice", "The last hash stands there twice.", [*path, path[-1]]
        yield "first-hash-twice", "The first hash stands there twice.", [path[0], *path]
    if path:
        yield "no-path", "The path is missing.", []
        yield "truncated", "The last hash is missing.", path[:-1]
        yield "first-missing", "The first hash is missing.", path[1:]
        yield "first-hash-changed", "One bit of a hash is wrong.", [flipped(path[0]), *path[1:]]
        yield "last-hash-changed", "One bit of a hash is wrong.", [*path[:-1], flipped(path[-1])]


def flipped(hash):
    return hash[:-1] + bytes([hash[-1] ^ 1])


def impossible():
    leaf, one = LEAVES[0], rfc9162.root(LEAVES[:1])
    why = "The empty tree has no leaf."
    yield "inclusion/empty-tree/empty-path", inclusion(why, 0, 0, leaf, rfc9162.EMPTY, [])
    yield "inclusion/empty-tree/root-is-the-leaf", inclusion(why, 0, 0, leaf, leaf, [])
    why = (
        "A node passed off as a leaf of a smaller tree. The hashes are right, so it verifies: whoever checks must "
        "compute the leaf hash from the entry."
    )
    inner, four = rfc9162.node(*LEAVES[:2]), LEAVES[:4]
    yield "inclusion/node-as-leaf/given-as-hash", inclusion(
        why, 0, 2, inner, rfc9162.root(four), rfc9162.path(0, four)[1:]
    )
    nothing, smaller = "Nothing can be proven about the empty tree.", "A tree cannot become smaller."
    for why, sizes, roots in [
        (nothing, (0, 0), (rfc9162.EMPTY, rfc9162.EMPTY)),
        (nothing, (0, 1), (rfc9162.EMPTY, one)),
        (smaller, (1, 0), (one, rfc9162.EMPTY)),
    ]:
        folder = f"consistency/{sizes[0]}-to-{sizes[1]}"
        yield f"{folder}/empty-path", consistency(why, sizes, roots, [])
        yield f"{folder}/some-path", consistency(why, sizes, roots, [one])


def roots():
    for size in range(len(ENTRIES) + 1):
        why = f"The root of the first {size} classic entries."
        entries = [entry.hex() for entry in ENTRIES[:size]]
        yield f"roots/{size}", {"why": why, "entries": entries, "root": rfc9162.root(LEAVES[:size]).hex()}


def cases():
    for index, size in INCLUSION:
        for name, case in damaged_inclusions(index, size):
            yield f"inclusion/{index}-of-{size}/{name}", case
    for older, newer in CONSISTENCY:
        for name, case in damaged_consistencies(older, newer):
            yield f"consistency/{older}-to-{newer}/{name}", case
    yield from impossible()
    yield from roots()


def main(out):
    written = dict(cases())
    for name, case in written.items():
        file = out / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(case, indent=2) + "\n")
    print(json.dumps({"files": len(written)}))


main(pathlib.Path(sys.argv[1]))
