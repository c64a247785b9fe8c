#!/usr/bin/env python3
"""Writes the hand-made inputs of the corpora that stand for a client: bodies, heads, chunks, frames, constraints, chats,
model output and configuration. What fuzzing found lies beside them and is kept.
   python3 tests/fuzz/make_attack_corpus.py
Or makes a second corpus, which nothing was mended by: every input of every corpus, varied by a seed. The same seed gives
the same files.
   python3 tests/fuzz/make_attack_corpus.py --seed 20260131 --into FOLDER"""
import argparse
import json
import random
import re
import struct
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


def write(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)


def dense(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def many_keys(n):
    return {format(i, "x"): 0 for i in range(n)}


def nested(n, opening='{"a":', closing="}", inner="1"):
    return opening * n + inner + closing * n


def user(text, **more):
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 4, **more}


def call(arguments):
    return {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}


def messages():
    block = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": [1, {"b": "c"}]}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [block], "is_error": True}
    tool = {"name": "f", "description": "d", "input_schema": {"type": "object"}}
    called = [{"role": "user", "content": [block]}, {"role": "system", "content": "s"}, {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "h", "signature": "s"}, block, use]}, {"role": "user", "content": [result, block]}]
    bodies = {
        "plain": user("hello"), "stream": user("hi", stream=True, stop_sequences=["a", "b"]), "no_length": {"messages": called},
        "replayed": {"messages": called, "tools": [tool], "max_tokens": 4, "system": [block, block]},
        "orphan": {"messages": called[3:], "max_tokens": 4}, "twice": {"messages": called + called[2:], "max_tokens": 4},
        "no_object": {"messages": [{"role": "assistant", "content": [{**use, "input": '{"a":'}]}], "max_tokens": 4},
        "forced": user("a", tools=[tool], tool_choice={"type": "any", "disable_parallel_tool_use": True}, stream=True),
        "elsewhere": user("a", tools=[{"type": "web_search_20250305", "name": "w"}], mcp_servers=[{}], container="c"),
        "thinking": user("a", thinking={"type": "enabled", "budget_tokens": 1024}, output_config={"effort": "max"}),
        "schema": user("a", output_config={"format": {"type": "json_schema", "schema": {"type": "boolean"}}}),
        "billing": user("a", system=[{"type": "text", "text": "x-anthropic-billing-header: cch=1;"}]),
        "systems": {"messages": [{"role": "system", "content": "s"}] * 3, "max_tokens": 1},
        "continued": {"messages": [*called[:1], {"role": "assistant", "content": "Once"}], "max_tokens": 2},
    }
    for name, body in bodies.items():
        write("routes", "message_" + name, "m" + dense(body))
        write("routes", "counted_" + name, "n" + dense(body))


def routes():
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    called = [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [call('{"a":[1,{"b":"c"}]}')]},
              {"role": "tool", "tool_call_id": "1", "content": "b"}]
    keys = many_keys(40_000)
    bodies = {
        "chat": user("hello"), "chat_stream": user("hi", stream=True, stream_options={"include_usage": True}),
        "chat_tools": user("a", tools=[tool], tool_choice="required"), "chat_results": {"messages": called, "tools": [tool]},
        "chat_logprobs": user("a", logprobs=True, top_logprobs=3, n=2, seed=7, temperature=0.5),
        "chat_schema": user("a", response_format={"type": "json_schema", "json_schema": {
            "name": "x", "schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}}),
        "chat_regex": user("a", guided_regex="[a-z]{3}"), "chat_gbnf": user("a", grammar='root ::= "a" | "b" root'),
        "chat_choice": user("a", guided_choice=["yes", "no"]), "chat_unknown": user("a", nothing=1),
        "chat_kwargs": user("a", chat_template_kwargs={"enable_thinking": False, "extra": "b"}, reasoning_effort="low"),
        "chat_many_kwargs": user("a", chat_template_kwargs=keys), "chat_many_fields": {**user("a"), **keys},
        "chat_many_tool_keys": user("a", tools=[{**tool, "function": {**tool["function"], "parameters": keys}}]),
        "chat_many_arguments": {"messages": [called[0], {"role": "assistant", "tool_calls": [call(dense(keys))]}]},
        "chat_parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}] * 3}]},
        "chat_image": {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        "chat_role": {"messages": [{"role": "alien", "content": "a"}]}, "chat_empty": {"messages": []},
        "chat_beams": user("a", use_beam_search=True, n=2, best_of=2), "chat_explain": user("a", explain=True),
        "chat_multiple_of": user("a", guided_json={"type": "integer", "multipleOf": 9999991}),
        "chat_ambiguous": user("a", grammar="root ::= s\ns ::= s s | [^x]", n=2),
        "chat_bias": user("a", logit_bias={"5": 1, "-7": 1, "x": 1}, stop=["", "a"]),
        "chat_numbers": user("a", temperature=1e308, top_k=-2**31, seed=2**64, n=2**63, priority=-5),
    }
    for name, body in bodies.items():
        write("routes", name, "c" + dense(body))
    completions = {
        "text": {"prompt": "Once", "max_tokens": 4, "echo": True, "logprobs": 2}, "ids": {"prompt": [5, 6, 7], "max_tokens": 2},
        "lists": {"prompt": [[5, 6], [7]], "n": 2, "max_tokens": 2}, "texts": {"prompt": ["a"] * 64, "max_tokens": 1},
        "too_many": {"prompt": ["a"] * 65}, "bad_ids": {"prompt": [1, 99999999, -5]}, "empty": {"prompt": ""},
        "score": {"prompt": "abc", "max_tokens": 0, "echo": True, "prompt_logprobs": 1},
        "sampler": {"prompt": "a", "max_tokens": 8, "samplers": ["top_k", "min_p"], "top_k": 3, "min_p": 0.1,
                    "dry_multiplier": 0.8, "repeat_penalty": 1.2, "bad_words": ["x"], "xtc_probability": 0.5},
        "stream": {"prompt": "a", "stream": True, "max_tokens": 3, "stop": "\n", "min_tokens": 2},
        "truncated": {"prompt": "a b c d e", "truncate_prompt_tokens": 2, "max_tokens": 1, "t_max_ms": 1},
        "long": {"prompt": "ab " * 200}, "accents": {"prompt": "a" + "\u0301" * 4000, "max_tokens": 1},
    }
    for name, body in completions.items():
        write("routes", "completion_" + name, "p" + dense(body))
    write("routes", "embedding", "e" + dense({"input": ["a", "b"], "dimensions": 4, "encoding_format": "base64"}))
    write("routes", "embedding_ids", "e" + dense({"input": [5, 6], "pooling": "last"}))
    write("routes", "llama", "l" + dense({"prompt": ["a", [5, "b", 6]], "n_predict": 2, "n_probs": 1, "samplers": ["top_k", "infill"],
                                          "response_fields": ["content", "timings/prompt_n"], "n_indent": 2, "stream": True}))
    write("routes", "llama_warm", "l" + dense({"prompt": "a", "n_predict": 0, "grammar": "root ::= \"a\""}))
    write("routes", "llama_late", "l" + dense({"prompt": "a b c", "t_max_prompt_ms": 0.001, "t_max_predict_ms": 0.001}))
    write("routes", "infill", "i" + dense({"input_prefix": "a" * 90, "input_suffix": "b" * 90, "prompt": "c", "n_predict": 2,
                                           "input_extra": [{"filename": "f", "text": "d" * 90}, {"text": ""}]}))
    write("routes", "rerank", "r" + dense({"query": "a", "documents": ["b", {"text": "a"}], "top_n": 5}))
    write("routes", "rerank_tei", "r" + dense({"query": "", "texts": ["b"], "return_text": True}))
    write("routes", "tokenize", "t" + dense({"content": "hello </s>", "parse_special": True, "with_pieces": True}))
    write("routes", "tokenize_messages", "t" + dense({"messages": called, "tools": [tool]}))
    write("routes", "tokenize_accents", "t" + dense({"content": "a" + "\u0301\u0316" * 40_000}))
    write("routes", "detokenize", "d" + dense({"tokens": [5, 6, 7, 300]}))
    write("routes", "template", "a" + dense({"messages": called, "tools": [tool], "continue_final_message": False}))
    write("routes", "template_deep", "a" + '{"messages":[{"role":"user","content":"a"}],"chat_template_kwargs":'
          + nested(120) + "}")
    messages()
    write("routes", "deep", "c" + nested(100_000, "[", "]"))
    write("routes", "cut", 'c{"messages": [')
    write("routes", "twice", 'c{"model":"a","model":"b"}')
    write("routes", "surrogate", 'c{"messages":[{"role":"user","content":"\\ud800"}]}')
    write("routes", "numbers", 'p{"prompt":"a","temperature":1e400,"seed":-0,"x":0x10}')
    write("routes", "bad_utf8", b'p{"prompt":"\xff"}')
    write("routes", "nul", 'p{"prompt":"a\\u0000b","max_tokens":1}')
    responses(tool["function"] | {"type": "function"})
    for name, body in {"chat": {"id": "a", "method": "chat.completions", "body": user("a", stream=True)},
                       "whole": {"id": "a", "method": "completions", "body": {"prompt": "a", "max_tokens": 1}},
                       "cancel": {"id": "a", "method": "cancel"}, "no_id": {"method": "completions", "body": {}},
                       "long_id": {"id": "a" * 300, "method": "cancel"}}.items():
        write("routes", "socket_" + name, "w" + dense(body))


def responses(tool):
    turns = [{"role": "user", "content": [{"type": "input_text", "text": "a"}]},
             {"type": "reasoning", "summary": [], "encrypted_content": "candor1.YQ=="},
             {"type": "function_call", "call_id": "1", "name": "f", "arguments": '{"a":'},
             {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "b"}]}]
    bodies = {
        "text": {"input": "a", "include": ["message.output_text.logprobs"], "top_logprobs": 2},
        "stream": {"input": turns, "tools": [tool], "stream": True, "instructions": "b", "truncation": "auto"},
        "tools": {"input": "a", "tools": [{"type": "namespace", "name": "n", "tools": [tool]}, {"type": "web_search"},
                                          {"type": "custom", "name": "c"}], "tool_choice": "required"},
        "format": {"input": "a", "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "null"}}}},
        "orphan": {"input": turns[3:]}, "image": {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
        "stored": {"input": "a", "previous_response_id": "resp_1"},
        "allowed": {"input": "a", "tools": [tool],
                    "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]}},
    }
    for name, body in bodies.items():
        write("routes", "responses_" + name, "s" + dense({"max_output_tokens": 3} | body))


def http():
    host = "Host: localhost\r\n"
    heads = {
        "get": "GET / HTTP/1.1\r\n" + host + "\r\n", "old": "GET / HTTP/1.0\r\n\r\n", "head": "HEAD /a?b HTTP/1.1\r\n" + host + "\r\n",
        "two": ("GET / HTTP/1.1\r\n" + host + "\r\n") * 2, "no_host": "GET / HTTP/1.1\r\n\r\n",
        "refused": "POST /no HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n" + host + "\r\n",
        "post": "POST /a HTTP/1.1\r\n" + host + "Content-Length: 5\r\n\r\nhello",
        "expect": "POST /a HTTP/1.1\r\n" + host + "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
        "get_body": "GET / HTTP/1.1\r\n" + host + "Content-Length: 20\r\n\r\nGET /x HTTP/1.1\r\n\r\n..",
        "both": "POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "lengths": "POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "huge_length": "POST / HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999\r\n\r\n",
        "bare_lf": "GET / HTTP/1.1\n" + host + "\n", "folded": "GET / HTTP/1.1\r\n" + host + "a: b\r\n c\r\n\r\n",
        "space_colon": "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n", "nul": "GET / HTTP/1.1\r\n" + host + "a: \0\r\n\r\n",
        "many_fields": "GET / HTTP/1.1\r\n" + host + "a: b\r\n" * 101 + "\r\n", "long_field": "GET / HTTP/1.1\r\n" + host
        + "a: " + "b" * 33_000 + "\r\n\r\n", "long_target": "GET /" + "a" * 9000 + " HTTP/1.1\r\n" + host + "\r\n",
        "tls": b"\x16\x03\x01\x02\x00\x01\x00", "upgrade": "GET / HTTP/1.1\r\n" + host + "Upgrade: websocket\r\n\r\n",
        "http2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "identity": "POST / HTTP/1.1\r\n" + host
        + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    }
    for name, text in heads.items():
        data = text if isinstance(text, bytes) else text.encode()
        write("http_head", name, b"\x01" + data)
        write("connection", name, b"\x80" + data)
    begin = "POST /a HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n"
    health = begin.replace("POST", "GET")
    chunks = {
        "chunks": begin + "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", "then": begin + "1\r\na\r\n0\r\n\r\n" + heads["get"],
        "extension": begin + '3;a=b;c="d;\\"e"\r\nabc\r\n0;x\r\n\r\n', "trailer": begin + "1\r\na\r\n0\r\nX: y\r\nZ:\r\n\r\n",
        "long_extension": begin + "1;" + "x" * 70_000 + "\r\na\r\n0\r\n\r\n",
        "many_extensions": begin + ("1" + ";a=b" * 200 + "\r\na\r\n") * 100 + "0\r\n\r\n",
        "long_trailer": health + "0\r\nX: " + "y" * 66_000 + "\r\n\r\n", "long_trailer_name": health + "0\r\n" + "y" * 66_000
        + ": x\r\n\r\n", "many_trailers": begin + "0\r\n" + "a: b\r\n" * 5000 + "\r\n", "size_0x": begin + "0x10\r\n",
        "size_minus": begin + "-2\r\n", "size_2_64": begin + "10000000000000000\r\n", "size_limit": begin + "10001\r\n" + "a" * 65_537
        + "\r\n0\r\n\r\n", "size_space": begin + "3 \r\nabc\r\n0\r\n\r\n", "size_empty": begin + "\r\n", "zeros": begin + "0" * 5000
        + "1\r\na\r\n0\r\n\r\n", "no_crlf": begin + "3\r\nabcd\r\n0\r\n\r\n", "bare_lf_chunk": begin + "3\nabc\n0\n\n", "cut":
        begin + "5\r\nab", "trailer_length": begin + "0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "small": begin + "1\r\na\r\n" * 3000 + "0\r\n\r\n", "get": health + "3\r\nabc\r\n0\r\n\r\n",
    }
    for name, text in chunks.items():
        write("connection", "chunked_" + name if not name.startswith("chunk") else name, b"\x40" + text.encode())


def frame(payload, opcode=1, fin=True, mask=b"\0\0\0\0", length=None):
    n = len(payload) if length is None else length
    size = bytes([0x80 | n]) if n < 126 else b"\xfe" + struct.pack(">H", n) if n < 65536 else b"\xff" + struct.pack(">Q", n)
    return bytes([(0x80 if fin else 0) | opcode]) + size + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload))


def sockets():
    frames = {
        "text": frame(b"hello"), "masked": frame(b"hello", mask=b"abcd"), "binary": frame(b"\0\xff", 2), "ping": frame(b"x", 9),
        "pong": frame(b"x", 10), "close": frame(struct.pack(">H", 1000) + b"bye", 8), "close_1": frame(b"\x03", 8),
        "close_code": frame(struct.pack(">H", 1005), 8), "pieces": frame(b"he", fin=False) + frame(b"y", 9) + frame(b"llo", 0),
        "empty_pieces": frame(b"", fin=False) + frame(b"", 0, fin=False) * 2000 + frame(b"", 0), "bad_utf8": frame(b"\xff\xfe"),
        "unmasked": b"\x81\x05hello", "reserved": b"\xc1" + frame(b"a")[1:], "opcode": frame(b"a", 3), "long_ping": frame(b"a" * 126, 9),
        "huge": frame(b"a", length=2**63 - 1), "huge_bit": frame(b"a", length=2**63), "limit": frame(b"a" * 65_537),
        "continuation": frame(b"a", 0), "twice": frame(b"a", fin=False) + frame(b"b"), "cut": frame(b"hello")[:-2],
        "medium": frame(b"a" * 300) * 3, "not_minimal": b"\x81\xfe\x00\x01\0\0\0\0a", "many": frame(b"") * 3000, "ping_piece":
        frame(b"a", 9, fin=False),
    }
    for name, data in frames.items():
        write("web_socket", name, data)


def constraints():
    schemas = {
        "object": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", 1, None]}}, "required": ["a"]},
        "array": {"type": "array", "items": {"type": "string", "maxLength": 3}, "minItems": 1, "maxItems": 4},
        "unique": {"type": "array", "uniqueItems": True, "items": {"type": "boolean"}}, "any": True, "none": False, "number": 123,
        "bounds": {"type": "integer", "minimum": -5, "maximum": 9223372036854775807}, "format": {"type": "string", "format": "date-time"},
        "multiple_of": {"type": "integer", "multipleOf": 9999991}, "multiple_small": {"type": "number", "multipleOf": 1e-9},
        "pattern": {"type": "string", "pattern": "^(a+)+b$"}, "recursive": {"$defs": {"t": {"type": "object", "properties": {
            "n": {"$ref": "#/$defs/t"}}}}, "$ref": "#/$defs/t"}, "loop": {"$ref": "#"}, "remote": {"$ref": "http://localhost/x"},
        "many_required": {"required": [format(i, "x") for i in range(80_000)]}, "additional": {"type": "object",
            "additionalProperties": {"type": "integer"}, "patternProperties": {"^a": {"type": "string"}}, "propertyNames": {"maxLength": 5}},
        "one_of": {"oneOf": [{"type": "integer", "minimum": 3}, {"type": "integer", "maximum": 1}, {"const": "a"}]},
        "all_of": {"allOf": [{"type": "object", "properties": {"a": {"minimum": 1}}}] * 20}, "not": {"not": {"type": "string"}},
        "if": {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}, "else": {"required": ["c"]}, "type": "object"},
        "conjunction": {"allOf": [{"type": "string", "pattern": f"^[a-{chr(98 + i)}]{{{i},40}}$"} for i in range(8)]},
        "enum_float": {"enum": [{"a": 0.0}]}, "lengths": {"type": "string", "minLength": 100_000, "maxLength": 2_000_000_000},
        "many_properties": {"type": "object", "properties": {format(i, "x"): {} for i in range(2900)}}, "unevaluated": {
            "allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False}, "prefix": {"prefixItems": [{"const": 1}], "items": False},
        "contains": {"type": "array", "contains": {"const": 1}, "maxContains": 2}, "depends": {"dependentRequired": {"a": ["b"]}},
        "annotation": {"type": "string", "_format": "x", "markdownDescription": "y", "nullable": True}, "empty_enum": {"enum": []},
    }
    for name, schema in schemas.items():
        write("schema", name, dense(schema))
    write("schema", "deep", nested(5000, '{"items":', "}", "{}"))
    write("schema", "deep_any_of", nested(60, '{"anyOf":[{"type":"null"},', "]}", "{}"))
    write("schema", "twice", '{"type":"string","type":"integer"}')
    for name, regex in {
            "classes": "[a-z\\d_]+", "repeats": "(a{1,5}b?){2,3}", "nested_plus": "(a+)+b", "stars": "(" * 60 + "a" + ")*" * 60,
            "counts": "a{99999}", "nested_counts": "((a{100}){100}){100}", "huge": "a{1,2000000000}", "open": "[", "double": "foo**",
            "bad": "^?[0-9]$", "parens": "(" * 50_000, "unicode": "\\p{L}+\\w*", "dots": ".*.*.*.*x", "choices": "|".join(
                f"w{i}" for i in range(2000)), "anchors": "^a$", "lookahead": "(?=a)b", "case": "(?i)strasse", "empty": "",
            "classes_many": "[^a]" * 3000, "mirror": "(a|a)*(a|a)*(a|a)*b", "far": "[ab]*a[ab]{40}"}.items():
        write("regex", name, regex)
    for name, grammar in {
            "literal": 'root ::= "a" "b"', "rule": 'root ::= item+\nitem ::= "- " [a-z]+ "\\n"', "ambiguous": "root ::= s\ns ::= s s | [^x]",
            "left": 'root ::= root "a" | "a"', "no_root": 'a ::= "b"', "empty_loop": "root ::= ( [x]* )*", "counts": "root ::= [a-z]{2,5}",
            "huge_count": "root ::= [a-z]{1,2000000000}", "parens": "root ::= " + "(" * 50_000, "utf8": b'root ::= "\xc3', "chain":
            "root ::= r0\n" + "".join(f"r{i} ::= r{i + 1}\n" for i in range(5000)) + 'r5000 ::= "a"', "groups_of_stars": "root ::= "
            + "(" * 255 + '"a"' + (")" + "*" * 250) * 255, "stars": "root ::= " + '"a"' + "*" * 5000, "cycle": "root ::= a\na ::= b\nb ::= a",
            "comment": '# x\nroot ::= "a" # y', "escape": 'root ::= "\\x41\\u00e9\\U0001F600\\n"', "class": "root ::= [^\\]\\-a-f]", "dot":
            "root ::= .{3}", "json": 'root ::= v\nv ::= "{" (s ":" v ("," s ":" v)*)? "}" | s | [0-9]+\ns ::= "\\"" [^"]* "\\""', "many":
            "root ::= " + " | ".join(f'"w{i}"' for i in range(3000)), "nested_counts": "root ::= (([a]{1,300}){1,300}){1,300}", "wide":
            "root ::= a a a a a a a a\na ::= b b b b b b b b\nb ::= c c c c c c c c\nc ::= d d d d d d d d\nd ::= [a-z]*"}.items():
        write("gbnf", name, grammar)
    for name, grammar in {
            "literal": 'start: "a" "b"', "rules": "start: item+\nitem: WORD \" \"\nWORD: /[a-z]+/", "ambiguous": "start: s\ns: s s | /[^x]/", "json":
            'start: %json {"type":"object","properties":{"a":{"type":"integer"}}}', "left": 'start: start "a" | "a"', "no_start": 'a: "b"', "empty":
            "", "counts": "start: /a/{2,5}", "ignore": 'start: "a"+\n%ignore / +/', "terminals": "start: A B\nA: /[a-c]+/\nB: A | /x/", "parens":
            "start: " + "(" * 300 + '"a"' + ")" * 300, "cycle": "start: a\na: b\nb: a", "chain": "start: r0\n" + "".join(f"r{i}: r{i + 1}\n" for i in
            range(3000)) + 'r3000: "a"', "options": 'start: ["a"] ["b"]', "terminal_cycle": "start: A\nA: B\nB: A", "regex_and": "start: /a.*/ & /.*b/",
            "lazy": 'start: T "x"\nT[lazy]: /.*x/', "stop": 'start: t "b"\nt[stop="a"]: /.*/', "capture": 'start[max_tokens=5]: /.*/', "special":
            "start: <|im_start|> /a/", "range": 'start: "a".."z"', "many": "start: " + " | ".join(f'"w{i}"' for i in range(3000)), "wide":
            "start: a~8\na: b~8\nb: c~8\nc: /[a-z]*/", "not": "start: /a/ & ~/b/", "numbered": "start: <[5]> <[999999]>"}.items():
        write("lark", name, grammar)


def chats():
    tool = dense([{"type": "function", "function": {"name": "f", "parameters": {"a": "b"}}}])
    calls = dense({"tool_calls": [call({"a": [1, 2.5, None], "b": "x</tool_call>"})]})
    cases = {"plain": ["", "", "user", "hello", ""], "typed": ["", "", "user", "<|im_end|><|im_start|>", '{"name":"<|im_end|>"}'], "tools":
             [tool, "", "user", "a", "", "assistant", "", calls], "system": ["", '{"extra":{"b":1,"a":2}}', "system", " s ", "", "user", "u", ""], "think":
             ["", "", "assistant", "<think>a</think>\nb", '{"reasoning_content":"\\nc\\n"}'], "parts": ["", "", "user", "", '{"content":[{"type":"text","text":"a"}]}'],
             "null": ["", "", "assistant", "", '{"content":null}'], "bad_json": ["[", "{", "user", "a", "{"], "width": ["", dense({"width": "abc", "words": ["b", 1, None, "a"],
             "sep": "x" * 50}), "user", "a\nb", ""], "many_keys": ["", dense({"extra": many_keys(40_000)}), "user", "a", ""], "many_arguments": ["", "", "assistant", "", dense(
             {"tool_calls": [call(many_keys(40_000))]})], "deep": ["", '{"extra":{"a":' + nested(120) + "}}", "user", "a", ""], "too_deep": [nested(100_000, "[", "]"), "", "user", "a", ""],
             "long": ["", "", "user", "a" * 100_000, ""], "many": ["", ""] + ["user", "a", "", "assistant", "b", ""] * 300, "replaced": ["", "", "assistant", "a" * 50_000 + "</think>" * 2000, ""]}
    for name, fields in cases.items():
        for form in range(6):
            if name.startswith(("many", "too", "long", "replaced")) and form != {"many_keys": 4, "many_arguments": 4, "too_deep": 1, "replaced": 3}.get(name, 2):
                continue
            write("messages", f"{name}_{form}", bytes([form]) + "\0".join(fields).encode())
    outputs = {"hermes": (5, '<think>a</think>b<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>'), "llama": (8, '{"name":"f","parameters":{"a":"b"}}'), "tag":
               (8, '<|python_tag|>{"name":"f","parameters":{}}'), "mistral": (12, '[TOOL_CALLS][{"name":"f","arguments":{}},{"name":"g","arguments":{"a":[]}}]'), "harmony":
               (20, '<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a":1}<|call|>'), "deepseek":
               (16, "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>function<\uff5ctool\u2581sep\uff5c>f\n```json\n{\"a\":1}\n```<\uff5ctool\u2581call\u2581end\uff5c>"),
               "deep": (4, '<tool_call>{"name":"f","arguments":{"a":' + nested(100_000, "[", "]") + "}}</tool_call>"), "deep_llama": (8, '{"name":"f","parameters":' + nested(60_000)
               + "}"), "deep_mistral": (12, "[TOOL_CALLS][" + '{"name":"f","arguments":{"a":' + nested(100_000, "[", "]") + "}}]"), "open": (4, "<tool_call>" * 2000), "almost": (7, "</thin" * 5000 + "<tool_cal"),
               "many_keys": (4, '<tool_call>{"name":"f","arguments":' + dense(many_keys(30_000)) + "}</tool_call>"), "bad_json": (4, "<tool_call>{\"name\":</tool_call>"), "markers": (20, "<|channel|>" * 3000), "braces":
               (8, "{" * 50_000), "mistral_v11": (24, '[THINK]x[/THINK][TOOL_CALLS]f[CALL_ID]abc[ARGS]{"a":"}"}[TOOL_CALLS]g[ARGS]{}'), "qwen_coder":
               (28, "<tool_call>\n<function=f>\n<parameter=a>\n</parameter> 1\n</parameter>\n</function>\n</tool_call>"), "qwen_ends": (28, "<tool_call><function=f><parameter=a>" + "</parameter>  " * 3000), "glm":
               (32, "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>[1, True]</arg_value>\n</tool_call>"), "gemma": (36, '<|channel>thought\nx<channel|><|tool_call>call:f{a:<|"|>"}<|"|>,b:[1]}<tool_call|>'), "kimi":
               (40, '<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a":1}<|tool_call_end|><|tool_calls_section_end|>'), "minimax":
               (44, '<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">1</parameter>\n</invoke>\n</minimax:tool_call>'), "lfm":
               (48, "<|tool_call_start|>[f(a='\\'', b={'c': (1, None)}), g()]<|tool_call_end|>"), "lfm_deep": (48, "<|tool_call_start|>[f(a=" + "(" * 50_000), "granite": (52, '<|tool_call|>[{"name":"f","arguments":{}}]')}
    for name, (form, text) in outputs.items():
        write("output_parser", name, bytes([form, 6]) + text.encode())
    json_calls = {"open": "<tool_call>", "close": "</tool_call>", "content": "json", "transform": {"type": "function", "function": "{content}"}}
    tags = {"open_pattern": r"<tool_call>\s*<function=(?P<name>\w+)>", "close": "</tool_call>", "content": "xml-inline", "content_args": {"tag_pattern":
            r"<parameter=(?P<key>\w+)>\s*(?P<value>.*?)\s*</parameter>"}, "transform": {"function": {"name": "{name}", "arguments": "{content}"}}}
    lines = {"open_pattern": r"\[call (?P<name>[^\]]+)\]", "close": "[/call]", "content": "kv-lines", "transform": {"name": "{name}", "arguments": "{content}"}}
    bare = {"open_pattern": r"<\|call>(?P<name>\w+)", "close": "<call|>", "content": "json", "content_args": {"unquoted_keys": True, "string_delims": [['<|"|>', '<|"|>']]},
            "transform": {"function": {"name": "{name}", "arguments": "{content}"}}}
    own = {"json": (json_calls, '<think>x</think><tool_call>{"name":"f","arguments":{"a":"</tool_call>"}}</tool_call>y'), "tags":
           (tags, "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"), "lines": (lines, "[call f]a: 1\nb: 2\n[/call]"), "bare":
           (bare, '<|call>f{a:<|"|>}<|"|>}<call|>'), "lookahead": ({"open_pattern": "(?=a)", "content": "json"}, ""), "classes": ({"open_pattern": "a[^" + "a-z" * 500, "content": "json"}, ""),
           "steps": ({"open_pattern": r"a\s*b" * 500, "content": "json"}, ""), "number": (7, "")}
    for name, (calls, text) in own.items():
        fields = {"thinking": {"open": "<think>", "close": "</think>"}, "content": {"close": "<|im_end|>"}, "tool_calls": calls}
        write("response_template", name, dense({"start_anchor": "<|im_start|>", "fields": fields}).encode() + bytes([0, 2]) + text.encode())


def configs():
    for name, text in {"port": "port=8080\nhost=\"127.0.0.1\"\n", "lists": 'alias=["a","b"]\nallow-host=["x"]\n', "section": "[serve]\nport=1\n", "unknown": "nothing=1\n", "twice": "port=1\nport=2\n", "big":
                       "port=99999999999999999999\n", "quotes": 'model="a\\"b\n', "multi": 'model="""\na\nb"""\n', "deep": "[a.b.c.d]\nx=1\n", "brackets": "alias=" + "[" * 5000 + "\n", "sections": "[a]\n" * 2000, "nul":
                       "port=1\0\n", "long_line": "model=" + "a" * 100_000 + "\n", "many": "".join(f"x{i}=1\n" for i in range(5000)), "elf": b"\x7fELF\x02\x01\x01\0", "comment": "# a\n; b\nstrict=true\n", "dots": "a." * 3000 + "b=1\n",
                       "bool": "strict=maybe\n", "float": "port=1.5\n", "date": "port=1979-05-27T07:32:00Z\n", "table": "host={a=1}\n", "bom": "\ufeffport=1\n", "cr": "port=1\r\nhost=\"::1\"\r\n", "empty": ""}.items():
        write("serve_config", name, text)


def splits():
    gpt2 = r"'s|'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    inputs = {"words": (gpt2, "It's 12 caf\u00e9s\n\n  x"), "two": (r"\p{N}{1,3}" + "\n" + gpt2, "1234 a"), "ends": (r"\s+$", " " * 5000 + "x"),
              "loops": ("(?:a+)+b", "a" * 5000), "threes": (r"\d{1,3}(?=(?:\d{3})*\b)", "1" * 5000), "atomic": ("a++b", "a" * 6000),
              "atomic_deep": ("(?>a*(?>a*(?>a*b)))", "a" * 3000), "look": ("(?=.*x)a", "a" * 5000), "back": ("(?<=ab)c|(?<!a)b", "abcb"),
              "empty_matches": ("x*", "axxb"), "empty_loop": ("(?:a?)*", "a"), "sets": (r"[a-c&&[^b]\p{Lu}--~~]+", "abc"), "any_case": (r"(?i:k|[\p{L}&&a-z])", "\u212aK"),
              "folds": ("(?i:ss)", "x"), "deep": ("(" * 5000, "x"), "deep_sets": ("[" * 5000, "x"), "counts": ("(?:a{1000}){1000}", "a"), "count": ("a{99999999999}", "a"),
              "many_sets": (r"\p{L}" * 1600, "a"), "many_folds": ("(?i:" + r"\p{L}" * 1600 + ")", "a"), "other_sets": ("".join(rf"[\p{{L}}{chr(0x4e00 + i)}]" for i in range(800)), "a"), "long": ("a" * 20_000, "a"),
              "many": ("\n".join(["a"] * 100), "a"), "no_text": (b"\xff(", b"a"), "bytes": ("a", b"\xff\xfea\xc3"), "places": (r"^a|b$|\bc\B|\Ad|e\z|f\Z", "a\nb c d f\n"),
              "escapes": (r"\x{41}\x42\u0043\t\h\S\W", "ABC\ta!"), "bad_escape": (r"\x{110000}", ""), "reference": (r"(a)\1", "aa"), "lazy": (r"a+?|b{2,3}?|c??", "aabbb"),
              "alternatives": ("|".join(["ab"] * 1000), "a" * 3000), "words_edge": (r"\w+\b\W*?|\B", "a b\u200dc"), "age": (r"[$[\p{P}&&\p{Age=8.0}]]", "a.b$")}
    for number, (name, (expressions, text)) in enumerate(inputs.items()):
        parts = [part if isinstance(part, bytes) else part.encode() for part in (expressions, text)]
        write("general_split", name, bytes([number % 2 * 5]) + b"\n\n".join(parts))
    for number, name in enumerate(("isolated", "removed", "previous", "next", "contiguous", "inverted", "removed_inverted"), 0):
        write("general_split", name, bytes([number]) + b"[,;]\n\na,;b;,c")
    write("general_split", "over_bytes", bytes([10]) + "\\p{N}\n\n\u00e9x\u00f21".encode())


def varint(value):
    data = b""
    while value > 127:
        data, value = data + bytes([value & 127 | 128]), value >> 7
    return data + bytes([value])


def field(number, value):
    """Of a protobuf: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def piece(text, score=0.0, kind=1):
    return field(1, field(1, text) + varint(2 << 3 | 5) + struct.pack("<f", score) + field(3, kind))


def sentence_pieces():
    base = piece(b"<unk>", 0, 2) + piece(b"<s>", 0, 3) + piece(b"</s>", 0, 3)
    words = base + piece(b"a", -1) + piece(b"b", -2) + piece(b"ab", -3) + piece(b"<0x41>", 0, 6) + piece(b"<x>", 0, 4)
    inputs = {"unigram": words, "bpe": words + field(2, field(3, 2)), "words": words + field(2, field(3, 3)), "suffix": words + field(2, field(24, 1)), "rules": words + field(3, field(2, b"\x04\0\0\0\0\0\0\0a\0") + field(4, 0)),
              "no_escape": words + field(3, field(5, 0)), "denormalizer": words + field(5, field(2, b"x")), "empty": b"", "cut": words[:-3], "no_pieces": field(2, field(3, 2)), "ids": words + field(2, field(40, 99)),
              "no_ids": words + field(2, field(41, 2**64 - 1) + field(42, 2**64 - 1)), "many": piece(b"a") * 5000, "kind": words + piece(b"c", 0, 9), "nan": words + piece(b"c", float("nan")), "bytes": words + piece(b"\xff\xfe"), "twice": words + piece(b"a"),
              "long": words + piece(b"a" * 100_000), "size": b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "varint": b"\xff" * 40, "groups": b"\x0b\x0c" * 100, "fixed": words + b"\x31" + b"\0" * 8 + b"\x3d\0\0\0\0", "unknown": words + field(99, b"x")}
    for name, data in inputs.items():
        write("sentence_piece", name, data)


def vocabularies():
    ranks = "".join(f"{c} {i}\n" for i, c in enumerate(("YQ==", "Yg==", "Yw==", "YWI=", "YWJj")))
    for number, name in enumerate(("qwen", "kimi", "llama", "other")):
        write("other_vocabularies", "tiktoken_" + name, bytes([0, number]) + ranks.encode())
    for name, text in {"twice": "YQ== 0\nYQ== 1\n", "rank": "YQ== 0\nYg== 0\n", "no_base64": "Y 0\n", "no_rank": "YQ==\n", "large": "YQ== 99999999999999999999\n", "negative": "YQ== -1\n", "crlf": "YQ== 0\r\n\r\n",
                       "empty_token": " 0\n", "long": "YWFh" * 20_000 + " 0\n", "far": "YQ== 4000000\n", "nul": "YQ==\0 0\n"}.items():
        write("other_vocabularies", "tiktoken_" + name, b"\0\0" + text.encode())
    config = {"pattern": r"\p{L}+|\s", "default_vocab_size": 12, "default_num_special_tokens": 4}
    vocab = [{"rank": i, "token_bytes": c} for i, c in enumerate(("YQ==", "Yg==", "YWI="))]
    special = [{"rank": i, "token_str": t} for i, t in enumerate(("<unk>", "<s>", "</s>"))]
    for name, value in {"plain": {"config": config, "vocab": vocab, "special_tokens": special}, "old": {"config": {**config, "default_vocab_size": 40, "default_num_special_tokens": 30}, "vocab": vocab}, "no_config": {"vocab": vocab},
                        "sizes": {"config": {**config, "default_num_special_tokens": 99}, "vocab": vocab}, "huge": {"config": {**config, "default_vocab_size": 2**40}, "vocab": vocab}, "counts": {"config": {**config, "pattern": "a{1,2}+"}, "vocab": vocab},
                        "rank": {"config": config, "vocab": [{"rank": -1, "token_bytes": "YQ=="}]}, "base64": {"config": config, "vocab": [{"rank": 0, "token_bytes": "!"}]}, "ranks": {"config": config, "vocab": vocab, "special_tokens": special[1:]},
                        "many": {"config": {**config, "default_vocab_size": 290, "default_num_special_tokens": 280}, "vocab": vocab, "special_tokens": special}, "types": {"config": [], "vocab": {}, "special_tokens": 1}}.items():
        write("other_vocabularies", "tekken_" + name, b"\1\0" + dense(value).encode())
    words = dense({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})
    for number, (name, (vocab, merges)) in enumerate({"plain": (words, "#version: 0.2\na b\n"), "qwen2": (words, "a b\n"), "bad_merge": (words, "a c\n"), "three": (words, "a b c\n"), "bad_ids": (dense({"a": -1, "b": "x"}), ""),
                                                       "bytes": (words, b"\xff \xfe\n"), "list": ("[1]", "a b\n"), "twice": (dense({"a": 0, "b": 0}), "")}.items()):
        merges = merges if isinstance(merges, bytes) else merges.encode()
        write("other_vocabularies", "merges_" + name, bytes([2, 4 + number % 2]) + vocab.encode() + b"\0" + merges)


NUMBERS = [b"0", b"-1", b"1", b"2", b"63", b"255", b"256", b"65535", b"65536", b"4294967296", b"-9223372036854775808",
           b"9223372036854775807", b"18446744073709551616", b"1e308", b"1e-308", b"0.5", b"00", b"99999999999999999999999"]


def other_number(rng, data, _):
    """One of the numbers that stand in it as text."""
    found = list(re.finditer(rb"\d+", data))
    if not found:
        return data
    one = rng.choice(found)
    return data[:one.start()] + rng.choice(NUMBERS) + data[one.end():]


def part(rng, data):
    begin = rng.randrange(len(data) + 1)
    return begin, min(len(data), begin + rng.choice([1, 2, 5, 20, 100, 1000]))


def repeated_part(rng, data, _):
    begin, end = part(rng, data)
    return data[:end] + data[begin:end] * rng.choice([1, 2, 10, 100, 3000]) + data[end:]


def moved_part(rng, data, _):
    (begin, end), at = part(rng, data), rng.randrange(len(data) + 1)
    return data[:at] + data[begin:end] + data[at:]


def without_part(rng, data, _):
    begin, end = part(rng, data)
    return data[:begin] + data[end:]


def spliced(rng, data, others):
    other = rng.choice(others)
    return data[:rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1):]


def other_bits(rng, data, _):
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8]) if data else 0):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


WAYS = [other_number, repeated_part, moved_part, without_part, spliced, other_bits]


def varied(rng, data, others):
    """The first byte mostly chooses what the rest is given to, and stays."""
    head, rest = data[:1], data[1:]
    for _ in range(rng.choice([1, 1, 2, 3])):
        rest = rng.choice(WAYS)(rng, rest, others)[:max(len(data), 1 << 16)]
    return head + rest


def write_varied(seed, folder, n_each):
    for corpus in sorted(path for path in CORPUS.iterdir() if path.is_dir()):
        inputs = {path.name: path.read_bytes() for path in sorted(corpus.iterdir())}
        others = list(inputs.values())
        (folder / corpus.name).mkdir(parents=True, exist_ok=True)
        for name, data in inputs.items():
            rng = random.Random(f"{seed}:{corpus.name}:{name}")
            for i in range(n_each):
                (folder / corpus.name / f"{name}_{seed}_{i}").write_bytes(varied(rng, data, others))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", help="of a second corpus")
    parser.add_argument("--into", type=Path, help="folder of the second corpus, which gets a folder for each target")
    parser.add_argument("--each", type=int, default=4, help="variations of each input (4)")
    options = parser.parse_args()
    if (options.seed is None) != (options.into is None):
        parser.error("a second corpus needs --seed and --into")
    if options.into is not None:
        write_varied(options.seed, options.into, options.each)
        return
    for make in (routes, http, sockets, constraints, chats, configs, splits, sentence_pieces, vocabularies):
        make()


if __name__ == "__main__":
    main()
