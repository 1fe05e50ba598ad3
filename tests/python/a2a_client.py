"""The public Python SDK for A2A as a client that presents an AgentROA chain with each request.

    a2a_client.py < JOB     prints a JSON list: for each step its results, or its error

JOB has `url` (of the endpoint), `server_id`, `audience`, `agent` (who signs the proofs), `chain`, `chain_digest`, and
`steps`: ["send", TEXT], ["stream", TEXT], ["get"] and ["cancel"] (of the last task).
"""

import asyncio
import json
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientCallInterceptor
from a2a.client.errors import A2AClientJSONRPCError
from a2a.client.transports.jsonrpc import JsonRpcTransport
from a2a.types import Message, MessageSendParams, Part, Role, Task, TaskIdParams, TaskQueryParams, TextPart
from agentroa_proof import proof

EXTENSION = "https://tabellion.dev/a2a/agentroa/v1"


class AgentRoa(ClientCallInterceptor):
    """Adds the chain and a proof for this one request to its metadata."""

    def __init__(self, job):
        self.job = job

    async def intercept(self, method_name, request_payload, http_kwargs, agent_card, context):
        params = request_payload["params"]
        members = {f"{EXTENSION}/roa": self.job["chain"], f"{EXTENSION}/roa-proof": proof(self.job, method_name, params)}
        params["metadata"] = params.get("metadata", {}) | members
        return request_payload, http_kwargs


def plain(value):
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


def message(text):
    part = Part(root=TextPart(text=text))
    return MessageSendParams(message=Message(role=Role.user, message_id=uuid.uuid4().hex, parts=[part]))


async def take(transport, step, task_id):
    match step:
        case ["send", text]:
            return [plain(await transport.send_message(message(text)))]
        case ["stream", text]:
            return [plain(event) async for event in transport.send_message_streaming(message(text))]
        case ["get"]:
            return [plain(await transport.get_task(TaskQueryParams(id=task_id)))]
        case ["cancel"]:
            return [plain(await transport.cancel_task(TaskIdParams(id=task_id)))]


async def main(job):
    done, task_id = [], None
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, job["url"]).get_agent_card()
        transport = JsonRpcTransport(http, card, interceptors=[AgentRoa(job)], extensions=[EXTENSION])
        for step in job["steps"]:
            try:
                results = await take(transport, step, task_id)
            except A2AClientJSONRPCError as error:
                done.append({"error": plain(error.error)})
                continue
            task_id = next((result["id"] for result in results if result["kind"] == "task"), task_id)
            done.append({"results": results})
    return {"card": plain(card), "steps": done}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(json.load(sys.stdin)))))
