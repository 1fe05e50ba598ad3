"""A log kept with aics-tlog, witnessed through the client of aics-witness.

  aics_log.py keys FILE                  makes the log's key, prints its vkey
  aics_log.py witnessed URL VKEY FILE    lets the log grow, has each head cosigned at URL, then shows another history
"""

import json
import pathlib
import sys

from aics_tlog import (
    Checkpoint,
    IncrementalTileWriter,
    MemoryTileStore,
    consistency_proof_from_tiles,
    format_vkey,
    parse_vkey,
    sign_checkpoint,
    vkey_from_ed25519,
)
from aics_witness.feeder import WitnessClient, WitnessRejected
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ORIGIN = "aics.example/log"
# Over the edges of a tile, and to the same size again.
SIZES = [1, 2, 255, 256, 257, 300, 300, 600]


def keys(file):
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pathlib.Path(file).write_bytes(pem)
    return {"vkey": format_vkey(vkey_from_ed25519(ORIGIN, key.public_key()))}


class Log:
    def __init__(self, key):
        self.key = key
        self.tiles = MemoryTileStore()
        self.writer = IncrementalTileWriter(self.tiles)

    def grow(self, size, entry="entry"):
        self.writer.append(f"{entry} {index}".encode() for index in range(self.writer.size, size))

    def note(self):
        head = Checkpoint(ORIGIN, self.writer.size, self.writer.root())
        return sign_checkpoint(head, self.key, ORIGIN).to_bytes()

    def proof(self, old, new):
        return consistency_proof_from_tiles(self.tiles, old, new)


def witnessed(url, vkey, file):
    key = serialization.load_pem_private_key(pathlib.Path(file).read_bytes(), None)
    log, cosigned = Log(key), 0
    with WitnessClient(url, parse_vkey(vkey)) as client:
        for size in SIZES:
            log.grow(size)
            # The client verifies the cosignature, with the witness's key.
            cosigned += len(client.submit(log.note(), log.proof).splitlines())
        other = Log(key)
        other.grow(700, "another entry")
        try:
            client.submit(other.note(), other.proof)
            refused = None
        except WitnessRejected as refusal:
            refused = refusal.status
    return {"heads": len(SIZES), "cosigned": cosigned, "refused": refused}


if __name__ == "__main__":
    print(json.dumps({"keys": keys, "witnessed": witnessed}[sys.argv[1]](*sys.argv[2:])))
