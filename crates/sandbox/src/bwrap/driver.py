"""Loads one file of the job, calls one function, hands over the result as JSON on a descriptor of its own.

Results never travel through printed text. The host treats a result as data of the guest, whoever wrote it: code of the job
runs in this process and can do all that the driver can.

Not here: the bounds (memory, time, output), which the host enforces.
"""

import importlib.util
import json
import os
import random
import sys

CHANNEL = 3
CALL = "/sandbox/call.json"


def main():
    sys.path[0] = "/job"  # instead of the driver's folder: files of the job can import each other
    random.seed(0)
    dumps = json.dumps
    kind = b"not loaded\n"  # what an exception means at this point
    try:
        function, arguments = find(**read_call())
        kind = b"threw\n"
        value = function(*arguments)
        kind = b"not json\n"
        result = dumps(value, allow_nan=False, separators=(",", ":"))
        report(b"returned\n", result.encode("ascii"))
    except MemoryError:
        report(b"out of memory\n", b"")
    except BaseException as exception:  # of the job: SystemExit and KeyboardInterrupt as well
        report(kind, describe(exception))
    flush()
    os._exit(0)  # whatever threads and exit handlers the job has left behind


def read_call():
    with open(CALL, encoding="utf-8") as file:
        return json.load(file)


def find(file, function, arguments):
    values = json.loads(arguments)  # before the file of the job runs, which could change the parser
    found = getattr(load(file), function, None)
    if not callable(found):
        raise LookupError(f"{file!r} has no function {function!r}")
    return found, values


def load(file):
    name = os.path.splitext(os.path.basename(file))[0]
    specification = importlib.util.spec_from_file_location(name, os.path.join("/job", file))
    if specification is None:
        raise ImportError(f"{file!r} is not a Python file: its name must end with '.py'")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def describe(exception):
    try:
        return f"{type(exception).__name__}: {exception}"[:4096].encode("utf-8", "replace")
    except BaseException:
        return type(exception).__name__.encode("utf-8", "replace")


def report(kind, text):
    rest = memoryview(kind + text)
    while rest:
        rest = rest[os.write(CHANNEL, rest) :]


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass  # the job has closed or replaced it


main()
