//! A schema as the compiler below can hold it exactly, or, where it cannot, more narrowly and never more widely: bounds
//! beyond its arithmetic, formats that it takes too loosely, numbers listed with a fraction.

use serde_json::{json, Map, Number, Value};

use crate::schema::formats;
use crate::schema::words::{holds, Holds};

/// Whole numbers up to it are exact in the compiler's arithmetic.
const EXACT: f64 = 9007199254740992.0;
/// The largest number below 2^63: bounds beyond it are none that the compiler can write out.
const REACH: f64 = 9223372036854774784.0;
/// A least bound from here on needs a greatest one.
const OPEN_REACH: f64 = 1e18;
const MOST_DECIMALS: usize = 9;

/// REQUIRES: `check::check` passed it.
pub fn fitted(schema: &Value) -> Value {
    let mut result = schema.clone();
    fit(&mut result);
    result
}

/// What stands where no keyword holds schemas is taken for one: a reference may name it, and otherwise it has no effect.
fn fit(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(fit),
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match (holds(key), value) {
                    (Some(Holds::Named), Value::Object(named)) => named.values_mut().for_each(fit),
                    (None, _) if key == "const" || key == "enum" => {}
                    (_, value) => fit(value),
                }
            }
            fit_bounds(map);
            fit_format(map);
            fit_literals(map);
        }
        _ => {}
    }
}

fn push(map: &mut Map<String, Value>, part: Value) {
    if let Value::Array(parts) = map.entry("allOf").or_insert_with(|| json!([])) {
        parts.push(part);
    }
}

fn fit_format(map: &mut Map<String, Value>) {
    let Some(name) = map.get("format").and_then(Value::as_str) else { return };
    let patterns = match formats::exact(name) {
        Some(patterns) => patterns,
        None if formats::is_note(&map["format"]) => vec![],
        None => return,
    };
    map.remove("format");
    patterns.into_iter().for_each(|pattern| push(map, json!({ "pattern": pattern })));
}

/// Whether integers are the only numbers of that type.
fn is_of_integers(map: &Map<String, Value>) -> bool {
    match map.get("type") {
        Some(Value::String(name)) => name == "integer",
        Some(Value::Array(names)) => names.iter().any(|name| name == "integer") && names.iter().all(|name| name != "number"),
        _ => false,
    }
}

/// The greatest bounds as they are, and the least ones with their signs turned.
struct Side {
    closed: &'static str,
    open: &'static str,
    sign: i32,
}

const SIDES: [Side; 2] = [
    Side { closed: "maximum", open: "exclusiveMaximum", sign: 1 },
    Side { closed: "minimum", open: "exclusiveMinimum", sign: -1 },
];

impl Side {
    /// The bounds that are closed and open; draft 4 has a boolean for the kind.
    fn bounds<'a>(&self, map: &'a Map<String, Value>) -> (Option<&'a Number>, Option<&'a Number>) {
        let number = |key: &str| map.get(key).and_then(Value::as_number);
        match map.get(self.open) {
            Some(Value::Bool(true)) => (None, number(self.closed)),
            _ => (number(self.closed), number(self.open)),
        }
    }

    /// The greatest whole number that is allowed; numbers that have no end in sight count as 10^30.
    fn greatest_whole(&self, map: &Map<String, Value>) -> Option<i128> {
        let (closed, open) = self.bounds(map);
        let closed = closed.map(|n| whole(n, self.sign).0);
        let open = open.map(|n| whole(n, self.sign)).map(|(floor, is_exact)| floor - i128::from(is_exact));
        closed.into_iter().chain(open).min()
    }

    /// The greatest number that is allowed, or one a little below it.
    fn greatest(&self, map: &Map<String, Value>) -> Option<f64> {
        let (closed, open) = self.bounds(map);
        let below = |n: &Number| {
            let (floor, is_below) = floor(n, self.sign);
            if is_below {
                floor
            } else {
                floor.next_down()
            }
        };
        let open = open.filter(|n| is_large(n)).map(below);
        closed.map(|n| floor(n, self.sign).0).into_iter().chain(open).min_by(f64::total_cmp)
    }
}

fn is_large(number: &Number) -> bool {
    number.as_f64().is_none_or(|x| x.abs() > EXACT)
}

fn signed(number: &Number, sign: i32) -> Option<i128> {
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    whole.map(|n| n * i128::from(sign))
}

/// The whole number below or at it, and whether that is it.
fn whole(number: &Number, sign: i32) -> (i128, bool) {
    if let Some(whole) = signed(number, sign) {
        return (whole, true);
    }
    let x = number.as_f64().unwrap_or_default() * f64::from(sign);
    (x.floor().clamp(-1e30, 1e30) as i128, x.fract() == 0.0)
}

/// A number of the compiler's below or at it, and whether it is below.
fn floor(number: &Number, sign: i32) -> (f64, bool) {
    match signed(number, sign) {
        Some(whole) => {
            let floor = floor_of_whole(whole);
            (floor, (floor as i128) < whole)
        }
        None => (number.as_f64().unwrap_or_default() * f64::from(sign), false),
    }
}

fn fit_bounds(map: &mut Map<String, Value>) {
    let is_integer = is_of_integers(map);
    let mut is_empty = false;
    for side in &SIDES {
        let (closed, open) = side.bounds(map);
        if !closed.into_iter().chain(open).any(is_large) {
            continue;
        }
        let keeps_open = !is_integer && open.is_some_and(|n| !is_large(n));
        let greatest = if is_integer { side.greatest_whole(map).map(floor_of_whole) } else { side.greatest(map) };
        let reaches_all = is_integer && side.sign > 0 && side.greatest_whole(map) >= Some(i128::from(i64::MAX));
        if !keeps_open {
            map.remove(side.open);
        }
        let Some(greatest) = greatest else { continue };
        is_empty |= greatest < -REACH;
        let fitted = greatest.clamp(-REACH, REACH) * f64::from(side.sign);
        // The compiler takes 2^63 for the number before it.
        let bound = if reaches_all { json!(i64::MAX) } else { json!(fitted as i64) };
        map.insert(side.closed.into(), if fitted.fract() == 0.0 { bound } else { json!(fitted) });
    }
    for (side, other) in [(&SIDES[0], &SIDES[1]), (&SIDES[1], &SIDES[0])] {
        let is_far = |n: &Number| n.as_f64().is_some_and(|x| -x * f64::from(side.sign) >= OPEN_REACH);
        let (closed, open) = side.bounds(map);
        if closed.into_iter().chain(open).any(is_far) && other.bounds(map) == (None, None) {
            map.insert(other.closed.into(), json!(REACH as i64 * i64::from(other.sign)));
        }
    }
    if is_empty {
        SIDES.iter().for_each(|side| drop(map.remove(side.open)));
        map.insert("minimum".into(), 1.into());
        map.insert("maximum".into(), 0.into());
    }
}

/// A number of the compiler's at or below it.
fn floor_of_whole(whole: i128) -> f64 {
    let nearest = whole as f64;
    if nearest as i128 > whole {
        nearest.next_down()
    } else {
        nearest
    }
}

fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(n) => n.is_f64(),
        Value::Array(items) => items.iter().any(has_fraction),
        Value::Object(map) => map.values().any(has_fraction),
        _ => false,
    }
}

/// The compiler writes a listed number in one spelling, 0.0 as 0.
fn fit_literals(map: &mut Map<String, Value>) {
    if map.get("const").is_some_and(has_fraction) {
        let value = map.remove("const").unwrap_or_default();
        push(map, listed(&value));
    }
    let Some(Value::Array(options)) = map.get("enum") else { return };
    if !options.iter().any(has_fraction) {
        return;
    }
    let (with, without): (Vec<&Value>, Vec<&Value>) = options.iter().partition(|option| has_fraction(option));
    let mut parts: Vec<Value> = with.into_iter().map(listed).collect();
    if !without.is_empty() {
        parts.push(json!({ "enum": without }));
    }
    map.remove("enum");
    push(map, json!({ "anyOf": parts }));
}

/// A schema for what equals it.
fn listed(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().and_then(number_in_all_spellings).unwrap_or_else(|| json!({ "const": value }))
        }
        Value::Array(items) if has_fraction(value) => {
            let n = items.len();
            let items: Vec<Value> = items.iter().map(listed).collect();
            json!({"type": "array", "minItems": n, "maxItems": n, "items": items, "additionalItems": false})
        }
        Value::Object(map) if has_fraction(value) => {
            let names: Vec<&String> = map.keys().collect();
            let properties: Map<String, Value> = map.iter().map(|(name, value)| (name.clone(), listed(value))).collect();
            json!({"type": "object", "required": names, "properties": properties, "additionalProperties": false})
        }
        _ => json!({ "const": value }),
    }
}

/// A whole one with `.0` or without it: of the multiples of the last decimal, the one between it and the next.
fn number_in_all_spellings(number: f64) -> Option<Value> {
    let text = format!("{}", number.abs());
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, "0"));
    if decimals.len() > MOST_DECIMALS || number.abs() >= EXACT / 2.0 || (number == 0.0 && number.is_sign_negative()) {
        return None;
    }
    let scaled: i128 = format!("{whole}{decimals}").parse().ok()?;
    let scale = 10i128.pow(decimals.len() as u32);
    let next = format!("{}.{:0width$}", (scaled + 1) / scale, (scaled + 1) % scale, width = decimals.len());
    let next: f64 = next.trim_end_matches('.').parse().ok()?;
    let step: f64 = format!("1e-{}", decimals.len()).parse().ok()?;
    Some(if number < 0.0 {
        json!({"type": "number", "multipleOf": step, "maximum": number, "exclusiveMinimum": -next})
    } else {
        json!({"type": "number", "multipleOf": step, "minimum": number, "exclusiveMaximum": next})
    })
}
