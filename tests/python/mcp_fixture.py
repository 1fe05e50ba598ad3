"""The MCP server that the official conformance suite asks for, on the public Python SDK: what stands behind the gateway
when the suite runs through it, and is asked directly for comparison.

    mcp_fixture.py HOST PORT      serves http://HOST:PORT/mcp, both eras, and prints a line when it does
    mcp_fixture.py                serves whoever started it, over its standard streams

Names and answers are those of the suite's scenario descriptions ("Server Implementation Requirements"). Left out: the
extensions (tasks, skills).
"""

import asyncio
import contextlib
import json
import logging
import socket
import sys
import warnings

import mcp.types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError

NAME = "conformance-fixture"
MODERN = "2026-07-28"
INVALID_PARAMS = -32602
MISSING_CAPABILITY = -32021
# How long a step of a tool takes that shows what comes while it runs.
STEP = 0.05
# For how long a client may be away before it is to come back to a stream that the server ended.
RETRY_MS = 100

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="

bus = InMemorySubscriptionBus()


# --- tools ------------------------------------------------------------------------------------------

def text(said):
    return {"type": "text", "text": said}


def image():
    return {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def resource(uri, kind, said):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": said}}


def constant(*content):
    async def answer(ctx, params):
        return {"content": list(content)}

    return answer


async def with_logging(ctx, params):
    for n, said in enumerate(["Tool execution started", "Tool processing data", "Tool execution completed"]):
        await asyncio.sleep(STEP if n else 0)
        await ctx.session.send_log_message("info", said, related_request_id=ctx.request_id)
    return {"content": [text("logged three times")]}


async def with_progress(ctx, params):
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await asyncio.sleep(STEP)
    return {"content": [text("went from 0 to 100")]}


async def fails(ctx, params):
    return {"content": [text("This tool intentionally returns an error for testing")], "isError": True}


async def reconnection(ctx, params):
    await ctx.session.send_log_message("info", "before the stream ends", related_request_id=ctx.request_id)
    if ctx.close_sse_stream:
        await ctx.close_sse_stream()
    await asyncio.sleep(4 * STEP)
    await ctx.session.send_log_message("info", "after the client came back", related_request_id=ctx.request_id)
    return {"content": [text("the client came back")]}


async def sampling(ctx, params):
    asked = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=params.arguments["prompt"]))
    answer = await ctx.session.create_message([asked], max_tokens=100, related_request_id=ctx.request_id)
    return {"content": [text(f"LLM response: {getattr(answer.content, 'text', 'none')}")]}


def asks(message, properties, required=()):
    """A tool of the older era that asks its user through the client while the call is open."""

    async def ask(ctx, params):
        question = message or params.arguments["message"]
        schema = {"type": "object", "properties": properties, "required": list(required)}
        answer = await ctx.session.elicit_form(question, schema, related_request_id=ctx.request_id)
        said = f"User response: action={answer.action}, content={json.dumps(answer.content)}"
        return {"content": [text(said)]}

    return ask


async def needs_sampling(ctx, params):
    if not declared(ctx).get("sampling") and "sampling" not in declared(ctx):
        data = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(code=MISSING_CAPABILITY, message="this tool needs sampling", data=data)
    return {"content": [text("sampling is there")]}


def changes(event):
    async def change(ctx, params):
        await bus.publish(event)
        return {"content": [text("changed")]}

    return change


# --- tools that need input before they can end (2026-07-28) --------------------------------------------

def elicitation(message, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def completion(said, most):
    message = {"role": "user", "content": text(said)}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": most}}


ROOTS = {"method": "roots/list", "params": {}}
STRING = {"type": "string"}


def declared(ctx):
    return dict((ctx.meta or {}).get("io.modelcontextprotocol/clientCapabilities") or {})


def required(requests, state=None):
    result = {"resultType": "input_required", "inputRequests": requests}
    return result if state is None else {**result, "requestState": state}


def plain(value):
    return value.model_dump(by_alias=True, mode="json", exclude_none=True) if hasattr(value, "model_dump") else value


def given(params, requests):
    """What the client answered, when each question has the kind of answer that it asks for."""
    answers = {key: plain(value) for key, value in (params.input_responses or {}).items()}
    kinds = {"elicitation/create": "action", "sampling/createMessage": "content", "roots/list": "roots"}
    for key, request in requests.items():
        if not isinstance(answers.get(key), dict) or kinds[request["method"]] not in answers[key]:
            return None
    return answers


def needs(requests, finish, state=None):
    async def run(ctx, params):
        answers = given(params, requests)
        if answers is None or (state is not None and params.request_state != state):
            return required(requests, state)
        return finish(answers)

    return run


def said(words):
    return {"content": [text(words)]}


async def multi_round(ctx, params):
    first = {"step1": elicitation("Step 1: What is your name?", name=STRING)}
    second = {"step2": elicitation("Step 2: What is your favorite color?", color=STRING)}
    if params.request_state == "second" and given(params, second):
        return said("both steps are done")
    if params.request_state == "first" and given(params, first):
        return required(second, "second")
    return required(first, "first")


async def by_capability(ctx, params):
    offers = {
        "elicitation": ("name", elicitation("What is your name?", name=STRING)),
        "sampling": ("answer", completion("What is the capital of France?", 100)),
        "roots": ("roots", ROOTS),
    }
    requests = dict(offer for capability, offer in offers.items() if capability in declared(ctx))
    return required(requests) if requests and given(params, requests) is None else said("nothing is left to ask")


NAME_ASKED = {"user_name": elicitation("What is your name?", name=STRING)}
CAPITAL_ASKED = {"capital_question": completion("What is the capital of France?", 100)}
CONFIRM_ASKED = {"confirm": elicitation("Please confirm", ok={"type": "boolean"})}
ALL_ASKED = {**NAME_ASKED, "greeting": completion("Generate a greeting", 50), "client_roots": ROOTS}


def hello(answers):
    return said(f"Hello, {(answers['user_name'].get('content') or {}).get('name')}!")


# --- the tables -----------------------------------------------------------------------------------------

def choice(*values):
    return {"type": "string", "enum": list(values)}


def titled(*pairs):
    return [{"const": value, "title": title} for value, title in pairs]


DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {**choice("active", "inactive", "pending"), "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
THREE = titled(("value1", "First Option"), ("value2", "Second Option"), ("value3", "Third Option"))
ENUMS = {
    "untitledSingle": choice("option1", "option2", "option3"),
    "titledSingle": {"type": "string", "oneOf": THREE},
    "legacyEnum": {**choice("opt1", "opt2", "opt3"), "enumNames": ["Option One", "Option Two", "Option Three"]},
    "untitledMulti": {"type": "array", "items": choice("option1", "option2", "option3")},
    "titledMulti": {"type": "array", "items": {"anyOf": THREE}},
}
RICH_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": STRING, "city": STRING}}},
    "properties": {
        "name": STRING,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": choice("phone", "email"),
        "phone": STRING,
        "email": STRING,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def takes(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


NOTHING = {"type": "object", "properties": {}}
MIXED = '{"test":"data","value":123}'
PERSON = {"username": STRING, "email": STRING}

TOOLS = {
    "test_simple_text": (NOTHING, constant(text("This is a simple text response for testing."))),
    "test_image_content": (NOTHING, constant(image())),
    "test_audio_content": (NOTHING, constant({"type": "audio", "data": SILENCE, "mimeType": "audio/wav"})),
    "test_embedded_resource": (
        NOTHING,
        constant(resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
    ),
    "test_multiple_content_types": (
        NOTHING,
        constant(
            text("Multiple content types test:"),
            image(),
            resource("test://mixed-content-resource", "application/json", MIXED),
        ),
    ),
    "test_tool_with_logging": (NOTHING, with_logging),
    "test_tool_with_progress": (NOTHING, with_progress),
    "test_error_handling": (NOTHING, fails),
    "test_reconnection": (NOTHING, reconnection),
    "test_sampling": (takes(prompt=STRING), sampling),
    "test_elicitation": (takes(message=STRING), asks(None, PERSON, PERSON)),
    "test_elicitation_sep1034_defaults": (NOTHING, asks("Please check what is filled in", DEFAULTS)),
    "test_elicitation_sep1330_enums": (NOTHING, asks("Please choose", ENUMS)),
    "json_schema_2020_12_tool": (RICH_SCHEMA, constant(text("ok"))),
    "test_missing_capability": (NOTHING, needs_sampling),
    "test_logging_tool": (NOTHING, with_logging),
    "test_streaming_elicitation": (NOTHING, needs(NAME_ASKED, hello)),
    "test_trigger_tool_change": (NOTHING, changes(ToolsListChanged())),
    "test_trigger_prompt_change": (NOTHING, changes(PromptsListChanged())),
    "test_mirrored_header": (takes(region={**STRING, "x-mcp-header": "Region"}), constant(text("mirrored"))),
    "test_input_required_result_elicitation": (NOTHING, needs(NAME_ASKED, hello)),
    "test_input_required_result_sampling": (
        NOTHING,
        needs(CAPITAL_ASKED, lambda answers: said(json.dumps(answers["capital_question"]))),
    ),
    "test_input_required_result_list_roots": (
        NOTHING,
        needs({"client_roots": ROOTS}, lambda answers: said(json.dumps(answers["client_roots"]))),
    ),
    "test_input_required_result_request_state": (NOTHING, needs(CONFIRM_ASKED, lambda _: said("state-ok"), "opaque")),
    "test_input_required_result_multiple_inputs": (NOTHING, needs(ALL_ASKED, lambda _: said("all given"), "opaque")),
    "test_input_required_result_multi_round": (NOTHING, multi_round),
    "test_input_required_result_tampered_state": (NOTHING, needs(CONFIRM_ASKED, lambda _: said("state-ok"), "opaque")),
    "test_input_required_result_capabilities": (NOTHING, by_capability),
}


async def list_tools(ctx, params):
    listed = [{"name": name, "description": name.replace("_", " "), "inputSchema": entry[0]} for name, entry in TOOLS.items()]
    return {"tools": listed, **cacheable()}


async def call_tool(ctx, params):
    if params.name not in TOOLS:
        raise MCPError(code=INVALID_PARAMS, message=f"no tool {params.name}")
    return await TOOLS[params.name][1](ctx, params)


# --- resources and prompts -----------------------------------------------------------------------------

STATIC = {
    "test://static-text": ("text/plain", {"text": "This is the content of the static text resource."}),
    "test://static-binary": ("image/png", {"blob": PIXEL}),
    "test://watched-resource": ("text/plain", {"text": "Something that may change."}),
}


def cacheable():
    return {"ttlMs": 0, "cacheScope": "private"}


async def list_resources(ctx, params):
    listed = [{"uri": uri, "name": uri, "description": uri, "mimeType": kind} for uri, (kind, _) in STATIC.items()]
    return {"resources": listed, **cacheable()}


async def list_templates(ctx, params):
    template = {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}
    return {"resourceTemplates": [template], **cacheable()}


async def read_resource(ctx, params):
    uri = str(params.uri)
    kind, content = STATIC.get(uri, (None, None))
    if kind is None and uri.startswith("test://template/") and uri.endswith("/data"):
        part = uri.removeprefix("test://template/").removesuffix("/data")
        filled = {"id": part, "templateTest": True, "data": f"Data for ID: {part}"}
        kind, content = "application/json", {"text": json.dumps(filled)}
    if kind is None:
        code = INVALID_PARAMS if ctx.protocol_version >= MODERN else -32002
        raise MCPError(code=code, message="Resource not found", data={"uri": uri})
    return {"contents": [{"uri": uri, "mimeType": kind, **content}], **cacheable()}


def messages(*content):
    return {"messages": [{"role": "user", "content": each} for each in content]}


CONTEXT_ASKED = {"user_context": elicitation("What context should the prompt use?", context=STRING)}


def prompts(name, arguments):
    embedded = resource(arguments.get("resourceUri", ""), "text/plain", "Embedded resource content for testing.")
    return {
        "test_simple_prompt": ([], lambda: messages(text("This is a simple prompt for testing."))),
        "test_prompt_with_arguments": (
            ["arg1", "arg2"],
            lambda: messages(text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'")),
        ),
        "test_prompt_with_embedded_resource": (
            ["resourceUri"],
            lambda: messages(embedded, text("Please process the embedded resource above.")),
        ),
        "test_prompt_with_image": ([], lambda: messages(image(), text("Please analyze the image above."))),
        "test_input_required_result_prompt": ([], None),
    }


async def list_prompts(ctx, params):
    listed = [
        {"name": name, "description": name, "arguments": [{"name": each, "required": True} for each in arguments]}
        for name, (arguments, _) in prompts(None, {}).items()
    ]
    return {"prompts": listed, **cacheable()}


async def get_prompt(ctx, params):
    if params.name == "test_input_required_result_prompt":
        answers = given(params, CONTEXT_ASKED)
        return required(CONTEXT_ASKED) if answers is None else messages(text(json.dumps(answers["user_context"])))
    found = prompts(params.name, params.arguments or {}).get(params.name)
    if found is None:
        raise MCPError(code=INVALID_PARAMS, message=f"no prompt {params.name}")
    return found[1]()


async def complete(ctx, params):
    return {"completion": {"values": [], "total": 0, "hasMore": False}}


async def nothing(ctx, params):
    return {}


# --- serving ------------------------------------------------------------------------------------------

class Kept(EventStore):
    """Events of all streams, in one list, for clients that come back."""

    def __init__(self):
        self.events = []

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id, send_callback):
        if not last_event_id.isdigit() or not 0 < int(last_event_id) <= len(self.events):
            return None
        last = int(last_event_id)
        stream = self.events[last - 1][0]
        for number, (owner, message) in list(enumerate(self.events, 1))[last:]:
            if owner == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def whole(handler):
    """The newer era says of every result whether it is one."""

    async def handle(ctx, params):
        result = await handler(ctx, params)
        return {"resultType": "complete", **result} if ctx.protocol_version >= MODERN else result

    return handle


def server():
    made = Server(
        NAME,
        version="1.0.0",
        get_tool_input_schema=lambda name: TOOLS[name][0] if name in TOOLS else None,
        on_list_tools=whole(list_tools),
        on_call_tool=whole(call_tool),
        on_list_resources=whole(list_resources),
        on_list_resource_templates=whole(list_templates),
        on_read_resource=whole(read_resource),
        on_subscribe_resource=nothing,
        on_unsubscribe_resource=nothing,
        on_subscriptions_listen=ListenHandler(bus),
        on_list_prompts=whole(list_prompts),
        on_get_prompt=whole(get_prompt),
        on_completion=whole(complete),
        on_set_logging_level=nothing,
    )
    made.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME))
    return made


async def serve(host, port):
    app = server().streamable_http_app(event_store=Kept(), retry_interval=RETRY_MS, host=host)
    listener = socket.create_server((host, port))
    running = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    print(json.dumps({"url": f"http://{host}:{listener.getsockname()[1]}/mcp"}), flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        await running.serve(sockets=[listener])


async def serve_parent():
    made = server()
    async with stdio_server() as (reader, writer):
        await made.run(reader, writer, made.create_initialization_options())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])) if sys.argv[1:] else serve_parent())
