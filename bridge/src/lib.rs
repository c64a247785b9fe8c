//! A small C interface over chat templates (Jinja, in `template/`) and `llguidance` (constraints on generated text).
//!
//! The contracts that callers rely on are written in `include/candor_bridge.h`, whose only implementation is `ffi`, and in
//! `include/candor_helper.h`, that of the program `candor_helper`: a process for work that may take too much.
//! Input of any kind gives a result or an [`Error`]; a panic of a library becomes an error too.
//! Nothing here reads files, opens sockets, prints, or looks at the clock to decide an outcome other than a time limit.
//!
//! Lowest first: `error`, `memory` and `guard`; `schema`, which knows no vocabulary; `constraint`, `template`, `image`; `helper`, `ffi`.

mod confine;
pub mod constraint;
pub mod error;
pub mod ffi;
pub mod guard;
pub mod helper;
pub mod image;
mod memory;
pub mod schema;
pub mod split;
pub mod template;

pub use error::{Error, Status};
