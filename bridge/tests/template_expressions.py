"""Expressions, one a line, over filters, tests, operators and methods that templates may use: make_template_cases.py renders
each by CPython's jinja2. A line that begins with %% is a whole template, in which "\\n" stands for a newline."""

VALUES = {
    "s": "Hello, World", "t": " a\tb\n\nc \x1c", "u": "straße ÀÉ 日本", "e": "", "n": 7, "f": 1e-07, "g": 2.5, "big": 1e16, "neg": -3,
    "l": [3, 1, 2], "words": ["b", "A", "c", "a"], "mixed": [1, True, 1.0, "1", None], "d": {"b": 1, "a": [1, {"x": None}], "items": "own"},
    "people": [{"name": "Bo", "age": 3, "tags": ["x"]}, {"name": "al", "age": 2}, {"name": "Cy", "age": 3}], "none_": None, "yes": True,
}

EXPRESSIONS = r"""
'abc'|int
'abc'|float
'abc'|int(5)
'abc'|float(1.5)
'12'|int + 1
' 12 '|int
'1_000'|int
'0x1f'|int(0, 16)
'0x1f'|int(base=0)
'ff'|int(base=16)
'1.9'|int
'1e3'|int
'nan'|int
'inf'|float
'-inf'|float
'1e-7'|float
3.99|int
-3.99|int
true|int
none|int
none|int(9)
none|float
l|int
missing|int
missing|float
[]|float(2)
f ~ ''
f ~ '|' ~ big ~ '|' ~ g
[f, big, 1.0, true, none]|join(',')
[f, big]
(f, )
{'a': f}
1e22 ~ ''
0.1 + 0.2
1/3
2**0.5
2**-1
10 // 3
-7 // 2
-7 % 3
7 % -3
7.5 // 2
-7.5 % 2
5 / 2
4 / 2
1 / 0
1 % 0
2 ** 100
n * 1.0
'x\n\ny'|indent
'x\n\ny'|indent(2, true)
'x\n\ny'|indent(first=true)
'x\n\ny'|indent(2, true, true)
'x\n\ny\n'|indent(blank=true)
'x\ny'|indent('> ')
'x\r\ny\x0bz'|indent(1)
''|indent(2, true)
missing|indent
none|indent
missing|first
missing|last
missing|items|list
missing|list
missing|join
missing|length
missing|upper
missing|trim
missing|string
missing|sort
missing|map('upper')|list
missing|selectattr('x')|list
missing|unique|list
missing|reverse|list
missing|sum
missing|min
missing|max
missing|dictsort
missing|tojson
missing|replace('a', 'b')
missing|default('d')
missing|abs
missing|round
missing|batch(2)|list
missing|groupby('x')
missing.x
missing['x']
missing()
missing + 'a'
'a' + missing
'a' ~ missing ~ 'b'
missing == missing
missing == ''
missing == none
missing in 'abc'
'a' in missing
missing in [1]
missing < 1
missing is iterable
missing is callable
missing is mapping
missing is sequence
missing is string
missing is none
missing is number
[]|first
[]|last
[]|first is defined
''|first
''|last
none|first
none|last
none|items|list
l|items|list
5|first
{}|first
d|first
d|last
range(3)|first
range(3)|last
l|map('string')|first
l|map('string')|last
'%s' % 'x'
'%s and %s' % ('a', 1)
'%d' % 3.7
'%5d|%-5d|%05d|%+d|% d' % (1, 2, 3, 4, 5)
'%.2f|%8.3f|%-8.1f|%e|%g|%g|%G' % (1.005, 2, 3, 12345.678, 0.00001, 1e10, 1e-10)
'%x|%X|%#x|%o|%c|%c' % (255, 255, 255, 8, 'a', 65)
'%r %s' % ('a', 'b')
'%(a)s %(b)d' % {'a': 'x', 'b': 2}
'%s' % missing
'%s' % none
'%s' % [1, 2]
'%s %s' % 'a'
'%s' % ('a', 'b')
'x' % 'a'
'x' % {}
'x' % []
'%5s|%-5s|%.2s' % ('ab', 'ab', 'abc')
'%*d' % (5, 3)
'100%%' % ()
'100%' % ()
'%d' % 'a'
'%i%%' % 5
'%s-%s'|format('a', 'b')
'%(x)s'|format(x=1)
'%s'|format
'{} {}'.format(1, 'a')
'{0} {1} {0}'.format('a', 'b')
'{a} {b[0]} {c.x}'.format(a=1, b=[2], c={'x': 3})
'{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd')
'{:5d}|{:05d}|{:+d}|{:,}|{:x}|{:#x}|{:b}|{:e}'.format(1, 2, 3, 1234567, 255, 255, 5, 12345.6)
'{:.2f}|{:10.3f}|{:%}|{:.1%}|{:g}|{:,.2f}'.format(1.239, 2.0, 0.5, 0.123, 1e-7, 12345.678)
'{!r} {!s}'.format('a', 'b')
'{{}} {}'.format(1)
'{:{w}}|'.format('a', w=4)
'{}'.format()
'{'.format(1)
'{} {}'.format(none, true)
'{:>3}'.format(1.5)
'{:d}'.format('a')
l|sort
l|sort(true)
l|sort(reverse=true)
words|sort
words|sort(case_sensitive=true)
words|sort(true, true)
people|sort(attribute='age')|map(attribute='name')|list
people|sort(attribute='age,name')|map(attribute='name')|list
people|sort(true, false, 'name')|map(attribute='name')|list
mixed|sort
d|sort
'cab'|sort
people|map(attribute='tags')|list
people|map(attribute='tags', default=[])|list
people|map(attribute='tags.0', default='-')|list
people|map('length')|list
words|map('upper')|list
words|map('replace', 'a', 'z')|list
people|selectattr('tags')|list
people|selectattr('tags', 'defined')|map(attribute='name')|list
people|selectattr('age', 'equalto', 3)|map(attribute='name')|join(', ')
people|selectattr('age', '>', 2)|list|length
people|selectattr('name', 'in', ['Bo'])|list
people|rejectattr('age', 'eq', 3)|map(attribute='name')|list
l|select('odd')|list
l|reject('gt', 1)|list
l|select|list
mixed|select('string')|list
none|select|list
none|map('upper')|list
none|list
people|join('; ', attribute='name')
people|sum(attribute='age')
l|sum(start=10)
words|sum
people|groupby('age')
people|groupby('age')|map(attribute='grouper')|list
people|groupby('tags', default='none')|map(attribute='list')|map('length')|list
l|batch(2)|list
l|batch(2, 0)|list
range(7)|slice(3)|list
range(7)|slice(3, 'x')|list
words|unique|list
['a', 'A', 'b']|unique|list
['a', 'A', 'b']|unique(true)|list
people|unique(attribute='age')|map(attribute='name')|list
mixed|unique|list
words|min
words|max
people|max(attribute='age')
[]|min
l|reverse|list
'abc'|reverse
range(3)|reverse|list
d|dictsort
d|dictsort(true, 'key', true)
{'x': 2, 'y': 1}|dictsort(by='value')
{'B': 1, 'a': 2}|dictsort
{'B': 1, 'a': 2}|dictsort(case_sensitive=true)
d|items|list
d|list
d|length
d|string
d|tojson
d|tojson(indent=2)
d|tojson(indent=1, sort_keys=true)
[1, 'a', none, true, 1.5, 1e-7, 1e16]|tojson
'é\u2028<&>"\\\n\x7f'|tojson
'é\u2028<&>\x7f😀'|tojson(true)
{1: 2, none: 3, true: 4, 1.5: 5}|tojson
(1, 2)|tojson
range(3)|tojson
l|map('string')|tojson
[]|tojson(indent=2)
{}|tojson(indent=2)
[[], {}]|tojson(indent=2)
d|tojson(separators=(',', ':'))
d.items is defined
d.items()|list
d['items']
d.keys()|list
d.values()|list
d.keys()
d.items()
d.get('b')
d.get('zz')
d.get('zz', 4)
d.get('items')
d.b
d.zz is defined
d['zz'] is defined
d.a[1].x is none
d.copy() == d
d.update is defined
d.pop('b')
l.append(4)
l.append is defined
d.keys() == {'b': 0, 'a': 0, 'items': 0}.keys()
'b' in d
1 in {1: 2}
true in {1: 2}
1.0 in {1: 2}
{1: 'a', true: 'b'}
{1: 'a', 1.0: 'b'}
{'a': 1, 'a': 2}
{[1]: 2}
{(1, 2): 3}[(1, 2)]
mixed == [1, 1, 1, '1', none]
1 == true
1 == 1.0
'1' == 1
[1, 2] == (1, 2)
(1, 2) == (1, 2)
{'a': 1} == {'a': 1.0}
[1, 2] < [1, 3]
(1, 2) < (1,)
'a' < 'b' < 'c'
1 < 2 > 3
1 < 'a'
none < 1
true + true
-true
+true
not 1
not none
1 and 0 or 'x'
'' or none or 'z'
l * 2
'ab' * 3
3 * 'ab'
'ab' * -1
l + [4]
l + (4,)
(1,) + (2,)
'a' + 1
'a' + 'b'
l[0]
l[-1]
l[5] is defined
l[1:]
l[::-1]
l[:-1]
l[-2:]
l[::2]
l[5:]
s[0]
s[-1]
s[50] is defined
s[1:5]
s[::-1]
s[-5:]
s[10:2:-2]
u[::-1]
u[2:6]
range(10)[2:5]|list
range(10)[3]
range(10)[::-2]|list
d[1:]
none_[1:]
missing[1:]
n[0] is defined
range(5)
range(1, 10, 3)|list
range(5, 0, -2)|list
range(0)|list
range(200000)
range(3)|length
5 in range(10)
range(3) == range(3)
s.upper()
s.lower()
s.title()
"they're bill's".title()
"they're bill's"|title
'foo-bar (baz) [q] <x>'|title
s.swapcase()
'hELLO wORLD'.capitalize()
'hELLO wORLD'|capitalize
u.upper()
u|upper
u.casefold()
s|center(20)
'abc'.center(8, '*')
'abc'.center(7)
'ab'.center(7, '-')
'a'.center(4, 'xy')
'abc'.ljust(6, '.')
'abc'.rjust(6)
'-5'.zfill(4)
'+5'.zfill(4)
'x'.zfill(0)
'a\tb'.expandtabs(4)
'a\tbc\td'.expandtabs()
s|wordcount
t|wordcount
"it's a test"|wordcount
s|truncate(5)
s|truncate(5, true)
s|truncate(5, true, '…')
s|truncate(8, leeway=0)
'foo bar baz qux'|truncate(9)
'foo bar baz qux'|truncate(11)
'foo bar baz qux'|truncate(11, false, '...', 0)
s|truncate(2)
t|trim
t.strip()
t.lstrip()
t.rstrip()
'xxaxx'|trim('x')
'xyaxy'.strip('yx')
'xxaxx'.lstrip('x')
'xxaxx'.rstrip('x')
none|trim
5|trim
none|upper
5|upper
none|string
none|length
5|length
s.split(', ')
t.split()
' a  b '.split(' ')
'a,b,c'.split(',', 1)
'a,b,c'.split(',', maxsplit=1)
'a,b,c'.split(sep=',')
'a b  c'.split(none, 1)
'a b c'.rsplit(none, 1)
'a,b,c'.rsplit(',', 1)
'a,b'.split('')
'a</think>b'.split('</think>')[-1]
'a\nb\r\nc\x0bd\u2028e'.splitlines()
'a\nb\r\nc\n'.splitlines(true)
'a\nb'.splitlines(keepends=true)
''.splitlines()
'a=b=c'.partition('=')
'a=b=c'.rpartition('=')
'abc'.partition('x')
'abc'.rpartition('x')
s.replace('l', 'L')
s.replace('l', 'L', 1)
'abc'.replace('', '-')
'aaa'|replace('a', 'b', 2)
'aaa'|replace('a', 'b', count=1)
5|replace('5', 6)
s.find('o')
s.find('o', 5)
s.find('zz')
s.rfind('o')
s.index('W')
s.index('zz')
s.count('l')
'aaaa'.count('aa')
'abc'.count('')
s.startswith('He')
s.startswith(('x', 'He'))
s.startswith('W', 7)
s.endswith('ld')
s.endswith(['ld'])
s.endswith('lo', 0, 5)
'prefix-x'.removeprefix('prefix-')
'x.y'.removesuffix('.y')
', '.join(words)
', '.join('abc')
', '.join([1])
''.join(d)
'abc'.isalpha()
'ab1'.isalnum()
'12'.isdigit()
'²'.isdigit()
'²'.isdecimal()
'½'.isnumeric()
'٣'.isdecimal()
'abc'.isascii()
'é'.isascii()
'aB'.islower()
'ab'.islower()
'AB'.isupper()
'1'.isupper()
'Ab Cd'.istitle()
' \t'.isspace()
''.isspace()
'a\n'.isprintable()
'a_1'.isidentifier()
'abc'.encode is defined
s.nope is defined
s.nope()
l.index(1)
l.index(9)
l.count(1)
(1, 1).count(1)
(1, 2).index(2)
l.copy()
n.bit_length()
g.is_integer()
n.real is defined
2.5|round
3.5|round
0.5|round
2.675|round(2)
1.005|round(2)
1234.5|round(-2)
7|round
2.1|round(0, 'ceil')
2.9|round(0, 'floor')
2.15|round(1, 'ceil')
-3|abs
-3.5|abs
'a'|abs
1000|filesizeformat
1|filesizeformat
1500000|filesizeformat
1024|filesizeformat(true)
999|filesizeformat
'a b/ü?&'|urlencode
{'a': 'b c', 'd': 1}|urlencode
'<b>x</b> <!-- c -->  y'|striptags
'<a&"\'>'|e
'<a>'|escape|e
'<a>'|safe
('<a>'|safe) + '<b>'
('<a>'|safe) ~ '<b>'
'<a>'|safe|upper
'<a>'|forceescape
'<b>' + ('<a>'|e)
n is odd
n is even
n is divisibleby 7
n is divisibleby(2)
g is odd
s is odd
yes is number
yes is integer
yes is boolean
g is float
n is float
n is integer
'a' is lower
'A1' is upper
5 is lower
d is mapping
l is mapping
l is sequence
d is sequence
s is sequence
n is sequence
range(2) is sequence
d.items() is sequence
d.items() is iterable
n is iterable
none_ is iterable
none_ is none
none_ is defined
n is sameas n
none is sameas none
1 is sameas true
true is sameas true
s is string
range is callable
s.upper is callable
n is callable
'upper' is filter
'nope' is filter
'odd' is test
1 is in [1, 2]
'a' is in 'abc'
1 is not in [2]
n is eq 7
n is gt 5
n is lessthan 8
n is nope
n|nope
'a' in 5
5 in 'a5'
none in [none]
'x' if yes else 'y'
'x' if not yes
('x' if not yes) is defined
'a' 'b'
'\x41\u00e9\t\101\'\q'
"a\
b"
1_000
0x1F
0b101
0o17
1.5e3
1e5
.5
[1, 2,]
(1,)
()
{'a': 1,}
[1, 2][0]
{'a': {'b': 1}}.a.b
people[0].name
people.0.name
people[0]['name']|upper
d['a'][1]['x']
'é' ~ 1
"it's"
["it's", 'a"b', "it's \"b\"", '\n\t\\', '\x00\x7f\xa0\u200b\U0001f600é']
[none, true, 1.0, 'x']|string
dict(a=1, b=2)
dict([('a', 1)])
dict({'a': 1}, b=2)
namespace(a=1).a
namespace(a=1).b is defined
namespace({'a': 1}).a
raise_exception('no')
strftime_now('%Y-%m-%d')
s|attr('upper') is callable
d|attr('b') is defined
l|list == l
'abc'|list
d|count
s|d('x')
''|d('x')
''|d('x', true)
none|default('x')
none|default('x', boolean=true)
s|upper|lower|length
-n|abs
-(n|abs)
- 3 ** 2
2 ** 3 ** 2
1 + 2 * 3 - 4 / 2
'a' ~ 1 + 2
1 ~ 2 == '12'
not n == 7
n == 7 and s or l
n in l or n is defined
l|map('abs')|sum + 1
s.split(', ')|map('upper')|join('-')
loop is defined
varargs is defined
people|map(attribute='name')|map('lower')|select('in', ['bo', 'al'])|list
people|selectattr('age', 'divisibleby', 3)|map(attribute='name')|list
words|join(d='/')
words|join
[1, [2, [3]]]|string
[1, 2, 3]|tojson|length
'a,b'|replace(',', '\n')|indent(2)
(people|first).name
(people|last)['age']
d|tojson|safe
'%s' % (d|tojson)
'%s' % d
'%-10s|' % 'é'
s == 'Hello, World'
{'a': missing}|tojson
[missing]
'abc'|batch(2)|list
{'a': 1} is mapping and {'a': 1} is iterable
'A' ~ 'b' | lower
('A' ~ 'b') | lower
%%{% for k, v in d.items() %}{{ loop.index }}{{ k }}={{ v }};{% endfor %}
%%{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}
%%{% for x in l if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ loop.first }}{{ loop.last }}{{ loop.revindex }}{{ loop.previtem }}{{ loop.nextitem }} {% else %}none{% endfor %}
%%{% for x in l recursive %}{{ x }}{{ loop.depth }}{% if loop.first %}{{ loop([7, 8]) if loop.depth < 2 }}{% endif %}{% endfor %}
%%{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{{ loop.cycle('a', 'b') }}{% endfor %}
%%{% for x in n %}x{% endfor %}
%%{% for x in missing %}x{% else %}e{% endfor %}
%%{% for c in u %}[{{ c }}]{% endfor %}
%%{% for x in people|map(attribute='name') %}{{ loop.length }}{{ x }}{% endfor %}
%%{% set g = people|map(attribute='name') %}{{ g|list }}{{ g|list }}{{ 'T' if g }}
%%{% set i = d.items() %}{{ i|list|length }}{{ i|list|length }}
%%{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}
%%{% set x = 1 %}{% if yes %}{% set x = 2 %}{% endif %}{{ x }}{% with x = 3, y = x %}{{ x }}{{ y }}{% endwith %}{{ x }}
%%{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d2) = [3, 4] %}{{ c }}{{ d2 }}
%%{% set a, b = [1] %}
%%{% set ns = namespace() %}{% for i in l %}{% set ns.x = (ns.x or 0) + i %}{% endfor %}{{ ns.x }}
%%{% set d.x = 1 %}
%%{% set ns = namespace(a=1) %}{{ ns }}
%%{% set x %}a{{ n }}{% endset %}{{ x }}{% set y | upper | trim %} b {% endset %}{{ y }}{{ y is string }}
%%{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1) }}|{{ m(1, 3, 4, 5, x=6) }}|{{ m(b=1) }}
%%{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
%%{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}
%%{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}
%%{% macro m() %}{{ x }}{% endmacro %}{% set x = 5 %}{{ m() }}
%%{% macro m() %}[{{ caller('a') }}]{% endmacro %}{% call(v) m() %}{{ v }}{{ n }}{% endcall %}
%%{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}
%%{% macro f() %}x{% endmacro %}{{ f()|upper }}{{ f() == 'x' }}{{ f is defined }}{{ f is callable }}{{ f() is string }}
%%{% filter upper|trim %} a{{ s }} {% endfilter %}
%%{% if missing %}a{% elif n %}b{% else %}c{% endif %}
%%{% if n is defined and n > 5 and s %}y{% endif %}
%%{% raw %}{{ x }}{% endraw %}{# {{ no }} #}{{ '{{' }}{{ "}}" }}{{ {'a': {'b': 1}}['a'] }}
%%a\n  {% if yes %}\n    b\n  {% endif %}\n  c\n
%%a  {%- if yes -%}  b  {%- endif -%}  c
%%  {{ n }}  \n  {{- n -}}  \n x
%%{%+ if yes %} a {%+ endif %}\n b
%%{% if yes +%}\n a{% endif %}
%%{# a #}\n{# b -#}  \n c
%%\n\na\n\n
%%{% for i in l %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% if i == 2 %}{% break %}{% endif %}{% endfor %}
%%{% break %}
%%{% generation %}{% set q = 1 %}a{{ q }}{% endgeneration %}{{ q is defined }}
%%{% block x %}a{{ n }}{% endblock %}
%%{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}
%%{% set j = joiner('-') %}{{ j() }}a{{ j() }}b
%%{% for p in people %}{{ p.name }}{{ ', ' if not loop.last }}{% endfor %}
%%{% for g in people|groupby('age') %}{{ g.grouper }}:{{ g.list|length }}{% for k, v in [g] %}{{ k }}{% endfor %}{% endfor %}
%%{{ s
%%{% if %}
%%{% endfor %}
%%{{ 'a }}
%%{{ }}
%%{% for x in l %}
%%{{ a b }}
%%{{ [1, 2 }}
%%{% nope %}
%%{% if yes %}{{ x|nope }}{% endif %}
%%{% do l.append(1) %}
%%{{ s.__class__ }}
%%{{ s.__class__.__mro__ }}
%%{{ s['__class__'] is defined }}
%%{{ s.format.__globals__ }}
%%{{ '{0.__class__}'.format(s) }}
"""


def cases():
    for line in EXPRESSIONS.strip("\n").split("\n"):
        if line.startswith("%%"):
            yield line, line[2:].replace("\\n", "\n")
        else:
            yield line, "{{ " + line + " }}"
