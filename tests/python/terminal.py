"""Runs a program in a pseudo terminal of 80 columns and 24 lines, and types at it.

Arguments: the program and its arguments. Standard input: JSON with `folder`, its working folder, and `steps`, each of
{"until": TEXT}: wait until the screen has the text; {"type": TEXT}; {"run": [COMMAND, …]} in the folder;
{"kill": PID}; {"signal": NUMBER} to the program. After the steps the program must end by itself.

Prints JSON: `code`, its exit code, negative for a signal; `screens`, the screen after each step; `is_restored`, whether
the modes of the terminal are as before; `modes`, the private modes that are set at the end, such as 1049 for the
alternate screen; `output`, all that it wrote.
"""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

COLUMNS, LINES = 80, 24
PATIENCE = 60  # seconds for one step
SEQUENCE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")


class Screen:
    """What a terminal would show, as far as the sequences are those that termion writes."""

    def __init__(self):
        self.rows = [[" "] * COLUMNS for _ in range(LINES)]
        self.row = self.column = 0
        self.modes = set()
        self.rest = ""

    def write(self, text):
        text = self.rest + text
        self.rest = ""
        while text:
            if text[0] == "\x1b":
                found = SEQUENCE.match(text)
                if not found:
                    if len(text) > 20:
                        raise SystemExit(f"an unknown sequence: {text[:20]!r}")
                    self.rest = text
                    return
                self.control(*found.groups())
                text = text[found.end() :]
            else:
                self.put(text[0])
                text = text[1:]

    def control(self, private, parameters, command):
        numbers = [int(number) for number in parameters.split(";") if number]
        if private:
            (self.modes.add if command == "h" else self.modes.discard)(numbers[0])
        elif command == "H":
            row, column = (numbers + [1, 1])[:2]
            self.row, self.column = row - 1, column - 1
        elif command == "J":
            self.rows = [[" "] * COLUMNS for _ in range(LINES)]
        elif command == "K":
            self.rows[self.row][self.column :] = [" "] * (COLUMNS - self.column)
        elif command != "m":
            raise SystemExit(f"an unknown command: {command}")

    def put(self, character):
        if character == "\n":
            self.row = min(self.row + 1, LINES - 1)
        elif character == "\r":
            self.column = 0
        elif character < " ":
            raise SystemExit(f"an unknown control: {character!r}")
        elif self.column < COLUMNS:
            self.rows[self.row][self.column] = character
            self.column += 1

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.rows)


class Session:
    def __init__(self, command, folder):
        self.folder = folder
        self.screen = Screen()
        self.output = b""
        self.terminal, self.program_side = pty.openpty()
        fcntl.ioctl(self.program_side, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.modes = termios.tcgetattr(self.program_side)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TABELLION_")}
        self.environment = {**environment, "HOME": folder, "TERM": "xterm-256color"}
        self.program = subprocess.Popen(
            command,
            cwd=folder,
            env=self.environment,
            stdin=self.program_side,
            stdout=self.program_side,
            stderr=self.program_side,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def read(self, seconds):
        """Reads what the program writes; False if that is nothing."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return False
        before = self.output.decode(errors="ignore")
        self.output += os.read(self.terminal, 65536)
        self.screen.write(self.output.decode(errors="ignore")[len(before) :])
        return True

    def until(self, text):
        end = time.monotonic() + PATIENCE
        while text not in self.screen.text():
            if not self.read(1) and (time.monotonic() > end or self.program.poll() is not None):
                raise SystemExit(f"the screen never had {text!r}:\n{self.screen.text()}")

    def take(self, step):
        if "until" in step:
            self.until(step["until"])
        elif "type" in step:
            os.write(self.terminal, step["type"].encode())
        elif "run" in step:
            subprocess.run(step["run"], cwd=self.folder, env=self.environment, check=True, stdout=subprocess.DEVNULL)
        elif "kill" in step:
            os.kill(step["kill"], 9)
        else:
            os.kill(self.program.pid, step["signal"])
        return self.screen.text()

    def end(self):
        end = time.monotonic() + PATIENCE
        while self.program.poll() is None:
            self.read(0.05)
            if time.monotonic() > end:
                self.program.kill()
                raise SystemExit(f"the program does not end:\n{self.screen.text()}")
        while self.read(0):
            pass
        return self.program.returncode


def main():
    given = json.load(sys.stdin)
    session = Session(sys.argv[1:], given["folder"])
    screens = [session.take(step) for step in given["steps"]]
    result = {
        "code": session.end(),
        "screens": screens,
        "is_restored": termios.tcgetattr(session.program_side) == session.modes,
        "modes": sorted(session.screen.modes),
        "output": session.output.decode(errors="replace"),
    }
    json.dump(result, sys.stdout)


main()
