//! A small C interface over chat templates (Jinja, in `jinja/`) and `llguidance` (constraints on generated text).
//!
//! The contracts that callers rely on are written in `include/candor_bridge.h`, whose only implementation is `ffi`, and in
//! `include/candor_helper.h`, that of the program `candor_helper`: a process for work that may take too much.
//! Input of any kind gives a result or an [`Error`]; a panic of a library becomes an error too.
//! Nothing here reads files, opens sockets, prints, or looks at the clock to decide an outcome other than a time limit.

mod arrays;
mod charge;
mod complement;
mod confine;
mod conjunction;
pub mod constraint;
pub mod error;
pub mod ffi;
mod fitting;
mod formats;
mod grammar_cache;
pub mod guard;
pub mod helper;
mod jinja;
mod keywords;
mod lexer_steps;
mod memory;
mod names;
mod negation;
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
mod upgrade;
mod value_check;

pub use error::{Error, Status};
