"""Serves the files of the current folder over HTTP: `files.py HOST PORT`. Prints its URL as JSON."""

import json
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

server = ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), SimpleHTTPRequestHandler)
host, port = server.server_address
print(json.dumps({"url": f"http://{host}:{port}"}), flush=True)
server.serve_forever()
