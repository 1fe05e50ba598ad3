"""Validates an OpenAPI description, generates a Python client from it, and reads from a running service with that client.

    openapi_client.py DESCRIPTION BASE_URL ENTRY_ID

The client is generated beside the description. Prints JSON: the validator's errors, what the generator could not make, and what
the service answered. Registration is not tried: of an operation with several kinds of body this generator makes a module that
cannot be imported."""

import importlib
import json
import pathlib
import subprocess
import sys

from openapi_spec_validator import OpenAPIV31SpecValidator

description, base_url, entry_id = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
folder = description.parent

errors = [str(error)[:300] for error in OpenAPIV31SpecValidator(json.loads(description.read_text())).iter_errors()]

# The generator is told which types are bytes, and not to format its code with tools that are not needed here.
config = folder / "config.json"
binary = ["cose", "scitt-statement+cose", "cbor", "concise-problem-details+cbor"]
overrides = {f"application/{name}": "application/octet-stream" for name in binary}
config.write_text(json.dumps({"post_hooks": [], "content_type_overrides": overrides}))
generated = subprocess.run(
    [sys.executable, "-m", "openapi_python_client", "generate", "--path", description, "--meta", "none",
     "--output-path", folder / "generated", "--config", config],
    capture_output=True, text=True)
if generated.returncode != 0:
    sys.exit(generated.stdout + generated.stderr)
warnings = [line for line in (generated.stdout + generated.stderr).splitlines() if line.startswith("WARNING")]

sys.path.insert(0, str(folder))
client = importlib.import_module("generated").Client(base_url=base_url)


def operation(name):
    return importlib.import_module(f"generated.api.{name}")


receipt = operation("scrapi.resolve").sync(client=client, entry_id=entry_id)
search = operation("log.entries").sync(client=client, limit=10)
proof = operation("log.inclusion").sync(client=client, index=1)
print(json.dumps({
    "errors": errors,
    "warnings": warnings,
    "receipt": receipt.payload.read().hex(),
    "entries": [entry.entry_id for entry in search.entries],
    "proven": proof.entry_id,
}))
