"""Replicas with Ray Serve: the answers of one server, prompts that begin alike at one replica. Exit code 77 where Ray Serve
is not installed."""

import json
import os
import socket
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

# A driver, and what it starts, in the background.
os.environ.setdefault("RAY_SERVE_LOG_TO_STDERR", "0")
try:
    import ray
    from ray import serve
except ImportError:
    sys.exit(77)

import candor
import candor.ray_serve
from test_ray import wait_for_the_end

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    PORT = free.getsockname()[1]
SYSTEMS = [f"A story of number {n} " * 20 for n in range(20)]


def asked(system, number):
    return {"messages": [{"role": "system", "content": system}, {"role": "user", "content": f"Tell me of {number}"}],
            "max_tokens": 8, "seed": number}


def post(body, path="/v1/chat/completions"):
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return reply.read()


class RayServeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ray.init(_temp_dir=cls.folder.name, num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="error")
        serve.start(http_options={"host": "127.0.0.1", "port": PORT})
        serve.run(candor.ray_serve.application(replicas=2, cpus_each=1))

    @classmethod
    def tearDownClass(cls):
        serve.shutdown()
        ray.shutdown()
        wait_for_the_end(cls.folder.name)
        cls.folder.cleanup()

    def test_prompts_that_begin_alike_meet_at_one_replica(self):
        homes = {}
        with candor.serve(threads=1) as server:
            for number in range(3):
                for system in SYSTEMS:
                    reply = json.loads(post(asked(system, number)))
                    homes.setdefault(system, set()).add(reply["id"].split("-")[1][:8])
                    alone = server.post("/v1/chat/completions", asked(system, number))
                    self.assertEqual(reply["choices"], alone["choices"])
        self.assertTrue(all(len(replicas) == 1 for replicas in homes.values()), homes)
        self.assertEqual(len(set.union(*homes.values())), 2, "one replica answers everything")

    def test_streams_and_errors_come_through(self):
        events = post({**asked(SYSTEMS[0], 1), "stream": True}).decode().split("\n\n")
        self.assertEqual(events[-2], "data: [DONE]")
        self.assertGreater(len(events), 5)
        with self.assertRaises(urllib.error.HTTPError) as raised:
            post({**asked(SYSTEMS[0], 1), "temperature": -1})
        self.assertEqual(raised.exception.code, 400)
        self.assertIn(b"temperature is -1", raised.exception.read())


class PrefixTest(unittest.TestCase):
    def test_of_any_body(self):
        same = [candor.ray_serve.prefix_of(json.dumps(asked("x" * 2000, number)).encode()) for number in (1, 2)]
        self.assertEqual(candor.ray_serve.prefix_of(json.dumps({"prompt": "y" * 4000}).encode()),
                         candor.ray_serve.prefix_of(json.dumps({"prompt": "y" * 4000 + "z"}).encode()))
        self.assertNotEqual(same[0], b"")
        for body in (b"", b"{", b"[1]", b"5", b'{"a":1}', b"\xff"):
            self.assertEqual(candor.ray_serve.prefix_of(body), b"")


if __name__ == "__main__":
    unittest.main(verbosity=2)
