//! Chat templates, rendered as the `transformers` library renders them: jinja2 with `trim_blocks`, `lstrip_blocks`, loop
//! controls, `raise_exception`, `strftime_now`, and a `tojson` that is `json.dumps(ensure_ascii=False)`.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, StringInput, Value, ValueKind};
use minijinja::{AutoEscape, Environment, ErrorKind, Output, State};

use crate::error::{clip, Error, Result, Status};
use crate::guard::run_bounded;
use crate::python::{self, JsonStyle};
use crate::strftime;

pub const MAX_SOURCE_BYTES: usize = 1 << 20;
pub const MAX_CONTEXT_BYTES: usize = 64 << 20;
pub const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// Instructions of the template machine: under a second for cheap ones.
const MAX_FUEL: u64 = 5_000_000;
/// Enough for macros that walk a JSON schema; each macro call counts several.
const MAX_RECURSION: usize = 500;
/// Fuel counts instructions, not their cost: this bounds those that walk long values.
const MAX_RENDER_TIME: Duration = Duration::from_secs(2);
const NAME: &str = "template";

pub struct Template {
    env: Arc<Environment<'static>>,
}

#[derive(Clone, Copy)]
struct Call {
    now: i64,
    deadline: Option<Instant>,
}

thread_local! {
    static CALL: Cell<Call> = const { Cell::new(Call { now: 0, deadline: None }) };
}

/// The text given to `raise_exception`.
#[derive(Debug)]
struct Raised(String);

/// The marker of an error that is a limit, not a fault of the template.
#[derive(Debug)]
struct Exceeded(&'static str);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
impl std::error::Error for Raised {}
impl std::error::Error for Exceeded {}

type JinjaResult<T> = std::result::Result<T, minijinja::Error>;

fn failed(message: impl Into<std::borrow::Cow<'static, str>>) -> minijinja::Error {
    minijinja::Error::new(ErrorKind::InvalidOperation, message)
}

/// Called wherever a template can do much work in one instruction.
pub(crate) fn check_deadline() -> JinjaResult<()> {
    match CALL.get().deadline {
        Some(deadline) if Instant::now() > deadline => {
            let text = "template takes longer than 2 s";
            Err(failed(text).with_source(Exceeded(text)))
        }
        _ => Ok(()),
    }
}

fn raise_exception(message: Value) -> JinjaResult<Value> {
    let text = message.to_string();
    Err(failed(text.clone()).with_source(Raised(text)))
}

fn strftime_now(format: &str) -> JinjaResult<String> {
    Ok(strftime::strftime(&clip(format, 4096), CALL.get().now))
}

fn range(lower: isize, upper: Option<isize>, step: Option<isize>) -> JinjaResult<Value> {
    check_deadline()?;
    minijinja::functions::range(lower, upper, step)
}

fn length(value: &Value) -> JinjaResult<usize> {
    check_deadline()?;
    match value.kind() {
        ValueKind::Undefined => Ok(0),
        _ => minijinja::filters::length(value),
    }
}

fn trim(value: StringInput<'_>, chars: Option<String>) -> JinjaResult<String> {
    check_deadline()?;
    let text = value.as_str();
    Ok(match chars {
        Some(chars) => text.trim_matches(|c| chars.contains(c)),
        None => text.trim_matches(python::is_space),
    }
    .to_string())
}

fn string(value: &Value) -> JinjaResult<Value> {
    check_deadline()?;
    Ok(match python::to_str(value)? {
        Some(text) => Value::from(text),
        None => Value::from(value.to_string()),
    })
}

/// `transformers`: `tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
fn tojson(value: &Value, positional: Rest<Value>, kwargs: Kwargs) -> JinjaResult<String> {
    check_deadline()?;
    let argument = |at: usize, name: &str| -> JinjaResult<Option<Value>> {
        let given = match positional.get(at) {
            Some(v) => Some(v.clone()),
            None => kwargs.get::<Option<Value>>(name)?,
        };
        Ok(given.filter(|v| !v.is_none() && !v.is_undefined()))
    };
    let indent = match argument(1, "indent")? {
        None => None,
        Some(v) if v.kind() == ValueKind::String => Some(v.to_string()),
        Some(v) if v.kind() == ValueKind::Bool => Some(" ".repeat(usize::from(v.is_true()))),
        Some(v) => Some(" ".repeat(i64::try_from(v)?.clamp(0, 64) as usize)),
    };
    let (mut item_separator, mut key_separator) = (if indent.is_some() { "," } else { ", " }.to_string(), ": ".to_string());
    if let Some(pair) = argument(2, "separators")? {
        item_separator = pair.get_item_by_index(0)?.to_string();
        key_separator = pair.get_item_by_index(1)?.to_string();
    }
    let style = JsonStyle {
        ensure_ascii: argument(0, "ensure_ascii")?.is_some_and(|v| v.is_true()),
        indent,
        item_separator,
        key_separator,
        sort_keys: argument(3, "sort_keys")?.is_some_and(|v| v.is_true()),
    };
    kwargs.assert_all_used()?;
    let mut out = String::new();
    python::json(&mut out, value, &style, 0)?;
    Ok(out)
}

fn format_value(out: &mut Output, _: &mut State, value: &Value) -> JinjaResult<()> {
    check_deadline()?;
    let written = match (value.as_str(), python::to_str(value)?) {
        (Some(text), _) => out.write_str(text),
        (None, Some(text)) => out.write_str(&text),
        (None, None) => {
            if value.kind() == ValueKind::Invalid {
                return Err(failed(value.to_string()));
            }
            out.write_fmt(format_args!("{value}"))
        }
    };
    written.map_err(|_| minijinja::Error::from(ErrorKind::WriteFailure))
}

/// jinja2 has no value but these that is not iterable.
fn is_iterable(value: &Value) -> bool {
    !matches!(value.kind(), ValueKind::None | ValueKind::Bool | ValueKind::Number)
}

/// jinja2: what has a length and takes an index.
fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Undefined)
}

fn is_number(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Number | ValueKind::Bool)
}

fn environment() -> Result<Environment<'static>> {
    let mut env = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(false)
        .build()
        .map_err(|e| Error::internal(e.to_string()))?;
    env.set_syntax(syntax);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_fuel(Some(MAX_FUEL));
    env.set_recursion_limit(MAX_RECURSION);
    env.set_debug(false);
    env.set_unknown_method_callback(crate::pymethods::unknown_method);
    env.set_formatter(format_value);
    env.remove_global("debug");
    env.add_function("raise_exception", raise_exception);
    env.add_function("strftime_now", strftime_now);
    env.add_function("range", range);
    env.add_filter("tojson", tojson);
    env.add_filter("string", string);
    env.add_filter("trim", trim);
    env.add_filter("length", length);
    env.add_filter("count", length);
    env.add_test("iterable", is_iterable);
    env.add_test("sequence", is_sequence);
    env.add_test("number", is_number);
    Ok(env)
}

fn to_error(error: &minijinja::Error) -> Error {
    let mut line = error.line().unwrap_or(0) as u32;
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut message = error.to_string();
    while let Some(e) = cause {
        if let Some(raised) = e.downcast_ref::<Raised>() {
            return Error { status: Status::Raised, line, message: raised.0.clone() };
        }
        // An io::Error does not count the error it wraps as its source.
        let wrapped = e.downcast_ref::<io::Error>().and_then(|e| e.get_ref()).and_then(|e| e.downcast_ref::<Exceeded>());
        if let Some(exceeded) = e.downcast_ref::<Exceeded>().or(wrapped) {
            return Error { status: Status::Limit, line, message: exceeded.0.into() };
        }
        if let Some(inner) = e.downcast_ref::<minijinja::Error>() {
            line = inner.line().map_or(line, |l| l as u32);
            message = inner.to_string();
            if inner.kind() == ErrorKind::OutOfFuel {
                let message = format!("template does more than {MAX_FUEL} steps");
                return Error { status: Status::Limit, line, message };
            }
        }
        cause = e.source();
    }
    // The name in the library's own suffix says nothing to a user.
    let suffix = format!(" (in {NAME}:");
    if let Some(at) = message.rfind(&suffix) {
        message.truncate(at);
    }
    if line > 0 {
        message = format!("line {line}: {message}");
    }
    Error { status: Status::Invalid, line, message: clip(&message, 2000) }
}

/// Takes bytes up to a limit.
struct Bounded<'a>(&'a mut Vec<u8>);

impl io::Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT_BYTES {
            return Err(io::Error::other(Exceeded("rendered text is larger than 64 MiB")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Template {
    pub fn compile(source: &str) -> Result<Template> {
        if source.len() > MAX_SOURCE_BYTES {
            return Err(Error::limit(format!("template has {} bytes, more than {MAX_SOURCE_BYTES}", source.len())));
        }
        let source = crate::generation::without_generation_tags(source);
        run_bounded("template", MAX_RENDER_TIME, move || {
            let mut env = environment()?;
            env.add_template_owned(NAME, source).map_err(|e| to_error(&e))?;
            Ok(Template { env: Arc::new(env) })
        })
    }

    /// `context`: a JSON object, its keys the template's variables. `now`: what `strftime_now` shows, in seconds since
    /// 1970-01-01 of the wall clock to show.
    pub fn render(&self, context: &str, now: i64) -> Result<String> {
        if context.len() > MAX_CONTEXT_BYTES {
            return Err(Error::limit(format!("template context has {} bytes, more than {MAX_CONTEXT_BYTES}", context.len())));
        }
        let context: serde_json::Value =
            serde_json::from_str(context).map_err(|e| Error::invalid(format!("template context is not JSON: {e}")))?;
        if !context.is_object() {
            return Err(Error::invalid("template context is not a JSON object"));
        }
        let env = self.env.clone();
        // On a stack that holds what a template may nest; the margin is for the error that the deadline inside gives.
        run_bounded("template", MAX_RENDER_TIME + Duration::from_millis(500), move || {
            CALL.set(Call { now, deadline: Instant::now().checked_add(MAX_RENDER_TIME) });
            render(&env, minijinja::value::Serde(context).into())
        })
    }
}

fn render(env: &Environment<'static>, context: Value) -> Result<String> {
    let template = env.get_template(NAME).map_err(|e| to_error(&e))?;
    let mut bytes = Vec::new();
    template.render_captured_to(context, Bounded(&mut bytes)).map_err(|e| to_error(&e))?;
    String::from_utf8(bytes).map_err(|_| Error::internal("rendered text is not UTF-8"))
}
