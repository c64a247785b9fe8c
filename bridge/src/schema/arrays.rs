//! What a schema says of an array's items as a whole: `contains`, `uniqueItems`.

use serde_json::{json, Map, Value};

use crate::error::Result;
use crate::schema::rewriter::Rewriter;
use crate::schema::words::{all, any, cannot, child, count, equal, is_true, of_types, other_types, refused, MAX_POSITIONS};

/// Arrays that are written out one by one for `uniqueItems`.
const MAX_ARRAYS: usize = 400;

fn no_array() -> Value {
    of_types(&other_types(&["array"]))
}

fn bound(map: &Map<String, Value>, key: &str, at: &str) -> Result<Option<u64>> {
    map.get(key).map(|value| count(value, &child(at, key))).transpose()
}

/// The greatest length that the schema's own keywords leave.
fn longest(map: &Map<String, Value>, at: &str) -> Result<Option<u64>> {
    let most = bound(map, "maxItems", at)?;
    let n_first = map.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len) as u64;
    let closed = (map.get("items") == Some(&Value::Bool(false))).then_some(n_first);
    Ok(most.into_iter().chain(closed).min())
}

impl Rewriter<'_> {
    pub fn contains(&mut self, map: &Map<String, Value>, schema: &str) -> Result<Value> {
        let at = child(schema, "contains");
        let least = bound(map, "minContains", schema)?.unwrap_or(1);
        let most = bound(map, "maxContains", schema)?;
        let item = self.schema(&map["contains"], &at)?;
        match most {
            None if least == 0 => Ok(true.into()),
            Some(most) if most < least => Ok(no_array()),
            _ if item == Value::Bool(false) => Ok(if least == 0 { true.into() } else { no_array() }),
            _ if is_true(&item) => {
                Ok(all(vec![json!({"minItems": least}), most.map_or(true.into(), |n| json!({"maxItems": n}))]))
            }
            Some(0) => Ok(json!({"items": self.negated(&map["contains"], &at)?})),
            None => positions(&item, least, longest(map, schema)?, &at),
            Some(_) => Err(cannot(&at)),
        }
    }
}

/// Arrays of at most `longest` items, with `item` at `least` places at least.
fn positions(item: &Value, least: u64, longest: Option<u64>, at: &str) -> Result<Value> {
    let longest = longest
        .filter(|n| *n <= MAX_POSITIONS)
        .ok_or_else(|| refused(at, format!("can be enforced in arrays of at most {MAX_POSITIONS} items only, by maxItems")))?;
    let places = (0u32..1 << longest).filter(|set| u64::from(set.count_ones()) == least);
    let one = |set: u32| {
        let n = 32 - set.leading_zeros();
        let items: Vec<Value> = (0..n).map(|i| if set >> i & 1 == 1 { item.clone() } else { true.into() }).collect();
        json!({"type": "array", "minItems": n, "prefixItems": items})
    };
    Ok(any(std::iter::once(no_array()).chain(places.map(one)).collect()))
}

/// The values of a schema that names them all.
fn values(schema: &Value) -> Option<Vec<Value>> {
    let map = match schema {
        Value::Object(map) => map,
        Value::Bool(false) => return Some(Vec::new()),
        _ => return None,
    };
    let kind = map.get("type");
    let listed = match (map.get("const"), map.get("enum"), kind.and_then(Value::as_str)) {
        (Some(value), None, _) => vec![value.clone()],
        (None, Some(values), _) => values.as_array()?.clone(),
        (None, None, Some("boolean")) => vec![false.into(), true.into()],
        (None, None, Some("null")) => vec![Value::Null],
        _ => return None,
    };
    // Other keywords, the type among them, take some of the values out when the arrays meet the schema.
    let mut distinct: Vec<Value> = Vec::new();
    for value in listed {
        if !distinct.iter().any(|known| equal(known, &value)) {
            distinct.push(value);
        }
    }
    Some(distinct)
}

/// `uniqueItems`, where the items are so few that all arrays can be listed.
pub fn unique_items(map: &Map<String, Value>, at: &str) -> Result<Value> {
    let schema = at.strip_suffix("/uniqueItems").unwrap_or(at);
    let most = longest(map, schema)?;
    if map["uniqueItems"] != Value::Bool(true) || most.is_some_and(|n| n <= 1) {
        return Ok(true.into());
    }
    let refusal = || refused(at, "can be enforced only where const, enum or boolean items leave few arrays");
    let first = map.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let firsts: Vec<Vec<Value>> = first.iter().map(values).collect::<Option<_>>().ok_or_else(refusal)?;
    let rest = match most {
        Some(n) if n <= firsts.len() as u64 => Vec::new(),
        _ => values(map.get("items").unwrap_or(&Value::Bool(true))).ok_or_else(refusal)?,
    };
    let mut arrays: Vec<Vec<Value>> = vec![Vec::new()];
    let mut done = 0;
    while done < arrays.len() {
        let array = arrays[done].clone();
        done += 1;
        if most.is_some_and(|n| array.len() as u64 >= n) {
            continue;
        }
        for value in firsts.get(array.len()).unwrap_or(&rest) {
            if !array.iter().any(|known| equal(known, value)) {
                arrays.push(array.iter().chain([value]).cloned().collect());
            }
        }
        if arrays.len() > MAX_ARRAYS {
            return Err(refusal());
        }
    }
    Ok(any(vec![no_array(), json!({"enum": arrays})]))
}
