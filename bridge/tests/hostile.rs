//! Sizes and depths that are meant to break the compiler. In a process of their own: several end by the time limit, and
//! while they are overdue, other compilations may be refused.

use candor_bridge::constraint::{compile, Kind};
use candor_bridge::tok_env::{self, TokEnvironment};
use candor_bridge::{Error, Status};
use std::time::{Duration, Instant};

/// The limit is 2 s; a loaded machine wakes late.
const PATIENCE: Duration = Duration::from_secs(5);

fn env() -> TokEnvironment {
    let mut words: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
    words.push(b"</s>".to_vec());
    let slices: Vec<&[u8]> = words.iter().map(|w| w.as_slice()).collect();
    tok_env::new(&slices, &[false; 257], &[256]).unwrap()
}

fn refused(env: &TokEnvironment, kind: Kind, source: &str) -> Error {
    let start = Instant::now();
    let shown: String = source.chars().take(80).collect();
    let Err(error) = compile(env, kind, source) else { panic!("compiled: {shown}") };
    assert!(start.elapsed() < PATIENCE, "{shown}: {:?}", start.elapsed());
    error
}

/// Compiles or is refused; in either case in time and without a fault.
fn survives(env: &TokEnvironment, kind: Kind, source: &str) {
    let start = Instant::now();
    let shown: String = source.chars().take(80).collect();
    match compile(env, kind, source) {
        Ok(mut c) => {
            c.mask(&mut [0; 9]).unwrap();
            println!("{shown} -> compiled in {:?}", start.elapsed());
        }
        Err(e) => {
            assert_ne!(e.status, Status::Internal, "{shown}: {}", e.message);
            println!("{shown} -> {:?} {} in {:?}", e.status, e.message, start.elapsed());
        }
    }
    assert!(start.elapsed() < PATIENCE, "{shown}: {:?}", start.elapsed());
}

#[test]
fn hostile_sizes_and_depths_end_in_time() {
    let env = env();
    let nested = |n: usize| format!("{}{}{}", r#"{"properties":{"a":"#.repeat(n), "{}", "}}".repeat(n));
    assert_eq!(refused(&env, Kind::JsonSchema, &nested(5000)).status, Status::Limit);
    assert!(compile(&env, Kind::JsonSchema, &nested(31)).is_ok());
    assert_eq!(refused(&env, Kind::JsonSchema, &"[".repeat(100_000)).status, Status::Limit);
    assert_eq!(refused(&env, Kind::Regex, &("(".repeat(50_000) + &")".repeat(50_000))).status, Status::Limit);
    assert_eq!(
        refused(&env, Kind::Lark, &format!("start: {}{}", "(".repeat(50_000), ")".repeat(50_000))).status,
        Status::Limit
    );
    assert_eq!(refused(&env, Kind::Lark, &"x".repeat((1 << 20) + 1)).status, Status::Limit);
    let many = |n: usize| {
        format!(r#"{{"allOf": [{}]}}"#, (0..n).map(|i| serde_json::json!({"properties": {"a": {"pattern": format!("[a-{}]{{{}}}", char::from(b'b' + (i % 20) as u8), i + 3)}}}).to_string()).collect::<Vec<_>>().join(","))
    };
    assert_eq!(refused(&env, Kind::JsonSchema, &many(20)).status, Status::Limit);
    survives(&env, Kind::JsonSchema, &many(8));
    let separate = |n: usize| {
        format!(
            r#"{{"allOf": [{}]}}"#,
            (0..n).map(|i| format!(r#"{{"properties": {{"p{i}": {{"pattern": "a"}}}}}}"#)).collect::<Vec<_>>().join(",")
        )
    };
    assert!(compile(&env, Kind::JsonSchema, &separate(20)).is_ok());
    let rules = |n: usize| {
        (0..n).map(|i| format!("r{i}: r{} | \"a\"\n", i + 1)).collect::<String>() + &format!("r{n}: \"b\"\nstart: r0\n")
    };
    assert_eq!(refused(&env, Kind::Lark, &rules(60_000)).status, Status::Limit);
    let terminals = |n: usize| {
        (0..n).map(|i| format!("R{i}: R{} \"a\"\n", i + 1)).collect::<String>() + &format!("R{n}: \"b\"\nstart: R0\n")
    };
    survives(&env, Kind::Lark, &rules(7990));
    survives(&env, Kind::Lark, &terminals(2000));
    survives(&env, Kind::Lark, &format!("start: {}", (0..15_000).map(|i| format!("\"k{i}\"")).collect::<Vec<_>>().join(" | ")));
    survives(&env, Kind::Lark, &format!("start: {}{}", "(".repeat(200), "\"a\"".to_string() + &")*".repeat(200)));
    let refs = |n: usize| {
        let defs: Vec<String> = (0..n)
            .map(|i| {
                format!(r##""d{i}": {{"type": "object", "properties": {{"x": {{"$ref": "#/$defs/d{}"}}}}}}"##, (i + 1) % n)
            })
            .collect();
        format!(r##"{{"$ref": "#/$defs/d0", "$defs": {{{}}}}}"##, defs.join(","))
    };
    survives(&env, Kind::JsonSchema, &refs(1000));
    survives(&env, Kind::JsonSchema, &refs(10_000));
    let plain: Vec<String> = (0..10_000).map(|i| format!(r##""d{i}": {{"$ref": "#/$defs/d{}"}}"##, i + 1)).collect();
    survives(
        &env,
        Kind::JsonSchema,
        &format!(r##"{{"$ref": "#/$defs/d0", "$defs": {{{}, "d10000": {{}}}}}}"##, plain.join(",")),
    );
    let names: Vec<String> = (0..16).map(|i| format!(r#""[a-{}]{{{}}}": {{}}"#, char::from(b'b' + i), i + 3)).collect();
    survives(&env, Kind::JsonSchema, &format!(r#"{{"patternProperties": {{{}}}}}"#, names.join(",")));
    assert_eq!(
        refused(&env, Kind::Lark, &format!("start: A\nA: {}", ["/(.*)a.{9}(.*)/"; 20].join(" & "))).status,
        Status::Limit
    );
    survives(
        &env,
        Kind::JsonSchema,
        &format!(r#"{{"properties": {{{}}}}}"#, (0..3000).map(|i| format!("\"p{i}\": {{}}")).collect::<Vec<_>>().join(",")),
    );
    survives(
        &env,
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
    survives(&env, Kind::JsonSchema, &all_of(30));
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
        survives(&env, Kind::Regex, source);
        survives(&env, Kind::JsonSchema, &serde_json::json!({"type": "string", "pattern": source}).to_string());
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
        survives(&env, Kind::JsonSchema, schema);
    }
}
