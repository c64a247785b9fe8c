//! Chat templates: agreement with CPython's jinja2 (recorded cases), limits, errors.

mod support;

use candor_bridge::guard::on_large_stack;
use candor_bridge::template::Template;
use candor_bridge::{Error, Status};
use serde_json::Value;
use std::time::Duration;
use support::{timed, Answer, Helper};

fn render(source: &str, context: &str) -> Result<String, Error> {
    on_large_stack(|| Template::compile(source)?.render(context, 0))
}

fn fails(source: &str, context: &str) -> Error {
    let (outcome, took) = timed(|| Template::compile(source)?.render(context, 0));
    assert!(took < Duration::from_secs(4), "{source} took {took:?}");
    outcome.expect_err(source)
}

#[test]
fn recorded_cases_render_as_in_cpython() {
    let cases: Value = serde_json::from_str(include_str!("data/template_cases.json")).unwrap();
    for case in cases["cases"].as_array().unwrap() {
        let context = &cases["contexts"][case["context"].as_u64().unwrap() as usize];
        let name = case["name"].as_str().unwrap();
        let result = Template::compile(case["template"].as_str().unwrap())
            .and_then(|t| t.render(&context.to_string(), case["now"].as_i64().unwrap()));
        let expected = &case["expected"];
        match (result, expected["text"].as_str(), expected["raised"].as_str()) {
            (Ok(text), Some(want), _) => assert_eq!(text, want, "{name}"),
            (Err(e), None, Some(want)) => assert_eq!((e.status, e.message.as_str()), (Status::Raised, want), "{name}"),
            (Err(e), None, None) => assert!(matches!(e.status, Status::Invalid | Status::Limit), "{name}: {e:?}"),
            (result, _, _) => panic!("{name}: {result:?}, expected {expected}"),
        }
    }
}

#[test]
fn an_error_names_its_line() {
    assert_eq!(fails("a\nb\n{% if %}", "{}").line, 3);
    assert_eq!(fails("a\n{{ x.y.z }}", r#"{"x": {}}"#).line, 2);
    let raised = fails("a\n\n{{ raise_exception('no ' ~ x) }}", r#"{"x": "é"}"#);
    assert_eq!((raised.status, raised.line, raised.message.as_str()), (Status::Raised, 3, "no é"));
    let inner = fails("{% macro m() %}\n{{ raise_exception('in') }}{% endmacro %}\n{{ m() }}", "{}");
    assert_eq!((inner.status, inner.message.as_str()), (Status::Raised, "in"));
}

#[test]
fn a_context_that_is_not_an_object_is_refused() {
    for context in ["", "[]", "1", "{", "{\"a\": NaN}"] {
        assert_eq!(fails("x", context).status, Status::Invalid);
    }
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(5000), "]".repeat(5000));
    assert_eq!(fails("{{ a }}", &deep).status, Status::Invalid);
}

/// In a helper of its own.
fn run(source: &str, context: &str) -> Answer {
    let answer = Helper::start().render(source, context);
    let is_fault = matches!(&answer, Answer::Refused(status, _) if *status == Status::Internal as u8);
    let ended = matches!(answer, Answer::WorkedTooLong | Answer::Ended(_));
    assert!(!is_fault && (!ended || answer.is_limit()), "{answer:?}");
    answer
}

#[test]
fn templates_that_do_not_end_are_stopped() {
    let many = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
    assert!(run(many, "{}").is_limit());
    let slow = "{% for a in range(99999) %}{% set x = range(99999) | list %}{% endfor %}";
    assert!(run(slow, "{}").is_limit());
    let large = "{% for a in range(99999) %}{{ 'x' * 100000 }}{% endfor %}";
    assert!(run(large, "{}").is_limit());
    let recursive = "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}";
    assert!(!matches!(run(recursive, "{}"), Answer::Done(_)));
}

#[test]
fn deep_or_broken_templates_are_errors() {
    for source in [
        "{{ ".to_string() + &"(".repeat(50_000) + &")".repeat(50_000) + " }}",
        "{{ ".to_string() + &"[".repeat(50_000),
        "{{ ".to_string() + &"not ".repeat(50_000) + "x }}",
        "{% if a %}".repeat(20_000),
        "{% for a in b %}".repeat(20_000) + &"{% endfor %}".repeat(20_000),
        "{{ 'abc".into(),
        "{% include 'x' %}".into(),
        "{% extends 'x' %}".into(),
        "{{ debug() }}".into(),
        "x".repeat((1 << 20) + 1),
    ] {
        assert!(!matches!(run(&source, "{}"), Answer::Done(_)), "{}", &source[..20]);
    }
    let _ = run(&("{{ ".to_string() + &"-".repeat(50_000) + "1 }}"), "{}");
    // Long chains are not deep: they may work, and must not crash.
    let _ = run(&format!("{{{{ {}1 }}}}", "1 + ".repeat(20_000)), "{}");
    let _ = run(&format!("{{{{ a{} }}}}", "|list".repeat(20_000)), r#"{"a": []}"#);
    let _ = run(&format!("{{{{ a{} }}}}", "[0]".repeat(20_000)), r#"{"a": []}"#);
    let _ = run(&("{% if a %}".to_string() + &"{% elif b %}".repeat(20_000) + "{% endif %}"), "{}");
}

#[test]
fn self_nested_values_print_within_limits() {
    let nest = "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}";
    for use_of_it in ["{{ ns.x }}", "{{ ns.x | tojson }}", "{{ ns.x | string }}", "{{ ns.x == ns.x }}"] {
        let _ = run(&format!("{nest}{use_of_it}"), "{}");
    }
}

#[test]
fn one_template_renders_on_several_threads() {
    let template = Template::compile("{{ a }}{{ strftime_now('%Y') }}").unwrap();
    std::thread::scope(|scope| {
        for i in 0..4i64 {
            let template = &template;
            scope.spawn(move || {
                for _ in 0..100 {
                    let text = template.render(&format!("{{\"a\": {i}}}"), i * 366 * 86_400).unwrap();
                    assert_eq!(text, format!("{i}{}", 1970 + i));
                }
            });
        }
    });
}

/// What each of these asks for is refused before it is there.
#[test]
fn a_template_cannot_ask_for_much_memory() {
    for source in [
        "{{ 'x' | indent(1000000000000, true) }}",
        "{{ '%1000000000000d' | format(3) }}",
        "{{ '%.1000000000000f' % 3 }}",
        "{{ '%*d' % (1000000000000, 3) }}",
        "{{ '{:1000000000000}'.format(3) }}",
        "{{ 'x'.ljust(1000000000000, 'y') }}",
        "{{ 'x'.center(1000000000000) }}",
        "{{ 'x' | center(1000000000000) }}",
        "{{ 'x'.zfill(1000000000000) }}",
        "{{ 'x' * 1000000000000 }}",
        "{{ [1] * 1000000000000 }}",
        "{{ [1] | batch(1000000000000, 0) | list }}",
        "{{ [1] | slice(1000000000000) | list }}",
        "{{ [[1]] | tojson(indent=1000000000000) }}",
        "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
        "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
        "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = ns.l + ['x' * 1000000] %}{% endfor %}",
        "{% macro m(n) %}{{ 'x' * 1000000 }}{{ m(n) }}{% endmacro %}{{ m(1) }}",
        "{% set ns = namespace(x=1) %}{% set ns.x = ns %}{{ ns }}",
    ] {
        fails(source, "{}");
    }
}

/// Limits on brackets and on links do not multiply: the tree of an expression is walked on any stack.
#[test]
fn chains_inside_of_chains_are_refused() {
    let chain = "+a".repeat(900);
    fails(&format!("{{{{ {}a{} }}}}", "(".repeat(50), format!("{chain})").repeat(50)), "{}");
    fails(&format!("{{{{ {}a{} }}}}", "(".repeat(50), format!("{}){chain}", "|list".repeat(900)).repeat(50)), "{}");
}

fn shown(source: &str, context: &str) -> String {
    let context = format!("{{\"client texts\": {{\"mark\": \"~\", \"own\": [\"bos\"]}}, {context}}}");
    render(source, &context).unwrap_or_else(|e| panic!("{source}: {e:?}"))
}

/// Whatever is done to a client's text, its characters are known, and no others are taken for it.
#[test]
fn what_a_client_wrote_is_known_in_the_result() {
    let context = r#""bos": "<s>", "c": " a</t>\n\nb ", "l": ["x", "y"], "d": {"role": "user"}, "messages": [{"role": "user", "k<": "v"}]"#;
    for (source, expected) in [
        ("{{ bos }}[{{ c }}]", "<s>[~ a</t>\n\nb ~]"),
        ("{{ c.split('</t>')[-1].strip() }}!", "~b~!"),
        ("{{ '</t>' in c }}{{ c.replace('</t>', '</t>') }}", "True~ a~</t>~\n\nb ~"),
        ("{{ c | trim | upper }}.{{ c[1:3] }}.{{ c | trim | first }}", "~A</T>\n\nB~.~a<~.~a~"),
        ("{{ l | join('-') }} {{ l }} {{ 'x' in l }}", "~x~-~y~ ['~x~', '~y~'] True"),
        ("{{ messages | tojson }}", "[{\"~role~\": \"user\", \"~k<~\": \"~v~\"}]"),
        ("{{ '<|' ~ messages[0].role ~ '|>' }}{{ d.role }}", "<|user|>~user~"),
        ("{{ '%s|%5s' % (l[0], l[1]) }}{{ '{}{:>3}'.format('z', l[0]) }}", "~x~|    ~y~z  ~x~"),
        ("{% set ns = namespace(t='') %}{% for x in l %}{% set ns.t = ns.t ~ x ~ ';' %}{% endfor %}{{ ns.t }}", "~x~;~y~;"),
        (
            "{% macro m(v) %}<{{ v }}>{% endmacro %}{{ m(l[0]) | upper }}{% filter indent %}{{ l[0] }}\nq{% endfilter %}",
            "<~X~>~x~\n    q",
        ),
        ("{{ c | trim | indent(1) | replace('a', l[0]) }}", "~x</t>~\n\n ~b~"),
        ("{{ c | tojson(true) }}{{ l[0] * 2 }}{{ l[0] ~ l[1] }}", "\"~ a</t>\\n\\nb ~\"~xxxy~"),
    ] {
        assert_eq!(shown(source, context), expected, "{source}");
    }
}
