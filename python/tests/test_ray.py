"""Ray Data over the engine: two workers, one of them killed midway; every row once, each answer one engine's. Exit code 77
where Ray is not installed."""

import glob
import os
import signal
import sys
import tempfile
import threading
import time
import unittest

try:
    import pyarrow
    import pyarrow.parquet as parquet
    import ray
except ImportError:
    sys.exit(77)

import candor
from candor.columns import answer_rows

N_ROWS = int(os.environ.get("CANDOR_TEST_ROWS", "4000"))
OPTIONS: dict = {"max_tokens": 8, "temperature": 0.8}


def prompts(n):
    return [f"Story number {i} is about" for i in range(n)]


def write_source(folder, n, **more):
    path = os.path.join(folder, "source.parquet")
    parquet.write_table(pyarrow.table({"id": list(range(n)), "prompt": prompts(n), **more}), path, row_group_size=512)
    return path


def commands():
    """Process -> its command line."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                found[int(path.split("/")[2])] = file.read()
        except OSError:
            continue
    return found


def worker_processes():
    """Those that hold the model."""
    return [process for process, command in commands().items() if b"ray::" in command and b"_Writer" in command]


def wait_for_the_end(folder):
    """Of Ray's processes, which are told to end and then do."""
    for _ in range(600):
        if not any(folder.encode() in command for command in commands().values()):
            return
        time.sleep(0.1)
    raise AssertionError("processes of Ray are still there")


class RayTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ray.init(_temp_dir=cls.folder.name, num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="error")
        ray.data.DataContext.get_current().enable_progress_bars = False

    @classmethod
    def tearDownClass(cls):
        ray.shutdown()
        wait_for_the_end(cls.folder.name)
        cls.folder.cleanup()

    def predict(self, *args, **options):
        from candor.ray import predict_parquet

        return predict_parquet(*args, **{**OPTIONS, **options})

    def test_a_worker_that_is_killed_costs_no_row(self):
        with tempfile.TemporaryDirectory() as folder:
            source, target = write_source(folder, N_ROWS), os.path.join(folder, "target")
            killed = []

            def kill_one():
                while not glob.glob(os.path.join(target, "part-*.parquet")):
                    time.sleep(0.05)
                killed.extend(worker_processes()[:1])
                for process in killed:
                    os.kill(process, signal.SIGKILL)

            killer = threading.Thread(target=kill_one)
            killer.start()
            n_answered = self.predict(source, target, workers=2, batch_size=128)
            killer.join()
            self.assertEqual(len(killed), 1)
            table = parquet.read_table(target).sort_by("id")
            self.assertEqual(table["id"].to_pylist(), list(range(N_ROWS)))
            self.assertGreater(n_answered, 0)
            with candor.Model() as model:
                alone = answer_rows(model, prompts(N_ROWS), list(range(N_ROWS)), **OPTIONS)
            for name, values in alone.items():
                self.assertEqual(table[name].to_pylist(), values, name)
            self.assertEqual(self.predict(source, target), 0)

    def test_it_goes_on_with_what_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            source, target = write_source(folder, 300), os.path.join(folder, "target")
            self.assertEqual(self.predict(source, target, batch_size=100), 300)
            parts = sorted(glob.glob(os.path.join(target, "part-*.parquet")))
            whole = parquet.read_table(target).sort_by("id")
            n_lost = parquet.read_metadata(parts[0]).num_rows
            os.remove(parts[0])
            self.assertEqual(self.predict(source, target, batch_size=100), n_lost)
            self.assertEqual(parquet.read_table(target).sort_by("id"), whole)

    def test_rows_that_cannot_be_answered_say_why(self):
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "source.parquet")
            texts = ["Once", "word " * 5000, "Twice"]
            parquet.write_table(pyarrow.table({"id": ["a", "b", "c"], "prompt": texts}), source)
            self.predict(source, os.path.join(folder, "target"))
            table = parquet.read_table(os.path.join(folder, "target")).sort_by("id")
            errors = table["error"].to_pylist()
            self.assertEqual([bool(error) for error in errors], [False, True, False])
            self.assertIn("context", errors[1])

    def test_mistakes_are_told_before_anything_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            source, target = write_source(folder, 3), os.path.join(folder, "target")
            for options, words in (({"prompt": "text"}, "'text'"), ({"key": "name"}, "'name'")):
                with self.assertRaisesRegex(candor.InvalidInput, words):
                    self.predict(source, target, **options)
            with self.assertRaises(candor.NotFound):
                self.predict(os.path.join(folder, "missing"), target)
            taken = write_source(folder, 2, answer=["x", "y"])
            with self.assertRaisesRegex(candor.InvalidInput, "'answer'"):
                self.predict(taken, target)
            with self.assertRaisesRegex(candor.InvalidInput, "4 workers of 1 CPUs"):
                self.predict(source, target, workers=4)
            with self.assertRaisesRegex(Exception, "missing.gguf.*each machine needs the model"):
                self.predict(write_source(folder, 3), target, model="/missing.gguf")


if __name__ == "__main__":
    unittest.main(verbosity=2)
