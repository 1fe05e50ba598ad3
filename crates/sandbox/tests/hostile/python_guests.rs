//! Hostile functions in Python.

use crate::support::Row;

pub const GUESTS: &[Row] = &[
    // Network.
    (
        "TCP to the canary",
        "import socket\ndef main(): socket.create_connection(('127.0.0.1', @PORT@))",
        &["threw OSError: [Errno 38]"],
    ),
    (
        "UDP",
        "import socket\ndef main(): socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        &["threw OSError: [Errno 38]"],
    ),
    (
        "a raw socket",
        "import socket\ndef main(): socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
        &["threw OSError: [Errno 38]"],
    ),
    (
        "a packet socket",
        "import socket\ndef main(): socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        &["threw OSError: [Errno 38]"],
    ),
    (
        "netlink",
        "import socket\ndef main(): socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
        &["threw OSError: [Errno 38]"],
    ),
    (
        "vsock",
        "import socket\ndef main(): socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
        &["threw OSError: [Errno 38]"],
    ),
    (
        "an abstract unix socket",
        "import socket\ndef main(): socket.socket(socket.AF_UNIX).connect('\\0canary')",
        &["threw OSError: [Errno 38]"],
    ),
    ("a socket pair", "import socket\ndef main(): socket.socketpair()", &["threw OSError: [Errno 38]"]),
    (
        "a name to resolve",
        "import socket\ndef main(): socket.getaddrinfo('example.org', 80)",
        &["threw gaierror"],
    ),
    (
        "a web page",
        "import urllib.request\ndef main(): urllib.request.urlopen('http://127.0.0.1:@PORT@/')",
        &["threw URLError"],
    ),
    // Files.
    ("the canary's file", "def main(): return open('@FILE@').read()", &["threw FileNotFoundError"]),
    ("overwriting the canary", "def main(): open('@FILE@', 'w').write('gone')", &["threw FileNotFoundError"]),
    ("a file beside the canary", "def main(): open('@FILE@2', 'w')", &["threw FileNotFoundError"]),
    (
        "the canary by a symbolic link",
        "import os\ndef main():\n os.symlink('@FILE@', '/tmp/link')\n return open('/tmp/link').read()",
        &["threw FileNotFoundError"],
    ),
    (
        "the canary by dots",
        "def main(): return open('/job/../../../..@FILE@').read()",
        &["threw FileNotFoundError"],
    ),
    ("the password file", "def main(): return open('/etc/passwd').read()", &["threw FileNotFoundError"]),
    (
        "home folders",
        "import os\ndef main(): return os.listdir('/root') + os.listdir('/home')",
        &["threw FileNotFoundError"],
    ),
    (
        "the root folder",
        "import os\ndef main(): return sorted(os.listdir('/'))",
        &[r#"returned ["bin","dev","job","lib","lib64","sandbox","tmp","usr"]"#],
    ),
    ("a file in /usr", "def main(): open('/usr/lib/python3/evil.py', 'w')", &["threw OSError: [Errno 30]"]),
    ("a file in the root", "def main(): open('/evil', 'w')", &["threw OSError: [Errno 30]"]),
    ("its own program", "def main(): open('/job/main.py', 'w')", &["threw OSError: [Errno 30]"]),
    ("the driver", "def main(): open('/sandbox/driver.py', 'w')", &["threw OSError: [Errno 30]"]),
    (
        "removing the driver",
        "import os\ndef main(): os.remove('/sandbox/driver.py')",
        &["threw OSError: [Errno 30]"],
    ),
    (
        "a device",
        "import os, stat\ndef main(): os.mknod('/tmp/sda', 0o600 | stat.S_IFBLK, os.makedev(8, 0))",
        &["threw PermissionError"],
    ),
    (
        "devices of the machine",
        "import os\ndef main(): return sorted(os.listdir('/dev'))",
        &[r#"returned ["null","urandom","zero"]"#],
    ),
    (
        "the terminal",
        "def main(): open('/dev/tty', 'w').write('x')",
        &["threw FileNotFoundError", "threw OSError"],
    ),
    (
        "a full disk",
        "def main():\n for i in range(1000): open(f'/tmp/{i}', 'wb').write(b'x' * (1 << 20))",
        &["threw OSError: [Errno 28]"],
    ),
    (
        "a huge file",
        "def main():\n f = open('/tmp/big', 'wb')\n f.truncate(1 << 40)",
        &["threw OSError: [Errno 27]"],
    ),
    (
        "all descriptors",
        "import os\ndef main():\n for _ in range(10000): os.dup(1)",
        &["threw OSError: [Errno 24]"],
    ),
    (
        "inherited descriptors",
        "import os\ndef main():\n null = os.stat('/dev/null').st_rdev\n return [fd for fd in range(4, 64) if leads_to(fd) not in (None, null)]\ndef leads_to(fd):\n try: return os.fstat(fd).st_rdev\n except OSError: return None",
        &["returned []"],
    ),
    // Processes.
    (
        "processes of others",
        "import os\ndef main(): return os.listdir('/proc')",
        &["threw FileNotFoundError"],
    ),
    (
        "the environment",
        "import os\ndef main(): return sorted(os.environ)",
        &[r#"returned ["HOME","LANG","PATH","PWD","PYTHONDONTWRITEBYTECODE","PYTHONHASHSEED"]"#],
    ),
    (
        "killing everything",
        "import os\ndef main():\n os.kill(-1, 9)\n return 'alone'",
        &["threw ProcessLookupError", "returned \"alone\"", "crashed SIGKILL"],
    ),
    (
        "killing the first process",
        "import os\ndef main():\n os.kill(1, 9)\n return 'still here'",
        &["returned \"still here\""],
    ),
    ("few process numbers", "import os\ndef main(): return os.getpid() < 10", &["returned true"]),
    ("a fork bomb", "import os\ndef main():\n while True: os.fork()", &["threw BlockingIOError"]),
    (
        "a thread bomb",
        "import threading, time\ndef main():\n while True: threading.Thread(target=time.sleep, args=(60,)).start()",
        &["threw RuntimeError: can't start new thread", "out of memory"],
    ),
    (
        "a child that stays",
        "import os, time\ndef main():\n if os.fork() == 0:\n  os.setsid()\n  time.sleep(60)\n return 'done'",
        &["returned \"done\""],
    ),
    ("root by setuid", "import os\ndef main(): os.setuid(0)\n", &["threw PermissionError", "threw OSError"]),
    (
        "root by a setuid program",
        "import subprocess\ndef main(): return subprocess.run(['/usr/bin/su', '-c', 'id'], capture_output=True).returncode != 0",
        &["returned true"],
    ),
    (
        "a setuid file",
        "import os, shutil\ndef main():\n shutil.copy('/usr/bin/id', '/tmp/id')\n os.chmod('/tmp/id', 0o4755)\n return os.stat('/tmp/id').st_uid == os.getuid() != 0",
        &["returned true"],
    ),
    ("priority", "import os\ndef main(): os.nice(-10)", &["threw PermissionError"]),
    (
        "greater limits",
        "import resource\ndef main(): resource.setrlimit(resource.RLIMIT_NPROC, (9999, 9999))",
        &["threw ValueError: not allowed"],
    ),
    ("another root", "import os\ndef main(): os.chroot('/tmp')", &["threw OSError: [Errno 38]"]),
    (
        "another host name",
        "import socket\ndef main(): socket.sethostname('evil')",
        &["threw OSError: [Errno 38]"],
    ),
    (
        "shared memory",
        "from multiprocessing import shared_memory\ndef main(): shared_memory.SharedMemory(create=True, size=1 << 30)",
        &["threw FileNotFoundError", "threw OSError", "threw PermissionError"],
    ),
    // Memory, time and output.
    ("one large allocation", "def main(): return len(b'x' * (1 << 40))", &["out of memory"]),
    (
        "many allocations",
        "def main():\n all = []\n while True: all.append(b'x' * (1 << 20))",
        &["out of memory"],
    ),
    ("a huge string", "def main(): return 'x' * (1 << 31)", &["out of memory"]),
    ("a mapping", "import mmap\ndef main(): mmap.mmap(-1, 1 << 32)", &["threw OSError: [Errno 12]"]),
    ("endless recursion", "def main(): return main()", &["threw RecursionError"]),
    (
        "endless recursion without a bound",
        "import sys\nsys.setrecursionlimit(1 << 30)\ndef main(): return [main()]",
        &["crashed SIGSEGV", "out of memory", "threw SystemError"],
    ),
    ("much output", "def main():\n while True: print('spam' * 1000)", &["too much output"]),
    (
        "much output on standard error",
        "import sys\ndef main():\n while True: sys.stderr.write('spam' * 1000)",
        &["too much output"],
    ),
    ("a long result", "def main(): return 'x' * 30000", &["too much output"]),
    ("a long exception", "def main(): raise ValueError('x' * 1000000)", &["threw ValueError: xxx"]),
    // Results.
    (
        "a forged result",
        "import os\ndef main():\n os.write(3, b'returned\\n\"forged\"')\n return 1",
        &["not json "],
    ),
    (
        "half a result",
        "import os\ndef main():\n os.write(3, b'returned\\n{\"a\":')\n os._exit(0)",
        &["not json "],
    ),
    (
        "a result that is not text",
        "import os\ndef main():\n os.write(3, b'returned\\n\\xff\\xfe')\n os._exit(0)",
        &["not json it is not UTF-8"],
    ),
    ("a result without a kind", "import os\ndef main():\n os.write(3, b'1')\n os._exit(0)", &["exited 0"]),
    (
        "endless results",
        "import os\ndef main():\n while True: os.write(3, b'x' * 65536)",
        &["too much output"],
    ),
    ("a closed channel", "import os\ndef main(): os.close(3)", &["exited 1"]),
    ("all descriptors closed", "import os\ndef main():\n os.closerange(0, 64)\n os._exit(0)", &["exited 0"]),
    ("an exit code", "import os\ndef main(): os._exit(7)", &["exited 7"]),
    ("a quiet exit", "import sys\ndef main(): sys.exit(0)", &["threw SystemExit: 0"]),
    ("an exit while loading", "raise SystemExit(3)", &["not loaded SystemExit: 3"]),
    ("an abort", "import os\ndef main(): os.abort()", &["crashed SIGABRT"]),
    ("a signal to itself", "import os\ndef main(): os.kill(os.getpid(), 9)", &["crashed SIGKILL"]),
    ("a wild pointer", "import ctypes\ndef main(): ctypes.string_at(8)", &["crashed SIGSEGV"]),
    (
        "JSON that lies",
        "import json\njson.dumps = lambda *a, **k: 'lie'\ndef main(): return 1",
        &["returned 1"],
    ),
    ("not a number", "def main(): return float('nan')", &["not json ValueError"]),
    ("a value that JSON does not have", "def main(): return {1, 2}", &["not json TypeError"]),
    (
        "an exception that cannot be described",
        "class E(Exception):\n def __str__(self): raise self\ndef main(): raise E",
        &["threw E"],
    ),
    (
        "a driver whose parts are gone",
        "import os\nos.write = None\nos._exit = None\ndef main(): return 1",
        &["exited 1"],
    ),
    (
        "streams that are gone",
        "import sys\nsys.stdout = sys.stderr = None\ndef main(): return 1",
        &["returned 1"],
    ),
];

/// Guests that do not end by themselves, or not soon.
pub const ENDLESS: &[Row] = &[
    ("a huge number", "def main(): return 10 ** (10 ** 9)", &["out of memory", "out of time"]),
    ("an endless loop", "def main():\n while True: pass", &["out of time"]),
    ("a long sleep", "import time\ndef main(): time.sleep(1000)", &["out of time"]),
    (
        "a sleep without descriptors",
        "import os, time\ndef main():\n os.closerange(0, 64)\n time.sleep(1000)",
        &["out of time"],
    ),
    (
        "signals ignored",
        "import signal\ndef main():\n for s in range(1, 65):\n  try: signal.signal(s, signal.SIG_IGN)\n  except (OSError, ValueError): pass\n while True: pass",
        &["out of time"],
    ),
    ("a catastrophic pattern", "import re\ndef main(): re.match('(a+)+$', 'a' * 64 + 'b')", &["out of time"]),
    ("an endless loop while loading", "while True: pass", &["out of time"]),
    (
        "a stopped process",
        "import os, signal\ndef main(): os.kill(os.getpid(), signal.SIGSTOP)",
        &["out of time"],
    ),
    (
        "busy children",
        "import os\ndef main():\n for _ in range(3): os.fork()\n while True: pass",
        &["out of time"],
    ),
];
