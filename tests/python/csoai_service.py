"""Serves the transparency service of the package csoai-scitt-ts, with a new key and an empty log in memory.

    csoai_service.py HOST PORT

Prints its URL as JSON, and serves until it is killed."""

import json
import sys
from http.server import HTTPServer

from csoai_scitt_ts.api import create_app
from csoai_scitt_ts.service import TransparencyService
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

host, port = sys.argv[1], int(sys.argv[2])
key = ed25519.Ed25519PrivateKey.generate().private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
server = HTTPServer((host, port), create_app(TransparencyService(":memory:", key), key))
print(json.dumps({"url": f"http://{host}:{server.server_port}"}), flush=True)
server.serve_forever()
