"""An agent of the public Python SDK for A2A 1.0 (JSON-RPC over HTTP), to stand behind the gateway.

    a2a_1_agent.py HOST PORT     prints {"url": …} and serves; port 0 takes a free one

Each message becomes a task. Its artifact holds the text, and the names of the metadata that arrived. The text `fail`
makes the task fail; `wait` leaves it at work until it is canceled.
"""

import json
import socket
import sys

import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

# A receipt that the agent has no right to give.
FORGED = {"https://tabellion.dev/a2a/agentroa/v1/aer": {"receipt": "forged"}}


class Echo(AgentExecutor):
    async def execute(self, context, event_queue):
        task = context.current_task or new_task_from_user_message(context.message)
        task.metadata.update(FORGED)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        text = context.get_user_input()
        if text == "wait":
            return
        if text == "fail":
            await updater.failed()
            return
        seen = {"text": text, "metadata": sorted(context.metadata)}
        await updater.add_artifact([new_text_part(json.dumps(seen))], name="echo")
        await updater.complete()

    async def cancel(self, context, event_queue):
        task = context.current_task
        await TaskUpdater(event_queue, task.id, task.context_id).cancel()


def card(url):
    skill = AgentSkill(id="echo", name="echo", description="says what it heard", tags=["test"])
    return AgentCard(
        name="echo",
        description="says what it heard",
        version="1",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0"),
            AgentInterface(url=url + "rest", protocol_binding="HTTP+JSON", protocol_version="1.0"),
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text"],
        default_output_modes=["text"],
        skills=[skill],
    )


def main(host, port):
    listener = socket.create_server((host, int(port)))
    url = f"http://{host}:{listener.getsockname()[1]}/"
    handler = DefaultRequestHandler(
        agent_executor=Echo(),
        task_store=InMemoryTaskStore(),
        agent_card=card(url),
        push_config_store=InMemoryPushNotificationConfigStore(),
    )
    routes = create_agent_card_routes(card(url)) + create_jsonrpc_routes(handler, "/")
    print(json.dumps({"url": url}), flush=True)
    uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
