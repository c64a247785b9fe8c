#!/usr/bin/env python3
"""MTEB over the server by its own model of Cohere's interface, on a small task made of local texts; beside the same folder in
sentence-transformers. Exit code 77 where they are not installed.

    python3 mteb_client.py PROGRAM [FOLDER]"""

import os
import pathlib
import sys
import tempfile

try:
    import datasets
    import mteb
    from mteb.abstasks.sts import AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.models.model_implementations.cohere_models import CohereTextEmbeddingModel
    from sentence_transformers import SentenceTransformer
except ImportError:
    sys.exit(77)

from run_clients import Served

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINES = [line for line in (ROOT / "docs/architecture.md").read_text().splitlines() if len(line) > 60][:60]
# Two halves of one line are alike, of two lines they are not; of lines near each other a little.
PAIRS = [(a[:45], b[45:90] or b[:45], float(5 - min(5, abs(i - k)))) for i, a in enumerate(LINES)
         for k, b in enumerate(LINES) if (i * 7 + k * 3) % 11 == 0]


class LocalTexts(AbsTaskSTS):
    metadata = TaskMetadata(name="LocalTexts", description="Lines of a document, alike where they are near.",
                            dataset={"path": "local", "revision": "1"}, type="STS", category="t2t", modalities=["text"],
                            eval_splits=["test"], eval_langs=["eng-Latn"], main_score="cosine_spearman",
                            date=("2026-01-01", "2026-01-02"), domains=["Written"], license="not specified",
                            annotations_creators="derived", dialect=[], sample_creation="found", reference=None,
                            bibtex_citation="", task_subtypes=[])
    min_score, max_score = 0, 5

    def load_data(self, **_):
        first, second, score = zip(*PAIRS)
        self.dataset = {"test": datasets.Dataset.from_dict({"sentence1": first, "sentence2": second, "score": score})}
        self.data_loaded = True


def score_of(model, folder):
    result = mteb.evaluate(model, [LocalTexts()], cache=mteb.ResultCache(folder), overwrite_strategy="always")
    return result.task_results[0].get_score()


def main():
    folder = sys.argv[2] if len(sys.argv) > 2 else str(ROOT / "tests/encoders/goldens/bert")
    with tempfile.TemporaryDirectory() as cache:
        local = score_of(SentenceTransformer(folder, device="cpu"), cache)
    with Served(sys.argv[1], "-m", folder) as server, tempfile.TemporaryDirectory() as cache:
        os.environ |= {"CO_API_URL": server.url, "CO_API_KEY": "none"}
        model = CohereTextEmbeddingModel("pocket", revision="1", model_prompts={"STS": "clustering"})
        served = score_of(model, cache)
    print(f"{len(PAIRS)} pairs: {served:.4f}, sentence-transformers {local:.4f}")
    assert abs(served - local) < 0.01


if __name__ == "__main__":
    main()
