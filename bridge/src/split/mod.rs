//! Rules by which a published tokenizer cuts text into words, where they are regular expressions that nobody has written
//! a scanner for: Oniguruma's syntax (Ruby's, as the `tokenizers` library reads it), leftmost match, first alternative
//! first, look-around, atomic groups. Time and memory are linear in the text, or the text is refused.
//!
//! Lowest first: `chars` (sets of characters), `syntax` (text to tree), `program` (tree to instructions), `matcher`
//! (one match), `pieces` (all matches to pieces).

mod chars;
mod matcher;
mod pieces;
mod program;
mod syntax;

pub use pieces::{Behavior, Splitter, Step};

#[cfg(test)]
mod tests;
