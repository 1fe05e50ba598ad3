"""Generates a Python client from an OpenAPI description, and calls a running service with that client.

    openapi_client.py DESCRIPTION

Standard input has the calls, a JSON array: `operation` (tag and operation, `log.entries`), `base_url`, `arguments`, `headers`, and
`body`: `{"hex": …}` for bytes, or `{"model": …, "value": …}` for a JSON body, and `content_type` if the body's type has a parameter. The client is generated next to the description.
Prints JSON: what the generator could not make, and for each call the status, the body in hex, and the body as the client parsed it, if it
is JSON. `openapi_errors.py` validates descriptions."""

import importlib
import io
import json
import pathlib
import subprocess
import sys

# These types are bytes to the generator, which knows no other request bodies than JSON, forms and bytes.
BYTES = ["application/cose", "application/scitt-statement+cose", "application/cbor", "application/concise-problem-details+cbor",
         "text/plain", "multipart/mixed"]


def generate(description):
    """Generates the package `generated`, and returns what the generator could not make."""
    folder = description.parent
    config = folder / "config.json"
    # No hooks: the generator would format its code with tools that are not needed here.
    overrides = {name: "application/octet-stream" for name in BYTES}
    config.write_text(json.dumps({"post_hooks": [], "content_type_overrides": overrides}))
    generated = folder / "generated"
    made = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", "--path", description, "--meta", "none",
         "--output-path", generated, "--config", config],
        capture_output=True, text=True)
    if made.returncode != 0:
        sys.exit(made.stdout + made.stderr)
    for module in generated.glob("api/*/*.py"):
        complete_imports(module)
    sys.path.insert(0, str(folder))
    return [line for line in (made.stdout + made.stderr).splitlines() if line.startswith("WARNING")]


def complete_imports(module):
    """Adds an import that the generator forgets in a module whose operation has several kinds of body."""
    text = module.read_text()
    module.write_text(text.replace("from ...types import Response, UNSET\n", "from ...types import Response, UNSET, Unset\n"))


def import_all(folder):
    """Imports every module of the client, so that each must be Python."""
    for module in sorted(folder.glob("generated/api/*/*.py")):
        importlib.import_module(".".join(module.relative_to(folder).with_suffix("").parts))


def body_of(body):
    if "hex" in body:
        return importlib.import_module("generated.types").File(payload=io.BytesIO(bytes.fromhex(body["hex"])))
    return getattr(importlib.import_module("generated.models"), body["model"]).from_dict(body["value"])


def typed(content_type):
    """Options of a client that sends bodies of this type: a generated operation names the type without its parameters, such as the
    boundary of a multipart body."""
    def set_type(request):
        request.headers["Content-Type"] = content_type
    return {"event_hooks": {"request": [set_type]}} if content_type else {}


def answer_to(call):
    client = importlib.import_module("generated").Client(
        base_url=call["base_url"], headers=call.get("headers", {}), httpx_args=typed(call.get("content_type")))
    arguments = dict(call.get("arguments", {}))
    if "body" in call:
        arguments["body"] = body_of(call["body"])
    operation = importlib.import_module(f"generated.api.{call['operation']}")
    response = operation.sync_detailed(client=client, **arguments)
    parsed = response.parsed
    return {"status": int(response.status_code), "body": response.content.hex(),
            "parsed": parsed.to_dict() if hasattr(parsed, "to_dict") else None}


description = pathlib.Path(sys.argv[1])
warnings = generate(description)
import_all(description.parent)
print(json.dumps({"warnings": warnings, "answers": [answer_to(call) for call in json.load(sys.stdin)]}))
