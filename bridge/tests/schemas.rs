//! Schemas whose keywords are written anew before they are compiled, and names that no object has twice.

mod support;

use candor_bridge::constraint::tok_env::{self, TokEnvironment};
use candor_bridge::constraint::{compile, Constraint, Kind};
use candor_bridge::schema::rewrite;
use candor_bridge::Status;
use support::rehearsed;

const END: u32 = 256;
const FIRST_WORD: u32 = 257;
const WORDS: [&str; 8] = ["\":1,\"", "a\":1}", "{\"a\"", "\"a\":1,\"a\"", "\\u00", "},{\"a", "a\"", "b\":{\"a\":1},\"a"];

/// The 256 bytes, an end, and words with quotes.
fn env() -> TokEnvironment {
    let mut words: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
    words.push(b"<end>".to_vec());
    words.extend(WORDS.iter().map(|w| w.as_bytes().to_vec()));
    let slices: Vec<&[u8]> = words.iter().map(|w| w.as_slice()).collect();
    tok_env::new(&slices, &[false; 265], &[END]).unwrap()
}

fn is_taken(constraint: &mut Constraint, text: &str) -> bool {
    text.bytes().all(|b| constraint.accept(u32::from(b)).unwrap()) && constraint.is_accepting()
}

fn check(env: &TokEnvironment, schema: &str, good: &[&str], bad: &[&str]) {
    let compiled = compile(env, Kind::JsonSchema, schema).unwrap_or_else(|e| panic!("{schema}: {}", e.message));
    for text in good {
        assert!(is_taken(&mut compiled.fork(), text), "{schema} should allow {text}");
    }
    for text in bad {
        assert!(!is_taken(&mut compiled.fork(), text), "{schema} should not allow {text}");
    }
}

#[test]
fn what_is_negated_is_left_out_and_nothing_else() {
    let env = env();
    for (schema, good, bad) in [
        (r#"{"not": {"type": ["integer", "boolean"]}}"#, &["\"a\"", "null", "[1]"][..], &["1", "true"][..]),
        (r#"{"not": {"type": "number"}}"#, &["\"a\""], &["1", "1.5"]),
        (r#"{"not": {"minimum": 3, "maxLength": 1}}"#, &["2", "2.5", "\"ab\""], &["3", "\"a\"", "null"]),
        (
            r#"{"not": {"enum": ["foo", "fob", 1, 3, true, null]}}"#,
            &["\"fo\"", "\"food\"", "\"\"", "2", "0.5", "false", "[]"],
            &["\"foo\"", "\"fob\"", "1", "3", "1.0", "true", "null"],
        ),
        (
            r#"{"not": {"const": [1, "a"]}}"#,
            &["[1]", "[1,\"b\"]", "[1,\"a\",2]", "[2,\"a\"]", "1"],
            &["[1,\"a\"]", "[1.0,\"a\"]"],
        ),
        (r#"{"not": {"const": {"a": 1}}}"#, &["{}", r#"{"a":2}"#, r#"{"a":1,"b":1}"#], &[r#"{"a":1}"#]),
        (
            r#"{"type": "object", "not": {"required": ["a"], "properties": {"b": {"type": "string"}}}}"#,
            &["{}", r#"{"b":1,"a":1}"#, r#"{"b":"x"}"#],
            &[r#"{"a":1}"#, r#"{"b":"x","a":1}"#],
        ),
        (r#"{"not": {"not": {"type": "null"}}}"#, &["null"], &["1"]),
        (r#"{"not": {"prefixItems": [{"type": "null"}], "items": false}}"#, &["[1]", "[null,1]"], &["[]", "[null]", "1"]),
        (r#"{"properties": {"foo": {"not": {}}}}"#, &[r#"{"bar":1}"#], &[r#"{"foo":1}"#]),
    ] {
        check(&env, schema, good, bad);
    }
}

#[test]
fn words_that_are_no_keywords_have_no_effect_on_the_others() {
    let env = env();
    let nested =
        r#"{"properties": {"a": {"type": "null", "readonly": true}}, "self": {"b": 1}, "_format": "x", "required": ["a"]}"#;
    for (schema, good, bad) in [
        (r#"{"type": "integer", "nullable": true, "markdownDescription": "m"}"#, &["1"][..], &["null", "1.5"][..]),
        (nested, &[r#"{"a":null}"#], &["{}", r#"{"a":1}"#]),
        (r#"{"type": "string", "format": "klingon", "maxLength": 2}"#, &["\"ab\"", "\"x\""], &["\"abc\"", "1"]),
        (r##"{"components": {"c": {"maximum": 5, "odd": 1}}, "type": "integer", "$ref": "#/components/c"}"##, &["5"], &["6"]),
    ] {
        check(&env, schema, good, bad);
    }
    let refused = compile(&env, Kind::JsonSchema, r##"{"properties": {"a": {"$recursiveRef": "#"}}}"##).err().unwrap();
    assert!(refused.message.contains("/properties/a/$recursiveRef"), "{}", refused.message);
    let refused =
        compile(&env, Kind::JsonSchema, r#"{"properties": {"a": {"type": "string", "required": true}}}"#).err().unwrap();
    assert!(refused.message.contains("/properties/a/required"), "{}", refused.message);
}

#[test]
fn bounds_beyond_exact_arithmetic_hold() {
    let env = env();
    let most = "9223372036854775807";
    for (schema, good, bad) in [
        (
            format!(r#"{{"type": "integer", "minimum": 0, "maximum": {most}}}"#),
            vec!["0", most],
            vec!["9223372036854775808", "-1"],
        ),
        (format!(r#"{{"type": "integer", "exclusiveMaximum": {most}}}"#), vec!["9223372036854774784"], vec![most]),
        (
            r#"{"type": "integer", "minimum": -9223372036854775808}"#.into(),
            vec!["-9223372036854774784", "5"],
            vec!["-9223372036854775809"],
        ),
        (r#"{"type": "integer", "maximum": 18446744073709551615}"#.into(), vec![most, "-1"], vec!["18446744073709551616"]),
        (r#"{"type": "integer", "maximum": 9007199254740993}"#.into(), vec!["9007199254740992"], vec!["9007199254740994"]),
        (
            r#"{"type": "integer", "exclusiveMaximum": 9007199254740996}"#.into(),
            vec!["9007199254740992"],
            vec!["9007199254740996"],
        ),
        (
            r#"{"type": "integer", "minimum": 2000000000000000000}"#.into(),
            vec!["2000000000000000000"],
            vec!["1999999999999999999"],
        ),
        (
            r#"{"type": "number", "minimum": 0, "maximum": 1.7976931348623157e308}"#.into(),
            vec!["0", "1.5", "9223372036854774783"],
            vec!["-1"],
        ),
        (
            r#"{"type": "number", "exclusiveMinimum": -1e300, "exclusiveMaximum": 7}"#.into(),
            vec!["-5", "6.9"],
            vec!["7", "7.5"],
        ),
        (r#"{"maximum": 9223372036854775807, "exclusiveMaximum": true}"#.into(), vec!["12", "null"], vec![most]),
    ] {
        check(&env, &schema, &good, &bad);
    }
}

#[test]
fn numbers_that_are_listed_with_a_fraction_may_be_written_so() {
    let env = env();
    for (schema, good, bad) in [
        (r#"{"enum": [{"a": 0.0}]}"#, &[r#"{"a":0.0}"#, r#"{"a":0}"#][..], &[r#"{"a":0.1}"#, "{}", r#"{"a":1}"#][..]),
        (r#"{"const": 1.0}"#, &["1", "1.0"], &["1.01", "2", "0.9"]),
        (r#"{"const": -1.5}"#, &["-1.5"], &["1.5", "-1.6", "-1.51", "-2"]),
        (
            r#"{"enum": [1, "a", 2.5, [0.25, 3]]}"#,
            &["1", "\"a\"", "2.5", "[0.25,3]"],
            &["2", "[0.25]", "[0.25,4]", "[0.25,3,1]"],
        ),
        (r#"{"type": "integer", "enum": [1.0, 2.5]}"#, &["1"], &["2", "2.5"]),
        (r#"{"const": 99.9}"#, &["99.9"], &["100", "99.91", "99"]),
    ] {
        check(&env, schema, good, bad);
    }
}

#[test]
fn dates_and_times_are_those_of_rfc_3339() {
    let env = env();
    let quoted = |texts: &[&str]| texts.iter().map(|text| format!("\"{text}\"")).collect::<Vec<String>>();
    for (format, good, bad) in [
        (
            "time",
            &[
                "08:30:06Z",
                "23:59:60Z",
                "23:59:60.52z",
                "01:29:60+01:30",
                "23:29:60+23:30",
                "15:59:60-08:00",
                "00:29:60-23:30",
                "22:59:60+23:00",
                "23:59:60+00:00",
                "23:59:60-00:00",
                "12:34:56.789+11:00",
            ][..],
            &[
                "22:59:60Z",
                "23:58:60Z",
                "23:59:61Z",
                "08:00:60Z",
                "23:59:60+01:00",
                "23:59:60-01:00",
                "01:29:60+02:30",
                "24:00:00Z",
                "00:59:60+01:30",
                "08:30:06",
                "08:30:06+24:00",
            ][..],
        ),
        (
            "date-time",
            &["1998-12-31T23:59:60Z", "1998-12-31T15:59:60.123-08:00", "2020-02-29t00:00:00z", "2024-01-31T12:00:00+05:30"],
            &["1998-12-31T23:58:60Z", "1998-12-31T22:59:60Z", "2021-02-29T00:00:00Z", "1990-02-31T15:59:59.123-08:00"],
        ),
        (
            "date",
            &["2020-02-29", "2000-02-29", "2021-02-28", "2021-12-31"],
            &["2021-02-29", "1900-02-29", "2021-04-31", "2021-13-01"],
        ),
    ] {
        let (good, bad) = (quoted(good), quoted(bad));
        let schema = format!(r#"{{"type": "string", "format": "{format}"}}"#);
        check(
            &env,
            &schema,
            &good.iter().map(String::as_str).collect::<Vec<_>>(),
            &bad.iter().map(String::as_str).collect::<Vec<_>>(),
        );
    }
}

#[test]
fn keywords_of_other_drafts_are_obeyed() {
    let env = env();
    let draft = |n: &str, rest: &str| format!(r##"{{"$schema": "http://json-schema.org/draft-{n}/schema#", {rest}}}"##);
    for (schema, good, bad) in [
        (
            draft("07", r#""dependencies": {"a": ["b"], "c": {"required": ["d"]}}"#),
            vec!["{}", r#"{"a":1,"b":1}"#],
            vec![r#"{"a":1}"#, r#"{"c":1}"#],
        ),
        (draft("07", r#""dependentRequired": {"a": ["b"]}"#), vec![r#"{"b":1}"#], vec![r#"{"a":1}"#]),
        (draft("04", r#""if": {"type": "integer"}, "then": {"maximum": 3}"#), vec!["3", "null"], vec!["4"]),
        (
            draft("04", r#""id": "http://x.org/y", "type": "integer", "minimum": 2, "exclusiveMinimum": true"#),
            vec!["3"],
            vec!["2"],
        ),
        (
            draft("06", r#""items": [{"type": "null"}], "additionalItems": false, "not": {"maxItems": 0}"#),
            vec!["[null]"],
            vec!["[]", "[1]", "[null,1]"],
        ),
        (
            draft(
                "04",
                r##""definitions": {"d": {"id": "#d", "type": "null"}}, "not": {"type": "string"}, "$ref": "#/definitions/d""##,
            ),
            vec!["null"],
            vec!["1"],
        ),
    ] {
        check(&env, &schema, &good, &bad);
    }
}

#[test]
fn conditions_choose_by_the_value() {
    let env = env();
    let dependent = r#"{"properties": {"b": {}}, "dependentSchemas": {"b": {"required": ["c"]}}}"#;
    for (schema, good, bad) in [
        (
            r#"{"if": {"exclusiveMaximum": 0}, "then": {"minimum": -10}, "else": {"maximum": 5}}"#,
            &["-1", "-10", "5", "\"x\""][..],
            &["-11", "6"][..],
        ),
        (r#"{"then": {"const": 1}, "else": {"const": 2}, "if": {"maxLength": 2}}"#, &["1"], &["\"ab\"", "\"abc\"", "2"]),
        (r#"{"if": {"const": 1}}"#, &["1", "2"], &["x"]),
        (
            r#"{"type": "object", "if": {"properties": {"k": {"const": "n"}}, "required": ["k"]}, "then": {"required": ["v"]}}"#,
            &[r#"{"k":"m"}"#, r#"{"k":"n","v":1}"#, "{}"],
            &[r#"{"k":"n"}"#],
        ),
        (r#"{"dependentRequired": {"a": ["b"]}}"#, &["{}", r#"{"b":1}"#, r#"{"a":1,"b":2}"#, "7"], &[r#"{"a":1}"#]),
        (dependent, &["{}", r#"{"b":1,"c":2}"#, r#"{"c":1}"#], &[r#"{"b":1}"#]),
        (r#"{"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]}"#, &["1"], &["3", "1.5", "null"]),
        (
            r#"{"oneOf": [{"required": ["a", "b"]}, {"required": ["a", "c"]}], "type": "object"}"#,
            &[r#"{"a":1,"b":1}"#, r#"{"a":1,"c":1}"#],
            &[r#"{"a":1}"#, r#"{"a":1,"b":1,"c":1}"#],
        ),
        (r#"{"type": "string", "oneOf": [{"minLength": 2}, {"maxLength": 4}]}"#, &["\"a\"", "\"abcde\""], &["\"abc\""]),
    ] {
        check(&env, schema, good, bad);
    }
}

#[test]
fn names_and_items_are_looked_at_together() {
    let env = env();
    for (schema, good, bad) in [
        (r#"{"propertyNames": {"maxLength": 2}}"#, &["{}", r#"{"ab":1}"#, "1"][..], &[r#"{"abc":1}"#][..]),
        (
            r#"{"propertyNames": {"pattern": "^a+$"}, "properties": {"b": {}}}"#,
            &[r#"{"aa":1}"#],
            &[r#"{"b":1}"#, r#"{"ab":1}"#],
        ),
        (
            r##"{"propertyNames": {"$ref": "#/$defs/n"}, "$defs": {"n": {"enum": ["x", "y"]}}}"##,
            &[r#"{"x":1,"y":2}"#],
            &[r#"{"z":1}"#],
        ),
        (r#"{"propertyNames": false}"#, &["{}"], &[r#"{"a":1}"#]),
        (r#"{"contains": {"const": 5}, "maxItems": 3}"#, &["[5]", "[1,2,5]", "[5,5]", "1"], &["[]", "[1,2,3]", "[1,2,3,5]"]),
        (r#"{"contains": {"const": 5}, "minContains": 2, "maxItems": 3}"#, &["[5,5]", "[5,1,5]"], &["[5]", "[5,1,1]"]),
        (r#"{"contains": {"const": 1}, "minContains": 0, "maxContains": 0}"#, &["[]", "[2,3]"], &["[1]", "[2,1]"]),
        (r#"{"contains": true}"#, &["[1]"], &["[]"]),
        (
            r#"{"type": "array", "items": {"enum": ["r", "g", "b"]}, "uniqueItems": true}"#,
            &["[]", r#"["b","r","g"]"#],
            &[r#"["r","r"]"#, r#"["r","g","r"]"#],
        ),
        (
            r#"{"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "boolean"}], "items": false, "uniqueItems": true}"#,
            &["[true,false]", "[false]"],
            &["[true,true]"],
        ),
        (r#"{"uniqueItems": false, "minItems": 2.0}"#, &["[1,1]"], &["[1]"]),
    ] {
        check(&env, schema, good, bad);
    }
}

#[test]
fn what_no_branch_speaks_of_is_left_to_the_unevaluated_keywords() {
    let env = env();
    let chosen = r#"{"properties": {"a": {}}, "anyOf": [{"properties": {"b": {"const": 1}}, "required": ["b"]},
        {"properties": {"c": {}}, "required": ["c"]}], "unevaluatedProperties": false}"#;
    for (schema, good, bad) in [
        (
            chosen,
            &[r#"{"a":1,"b":1}"#, r#"{"b":1,"c":2}"#, r#"{"c":1}"#][..],
            &[r#"{"a":1}"#, r#"{"b":1,"d":1}"#, r#"{"b":2,"c":1}"#][..],
        ),
        (
            r##"{"$ref": "#/$defs/x", "properties": {"a": {}}, "unevaluatedProperties": false, "$defs": {"x": {"properties": {"b": {}}}}}"##,
            &[r#"{"a":1,"b":1}"#],
            &[r#"{"c":1}"#],
        ),
        (r#"{"allOf": [{"properties": {"a": {}}}, {"unevaluatedProperties": false}]}"#, &["{}"], &[r#"{"a":1}"#]),
        (
            r#"{"if": {"properties": {"k": {"const": 1}}, "required": ["k"]}, "then": {"properties": {"v": {}}}, "unevaluatedProperties": false}"#,
            &[r#"{"k":1,"v":2}"#, "{}"],
            &[r#"{"v":1}"#, r#"{"k":2}"#],
        ),
        (
            r#"{"prefixItems": [{"type": "null"}], "allOf": [{"prefixItems": [true, {"type": "null"}]}], "unevaluatedItems": false}"#,
            &["[null,null]"],
            &["[null,null,1]", "[null,1]"],
        ),
        (
            r#"{"patternProperties": {"^x": {}}, "unevaluatedProperties": {"type": "null"}}"#,
            &[r#"{"x1":1,"y":null}"#],
            &[r#"{"y":1}"#],
        ),
        (r#"{"unevaluatedItems": {"type": "null"}}"#, &["[null]", "1"], &["[1]"]),
    ] {
        check(&env, schema, good, bad);
    }
}

#[test]
fn references_lead_where_their_uris_say() {
    let env = env();
    for (schema, good, bad) in [
        (
            r##"{"$id": "http://x.test/a/root", "items": {"$ref": "b#n"}, "not": {"$defs": {"s": {"$id": "http://x.test/a/b", "$defs": {"n": {"$anchor": "n", "type": "null"}}}}, "type": "string"}}"##,
            &["[null]", "1"][..],
            &["[1]", "\"a\""][..],
        ),
        (
            r##"{"items": {"$dynamicRef": "#n"}, "$defs": {"n": {"$dynamicAnchor": "n", "type": "null"}}}"##,
            &["[null]"],
            &["[1]"],
        ),
        (
            r##"{"properties": {"a b": {"type": "null"}, "c": {"not": {"$ref": "#/properties/a%20b"}}}}"##,
            &[r#"{"c":1}"#],
            &[r#"{"c":null}"#],
        ),
        (
            r##"{"type": "object", "properties": {"v": {"not": {"type": "null"}}, "next": {"$ref": "#"}}, "additionalProperties": false}"##,
            &[r#"{"v":1,"next":{"next":{}}}"#],
            &[r#"{"next":{"v":null}}"#],
        ),
    ] {
        check(&env, schema, good, bad);
    }
}

#[test]
fn more_formats_are_enforced() {
    let env = env();
    for (format, good, bad) in [
        ("json-pointer", &["", "/a~1b/0"][..], &["a", "/~2"][..]),
        ("relative-json-pointer", &["0", "1/a", "0#"], &["01", "/a"]),
        ("uri-reference", &["../a?b#c", "//h/p", "x:y", ""], &["a b", "1:2:3", "%zz"]),
        ("iri", &["http://h/\u{e4}"], &["a", "h\u{e4}"]),
        ("uri-template", &["/a{?q,r*}", "{x:3}"], &["{", "a}", "{}"]),
        ("idn-hostname", &["a-b.c"], &["-a", "a..b"]),
    ] {
        let quoted = |texts: &[&str]| texts.iter().map(|t| format!("\"{t}\"")).collect::<Vec<_>>();
        let (good, bad) = (quoted(good), quoted(bad));
        let compiled = compile(&env, Kind::JsonSchema, &format!("{{\"type\":\"string\",\"format\":\"{format}\"}}"));
        let compiled = compiled.unwrap_or_else(|e| panic!("{format}: {}", e.message));
        for (texts, wanted) in [(good, true), (bad, false)] {
            for text in texts {
                assert_eq!(is_taken(&mut compiled.fork(), &text), wanted, "{format} {text}");
            }
        }
    }
}

#[test]
fn what_cannot_be_written_is_refused_with_its_place() {
    let env = env();
    for (schema, place) in [
        (r#"{"properties": {"a": {"not": {"pattern": "x"}}}}"#, "/properties/a/not/pattern"),
        (r#"{"not": {"multipleOf": 3}}"#, "/not/multipleOf"),
        (r#"{"items": {"uniqueItems": true}}"#, "/items/uniqueItems"),
        (r#"{"items": {"contains": {"type": "null"}}}"#, "/items/contains"),
        (r#"{"contains": {"type": "null"}, "unevaluatedItems": false, "maxItems": 3}"#, "/unevaluatedItems"),
        (r#"{"propertyNames": {"format": "date"}}"#, "/propertyNames/format"),
        (r##"{"not": {"anyOf": [{"$ref": "#/not"}, {"type": "null"}]}}"##, "refers to itself"),
        (
            r##"{"items": {"$dynamicRef": "#n"}, "$defs": {"n": {"$dynamicAnchor": "n"}, "m": {"$id": "m", "$dynamicAnchor": "n"}}}"##,
            "/items/$dynamicRef",
        ),
    ] {
        let Err(error) = compile(&env, Kind::JsonSchema, schema) else { panic!("compiled: {schema}") };
        assert_eq!(error.status, Status::Unsupported, "{schema}: {}", error.message);
        assert!(error.message.contains(place), "{schema}: {}", error.message);
    }
}

#[test]
fn what_would_be_too_much_when_written_out_ends_in_time() {
    let env = env();
    let list = |n: usize, item: &dyn Fn(usize) -> String| (0..n).map(item).collect::<Vec<_>>().join(",");
    let nested =
        |n: usize, word: &str| (0..n).fold("{\"const\": 1}".into(), |s: String, _| format!("{{\"{word}\": [{s}, {s}]}}"));
    let property = |i: usize| format!("{{\"properties\": {{\"p{i}\": {{}}}}}}");
    for schema in [
        format!("{{\"oneOf\": [{}]}}", list(60, &|i| format!("{{\"required\": [\"a{i}\"]}}"))),
        format!("{{\"oneOf\": [{}]}}", list(12, &|i| format!("{{\"required\": [\"a{i}\", \"b{i}\"]}}"))),
        format!("{{\"not\": {}}}", nested(14, "oneOf")),
        format!("{{\"not\": {}}}", nested(14, "anyOf")),
        format!("{{\"unevaluatedProperties\": false, \"anyOf\": [{}]}}", list(40, &property)),
        format!("{{\"unevaluatedProperties\": false, \"oneOf\": [{}]}}", list(12, &property)),
        format!("{{\"items\": {{\"enum\": [{}]}}, \"uniqueItems\": true}}", list(500, &|i| i.to_string())),
        format!("{{\"not\": {{\"enum\": [{}]}}}}", list(3000, &|i| format!("\"v{i}\""))),
        format!("{{\"not\": {{\"enum\": [{}]}}}}", list(3000, &|i| i.to_string())),
        format!("{{\"not\": {{\"const\": \"{}\"}}}}", "x".repeat(100_000)),
        format!("{{\"dependentRequired\": {{{}}}}}", list(200, &|i| format!("\"a{i}\": [\"b{i}\"]"))),
        format!("{}{{}}{}", "{\"not\": ".repeat(62), "}".repeat(62)),
        r#"{"contains": {"const": 1}, "maxItems": 8, "minContains": 4294967295}"#.into(),
        r#"{"contains": {"contains": {"contains": {"const": 1}, "maxItems": 8}, "maxItems": 8}, "maxItems": 8}"#.into(),
    ] {
        let (outcome, took) = rehearsed(&env, Kind::JsonSchema, &schema);
        let shown: String = schema.chars().take(60).collect();
        println!("{shown}: {:?} in {took:?}", outcome.as_ref().map_err(|e| &e.message));
        assert!(took < std::time::Duration::from_secs(20), "{shown}: {took:?}");
        assert!(outcome.map_or_else(|e| e.status != Status::Internal, |()| true), "{shown}");
    }
}

#[test]
fn the_rewritten_schema_is_what_the_keywords_mean() {
    let plain = |schema: &str| rewrite::plain(&serde_json::from_str(schema).unwrap()).unwrap().to_string();
    assert_eq!(
        plain(r#"{"not": {"type": "number"}, "type": "number"}"#),
        r#"{"allOf":[{"type":"number"},{"type":["null","boolean","string","array","object"]}]}"#
    );
    assert_eq!(
        plain(r#"{"unevaluatedProperties": false, "properties": {"a": {"title": "t"}}}"#),
        r#"{"allOf":[{"properties":{"a":true}},{"additionalProperties":false,"properties":{"a":true}}]}"#
    );
    assert_eq!(plain(r#"{"if": true, "else": false, "title": "x"}"#), "true");
}

fn with_words(constraint: &mut Constraint, tokens: &[u32]) -> Result<(), usize> {
    let first_bad = tokens.iter().position(|token| !constraint.accept(*token).unwrap());
    first_bad.map_or(Ok(()), Err)
}

#[test]
fn no_object_has_a_name_twice_however_it_is_admitted() {
    let env = env();
    for schema in ["true", r#"{"type": "object"}"#, r#"{"additionalProperties": {}}"#, r#"{"patternProperties": {"^.": {}}}"#] {
        check(
            &env,
            schema,
            &[r#"{"a": {"a": [{"a": 1}]}, "b": {"a": {}}}"#, r#"{"a\n":1,"a\t":1,"\u001f":1,"\"":1}"#, r#"{"a":1,"aa":1}"#],
            &[r#"{"a":1,"a":2}"#, r#"{"a":{"a":1},"a":1}"#, r#"{"b":[{"x":1,"x":2}]}"#, r#"{"":1,"":2}"#, r#"{"\u0061":1}"#],
        );
    }
    let listed = r#"{"properties": {"foo": {"type": "null"}, "l\n": {"type": "null"}}}"#;
    check(
        &env,
        listed,
        &[r#"{"foo":null,"l\n":null,"x":1}"#, r#"{"l\n":null}"#],
        &[r#"{"f\u006fo":1}"#, r#"{"l\u000a":1}"#, r#"{"foo":null,"foo":null}"#, r#"{"x":1,"\u0078":1}"#],
    );
}

#[test]
fn tokens_that_hold_several_names_are_looked_into() {
    let env = env();
    let word = |text: &str| FIRST_WORD + WORDS.iter().position(|w| *w == text).unwrap() as u32;
    let [open, quote] = [u32::from(b'{'), u32::from(b'"')];
    let one_and_more = word("\":1,\"");
    let object = || compile(&env, Kind::JsonObject, "").unwrap();
    assert_eq!(with_words(&mut object(), &[open, word("\"a\":1,\"a\"")]), Err(1));
    assert_eq!(with_words(&mut object(), &[open, quote, 97, one_and_more, 97, one_and_more]), Err(5));
    assert_eq!(with_words(&mut object(), &[open, quote, 97, one_and_more, word("a\"")]), Err(4));
    assert_eq!(with_words(&mut object(), &[open, quote, 97, one_and_more, word("b\":{\"a\":1},\"a"), quote]), Err(5));
    assert_eq!(with_words(&mut object(), &[open, quote, 98, one_and_more, word("a\":1}")]), Ok(()));
    assert_eq!(with_words(&mut object(), &[open, quote, word("\\u00"), u32::from(b'4')]), Err(3));
    let mut list = compile(&env, Kind::JsonSchema, r#"{"type": "array"}"#).unwrap();
    assert_eq!(with_words(&mut list, &[u32::from(b'['), word("{\"a\""), u32::from(b':'), 49, word("},{\"a"), quote]), Ok(()));
}

#[test]
fn masks_and_forks_know_the_names() {
    let env = env();
    let mut c = compile(&env, Kind::JsonObject, "").unwrap();
    let text = r#"{"a":{"a":1,"b":["x"]},"b":1,"ab":2,"a"#;
    for byte in text.bytes() {
        let mut words = [0u32; 10];
        c.mask(&mut words).unwrap();
        for token in 0..FIRST_WORD + WORDS.len() as u32 {
            let is_set = words[token as usize / 32] >> (token % 32) & 1 == 1;
            assert_eq!(c.fork().accept(token).unwrap(), is_set, "token {token} before {byte} of {text}");
        }
        assert!(c.accept(u32::from(byte)).unwrap());
    }
    assert!(!c.accept(u32::from(b'"')).unwrap());
    assert!(is_taken(&mut c.fork(), "c\":1}"));
    let mut copy = c.fork();
    assert_eq!("c\":1,\"ac\"".bytes().take_while(|b| copy.accept(u32::from(*b)).unwrap()).count(), 8);
}
