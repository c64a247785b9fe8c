//! A model's vocabulary, as the constraint compiler needs it.

use std::sync::Arc;

use llguidance::api::ParserLimits;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie, TokenId};
use llguidance::ParserFactory;

use crate::constraint::charge::Budget;
use crate::constraint::grammar_cache::GrammarCache;
use crate::constraint::token_trees::TokenTrees;
use crate::constraint::unique_names::NameTokens;
use crate::error::{Error, Result};

const MAX_TOKENS: usize = 1 << 22;
/// The trie's nodes count at most 1024 levels; a longer token is never allowed by a mask, which keeps masks sound.
const MAX_TOKEN_BYTES: usize = 1000;

pub struct TokEnvironment {
    pub(crate) factory: Arc<ParserFactory>,
    pub(crate) trees: Arc<TokenTrees>,
    pub(crate) grammars: GrammarCache,
    pub(crate) budget: Arc<Budget>,
    pub(crate) name_tokens: Arc<NameTokens>,
    pub(crate) eos_tokens: Vec<TokenId>,
    pub(crate) n_tokens: usize,
}

/// `words[i]`: the bytes of token i, empty for one that stands for no text. `is_special[i]`: a control token, whose bytes
/// are a name and never match text.
pub fn new(words: &[&[u8]], is_special: &[bool], eos_tokens: &[TokenId]) -> Result<TokEnvironment> {
    if words.is_empty() || words.len() > MAX_TOKENS || words.len() != is_special.len() {
        return Err(Error::invalid(format!("vocabulary of {} tokens, expected 1 to {MAX_TOKENS}", words.len())));
    }
    let Some(first_eos) = eos_tokens.first() else {
        return Err(Error::invalid("no end-of-sequence token"));
    };
    if let Some(bad) = eos_tokens.iter().find(|t| **t as usize >= words.len()) {
        return Err(Error::invalid(format!("end-of-sequence token {bad}, but the vocabulary has {}", words.len())));
    }
    let marked: Vec<Vec<u8>> = words
        .iter()
        .enumerate()
        .map(|(id, bytes)| {
            if is_special[id] || eos_tokens.contains(&(id as TokenId)) {
                let name = if bytes.is_empty() { format!("<[{id}]>").into_bytes() } else { bytes.to_vec() };
                [vec![TokTrie::SPECIAL_TOKEN_MARKER], name].concat()
            } else {
                bytes.to_vec()
            }
        })
        .map(|word| if word.len() > MAX_TOKEN_BYTES { Vec::new() } else { word })
        .collect();
    let info = TokRxInfo::new(words.len() as u32, *first_eos);
    let trie = TokTrie::from(&info, &marked).with_eos_tokens(eos_tokens);
    // Not canonical: the bridge does not know the model's tokenizer, so that no tokens are forced and every split is allowed.
    let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
    let mut factory = ParserFactory::new_simple(&env).map_err(|e| Error::internal(format!("vocabulary: {e}")))?;
    factory.quiet();
    *factory.limits_mut() = ParserLimits { verbose_errors: false, ..ParserLimits::default() };
    let trees = Arc::new(TokenTrees::of(env.tok_trie()));
    Ok(TokEnvironment {
        factory: Arc::new(factory),
        trees,
        grammars: GrammarCache::default(),
        budget: Arc::default(),
        name_tokens: Arc::new(NameTokens::of(env, words.len())),
        eos_tokens: eos_tokens.to_vec(),
        n_tokens: words.len(),
    })
}

/// It is shared between threads behind a pointer that the compiler cannot see.
const _: fn() = || {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<TokEnvironment>();
};
