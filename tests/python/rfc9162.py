"""Merkle trees as RFC 9162 writes them (section 2.1), for the scripts about vectors. Nothing here is our code."""

import hashlib

EMPTY = hashlib.sha256(b"").digest()


def leaf(entry):
    return hashlib.sha256(b"\0" + entry).digest()


def node(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


def split(count):
    k = 1
    while k * 2 < count:
        k *= 2
    return k


def root(leaves):
    """MTH (2.1.1)."""
    if len(leaves) < 2:
        return leaves[0] if leaves else EMPTY
    k = split(len(leaves))
    return node(root(leaves[:k]), root(leaves[k:]))


def path(index, leaves):
    """PATH (2.1.3.1)."""
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if index < k:
        return path(index, leaves[:k]) + [root(leaves[k:])]
    return path(index - k, leaves[k:]) + [root(leaves[:k])]


def proof(m, leaves, whole=True):
    """PROOF and SUBPROOF (2.1.4.1)."""
    n = len(leaves)
    if m == n:
        return [] if whole else [root(leaves)]
    k = split(n)
    if m <= k:
        return proof(m, leaves[:k], whole) + [root(leaves[k:])]
    return proof(m - k, leaves[k:], False) + [root(leaves[:k])]


def implied_root(hashed, index, size, hashes):
    """The verification of an inclusion proof (2.1.3.2): the root that it leads to, or None."""
    if index >= size:
        return None
    fn, sn, r = index, size - 1, hashed
    for p in hashes:
        if sn == 0:
            return None
        if fn & 1 or fn == sn:
            r = node(p, r)
            while not fn & 1 and fn != 0:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = node(r, p)
        fn, sn = fn >> 1, sn >> 1
    return r if sn == 0 else None


def implied_roots(first, second, first_hash, hashes):
    """The verification of a consistency proof (2.1.4.2): the two roots that it leads to, or None."""
    if not hashes or first == 0 or first >= second:
        return None
    if first & (first - 1) == 0:
        hashes = [first_hash, *hashes]
    fn, sn = first - 1, second - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = hashes[0]
    for c in hashes[1:]:
        if sn == 0:
            return None
        if fn & 1 or fn == sn:
            fr, sr = node(c, fr), node(c, sr)
            while not fn & 1 and fn != 0:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = node(sr, c)
        fn, sn = fn >> 1, sn >> 1
    return (fr, sr) if sn == 0 else None
