"""Replicas behind one address with Ray Serve: `pip install "ray[serve]"`.

    ray.serve.run(candor.ray_serve.application("/models/m.gguf", replicas=2, cpus_each=8))

Each replica is a `candor serve` of its own; the address answers what that answers. Prompts that begin alike go to the same
replica, whose prefix cache then has their beginning, as long as it keeps up."""

from __future__ import annotations

import hashlib
import json
from typing import Any, AsyncIterator, List, Optional

from .errors import CandorError
from .server import serve as start_server

try:
    import aiohttp
    from ray import serve
    from ray.serve.config import RequestRouterConfig
    from ray.serve.request_router import PendingRequest, RequestRouter, RunningReplica
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
except ImportError:
    raise CandorError('candor.ray_serve needs Ray Serve: pip install "ray[serve]"') from None

# Instructions and tools of so many bytes are worth a replica of their own; shorter ones go with the first words.
_LONG_INSTRUCTIONS = 256
_MOST_BYTES = 1024


def prefix_of(body: bytes) -> bytes:
    """What requests share whose prompts begin alike: long instructions, or the conversation's first message; empty where a
    body has no prompt. Any interface."""
    try:
        fields = json.loads(body)
    except ValueError:
        return b""
    if not isinstance(fields, dict):
        return b""
    prompt = next((fields[name] for name in ("messages", "prompt", "input") if name in fields), None)
    if prompt is None:
        return b""
    turns = [turn for turn in prompt if isinstance(turn, dict)] if isinstance(prompt, list) else []
    told = [turn for turn in turns if turn.get("role") in ("system", "developer")]
    before = _bytes_of([fields.get(name) for name in ("tools", "system", "instructions")] + told)
    if len(before) >= _LONG_INSTRUCTIONS:
        return before[:_MOST_BYTES]
    others = [turn for turn in turns if turn not in told]
    return before + _bytes_of(others[0] if others else prompt)[:_MOST_BYTES]


def _bytes_of(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


class PrefixRouter(RequestRouter):  # type: ignore[misc]
    """Prefers the replica that a prompt's beginning belongs to (by rendezvous hashing: a replica that comes or goes moves
    only its own share); then any other."""

    async def choose_replicas(self, candidate_replicas: List[RunningReplica],
                              pending_request: Optional[PendingRequest] = None) -> List[List[RunningReplica]]:
        arguments: List[Any] = list(pending_request.args) if pending_request is not None else []
        prefix = prefix_of(arguments[2]) if len(arguments) > 2 else b""
        if not prefix:
            return [list(candidate_replicas)]

        def weight(replica: RunningReplica) -> bytes:
            return hashlib.blake2b(replica.replica_id.unique_id.encode() + b"\0" + prefix, digest_size=8).digest()

        ranked = sorted(candidate_replicas, key=weight, reverse=True)
        return [[replica] for replica in ranked]


class Replica:
    """A server with a model."""

    def __init__(self, model: str | None, options: dict[str, Any]) -> None:
        self._server = start_server(model, **options)
        self._client: aiohttp.ClientSession | None = None

    async def answer(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> AsyncIterator[Any]:
        """The status and headers, then the body's parts as they come."""
        if self._client is None:
            self._client = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        async with self._client.request(method, self._server.url + path, data=body, headers=headers) as reply:
            kept = {name: value for name, value in reply.headers.items() if name.lower().startswith(("content-type", "x-"))}
            yield reply.status, kept
            async for part in reply.content.iter_any():
                yield part

    def check_health(self) -> None:
        self._server.get("/health")

    def __del__(self) -> None:
        server = getattr(self, "_server", None)
        if server is not None:
            server.close()


class Ingress:
    """The address: hands each request to a replica."""

    def __init__(self, replicas: Any) -> None:
        self._replicas = replicas.options(stream=True)

    async def __call__(self, request: Request) -> StreamingResponse:
        headers = {name: value for name, value in request.headers.items() if name in ("content-type", "accept")}
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        parts = self._replicas.answer.remote(request.method, target, await request.body(), headers)
        status, kept = await parts.__anext__()
        return StreamingResponse(parts, status_code=status, headers=kept)


def application(model: str | None = None, *, replicas: int = 1, cpus_each: int = 1, max_ongoing: int = 64,
                **options: Any) -> Any:
    """For ray.serve.run(). Each replica has cpus_each threads; other options are those of candor.serve()."""
    chosen = {"threads": cpus_each, **options}
    behind = serve.deployment(Replica, num_replicas=replicas, max_ongoing_requests=max_ongoing,
                              ray_actor_options={"num_cpus": cpus_each},
                              request_router_config=RequestRouterConfig(request_router_class=PrefixRouter))
    return serve.deployment(Ingress, ray_actor_options={"num_cpus": 0}).bind(behind.bind(model, chosen))
