//! Sizes and depths that are meant to break the compiler, tried in a helper, as the server does.

mod support;

use candor_bridge::constraint::Kind;
use candor_bridge::Status;
use support::{thread_time, Answer, Helper};

/// A helper with a vocabulary, started again where the last one has ended.
struct Tries(Option<Helper>);

impl Tries {
    fn ask(&mut self, kind: Kind, source: &str) -> Answer {
        let mut helper = self.0.take().unwrap_or_else(|| {
            let mut helper = Helper::start();
            helper.send_byte_vocabulary();
            helper
        });
        let begin = helper.work_time();
        let answer = helper.ask(4, kind as u8, source.as_bytes());
        let shown: String = source.chars().take(80).collect();
        println!("{shown} -> {answer:?}");
        if matches!(answer, Answer::Done(_) | Answer::Refused(..)) {
            println!("    in {:?}", helper.work_time() - begin);
            self.0 = Some(helper);
        }
        answer
    }

    fn refused(&mut self, kind: Kind, source: &str) {
        let answer = self.ask(kind, source);
        assert!(matches!(&answer, Answer::Refused(status, _) if *status == Status::Limit as u8), "{answer:?}");
    }

    /// Compiles, or is refused, or ends by a limit of the process.
    fn survives(&mut self, kind: Kind, source: &str) {
        let answer = self.ask(kind, source);
        let is_fault = matches!(&answer, Answer::Refused(status, _) if *status == Status::Internal as u8);
        assert!(!is_fault && (matches!(answer, Answer::Done(_) | Answer::Refused(..)) || answer.is_limit()), "{answer:?}");
    }

    fn passes(&mut self, kind: Kind, source: &str) {
        let answer = self.ask(kind, source);
        assert!(matches!(answer, Answer::Done(_)), "{answer:?}");
    }
}

#[test]
fn hostile_sizes_and_depths_end_in_time() {
    let mut tries = Tries(None);
    let nested = |n: usize| format!("{}{}{}", r#"{"properties":{"a":"#.repeat(n), "{}", "}}".repeat(n));
    tries.refused(Kind::JsonSchema, &nested(5000));
    tries.passes(Kind::JsonSchema, &nested(31));
    tries.refused(Kind::JsonSchema, &"[".repeat(100_000));
    tries.refused(Kind::Regex, &("(".repeat(50_000) + &")".repeat(50_000)));
    tries.refused(Kind::Lark, &format!("start: {}{}", "(".repeat(50_000), ")".repeat(50_000)));
    tries.refused(Kind::Lark, &"x".repeat((1 << 20) + 1));
    let many = |n: usize| {
        format!(r#"{{"allOf": [{}]}}"#, (0..n).map(|i| serde_json::json!({"properties": {"a": {"pattern": format!("[a-{}]{{{}}}", char::from(b'b' + (i % 20) as u8), i + 3)}}}).to_string()).collect::<Vec<_>>().join(","))
    };
    tries.refused(Kind::JsonSchema, &many(20));
    tries.survives(Kind::JsonSchema, &many(8));
    let separate = |n: usize| {
        format!(
            r#"{{"allOf": [{}]}}"#,
            (0..n).map(|i| format!(r#"{{"properties": {{"p{i}": {{"pattern": "a"}}}}}}"#)).collect::<Vec<_>>().join(",")
        )
    };
    tries.passes(Kind::JsonSchema, &separate(20));
    let rules = |n: usize| {
        (0..n).map(|i| format!("r{i}: r{} | \"a\"\n", i + 1)).collect::<String>() + &format!("r{n}: \"b\"\nstart: r0\n")
    };
    tries.refused(Kind::Lark, &rules(60_000));
    let terminals = |n: usize| {
        (0..n).map(|i| format!("R{i}: R{} \"a\"\n", i + 1)).collect::<String>() + &format!("R{n}: \"b\"\nstart: R0\n")
    };
    tries.survives(Kind::Lark, &rules(7990));
    tries.survives(Kind::Lark, &terminals(2000));
    tries.survives(Kind::Lark, &format!("start: {}", (0..15_000).map(|i| format!("\"k{i}\"")).collect::<Vec<_>>().join(" | ")));
    tries.survives(Kind::Lark, &format!("start: {}{}", "(".repeat(200), "\"a\"".to_string() + &")*".repeat(200)));
    let refs = |n: usize| {
        let defs: Vec<String> = (0..n)
            .map(|i| {
                format!(r##""d{i}": {{"type": "object", "properties": {{"x": {{"$ref": "#/$defs/d{}"}}}}}}"##, (i + 1) % n)
            })
            .collect();
        format!(r##"{{"$ref": "#/$defs/d0", "$defs": {{{}}}}}"##, defs.join(","))
    };
    tries.survives(Kind::JsonSchema, &refs(1000));
    tries.survives(Kind::JsonSchema, &refs(10_000));
    let plain: Vec<String> = (0..10_000).map(|i| format!(r##""d{i}": {{"$ref": "#/$defs/d{}"}}"##, i + 1)).collect();
    tries.survives(
        Kind::JsonSchema,
        &format!(r##"{{"$ref": "#/$defs/d0", "$defs": {{{}, "d10000": {{}}}}}}"##, plain.join(",")),
    );
    let names: Vec<String> = (0..16).map(|i| format!(r#""[a-{}]{{{}}}": {{}}"#, char::from(b'b' + i), i + 3)).collect();
    tries.survives(Kind::JsonSchema, &format!(r#"{{"patternProperties": {{{}}}}}"#, names.join(",")));
    tries.refused(Kind::Lark, &format!("start: A\nA: {}", ["/(.*)a.{9}(.*)/"; 20].join(" & ")));
    tries.survives(
        Kind::JsonSchema,
        &format!(r#"{{"properties": {{{}}}}}"#, (0..3000).map(|i| format!("\"p{i}\": {{}}")).collect::<Vec<_>>().join(",")),
    );
    tries.survives(
        Kind::JsonSchema,
        &format!(r#"{{"enum": [{}]}}"#, (0..60_000).map(|i| format!("\"value {i}\"")).collect::<Vec<_>>().join(",")),
    );
    let all_of = |n: usize| {
        format!(
            r#"{{"allOf": [{}]}}"#,
            (0..n)
                .map(|i| format!(r#"{{"anyOf": [{{"required": ["a{i}"]}}, {{"required": ["b{i}"]}}]}}"#))
                .collect::<Vec<_>>()
                .join(",")
        )
    };
    tries.survives(Kind::JsonSchema, &all_of(30));
    for source in [
        "(a{1000}){1000}",
        "((a{300}){300}){300}",
        "(.*a){500}",
        "([a-z]*[0-9]){1000}x{100000}",
        "(\\pL{1000}|\\d{1000}){100}",
        ".*a.{10000}",
        "(a|b)*a(a|b){20}",
        "(((((((.*)*)*)*)*)*)*)*",
    ] {
        tries.survives(Kind::Regex, source);
        tries.survives(Kind::JsonSchema, &serde_json::json!({"type": "string", "pattern": source}).to_string());
    }
    for schema in [
        r#"{"type": "array", "maxItems": 2000000000}"#,
        r#"{"type": "string", "maxLength": 2000000000}"#,
        r#"{"type": "array", "minItems": 100000}"#,
        r#"{"type": "string", "minLength": 100000}"#,
        r#"{"type": "object", "minProperties": 100000}"#,
        r#"{"type": "number", "multipleOf": 1e-300}"#,
        r#"{"type": "number", "multipleOf": 0}"#,
        r#"{"type": "integer", "multipleOf": 1000000007}"#,
        r#"{"type": "number", "minimum": -1e308, "maximum": 1e308}"#,
        r#"{"type": "number", "minimum": 0.000000000000001, "maximum": 0.000000000000002}"#,
        r#"{"type": "integer", "minimum": 9223372036854775807, "maximum": 18446744073709551615}"#,
        r#"{"patternProperties": {".*a.*": {}, ".*b.*": {}}}"#,
    ] {
        tries.survives(Kind::JsonSchema, schema);
    }
}

#[test]
fn what_outlives_its_time_or_memory_ends_with_its_process() {
    let mut tries = Tries(None);
    for source in [r#"{"type": "integer", "multipleOf": 9999991}"#.to_string(), {
        let names: Vec<String> = (0..80_000).map(|i| format!("\"p{i}\"")).collect();
        format!(r#"{{"required": [{}]}}"#, names.join(","))
    }] {
        for _ in 0..2 {
            let answer = tries.ask(Kind::JsonSchema, &source);
            assert!(answer.is_limit(), "{answer:?}");
        }
    }
    tries.passes(Kind::JsonSchema, r#"{"type": "integer", "multipleOf": 7}"#);
}

/// The check of what a schema asks of one string at once is counted for the whole schema, not for each part.
#[test]
fn a_conjunction_of_many_parts_is_checked_in_little_time() {
    let parts: Vec<String> = (0..400).map(|i| format!(r##""p{i}": {{"$ref": "#/$defs/x"}}"##)).collect();
    let defs = r##"{"x": {"anyOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}, {"type": "null"}]}}"##;
    let schema: serde_json::Value =
        serde_json::from_str(&format!(r#"{{"properties": {{{}}}, "$defs": {defs}}}"#, parts.join(","))).unwrap();
    let begin = thread_time();
    let _ = candor_bridge::schema::check::check(&schema);
    println!("checked in {:?}", thread_time() - begin);
    assert!(thread_time() - begin < std::time::Duration::from_millis(500));
}

#[test]
fn a_template_that_allocates_or_runs_ends_with_its_process() {
    let mut helper = Helper::start();
    for source in [
        "{{ 'a\nb' | indent(1000000000000) }}",
        "{{ \"%1000000000000d\" | format(3) }}",
        "{{ 'x'.ljust(1000000000000) }}",
        "{% set ns = namespace(x='abcdefgh') %}{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x|length }}",
        "{% for i in range(99999) %}{% set x = range(99999) | list | tojson %}{% endfor %}",
    ] {
        let answer = helper.render(source, "{}");
        println!("{source} -> {answer:?}");
        match answer {
            Answer::Refused(..) => {}
            Answer::Done(text) => assert!(text.len() < 1 << 20, "{source}"),
            Answer::WorkedTooLong | Answer::Ended(_) => {
                assert!(answer.is_limit(), "{source}: {answer:?}");
                helper = Helper::start();
            }
        }
        assert!(matches!(helper.render("{{ 1 + 1 }}", "{}"), Answer::Done(text) if text == "2"));
    }
}
