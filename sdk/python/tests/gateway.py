"""What `VapClient` promises, through a real gateway: `gateway.py URL`, with the agent's key in agent.pem.

The gateway denies payments to nobody, has payments above 1000 confirmed, and reduces each commitment. Only calls with the argument
`allowed` may reach the server behind it: the caller of this script checks that.
"""

import asyncio
import json
import sys
import tempfile
import unittest
import urllib.request
from contextlib import asynccontextmanager
from pathlib import Path

import mcp

import tabellion
from tabellion.mcp import VapClient

URL = sys.argv.pop()
with urllib.request.urlopen(URL.removesuffix("/mcp") + "/.well-known/jwks.json") as answer:
    GATEWAY_KEY = json.dumps(json.load(answer)["keys"][0])
KEY = tabellion.load_key(Path("agent.pem").read_text())
ALLOWED = {"allowed": True}
DENIED = {"to": "nobody", "amount": 1}
LARGE = {"to": "somebody", "amount": 5000}
#: The revisions of MCP: with sessions and without.
MODES = "legacy", "2026-07-28"


class Forger:
    """A client whose answers pass somebody who changes each Verdict, or removes it."""

    def __init__(self, client, change, is_error=None):
        self.client = client
        self.change = change
        self.is_error = is_error

    async def list_tools(self, **options):
        return self._changed(await self.client.session.list_tools(**options))

    async def call_tool(self, *arguments, **options):
        result = self._changed(await self.client.call_tool(*arguments, **options))
        return result if self.is_error is None else result.model_copy(update={"is_error": self.is_error})

    def _changed(self, result):
        verdict = self.change(result.meta.pop("vap"))
        return result.model_copy(update={"meta": {**result.meta, **({"vap": verdict} if verdict else {})}})


def first_again():
    """Returns a change that replaces every Verdict by the first one."""
    seen = []

    def change(verdict):
        seen.append(verdict)
        return seen[0]

    return change


class Interrupter:
    """A client whose answers become errors: `failure(verdict)` makes one of the genuine Verdict, or none."""

    def __init__(self, client, failure):
        self.client = client
        self.failure = failure

    async def list_tools(self, **options):
        return self._answer(await self.client.session.list_tools(**options))

    async def call_tool(self, *arguments, **options):
        return self._answer(await self.client.call_tool(*arguments, **options))

    def _answer(self, result):
        error = self.failure(result.meta["vap"])
        if error is not None:
            raise error
        return result


class Waiter:
    """A client that keeps its answers to itself."""

    def __init__(self, client):
        self.client = client
        self.sent = asyncio.Event()

    async def call_tool(self, *arguments, **options):
        await self.client.call_tool(*arguments, **options)
        self.sent.set()
        await asyncio.Event().wait()


def error_after_permit(code, data_of):
    """Returns a failure of every admitted call: a JSON-RPC error with this code, whose data is made of the Verdict."""

    def failure(verdict):
        return mcp.MCPError(code, "broken", data_of(verdict)) if verdict["in_response_to"] == "intent_call" else None

    return failure


def unsigned(verdict):
    return {name: value for name, value in verdict.items() if name != "signature"}


class Gateway(unittest.IsolatedAsyncioTestCase):
    @asynccontextmanager
    async def client(self, mode="legacy", *, answer=None, **more):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        given = {"tools": ["echo", "payments.*"], "budget": {"max_calls": 9}, "agent": "did:example:a", **more}
        with tabellion.session("pay", key=KEY, save_as=Path(folder.name) / "s.cose", **given) as session:
            async with mcp.Client(URL, mode=mode, elicitation_callback=answer) as client:
                yield VapClient(client, session, gateway_key=GATEWAY_KEY)

    def entries(self, vap):
        session = vap._vap_session
        session.close()
        payload = tabellion.read_statement(session.record.bytes)["payload"]
        return json.loads(payload)["session"]["entries"]

    async def test_a_denied_call_is_an_error_with_the_reason_and_is_recorded(self):
        for mode in MODES:
            async with self.client(mode) as vap:
                await vap.commit()
                result = await vap.call_tool("payments.send", DENIED)
                self.assertTrue(result.is_error)
                self.assertIn("policy:never", result.content[0].text)
                last = self.entries(vap)[-1]
                self.assertTrue(last["is-error"])
                self.assertEqual(last["vap-verdict"]["verification"]["reason"], "policy:never")

    async def test_a_call_without_a_commitment_is_denied(self):
        async with self.client() as vap:
            result = await vap.call_tool("echo", {})
            self.assertTrue(result.is_error)
            self.assertIn("denied", result.content[0].text)

    async def test_a_denied_commitment_is_an_error_with_the_reason(self):
        async with self.client(agent="did:example:b") as vap:
            with self.assertRaises(tabellion.Denied) as raised:
                await vap.commit()
            self.assertRegex(str(raised.exception), r"the gateway denied the commitment \[\w+\]")
            self.assertTrue((await vap.call_tool("echo", {})).is_error)

    async def test_amendments_follow_each_other_and_widen_the_session(self):
        for mode in MODES:
            async with self.client(mode, budget={"max_calls": 1}) as vap:
                await vap.commit()
                with self.assertRaisesRegex(tabellion.Denied, "scope_escape"):
                    await vap.call_tool("files.delete", {})
                await vap.amend("a file is in the way", add_scope={"tools_allow": ["files.delete"]})
                self.assertFalse((await vap.call_tool("files.delete", ALLOWED)).is_error)
                with self.assertRaisesRegex(tabellion.Denied, "budget_exceeded"):
                    await vap.call_tool("echo", {})
                await vap.amend("one more", increase_budget={"add_calls": 1})
                self.assertFalse((await vap.call_tool("echo", ALLOWED)).is_error)
                events = [entry.get("event-type") for entry in self.entries(vap)]
                self.assertEqual(events.count("vap-declaration"), 3)

    async def test_a_denied_amendment_is_an_error_with_the_reason_and_widens_nothing(self):
        async with self.client() as vap:
            await vap.commit()
            with self.assertRaisesRegex(tabellion.Denied, r"the gateway denied the amendment \[no_such_limit\]"):
                await vap.amend("dollars", add_scope={"tools_allow": ["*"]}, increase_budget={"add_limits": {"usd": 1}})
            with self.assertRaisesRegex(tabellion.Denied, "scope_escape"):
                await vap.call_tool("files.delete", {})

    async def test_the_person_behind_the_client_confirms_or_declines_a_call(self):
        for mode in MODES:
            for action, content in (("accept", {"confirm": True}), ("accept", {"confirm": False}), ("decline", None), ("cancel", None)):
                asked = []

                async def answer(_, question):
                    asked.append(question.message)
                    return mcp.types.ElicitResult(action=action, content=content)

                allowed = content == {"confirm": True}
                with self.subTest(mode=mode, action=action, content=content):
                    async with self.client(mode, answer=answer) as vap:
                        await vap.commit()
                        result = await vap.call_tool("payments.send", {**LARGE, "allowed": allowed})
                        self.assertEqual(result.is_error, not allowed, result)
                        if not allowed:
                            self.assertIn("declined", result.content[0].text)
                        self.assertEqual(len(asked), 1)
                        self.assertIn("5000", asked[0])

    async def test_where_nobody_can_be_asked_the_call_is_not_made(self):
        for mode in MODES:
            async with self.client(mode) as vap:
                await vap.commit()
                result = await vap.call_tool("payments.send", LARGE)
                self.assertTrue(result.is_error)
                self.assertIn("confirmation_required", result.content[0].text)
                self.assertEqual(result.meta["vap"]["verdict"], "clarify")

    async def test_without_a_genuine_verdict_on_the_commitment_nothing_more_is_sent(self):
        forgeries = {
            "verdict-signature-invalid": [lambda verdict: {**verdict, "verdict": "served"}, unsigned],
            "no_verdict": [lambda _: None],
        }
        for code, changes in forgeries.items():
            for change in changes:
                async with self.client() as vap:
                    forged = VapClient(Forger(vap._client, change), vap._vap_session, gateway_key=GATEWAY_KEY)
                    with self.assertRaises(tabellion.TabellionError) as raised:
                        await forged.commit()
                    self.assertEqual(raised.exception.code, code)
                    await self.must_not_send(forged, code)

    async def test_a_verdict_that_another_key_signed_is_refused(self):
        async with self.client() as vap:
            other = VapClient(vap._client, vap._vap_session, gateway_key=json.dumps(tabellion.generate_key().jwk))
            with self.assertRaises(tabellion.CoreError) as raised:
                await other.commit()
            self.assertEqual(raised.exception.code, "verdict-signature-invalid")
            await self.must_not_send(other, "verdict-signature-invalid")

    async def test_a_result_without_a_genuine_verdict_is_not_handed_out(self):
        served = lambda verdict: {**verdict, "verdict": "served"} if verdict["verdict"] == "denied" else verdict
        forgeries = [
            ("verdict-signature-invalid", served, "payments.send", DENIED),
            ("verdict-of-another-message", first_again(), "echo", ALLOWED),
            ("no_verdict", lambda verdict: verdict if "accepted_commitment_digest" in verdict else None, "echo", ALLOWED),
        ]
        for code, change, tool, arguments in forgeries:
            async with self.client() as vap:
                forged = VapClient(Forger(vap._client, change), vap._vap_session, gateway_key=GATEWAY_KEY)
                await forged.commit()
                with self.assertRaises(tabellion.TabellionError) as raised:
                    await forged.call_tool(tool, arguments)
                self.assertEqual(raised.exception.code, code)
                await self.must_not_send(forged, code)
                last = self.entries(forged)[-1]
                self.assertEqual((last["type"], last["is-error"], "vap-verdict" in last), ("tool-result", True, False))

    async def test_a_denial_that_is_shown_as_a_success_is_not_handed_out(self):
        for mode in MODES:
            for arguments, code in ((DENIED, "policy:never"), (LARGE, "confirmation_required")):
                async with self.client(mode) as vap:
                    forged = VapClient(Forger(vap._client, dict, False), vap._vap_session, gateway_key=GATEWAY_KEY)
                    await forged.commit()
                    with self.assertRaisesRegex(tabellion.Denied, "a call that was not made") as raised:
                        await forged.call_tool("payments.send", arguments)
                    self.assertEqual(raised.exception.code, code)
                    await self.must_not_send(forged, code)

    async def test_the_verdict_on_a_call_that_ends_with_an_error_is_recorded(self):
        async with self.client() as vap:
            failing = self.through(vap, Interrupter(vap._client, error_after_permit(7, lambda verdict: {"vap": verdict, "a": 1})))
            await failing.commit()
            for _ in range(2):
                with self.assertRaisesRegex(mcp.MCPError, "broken"):
                    await failing.call_tool("echo", ALLOWED)
            last = self.entries(vap)[-1]
            self.assertTrue(last["is-error"])
            self.assertEqual(last["vap-verdict"]["verdict"], "served")

    async def test_after_an_error_without_a_genuine_verdict_nothing_more_is_sent(self):
        forgeries = [
            ("verdict-signature-invalid", lambda verdict: {"vap": {**verdict, "verdict": "denied"}}),
            ("verdict-signature-invalid", lambda verdict: {"vap": unsigned(verdict)}),
            ("no_verdict", lambda verdict: {"vap": "served"}),
            ("no_verdict", lambda verdict: {"other": verdict}),
            ("no_verdict", lambda _: None),
        ]
        for code, data_of in forgeries:
            async with self.client() as vap:
                failing = self.through(vap, Interrupter(vap._client, error_after_permit(7, data_of)))
                await failing.commit()
                with self.assertRaises(tabellion.TabellionError) as raised:
                    await failing.call_tool("echo", ALLOWED)
                self.assertEqual(raised.exception.code, code)
                await self.must_not_send(failing, code)
                last = self.entries(vap)[-1]
                self.assertEqual((last["type"], last["is-error"], "vap-verdict" in last), ("tool-result", True, False))

    async def test_an_error_that_cannot_have_a_verdict_does_not_end_the_calls(self):
        reserved, text = error_after_permit(-32602, lambda _: None), error_after_permit(7, lambda _: "text")
        for failure in (reserved, text, lambda verdict: error_after_permit(7, dict)(verdict) and ConnectionError("broken")):
            async with self.client() as vap:
                failing = self.through(vap, Interrupter(vap._client, failure))
                await failing.commit()
                for _ in range(2):
                    with self.assertRaisesRegex((mcp.MCPError, ConnectionError), "broken"):
                        await failing.call_tool("echo", ALLOWED)
                self.assertNotIn("vap-verdict", self.entries(vap)[-1])

    async def test_every_declaration_that_was_sent_is_recorded_with_what_came_of_it(self):
        async with self.client() as vap:
            await vap.commit()
            more = {"increase_budget": {"add_calls": 1}}
            with self.assertRaises(ConnectionError):
                lost = self.through(vap, Interrupter(vap._client, lambda _: ConnectionError()))
                await lost.amend("one more", **more)
            with self.assertRaises(tabellion.CoreError):
                await self.through(vap, Forger(vap._client, unsigned)).amend("one more", **more)
            recorded = [entry["data"] for entry in self.entries(vap) if entry.get("event-type") == "vap-declaration"]
            self.assertEqual([data["type"] for data in recorded], ["scope_commitment", "scope_amendment", "scope_amendment"])
            self.assertEqual(recorded[0]["vap-verdict"], vap.commitment_verdict)
            self.assertEqual([data.get("error") for data in recorded], [None, "ConnectionError", "verdict-signature-invalid"])
            self.assertEqual([data.get("increase_budget") for data in recorded], [None, {"add_calls": 1}, {"add_calls": 1}])
            for data in recorded:
                self.assertEqual(set(data["message"]), {"digest", "signature"})

    async def test_after_an_amendment_whose_answer_was_lost_no_other_is_possible_and_calls_go_on(self):
        async with self.client() as vap:
            await vap.commit()
            lost = self.through(vap, Interrupter(vap._client, lambda _: ConnectionError("lost")))
            more = {"increase_budget": {"add_calls": 1}}
            with self.assertRaisesRegex(ConnectionError, "lost"):
                await lost.amend("one more", **more)
            with self.assertRaisesRegex(tabellion.Denied, r"the gateway denied the amendment \[chain_broken\]"):
                await vap.amend("one more", **more)
            with self.assertRaisesRegex(tabellion.Denied, r"not sent: .* begin a new session \[chain_broken\]"):
                await vap.amend("one more", **more)
            self.assertFalse((await vap.call_tool("echo", ALLOWED)).is_error)

    async def test_a_call_that_was_denied_or_declined_does_not_count(self):
        async def decline(_, __):
            return mcp.types.ElicitResult(action="decline")

        for mode in MODES:
            async with self.client(mode, answer=decline, budget={"max_calls": 1}) as vap:
                await vap.commit()
                for arguments in (DENIED, LARGE):
                    self.assertTrue((await vap.call_tool("payments.send", arguments)).is_error)
                self.assertFalse((await vap.call_tool("echo", ALLOWED)).is_error)
                with self.assertRaisesRegex(tabellion.Denied, "budget_exceeded"):
                    await vap.call_tool("echo", {})

    async def test_calls_in_parallel_are_recorded_with_their_own_verdicts(self):
        for mode in MODES:
            async with self.client(mode, disclose=True) as vap:
                await vap.commit()
                calls = [vap.call_tool("echo", {**ALLOWED, "at": at}) for at in range(4)]
                results = await asyncio.gather(*calls, vap.call_tool("payments.send", DENIED))
                self.assertEqual([result.is_error for result in results], [False] * 4 + [True])
                entries = self.entries(vap)
                intents = {entry["call-id"]: entry["vap-intent"] for entry in entries if entry["type"] == "tool-call"}
                ended = [entry for entry in entries if entry["type"] == "tool-result"]
                self.assertEqual(len(ended), 5)
                for entry in ended:
                    tabellion.core.verify_verdict(entry["vap-verdict"], GATEWAY_KEY, intents[entry["call-id"]])

    async def test_of_calls_in_parallel_no_more_are_sent_than_the_budget_allows(self):
        async with self.client(budget={"max_calls": 2}) as vap:
            await vap.commit()
            calls = [vap.call_tool("echo", ALLOWED) for _ in range(4)]
            ended = await asyncio.gather(*calls, return_exceptions=True)
            denied = [error.code for error in ended if isinstance(error, tabellion.Denied)]
            self.assertEqual(denied, ["budget_exceeded"] * 2)

    async def test_a_cancelled_call_is_recorded_and_calls_go_on(self):
        for mode in MODES:
            async with self.client(mode) as vap:
                await vap.commit()
                waiting = Waiter(vap._client)
                call = asyncio.create_task(self.through(vap, waiting).call_tool("echo", ALLOWED))
                await waiting.sent.wait()
                call.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await call
                self.assertFalse((await vap.call_tool("echo", ALLOWED)).is_error)
                ended = [entry for entry in self.entries(vap) if entry["type"] == "tool-result"]
                self.assertEqual([(entry["is-error"], "vap-verdict" in entry) for entry in ended], [(True, False), (False, True)])

    def through(self, vap, client):
        return VapClient(client, vap._vap_session, gateway_key=GATEWAY_KEY)

    async def must_not_send(self, vap, code):
        messages = vap.call_tool("echo", {}), vap.amend("one more", increase_budget={"add_calls": 1}), vap.commit()
        for message in messages:
            with self.assertRaisesRegex(tabellion.Denied, "not sent") as raised:
                await message
            self.assertEqual(raised.exception.code, code)


if __name__ == "__main__":
    unittest.main()
