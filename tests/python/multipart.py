"""Multipart bodies as Python's standard library makes them, sent with urllib.

  multipart.py form URL STATEMENT PAYLOAD   registers a detached statement; prints status and Location
  multipart.py encoded URL STATEMENT PAYLOAD  the same in base64, as `email` likes it; prints the status
  multipart.py batch URL STATEMENT...       registers statements in a batch; prints its results
"""

import email.policy
import json
import os
import pathlib
import sys
import urllib.error
import urllib.request
from email.generator import _make_boundary
from email.message import EmailMessage
from email.mime.application import MIMEApplication
from email.mime.multipart import MIMEMultipart


def post(url, content_type, body):
    request = urllib.request.Request(url, data=body, headers={"Content-Type": content_type})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def joined(kind, parts):
    """Headers by `email`, bodies as they are: its own generator would change line ends in them."""
    boundary = _make_boundary()
    body = b""
    for headers, content in parts:
        head = EmailMessage(policy=email.policy.HTTP)
        for name, value in headers.items():
            head[name] = value
        body += b"--" + boundary.encode() + b"\r\n" + head.as_bytes().rstrip(b"\r\n") + b"\r\n\r\n" + content + b"\r\n"
    body += b"--" + boundary.encode() + b"--\r\n"
    return f'multipart/{kind}; boundary="{boundary}"', body


def fields(statement, payload):
    for name, file in (("statement", statement), ("payload", payload)):
        content = pathlib.Path(file).read_bytes()
        disposition = f'form-data; name="{name}"; filename="{os.path.basename(file)}"'
        yield {"Content-Disposition": disposition, "Content-Type": "application/octet-stream"}, content


def form(url, statement, payload):
    status, headers, _ = post(f"{url}/entries", *joined("form-data", fields(statement, payload)))
    return {"status": status, "location": headers.get("Location", headers.get("location"))}


def encoded(url, statement, payload):
    message = MIMEMultipart("form-data")
    for headers, content in fields(statement, payload):
        part = MIMEApplication(content)
        part["Content-Disposition"] = headers["Content-Disposition"]
        message.attach(part)
    _, _, body = message.as_bytes(policy=email.policy.HTTP).partition(b"\r\n\r\n")
    return {"status": post(f"{url}/entries", message["Content-Type"], body)[0]}


def batch(url, *statements):
    parts = [({"Content-Type": "application/cose"}, pathlib.Path(file).read_bytes()) for file in statements]
    status, _, body = post(f"{url}/v1/entries/batch", *joined("mixed", parts))
    return {"status": status, "results": json.loads(body)["results"]}


if __name__ == "__main__":
    print(json.dumps({"form": form, "encoded": encoded, "batch": batch}[sys.argv[1]](sys.argv[2].rstrip("/"), *sys.argv[3:])))
