"""The public Python SDK as a client, told what to do, and what it heard: to be the same through the gateway as without it.

    mcp_client.py MODE TARGET… < CALLS     prints the transcript as JSON

MODE is `auto`, `legacy` or a revision; TARGET a URL, or a command line for a server over its standard streams. CALLS is a JSON
list of [tool, arguments]; before them everything is listed and read that there is. Whatever the server asks, its user accepts.
"""

import asyncio
import json
import sys
import warnings

import mcp.types as types
from mcp import Client, StdioServerParameters

TIMEOUT = 60


class User:
    """Answers what a server asks, and remembers what it heard."""

    def __init__(self):
        self.heard = []

    async def elicit(self, ctx, params):
        self.heard.append(["elicitation", plain(params)])
        schema = plain(params).get("requestedSchema", {})
        content = {name: value.get("default", example(value)) for name, value in schema.get("properties", {}).items()}
        return types.ElicitResult(action="accept", content=content)

    async def sample(self, ctx, params):
        self.heard.append(["sampling", plain(params)])
        content = types.TextContent(type="text", text="a sample")
        return types.CreateMessageResult(role="assistant", content=content, model="none", stop_reason="endTurn")

    async def roots(self, ctx):
        self.heard.append(["roots", {}])
        return types.ListRootsResult(roots=[types.Root(uri="file:///nowhere", name="nowhere")])

    async def logged(self, params):
        self.heard.append(["log", plain(params)])

    async def progress(self, progress, total, message):
        self.heard.append(["progress", [progress, total, message]])


def example(schema):
    if "enum" in schema:
        return schema["enum"][0]
    if "oneOf" in schema:
        return schema["oneOf"][0]["const"]
    if schema.get("type") == "array":
        items = schema["items"]
        return [items["enum"][0] if "enum" in items else items["anyOf"][0]["const"]]
    return {"string": "words", "integer": 7, "number": 0.5, "boolean": True}.get(schema.get("type"), "words")


def plain(value):
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


async def tried(what):
    """A result, or the error in its place."""
    try:
        return plain(await what)
    except Exception as error:
        return {"failed": type(error).__name__, "words": str(error)}


async def transcript(client, user, calls):
    everything = {
        "protocol": client.protocol_version,
        "server": plain(client.server_info) if client.server_info else None,
        "capabilities": plain(client.server_capabilities),
        "tools": await tried(client.list_tools()),
        "resources": await tried(client.list_resources()),
        "templates": await tried(client.list_resource_templates()),
        "prompts": await tried(client.list_prompts()),
        "results": [],
    }
    for resource in everything["resources"].get("resources", [])[:3]:
        everything["results"].append(await tried(client.read_resource(resource["uri"])))
    for prompt in everything["prompts"].get("prompts", []):
        if not prompt.get("arguments"):
            everything["results"].append(await tried(client.get_prompt(prompt["name"])))
    for tool, arguments in calls:
        everything["results"].append(await tried(client.call_tool(tool, arguments, progress_callback=user.progress)))
    return {**everything, "heard": user.heard}


async def main(mode, target, calls):
    user = User()
    server = target[0] if "://" in target[0] else StdioServerParameters(command=target[0], args=target[1:])
    client = Client(
        server,
        mode=mode,
        read_timeout_seconds=TIMEOUT,
        log_level="debug",
        elicitation_callback=user.elicit,
        sampling_callback=user.sample,
        list_roots_callback=user.roots,
        logging_callback=user.logged,
    )
    async with client:
        print(json.dumps(await transcript(client, user, calls), sort_keys=True))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asyncio.run(main(sys.argv[1], sys.argv[2:], json.load(sys.stdin)))
