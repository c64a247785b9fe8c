//! A constraint as the text goes on: which tokens may follow, and which one did.

use std::sync::Arc;

use llguidance::toktrie::TokenId;
use llguidance::Matcher;

use crate::constraint::charge::Charge;
use crate::constraint::grammar_cache::Compiled;
use crate::constraint::kind::Kind;
use crate::constraint::state_masks::StateMasks;
use crate::constraint::tok_env::TokEnvironment;
use crate::constraint::unique_names::{NameTokens, UniqueNames};
use crate::error::{clip, Error, Result, Status};
use crate::memory::net_bytes;

pub struct Constraint {
    matcher: Matcher,
    masks: Arc<StateMasks>,
    /// Shared by all forks.
    charge: Arc<Charge>,
    eos_tokens: Vec<TokenId>,
    n_tokens: usize,
    /// Of JSON.
    names: Option<Names>,
}

/// The names of the text so far.
#[derive(Clone)]
struct Names {
    tokens: Arc<NameTokens>,
    text: UniqueNames,
}

impl Names {
    fn of(tokens: Arc<NameTokens>) -> Names {
        Names { tokens, text: UniqueNames::default() }
    }

    fn allows(&self, token: TokenId) -> bool {
        self.text.allows(self.tokens.text(token))
    }

    fn advance(&mut self, token: TokenId) {
        self.text.advance(self.tokens.text(token));
    }
}

/// The text of an error of the compiler below, without its dumps.
pub fn trimmed(message: &str) -> String {
    let end = ["\n<non-verbose/>", "\n<state>", "\n<backtrace>"]
        .iter()
        .filter_map(|marker| message.find(marker))
        .min()
        .unwrap_or(message.len());
    clip(message[..end].trim_end(), 2000)
}

fn run_error(error: impl std::fmt::Display) -> Error {
    Error::new(Status::Limit, format!("constraint: {}", trimmed(&error.to_string())))
}

impl Constraint {
    pub fn of(env: &TokEnvironment, kind: Kind, compiled: Compiled, charge: Arc<Charge>) -> Constraint {
        let is_json = matches!(kind, Kind::JsonSchema | Kind::JsonObject);
        Constraint {
            matcher: Matcher::new(Ok(compiled.parser)),
            masks: compiled.masks,
            charge,
            eos_tokens: env.eos_tokens.clone(),
            n_tokens: env.n_tokens,
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
            return Ok(self.eos_tokens.contains(&token));
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

    pub fn is_accepting(&mut self) -> bool {
        self.matcher.is_accepting().unwrap_or(false)
    }

    pub fn is_stopped(&self) -> bool {
        self.matcher.is_stopped()
    }
}
