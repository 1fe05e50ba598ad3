"""Calls a tool of an MCP server through a gateway, in a VAP session.

    gateway.py URL [AGENT_KEY]     of the gateway; the key is a PKCS#8 block in PEM, default agent.pem
"""

import asyncio
import json
import sys
import urllib.request
from pathlib import Path

import mcp

import tabellion
from tabellion.mcp import VapClient

url, *key_file = sys.argv[1:]
with urllib.request.urlopen(url.removesuffix("/mcp") + "/.well-known/jwks.json") as answer:
    gateway_key = json.dumps(json.load(answer)["keys"][0])
key = tabellion.load_key(Path(*key_file or ["agent.pem"]).read_text())


async def main():
    with tabellion.session(
        goal="convert times for a meeting",
        tools=["convert_time"],
        budget={"max_calls": 1},
        key=key,
        agent="did:example:a",
        save_as="session.cose",
    ) as session:
        async with mcp.Client(url) as client:
            vap = VapClient(client, session, gateway_key=gateway_key)
            await vap.commit()
            arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
            result = await vap.call_tool("convert_time", arguments, rationale="the meeting is at noon UTC")
            assert not result.is_error, result
            verdict = result.meta["vap"]
            assert verdict["verdict"] == "served", verdict
    print(verdict["audit_ref"])


asyncio.run(main())
