"""Evaluates a server with lm_eval as its users do, without transformers or torch: scores of given answers, and answers
that end at a stop. The tasks and their data are made here; nothing is downloaded."""
import importlib.util
import json
import os
import tempfile
from pathlib import Path

QUESTIONS = [{"question": "Once upon a time there was a", "choices": ["cat", "quark"], "answer": 0},
             {"question": "The dog ran to the", "choices": ["house", "integral"], "answer": 0},
             {"question": "She was very", "choices": ["happy", "orthogonal"], "answer": 0}]


def tasks_on(path):
    data = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(path)}}, "test_split": "test",
            "doc_to_text": "{{question}}", "num_fewshot": 0, "metadata": {"version": 1}}
    choice = data | {"task": "pocket_choice", "output_type": "multiple_choice", "doc_to_choice": "choices",
                     "doc_to_target": "answer", "metric_list": [{"metric": "acc"}]}
    until = data | {"task": "pocket_until", "output_type": "generate_until", "doc_to_target": "{{choices[answer]}}",
                    "generation_kwargs": {"until": ["."], "max_gen_toks": 8, "temperature": 0},
                    "metric_list": [{"metric": "exact_match"}]}
    return [choice, until]


def evaluate(url):
    os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
    import lm_eval
    assert not any(importlib.util.find_spec(name) for name in ("torch", "transformers")), "it must do without them"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HF_DATASETS_CACHE"] = folder
        path = Path(folder) / "questions.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in QUESTIONS), encoding="utf-8")
        model_args = {"model": "pocket", "base_url": url + "/v1/completions", "num_concurrent": 2, "max_retries": 1,
                      "tokenizer_backend": "remote"}
        results = lm_eval.simple_evaluate(model="local-completions", model_args=model_args, tasks=tasks_on(path),
                                          bootstrap_iters=0, log_samples=True)
    assert results["results"]["pocket_choice"]["acc,none"] > 0.5, results["results"]
    for sample in results["samples"]["pocket_choice"]:
        assert all(score[0][0] < 0 for score in sample["resps"]), sample["resps"]
    for sample in results["samples"]["pocket_until"]:
        assert "." not in sample["filtered_resps"][0], sample["filtered_resps"]
