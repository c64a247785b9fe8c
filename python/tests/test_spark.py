"""Spark over the engine: every row once, each answer one engine's. Exit code 77 where Spark or Java is not installed."""

import os
import shutil
import sys
import unittest

try:
    import pyarrow  # noqa: F401
    from pyspark.sql import SparkSession
except ImportError:
    sys.exit(77)
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
if shutil.which("java") is None:
    sys.exit(77)

import candor
from candor.columns import answer_rows

N_ROWS = int(os.environ.get("CANDOR_TEST_ROWS", "10000"))
OPTIONS = {"max_tokens": 8, "temperature": 0.8, "seed": 3}


class SparkTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
                     .config("spark.sql.execution.arrow.maxRecordsPerBatch", "256").getOrCreate())
        cls.spark.sparkContext.setLogLevel("ERROR")

    @classmethod
    def tearDownClass(cls):
        cls.spark.stop()

    def frame(self, n, **more):
        rows = [(i, f"Story number {i} is about", *more.values()) for i in range(n)]
        return self.spark.createDataFrame(rows, ["id", "prompt", *more]).repartition(4)

    def test_every_row_is_answered_as_by_one_engine(self):
        from candor.spark import predict

        rows = predict(self.frame(N_ROWS), key="id", engine={"threads": 1}, **OPTIONS).orderBy("id").collect()
        self.assertEqual([row["id"] for row in rows], list(range(N_ROWS)))
        with candor.Model() as model:
            alone = answer_rows(model, [row["prompt"] for row in rows], [row["id"] for row in rows], **OPTIONS)
        for name, values in alone.items():
            self.assertEqual([row[name] for row in rows], values, name)

    def test_mistakes_are_told(self):
        from candor.spark import predict

        with self.assertRaisesRegex(candor.InvalidInput, "'text'"):
            predict(self.frame(2), prompt="text")
        with self.assertRaisesRegex(candor.InvalidInput, "'answer'"):
            predict(self.frame(2, answer="x"))
        with self.assertRaisesRegex(Exception, "each machine needs the model"):
            predict(self.frame(2), model="/missing.gguf").collect()


if __name__ == "__main__":
    unittest.main(verbosity=2)
