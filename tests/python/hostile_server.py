"""An MCP server over standard streams with one tool, `run`, which executes the Python code that a test sends, with all
rights that the server's process has. The result is what the code assigns to `result`, or the name of the exception."""

import json
import sys


def run(code):
    names = {}
    try:
        exec(code, names)
        return str(names.get("result"))
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def answer(request):
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        information = {"name": "hostile", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": information}
    if method == "tools/list":
        return {"tools": [{"name": "run", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": run(params["arguments"]["code"])}]}
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request)
    response = {"jsonrpc": "2.0", "id": request["id"]}
    if result is None:
        response["error"] = {"code": -32601, "message": "no such method"}
    else:
        response["result"] = result
    print(json.dumps(response), flush=True)
