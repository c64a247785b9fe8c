//! Chat templates: agreement with CPython's jinja2 (recorded cases), limits, errors.

use candor_bridge::template::Template;
use candor_bridge::{Error, Status};
use serde_json::Value;
use std::time::{Duration, Instant};

fn render(source: &str, context: &str) -> Result<String, Error> {
    Template::compile(source)?.render(context, 0)
}

fn fails(source: &str, context: &str) -> Error {
    let start = Instant::now();
    let error = render(source, context).expect_err(source);
    assert!(start.elapsed() < Duration::from_secs(4), "{source} took {:?}", start.elapsed());
    error
}

#[test]
fn recorded_cases_render_as_in_cpython() {
    let cases: Value = serde_json::from_str(include_str!("data/template_cases.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let result = Template::compile(case["template"].as_str().unwrap())
            .and_then(|t| t.render(&case["context"].to_string(), case["now"].as_i64().unwrap()));
        let expected = &case["expected"];
        match (result, expected["text"].as_str(), expected["raised"].as_str()) {
            (Ok(text), Some(want), _) => assert_eq!(text, want, "{name}"),
            (Err(e), None, Some(want)) => assert_eq!((e.status, e.message.as_str()), (Status::Raised, want), "{name}"),
            (Err(e), None, None) => assert_eq!(e.status, Status::Invalid, "{name}: {e:?}"),
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

#[test]
fn templates_that_do_not_end_are_stopped() {
    let many = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
    assert_eq!(fails(many, "{}").status, Status::Limit);
    let slow = "{% for a in range(99999) %}{% set x = range(99999) | list %}{% endfor %}";
    assert_eq!(fails(slow, "{}").status, Status::Limit);
    let large = "{% for a in range(99999) %}{{ 'x' * 100000 }}{% endfor %}";
    assert_eq!(fails(large, "{}").status, Status::Limit);
    let recursive = "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}";
    assert_ne!(fails(recursive, "{}").status, Status::Ok);
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
        fails(&source, "{}");
    }
    let _ = render(&("{{ ".to_string() + &"-".repeat(50_000) + "1 }}"), "{}");
    // Long chains are not deep: they may work, and must not crash.
    let _ = render(&format!("{{{{ {}1 }}}}", "1 + ".repeat(20_000)), "{}");
    let _ = render(&format!("{{{{ a{} }}}}", "|list".repeat(20_000)), r#"{"a": []}"#);
    let _ = render(&format!("{{{{ a{} }}}}", "[0]".repeat(20_000)), r#"{"a": []}"#);
    let _ = render(&("{% if a %}".to_string() + &"{% elif b %}".repeat(20_000) + "{% endif %}"), "{}");
}

#[test]
fn self_nested_values_print_within_limits() {
    let nest = "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}";
    for use_of_it in ["{{ ns.x }}", "{{ ns.x | tojson }}", "{{ ns.x | string }}", "{{ ns.x == ns.x }}"] {
        let _ = render(&format!("{nest}{use_of_it}"), "{}");
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
