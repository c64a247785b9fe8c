//! Constraints on generated text: compile, mask, accept, roll back.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::TokenId;
use llguidance::{panic_utils, Matcher, ParserFactory};
use serde_json::Value;

use crate::charge::Charge;
use crate::error::{clip, Error, Result, Status};
use crate::fitting::fitted;
use crate::grammar_cache::Compiled;
use crate::guard::on_large_stack;
use crate::memory::net_bytes;
use crate::state_masks::StateMasks;
use crate::tok_env::TokEnvironment;
use crate::token_trees::TokenTrees;
use crate::unique_names::{NameTokens, UniqueNames};
use crate::{keywords, rewrite, schema_check, syntax_check, upgrade, value_check};

pub const MAX_SOURCE_BYTES: usize = 1 << 20;
pub const MAX_CHOICES: usize = 10_000;
/// What a compiled grammar may keep.
pub const MAX_COMPILED_BYTES: usize = 64 << 20;

/// Numbers are part of the C interface (`enum candor_grammar_kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    JsonSchema = 0,
    JsonObject = 1,
    Regex = 2,
    Lark = 3,
    Choice = 4,
}

impl Kind {
    pub fn of(number: i32) -> Result<Kind> {
        [Kind::JsonSchema, Kind::JsonObject, Kind::Regex, Kind::Lark, Kind::Choice]
            .into_iter()
            .find(|kind| *kind as i32 == number)
            .ok_or_else(|| Error::internal(format!("grammar kind {number} is not known")))
    }
}

pub struct Constraint {
    matcher: Matcher,
    masks: Arc<StateMasks>,
    /// Shared by all forks.
    charge: Arc<Charge>,
    eos_tokens: Vec<TokenId>,
    n_tokens: usize,
    /// End-of-sequence tokens accepted after the matcher had stopped by itself; it does not count them.
    n_late_eos: usize,
    /// Of JSON.
    names: Option<Names>,
}

/// The text so far, and its tokens to go back by.
#[derive(Clone)]
struct Names {
    tokens: Arc<NameTokens>,
    accepted: Vec<TokenId>,
    text: UniqueNames,
}

impl Names {
    fn of(tokens: Arc<NameTokens>) -> Names {
        Names { tokens, accepted: Vec::new(), text: UniqueNames::default() }
    }

    fn allows(&self, token: TokenId) -> bool {
        self.text.allows(self.tokens.text(token))
    }

    fn advance(&mut self, token: TokenId) {
        self.text.advance(self.tokens.text(token));
        self.accepted.push(token);
    }

    fn rollback(&mut self, n: usize) {
        let kept = self.accepted.len().saturating_sub(n);
        let mut back = Names::of(self.tokens.clone());
        self.accepted[..kept].iter().for_each(|token| back.advance(*token));
        *self = back;
    }
}

/// The text of an error of the compiler below, without its dumps.
fn trimmed(message: &str) -> String {
    let end = ["\n<non-verbose/>", "\n<state>", "\n<backtrace>"]
        .iter()
        .filter_map(|marker| message.find(marker))
        .min()
        .unwrap_or(message.len());
    clip(message[..end].trim_end(), 2000)
}

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
            syntax_check::regex(source, "regex")?;
            Ok(TopLevelGrammar::from_regex(source))
        }
        Kind::Lark => {
            syntax_check::lark(source)?;
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
        syntax_check::json_depth(source, syntax_check::MAX_SCHEMA_DEPTH, "schema")?;
        let schema = parse_json(source, "schema")?;
        value_check::unique_keys(source)?;
        schema_check::check(&schema)?;
        let compiled = |schema: &Value| {
            let grammar = TopLevelGrammar::from_json_schema(fitted(schema));
            self.parse(Kind::JsonSchema, grammar, |message| schema_check::locate(schema, message))
        };
        let is_ahead = upgrade::is_ahead_of_its_draft(&schema);
        let first = if is_ahead { Err(Error::unsupported("")) } else { compiled(&schema) };
        first.or_else(|first| {
            if first.status == Status::Internal || !(is_ahead || rewrite::may_help(&schema)) {
                return Err(first);
            }
            let second = rewrite::plain(&upgrade::upgraded(&schema)).and_then(|plain| {
                schema_check::check(&plain)?;
                compiled(&plain)
            });
            second.map_err(|error| if first.status == Status::Unsupported { error } else { first })
        })
    }
}

/// What has no effect in the source of a constraint that compiles, a sentence each.
pub fn without_effect(kind: Kind, source: &str) -> Vec<String> {
    match kind {
        Kind::JsonSchema if syntax_check::json_depth(source, syntax_check::MAX_SCHEMA_DEPTH, "schema").is_ok() => {
            serde_json::from_str(source).map_or_else(|_| vec![], |schema| keywords::without_effect(&schema))
        }
        Kind::Lark => syntax_check::embedded_schemas(source).iter().flat_map(keywords::without_effect).collect(),
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

fn run_error(error: impl std::fmt::Display) -> Error {
    Error::new(Status::Limit, format!("constraint: {}", trimmed(&error.to_string())))
}

impl Constraint {
    fn of(env: &TokEnvironment, kind: Kind, compiled: Compiled, charge: Arc<Charge>) -> Constraint {
        let is_json = matches!(kind, Kind::JsonSchema | Kind::JsonObject);
        Constraint {
            matcher: Matcher::new(Ok(compiled.parser)),
            masks: compiled.masks,
            charge,
            eos_tokens: env.eos_tokens.clone(),
            n_tokens: env.n_tokens,
            n_late_eos: 0,
            names: is_json.then(|| Names::of(env.name_tokens.clone())),
        }
    }

    pub fn fork(&self) -> Constraint {
        let before = net_bytes();
        let fork = Constraint {
            matcher: self.matcher.clone(),
            masks: self.masks.clone(),
            charge: self.charge.clone(),
            eos_tokens: self.eos_tokens.clone(),
            names: self.names.clone(),
            ..*self
        };
        fork.charge.add(net_bytes() - before);
        fork
    }

    /// Drops it, and gives back what it was charged with.
    pub fn release(self) {
        let charge = self.charge.clone();
        let before = net_bytes();
        drop(self);
        charge.add(net_bytes() - before);
    }

    /// Runs `f` and charges what it leaves behind; beyond the limit, the constraint's end.
    fn charged<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = net_bytes();
        let result = f(self);
        self.charge.add(net_bytes() - before);
        self.charge.check().and(result)
    }

    /// One bit a token, token 0 the lowest of `words[0]`; bits past the vocabulary are zero.
    pub fn mask(&mut self, words: &mut [u32]) -> Result<()> {
        self.charged(|constraint| constraint.write_mask(words))
    }

    fn write_mask(&mut self, words: &mut [u32]) -> Result<()> {
        let needed = self.n_tokens.div_ceil(32);
        if words.len() < needed {
            return Err(Error::invalid(format!("mask of {} words, needs {needed}", words.len())));
        }
        let mask = self.matcher.compute_mask_or_eos().map_err(|error| {
            self.masks.forget();
            run_error(error)
        })?;
        words.fill(0);
        words[..needed].copy_from_slice(&mask.as_slice()[..needed]);
        if !self.n_tokens.is_multiple_of(32) {
            words[needed - 1] &= (1u32 << (self.n_tokens % 32)) - 1;
        }
        if let Some(names) = &self.names {
            names.text.restrict(&names.tokens, &mut words[..needed]);
            if words.iter().all(|word| *word == 0) {
                return Err(Error::limit("constraint: an object has every name already that may stand here"));
            }
        }
        Ok(())
    }

    /// False, with nothing changed, for a token that the constraint does not allow here.
    pub fn accept(&mut self, token: TokenId) -> Result<bool> {
        self.charged(|constraint| constraint.advance(token))
    }

    fn advance(&mut self, token: TokenId) -> Result<bool> {
        if token as usize >= self.n_tokens {
            return Ok(false);
        }
        if self.matcher.is_stopped() && !self.matcher.is_error() {
            let is_eos = self.eos_tokens.contains(&token);
            self.n_late_eos += usize::from(is_eos);
            return Ok(is_eos);
        }
        if self.names.as_ref().is_some_and(|names| !names.allows(token)) {
            return Ok(false);
        }
        let is_accepted = self.matcher.try_consume_tokens(&[token]).map_err(run_error)? == 1;
        if let (true, Some(names)) = (is_accepted, &mut self.names) {
            names.advance(token);
        }
        Ok(is_accepted)
    }

    /// How many of `tokens` are allowed, one after another from here. The state stays as it is.
    pub fn validate(&mut self, tokens: &[TokenId]) -> Result<usize> {
        self.charged(|constraint| constraint.count_valid(tokens))
    }

    fn count_valid(&mut self, tokens: &[TokenId]) -> Result<usize> {
        if self.matcher.is_stopped() && !self.matcher.is_error() {
            return Ok(tokens.iter().take_while(|t| self.eos_tokens.contains(t)).count());
        }
        let known = tokens.iter().take_while(|t| (**t as usize) < self.n_tokens).count();
        let n = self.matcher.validate_tokens(&tokens[..known]).map_err(run_error)?;
        let Some(mut names) = self.names.clone() else { return Ok(n) };
        let unique = tokens[..n].iter().take_while(|token| {
            let is_allowed = names.allows(**token);
            if is_allowed {
                names.advance(**token);
            }
            is_allowed
        });
        Ok(unique.count())
    }

    /// Takes back the last `n` accepted tokens.
    pub fn rollback(&mut self, n: usize) -> Result<()> {
        let late = n.min(self.n_late_eos);
        self.matcher.rollback(n - late).map_err(run_error)?;
        self.n_late_eos -= late;
        if let Some(names) = &mut self.names {
            names.rollback(n - late);
        }
        Ok(())
    }

    pub fn is_accepting(&mut self) -> bool {
        self.matcher.is_accepting().unwrap_or(false)
    }

    pub fn is_stopped(&self) -> bool {
        self.matcher.is_stopped()
    }
}
