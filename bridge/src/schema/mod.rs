//! JSON schemas, before a vocabulary is known: what is refused with its place (`check`), what has no effect (`keywords`), and
//! schemas put in the keywords that the compiler below has (`fitting`, `upgrade`, `rewrite`).
//!
//! Lowest first: `words`, which all share, and `json_text`, `pattern`, `formats`; then the checks; then what writes anew.

mod arrays;
pub mod check;
mod complement;
mod conjunction;
pub mod fitting;
mod formats;
pub mod json_text;
pub mod keywords;
mod names;
mod negation;
pub mod pattern;
mod references;
pub mod rewrite;
mod rewriter;
mod unevaluated;
pub mod upgrade;
mod value_check;
pub mod words;
