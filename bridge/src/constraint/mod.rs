//! Constraints on generated text: compile, mask, accept.
//!
//! Lowest first: `kind`, `charge`, `token_trees`, `lexer_steps`, `unique_names`, `lark`; `state_masks`, `grammar_cache`,
//! `tok_env`; `matcher`; `compile`.

mod charge;
mod compile;
mod grammar_cache;
mod kind;
mod lark;
mod lexer_steps;
mod matcher;
mod state_masks;
pub mod tok_env;
mod token_trees;
mod unique_names;

pub use compile::{compile, known, rehearse, without_effect};
pub use kind::Kind;
pub use matcher::Constraint;
