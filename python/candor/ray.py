"""Batch inference over machines with Ray Data: `pip install "ray[data]"`.

    ds = ray.data.read_parquet("prompts").map_batches(
        candor.ray.BatchPredictor, fn_constructor_kwargs={"model": "/models/m.gguf", "max_tokens": 100},
        compute=ray.data.ActorPoolStrategy(size=4), num_cpus=2, batch_size=64)

or, for tables that are gone on with after an interruption, candor.ray.predict_parquet(...)."""

from __future__ import annotations

import hashlib
import os
from typing import Any, Iterable

from .columns import ANSWER_COLUMNS, answer_rows, open_model
from .errors import CandorError, InvalidInput, NotFound
from .sampling import Sampling

try:
    import pyarrow
    import pyarrow.parquet
    import ray
    import ray.data
except ImportError:
    raise CandorError('candor.ray needs Ray Data: pip install "ray[data]"') from None


class BatchPredictor:
    """An actor with a model of its own. Of each batch it takes the column `prompt` (texts, lists of ids or of messages) and
    adds those of candor.columns.ANSWER_COLUMNS. key: the column that seeds follow from; the prompt itself where that is
    None. threads: of each actor; give actors `num_cpus` as well. Other options are candor.Sampling's."""

    def __init__(self, model: str | None = None, *, prompt: str = "prompt", key: str | None = None, seed: int = 0,
                 sampling: Sampling | None = None, engine: dict[str, Any] | None = None, **options: Any) -> None:
        self._model = open_model(model, engine or {})
        self._prompt, self._key, self._seed = prompt, key, seed
        self._sampling, self._options = sampling, options

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        for name in (self._prompt, self._key):
            if name is not None and name not in batch:
                raise InvalidInput(f"the table has no column {name!r}; it has {', '.join(batch)}", name)
        prompts = list(batch[self._prompt])
        keys = list(batch[self._key]) if self._key is not None else prompts
        return {**batch, **answer_rows(self._model, prompts, keys, self._sampling, self._seed, **self._options)}


def predict_parquet(source: str, target: str, *, model: str | None = None, key: str = "id", prompt: str = "prompt",
                    workers: int = 1, batch_size: int = 64, cpus_each: int = 1, engine: dict[str, Any] | None = None,
                    **options: Any) -> int:
    """Answers every row of the Parquet file or folder `source` into the folder `target`, which gets a file for each batch,
    whole or not at all. Rows whose key `target` holds are not asked again: the same call goes on after an interruption.
    Returns how many rows were answered now. The keys of `source` must differ. `target` must be a folder that all machines
    share. workers: models, of cpus_each threads; the cluster needs one CPU more, to read. Other options are
    BatchPredictor's."""
    if not os.path.exists(source):
        raise NotFound(f"{source}: there is no such file or folder", "source")
    cpus = ray.cluster_resources().get("CPU", 0) if ray.is_initialized() else os.cpu_count() or 1
    if workers < 1 or workers * cpus_each > cpus - 1:
        raise InvalidInput(f"{workers} workers of {cpus_each} CPUs and one CPU that reads do not fit into a cluster of "
                           f"{cpus:g}: ask for fewer, or tell Ray of more (num_cpus)", "workers")
    os.makedirs(target, exist_ok=True)
    table = ray.data.read_parquet(source)
    names = table.schema().names
    for name in (key, prompt):
        if name not in names:
            raise InvalidInput(f"{source}: there is no column {name!r}; there are {', '.join(names)}", name)
    twice = sorted(set(names) & set(ANSWER_COLUMNS))
    if twice:
        raise InvalidInput(f"{source}: column {twice[0]!r} has the name of one that answers add: rename it", twice[0])
    done = _keys_in(target, key)
    if done:
        table = table.filter(lambda row, done=frozenset(done): row[key] not in done)
    made_of = {"target": target, "model": model, "key": key, "prompt": prompt,
               "engine": {"threads": cpus_each, **(engine or {})}, **options}
    written = table.map_batches(_Writer, fn_constructor_kwargs=made_of, batch_size=batch_size, num_cpus=cpus_each,
                                compute=ray.data.ActorPoolStrategy(size=workers))
    return int(sum(row["n"] for row in written.iter_rows()))


class _Writer:
    """Answers a batch and writes it; a batch that is tried again is the same file again."""

    def __init__(self, target: str, key: str, **options: Any) -> None:
        self._predict = BatchPredictor(key=key, **options)
        self._target, self._key = target, key

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        answered = self._predict(batch)
        keys = list(answered[self._key])
        name = hashlib.blake2b("\0".join(map(str, keys)).encode(), digest_size=16).hexdigest()
        path = os.path.join(self._target, f"part-{name}.parquet")
        if keys:
            columns = {column: pyarrow.array(list(values)) for column, values in answered.items()}
            pyarrow.parquet.write_table(pyarrow.table(columns), f"{path}.{os.getpid()}.tmp")
            os.replace(f"{path}.{os.getpid()}.tmp", path)
        return {"n": [len(keys)]}


def _keys_in(folder: str, key: str) -> set[Any]:
    keys: set[Any] = set()
    for path in _parts_of(folder):
        file = pyarrow.parquet.ParquetFile(path)
        if key not in file.schema_arrow.names:
            raise InvalidInput(f"{path}: there is no column {key!r}: it answers another table; name another target", key)
        keys.update(file.read([key]).column(key).to_pylist())
    return keys


def _parts_of(folder: str) -> Iterable[str]:
    return (os.path.join(folder, name) for name in sorted(os.listdir(folder))
            if name.startswith("part-") and name.endswith(".parquet"))
