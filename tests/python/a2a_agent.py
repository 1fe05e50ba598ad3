"""An agent of the public Python SDK for A2A (JSON-RPC over HTTP), to stand behind the gateway.

    a2a_agent.py HOST PORT     prints {"url": …} and serves; port 0 takes a free one

Each message becomes a task. Its artifact holds the text, and the names of the metadata that arrived. The text `fail`
makes the task fail; `wait` leaves it at work until it is canceled.
"""

import json
import socket
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, TextPart
from a2a.utils import new_task

# A receipt that the agent has no right to give.
FORGED = {"https://tabellion.dev/a2a/agentroa/v1/aer": {"receipt": "forged"}}


class Echo(AgentExecutor):
    async def execute(self, context, events):
        task = context.current_task or new_task(context.message)
        task.metadata = dict(FORGED)
        await events.enqueue_event(task)
        updater = TaskUpdater(events, task.id, task.context_id)
        await updater.start_work()
        text = context.get_user_input()
        if text == "wait":
            return
        if text == "fail":
            await updater.failed()
            return
        seen = {"text": text, "metadata": sorted(context.metadata)}
        await updater.add_artifact([Part(root=TextPart(text=json.dumps(seen)))], name="echo")
        await updater.complete()

    async def cancel(self, context, events):
        task = context.current_task
        await TaskUpdater(events, task.id, task.context_id).cancel()


def card(url):
    skill = AgentSkill(id="echo", name="echo", description="says what it heard", tags=["test"])
    return AgentCard(
        name="echo",
        description="says what it heard",
        url=url,
        version="1",
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text"],
        default_output_modes=["text"],
        skills=[skill],
        additional_interfaces=[AgentInterface(transport="JSONRPC", url=url)],
    )


def main(host, port):
    listener = socket.create_server((host, int(port)))
    url = f"http://{host}:{listener.getsockname()[1]}/"
    handler = DefaultRequestHandler(agent_executor=Echo(), task_store=InMemoryTaskStore())
    app = A2AStarletteApplication(agent_card=card(url), http_handler=handler).build()
    print(json.dumps({"url": url}), flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
