//! Numbers as CPython reads, rounds and writes them.

use super::budget::{fault, Done};
use super::chars::is_space;

/// `repr(float)`: the shortest digits that read back; an exponent below 1e-4 and from 1e16 on.
pub fn float_repr(f: f64) -> String {
    if f.is_nan() {
        return "nan".into();
    }
    if f.is_infinite() {
        return if f < 0.0 { "-inf".into() } else { "inf".into() };
    }
    let scientific = format!("{f:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if f != 0.0 && !(-4..16).contains(&exponent) {
        return with_exponent(mantissa, exponent);
    }
    let plain = format!("{f}");
    if plain.contains('.') {
        plain
    } else {
        plain + ".0"
    }
}

pub fn with_exponent(mantissa: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Digits with single underscores between them, without the underscores.
fn plain_digits(text: &str) -> Option<String> {
    let is_spoiled = text.starts_with('_') || text.ends_with('_') || text.contains("__");
    (!is_spoiled).then(|| text.replace('_', ""))
}

/// `int(text, base)`
pub fn parse_int(text: &str, base: i128) -> Option<i128> {
    let text = text.trim_matches(is_space);
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let prefixes = [("0x", 16), ("0o", 8), ("0b", 2)];
    let prefix = prefixes.iter().find(|(p, b)| lower.starts_with(p) && (base == 0 || base == *b));
    let (digits, base) = match prefix {
        Some((_, b)) => (lower[2..].strip_prefix('_').unwrap_or(&lower[2..]), *b),
        None => (&lower[..], if base == 0 { 10 } else { base }),
    };
    let digits = plain_digits(digits)?;
    if !(2..=36).contains(&base) || digits.starts_with(['+', '-']) {
        return None;
    }
    let value = i128::from_str_radix(&digits, base as u32).ok()?;
    Some(if is_negative { -value } else { value })
}

/// `float(text)`
pub fn parse_float(text: &str) -> Option<f64> {
    plain_digits(text.trim_matches(is_space))?.parse().ok()
}

/// `int(float)`
pub fn truncated(f: f64) -> Done<i128> {
    if f.is_nan() {
        return fault("cannot convert float NaN to integer");
    }
    if f.is_infinite() || f.abs() > 1e38 {
        return fault("float too large for an integer");
    }
    Ok(f as i128)
}

/// `round(float, digits)`: halves of the exact value go to the even digit.
pub fn round_float(f: f64, digits: i64) -> f64 {
    if !f.is_finite() || digits > 330 {
        return f;
    }
    if digits >= 0 {
        return format!("{f:.*}", digits as usize).parse().unwrap_or(f);
    }
    let unit = 10f64.powi((-digits).min(400) as i32);
    if unit.is_infinite() {
        return 0.0f64.copysign(f);
    }
    let quotient = f / unit;
    let floor = quotient.floor();
    let rest = quotient - floor;
    let up = rest > 0.5 || rest == 0.5 && floor % 2.0 != 0.0;
    (floor + f64::from(u8::from(up))) * unit
}

/// `round(int, digits)`
pub fn round_int(i: i128, digits: i64) -> i128 {
    if digits >= 0 {
        return i;
    }
    let Some(unit) = u32::try_from(-digits).ok().and_then(|n| 10i128.checked_pow(n)) else { return 0 };
    let (floor, rest) = (i.div_euclid(unit), i.rem_euclid(unit));
    let up = rest * 2 > unit || rest * 2 == unit && floor % 2 != 0;
    (floor + i128::from(up)).saturating_mul(unit)
}
