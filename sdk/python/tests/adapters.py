"""What the adapters for agent frameworks promise when something goes wrong: `adapters.py`, in the folder of a dev log.

A stub stands for the model. What each session recorded is registered in the log, and verified.
"""

import asyncio
import json
import logging
import socket
import tempfile
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agents import Agent, FunctionTool, Model, ModelResponse, Runner, Usage, UserError, function_tool, set_tracing_disabled
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import CallDeferred, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ModelResponse as PydanticResponse
from pydantic_ai.messages import TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import ApprovalRequiredToolset, FunctionToolset

import tabellion
from tabellion.adapters.langgraph import record_tool_calls, record_tool_calls_async
from tabellion.adapters.openai_agents import record_tools
from tabellion.adapters.opentelemetry import RecordingSpanProcessor
from tabellion.adapters.pydantic_ai import RecordedToolset

set_tracing_disabled(True)  # no request to another service
LOG = tabellion.dev_log()
LOOP_SECONDS = 30


class Meeting:
    """Two calls that each wait until the other one has begun: they only end if they run in parallel."""

    def __init__(self):
        self.barrier = threading.Barrier(2, timeout=LOOP_SECONDS)
        self.present = 0
        self.complete = asyncio.Event()

    def meet(self):
        self.barrier.wait()

    async def meet_async(self):
        self.present += 1
        if self.present == 2:
            self.complete.set()
        await asyncio.wait_for(self.complete.wait(), LOOP_SECONDS)


class Recorded(unittest.TestCase):
    """A test with sessions whose records are registered in the log."""

    def session(self, *tools, max_calls=9, **more):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        given = {"goal": "g", "tools": tools, "budget": {"max_calls": max_calls}, "key": LOG.key, "issuer": LOG.issuer, "log": LOG.client}
        return tabellion.session(**{**given, "save_as": Path(folder.name) / "s.cose", "disclose": True, **more})

    def entries(self, session):
        """Returns the entries of a record that is registered and verified."""
        verdict = tabellion.verify(session.registered.transparent, LOG.trust)
        self.assertEqual(verdict["outcome"], "verified", verdict)
        payload = tabellion.read_statement(session.record.bytes)["payload"]
        return json.loads(payload)["session"]["entries"]

    def calls(self, session):
        """Returns name, result and failure of each recorded call; of one without a result, the name alone."""
        entries = self.entries(session)
        results = {entry["call-id"]: (entry["output"], entry["is-error"]) for entry in entries if entry["type"] == "tool-result"}
        calls = [entry for entry in entries if entry["type"] == "tool-call"]
        return [(call["name"], *results.get(call["call-id"], ())) for call in calls]

    def events(self, session, kind):
        return [entry["data"] for entry in self.entries(session) if entry.get("event-type") == kind]

    def must_have_denied(self, session, tool, reason):
        self.assertEqual(self.events(session, "call-denied"), [{"tool": tool, "reason": reason}])


def openai_call(name, arguments="{}", call_id="call-1"):
    return ResponseFunctionToolCall(type="function_call", call_id=call_id, name=name, arguments=arguments)


class OpenAiStub(Model):
    """Makes these calls in one turn, and then answers with their results as JSON."""

    def __init__(self, *calls):
        self.calls = calls

    async def get_response(self, system_instructions, input, *_, **__):
        outputs = [item["output"] for item in input if isinstance(item, dict) and item.get("type") == "function_call_output"]
        if not outputs:
            return ModelResponse(output=list(self.calls), usage=Usage(), response_id=None)
        text = ResponseOutputText(type="output_text", text=json.dumps(outputs), annotations=[])
        item = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


class OpenAiAgents(Recorded):
    def run_agent(self, session, tools, *calls):
        """Returns what the model read of each call."""
        agent = Agent(name="a", model=OpenAiStub(*calls), tools=record_tools(session, tools))
        return json.loads(asyncio.run(Runner.run(agent, "go")).final_output)

    def test_the_model_reads_why_a_call_was_denied(self):
        with self.session("other") as session:
            tool = function_tool(self.fail, name_override="add")
            self.assertEqual(self.run_agent(session, [tool], openai_call("add")), ["denied: scope_escape"])
        self.must_have_denied(session, "add", "scope_escape")
        self.assertEqual(self.calls(session), [])

    def test_a_tool_whose_error_the_sdk_shows_to_the_model_is_recorded_as_failed(self):
        @function_tool
        def shown():
            raise ZeroDivisionError

        @function_tool(failure_error_function=lambda _, error: f"no luck: {type(error).__name__}")
        async def described():
            raise ZeroDivisionError

        with self.session("*") as session:
            calls = openai_call("shown"), openai_call("described", call_id="call-2")
            read = self.run_agent(session, [shown, described], *calls)
        self.assertIn("An error occurred", read[0])
        self.assertEqual(read[1], "no luck: ZeroDivisionError")
        failed = {"error": "ZeroDivisionError"}
        self.assertEqual(sorted(self.calls(session)), [("described", failed, True), ("shown", failed, True)])

    def test_a_tool_whose_error_ends_the_run_is_recorded_as_failed(self):
        @function_tool(failure_error_function=None)
        def add():
            raise ZeroDivisionError

        async def raises(*_):
            raise ZeroDivisionError

        own = FunctionTool(name="add", description="d", params_json_schema={}, on_invoke_tool=raises, strict_json_schema=False)
        for tool in (add, own):
            with self.subTest(tool), self.session("add") as session:
                with self.assertRaises(UserError) as raised:
                    self.run_agent(session, [tool], openai_call("add"))
            self.assertIsInstance(raised.exception.__cause__, ZeroDivisionError)
            self.assertEqual(self.calls(session), [("add", {"error": "ZeroDivisionError"}, True)])

    def test_two_calls_run_in_parallel_and_each_has_its_own_result(self):
        meeting = Meeting()

        @function_tool
        async def wait(a: int) -> int:
            await meeting.meet_async()
            return a

        with self.session("wait") as session:
            calls = [openai_call("wait", json.dumps({"a": a}), f"call-{a}") for a in (1, 2)]
            self.assertEqual(self.run_agent(session, [wait], *calls), ["1", "2"])
        self.assertEqual(sorted(self.calls(session)), [("wait", 1, False), ("wait", 2, False)])

    def test_of_two_calls_in_parallel_the_budget_allows_one(self):
        @function_tool
        def add() -> int:
            return 3

        with self.session("add", max_calls=1) as session:
            read = self.run_agent(session, [add], openai_call("add"), openai_call("add", call_id="call-2"))
        self.assertEqual(sorted(read), ["3", "denied: budget_exceeded"])
        self.must_have_denied(session, "add", "budget_exceeded")

    def test_a_call_that_takes_too_long_is_recorded_as_cancelled(self):
        @function_tool(timeout=0.01)
        async def wait():
            await asyncio.Event().wait()

        with self.session("wait") as session:
            self.assertIn("timed out", self.run_agent(session, [wait], openai_call("wait"))[0])
        self.assertEqual(self.calls(session), [("wait", {"error": "CancelledError"}, True)])

    def test_arguments_that_are_no_json_are_recorded_and_the_model_reads_of_the_error(self):
        with self.session("add") as session:
            tool = function_tool(self.fail, name_override="add")
            for text in ("{", "[1]"):
                self.assertIn("An error occurred", self.run_agent(session, [tool], openai_call("add", text))[0])
        inputs = [entry["input"] for entry in self.entries(session) if entry["type"] == "tool-call"]
        self.assertEqual(inputs, [{"value": "{"}, {"value": [1]}])
        self.assertTrue(all(failed for _, _, failed in self.calls(session)))


class LangGraph(Recorded):
    def graph(self, tools, calls, **options):
        """Returns a graph that makes these calls in one turn."""
        calls = [{"name": name, "args": arguments, "id": f"call-{at}"} for at, (name, arguments) in enumerate(calls)]
        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda _: {"messages": [AIMessage("", tool_calls=calls)]})
        graph.add_node("tools", ToolNode(tools, **options))
        graph.add_edge(START, "model")
        graph.add_edge("model", "tools")
        graph.add_edge("tools", END)
        return graph.compile()

    def run_graph(self, session, tools, *calls, mode, **options):
        """Returns status and content of what the model would read of each call."""
        wrapper = {"wrap_tool_call": record_tool_calls(session)} if mode == "sync" else {"awrap_tool_call": record_tool_calls_async(session)}
        graph = self.graph(tools, calls, **wrapper, **options)
        given = {"messages": [("user", "go")]}
        state = graph.invoke(given) if mode == "sync" else asyncio.run(graph.ainvoke(given))
        return [(message.status, message.content) for message in state["messages"][2:]]

    def both(self, *tools, **more):
        """Yields a session for each way to run a graph."""
        for mode in ("sync", "async"):
            with self.subTest(mode), self.session(*tools, **more) as session:
                yield mode, session

    def test_the_model_reads_why_a_call_was_denied(self):
        def add() -> None:
            """Must not be called."""
            self.fail()

        for mode, session in self.both("other"):
            self.assertEqual(self.run_graph(session, [add], ("add", {}), mode=mode), [("error", "denied: scope_escape")])
            session.close()
            self.must_have_denied(session, "add", "scope_escape")

    def test_a_tool_that_fails_is_recorded_as_failed(self):
        def add() -> None:
            """Fails."""
            raise ZeroDivisionError

        for mode, session in self.both("add"):
            with self.assertRaises(ZeroDivisionError):
                self.run_graph(session, [add], ("add", {}), mode=mode)
            (status, _), = self.run_graph(session, [add], ("add", {}), mode=mode, handle_tool_errors="no luck")
            self.assertEqual(status, "error")
            session.close()
            self.assertEqual([failed for _, _, failed in self.calls_in_order(session)], [True, True])

    def calls_in_order(self, session):
        """Like `calls`, for a model that uses an ID twice."""
        results = [entry for entry in self.entries(session) if entry["type"] == "tool-result"]
        return [(None, entry["output"], entry["is-error"]) for entry in results]

    def test_two_calls_run_in_parallel_and_each_has_its_own_result(self):
        for mode, session in self.both("wait"):
            meeting = Meeting()

            def wait(a: int) -> int:
                """Waits for the other call."""
                meeting.meet()
                return a

            async def wait_async(a: int) -> int:
                """Waits for the other call."""
                await meeting.meet_async()
                return a

            wait_async.__name__ = "wait"
            tool = wait if mode == "sync" else wait_async
            read = self.run_graph(session, [tool], ("wait", {"a": 1}), ("wait", {"a": 2}), mode=mode)
            self.assertEqual(read, [("success", "1"), ("success", "2")])
            session.close()
            self.assertEqual(sorted(self.calls(session)), [("wait", "1", False), ("wait", "2", False)])

    def test_a_cancelled_call_is_recorded(self):
        begun = asyncio.Event()

        async def wait() -> None:
            """Waits for ever."""
            begun.set()
            await asyncio.Event().wait()

        async def cancel(session):
            graph = self.graph([wait], [("wait", {})], awrap_tool_call=record_tool_calls_async(session))
            running = asyncio.create_task(graph.ainvoke({"messages": [("user", "go")]}))
            await asyncio.wait_for(begun.wait(), LOOP_SECONDS)
            running.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await running

        with self.session("wait") as session:
            asyncio.run(cancel(session))
        self.assertEqual(self.calls(session), [("wait", {"error": "CancelledError"}, True)])


    def test_arguments_that_an_intent_cannot_have_are_denied_and_the_model_reads_why(self):
        def add(a: object) -> None:
            """Must not be called."""
            self.fail()

        for mode, session in self.both("add"):
            for value in (float("nan"), "\ud800"):
                self.assertEqual(self.run_graph(session, [add], ("add", {"a": value}), mode=mode), [("error", "denied: malformed")])
            session.close()
            self.assertEqual(self.events(session, "call-denied"), [{"tool": "add", "reason": "malformed"}] * 2)


class PydanticAi(Recorded):
    def agent(self, toolset, *turns, **options):
        """Returns an agent whose model makes the calls of each turn, and then answers."""
        left = list(turns)

        def answer(messages, _):
            parts = [ToolCallPart(name, arguments, call_id) for name, arguments, call_id in left.pop(0)] if left else [TextPart("done")]
            self.read = [part for message in messages for part in message.parts if part.part_kind in ("tool-return", "retry-prompt")]
            return PydanticResponse(parts=parts)

        return PydanticAgent(FunctionModel(answer), toolsets=[toolset], **options)

    def toolset(self, session, *tools):
        return RecordedToolset(FunctionToolset(list(tools)), session)

    def test_the_model_reads_each_time_why_a_call_was_denied(self):
        def add():
            self.fail()

        with self.session("other") as session:
            turns = [[("add", {}, f"call-{at}")] for at in range(3)]
            result = self.agent(self.toolset(session, add), *turns).run_sync("go")
        self.assertEqual(result.output, "done")
        self.assertEqual([part.content for part in self.read], ["denied: scope_escape"] * 3)
        self.assertEqual(len(self.events(session, "call-denied")), 3)

    def test_arguments_that_an_intent_cannot_have_are_denied_and_the_model_reads_why(self):
        def add(a: object):
            self.fail()

        with self.session("add") as session:
            turns = [[("add", arguments, f"call-{at}")] for at, arguments in enumerate(('{"a":NaN}', '{"a":Infinity}'))]
            result = self.agent(self.toolset(session, add), *turns).run_sync("go")
        self.assertEqual(result.output, "done")
        self.assertEqual([part.content for part in self.read], ["denied: malformed"] * 2)
        self.assertEqual(self.events(session, "call-denied"), [{"tool": "add", "reason": "malformed"}] * 2)

    def test_a_tool_that_fails_is_recorded_as_failed_and_its_error_passes(self):
        def add():
            raise ZeroDivisionError

        with self.session("add") as session, self.assertRaises(ZeroDivisionError):
            self.agent(self.toolset(session, add), [("add", {}, "call-1")]).run_sync("go")
        self.assertEqual(self.calls(session), [("add", {"error": "ZeroDivisionError"}, True)])

    def test_two_calls_run_in_parallel_and_each_has_its_own_result(self):
        meeting = Meeting()

        async def wait(a: int) -> int:
            await meeting.meet_async()
            return a

        with self.session("wait") as session:
            calls = [("wait", {"a": a}, f"call-{a}") for a in (1, 2)]
            self.agent(self.toolset(session, wait), calls).run_sync("go")
        self.assertEqual([part.content for part in self.read], [1, 2])
        self.assertEqual(sorted(self.calls(session)), [("wait", 1, False), ("wait", 2, False)])

    def test_a_cancelled_call_is_recorded(self):
        begun = asyncio.Event()

        async def wait():
            begun.set()
            await asyncio.Event().wait()

        async def cancel(session):
            running = asyncio.create_task(self.agent(self.toolset(session, wait), [("wait", {}, "call-1")]).run("go"))
            await asyncio.wait_for(begun.wait(), LOOP_SECONDS)
            running.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await running

        with self.session("wait") as session:
            asyncio.run(cancel(session))
        self.assertEqual(self.calls(session), [("wait", {"error": "CancelledError"}, True)])

    def test_a_call_that_must_be_approved_first_counts_once_it_is_made(self):
        def add() -> int:
            return 3

        with self.session("add", max_calls=1) as session:
            toolset = RecordedToolset(ApprovalRequiredToolset(FunctionToolset([add])), session)
            agent = self.agent(toolset, [("add", {}, "call-1")], output_type=[str, DeferredToolRequests])
            asked = agent.run_sync("go")
            self.assertEqual(len(asked.output.approvals), 1)
            approved = DeferredToolResults(approvals={"call-1": True})
            result = agent.run_sync(message_history=asked.all_messages(), deferred_tool_results=approved)
        self.assertEqual(result.output, "done")
        results = [(entry["output"], entry["is-error"]) for entry in self.entries(session) if entry["type"] == "tool-result"]
        self.assertEqual(results, [({"error": "ApprovalRequired"}, True), (3, False)])


    def test_a_call_whose_result_comes_later_is_recorded_as_deferred(self):
        def add() -> int:
            raise CallDeferred

        with self.session("add") as session:
            agent = self.agent(self.toolset(session, add), [("add", {}, "call-1")], output_type=[str, DeferredToolRequests])
            asked = agent.run_sync("go")
            self.assertEqual(len(asked.output.calls), 1)
            result = agent.run_sync(message_history=asked.all_messages(), deferred_tool_results=DeferredToolResults(calls={"call-1": 3}))
        self.assertEqual(result.output, "done")
        self.assertEqual(self.calls(session), [("add", "deferred", False)])


class OpenTelemetry(Recorded):
    def span(self, session, *, error=None, **attributes):
        """Ends a span of a tool call; `error` is what ends it."""
        provider = TracerProvider()
        provider.add_span_processor(RecordingSpanProcessor(session))
        given = {"operation.name": "execute_tool", "tool.name": "add", **attributes}
        with provider.get_tracer("t").start_as_current_span("execute_tool add") as span:
            for name, value in given.items():
                span.set_attribute(f"gen_ai.{name}", value)
            if error is not None:
                raise error

    def test_a_call_beyond_the_bounds_is_recorded_as_one_that_was_made(self):
        with self.session("other", "add", max_calls=1) as session:
            self.span(session, **{"tool.call.result": "3"})
            self.span(session, **{"tool.call.result": "4"})
            self.span(session, **{"tool.name": "mail.send"})
        self.assertEqual(self.calls(session), [("add", 3, False), ("add", 4, False), ("mail.send", {}, False)])
        beyond = [{"tool": "add", "reason": "budget_exceeded"}, {"tool": "mail.send", "reason": "scope_escape"}]
        self.assertEqual(self.events(session, "call-out-of-bounds"), beyond)
        self.assertEqual(self.events(session, "call-denied"), [])

    def test_a_tool_that_fails_is_recorded_as_failed(self):
        with self.session("add") as session, self.assertRaises(ZeroDivisionError):
            self.span(session, error=ZeroDivisionError())
        self.assertEqual(self.calls(session), [("add", {}, True)])

    def test_a_cancelled_call_is_recorded(self):
        async def call(session):
            with self.assertRaises(asyncio.CancelledError):
                self.span(session, error=asyncio.CancelledError())

        with self.session("add") as session:
            asyncio.run(call(session))
        self.assertEqual([name for name, *_ in self.calls(session)], ["add"])

    def test_spans_that_end_in_parallel_are_all_recorded(self):
        with self.session("add", max_calls=20) as session, ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda at: self.span(session, **{"tool.call.result": str(at)}), range(20)))
        self.assertEqual(sorted(result for _, result, _ in self.calls(session)), list(range(20)))

    def test_what_an_instrumentation_writes_never_reaches_the_program_as_an_error(self):
        deep = ["[" * levels + "]" * levels for levels in (56, 57, 64, 127, 128, 10_000)]
        odd = ("NaN", '{"a":NaN}', '{"a":1e999}', '{"a":1,"a":2}', "{", "\ud800", '"\\ud800"', "[" * 10_000, *deep, "")
        with self.session("add", max_calls=20) as session:
            for text in odd:
                self.span(session, **{"tool.call.arguments": text, "tool.call.result": text})
            with self.assertLogs("tabellion", logging.ERROR):
                self.span(session, **{"tool.name": ""})
        self.assertEqual(len(self.calls(session)), len(odd))

    def test_a_span_that_ends_after_the_session_is_logged(self):
        with self.session("add") as session:
            pass
        with self.assertLogs("tabellion", logging.ERROR) as logged:
            self.span(session)
        self.assertIn("session_ended", logged.output[0])


class Unreachable(Recorded):
    def test_a_record_whose_log_is_not_reachable_is_saved_and_can_be_registered_later(self):
        with socket.socket() as held:
            # Nobody listens on the port.
            held.bind(("127.0.0.1", 0))
            unreachable = tabellion.Client(f"http://127.0.0.1:{held.getsockname()[1]}")
            folder = tempfile.TemporaryDirectory()
            self.addCleanup(folder.cleanup)
            file = Path(folder.name) / "s.cose"
            with self.assertRaises(tabellion.Unreachable):
                with self.session("add", log=unreachable, save_as=file) as session:
                    self.assertEqual(session.run("add", lambda: 3, {}), 3)
            with self.assertRaises(tabellion.Unreachable):
                session.close()
        session.registered = LOG.client.register(file.read_bytes(), file)
        self.assertEqual(self.calls(session), [("add", 3, False)])


if __name__ == "__main__":
    unittest.main()
