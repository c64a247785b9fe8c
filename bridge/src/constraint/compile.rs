//! From the source of a constraint to its start: what is asked too often comes from the cache, and what keeps too much is
//! refused.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::{panic_utils, ParserFactory};
use serde_json::Value;

use crate::constraint::grammar_cache::Compiled;
use crate::constraint::kind::Kind;
use crate::constraint::lark;
use crate::constraint::matcher::{trimmed, Constraint};
use crate::constraint::state_masks::StateMasks;
use crate::constraint::tok_env::TokEnvironment;
use crate::constraint::token_trees::TokenTrees;
use crate::error::{Error, Result, Status};
use crate::guard::on_large_stack;
use crate::memory::net_bytes;
use crate::schema::fitting::fitted;
use crate::schema::{check, json_text, keywords, pattern, rewrite, upgrade};

pub const MAX_SOURCE_BYTES: usize = 1 << 20;
pub const MAX_CHOICES: usize = 10_000;
/// What a compiled grammar may keep.
pub const MAX_COMPILED_BYTES: usize = 64 << 20;

fn parse_json(source: &str, what: &str) -> Result<Value> {
    serde_json::from_str(source).map_err(|e| Error::invalid(format!("{what} is not JSON: {e}")))
}

fn choice_grammar(source: &str) -> Result<TopLevelGrammar> {
    let Value::Array(items) = parse_json(source, "choice")? else {
        return Err(Error::invalid("choice is not a JSON array of strings"));
    };
    if items.is_empty() || items.len() > MAX_CHOICES {
        return Err(Error::limit(format!("choice of {} strings, expected 1 to {MAX_CHOICES}", items.len())));
    }
    let mut grammar = String::from("start: ");
    for (i, item) in items.iter().enumerate() {
        let text = item.as_str().ok_or_else(|| Error::invalid(format!("choice at /{i}: not a string")))?;
        if i > 0 {
            grammar.push_str(" | ");
        }
        grammar.push_str(&lark_string(text));
    }
    Ok(TopLevelGrammar::from_lark(grammar))
}

/// A Lark string literal; its syntax is JSON's, without DEL as it stands.
fn lark_string(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// REQUIRES: `kind` is not that of a schema.
fn grammar(kind: Kind, source: &str) -> Result<TopLevelGrammar> {
    match kind {
        Kind::JsonSchema | Kind::JsonObject => Ok(TopLevelGrammar::from_json_schema(serde_json::json!({"type": "object"}))),
        Kind::Regex if source.is_empty() => Ok(TopLevelGrammar::from_lark("start: \"\"".into())),
        Kind::Regex => {
            pattern::check(source, "regex")?;
            Ok(TopLevelGrammar::from_regex(source))
        }
        Kind::Lark => {
            lark::check(source)?;
            Ok(TopLevelGrammar::from_lark(source.to_string()))
        }
        Kind::Choice => choice_grammar(source),
    }
}

/// What compiling needs of a vocabulary.
struct Compiler<'a> {
    factory: &'a ParserFactory,
    trees: &'a Arc<TokenTrees>,
}

impl Compiler<'_> {
    fn compile(&self, kind: Kind, source: &str) -> Result<Compiled> {
        match kind {
            Kind::JsonSchema => self.schema(source),
            Kind::Regex => self.parse(kind, grammar(kind, source)?, |message| Error::invalid(format!("regex: {message}"))),
            _ => self.parse(kind, grammar(kind, source)?, |message| Error::invalid(format!("grammar: {message}"))),
        }
    }

    fn parse(&self, kind: Kind, grammar: TopLevelGrammar, located: impl Fn(&str) -> Error) -> Result<Compiled> {
        let failed = |error: &dyn std::fmt::Display| compile_error(&error.to_string(), &located);
        let mut parser = self.factory.create_parser(grammar).map_err(|e| failed(&e))?;
        parser.start_without_prompt();
        // Lark has lexemes that end before a text which is looked at.
        let masks = StateMasks::new(self.trees.clone(), self.factory.slicer(), kind != Kind::Lark);
        let mut compiled = Compiled::new(parser, Arc::new(masks));
        // The first mask fills caches that every copy has, and shows a grammar that nothing satisfies.
        let first = AssertUnwindSafe(|| compiled.parser.compute_mask());
        let mask = panic_utils::catch_unwind(first).map_err(|e| failed(&e))?;
        if mask.is_zero() {
            return Err(Error::invalid("constraint: no text of this vocabulary satisfies it"));
        }
        Ok(compiled)
    }

    /// The schema as it stands or, where the compiler refuses it, as `rewrite` puts it.
    fn schema(&self, source: &str) -> Result<Compiled> {
        json_text::check_depth(source, json_text::MAX_DEPTH, "schema")?;
        let schema = parse_json(source, "schema")?;
        json_text::check_keys(source)?;
        check::check(&schema)?;
        let compiled = |schema: &Value| {
            let grammar = TopLevelGrammar::from_json_schema(fitted(schema));
            self.parse(Kind::JsonSchema, grammar, |message| check::locate(schema, message))
        };
        let is_ahead = upgrade::is_ahead_of_its_draft(&schema);
        let first = if is_ahead { Err(Error::unsupported("")) } else { compiled(&schema) };
        first.or_else(|first| {
            if first.status == Status::Internal || !(is_ahead || rewrite::may_help(&schema)) {
                return Err(first);
            }
            let second = rewrite::plain(&upgrade::upgraded(&schema)).and_then(|plain| {
                check::check(&plain)?;
                compiled(&plain)
            });
            second.map_err(|error| if first.status == Status::Unsupported { error } else { first })
        })
    }
}

/// What has no effect in the source of a constraint that compiles, a sentence each.
pub fn without_effect(kind: Kind, source: &str) -> Vec<String> {
    match kind {
        Kind::JsonSchema if json_text::check_depth(source, json_text::MAX_DEPTH, "schema").is_ok() => {
            serde_json::from_str(source).map_or_else(|_| vec![], |schema| keywords::without_effect(&schema))
        }
        Kind::Lark => lark::embedded_schemas(source).iter().flat_map(keywords::without_effect).collect(),
        _ => vec![],
    }
}

fn compile_error(message: &str, located: impl Fn(&str) -> Error) -> Error {
    let message = trimmed(message);
    // The one size limit of the compiler below that is an assertion.
    if message.contains("symbols.len()") {
        return Error::limit("constraint has more than 65 534 symbols");
    }
    if message.starts_with("panic:") {
        return Error::internal(format!("constraint compiler: {message}"));
    }
    if message.starts_with("NoExtension") {
        return Error::invalid("constraint: no text of this vocabulary satisfies it");
    }
    located(&message)
}

/// With how many bytes it keeps. REQUIRES: the stack of `guard::on_large_stack`.
fn compiled(env: &TokEnvironment, kind: Kind, source: &str) -> Result<(Compiled, usize)> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(Error::limit(format!("constraint has {} bytes, more than {MAX_SOURCE_BYTES}", source.len())));
    }
    let before = net_bytes();
    let compiled = Compiler { factory: &env.factory, trees: &env.trees }.compile(kind, source)?;
    let n_bytes = usize::try_from(net_bytes() - before).unwrap_or(0);
    if n_bytes > MAX_COMPILED_BYTES {
        let (found, most) = (n_bytes >> 20, MAX_COMPILED_BYTES >> 20);
        return Err(Error::limit(format!("constraint keeps {found} MiB when it is compiled, more than {most} MiB")));
    }
    Ok((compiled, n_bytes))
}

/// All that `compile` will do, for a process where neither its time nor its memory can hurt. REQUIRES: the stack of
/// `guard::on_large_stack`.
pub fn rehearse(env: &TokEnvironment, kind: Kind, source: &str) -> Result<()> {
    compiled(env, kind, source).map(|_| ())
}

/// One of those compiled last.
pub fn known(env: &TokEnvironment, kind: Kind, source: &str) -> Result<Option<Constraint>> {
    let Some((compiled, n_bytes)) = env.grammars.get(kind, source) else { return Ok(None) };
    let charge = env.budget.charge(n_bytes)?;
    Ok(Some(Constraint::of(env, kind, compiled, charge)))
}

/// Takes as much time and memory as it takes: where the source is not one's own, it was rehearsed.
pub fn compile(env: &TokEnvironment, kind: Kind, source: &str) -> Result<Constraint> {
    if let Some(known) = known(env, kind, source)? {
        return Ok(known);
    }
    let (compiled, n_bytes) = on_large_stack(|| compiled(env, kind, source))?;
    let charge = env.budget.charge(n_bytes)?;
    env.grammars.put(kind, source, &compiled, n_bytes);
    Ok(Constraint::of(env, kind, compiled, charge))
}
