"""The public Python SDK for A2A 1.0 as a client that presents an AgentROA chain with each request.

    a2a_1_client.py < JOB     prints a JSON object: `card`, and `steps` with the results of each step, or its error

JOB has `url` (of the endpoint), `server_id`, `audience`, `agent` (who signs the proofs), `chain`, `chain_digest`, and
`steps`: ["send", TEXT], ["stream", TEXT], ["get"], ["list"], ["cancel"] and ["notify"] (of the last task), ["get", ID].
Each step also has `receipts`: the values of the header AgentROA-Receipt.
"""

import asyncio
import base64
import json
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientCallContext, ClientCallInterceptor, ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import A2AError
from agentroa_proof import proof
from google.protobuf.json_format import MessageToDict

EXTENSION = "https://tabellion.dev/a2a/agentroa/v1"
# The SDK's name of each method, and the protocol's.
METHODS = {
    "send_message": "SendMessage",
    "send_message_streaming": "SendStreamingMessage",
    "get_task": "GetTask",
    "list_tasks": "ListTasks",
    "cancel_task": "CancelTask",
    "create_task_push_notification_config": "CreateTaskPushNotificationConfig",
}


class AgentRoa(ClientCallInterceptor):
    """Adds the chain and a proof for this one request: to its metadata, or to the headers if it has none."""

    def __init__(self, job):
        self.job = job

    async def before(self, args):
        request = args.input
        made = proof(self.job, METHODS[args.method], MessageToDict(request))
        chain = json.dumps(self.job["chain"])
        args.context = args.context or ClientCallContext()
        headers = {"A2A-Extensions": EXTENSION}
        if "metadata" in request.DESCRIPTOR.fields_by_name:
            # A string: numbers in a protobuf Struct become floating point.
            request.metadata.update({f"{EXTENSION}/roa": chain, f"{EXTENSION}/roa-proof": made})
        else:
            coded = base64.urlsafe_b64encode(chain.encode()).rstrip(b"=").decode()
            headers |= {"AgentROA": coded, "AgentROA-Proof": made}
        args.context.service_parameters = (args.context.service_parameters or {}) | headers

    async def after(self, args):
        pass


def message(text):
    return SendMessageRequest(
        message=Message(role=Role.ROLE_USER, message_id=uuid.uuid4().hex, parts=[Part(text=text)])
    )


async def take(clients, step, task_id):
    whole, streaming = clients
    match step:
        case ["send", text]:
            return [event async for event in whole.send_message(message(text))]
        case ["stream", text]:
            return [event async for event in streaming.send_message(message(text))]
        case ["get", *other]:
            return [await whole.get_task(GetTaskRequest(id=other[0] if other else task_id))]
        case ["list"]:
            return [await whole.list_tasks(ListTasksRequest())]
        case ["cancel"]:
            return [await whole.cancel_task(CancelTaskRequest(id=task_id))]
        case ["notify"]:
            config = TaskPushNotificationConfig(task_id=task_id, url="http://127.0.0.1:9/")
            return [await whole.create_task_push_notification_config(config)]


async def main(job):
    done, task_id, heads = [], None, []

    async def keep_head(response):
        heads.append(response.headers)

    async with httpx.AsyncClient(timeout=60, event_hooks={"response": [keep_head]}) as http:
        card = await A2ACardResolver(http, job["url"]).get_agent_card()
        clients = [
            ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(card, [AgentRoa(job)])
            for streaming in [False, True]
        ]
        for step in job["steps"]:
            heads.clear()
            try:
                results = [MessageToDict(result) for result in await take(clients, step, task_id)]
                tasks = [result["task"]["id"] for result in results if "task" in result]
                task_id = tasks[0] if tasks else task_id
                taken = {"results": results}
            except A2AError as error:
                taken = {"error": {"kind": type(error).__name__, "message": str(error)}}
            names = ["agentroa-receipt", "a2a-extensions"]
            done.append(taken | {name: [head[name] for head in heads if name in head] for name in names})
    return {"card": MessageToDict(card), "steps": done}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(json.load(sys.stdin)))))
