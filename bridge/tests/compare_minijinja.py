#!/usr/bin/env python3
"""Developer's script: how far minijinja, the library that could be used instead of src/template/jinja, is from CPython's
jinja2, over the expressions of template_expressions.py and published templates.

  compare_minijinja.py FOLDER   every *.jinja of FOLDER over the conversations of make_template_cases.py

Needs jinja2 3.1 and minijinja (its Python package, which is the Rust library; pycompat on). Filters, tests, methods and
formats of ours could be put over its interfaces; what uses none of these cannot be reached, and is counted by itself."""

import datetime
import json
import pathlib
import re
import sys

import make_template_cases as cases
import minijinja
import template_expressions


def library(source, context):
    raised = []

    def raise_exception(message):
        raised.append(str(message))
        raise ValueError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(form):
        return datetime.datetime.fromtimestamp(cases.NOW, datetime.timezone.utc).replace(tzinfo=None).strftime(form)

    env = minijinja.Environment()
    env.trim_blocks = env.lstrip_blocks = env.pycompat = True
    env.auto_escape_callback = lambda _: None
    env.add_filter("tojson", tojson)
    env.add_function("raise_exception", raise_exception)
    env.add_function("strftime_now", strftime_now)
    source = re.sub(r"\{%-?\s*(end)?generation\s*-?%\}", "", source)  # it has no tags of others
    try:
        return {"text": env.render_str(source, **context)}
    except BaseException as error:  # also what its Rust raises
        return {"raised": raised[0]} if raised else {"error": str(error)}


def agrees(expected, got):
    if "text" in expected or "raised" in expected:
        return got == expected
    return "text" not in got or "'NoneType' object is not iterable" in expected["error"]


def uses_interfaces(template):
    return re.search(r"\||\.\w+\(| is |~|\bset\b.*%}$", template) is not None


def main():
    expressions = [(template, cases.reference(template, template_expressions.VALUES),
                    library(template, template_expressions.VALUES)) for _, template in template_expressions.cases()]
    differ = [row for row in expressions if not agrees(row[1], row[2])]
    beyond = [row for row in differ if not uses_interfaces(row[0])]
    for template, expected, got in beyond:
        print(f"{template}\n  jinja2    {expected}\n  minijinja {str(got)[:200]}")
    n_rendered = n_other = 0
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.jinja")):
        for conversation in cases.CONVERSATIONS.values():
            context = cases.context_of(conversation)
            n_rendered += 1
            n_other += not agrees(cases.reference(path.read_text(), context), library(path.read_text(), context))
    print(f"{len(differ)} of {len(expressions)} expressions differ, {len(beyond)} of them beyond its interfaces; "
          f"{n_other} of {n_rendered} renderings of published templates differ")


if __name__ == "__main__":
    main()
