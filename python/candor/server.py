"""The server as a child process, for scripts and tests."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from pathlib import Path
from typing import Any

from .errors import CandorError, NotFound


def find_program() -> str:
    """The candor program: CANDOR_PROGRAM, the package's own, or the one on PATH."""
    named = os.environ.get("CANDOR_PROGRAM")
    if named:
        return named
    own = Path(__file__).parent / "bin" / "candor"
    found = str(own) if own.exists() else shutil.which("candor")
    if found is None:
        raise NotFound("there is no candor program: it is not in this package, and not on PATH", "program")
    return found


class Server:
    """`url` is where it answers. Ended by `with`, by close(), or with this process."""

    def __init__(self, model: str | None = None, *, port: int = 0, **options: Any) -> None:
        """Options are those of `candor serve`: threads=4 is --threads 4, no_ui=True is --no-ui."""
        command = [find_program(), "serve", "--port", str(port)]
        if model is not None:
            command += ["-m", os.fspath(model)]
        for name, value in options.items():
            word = "--" + name.replace("_", "-")
            command += [word] if value is True else [] if value in (None, False) else [word, str(value)]
        import subprocess  # here and below: what takes longer to import than the rest of the package

        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        self.log: list[str] = []
        self.url = ""
        self._wait_for_address()
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()

    def _wait_for_address(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.log.append(line)
            found = re.search(r"https?://[0-9a-z.:\[\]]+", line)
            if found:
                self.url = found.group().rstrip("/")
                return
        code = self._process.wait()
        self._process.stderr.close()
        raise CandorError(f"candor serve ended with {code}: {''.join(self.log).strip()}")

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.log.append(line)

    def get(self, path: str) -> Any:
        """JSON of a route."""
        import urllib.request

        with urllib.request.urlopen(self.url + path, timeout=60) as reply:
            return json.load(reply)

    def post(self, path: str, body: Any) -> Any:
        """JSON of a route that is given JSON."""
        import urllib.request

        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as reply:
            return json.load(reply)

    def close(self) -> int:
        """Ends it in order; its exit code."""
        import subprocess

        if self._process.poll() is None:
            self._process.terminate()
        try:
            code = self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._reader.join()
        if self._process.stderr is not None:
            self._process.stderr.close()
        return code

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        process = getattr(self, "_process", None)
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()


def serve(model: str | None = None, *, port: int = 0, **options: Any) -> Server:
    """Starts a server and waits until it answers: `with candor.serve() as server: server.post(...)`."""
    return Server(model, port=port, **options)
