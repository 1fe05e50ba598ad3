"""What the Python client and sessions promise, against a service that answers as each test says: `python -m unittest promises`."""

import asyncio
import base64
import hashlib
import json
import math
import socket
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import mcp
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import tabellion
from tabellion import core
from tabellion.files import write_durably
from tabellion.http import Answer
from tabellion.mcp import VapClient

KEY = tabellion.generate_key()


class Service:
    """An HTTP server that gives prepared answers in order, and remembers the requests with their times.

    Instead of the answer `None` it closes the connection.
    """

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def respond(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                service.requests.append((self.command, self.path, body, time.monotonic()))
                answer = service.answers.pop(0)
                if answer is None:
                    return
                status, headers, content = answer
                if callable(content):
                    content = content()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = respond

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=[0.01], daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def asked(self):
        """Returns method and path of each request."""
        return [f"{method} {path}" for method, path, _, _ in self.requests]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Broken:
    """A server that writes these bytes, one text for each connection, and closes the connection."""

    def __init__(self, *answers):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.serve, args=[answers], daemon=True).start()

    def serve(self, answers):
        for answer in answers:
            with self.socket.accept()[0] as connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def problem(status, code, **headers):
    body = json.dumps({"title": "no", "detail": "a reason", "code": code}).encode()
    return status, {"Content-Type": "application/problem+json", **headers}, body


def vector():
    """Returns a vector of the verifier that has a receipt of its own."""
    files = sorted((Path(__file__).parents[3] / "vectors/verifier/verified").glob("*.json"))
    cases = (json.loads(file.read_text()) for file in files)
    return next(case for case in cases if case["receipts"])


def statement():
    return tabellion.sign_statement(KEY, b"{}", content_type="application/json", subject="s")


class Registration(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "statement.cose"
        self.signed = statement()

    def test_a_service_has_an_address_of_http(self):
        for url in ("log.example", "file:///etc/passwd", ""):
            with self.assertRaisesRegex(ValueError, "begins with http"):
                tabellion.Client(url)

    def test_the_statement_is_saved_before_the_first_attempt(self):
        saved = []

        def look():
            saved.append(self.file.read_bytes())
            return problem(400, "policy")[2]

        with Service((400, {"Content-Type": "application/problem+json"}, look)) as service:
            with self.assertRaises(tabellion.Refused) as raised:
                tabellion.Client(service.url).register(self.signed, self.file)
        self.assertEqual((saved, raised.exception.code), ([self.signed.bytes], "policy"))

    def test_a_retry_waits_as_long_as_the_service_wants_and_sends_the_same_bytes(self):
        receipt = bytes.fromhex(vector()["receipts"][0])
        answers = problem(429, "rate", **{"Retry-After": "1"}), (201, {}, receipt)
        with Service(*answers) as service:
            tabellion.Client(service.url).register(self.signed, self.file)
        (_, _, first, at), (_, _, second, later) = service.requests
        self.assertEqual((first, second), (self.signed.bytes, self.signed.bytes))
        self.assertGreaterEqual(later - at, 1)

    def test_a_date_to_retry_after_is_compared_with_the_answers_own(self):
        date, retry = "Wed, 21 Oct 2026 07:27:30 GMT", "Wed, 21 Oct 2026 07:28:00 GMT"
        for text, expected in ((retry, 30.0), (date, 0.0), ("7", 7.0), ("\u00b2", None), ("soon", None), ("-1", None)):
            with self.subTest(text):
                answer = Answer(429, {"retry-after": text, "date": date}, b"")
                self.assertEqual(answer.retry_after(), expected)

    def test_what_needs_an_operator_is_not_tried_again(self):
        for answer in (problem(503, "log-halted"), problem(503, "busy", **{"Retry-After": "3600"})):
            with self.subTest(answer), Service(answer) as service, self.assertRaises(tabellion.TryAgain):
                tabellion.Client(service.url).register(self.signed, self.file)
            self.assertEqual(len(service.requests), 1)

    def test_a_receipt_that_does_not_verify_is_not_accepted(self):
        case = vector()
        with Service((201, {}, bytes.fromhex(case["receipts"][0]))) as service:
            with self.assertRaises(tabellion.NotVerified) as raised:
                tabellion.Client(service.url, trust=case["trust"]).register(self.signed, self.file)
        self.assertEqual(raised.exception.code, "receipt-root-mismatch")
        self.assertEqual(self.file.read_bytes(), self.signed.bytes)

    def test_a_page_in_place_of_a_receipt_is_told_as_no_answer_and_not_saved(self):
        page = {"Content-Type": "text/html"}, b"<html>Please log in</html>"
        entry = self.signed.entry
        for answers in ([(201, *page)], [(200, *page)] * 2, [(202, {}, b""), (200, *page)], [(202, {}, b""), (200, {}, b"")]):
            with self.subTest(answers), Service(*answers) as service:
                with self.assertRaisesRegex(tabellion.Unreachable, "not a receipt"):
                    tabellion.Client(service.url).register(self.signed, self.file)
                self.assertEqual((service.answers, self.file.read_bytes()), ([], self.signed.bytes))
        for ask in (lambda client: client.receipt(entry), lambda client: client.wait(entry)):
            with Service((200, *page)) as service, self.assertRaisesRegex(tabellion.Unreachable, "not a receipt"):
                ask(tabellion.Client(service.url))

    def test_a_receipt_of_another_structure_is_returned(self):
        # Its protected header is { 1: -7, 395: 99 }.
        other = bytes.fromhex("d28448a2012619018b1863a0f64101")
        with Service((200, {}, other)) as service:
            self.assertEqual(tabellion.Client(service.url).receipt(self.signed.entry), other)

    def test_a_detached_payload_is_sent_with_its_statement(self):
        receipt, payload = bytes.fromhex(vector()["receipts"][0]), b"--x\r\n\0\xff"
        detached = tabellion.sign_statement(KEY, payload, content_type="text/plain", subject="s", detached=True)
        for signed, given, sends_form in ((detached, payload, True), (detached, None, False), (self.signed, b"{}", False)):
            with self.subTest(given), Service((201, {}, receipt)) as service:
                tabellion.Client(service.url).register(signed, self.file, payload=given)
                body = service.requests[0][2]
            if not sends_form:
                self.assertEqual(body, signed.bytes)
                continue
            boundary = body[:body.index(b"\r\n")]
            parts = [part.partition(b"\r\n\r\n") for part in body.split(boundary)[1:-1]]
            self.assertEqual([content for _, _, content in parts], [signed.bytes + b"\r\n", payload + b"\r\n"])

    def test_a_registration_that_takes_too_long_names_where_to_go_on(self):
        with Service((202, {"Location": "/entries/x", "Retry-After": "5"}, b"")) as service:
            with self.assertRaises(tabellion.StillRunning) as raised:
                tabellion.Client(service.url, patience=1).register(self.signed, self.file)
        self.assertEqual(raised.exception.location, f"{service.url}/entries/x")

    def test_a_registration_that_runs_on_is_asked_about_until_its_receipt_is_there(self):
        receipt = bytes.fromhex(vector()["receipts"][0])
        later = (202, {"Retry-After": "1"}, b""), (204, {}, b""), (200, {}, receipt)
        entry = f"/entries/{self.signed.entry}"
        with self.subTest("register"), Service((202, {}, b""), *later) as service:
            registered = tabellion.Client(service.url).register(self.signed, self.file)
            self.assertEqual(registered.receipt, receipt)
            self.assertEqual(service.asked(), ["POST /entries", *[f"GET {entry}"] * 3])
        moved = (202, {"Location": "/operations/2.19"}, b""), (204, {"Location": "https://elsewhere.example/entries/3"}, b"")
        strange = (204, {"Location": "/entries/\u00e9 x"}, b""), (204, {"Location": "http://["}, b"")
        with self.subTest("other names"), Service(*moved, *strange, (200, {}, receipt)) as service:
            tabellion.Client(service.url).register(self.signed, self.file)
            names = ["/operations/2.19", "/entries/3", "/entries/%E9%20x", "/entries/%E9%20x"]
            self.assertEqual(service.asked(), ["POST /entries", *[f"GET {name}" for name in names]])
        with self.subTest("wait"), Service(*later) as service:
            self.assertEqual(tabellion.Client(service.url).wait(self.signed.entry), receipt)
            self.assertEqual(service.asked(), [f"GET {entry}"] * 3)
            self.assertGreaterEqual(service.requests[1][3] - service.requests[0][3], 1)

    def test_waiting_ends_at_an_error_that_may_not_be_retried(self):
        answers = (202, {}, b""), problem(503, "busy"), problem(404, "not-found")
        with Service(*answers) as service, self.assertRaises(tabellion.NotFound):
            tabellion.Client(service.url).wait(self.signed.entry)
        self.assertEqual(len(service.requests), 3)


    def test_waiting_goes_on_while_the_service_restarts(self):
        receipt = bytes.fromhex(vector()["receipts"][0])
        for first in ((202, {}, b""), (202, {"Retry-After": "1"}, b"")):
            with self.subTest(first), Service(first, None, (204, {}, b""), None, (200, {}, receipt)) as service:
                registered = tabellion.Client(service.url).register(self.signed, self.file)
                self.assertEqual((registered.receipt, len(service.requests)), (receipt, 5))
        begun = time.monotonic()
        with self.assertRaises(tabellion.Unreachable):
            tabellion.Client("http://127.0.0.1:1").wait(self.signed.entry)
        self.assertLess(time.monotonic() - begun, 5, "a service that never answered is not waited for")

    def test_a_registration_counts_as_accepted_only_if_the_service_said_so(self):
        busy = problem(503, "busy")
        for answers, error in (
            ([busy] * 20, tabellion.TryAgain),
            ([busy] + [None] * 20, tabellion.Unreachable),
            ([(204, {}, b"")] + [busy] * 20, tabellion.StillRunning),
        ):
            with self.subTest(error), Service(*answers) as service, self.assertRaises(error):
                tabellion.Client(service.url, patience=3).receipt(self.signed.entry)

    def test_the_time_of_exchanges_counts_against_the_patience(self):
        def slow():
            time.sleep(4)
            return b""

        with Service(*[(503, {}, slow)] * 5) as service:
            with self.assertRaises(tabellion.TryAgain):
                tabellion.Client(service.url, patience=6).register(self.signed, self.file)
        self.assertEqual(len(service.requests), 2)


class Reading(unittest.TestCase):
    def test_a_session_is_listed_over_all_its_pages_which_are_asked_of_this_service_alone(self):
        def page(*entries, **headers):
            return 200, headers, json.dumps({"entries": [{"entry_id": entry} for entry in entries]}).encode()

        path = "/v1/sessions/a%2Fb%20%C3%A9"
        links = [f'<https://other.example/v1/log{path}?after={after}>; rel="next"' for after in (1, 2)]
        pages = page("a", "b", Link=links[0]), problem(503, "busy"), page(Link=links[1]), page("c")
        with Service(*pages) as service:
            listed = tabellion.Client(service.url).session("a/b \u00e9")
            self.assertEqual([entry["entry_id"] for entry in listed], ["a", "b", "c"])
            asked = [path, f"{path}?after=1", f"{path}?after=1", f"{path}?after=2"]
            self.assertEqual(service.asked(), [f"GET {each}" for each in asked])

    def test_a_session_that_no_entry_names_is_not_found(self):
        with Service(problem(404, "not-found")) as service, self.assertRaises(tabellion.NotFound):
            tabellion.Client(service.url).session("s")

    def test_an_answer_that_is_no_page_of_a_session_is_an_error(self):
        for answer in (b"{}", b"[]", b"null", b'{"entries":7}', b'{"entries":"ab"}', b"no JSON"):
            with self.subTest(answer), Service((200, {}, answer)) as service, self.assertRaises(tabellion.Unreachable):
                tabellion.Client(service.url).session("s")

    def test_an_answer_that_breaks_off_or_is_not_http_is_told_as_no_answer(self):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        for answer in [
            head + b'Content-Length: 1000\r\n\r\n{"entries":[]}',
            head + b'Transfer-Encoding: chunked\r\n\r\n1000\r\n{"entries":[]}',
            head + b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000,
            b"SSH-2.0-OpenSSH\r\n\r\n",
        ]:
            with self.subTest(answer[:200]), Broken(answer) as service, self.assertRaises(tabellion.Unreachable):
                tabellion.Client(service.url, patience=0).session("s-1")

    def test_a_statement_is_fetched_by_its_entry_id_and_another_one_is_refused(self):
        asked, other = statement(), tabellion.sign_statement(KEY, b"[]", content_type="application/json", subject="s")
        answers = [(200, {"Content-Type": "application/cose"}, signed.bytes) for signed in (asked, other)]
        with Service(*answers) as service:
            client = tabellion.Client(service.url)
            self.assertEqual(client.statement(asked.entry), asked.bytes)
            with self.assertRaisesRegex(tabellion.Unreachable, "another statement"):
                client.statement(asked.entry)
            self.assertEqual(service.asked(), [f"GET /v1/entries/{asked.entry}/statement"] * 2)


class Bundles(unittest.TestCase):
    FOLDER = Path(__file__).parents[3] / "vectors/bundle"

    def case(self, name):
        return json.loads((self.FOLDER / f"{name}.json").read_text())

    def must_be_refused(self, case, code, reason):
        client = tabellion.Client("http://log.example", trust=case["trust"])
        with self.assertRaisesRegex(tabellion.NotVerified, f"^not verified: {reason}") as raised:
            client.verify(case["bundle"].encode(), now=case["now"], witness_policy=case["witness_policy"])
        self.assertEqual(raised.exception.code, code)

    def test_a_changed_bundle_is_refused_with_the_part_that_was_changed(self):
        changed = {
            "statement-changed": ("issuer-signature-invalid", "entry 1 of 3: the signature does not verify"),
            "payload-changed": ("issuer-signature-invalid", "entry 3 of 3: the signature does not verify"),
            "receipt-changed": ("receipt-root-mismatch", "entry 2 of 3: leaf hash .* not the one that the receipt signs"),
            "checkpoint-changed": ("checkpoint-signature-invalid", "checkpoint: the signature of log.example/test"),
            "path-changed": ("tlog-proof-mismatch", "entry 1 of 3: leaf hash .* leads to root"),
            "policy-changed": ("tlog-proof-mismatch", "policy 1 of 1: leaf hash .* leads to root"),
            "cosignature-dropped": ("quorum-not-met", "checkpoint: 1 of 3"),
        }
        for name, (code, reason) in changed.items():
            with self.subTest(name):
                self.must_be_refused(self.case(f"failed/{name}"), code, reason)

    def test_a_bundle_is_refused_by_who_trusts_other_keys(self):
        case = self.case("verified/session")
        other = core.call("read-key", public_key=tabellion.generate_key().did)["pem"].splitlines()[1]
        log, issuer = (line for line in case["trust"].splitlines() if line.startswith("MCow"))
        _, checkpoint = verifier_key("log.example/test", b"\x01", Ed25519PrivateKey.generate())
        vkey = next(line for line in case["trust"].splitlines() if line.startswith("checkpoint_keys"))
        keys = {
            "log": (log, other, "unknown-log-key", "policy 1 of 1: log.example/test is trusted, but not with a key"),
            "issuer": (issuer, other, "issuer-signature-invalid", "entry 1 of 3: the signature does not verify"),
            "checkpoint": (vkey, f'checkpoint_keys = ["{checkpoint}"]', "unknown-checkpoint-key", "checkpoint: no checkpoint key"),
        }
        for name, (old, new, code, reason) in keys.items():
            with self.subTest(name):
                self.must_be_refused({**case, "trust": case["trust"].replace(old, new)}, code, reason)

    def test_the_rules_of_its_content_type_hold_for_each_entry_of_a_bundle(self):
        case = self.case("verified/session")
        broken = json.loads((self.FOLDER.parent / "vrf/vrf-tier-structural/tier-4.json").read_text())
        bundle = json.loads(case["bundle"])
        bundle["entries"][1]["statement"] = core.encode(bytes.fromhex(broken["statement"]))
        changed = json.dumps(bundle, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        verdict = tabellion.verify(changed.encode(), case["trust"], now=case["now"])
        checks = [{check["name"]: check for check in entry["checks"]}.get("content-rules") for entry in verdict["entries"]]
        self.assertEqual((checks[1]["state"], checks[1]["code"]), ("failed", "content-rule-broken"))
        self.assertEqual([checks[0], checks[2]], [None, None])

    def test_a_file_that_is_no_bundle_of_this_version_is_refused_with_the_place(self):
        for name, place in (("cut-off", "at byte"), ("unknown-member", "unknown field"), ("version-2", "")):
            case = self.case(f"malformed/{name}")
            with self.subTest(name), self.assertRaisesRegex(tabellion.CoreError, place) as raised:
                tabellion.Client("http://log.example", trust=case["trust"]).verify(case["bundle"].encode(), now=case["now"])
            self.assertEqual(raised.exception.code, "malformed-bundle")


class Policies(unittest.TestCase):
    POLICY = f"""
iss = "https://log.example"
origin = "log.example/test"
revision = 0

[log]
max_entries = 3

[[operator]]
key = "{KEY.did}"

[did]
key = "open"

[[type]]
content_type = "application/json"
issuers = ["did:key:*"]
detached = true
"""

    def test_a_log_that_is_tried_has_entries_with_detached_payloads(self):
        detached = tabellion.sign_statement(KEY, b"[]", content_type="application/json", subject="s", detached=True).bytes
        other = statement().bytes
        trial = tabellion.try_policy(self.POLICY, other, entries=[(detached, b"[]"), (detached, b"[]")])
        self.assertEqual((trial["outcome"], trial["max_entries"]), ("admitted", 3))
        again = tabellion.try_policy(self.POLICY, other, entries=[(detached, b"[]"), other])
        self.assertEqual((again["outcome"], again["leaf"]), ("registered", 2))
        with self.assertRaisesRegex(tabellion.CoreError, "entry 1 is not admitted: payload-missing"):
            tabellion.try_policy(self.POLICY, other, entries=[detached])

    def test_an_argument_of_another_type_is_named(self):
        with self.assertRaisesRegex(tabellion.CoreError, "/entries/1: invalid type"):
            tabellion.try_policy(self.POLICY, statement().bytes, entries=[statement().bytes, 7])


class Files(unittest.TestCase):
    def test_a_file_that_cannot_be_replaced_leaves_no_other_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "name"
            file.mkdir()
            with self.assertRaises(OSError):
                write_durably(file, b"content")
            self.assertEqual(list(Path(folder).iterdir()), [file])


class Stream(unittest.TestCase):
    def test_a_stream_that_breaks_off_goes_on_after_the_last_entry(self):
        head = {"Content-Type": "text/event-stream"}
        events = [f'id: {leaf}\nevent: entry\ndata: {{"index":{leaf}}}\n\n'.encode() for leaf in range(3)]
        with Service((200, head, events[0] + events[1] + b"id: 2\nevent: ent"), (200, head, events[2])) as service:
            followed = tabellion.Client(service.url).follow(begin=True)
            self.assertEqual([next(followed).leaf for _ in range(3)], [0, 1, 2])

    def test_a_stream_that_breaks_off_within_a_chunk_goes_on_too(self):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        events = [f'id: {leaf}\nevent: entry\ndata: {{"index":{leaf}}}\n\n'.encode() for leaf in range(2)]
        with Broken(head + b"1000\r\n" + events[0], head + b"%x\r\n" % len(events[1]) + events[1] + b"\r\n0\r\n\r\n") as service:
            followed = tabellion.Client(service.url).follow(begin=True)
            self.assertEqual([next(followed).leaf for _ in range(2)], [0, 1])

    def test_an_error_that_breaks_off_is_tried_again(self):
        error = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 1000\r\n\r\n{"
        event = b'id: 0\nevent: entry\ndata: {"index":0}\n\n'
        with Broken(error, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + event) as service:
            self.assertEqual(next(tabellion.Client(service.url).follow(begin=True)).leaf, 0)

    def test_an_entry_that_is_not_json_ends_it(self):
        with Service((200, {"Content-Type": "text/event-stream"}, b"id: 0\nevent: entry\ndata: {\n\n")) as service:
            with self.assertRaisesRegex(tabellion.Unreachable, "not JSON"):
                next(tabellion.Client(service.url).follow(begin=True))


    def test_the_patience_begins_anew_after_a_connection_that_carried_a_keep_alive(self):
        head = {"Content-Type": "text/event-stream; charset=utf-8"}
        outage = problem(503, "busy", **{"Retry-After": "1"}), (200, head, b": keep-alive\n\n")
        with Service(*outage * 3, (200, head, b'id: 0\nevent: entry\ndata: {"index":0}\n\n')) as service:
            self.assertEqual(next(tabellion.Client(service.url, patience=2).follow(begin=True)).leaf, 0)

    def test_a_page_that_is_no_stream_and_connections_that_carry_nothing_end_it(self):
        with Service((200, {"Content-Type": "text/html"}, b"<html>\n</html>\n")) as service:
            with self.assertRaisesRegex(tabellion.Unreachable, "text/html"):
                next(tabellion.Client(service.url).follow(begin=True))
            self.assertEqual(len(service.requests), 1)
        with Service(*[(200, {"Content-Type": "text/event-stream"}, b"")] * 20) as service:
            with self.assertRaisesRegex(tabellion.Unreachable, "neither events nor keep-alives"):
                next(tabellion.Client(service.url, patience=1).follow(begin=True))


def verifier_key(name, algorithm, private):
    """Returns the ID of a key of signed notes, and its verifier key."""
    public = algorithm + private.public_key().public_bytes_raw()
    key_id = hashlib.sha256(name.encode() + b"\n" + public).digest()[:4]
    return key_id, f"{name}+{key_id.hex()}+{base64.b64encode(public).decode()}"


def signature_line(name, signature):
    return f"\u2014 {name} {base64.b64encode(signature).decode()}\n"


class Witness:
    """A witness that cosigns every checkpoint."""

    def __init__(self, name):
        self.name = name
        self.private = Ed25519PrivateKey.generate()
        self.id, self.vkey = verifier_key(name, b"\x04", self.private)

    def cosign(self, checkpoint, time=1_700_000_000):
        """Returns the checkpoint with a cosignature of this witness added."""
        body, _, _ = checkpoint.partition("\n\n")
        signature = self.private.sign(f"cosignature/v1\ntime {time}\n{body}\n".encode())
        return checkpoint + signature_line(self.name, self.id + time.to_bytes(8, "big") + signature)


class LogKey:
    """The key that signs the checkpoints of a log."""

    NAME = "log.example"

    def __init__(self):
        self.private = Ed25519PrivateKey.generate()
        self.id, vkey = verifier_key(self.NAME, b"\x01", self.private)
        self.trust = f"""[[log]]
iss = "https://{self.NAME}"
origin = "{self.NAME}"
leaf_rule = "sha256-of-statement"
checkpoint_keys = ["{vkey}"]

[[log.keys]]
key = "{KEY.did}"
"""

    def checkpoint(self, *entries):
        """Returns the signed checkpoint of a tree with these entries."""
        root = core.call("tree-root", entries=[entry.encode() for entry in entries])["root"]
        text = f"{self.NAME}\n{len(entries)}\n{base64.b64encode(bytes.fromhex(root)).decode()}\n"
        return f"{text}\n{signature_line(self.NAME, self.id + self.private.sign(text.encode()))}"


class Monitoring(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = Path(folder.name) / "monitor.json"
        self.key = LogKey()

    def observe(self, *answers, **policy):
        """Observes a log once that gives these answers: checkpoints, then perhaps a proof."""
        with Service(*((200, {}, answer.encode()) for answer in answers)) as service:
            return tabellion.Client(service.url, trust=self.key.trust).monitor_once(self.state, **policy)

    def test_two_trees_of_one_size_are_a_split_view_and_both_checkpoints_are_kept(self):
        known, other = self.key.checkpoint("a", "b"), self.key.checkpoint("a", "c")
        self.observe(known)
        remembered = self.state.read_bytes()
        for _ in range(2):
            with self.assertRaisesRegex(tabellion.SplitView, "different roots") as raised:
                self.observe(other)
            self.assertEqual(raised.exception.evidence, {"known": known, "seen": other})
        self.assertEqual(self.state.read_bytes(), remembered)
        self.assertEqual(self.observe(known).size, 2)

    def test_an_empty_tree_after_entries_is_a_split_view_and_before_them_it_is_not(self):
        empty, known = self.key.checkpoint(), self.key.checkpoint("a", "b")
        self.observe(empty)
        self.assertEqual(self.observe(known).previous_size, 0)
        with self.assertRaisesRegex(tabellion.SplitView, "is gone") as raised:
            self.observe(empty)
        self.assertEqual(raised.exception.evidence, {"known": known, "seen": empty})
        self.assertEqual(json.loads(self.state.read_bytes())["size"], 2)

    def test_a_tree_that_does_not_continue_the_known_one_is_a_split_view(self):
        proof = json.dumps({"path": [hashlib.sha256(b"\0b").hexdigest()]})
        known, grown, other = (self.key.checkpoint(*entries) for entries in ("a", "ab", "cb"))
        self.observe(known)
        with self.assertRaisesRegex(tabellion.SplitView, "does not continue") as raised:
            self.observe(other, proof)
        self.assertEqual(raised.exception.evidence, {"known": known, "seen": other})
        self.assertEqual(self.observe(grown, proof).previous_size, 1)
        # An older checkpoint is not a contradiction, and the newer one stays known.
        self.assertEqual(self.observe(known, proof).size, 1)
        self.assertEqual(json.loads(self.state.read_bytes())["size"], 2)

    def test_an_answer_that_is_no_proof_is_an_error_and_no_split_view(self):
        self.observe(self.key.checkpoint("a"))
        for answer in ("{}", "[]", "null", '{"path":7}', '{"path":["x"]}', "no JSON"):
            with self.subTest(answer), self.assertRaises(tabellion.Unreachable):
                self.observe(self.key.checkpoint("a", "b"), answer)
        self.assertEqual(json.loads(self.state.read_bytes())["size"], 1)

    def test_a_checkpoint_that_another_key_signed_is_not_verified(self):
        with self.assertRaises(tabellion.NotVerified):
            self.observe(LogKey().checkpoint("a"))
        self.assertFalse(self.state.exists())

    def test_with_a_witness_policy_a_checkpoint_needs_its_quorum(self):
        first, second, stranger = (Witness(name) for name in ("w1.example", "w2.example", "w2.example"))
        policy = f"witness w1 {first.vkey}\nwitness w2 {second.vkey}\ngroup both all w1 w2\nquorum both\n"
        bare = self.key.checkpoint("a")
        one = first.cosign(bare)
        for checkpoint in (bare, one, first.cosign(one), stranger.cosign(one)):
            with self.subTest(checkpoint), self.assertRaises(tabellion.NotVerified) as raised:
                self.observe(checkpoint, witness_policy=policy)
            self.assertEqual(raised.exception.code, "quorum-not-met")
            self.assertFalse(self.state.exists())
        self.assertEqual(self.observe(second.cosign(one), witness_policy=policy).size, 1)
        # Without a policy, the signature of the log is enough.
        self.assertEqual(self.observe(bare).size, 1)


class Server:
    """A client of an MCP server that answers every request with this Verdict, and each call with these members."""

    def __init__(self, verdict, **more):
        self.meta = {"vap": verdict}
        self.more = more

    async def list_tools(self, **_):
        return mcp.types.ListToolsResult.model_validate({"tools": [], "_meta": self.meta})

    async def call_tool(self, *_, **__):
        return mcp.types.CallToolResult.model_validate({"content": [], **self.more, "_meta": self.meta})


class Sessions(unittest.TestCase):
    def session(self, **more):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        given = {"goal": "g", "tools": ["crm.*"], "deny": ["crm.delete"], "budget": {"max_calls": 1}, "key": KEY}
        return tabellion.session(**{**given, "save_as": Path(folder.name) / "s.cose", **more})

    def entries(self, session):
        payload = tabellion.read_statement(session.record.bytes)["payload"]
        return json.loads(payload)["session"]["entries"]

    def test_calls_beyond_scope_and_budget_are_not_made(self):
        with self.session() as session:
            for tool in ("mail.send", "crm.delete"):
                with self.assertRaisesRegex(tabellion.Denied, "scope_escape"):
                    session.run(tool, self.fail, {})
            self.assertEqual(session.run("crm.read", lambda ticket: ticket, {"ticket": 7}), 7)
            with self.assertRaisesRegex(tabellion.Denied, "budget_exceeded"):
                session.run("crm.read", self.fail, {})
        kinds = [entry["type"] for entry in self.entries(session)]
        self.assertEqual((kinds.count("tool-call"), kinds.count("system-event")), (1, 4))

    def test_texts_are_in_the_record_only_if_they_are_to_be_disclosed(self):
        for disclose in (False, True):
            with self.session(disclose=disclose) as session:
                session.run("crm.read", lambda ticket: f"about {ticket}", {"ticket": "SECRET"})
            text = tabellion.read_statement(session.record.bytes)["payload"].decode()
            self.assertEqual("SECRET" in text, disclose)

    def test_a_tool_that_fails_is_recorded_and_its_error_passes(self):
        with self.session() as session, self.assertRaises(ZeroDivisionError):
            session.run("crm.read", lambda: 1 / 0, {})
        self.assertTrue(self.entries(session)[-1]["is-error"])

    def test_a_decorated_tool_needs_a_session_and_may_be_a_coroutine(self):
        @tabellion.tool(name="crm.read")
        async def read(ticket: int) -> int:
            return ticket

        with self.assertRaisesRegex(tabellion.Denied, "no_session"):
            asyncio.run(read(7))
        with self.session() as session:
            self.assertEqual(asyncio.run(read(7)), 7)
        self.assertEqual([entry["type"] for entry in self.entries(session)][1:], ["tool-call", "tool-result"])

    def test_what_an_awaitable_ends_with_is_recorded_also_of_a_function_that_is_no_coroutine_function(self):
        async def work(what):
            if what == "fails":
                raise ZeroDivisionError
            if what == "waits":
                await asyncio.Event().wait()
            return what

        @tabellion.tool(name="crm.read")
        def read(what):
            return work(what)

        async def calls():
            self.assertEqual(await read("returns"), "returns")
            with self.assertRaises(ZeroDivisionError):
                await read("fails")
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(read("waits"), 0.01)

        with self.session(budget={"max_calls": 3}, disclose=True) as session:
            asyncio.run(calls())
        ended = [(entry["output"], entry["is-error"]) for entry in self.entries(session) if entry["type"] == "tool-result"]
        self.assertEqual(ended, [("returns", False), ({"error": "ZeroDivisionError"}, True), ({"error": "CancelledError"}, True)])

    def test_the_items_of_a_generator_are_recorded_at_its_end(self):
        @tabellion.tool(name="crm.read")
        def read(fails):
            yield 1
            if fails:
                raise ZeroDivisionError
            yield 2

        @tabellion.tool(name="crm.read")
        async def read_async(fails):
            for item in read.__wrapped__(fails):
                yield item

        @tabellion.tool(name="crm.read")
        async def read_later(fails):
            return read_async.__wrapped__(fails)

        async def items(generator):
            return [item async for item in generator]

        async def first_of(generator):
            async for item in generator:
                await generator.aclose()
                return item

        async def later(fails):
            return await items(await read_later(fails))

        ways = {
            "sync": (lambda fails: list(read(fails)), lambda: next(read(False))),
            "async": (lambda fails: asyncio.run(items(read_async(fails))), lambda: asyncio.run(first_of(read_async(False)))),
            "later": (lambda fails: asyncio.run(later(fails)), None),
        }
        for name, (all_of, one_of) in ways.items():
            with self.subTest(name), self.session(budget={"max_calls": 4}, disclose=True) as session:
                self.assertEqual(all_of(False), [1, 2])
                with self.assertRaises(ZeroDivisionError):
                    all_of(True)
                if one_of:
                    self.assertEqual(one_of(), 1)
            ended = [(entry["output"], entry["is-error"]) for entry in self.entries(session) if entry["type"] == "tool-result"]
            stopped = [({"error": "GeneratorExit"}, True)] if one_of else []
            self.assertEqual(ended, [([1, 2], False), ({"error": "ZeroDivisionError"}, True), *stopped])

    def test_decorated_tools_run_in_parallel_and_find_their_session_in_threads_of_asyncio(self):
        barrier = threading.Barrier(2, timeout=30)

        @tabellion.tool(name="crm.read")
        def read(ticket):
            barrier.wait()
            return ticket

        async def calls():
            return await asyncio.gather(*(asyncio.to_thread(read, ticket) for ticket in (1, 2)))

        with self.session(budget={"max_calls": 2}, disclose=True) as session:
            self.assertEqual(asyncio.run(calls()), [1, 2])
        outputs = [entry["output"] for entry in self.entries(session) if entry["type"] == "tool-result"]
        self.assertEqual(sorted(outputs), [1, 2])

    def test_a_result_that_json_does_not_have_reaches_the_caller_and_is_recorded_as_text(self):
        class Silent:
            def __str__(self):
                raise ValueError

        cycle, deep = [], []
        cycle.append(cycle)
        for _ in range(100):
            deep = [deep]
        results = {
            "nan": (math.nan, "nan"),
            "cycle": (cycle, "[[...]]"),
            "name": ({(1, 2): 3}, "{(1, 2): 3}"),
            "surrogate": ("\ud800", "?"),
            "no text": (Silent(), "Silent"),
            "object": ({"a": b"b"}, {"a": "b'b'"}),
        }
        for name, (result, recorded) in results.items():
            with self.subTest(name), self.session(disclose=True) as session:
                self.assertIs(session.run("crm.read", lambda: result, {}), result)
            with self.subTest(name):
                self.assertEqual(self.entries(session)[-1]["output"], recorded)
        for result in (deep, *(result for result, _ in results.values())):
            with self.session() as session:
                session.run("crm.read", lambda: result, {})
            self.assertIn("digest", self.entries(session)[-1]["output"])

    def fill(self, session):
        """Adds messages until the record has no room for another call."""
        for halvings in range(16):
            session.message("user", "x" * ((4 << 20) >> halvings))

    def test_a_record_that_is_full_denies_calls_and_can_be_signed(self):
        for disclose in (True, False):
            with self.subTest(disclose=disclose), self.session(budget={"max_calls": 20_000}, disclose=disclose) as session:
                begun = [session.begin("crm.read", {"ticket": ticket}) for ticket in range(2)]
                if disclose:
                    self.fill(session)
                else:
                    session._entries._free = 1000
                for _ in range(2):
                    with self.assertRaisesRegex(tabellion.Denied, "record_full"):
                        session.run("crm.read", self.fail, {})
                for call in begun:
                    call.finish("y" * 10_000, verdict={"verdict": "served", "more": "z" * 10_000})
            self.assertLessEqual(len(session.record.bytes), 8 << 20)
            self.assertEqual(tabellion.check_content(session.record.bytes), "complete")
            entries = self.entries(session)
            self.assertEqual([entry.get("event-type") for entry in entries].count("record-full"), 1)
            results = [entry for entry in entries if entry["type"] == "tool-result"]
            self.assertEqual([(list(entry["output"]), list(entry["vap-verdict"])) for entry in results], [(["digest"], ["digest"])] * 2)
            session.close()

    def test_a_result_for_which_the_record_has_no_room_is_recorded_as_its_digest(self):
        large = "y" * 9_000_000
        with self.session(disclose=True) as session:
            self.assertIs(session.run("crm.read", lambda: large, {}), large)
        self.assertEqual(self.entries(session)[-1]["output"], {"digest": core.digest_json(large)})

    def test_the_error_that_ends_a_session_is_in_a_full_record(self):
        session = self.session(disclose=True)
        with self.assertRaises(ZeroDivisionError), session:
            self.fill(session)
            1 / 0
        self.assertEqual(self.entries(session)[-1]["data"], {"error": "ZeroDivisionError"})

    def test_a_record_that_cannot_be_signed_is_saved_as_json(self):
        session = self.session(issuer="x" * 9000)
        session.run("crm.read", lambda: 1, {})
        for _ in range(2):
            with self.assertRaises(tabellion.CoreError):
                session.close()
        saved = json.loads(session._save_as.with_name("s.cose.json").read_bytes())
        self.assertEqual([entry["type"] for entry in saved["session"]["entries"]], ["system-event", "tool-call", "tool-result"])

    def test_a_session_that_two_threads_close_is_registered_once(self):
        receipt = bytes.fromhex(vector()["receipts"][0])

        def slowly():
            time.sleep(0.5)
            return receipt

        with Service((201, {}, slowly), (201, {}, slowly)) as service:
            session = self.session(log=tabellion.Client(service.url))
            with ThreadPoolExecutor(2) as pool:
                closed = [pool.submit(session.close) for _ in range(2)]
                first, second = (each.result() for each in closed)
            self.assertEqual(len(service.requests), 1)
        self.assertIs(first, second)
        self.assertEqual([file.name for file in session._save_as.parent.iterdir()], ["s.cose"])

    def test_a_record_that_was_not_saved_is_saved_when_the_session_is_closed_again(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = Path(folder.name) / "later/s.cose"
        session = self.session(save_as=file)
        with self.assertRaises(FileNotFoundError):
            session.close()
        file.parent.mkdir()
        session.close()
        self.assertEqual(file.read_bytes(), session.record.bytes)

    def test_a_text_that_is_not_unicode_does_not_spoil_the_record(self):
        with self.session() as session:
            session.begin("crm.read", {}, call_id="\ud800").finish(1)
        self.assertEqual(self.entries(session)[-1]["call-id"], "?")

    def test_after_the_end_of_a_session_no_call_is_made(self):
        with self.session(budget={"max_calls": 2}) as session:
            unfinished = session.begin("crm.read", {})
        with self.assertRaisesRegex(tabellion.Denied, "session_ended"):
            session.run("crm.read", self.fail, {})
        unfinished.finish(1)
        self.assertEqual([entry["type"] for entry in self.entries(session)], ["system-event", "tool-call"])

    def test_the_error_that_ends_a_session_passes_if_its_log_is_not_reachable(self):
        with Service() as service:
            log = tabellion.Client(service.url)
        session = self.session(log=log)
        with self.assertRaises(ZeroDivisionError), self.assertWarnsRegex(RuntimeWarning, "not registered: cannot reach"):
            with session:
                1 / 0
        self.assertEqual(self.entries(session)[-1]["event-type"], "session-failed")

    def test_a_call_that_was_withdrawn_does_not_count(self):
        with self.session() as session:
            call = session.begin("crm.read", {})
            for _ in range(2):
                call.withdraw(PermissionError())
            session.run("crm.read", lambda: 1, {})
            with self.assertRaisesRegex(tabellion.Denied, "budget_exceeded"):
                session.begin("crm.read", {})

    def test_an_observed_call_beyond_the_budget_is_recorded_and_gives_no_other_call_back(self):
        with self.session(budget={"max_calls": 1}) as session:
            session.observe("crm.read", {}).finish(1)
            session.observe("crm.read", {}).withdraw(PermissionError())
            with self.assertRaisesRegex(tabellion.Denied, "budget_exceeded"):
                session.begin("crm.read", {})
        events = [entry["event-type"] for entry in self.entries(session) if entry["type"] == "system-event"]
        self.assertEqual(events, ["vap-commitment", "call-out-of-bounds", "call-denied"])

    def test_only_admitted_calls_count_and_a_call_in_flight_keeps_its_place(self):
        denied = {"verdict": "denied"}
        with self.session(budget={"max_calls": 2}) as session:
            first, second = session.begin("crm.read", {}), session.begin("crm.read", {})
            with self.assertRaisesRegex(tabellion.Denied, "budget_exceeded"):
                session.begin("crm.read", {})
            first.finish(None, is_error=True, verdict=denied)
            first.finish(None, is_error=True, verdict=denied)
            second.finish(None, is_error=True, verdict={"verdict": "served"})
            session.run("crm.read", lambda: 1, {})
            with self.assertRaisesRegex(tabellion.Denied, "budget_exceeded"):
                session.begin("crm.read", {})

    def test_a_call_that_cannot_be_signed_does_not_count(self):
        with self.session() as session:
            with self.assertRaises(tabellion.CoreError):
                session.begin("crm.read", {}, rationale="x" * 1_000_000)
            session.run("crm.read", lambda: 1, {})

    def test_arguments_that_an_intent_cannot_have_are_denied_and_do_not_count(self):
        cycle = []
        cycle.append(cycle)
        for disclose, depth in ((False, 130), (True, 60)):
            deep = json.loads("[" * depth + "]" * depth)
            unusable = [math.nan, math.inf, "\ud800", {(1, 2): 3}, cycle, deep]
            with self.session(disclose=disclose) as session:
                for value in unusable:
                    with self.subTest(value), self.assertRaises(tabellion.Denied) as raised:
                        session.run("crm.read", self.fail, {"value": value})
                    self.assertEqual(raised.exception.code, "malformed")
                with self.assertRaises(tabellion.Denied) as raised:
                    session.run("crm.\ud800", self.fail, {})
                self.assertEqual(raised.exception.code, "malformed")
                session.run("crm.read", lambda: 1, {})
            denied = [entry["data"] for entry in self.entries(session) if entry.get("event-type") == "call-denied"]
            expected = [{"tool": "crm.read", "reason": "malformed"}] * len(unusable)
            self.assertEqual(denied, [*expected, {"tool": "crm.?", "reason": "malformed"}])

    def test_a_text_is_no_list_of_patterns(self):
        for scope in ({"tools": "crm.*"}, {"deny": "crm.*"}):
            with self.assertRaisesRegex(TypeError, "list of patterns"):
                self.session(**scope)

    def test_an_empty_list_of_denied_tools_is_as_none(self):
        commitments = [self.session(session_id="session-0123456789", **more).commitment for more in ({"deny": []}, {"deny": ()})]
        for commitment in commitments:
            self.assertNotIn("tools_deny", commitment.message["scope"])
        self.assertEqual(commitments[0].digest, commitments[1].digest)

    def test_a_commitment_or_an_amendment_that_must_be_confirmed_is_not_in_force(self):
        verdict = {"verdict": "clarify", "verification": {"reason": "approval_required"}}
        with self.session() as session:
            vap = VapClient(Server(verdict), session)
            for message in (vap.commit(), vap.amend("more", add_scope={"tools_allow": ["mail.*"]})):
                with self.assertRaisesRegex(tabellion.Denied, "is not in force") as raised:
                    asyncio.run(message)
                self.assertEqual(raised.exception.code, "approval_required")
            self.assertIsNone(vap.commitment_verdict)
            with self.assertRaisesRegex(tabellion.Denied, "scope_escape"):
                session.begin("mail.send", {})
        declared = [entry["data"] for entry in self.entries(session) if entry.get("event-type") == "vap-declaration"]
        self.assertEqual([data["vap-verdict"] for data in declared], [verdict, verdict])

    def test_a_verdict_that_is_no_object_is_an_error(self):
        for verdict in ("served", 7, [], [{"verdict": "served"}], True, False, "", 0):
            for key in (None, json.dumps(KEY.jwk)):
                with self.subTest(verdict=verdict, key=key), self.session() as session:
                    for message in ("commit", "call"):
                        vap = VapClient(Server(verdict), session, gateway_key=key)
                        with self.assertRaisesRegex(tabellion.Denied, "a Verdict that is not an object") as raised:
                            asyncio.run(vap.commit() if message == "commit" else vap.call_tool("crm.read", {}))
                        self.assertEqual(raised.exception.code, "no_verdict")

    def test_all_that_a_tool_gives_is_recorded(self):
        text = [{"type": "text", "text": "100"}]
        results = [
            ({"content": text}, text),
            ({"content": text, "resultType": "complete", "isError": True}, text),
            ({"structuredContent": {"balance": 100}}, {"content": [], "structuredContent": {"balance": 100}}),
        ]
        for given, recorded in results:
            with self.subTest(given), self.session(disclose=True) as session:
                asyncio.run(VapClient(Server({"verdict": "served"}, **given), session).call_tool("crm.read", {}))
            self.assertEqual(self.entries(session)[-1]["output"], recorded)

    def test_a_session_without_a_budget_is_refused_as_a_gateway_would(self):
        with self.assertRaises(tabellion.CoreError) as raised:
            self.session(budget={})
        self.assertEqual(raised.exception.code, "no_budget")


if __name__ == "__main__":
    unittest.main()
