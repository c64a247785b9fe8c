//! Formats of strings that the compiler below does not know, as patterns. Those of internationalised names allow the
//! ASCII forms only.

use serde_json::{json, Value};

/// Letters beyond ASCII that an IRI may hold where a URI holds letters.
const INTERNATIONAL: &str = r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}\u{10000}-\u{1FFFD}";
const ESCAPED: &str = "%[0-9A-Fa-f]{2}";

/// A schema for what `{"format": name}` asks for, with a format that the compiler knows or refuses.
pub fn schema(name: &Value) -> Value {
    let pattern = match name.as_str().unwrap_or_default() {
        "idn-email" => return json!({"format": "email"}),
        // At most 63 characters a label and 253 in all; no two hyphens in a row, which mark encoded labels.
        "idn-hostname" => {
            let label = "[a-zA-Z0-9](?:-?[a-zA-Z0-9]){0,31}";
            return json!({"pattern": format!(r"^{label}(?:\.{label})*$"), "maxLength": 253});
        }
        "json-pointer" => "^(?:/(?:[^~/]|~[01])*)*$".to_string(),
        "relative-json-pointer" => "^(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~[01])*)*)$".to_string(),
        "uri-reference" => address("", true),
        "iri" => address(INTERNATIONAL, false),
        "iri-reference" => address(INTERNATIONAL, true),
        "uri-template" => template(),
        _ => return json!({"format": name}),
    };
    json!({"pattern": pattern})
}

/// RFC 3986 and 3987, without addresses in brackets as hosts.
fn address(more: &str, may_be_relative: bool) -> String {
    let plain = format!("[A-Za-z0-9._~!$&'()*+,;=@{more}-]|{ESCAPED}");
    let letter = format!("(?:{plain}|:)");
    let (path, rooted) = (format!("{letter}+(?:/{letter}*)*"), format!("(?:/{letter}*)*"));
    let host = format!("(?:[A-Za-z0-9._~!$&'()*+,;={more}-]|{ESCAPED})*");
    let user = format!("(?:[A-Za-z0-9._~!$&'()*+,;=:{more}-]|{ESCAPED})*");
    let authority = format!("//(?:{user}@)?{host}(?::[0-9]*)?{rooted}");
    let absolute = format!("[A-Za-z][A-Za-z0-9+.-]*:(?:{authority}|/(?:{path})?|{path}|)");
    let relative = format!("(?:{authority}|/(?:{path})?|(?:{plain})+(?:/{letter}*)*|)");
    let ends = format!(r"(?:\?(?:{letter}|[/?])*)?(?:#(?:{letter}|[/?])*)?");
    let both = if may_be_relative { format!("{absolute}|{relative}") } else { absolute };
    format!("^(?:{both}){ends}$")
}

/// RFC 6570.
fn template() -> String {
    let letter = format!("(?:[A-Za-z0-9_]|{ESCAPED})");
    let variable = format!(r"{letter}(?:\.?{letter})*(?::[1-9][0-9]{{0,3}}|\*)?");
    let literal = format!(r#"(?:[^\x00-\x20\x7f"'%<>\\^`{{|}}]|{ESCAPED})"#);
    format!(r"^(?:{literal}|\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\}})*$")
}
