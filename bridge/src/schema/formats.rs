//! Formats of strings that the compiler below does not know, or takes too loosely, as patterns. Those of internationalised
//! names allow the ASCII forms only. By the standard a format that it does not define is a note.

use serde_json::{json, Value};

/// Letters beyond ASCII that an IRI may hold where a URI holds letters.
const INTERNATIONAL: &str = r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}\u{10000}-\u{1FFFD}";
const ESCAPED: &str = "%[0-9A-Fa-f]{2}";

/// Of the standard.
const DEFINED: [&str; 19] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// A name that the standard does not define.
pub fn is_note(name: &Value) -> bool {
    name.as_str().is_some_and(|name| !DEFINED.contains(&name))
}

/// Patterns that together mean a format which the compiler below knows and takes more loosely than it is meant.
pub fn exact(name: &str) -> Option<Vec<String>> {
    let whole = |inner: String| format!("^(?:{inner})$");
    match name {
        "date" => Some(vec![whole(date())]),
        "time" => Some(times().map(whole).to_vec()),
        "date-time" => {
            let dates = [date(), "[0-9-]{10}".to_string()];
            Some(dates.iter().zip(times()).map(|(date, time)| whole(format!("(?:{date})[tT](?:{time})"))).collect())
        }
        _ => None,
    }
}

/// RFC 3339, with the days of each month and of leap years.
fn date() -> String {
    let leap = "(?:[0-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
    format!(
        "[0-9]{{4}}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|\
         02-(?:0[1-9]|1[0-9]|2[0-8]))|{leap}-02-29"
    )
}

/// RFC 3339, as two patterns that hold together. A second 60 is one that UTC counts at the end of a day: 23:59:60 there,
/// whatever the offset makes of it. The first one sees to its hour, the second to its minute.
fn times() -> [String; 2] {
    let fraction = r"(?:\.[0-9]+)?";
    let plain = format!("(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]{fraction}(?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])");
    let two = "[0-9]{2}";
    // With +hh:00 it is 59 past the hour before hh; with +hh:mm it is hh, a minute less than mm; with -hh:mm what is left of
    // 23:59.
    let mut common = vec![plain, format!("23:59:60{fraction}[zZ]")];
    common.extend((0..24).map(|hour| format!("{:02}:59:60{fraction}[+]{hour:02}:00", (hour + 23) % 24)));
    let mut by_hour = common.clone();
    by_hour.extend((0..24).map(|hour| format!("{hour:02}:{two}:60{fraction}[+]{hour:02}:{two}")));
    by_hour.extend((0..24).map(|hour| format!("{:02}:{two}:60{fraction}-{hour:02}:{two}", 23 - hour)));
    let mut by_minute = common;
    by_minute.extend((1..60).map(|minute| format!("{two}:{:02}:60{fraction}[+]{two}:{minute:02}", minute - 1)));
    by_minute.extend((0..60).map(|minute| format!("{two}:{:02}:60{fraction}-{two}:{minute:02}", 59 - minute)));
    [by_hour.join("|"), by_minute.join("|")]
}

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
