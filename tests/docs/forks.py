"""`glfm` by processes forked from one that has everything imported: a second each is saved.

A script sends its arguments, folder, environment and open files to the server, by a socket of
Unix; the fork takes them over, runs as `python -m glfm_cli` would, and its status goes back.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

# What commands import when they need it.
MODULES = ("matplotlib.figure", "matplotlib.backends.backend_agg", "scipy.stats", "scipy.optimize")
MODULES += ("glfm_cli.completion", "glfm_cli.evaluation", "glfm_cli.exploration")
MODULES += ("glfm_cli.classification", "glfm_cli.acquisition", "glfm_cli.diagnosis")
COMMANDS = ("impute", "explore", "evaluate", "classify", "suggest", "diagnose", "types")
CLIENT = """\
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
said = json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(said).to_bytes(8, "big")], [0, 1, 2])
server.sendall(said)
answer = server.recv(1)
sys.exit(answer[0] if answer else 1)
"""


def serve(address: str) -> None:
    """Fork for every connection, until this process is ended."""
    for name in (*MODULES, *(f"glfm_cli.cli.{command}" for command in COMMANDS)):
        import_module(name)
    signal.signal(signal.SIGCHLD, _collect)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        print(flush=True)  # ready
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _take_over(connection)
            connection.close()


def _collect(*_: object) -> None:
    """Let ended forks go, their time counted."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _take_over(connection: socket.socket) -> None:
    """Be the process that a client asks for, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, files, _, _ = socket.recv_fds(connection, 8, 3)
    said = b""
    while len(said) < int.from_bytes(head, "big"):
        said += connection.recv(1 << 16)
    arguments, folder, environment = json.loads(said)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments
    sys.stdin, sys.stdout, sys.stderr = (open(n, mode) for n, mode in enumerate("rww"))  # noqa: SIM115
    status = 1
    try:
        import_module("glfm_cli.cli.app").main()
    except SystemExit as end:
        status = int(end.code or 0)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):  # a pipe that was closed
                stream.flush()
        connection.send(bytes([status]))
        os._exit(status)


@contextlib.contextmanager
def forking(folder: Path, repository: Path) -> Iterator[str]:
    """Serve while the context lasts; gives the shell's words that run `glfm`."""
    address, client = folder / "socket", folder / "client.py"
    client.write_text(CLIENT)
    server = subprocess.Popen(
        [sys.executable, __file__, str(address)],
        env={**os.environ, "PYTHONPATH": str(repository)},
        stdout=subprocess.PIPE,
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"\n"
        yield f'"{sys.executable}" -S -E "{client}" "{address}"'
    finally:
        server.kill()
        server.communicate()


if __name__ == "__main__":
    serve(sys.argv[1])
