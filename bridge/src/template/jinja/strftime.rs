//! `strftime` over seconds since the epoch, in the C locale, as CPython's `datetime.strftime` of a naive time gives it.
//! Own code, since the rendered prompt must depend on nothing but its arguments (no time zone files, no locale).

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

struct Civil {
    year: i64,
    month: i64, // 1..=12
    day: i64,   // 1..=31
    hour: i64,
    minute: i64,
    second: i64,
    weekday: i64,  // 0 = Sunday
    year_day: i64, // 0..=365
    unix_seconds: i64,
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days to civil date after Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn civil(unix_seconds: i64) -> Civil {
    let days = unix_seconds.div_euclid(86_400);
    let rest = unix_seconds.rem_euclid(86_400);
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let day = doy - (153 * mp + 2) / 5 + 1;
    Civil {
        year,
        month,
        day,
        hour: rest / 3600,
        minute: rest / 60 % 60,
        second: rest % 60,
        weekday: (days + 4).rem_euclid(7),
        year_day: BEFORE[(month - 1) as usize] + day - 1 + i64::from(month > 2 && is_leap(year)),
        unix_seconds,
    }
}

/// ISO 8601 (year, week).
fn iso_week(c: &Civil) -> (i64, i64) {
    let weekday = (c.weekday + 6) % 7; // 0 = Monday
    let week = (c.year_day - weekday + 10) / 7;
    let weeks_of = |year: i64| {
        let p = |y: i64| (y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400)).rem_euclid(7);
        52 + i64::from(p(year) == 4 || p(year - 1) == 3)
    };
    if week < 1 {
        (c.year - 1, weeks_of(c.year - 1))
    } else if week > weeks_of(c.year) {
        (c.year + 1, 1)
    } else {
        (c.year, week)
    }
}

fn number(out: &mut String, value: i64, width: usize, pad: char) {
    let digits = value.to_string();
    // '-' is glibc's flag for no padding.
    if pad != '-' {
        out.extend(std::iter::repeat_n(pad, width.saturating_sub(digits.len())));
    }
    out.push_str(&digits);
}

fn one_code(out: &mut String, c: &Civil, code: char, flag: Option<char>) -> bool {
    let zero = flag.unwrap_or('0');
    let blank = flag.unwrap_or(' ');
    let hour12 = (c.hour + 11) % 12 + 1;
    match code {
        'a' => out.push_str(&DAYS[c.weekday as usize][..3]),
        'A' => out.push_str(DAYS[c.weekday as usize]),
        'b' | 'h' => out.push_str(&MONTHS[c.month as usize - 1][..3]),
        'B' => out.push_str(MONTHS[c.month as usize - 1]),
        'C' => number(out, c.year.div_euclid(100), 2, zero),
        'd' => number(out, c.day, 2, zero),
        'e' => number(out, c.day, 2, blank),
        'f' => out.push_str("000000"),
        'G' => number(out, iso_week(c).0, 4, zero),
        'g' => number(out, iso_week(c).0.rem_euclid(100), 2, zero),
        'H' => number(out, c.hour, 2, zero),
        'I' => number(out, hour12, 2, zero),
        'j' => number(out, c.year_day + 1, 3, zero),
        'k' => number(out, c.hour, 2, blank),
        'l' => number(out, hour12, 2, blank),
        'm' => number(out, c.month, 2, zero),
        'M' => number(out, c.minute, 2, zero),
        'n' => out.push('\n'),
        'p' => out.push_str(if c.hour < 12 { "AM" } else { "PM" }),
        'P' => out.push_str(if c.hour < 12 { "am" } else { "pm" }),
        's' => number(out, c.unix_seconds, 1, zero),
        'S' => number(out, c.second, 2, zero),
        't' => out.push('\t'),
        'u' => number(out, (c.weekday + 6) % 7 + 1, 1, zero),
        'U' => number(out, (c.year_day + 7 - c.weekday) / 7, 2, zero),
        'V' => number(out, iso_week(c).1, 2, zero),
        'w' => number(out, c.weekday, 1, zero),
        'W' => number(out, (c.year_day + 7 - (c.weekday + 6) % 7) / 7, 2, zero),
        'y' => number(out, c.year.rem_euclid(100), 2, zero),
        'Y' => number(out, c.year, 1, zero),
        'z' | 'Z' => {} // a naive time has no zone
        '%' => out.push('%'),
        _ => return false,
    }
    true
}

/// Codes it does not know are copied as they stand, as glibc does.
pub fn strftime(format: &str, unix_seconds: i64) -> String {
    // Years outside 1..=9999 do not exist in CPython either.
    let c = civil(unix_seconds.clamp(-62_135_596_800, 253_402_300_799));
    let expanded = format
        .replace("%c", "%a %b %e %H:%M:%S %Y")
        .replace("%D", "%m/%d/%y")
        .replace("%x", "%m/%d/%y")
        .replace("%F", "%Y-%m-%d")
        .replace("%T", "%H:%M:%S")
        .replace("%X", "%H:%M:%S")
        .replace("%R", "%H:%M")
        .replace("%r", "%I:%M:%S %p");
    let mut out = String::with_capacity(expanded.len() * 2);
    let mut rest = expanded.as_str();
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let mut chars = rest.chars();
        let mut code = chars.next();
        let flag = match code {
            Some('-') => Some('-'),
            Some('_') => Some(' '),
            Some('0') => Some('0'),
            _ => None,
        };
        if flag.is_some() {
            code = chars.next();
        }
        let used = rest.len() - chars.as_str().len();
        if !code.is_some_and(|code| one_code(&mut out, &c, code, flag)) {
            out.push('%');
            out.push_str(&rest[..used]);
        }
        rest = &rest[used..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::strftime;

    #[test]
    fn dates_agree_with_cpython() {
        let all = "%a|%A|%b|%B|%d|%-d|%e|%H|%I|%j|%m|%M|%p|%S|%U|%W|%u|%w|%y|%Y|%G-%V|%D|%F|%T|%R|%c|%%|%Q";
        // python3: datetime.utcfromtimestamp(n).strftime(all)
        assert_eq!(
            strftime(all, 1_721_952_005),
            "Fri|Friday|Jul|July|26|26|26|00|12|208|07|00|AM|05|29|30|5|5|24|2024|2024-30|07/26/24|2024-07-26|00:00:05|00:00|Fri Jul 26 00:00:05 2024|%|%Q"
        );
        assert_eq!(
            strftime(all, 1_609_459_199),
            "Thu|Thursday|Dec|December|31|31|31|23|11|366|12|59|PM|59|52|52|4|4|20|2020|2020-53|12/31/20|2020-12-31|23:59:59|23:59|Thu Dec 31 23:59:59 2020|%|%Q"
        );
        assert_eq!(strftime("%d %b %Y %-d%", 0), "01 Jan 1970 1%");
    }

    #[test]
    fn any_number_of_seconds_is_a_date() {
        for n in [i64::MIN, -1, i64::MAX] {
            assert!(!strftime("%c %U %W %G-%V", n).is_empty());
        }
    }
}
