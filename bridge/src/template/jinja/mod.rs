//! Jinja as CPython's jinja2 3.1 renders it for the `transformers` library: `ImmutableSandboxedEnvironment` with
//! `trim_blocks`, `lstrip_blocks`, loop controls and `{% generation %}`. Own code, for two things that a library for
//! other ends does not give: every step and every byte is counted (`budget.rs`), and every character of the result is
//! known to be the template's or a client's (`text.rs`). Values cannot change but for namespaces.

mod arguments;
mod ast;
mod attributes;
mod budget;
mod chars;
mod conditions;
mod dict;
mod eval;
mod expressions;
mod filters;
mod format;
mod globals;
mod lexer;
mod methods;
mod numbers;
mod operators;
mod parser;
mod print;
mod sequences;
mod statements;
mod strftime;
mod text;
mod value;

use std::collections::HashMap;

pub use budget::{Done, Fault, Kind};
use dict::Dict;
use text::{Builder, Str};
use value::Value;

/// A template that was parsed.
pub struct Program(ast::Template);

/// Roles that are words of the template as much as of the client: some templates build a control token of them.
const ROLES: [&str; 12] = [
    "assistant",
    "developer",
    "function",
    "ipython",
    "model",
    "observation",
    "system",
    "tool",
    "tool_call",
    "tool_response",
    "tools",
    "user",
];

pub fn parse(source: &str) -> Done<Program> {
    Ok(Program(parser::parse(source)?))
}

/// Who wrote a value of the context.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    Engine,
    Client,
    /// A client, but for well-known roles.
    ClientOfMessages,
    ClientOfMessage,
}

impl Writer {
    fn of_member(self, key: &str, value: &serde_json::Value) -> Writer {
        let is_known = key == "role" && value.as_str().is_some_and(|role| ROLES.contains(&role));
        match self {
            Writer::Engine => Writer::Engine,
            Writer::ClientOfMessage if is_known => Writer::Engine,
            _ => Writer::Client,
        }
    }

    fn of_item(self) -> Writer {
        match self {
            Writer::ClientOfMessages => Writer::ClientOfMessage,
            Writer::Engine => Writer::Engine,
            _ => Writer::Client,
        }
    }
}

fn value_of(json: serde_json::Value, writer: Writer) -> Done<Value> {
    let text = |text: &str| if writer == Writer::Engine { Str::own(text) } else { Str::client(text) };
    Ok(match json {
        serde_json::Value::Null => Value::None,
        serde_json::Value::Bool(b) => Value::Bool(b),
        serde_json::Value::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(i), _) => Value::Int(i.into()),
            (_, Some(i)) => Value::Int(i.into()),
            _ => Value::Float(n.as_f64().unwrap_or(0.0)),
        },
        serde_json::Value::String(s) => Value::Str(text(&s)?),
        serde_json::Value::Array(items) => {
            Value::list(items.into_iter().map(|item| value_of(item, writer.of_item())).collect::<Done<_>>()?)?
        }
        serde_json::Value::Object(map) => {
            let mut dict = Dict::empty();
            for (key, value) in map {
                let of_value = writer.of_member(&key, &value);
                dict.insert(Value::Str(text(&key)?), value_of(value, of_value)?)?;
            }
            Value::Dict(dict.into())
        }
    })
}

/// What a rendering is given. `client_mark`: in the result, what a client wrote stands between two of it. `own`: the
/// variables that no client wrote.
pub struct Context {
    pub variables: serde_json::Map<String, serde_json::Value>,
    pub own: Vec<String>,
    pub client_mark: Option<char>,
    pub now: i64,
}

impl Program {
    pub fn render(&self, context: Context) -> Done<String> {
        budget::begin(context.now);
        let mut variables = HashMap::new();
        for (name, json) in context.variables {
            let writer = match name.as_str() {
                name if context.own.iter().any(|own| own == name) => Writer::Engine,
                "messages" => Writer::ClientOfMessages,
                _ => Writer::Client,
            };
            let value = value_of(json, writer)?;
            variables.insert(name, value);
        }
        globals::add_to(&mut variables);
        let mut interp = eval::Interp::new(&self.0, variables)?;
        let mut out = Builder::default();
        interp.run(&self.0.body, eval::ROOT, &mut out)?;
        Ok(out.finish()?.marked(context.client_mark))
    }
}
