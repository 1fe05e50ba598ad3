"""Proofs of possession (AgentROA) for the A2A clients of the tests."""

import base64
import hashlib
import json
import time
import uuid

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def canonical(value):
    """Canonical JSON (RFC 8785) of values without numbers that JavaScript writes in another way."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def proof(job, method, params):
    """The proof for one request: the agent of the job signs the chain, the method and its parameters."""
    seed = hashlib.sha256(job["agent"].encode()).hexdigest()[:32].encode()
    key = Ed25519PrivateKey.from_private_bytes(seed)
    claims = {
        "chain_digest": job["chain_digest"],
        "capability": f"mcp:{job['server_id']}.{method}",
        "input_hash": "sha256:" + hashlib.sha256(canonical(params)).hexdigest(),
        "jti": uuid.uuid4().hex,
        "iat": int(time.time()),
        "aud": job["audience"],
    }
    header = {"alg": "EdDSA", "kid": job["agent"], "typ": "roa-proof+jws"}
    signed = f"{base64url(canonical(header))}.{base64url(canonical(claims))}"
    return f"{signed}.{base64url(key.sign(signed.encode()))}"
