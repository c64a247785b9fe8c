//! Chat templates, rendered as the `transformers` library renders them (`jinja/`), behind limits on their size.

mod jinja;

use serde_json::Value;

use self::jinja::{Context, Fault, Kind, Program};
use crate::error::{clip, Error, Result, Status};

pub const MAX_SOURCE_BYTES: usize = 1 << 20;
pub const MAX_CONTEXT_BYTES: usize = 64 << 20;
/// The key of a context that no template can name: see `client_texts`.
const CLIENT_KEY: &str = "client texts";

/// REQUIRES: the stack of `guard::on_large_stack`.
pub struct Template {
    program: Program,
}

fn to_error(fault: &Fault) -> Error {
    let status = match fault.kind {
        Kind::Invalid => Status::Invalid,
        Kind::Raised => Status::Raised,
        Kind::Limit => Status::Limit,
    };
    if status == Status::Raised {
        return Error { status, line: fault.line, message: fault.message.clone() };
    }
    Error { line: fault.line, ..Error::new(status, clip(&fault.message, 2000)) }
}

/// `{"client texts": {"mark": one character, "own": [names of variables]}}`: all but those variables were written by a
/// client, and what of it is in the result stands between two marks.
fn client_texts(value: Option<Value>) -> Result<(Option<char>, Vec<String>)> {
    let Some(value) = value else { return Ok((None, Vec::new())) };
    let mark = value["mark"].as_str().and_then(|mark| mark.chars().next());
    let own = value["own"].as_array().into_iter().flatten().filter_map(|name| Some(name.as_str()?.to_string()));
    match mark {
        Some(_) => Ok((mark, own.collect())),
        None => Err(Error::invalid(format!("template context: \"{CLIENT_KEY}\" has no mark"))),
    }
}

impl Template {
    pub fn compile(source: &str) -> Result<Template> {
        if source.len() > MAX_SOURCE_BYTES {
            return Err(Error::limit(format!("template has {} bytes, more than {MAX_SOURCE_BYTES}", source.len())));
        }
        Ok(Template { program: jinja::parse(source).map_err(|fault| to_error(&fault))? })
    }

    /// `context`: a JSON object, its keys the template's variables. `now`: what `strftime_now` shows, in seconds since
    /// 1970-01-01 of the wall clock to show.
    pub fn render(&self, context: &str, now: i64) -> Result<String> {
        if context.len() > MAX_CONTEXT_BYTES {
            return Err(Error::limit(format!("template context has {} bytes, more than {MAX_CONTEXT_BYTES}", context.len())));
        }
        let context: Value =
            serde_json::from_str(context).map_err(|e| Error::invalid(format!("template context is not JSON: {e}")))?;
        let Value::Object(mut variables) = context else {
            return Err(Error::invalid("template context is not a JSON object"));
        };
        let (client_mark, own) = client_texts(variables.shift_remove(CLIENT_KEY))?;
        self.program.render(Context { variables, own, client_mark, now }).map_err(|fault| to_error(&fault))
    }
}
