//! Renders the template cases of a JSON file and writes one JSON line for each: {"text"} or {"status", "line", "message"}.
//! Used by tests/make_template_cases.py to compare with CPython's jinja2.

use candor_bridge::template::Template;
use serde_json::{json, Value};

fn main() {
    let path = std::env::args().nth(1).expect("usage: render_cases CASES.json");
    let cases: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("cases file")).expect("JSON");
    for case in cases.as_array().expect("an array") {
        let source = case["template"].as_str().expect("template");
        let now = case["now"].as_i64().expect("now");
        let result = Template::compile(source).and_then(|t| t.render(&case["context"].to_string(), now));
        println!(
            "{}",
            match result {
                Ok(text) => json!({ "text": text }),
                Err(e) => json!({"status": e.status as i32, "line": e.line, "message": e.message}),
            }
        );
    }
}
