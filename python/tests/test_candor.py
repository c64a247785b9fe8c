"""The package as its users call it, and as those who make every mistake. `python -m unittest`, with CANDOR_LIBRARY and
CANDOR_PROGRAM naming what was built."""

import asyncio
import copy
import dataclasses
import enum
import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import typing
import unittest
from pathlib import Path

import candor
import candor.constraints


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Animal:
    name: str
    legs: int
    colour: Colour


class Shared(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = candor.Model(ctx=512)

    @classmethod
    def tearDownClass(cls):
        cls.model.close()


GOLDENS = Path(__file__).resolve().parents[2] / "tests/encoders/goldens"


@unittest.skipUnless(GOLDENS.exists(), "the encoders of the tests are not beside this file")
class Reading(unittest.TestCase):
    def test_documents_are_ranked_as_the_library_scores_them(self):
        expected = json.loads((GOLDENS / "bert_pairs/expected.json").read_text())
        query, document = expected["texts"]
        with candor.Model(GOLDENS / "bert_pairs") as model:
            ranked = model.rerank(query, [document, "a text", document], raw_scores=True)
            self.assertEqual({index for index, _ in ranked}, {0, 1, 2})
            self.assertEqual(dict(ranked)[0], dict(ranked)[2])
            self.assertAlmostEqual(dict(ranked)[0], expected["pair_labels"][0], delta=0.06)
            self.assertEqual(len(model.rerank(query, [document, "a text"], top=1)), 1)
            self.assertRaises(candor.Unsupported, model.generate, "a")

    def test_texts_are_labelled_and_cut_where_they_may_be(self):
        with candor.Model(GOLDENS / "distilbert") as model:
            shares = model.classify(["the engine"])[0]
            self.assertAlmostEqual(sum(shares.values()), 1.0)
            self.assertEqual(set(shares), set(model.info["labels"]))
            self.assertRaises(candor.ContextLength, model.embed_all, ["engine " * 200])
            self.assertEqual(len(model.embed_all(["engine " * 200], truncate=True)), 1)


    def test_words_have_weights_where_the_model_gives_them(self):
        expected = json.loads((GOLDENS / "bge_m3/expected.json").read_text())
        with candor.Model(GOLDENS / "bge_m3") as model:
            self.assertTrue(model.info["weighs_words"])
            for words, wanted in zip(model.embed_sparse(expected["texts"]), expected["sparse"]):
                for token, weight in wanted:
                    self.assertAlmostEqual(words.get(token, 0.0), weight, delta=0.06)
            self.assertRaises(candor.Unsupported, model.generate, "a")


class Answers(Shared):
    def test_the_same_alone_in_a_list_streamed_and_in_an_asyncio_loop(self):
        prompts = ["Once upon a time", "A dog and a cat", [1, 50, 60], [{"role": "user", "content": "A story"}]]
        options = candor.Sampling(temperature=0.8, seed=3, max_tokens=30, logprobs=2)
        alone = [self.model.generate(prompt, options) for prompt in prompts]
        together = self.model.generate(prompts, options)

        async def gathered():
            return await asyncio.gather(*(self.model.agenerate(prompt, options) for prompt in prompts))

        for others in (together, asyncio.run(gathered())):
            self.assertEqual([one.ids for one in others], [one.ids for one in alone])
            self.assertEqual([one.logprobs for one in others], [one.logprobs for one in alone])
        events = list(self.model.stream(prompts[0], options))
        self.assertEqual("".join(event.text for event in events), alone[0].text)
        self.assertEqual(events[-1].finish, "length")
        self.assertEqual(len(events[0].top), 2)
        self.assertEqual(alone[0].usage["seed"], 3)

    def test_more_prompts_than_the_queue_takes(self):
        with candor.Model(max_running=2, max_queued=2, ctx=256) as small:
            made = small.generate([f"Number {i}" for i in range(20)], seed=1, max_tokens=4)
        self.assertEqual(len(made), 20)
        self.assertEqual(made[7].text, self.model.generate("Number 7", seed=1, max_tokens=4).text)

    def test_receipts_verify_and_forged_ones_do_not(self):
        answer = self.model.generate("A story about a dog", max_tokens=12, n=2, receipt=True, seed=3)
        self.assertIsNone(self.model.generate("A", max_tokens=2).receipt)
        self.assertEqual(answer.receipt["answers"][1]["tokens"], answer.choices[1].ids)
        self.assertEqual(answer.logprobs, [])
        self.assertTrue(self.model.verify(answer.receipt)["verified"])
        self.assertTrue(self.model.verify(json.dumps(answer.receipt))["verified"])
        self.assertTrue(self.model.verify(self.model.receipt("A dog", max_tokens=4))["verified"])
        answer.receipt["answers"][1]["tokens"][3] = 99
        verdict = self.model.verify(answer.receipt)
        self.assertFalse(verdict["verified"])
        self.assertEqual((verdict["difference"]["answer"], verdict["difference"]["position"]), (1, 3))
        with self.assertRaises(candor.InvalidInput):
            self.model.verify("no receipt")

    def test_every_token_is_explained(self):
        told = self.model.explain("A story", max_tokens=5, seed=3)
        self.assertEqual([one["token"] for one in told], self.model.generate("A story", max_tokens=5, seed=3).ids)
        self.assertEqual(told[0]["stages"][0]["name"], "logits")

    def test_prefixes_are_kept_on_disk(self):
        with tempfile.TemporaryDirectory() as folder:
            prompt = list(range(10, 110))
            made = []
            for _ in range(2):
                with candor.Model(cache_dir=os.path.join(folder, "prefixes")) as model:
                    made.append(model.generate(prompt, max_tokens=4, temperature=0))
            self.assertEqual(made[0].ids, made[1].ids)
            self.assertEqual([one.usage["disk_tokens"] for one in made], [0, 96])

    def test_several_choices_and_stops(self):
        made = self.model.generate("Once upon a time", n=3, seed=1, max_tokens=8)
        self.assertEqual(len(made.choices), 3)
        self.assertIs(made.choices[0], made)
        stopped = self.model.generate("Once upon a time", temperature=0, stop=["girl"])
        self.assertEqual(stopped.finish, "stop")
        self.assertNotIn("girl", stopped.text)

    def test_options_as_text_reach_the_engine(self):
        made = self.model.generate("Once", candor.Sampling(logit_bias={44: 100.0}, temperature=0), max_tokens=3)
        self.assertEqual(made.ids, [44, 44, 44])
        self.assertEqual(self.model.generate("Once", allowed_token_ids=[44], max_tokens=2, samplers=["top_k"]).ids, [44, 44])


class Constraints(Shared):
    def test_each_kind_is_obeyed(self):
        ask = lambda rule: self.model.generate("The animal is ", constraint=rule, max_tokens=60, seed=2).text
        self.assertIn(ask(candor.Choice(["cat", "dog"])), ["cat", "dog"])
        self.assertRegex(ask(candor.Regex("[0-9]{3}")), "^[0-9]{3}$")
        self.assertIn(ask(candor.Gbnf('root ::= "x" | "y"')), ["x", "y"])
        self.assertEqual(ask(candor.JsonSchema({"const": 5})), "5")

    def test_replies_become_values(self):
        ask = lambda kind: self.model.generate("A red cat: ", into=kind, max_tokens=200, seed=2).parsed
        self.assertIn(ask(typing.Literal["yes", "no"]), ["yes", "no"])
        self.assertIsInstance(ask(Colour), Colour)
        self.assertIsInstance(ask(bool), bool)
        schema = candor.schema_of(typing.List[Animal])
        self.assertEqual(schema["items"]["required"], ["name", "legs", "colour"])
        animal = candor.constraints.parse_into(Animal, '{"name": "Tom", "legs": 4, "colour": "red"}')
        self.assertEqual(animal, Animal("Tom", 4, Colour.RED))

    def test_pydantic_models_are_types_too(self):
        try:
            import pydantic
        except ImportError:
            self.skipTest("pydantic is not installed")
        cat = pydantic.create_model("Cat", legs=(int, pydantic.Field(ge=0, le=9)), colour=(Colour, ...))
        made = self.model.generate("A cat: ", into=cat, max_tokens=200, seed=2)
        self.assertIsInstance(made.parsed, cat)
        self.assertIn(made.parsed.legs, range(10))
        with self.assertRaises(candor.ParseError):
            candor.constraints.parse_into(cat, '{"legs": 10, "colour": "red"}')

    def test_what_is_cut_off_is_no_value(self):
        with self.assertRaises(candor.ParseError) as caught:
            self.model.generate("A cat: ", into=Animal, max_tokens=2)
        self.assertIsInstance(caught.exception.text, str)
        with self.assertRaises(candor.InvalidInput):
            candor.schema_of(object())


class Adapters(unittest.TestCase):
    def test_each_request_has_its_own(self):
        tests = GOLDENS.parents[1]
        base = tests / "families/goldens/llama"
        poet, cook = (tests / "adapters/goldens" / name for name in ("llama_all", "llama_dora"))
        asked = {"temperature": 0, "max_tokens": 12, "ignore_eos": True}
        with candor.Model(base, adapters={"poet": poet}) as model:
            self.assertEqual([one["name"] for one in model.adapters], ["poet"])
            plain, with_poet = model.generate("the engine", **asked), model.generate("the engine", adapters="poet", **asked)
            self.assertNotEqual(plain.ids, with_poet.ids)
            self.assertEqual(model.generate("the engine", adapters={"poet": 0.0}, **asked).ids, plain.ids)
            ids = model.tokenize("the engine reads words")
            by_adapter = model.score(ids, adapters="poet")
            self.assertNotEqual(by_adapter, model.score(ids))
            self.assertEqual(model.score(ids, adapters={"poet": 0.0}), model.score(ids))
            logits = model.logits(ids, adapters="poet")
            self.assertEqual(logits.shape, (len(ids), model.info["n_vocab"]))
            self.assertNotEqual(list(logits[0]), list(model.logits(ids)[0]))
            self.assertNotEqual(list(model.hidden(ids, adapters="poet")[1]), list(model.hidden(ids)[1]))
            self.assertRaises(candor.NotFound, model.logits, ids, adapters="nobody")
            self.assertEqual(model.load_adapter(cook), "llama_dora")
            both = model.generate("the engine", adapters={"poet": 0.5, "llama_dora": 1.0}, **asked)
            self.assertNotEqual(both.ids, with_poet.ids)
            self.assertNotEqual(list(model.embed_all(["a"], adapters="poet")[0]), list(model.embed_all(["a"])[0]))
            model.drop_adapter("poet")
            with self.assertRaises(candor.NotFound):
                model.generate("the engine", adapters="poet", **asked)
            with self.assertRaises(candor.NotFound):
                model.drop_adapter("poet")
            with self.assertRaises(candor.NotFound):
                model.load_adapter(base / "nowhere")
            with self.assertRaises(candor.InvalidInput):
                model.load_adapter(cook)
            with self.assertRaises(candor.InvalidInput):
                model.generate("the engine", adapters={"llama_dora": 1e9}, **asked)
        with candor.Model(base, adapters=[poet]) as model:
            self.assertEqual(model.generate("the engine", adapters=["llama_all"], **asked).ids, with_poet.ids)


class Numbers(Shared):
    def test_tokens_scores_and_vectors(self):
        ids = self.model.tokenize("Once upon a time")
        self.assertEqual(self.model.detokenize(ids).strip(), "Once upon a time")
        self.assertIsInstance(self.model.token_bytes(ids[-1]), bytes)
        self.assertEqual(len(self.model.score(ids)), len(ids) - 1)
        self.assertEqual(self.model.score(ids[:1]), [])
        self.assertEqual(self.model.score("Once upon a time"), self.model.score(ids))
        self.assertAlmostEqual(sum(x * x for x in self.model.embed("a cat")), 1.0, places=4)
        rows = self.model.embed_all(["a cat", "a dog"])
        self.assertEqual(rows[0], self.model.embed("a cat"))
        self.assertEqual(len(rows), 2)
        for wrong in (lambda: self.model.rerank("a", ["b"]), lambda: self.model.classify(["a"])):
            self.assertRaises(candor.Unsupported, wrong)
        self.assertIn("A story", self.model.apply_template([{"role": "user", "content": "A story"}]))

    def test_sampled_logprobs_are_those_of_score(self):
        made = self.model.generate("Once upon a time", seed=5, max_tokens=20, logprobs=0, temperature=1)
        ids = self.model.tokenize("Once upon a time")
        self.assertEqual(self.model.score(ids + made.ids)[len(ids) - 1 :], made.logprobs)

    def test_rows_live_as_long_as_what_shows_them(self):
        rows = self.model.logits([1, 50, 60])
        self.assertEqual(rows.shape, (3, self.model.info["n_vocab"]))
        view, first = rows.view(), rows[0]
        del rows
        gc.collect()
        self.assertEqual(view[: len(first)].tolist(), first)
        self.assertTrue(view.readonly)
        self.assertEqual(self.model.hidden([1, 50]).shape, (2, self.model.info["dim"]))
        with self.assertRaises(IndexError):
            self.model.logits([1])[1]

    def test_scores_behind_a_context_are_those_of_the_whole(self):
        ids = self.model.tokenize("Once upon a time there was a dog")
        scored = self.model.score_from(ids, 3)
        self.assertEqual([logprob for logprob, _ in scored], self.model.score(ids)[2:])
        self.assertTrue(all(best >= logprob for logprob, best in scored))
        self.assertEqual(self.model.score_from(ids, len(ids)), [])
        for bad in (0, -1, len(ids) + 1):
            with self.assertRaises(candor.InvalidInput):
                self.model.score_from(ids, bad)

    def test_lm_eval_scores_and_generates(self):
        try:
            from candor.evaluation import CandorLM
        except candor.CandorError as error:
            self.skipTest(str(error))
        from lm_eval.api.instance import Instance

        def asked(kind, *arguments):
            return Instance(request_type=kind, doc={}, arguments=arguments, idx=0)

        lm = CandorLM(self.model.path)
        pairs = [("Once upon a", " time"), ("Once upon a", " stone"), ("", "Once")]
        scored = lm.loglikelihood([asked("loglikelihood", *pair) for pair in pairs], disable_tqdm=True)
        whole = self.model.score(lm.tok_encode("Once upon a time"))
        self.assertAlmostEqual(scored[0][0], sum(whole[len(lm.tok_encode("Once upon a")) - 1:]), places=6)
        self.assertTrue(scored[0][1])
        self.assertFalse(scored[1][1])
        rolling = lm.loglikelihood_rolling([asked("loglikelihood_rolling", "Once upon a time")], disable_tqdm=True)
        self.assertLess(rolling[0], 0)
        told = lm.generate_until([asked("generate_until", "Once upon a time", {"until": ["."], "max_gen_toks": 8})],
                                 disable_tqdm=True)
        self.assertTrue(told[0] and "." not in told[0])
        with self.assertRaises(candor.InvalidInput):
            lm.generate_until([asked("generate_until", "Once", {"no_such": 1})], disable_tqdm=True)

    def test_others_see_them_by_dlpack(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        rows = self.model.logits([1, 50, 60])
        here = numpy.asarray(rows)
        seen = numpy.from_dlpack(rows)
        if tuple(int(part) for part in numpy.__version__.split(".")[:2]) >= (2, 1):
            self.assertEqual(seen.ctypes.data, here.ctypes.data)
            self.assertFalse(seen.flags.writeable)
        copied = here.copy()
        del rows, here
        gc.collect()
        self.assertTrue((seen == copied).all())
        rows = self.model.logits([1, 50])
        self.assertEqual(rows.__dlpack_device__(), (1, 0))
        for _ in range(100):
            rows.__dlpack__(max_version=(1, 0))  # dropped without being taken
        with self.assertRaises(BufferError):
            rows.__dlpack__(copy=False)
        with self.assertRaises(BufferError):
            rows.__dlpack__(dl_device=(2, 0))

    def test_numpy_sees_them_without_a_copy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        rows = self.model.logits([1, 50])
        array = numpy.asarray(rows)
        self.assertEqual(array.__array_interface__["data"][0], rows.__array_interface__["data"][0])
        self.assertFalse(array.flags.writeable)
        first = rows[0]
        del rows
        gc.collect()
        self.assertEqual(array[0].tolist(), first)


class Conversations(Shared):
    def test_answers_become_messages_and_branches_go_on_by_themselves(self):
        with self.model.session("You tell stories.") as session:
            answer = session.ask("Tell me one", max_tokens=10, seed=1)
            self.assertEqual(session.messages[-1], {"role": "assistant", "content": answer.text})
            branch = session.branch()
            branch.ask("And then?", max_tokens=5, seed=1)
            self.assertEqual(len(session.messages), 3)
            self.assertEqual(len(branch.messages), 5)


class Mistakes(Shared):
    def test_options_are_named(self):
        for options, field in (({"temperature": 1000}, "temperature"), ({"top_q": 1}, "top_q"), ({"seed": "x"}, "seed"),
                               ({"stop": [""]}, "stop")):
            with self.assertRaises(candor.InvalidInput, msg=field) as caught:
                self.model.generate("x", **options)
            self.assertEqual(caught.exception.field, field)
            self.assertIn(field, str(caught.exception))

    def test_prompts(self):
        for prompt in (5, None, b"bytes", [1, "x"], [10**12], [1.5]):
            with self.assertRaises((candor.CandorError, TypeError), msg=repr(prompt)):
                self.model.generate(prompt, max_tokens=1)
        with self.assertRaises(candor.ContextLength):
            self.model.generate([5] * 5000, max_tokens=1)
        self.assertEqual(self.model.generate([]), [])

    def test_models_that_are_none(self):
        for path in ("/nonexistent.gguf", __file__, os.path.dirname(__file__)):
            with self.assertRaises(candor.CandorError) as caught:
                candor.Model(path)
            self.assertIn(os.path.basename(path), str(caught.exception))
        with self.assertRaises(candor.InvalidInput):
            candor.Model(ctx=-1)
        with self.assertRaises(candor.InvalidInput):
            candor.Model(colour="red")

    def test_a_closed_model_says_so(self):
        model = candor.Model(ctx=256)
        stream = model.stream("Once upon a time", max_tokens=10000, ignore_eos=True, on_context_full="crop")
        next(iter(stream))
        model.close()
        model.close()
        with self.assertRaises(candor.Closed):
            model.generate("x")
        with self.assertRaises(candor.Closed):
            model.tokenize("x")

    def test_pickling_is_refused(self):
        for act in (pickle.dumps, copy.deepcopy):
            with self.assertRaisesRegex(TypeError, "path"):
                act(self.model)

    def test_behind_a_fork_the_model_is_refused(self):
        child = os.fork()
        if child == 0:
            try:
                self.model.tokenize("x")
            except candor.CandorError as error:
                os._exit(0 if "fork" in str(error) else 1)
            os._exit(2)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertTrue(self.model.tokenize("x"))


class Ends(Shared):
    ENDLESS: typing.ClassVar = {"max_tokens": 10**9, "ignore_eos": True, "on_context_full": "crop", "seed": 1}

    def running(self):
        return self.model.metrics()["n_running"]

    def wait_until_idle(self):
        for _ in range(200):
            if self.running() == 0:
                return
            time.sleep(0.02)
        self.fail("a request goes on")

    def test_leaving_a_stream_cancels_it(self):
        for _ in self.model.stream("Once upon a time", **self.ENDLESS):
            break
        gc.collect()
        self.wait_until_idle()
        stream = self.model.stream("Once upon a time", **self.ENDLESS)
        next(iter(stream))
        del stream
        gc.collect()
        self.wait_until_idle()

    def test_cancelling_gives_what_came(self):
        stream = self.model.stream("Once upon a time", **self.ENDLESS)
        threading.Timer(0.2, stream.cancel).start()
        made = stream.finished()
        self.assertEqual(made.finish, "cancelled")
        self.assertTrue(made.text)

    def test_a_cancelled_task_cancels_its_request(self):
        async def run():
            tasks = [asyncio.ensure_future(self.model.agenerate("Once", **self.ENDLESS)) for _ in range(4)]
            await asyncio.sleep(0.2)
            for task in tasks:
                task.cancel()
            return await asyncio.gather(*tasks, return_exceptions=True)

        for result in asyncio.run(run()):
            self.assertIsInstance(result, asyncio.CancelledError)
        self.wait_until_idle()

    def test_ctrl_c_ends_a_long_answer(self):
        code = ("import candor, sys\nm = candor.Model()\nprint('ready', flush=True)\n"
                "try: m.generate('Once', max_tokens=10**9, ignore_eos=True, on_context_full='crop')\n"
                "except KeyboardInterrupt: sys.exit(7)")
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
            self.assertEqual(child.stdout.readline(), "ready\n")
            time.sleep(0.3)
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(timeout=20), 7)

    def test_an_interpreter_ends_with_a_model_open(self):
        code = ("import candor\nm = candor.Model()\n"
                "s = m.stream('Once', max_tokens=10**9, ignore_eos=True, on_context_full='crop')\nnext(iter(s))")
        self.assertEqual(subprocess.run([sys.executable, "-c", code], timeout=60).returncode, 0)


class Servers(unittest.TestCase):
    def test_a_server_answers_and_ends(self):
        with candor.serve(candor.shipped_model(), no_ui=True) as server:
            made = server.post("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 5, "temperature": 0})
            self.assertTrue(made["choices"][0]["text"])
            with candor.Model() as model:
                told = model.generate("Once upon a time", temperature=0, max_tokens=5).text
            self.assertEqual(told, made["choices"][0]["text"])
        self.assertEqual(server.close(), 0)

    def test_one_that_does_not_start_says_why(self):
        with self.assertRaisesRegex(candor.CandorError, "nonexistent.gguf"):
            candor.serve("/nonexistent.gguf")

    def test_the_module_is_the_program(self):
        shown = subprocess.run([sys.executable, "-m", "candor", "--version"], capture_output=True, text=True)
        self.assertEqual(shown.stdout.strip(), f"candor {candor.__version__}")


def weather(city: str, days: int = 1, unit: typing.Literal["C", "F"] = "C") -> str:
    """What the weather will be.

    Second paragraph.

    Args:
        city: where, as people write it
        days (int): how many

    Returns: nothing of use
    """
    return f"{city} {days} {unit}"


def paint(animal: Animal, coats: typing.Optional[int] = None) -> int:
    """:param animal: what to paint"""
    return (coats or 0) + animal.legs


class Tools(Shared):
    def test_a_function_is_described_by_itself(self):
        schema = candor.Tool(weather).schema["function"]
        self.assertEqual(schema["name"], "weather")
        self.assertEqual(schema["description"], "What the weather will be.\n\nSecond paragraph.")
        self.assertEqual(schema["parameters"]["required"], ["city"])
        self.assertEqual(schema["parameters"]["properties"]["city"],
                         {"type": "string", "description": "where, as people write it"})
        self.assertEqual(schema["parameters"]["properties"]["days"], {"type": "integer", "description": "how many"})
        self.assertEqual(schema["parameters"]["properties"]["unit"], {"enum": ["C", "F"]})
        self.assertEqual(candor.Tool(paint).parameters["properties"]["animal"]["description"], "what to paint")

    def test_the_reply_is_a_call_with_typed_values(self):
        for seed in range(40):
            try:
                call = self.model.generate([{"role": "user", "content": "Call something"}], tools=[weather, paint],
                                           max_tokens=120, seed=seed).parsed
            except candor.ParseError:
                continue  # cut off
            self.assertIsInstance(call, candor.Call)
            self.assertIn(call.name, ("weather", "paint"))
            if call.name == "paint":
                self.assertIsInstance(call.arguments["animal"], Animal)
            call.run()
            return
        self.fail("40 seeds, and no call was whole")

    def test_calls_of_a_server_are_read(self):
        box = candor.Toolbox([weather, paint])
        call = box.read("paint", '{"animal": {"name": "cat", "legs": 4, "colour": "red"}, "coats": 2}')
        self.assertEqual(call.arguments["animal"], Animal("cat", 4, Colour.RED))
        self.assertEqual(call.run(), 6)
        self.assertEqual(box.read("weather", {"city": "Paris", "days": 3}).run(), "Paris 3 C")
        for name, arguments, words in (("fly", "{}", "fly"), ("weather", "{", "no JSON"), ("weather", "[]", "no object"),
                                       ("weather", "{}", "'city' is missing"), ("weather", '{"city": 5}', "5"),
                                       ("weather", '{"city": "x", "when": 1}', "'when'"),
                                       ("weather", '{"city": "x", "unit": "K"}', "'K'"),
                                       ("paint", '{"animal": {"name": "cat"}}', "paint"), (None, "{}", "None")):
            with self.assertRaises(candor.ParseError) as raised:
                box.read(name, arguments)
            self.assertIn(words, str(raised.exception))

    def test_mistakes_are_named(self):
        def bare(x):
            return x

        def many(*words: str) -> None:
            pass

        for functions, words in (([bare], "parameter x has no type"), ([many], "name each parameter"),
                                 ([weather, weather], "two tools are called weather")):
            with self.assertRaises(candor.InvalidInput) as raised:
                candor.Toolbox(functions)
            self.assertIn(words, str(raised.exception))
        with self.assertRaises(candor.InvalidInput):
            self.model.generate("x", tools=[weather], into=int)


class Processors(Shared):
    def test_one_that_changes_nothing_changes_no_answer(self):
        options = {"max_tokens": 20, "seed": 4, "logprobs": 2}
        plain = self.model.generate("Once upon a time", **options)
        made = self.model.generate("Once upon a time", logits_processor=lambda ids, logits: None, **options)
        self.assertEqual((made.ids, made.logprobs, made.top_logprobs), (plain.ids, plain.logprobs, plain.top_logprobs))

    def test_rows_are_changed_in_place_or_returned(self):
        seen = []

        def only(ids, logits):
            seen.append(list(ids))
            for token in range(len(logits)):
                logits[token] = 1.0 if token == 9 else -float("inf")

        made = self.model.generate([5, 6, 7], max_tokens=4, ignore_eos=True, logits_processor=only)
        self.assertEqual(made.ids, [9] * 4)
        self.assertEqual(seen, [[5, 6, 7] + [9] * i for i in range(4)])
        returned = self.model.generate([5, 6, 7], max_tokens=3, ignore_eos=True,
                                       logits_processor=lambda ids, logits: [float(i == 8) * 99 for i in range(len(logits))])
        self.assertEqual(returned.ids, [8] * 3)

    def test_what_it_raises_is_the_cause(self):
        def broken(ids, logits):
            raise KeyError("mine")

        with self.assertRaises(candor.CandorError) as raised:
            self.model.generate("Once", max_tokens=4, logits_processor=broken)
        self.assertIsInstance(raised.exception.__cause__, KeyError)
        with self.assertRaises(candor.CandorError) as raised:
            self.model.generate("Once", max_tokens=4, logits_processor=lambda ids, logits: [1.0])
        self.assertIn("expected", str(raised.exception.__cause__))
        with self.assertRaises(candor.CandorError) as raised:
            self.model.generate("Once", max_tokens=4, logits_processor=lambda ids, logits: self.model.generate("x"))
        self.assertIn("cannot ask an engine", str(raised.exception.__cause__))
        self.assertEqual(len(self.model.generate("Once", max_tokens=4, ignore_eos=True).ids), 4)

    def test_none_is_kept_behind_its_request(self):
        from candor import processor

        def leave(ids, logits):
            return None

        for _ in range(5):
            stream = self.model.stream("Once", max_tokens=50, logits_processor=leave)
            next(iter(stream))
            stream.close()
        for _ in range(200):
            gc.collect()
            if not processor._hooks:
                break
            time.sleep(0.01)
        self.assertEqual(processor._hooks, {})

    def test_many_at_once_in_threads(self):
        options = {"max_tokens": 12, "seed": 1}
        plain = self.model.generate("A dog", **options).ids
        made = self.model.generate(["A dog"] * 12, logits_processor=lambda ids, logits: None, **options)
        self.assertEqual([one.ids for one in made], [plain] * 12)


if __name__ == "__main__":
    unittest.main()
