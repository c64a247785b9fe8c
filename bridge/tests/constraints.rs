//! Constraints, over a toy vocabulary of single bytes, a few words, and two special tokens.

mod support;

use candor_bridge::constraint::tok_env::{self, TokEnvironment};
use candor_bridge::constraint::{compile, Constraint, Kind};
use candor_bridge::{Error, Status};
use std::time::Duration;
use support::rehearsed;

const TOOL: u32 = 256; // special
const EOS: u32 = 257;
const END: u32 = 258; // a second end-of-sequence token, not flagged as special
/// Processor time of a refusal; a helper is ended after 2 s.
const MOST_WORK: Duration = Duration::from_secs(5);
const WORDS: [&str; 6] = ["true", "\"a\":", "name", "日本", "{\"", "ab"];

fn env() -> TokEnvironment {
    let mut words: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
    words.push(b"<tool>".to_vec());
    words.push(b"</s>".to_vec());
    words.push(b"<end>".to_vec());
    words.extend(WORDS.iter().map(|w| w.as_bytes().to_vec()));
    words.push(Vec::new());
    words.push(vec![b'x'; 5000]);
    let slices: Vec<&[u8]> = words.iter().map(|w| w.as_slice()).collect();
    let special: Vec<bool> = (0..words.len() as u32).map(|id| id == TOOL || id == EOS).collect();
    tok_env::new(&slices, &special, &[EOS, END]).unwrap()
}

fn n_words(env: &TokEnvironment) -> usize {
    let _ = env;
    (256 + 3 + WORDS.len() + 2usize).div_ceil(32) + 2
}

fn allowed(c: &mut Constraint) -> Vec<u32> {
    let mut words = vec![u32::MAX; n_words(&env())];
    c.mask(&mut words).unwrap();
    (0..words.len() as u32 * 32).filter(|t| words[*t as usize / 32] >> (t % 32) & 1 == 1).collect()
}

fn feed(c: &mut Constraint, text: &str) -> Result<(), usize> {
    for (i, b) in text.bytes().enumerate() {
        if !c.accept(u32::from(b)).unwrap() {
            return Err(i);
        }
    }
    Ok(())
}

/// Whether the whole text is allowed and may end.
fn matches(env: &TokEnvironment, kind: Kind, source: &str, text: &str) -> bool {
    let mut c = compile(env, kind, source).unwrap_or_else(|e| panic!("{source}: {e:?}"));
    feed(&mut c, text).is_ok() && c.is_accepting()
}

fn refused(env: &TokEnvironment, kind: Kind, source: &str) -> Error {
    let shown: String = source.chars().take(80).collect();
    let Err(error) = compile(env, kind, source) else { panic!("compiled: {shown}") };
    let (rehearsal, took) = rehearsed(env, kind, source);
    assert_eq!(rehearsal.unwrap_err().message, error.message, "{shown}");
    assert!(took < MOST_WORK, "{shown}: {took:?}");
    assert_ne!(error.status, Status::Internal, "{shown}: {}", error.message);
    println!("{shown} -> {:?} {}", error.status, error.message);
    error
}

#[test]
fn each_kind_allows_its_texts_and_no_others() {
    let env = env();
    let schema = r#"{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", null]}}, "required": ["a"], "additionalProperties": false}"#;
    for (kind, source, good, bad) in [
        (Kind::JsonSchema, schema, r#"{"a": 12, "b":null}"#, r#"{"b": null}"#),
        (Kind::JsonSchema, schema, r#"{"a":-1}"#, r#"{"a": 1.5}"#),
        (Kind::JsonSchema, "true", "[1, {}]", "[1,"),
        (Kind::JsonObject, "", r#"{"é": [1, {"x": true}]}"#, "[]"),
        (Kind::Regex, "[a-z]{2,3}/\\d+\"?", "abc/42\"", "a/42"),
        (Kind::Regex, "(a+)+b", "aaaaaaaab", "aaaaaaaa"),
        (Kind::Regex, "", "", "x"),
        (Kind::Regex, "日本|[^\\x00-\\x7f]", "日本", "a"),
        (Kind::Lark, "start: expr\nexpr: expr \"+\" term | term\nterm: /[0-9]+/ | \"(\" expr \")\"", "1+(2+33)", "1+"),
        (Kind::Lark, "start: (/x/*)*", "xxx", "y"),
        (Kind::Choice, r#"["yes", "no", "ne\"ver\\\n", "\u007f"]"#, "ne\"ver\\\n", "nope"),
        (Kind::Choice, r#"["a", "ab", ""]"#, "", "b"),
    ] {
        assert!(matches(&env, kind, source, good), "{source} should allow {good}");
        assert!(!matches(&env, kind, source, bad), "{source} should not allow {bad}");
    }
}

#[test]
fn masks_agree_with_accept() {
    let env = env();
    let mut c = compile(
        &env,
        Kind::JsonSchema,
        r#"{"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": false}"#,
    )
    .unwrap();
    let mut text = Vec::new();
    let mut state = 1u32;
    while !c.is_stopped() {
        let mask = allowed(&mut c);
        assert!(!mask.is_empty() && mask.iter().all(|t| *t < 256 + 3 + WORDS.len() as u32 + 2));
        for token in 0..300 {
            assert_eq!(c.fork().accept(token).unwrap(), mask.contains(&token), "token {token} after {text:?}");
        }
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let token = mask[(state >> 8) as usize % mask.len()];
        assert!(c.accept(token).unwrap());
        text.push(token);
        if text.len() > 12 {
            break;
        }
    }
}

#[test]
fn a_state_met_again_has_the_mask_of_its_first_time() {
    let env = env();
    for (source, text) in
        [("(ab){1,3}x*", "ababxxx"), ("[a-z]{2,4}(name|true)?[0-9]+", "abname77"), ("\"(a|日本)*\"", "\"a日本aa\"")]
    {
        let compiled = compile(&env, Kind::Regex, source).unwrap();
        for _ in 0..2 {
            let mut c = compiled.fork();
            for byte in text.bytes() {
                let mask = allowed(&mut c);
                for token in 0..300 {
                    assert_eq!(c.fork().accept(token).unwrap(), mask.contains(&token), "{source}, token {token} before {byte}");
                }
                assert!(c.accept(u32::from(byte)).unwrap());
            }
            assert!(c.is_accepting() && allowed(&mut c).contains(&EOS));
        }
    }
}

#[test]
fn a_grammar_compiled_before_is_a_copy_of_its_own() {
    let env = env();
    let schema = r#"{"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}, "required": ["a"]}"#;
    let others: Vec<String> = (0..70).map(|n| format!("[a-z]{{{n}}}x")).collect();
    for round in 0..3 {
        let mut c = compile(&env, Kind::JsonSchema, schema).unwrap();
        assert!(c.accept(u32::from(b'{')).unwrap(), "round {round} begins at the start");
        feed(&mut c, "\"a\":\"xyz").unwrap();
        assert!(!c.accept(u32::from(b'w')).unwrap() && c.accept(u32::from(b'"')).unwrap());
        let again = compile(&env, Kind::JsonSchema, schema).unwrap();
        assert_eq!(allowed(&mut again.fork()), allowed(&mut compile(&env, Kind::JsonObject, "").unwrap()));
        if round == 1 {
            for other in &others {
                compile(&env, Kind::Regex, other).unwrap(); // more than are kept
            }
        }
    }
    assert!(matches(&env, Kind::Choice, r#"["a"]"#, "a"));
    assert!(matches(&env, Kind::Lark, "start: \"b\"", "b"));
    assert!(compile(&env, Kind::Regex, r#"["a"]"#).is_ok_and(|mut c| feed(&mut c, "\"").is_ok()));
    // a class, not a choice
}

#[test]
fn threads_may_compile_the_same_at_once() {
    let env = env();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let env = &env;
            scope.spawn(move || {
                for n in 0..40 {
                    let n = (n + thread) % 5 + 1;
                    assert!(matches(env, Kind::Regex, &format!("(ab){{{n}}}"), &"ab".repeat(n)));
                }
            });
        }
    });
}

#[test]
fn special_tokens_are_never_text_and_the_end_is_allowed_only_at_the_end() {
    let env = env();
    let mut c = compile(&env, Kind::Regex, "(?s:.*)</s>(?s:.*)").unwrap();
    assert!(!allowed(&mut c).iter().any(|t| [TOOL, EOS, END].contains(t)));
    feed(&mut c, "x</s>").unwrap();
    let mask = allowed(&mut c);
    assert!(mask.contains(&EOS) && mask.contains(&END) && !mask.contains(&TOOL) && mask.contains(&65));
    assert!(c.accept(END).unwrap());
    assert!(c.is_stopped());

    let mut special = compile(&env, Kind::Lark, "start: <tool> \"x\"").unwrap();
    assert_eq!(allowed(&mut special), [TOOL]);
}

#[test]
fn a_stopped_constraint_allows_only_the_end() {
    let env = env();
    let mut c = compile(&env, Kind::Choice, r#"["ab"]"#).unwrap();
    assert!(!c.accept(u32::from(b'b')).unwrap());
    assert!(!c.accept(1_000_000).unwrap());
    feed(&mut c, "ab").unwrap();
    assert!(c.is_stopped() && c.is_accepting());
    assert_eq!(allowed(&mut c), [EOS, END]);
    assert!(!c.accept(u32::from(b'b')).unwrap());
    assert!(c.accept(EOS).unwrap());
    assert!(!c.accept(3).unwrap());
}

#[test]
fn forks_are_independent() {
    let env = env();
    let mut c = compile(&env, Kind::JsonObject, "").unwrap();
    feed(&mut c, "{\"k\": [1").unwrap();
    let before = allowed(&mut c);
    let mut copy = c.fork();
    feed(&mut copy, ",2]}").unwrap();
    assert!(copy.is_stopped());
    assert_eq!(allowed(&mut c), before);
    assert_eq!(feed(&mut c.fork(), ",2]}x"), Err(4));
    assert_eq!(allowed(&mut c), before);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let mut copy = c.fork();
            std::thread::spawn(move || {
                let before = allowed(&mut copy);
                feed(&mut copy, ", 3").map(|()| before)
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap().unwrap(), before);
    }
    assert_eq!(allowed(&mut c), before);
}

#[test]
fn what_cannot_be_enforced_is_refused_with_its_place() {
    let env = env();
    for (schema, status, place) in [
        (r#"{"x-guidance": {"lenient": true}}"#, Status::Unsupported, "/x-guidance"),
        (
            r#"{"properties": {"a/b": {"anyOf": [{"x\u002dguidance": 1}]}}}"#,
            Status::Unsupported,
            "/properties/a~1b/anyOf/0/x-guidance",
        ),
        (r#"{"properties": {"a": {"not": {"format": "date"}}}}"#, Status::Unsupported, "/properties/a/not/format"),
        (r#"{"items": {"uniqueItems": true}}"#, Status::Unsupported, "/items/uniqueItems"),
        (r#"{"type": "stsring"}"#, Status::Invalid, "/type"),
        (r#"{"type": 123}"#, Status::Invalid, "/type"),
        (r#"{"type": ["string", "objekt"]}"#, Status::Invalid, "/type"),
        ("123", Status::Invalid, "(root)"),
        ("{", Status::Invalid, "column"),
        ("", Status::Invalid, "not JSON"),
        (r#"{"$ref": "http://example.com/x"}"#, Status::Unsupported, "/$ref"),
        (r#"{"$id": "http://example.com/y", "$ref": "http://example.com/x"}"#, Status::Invalid, "example.com"),
        (r#"{"$ref": "file:///etc/passwd"}"#, Status::Unsupported, "/$ref"),
        (r##"{"$ref": "#/nowhere"}"##, Status::Invalid, "nowhere"),
        (r##"{"$ref": "#"}"##, Status::Invalid, "leads back"),
        (
            r##"{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}"##,
            Status::Invalid,
            "leads back",
        ),
        (r##"{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}"##, Status::Invalid, "leads back"),
        (r#"{"enum": []}"#, Status::Invalid, "/enum"),
        (r#"{"type": "integer", "minimum": 5, "maximum": 1}"#, Status::Invalid, "/minimum"),
        (r#"{"type": "array", "minItems": 1000000}"#, Status::Limit, "/minItems"),
        (r#"{"type": "string", "minLength": 2000000000}"#, Status::Limit, "/minLength"),
        (r#"{"type": "string", "minLength": 5, "maxLength": 1}"#, Status::Invalid, ""),
        (r#"{"type": "string", "pattern": "["}"#, Status::Invalid, "/pattern, character 1"),
        (r#"{"type": "string", "pattern": "a{1,2000000000}"}"#, Status::Limit, "/pattern"),
        (r#"{"properties": 5}"#, Status::Invalid, "/properties"),
        (r#"{"oneOf": [{"type": "string"}, {"type": "string"}]}"#, Status::Invalid, "oneOf"),
    ] {
        let error = refused(&env, Kind::JsonSchema, schema);
        assert_eq!(error.status, status, "{schema}: {}", error.message);
        assert!(error.message.contains(place), "{schema}: {}", error.message);
    }
}

#[test]
fn broken_expressions_and_grammars_are_refused_with_a_position() {
    let env = env();
    for source in
        ["[", "(", "a{2,1}", "foo**{", "^?[0-9]$*", "a{1,2000000000}", "\\", "(?=a)", "a\\bb", "[b-a]", "\\p{Klingon}"]
    {
        refused(&env, Kind::Regex, source);
    }
    for source in [
        "root: \"a\"",
        "start: missing",
        "start: \"a",
        "start: (",
        "",
        "x",
        "start: /[/",
        "%llguidance {\"allow_invalid_utf8\": true}\nstart: \"a\"",
        "start: %json {\"x-guidance\": {}}",
        "start: %json {\"a\": 1, \"x\\u002dguidance\": {}}",
        "start: %json { \"type\": \"stsring\" }",
        "start: \"a\"~1000000",
        "start: @other",
        "start: /a{3000000}/",
        "start: start",
    ] {
        refused(&env, Kind::Lark, source);
    }
    for source in ["", "[]", "{}", "[1]", "\"a\"", "[\"a\""] {
        refused(&env, Kind::Choice, source);
    }
}

#[test]
fn recursive_references_and_long_counts_work() {
    let env = env();
    let tree = r##"{"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"l": {"$ref": "#/$defs/n"}, "v": {"type": "integer"}}, "required": ["v"], "additionalProperties": false}}}"##;
    assert!(matches(&env, Kind::JsonSchema, tree, r#"{"l": {"l": {"v": 1}, "v": 2}, "v": 3}"#));
    assert!(matches(&env, Kind::Regex, "[a-z]{1999,2000}", &"x".repeat(1999)));
    assert!(matches(
        &env,
        Kind::JsonSchema,
        r#"{"type": "array", "items": {"type": "null"}, "minItems": 2, "maxItems": 3}"#,
        "[null,null]"
    ));
    let list = r##"{"type": "array", "items": {"$ref": "#"}}"##;
    assert!(matches(&env, Kind::JsonSchema, list, "[[],[[]]]"));
}

#[test]
fn bad_vocabularies_are_errors() {
    for (words, special, eos) in [(0usize, 0usize, vec![0u32]), (3, 3, vec![]), (3, 3, vec![3]), (3, 2, vec![0])] {
        let words = vec![b"a".as_slice(); words];
        assert!(tok_env::new(&words, &vec![false; special], &eos).is_err());
    }
    // Equal and empty tokens are allowed: files have them.
    assert!(tok_env::new(&[b"a", b"a", b"", b""], &[false; 4], &[3]).is_ok());
}

#[test]
fn many_schemas_in_a_row_leave_no_memory_behind() {
    let env = env();
    let resident = || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        statm.split(' ').nth(1).and_then(|n| n.parse::<usize>().ok()).unwrap_or(0) * 4096
    };
    let run = |from: usize| {
        (from..from + 300).for_each(|i| drop(compile(&env, Kind::Choice, &format!("[\"c{i}\", \"d\"]")).unwrap()))
    };
    run(0);
    let before = resident();
    run(1000);
    assert!(resident() < before + (64 << 20), "{before} -> {}", resident());
}
