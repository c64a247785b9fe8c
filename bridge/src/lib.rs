//! A small C interface over `minijinja` (chat templates) and `llguidance` (constraints on generated text).
//!
//! The contract that callers rely on is written in `include/candor_bridge.h`; `ffi` is its only implementation.
//! Input of any kind gives a result or an [`Error`], within bounded time; a panic of a library becomes an error too.
//! Nothing here reads files, opens sockets, prints, or looks at the clock to decide an outcome other than a time limit.

mod arrays;
mod complement;
mod conjunction;
pub mod constraint;
pub mod error;
pub mod ffi;
mod formats;
pub mod generation;
mod grammar_cache;
pub mod guard;
mod keywords;
mod lexer_steps;
mod names;
mod negation;
mod pymethods;
pub mod python;
mod references;
pub mod rewrite;
pub mod schema_check;
mod state_masks;
pub mod strftime;
pub mod syntax_check;
pub mod template;
pub mod tok_env;
mod token_trees;
mod unevaluated;
mod unique_names;
mod value_check;

pub use error::{Error, Status};
