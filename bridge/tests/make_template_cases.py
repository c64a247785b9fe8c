#!/usr/bin/env python3
"""Developer's script: chat templates rendered by CPython's jinja2, set up as the transformers library does, against the bridge.

  make_template_cases.py compare FOLDER   every *.jinja of FOLDER over the conversations below, and the own cases
  make_template_cases.py write            tests/data/template_cases.json: own templates with CPython's output

Needs jinja2 3.1. The published templates belong to their models' makers and are not kept here."""

import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

import jinja2
import jinja2.ext
import jinja2.sandbox

import template_expressions

HERE = pathlib.Path(__file__).resolve().parent
NOW = 1721952005  # 2024-07-26T00:00:05


class Generation(jinja2.ext.Extension):
    """The scope that transformers' AssistantTracker opens."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


class Raised(Exception):
    pass


def reference(source, context):
    def raise_exception(message):
        raise Raised(str(message))

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(fmt):
        return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).replace(tzinfo=None).strftime(fmt)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    try:
        return {"text": env.from_string(source).render(**context)}
    except Raised as e:
        return {"raised": str(e)}
    except Exception as e:  # any other failure must be a failure of the bridge too
        return {"error": f"{type(e).__name__}: {e}"}


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather at a <place> & time, \"now\" by default",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "The city's name, e.g. Zürich"},
                    "days": {"type": "integer", "default": 1, "enum": [1, 2, 7]},
                    "unit": {"type": ["string", "null"], "enum": ["c", "f", None], "nullable": True},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "at": {"type": "object", "properties": {"lat": {"type": "number", "maximum": 90.0}}, "required": ["lat"]},
                },
                "required": ["city"],
            },
            "return": {"type": "string", "description": "text"},
        },
    },
    {"type": "function", "function": {"name": "noop", "description": "Nothing", "parameters": {"type": "object", "properties": {}}}},
]
SIMPLE_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Adds",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer", "description": "one"}, "b": {"type": "array", "items": {"type": "number"}, "description": "more"}},
                "required": ["a"],
            },
        },
    }
]
CALL = {"id": "call12345", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 2}}}
CALL2 = {"id": "call67890", "type": "function", "function": {"name": "noop", "arguments": {}}}
CALL_STRING = {"id": "call12345", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Zürich"}'}}


def tool(content, **more):
    return {"role": "tool", "content": content, "tool_call_id": "call12345", "name": "get_weather", **more}


SYSTEM = {"role": "system", "content": "You are terse."}
CONVERSATIONS = {
    "user": {"messages": [user("Hi")]},
    "system": {"messages": [SYSTEM, user("  Hi \n")]},
    "developer": {"messages": [{"role": "developer", "content": "Be terse."}, user("Hi")]},
    "multi_turn": {"messages": [SYSTEM, user("One?"), assistant("1"), user("Two?"), assistant("2\n\n"), user("Three?")]},
    "ends_with_assistant": {"messages": [user("Hi"), assistant("Hello")], "add_generation_prompt": False},
    "unicode": {"messages": [user("日本語 \U0001f600 ‏עברית <|im_end|> {{ x }} {% y %} \u2028 \x1c ")]},
    "empty_content": {"messages": [user(""), assistant(""), user("x")]},
    "two_users": {"messages": [user("a"), user("b")]},
    "assistant_first": {"messages": [assistant("a"), user("b")]},
    "system_twice": {"messages": [SYSTEM, SYSTEM, user("b")]},
    "alien_role": {"messages": [{"role": "alien", "content": "x"}]},
    "no_messages": {"messages": []},
    "parts": {"messages": [user([{"type": "text", "text": "first "}, {"type": "text", "text": "second"}])]},
    "content_none": {"messages": [user("x"), assistant(None), user("y")]},
    "tools": {"messages": [user("Weather?")], "tools": TOOLS},
    "tools_system": {"messages": [SYSTEM, user("Weather?")], "tools": TOOLS},
    "tools_not_in_user": {"messages": [SYSTEM, user("Weather?")], "tools": TOOLS, "tools_in_user_message": False},
    "tool_call": {"messages": [user("W?"), assistant("", tool_calls=[CALL])], "tools": TOOLS, "add_generation_prompt": False},
    "tool_result": {"messages": [user("W?"), assistant(None, tool_calls=[CALL]), tool("Sunny & 21 °C")], "tools": TOOLS},
    "tool_result_no_tools": {"messages": [user("W?"), assistant("", tool_calls=[CALL]), tool("{\"t\": 21}"), assistant("21"), user("ok")]},
    "tool_result_object": {"messages": [user("W?"), assistant("", tool_calls=[CALL]), tool({"t": 21.5, "ok": True, "x": None})], "tools": TOOLS},
    "two_calls": {
        "messages": [user("W?"), assistant("Both.", tool_calls=[CALL, CALL2]), tool("a"), tool("b", tool_call_id="call67890"), user("and?")],
        "tools": TOOLS,
    },
    "call_string_arguments": {"messages": [user("W?"), assistant("", tool_calls=[CALL_STRING]), tool("a")], "tools": TOOLS},
    "thinking_in_text": {"messages": [user("a"), assistant("<think>\nhm\n</think>\n\nyes"), user("b")]},
    "thinking_field": {"messages": [user("a"), assistant("yes", reasoning_content="hm\n"), user("b"), assistant("no", reasoning_content="ah", thinking="ah")], "add_generation_prompt": False},
    "thinking_off": {"messages": [user("a")], "enable_thinking": False, "thinking": False},
    "thinking_on": {"messages": [SYSTEM, user("a")], "enable_thinking": True, "thinking": True, "reasoning_effort": "high"},
    "no_think_flag": {"messages": [{"role": "system", "content": "Be kind /no_think"}, user("a /think")]},
    "documents": {"messages": [user("a")], "documents": [{"title": "T", "text": "body", "doc_id": 1}]},
    "tools_simple": {"messages": [SYSTEM, user("Add")], "tools": SIMPLE_TOOLS},
    "tools_empty": {"messages": [SYSTEM, user("Hi"), assistant("Hello"), user("x")], "tools": []},
    "call_simple": {"messages": [user("W?"), assistant(None, tool_calls=[CALL]), tool("a"), assistant("done"), user("ok")], "tools": SIMPLE_TOOLS},
    "controls": {"messages": [user("a")], "controls": {"length": "short"}, "date_string": "01 Jan 2025", "xml_tools": TOOLS, "builtin_tools": ["browser", "python"]},
}


def context_of(conversation):
    base = {"tools": None, "documents": None, "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "</s>"}
    return {**base, **conversation}


OWN = {
    "chat": "{{ bos_token }}{% for m in messages %}\n    {% if m.role == 'system' %}\n[S]{{ m.content | trim }}[/S]\n    {%- elif m['role'] == 'user' -%}\n        [U]{{ m['content'].strip() }}[/U]\n    {% else %}\n[A]{% generation %}{{ m.content }}{{ eos_token }}{% endgeneration %}\n[/A]\n    {% endif %}\n{% endfor %}\n{% if add_generation_prompt %}[A]{% endif %}\n",
    "tools": "{% for t in tools or [] %}{{ t | tojson }}\n{{ t.function | tojson(indent=4) }}\n{{ t | tojson(separators=(',', ':')) }}\n{% for k, v in t.function.parameters.properties.items() %}{{ k }}={{ v.type }}|{{ v }};{{ loop.index0 }}/{{ loop.last }}\n{% endfor %}{% endfor %}",
    "calls": "{% for m in messages if m.tool_calls is defined %}{% for c in m.tool_calls %}{{ c.function.arguments | tojson(sort_keys=true, ensure_ascii=True) }}{{ c.function.arguments is mapping }}{{ c.function.arguments is string }}{% endfor %}{% endfor %}",
    "raise": "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}\n{{ raise_exception('Roles must alternate: ' ~ m.role) }}{% endif %}{{ m.content }}{% endfor %}",
    "date": "{{ strftime_now('%d %b %Y') }} {{ strftime_now('%Y-%m-%d %H:%M:%S %A %B %-d %j %U %W %V %u %w %I %p %y') }}",
    "values": "{{ 1.0 }} {{ 1e16 }} {{ 0.00001 }} {{ 7 // 2 }} {{ 7 / 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ true }} {{ none }} {{ [1, 'a\\'b', \"c\", none, true, 1.5] }} {{ {'a': [1, {'b': 'x\\ny'}]} }} {{ (1,) }} {{ ('a', 2) }} {{ 'é' | tojson }} {{ '<&>\\'\"\\u2028' | tojson }} {{ undefined_name }} {{ undefined_name is defined }} {{ [1.5, 'x'] | string }} {{ 1.5 | string }} {{ undefined_name | length }}",
    "strings": "{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a-b-c'.split('-', 1)[-1] }} {{ 'a-b-c'.rsplit('-', 1) }} {{ 'xxabxx'.strip('x') }} {{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'aXbX'.replace('X', '-', 1) }} {{ 'hello world'.title() }} {{ 'abc'.find('c') }} {{ 'a'.upper() ~ 'B'.lower() }} {{ 'abc'[1:] }} {{ 'abc'[::-1] }} {{ 'prefix-x'.removeprefix('prefix-') }} {{ 'a=b=c'.partition('=') }} {{ ', '.join(['x', 'y']) }} {{ '7'.zfill(3) }} {{ 'l1\\nl2'.splitlines() }} {{ '%s-%d' | format('a', 3) }} {{ 'abc' | upper | replace('B', 'x') }} {{ '  x ' | trim }}|{{ 'x\\n\\ny' | indent(2) }}",
    "loops": "{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 5 %}{% break %}{% endif %}{{ i }}{{ loop.index }}{{ loop.first }}{{ loop.length }}{{ loop.cycle('a', 'b') }},{% else %}none{% endfor %}{% for i in [] %}x{% else %}empty{% endfor %}{% set ns = namespace(n=0, s='') %}{% for i in [3, 4] %}{% set ns.n = ns.n + i %}{% set ns.s = ns.s ~ i %}{% endfor %}{{ ns.n }}{{ ns.s }}{% for a, b in {'x': 1, 'y': 2} | items %}{{ a }}{{ b }}{% endfor %}{% for k in {'x': 1} %}{{ k }}{% endfor %}{% for k, v in {'b': 1, 'a': 2} | dictsort %}{{ k }}{{ v }}{% endfor %}",
    "macros": "{%- macro walk(v, depth=0) -%}{% if v is mapping %}{ {%- for k, x in v.items() %}{{ k }}:{{ walk(x, depth + 1) }}{{ ',' if not loop.last }}{% endfor -%} }{% elif v is iterable and v is not string %}[{% for x in v %}{{ walk(x, depth + 1) }};{% endfor %}]{% else %}{{ v }}@{{ depth }}{% endif %}{%- endmacro -%}\n{{ walk({'a': [1, {'b': 'c'}], 'd': none}) }}{% macro box() %}<{{ caller() }}>{% endmacro %}{% call box() %}in{% endcall %}{% set captured %}x{{ 1 }}\ny{% endset %}[{{ captured }}]{% filter upper %}abc{% endfilter %}",
    "filters": "{{ [3, 1, 2] | sort }} {{ [3, 1, 2] | max }} {{ [1, 2, 3] | sum }} {{ ['a', 'b'] | join('-') }} {{ messages | map(attribute='role') | list }} {{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | rejectattr('role', 'equalto', 'user') | map(attribute='content') | join('|') }} {{ [1, 2, 3, 4] | select('even') | list }} {{ messages | first is mapping }} {{ (messages | last).role }} {{ none | default('d', true) }} {{ undefined_name | default('e') }} {{ [1, 2, 1] | unique | list }} {{ [1, 2, 3] | reverse | list }} {{ '3' | int + 4 }} {{ 3.7 | round }} {{ -3 | abs }} {{ messages[-1].content }} {{ messages[:1] | length }} {{ 'a' in 'abc' }} {{ 'role' in messages[0] }} {{ messages[0].get('nope', 'dflt') }} {{ messages[0].get('nope') }} {{ messages[0].keys() | list }} {{ [1, [2]] + [3] }} {{ 'x' * 3 }}",
    "tests": "{% for v in [1, 1.5, true, none, 'x', '', [], [1], {}, {'a': 1}, (1, 2)] %}{{ v }}:{{ v is iterable }}{{ v is sequence }}{{ v is mapping }}{{ v is string }}{{ v is number }}{{ v is integer }}{{ v is float }}{{ v is boolean }}{{ v is none }}{{ v is true }}{{ v is false }}{{ v is defined }}{{ 'yes' if v else 'no' }};{% endfor %}{{ undefined_name is iterable }}{{ undefined_name is none }}{{ undefined_name == none }}{{ undefined_name == '' }}{{ 3 is odd }}{{ 4 is divisibleby 2 }}{{ 'a' is in ['a'] }}{{ 1 == 1.0 }}{{ '1' == 1 }}{{ 'A' < 'a' }}{{ not undefined_name }}{{ undefined_name or 'z' }}{{ none or 0 }}{{ 1 and 'k' }}{% if undefined_name %}1{% else %}2{% endif %}{% for x in undefined_name %}x{% endfor %}{{ 'x' ~ none ~ 1.0 ~ true ~ undefined_name }}",
    "whitespace": "  {% if true %}  \n  a  \n  {%- if true %} b {% endif -%}  \n c {# note #}  \n  {# note #}\n{{ 'x' }}\n   {%+ if true %}d{% endif %}\n{% raw %}  {{ raw }} {% generation %} {% endraw %}\n{% endif %}\n\n\n",
    "errors_attribute": "{{ missing.attribute }}",
    "errors_filter": "{{ 1 | no_such_filter }}",
    "errors_syntax": "line one\n{% if %}",
    "errors_call": "{{ messages.nope() }}",
    "errors_add": "{{ 'a' + 1 }}",
    "errors_undefined_json": "{{ missing | tojson }}",
}
OWN_CONVERSATIONS = ["user", "multi_turn", "unicode", "two_users", "tools", "two_calls"]


def own_cases():
    for name, template in OWN.items():
        for conversation in OWN_CONVERSATIONS if name in ("chat", "raise", "filters") else ["two_calls"]:
            yield f"{name}/{conversation}", template, context_of(CONVERSATIONS[conversation])
    for name, template in template_expressions.cases():
        yield f"expressions/{name}", template, template_expressions.VALUES


def case(name, template, context):
    return {"name": name, "template": template, "context": context, "now": NOW, "expected": reference(template, context)}


def bridge(cases):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(cases, file)
        file.flush()
        command = ["cargo", "run", "--quiet", "--release", "--locked", "--example", "render_cases", "--", file.name]
        out = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.split("\n") if line]


def agrees(expected, got):
    if "text" in expected:
        return got.get("text") == expected["text"]
    if "'NoneType' object is not iterable" in expected.get("error", ""):
        return True  # a loop over none does nothing here
    if "raised" in expected:
        return got.get("status") == 2 and got["message"] == expected["raised"]
    # What recurses without end meets CPython's limit there, and ours here.
    return got.get("status") in (1, 3, 4)


def compare(folder):
    cases = [case(*c) for c in own_cases()]
    for path in sorted(pathlib.Path(folder).glob("*.jinja")):
        for name, conversation in CONVERSATIONS.items():
            cases.append(case(f"{path.stem}/{name}", path.read_text(), context_of(conversation)))
    table, n_bad = {}, 0
    for c, got in zip(cases, bridge(cases), strict=True):
        family = c["name"].split("/")[0]
        good = agrees(c["expected"], got)
        kind = next(iter(c["expected"]))
        row = table.setdefault(family, {"text": [0, 0], "raised": [0, 0], "error": [0, 0]})
        row[kind][0 if good else 1] += 1
        if not good:
            n_bad += 1
            print(f"DIFFERS {c['name']}\n  jinja2 {c['expected']!r}\n  bridge {got!r}")
    print(f"{'template':60} agree (differ): text, raised, error")
    for family, row in table.items():
        print(f"{family:60} " + ", ".join(f"{a} ({b})" for a, b in row.values()))
    return n_bad


def write():
    contexts, cases = [], []
    for c in (case(*c) for c in own_cases()):
        if c["context"] not in contexts:
            contexts.append(c["context"])
        cases.append({**c, "context": contexts.index(c["context"])})
    lines = ",\n".join(json.dumps(c, ensure_ascii=True) for c in cases)
    (HERE / "data").mkdir(exist_ok=True)
    text = '{"contexts": ' + json.dumps(contexts, ensure_ascii=True) + ',\n"cases": [\n' + lines + "\n]}\n"
    (HERE / "data" / "template_cases.json").write_text(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"] and len(sys.argv) == 3:
        sys.exit(1 if compare(sys.argv[2]) else 0)
    elif sys.argv[1:] == ["write"]:
        write()
    else:
        sys.exit(__doc__)
