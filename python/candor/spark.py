"""Batch inference over a Spark cluster: `pip install pyspark pandas pyarrow`.

    answered = candor.spark.predict(frame, model="/models/m.gguf", key="id", max_tokens=100)

Each Python worker opens the model once and keeps it (spark.python.worker.reuse, Spark's default)."""

from __future__ import annotations

from typing import Any, Callable, Iterator

from .columns import ANSWER_COLUMNS, answer_rows, open_model
from .errors import CandorError, InvalidInput
from .model import Model
from .sampling import Sampling

try:
    import pandas
    from pyspark.sql import DataFrame
    from pyspark.sql.types import LongType, StringType, StructField, StructType
except ImportError:
    raise CandorError("candor.spark needs Spark: pip install pyspark pandas pyarrow") from None

_TYPES = {str: StringType, int: LongType}

# Of this worker process: path and options -> the model that is open.
_models: dict[str, Model] = {}


def predict(frame: DataFrame, *, model: str | None = None, prompt: str = "prompt", key: str | None = None, seed: int = 0,
            sampling: Sampling | None = None, engine: dict[str, Any] | None = None, **options: Any) -> DataFrame:
    """The frame with the columns of candor.columns.ANSWER_COLUMNS. prompt: the column of texts. key: the column that seeds
    follow from; the prompt itself where that is None. engine: options of candor.Model; others are candor.Sampling's."""
    for name in (prompt, key):
        if name is not None and name not in frame.columns:
            raise InvalidInput(f"the frame has no column {name!r}; it has {', '.join(frame.columns)}", name)
    twice = [name for name in ANSWER_COLUMNS if name in frame.columns]
    if twice:
        raise InvalidInput(f"column {twice[0]!r} has the name of one that answers add: rename it", twice[0])
    added = [StructField(name, _TYPES[kind](), False) for name, kind in ANSWER_COLUMNS.items()]
    schema = StructType([*frame.schema.fields, *added])
    return frame.mapInPandas(_answerer(model, prompt, key, seed, sampling, engine or {}, options), schema)


def _answerer(model: str | None, prompt: str, key: str | None, seed: int, sampling: Sampling | None,
              engine: dict[str, Any],
              options: dict[str, Any]) -> Callable[[Iterator[pandas.DataFrame]], Iterator[pandas.DataFrame]]:
    def answer(frames: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
        opened = _model_of_worker(model, engine)
        for rows in frames:
            prompts = rows[prompt].tolist()
            keys = prompts if key is None else rows[key].tolist()
            yield rows.assign(**answer_rows(opened, prompts, keys, sampling, seed, **options))

    return answer


def _model_of_worker(model: str | None, engine: dict[str, Any]) -> Model:
    name = repr((model, sorted(engine.items())))
    if name not in _models:
        _models[name] = open_model(model, engine)
    return _models[name]
