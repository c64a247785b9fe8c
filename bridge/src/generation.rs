//! `{% generation %}` ... `{% endgeneration %}`: `transformers` marks the assistant's tokens with it; to the text it is a
//! scope and nothing else. It is rewritten to `{% with %}`, so that white space control and line numbers stay as they are.

/// The offset just after `end`, looking past string literals; the end of the text if there is none.
fn skip_to(source: &str, mut at: usize, end: &str, strings: bool) -> usize {
    let bytes = source.as_bytes();
    while at < bytes.len() {
        if bytes[at..].starts_with(end.as_bytes()) {
            return at + end.len();
        }
        let quote = bytes[at];
        at += 1;
        if strings && (quote == b'"' || quote == b'\'') {
            while at < bytes.len() && bytes[at] != quote {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at += 1;
        }
    }
    source.len()
}

/// The word of the tag whose `{%` ends at `at`, with its range.
fn tag_word(source: &str, at: usize) -> (usize, usize) {
    let bytes = source.as_bytes();
    let mut begin = at + usize::from(matches!(bytes.get(at), Some(b'-' | b'+')));
    while bytes.get(begin).is_some_and(u8::is_ascii_whitespace) {
        begin += 1;
    }
    let mut end = begin;
    while bytes.get(end).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_') {
        end += 1;
    }
    (begin, end)
}

fn skip_raw(source: &str, mut at: usize) -> usize {
    while let Some(found) = source[at..].find("{%") {
        at += found + 2;
        let (begin, end) = tag_word(source, at);
        if &source[begin..end] == "endraw" {
            return skip_to(source, end, "%}", false);
        }
    }
    source.len()
}

pub fn without_generation_tags(source: &str) -> String {
    if !source.contains("generation") {
        return source.to_string();
    }
    let mut out = String::with_capacity(source.len());
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = source[at..].find('{') {
        at += found;
        at = match source.as_bytes().get(at + 1) {
            Some(b'#') => skip_to(source, at + 2, "#}", false),
            Some(b'{') => skip_to(source, at + 2, "}}", true),
            Some(b'%') => {
                let (begin, end) = tag_word(source, at + 2);
                let replacement = match &source[begin..end] {
                    "generation" => Some("with"),
                    "endgeneration" => Some("endwith"),
                    _ => None,
                };
                if let Some(word) = replacement {
                    out.push_str(&source[copied..begin]);
                    out.push_str(word);
                    copied = end;
                }
                let after = skip_to(source, end, "%}", true);
                if &source[begin..end] == "raw" {
                    skip_raw(source, after)
                } else {
                    after
                }
            }
            _ => at + 1,
        };
    }
    out.push_str(&source[copied..]);
    out
}

#[cfg(test)]
mod tests {
    use super::without_generation_tags as rewritten;

    #[test]
    fn only_the_tags_are_rewritten() {
        assert_eq!(rewritten("a{%- generation -%}x{% endgeneration%}"), "a{%- with -%}x{% endwith%}");
        for same in [
            "{{ add_generation_prompt }}",
            "{# {% generation %} #}",
            "{{ '{% generation %}' }}",
            "{% if '{% generation %}' %}{% endif %}",
            "{% raw %}{% generation %}{% endraw %}",
            "generation {",
            "{% generation_x %}",
            "{% \"generation",
        ] {
            assert_eq!(rewritten(same), same);
        }
    }
}
