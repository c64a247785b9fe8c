use super::{Behavior, Splitter, Step};

/// As the C++ side counts.
fn spans(splitter: &Splitter, text: &[u8]) -> crate::error::Result<Vec<(usize, usize)>> {
    splitter.split(text, &mut (1_000_000 + 200 * text.len() as u64))
}

fn words(expression: &str, behavior: Behavior, invert: bool, text: &str) -> Vec<String> {
    let splitter = Splitter::new(&[Step { expression, behavior, invert, over_bytes: false }]).unwrap();
    spans(&splitter, text.as_bytes()).unwrap().iter().map(|&(a, b)| text[a..b].to_string()).collect()
}

fn isolated(expression: &str, text: &str) -> Vec<String> {
    words(expression, Behavior::Isolated, false, text)
}

fn message(expression: &str) -> String {
    let made = Splitter::new(&[Step { expression, behavior: Behavior::Isolated, invert: false, over_bytes: false }]);
    let message = made.err().map(|e| e.message).unwrap_or_default();
    assert!(!message.contains('\n'), "{message}");
    message
}

/// Expected: what the `tokenizers` library gave.
#[test]
fn cuts_as_oniguruma_does() {
    assert_eq!(isolated("a$", "a\nba"), ["a", "\nb", "a"]);
    assert_eq!(isolated("^b", "a\nb"), ["a\n", "b"]);
    assert_eq!(isolated(".", "a\n"), ["a", "\n"]);
    assert_eq!(isolated(r"\p{N}{1,3}+", "12345678"), ["12345678"]);
    assert_eq!(isolated(r"\p{N}{1,3}", "12345678"), ["123", "456", "78"]);
    assert_eq!(isolated("(?>a|ab)c", "abcac"), ["abc", "ac"]);
    assert_eq!(isolated("(?i:k)", "\u{212a}"), ["\u{212a}"]);
    assert_eq!(isolated("x*", "axxb"), ["a", "xx", "b"]);
    assert_eq!(isolated("(?<=a)b", "abcb"), ["a", "b", "cb"]);
    assert_eq!(isolated("[[:alpha:]]+", "\u{e9}a1"), ["\u{e9}a", "1"]);
    assert_eq!(isolated("a{,2}", "aaaa"), ["aa", "aa"]);
    assert_eq!(isolated("a{2}+", "aaaaa"), ["aaaa", "a"]);
    assert_eq!(isolated("[a-c&&[^b]]+", "abca"), ["a", "b", "ca"]);
    assert_eq!(isolated(r"[a\]-]", "a]-"), ["a", "]", "-"]);
    assert_eq!(isolated(r"\Z", "a\n"), ["a", "\n"]);
}

#[test]
fn gives_matches_what_their_behavior_says() {
    use Behavior::*;
    assert_eq!(words("-", Removed, false, "a-b--c"), ["a", "b", "c"]);
    assert_eq!(words("[a-z]+", Removed, true, "a-b--c"), ["a", "b", "c"]);
    assert_eq!(words("-", MergedWithPrevious, false, "a-b--c"), ["a-", "b-", "-", "c"]);
    assert_eq!(words("-", MergedWithNext, false, "a-b--c"), ["a", "-b", "-", "-c"]);
    assert_eq!(words("-", Contiguous, false, "a-b--c"), ["a", "-", "b", "--", "c"]);
}

/// Each is quadratic or worse where nothing is remembered.
#[test]
fn is_linear_where_others_try_again() {
    let n = 100_000;
    for (expression, text) in [
        (r"\s+$", " ".repeat(n) + "x"),
        (r"\s*[\r\n]+", " ".repeat(n)),
        (r"(?:a|a)*b", "a".repeat(n)),
        (r"(?:a+)+b", "a".repeat(n)),
        (r"\d{1,3}(?=(?:\d{3})*\b)", "1".repeat(n)),
        (r"\w+\d+x|.", "a1".repeat(n / 2)),
    ] {
        let splitter =
            Splitter::new(&[Step { expression, behavior: Behavior::Isolated, invert: false, over_bytes: false }]).unwrap();
        assert!(spans(&splitter, text.as_bytes()).is_ok(), "{expression}");
    }
}

/// An atomic group may end elsewhere each time: what it costs is counted, not remembered.
#[test]
fn refuses_a_text_that_takes_too_much_work() {
    let splitter =
        Splitter::new(&[Step { expression: "a++b", behavior: Behavior::Isolated, invert: false, over_bytes: false }]).unwrap();
    let error = spans(&splitter, "a".repeat(200_000).as_bytes()).err().unwrap();
    assert_eq!(error.status, crate::error::Status::Limit);
    assert!(!error.message.contains('\n'));
}

#[test]
fn names_what_it_does_not_know() {
    for expression in [
        "(",
        ")",
        "[",
        "[a",
        "*",
        r"\",
        r"\p{Nonsense}",
        r"\1",
        r"\k<a>",
        "(?x)",
        "(?~a)",
        "a{",
        "a{9999}",
        "(?i:ss)",
        "(?:a?)*",
        "(?<=a*)b",
        r"\x{110000}",
        "[b-a]",
        r"[[:nonsense:]]",
        r"\K",
    ] {
        assert!(!message(expression).is_empty(), "{expression}");
    }
    assert!(message(&"(".repeat(1000)).contains("deeper"));
    assert!(message(&"(?:a{1000}){1000}".repeat(2)).contains("steps"));
}

/// \u{e9} is C3 A9, and 0xB2 is a number (\u{b2}) there: of \u{f2}, C3 B2.
#[test]
fn steps_over_bytes_see_the_alphabet_of_gpt_2() {
    let steps = [("x", false), (r"\p{N}", true)];
    let steps =
        steps.map(|(expression, over_bytes)| Step { expression, behavior: Behavior::Isolated, invert: false, over_bytes });
    let splitter = Splitter::new(&steps).unwrap();
    assert_eq!(spans(&splitter, "\u{e9}x\u{f2}1".as_bytes()).unwrap(), [(0, 2), (2, 3), (3, 4), (4, 5), (5, 6)]);
}

#[test]
fn bytes_that_are_no_text_are_characters() {
    let splitter =
        Splitter::new(&[Step { expression: "a", behavior: Behavior::Isolated, invert: false, over_bytes: false }]).unwrap();
    assert_eq!(spans(&splitter, b"\xff\xfea\xc3").unwrap(), [(0, 2), (2, 3), (3, 4)]);
}
