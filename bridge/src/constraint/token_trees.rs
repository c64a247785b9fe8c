//! The tokens of a vocabulary by their bytes: the plain ones, short and of printable ASCII without quote and backslash, and
//! the others. Of plain tokens only the length matters to a string without a pattern.

use llguidance::toktrie::{SimpleVob, TokTrie, TokenId};

/// Longer tokens are not plain.
const MAX_PLAIN_BYTES: usize = 16;

pub fn is_plain_byte(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7e) && byte != b'"' && byte != b'\\'
}

/// Before its descendants, which follow it up to `end`.
pub struct Node {
    pub byte: u8,
    depth: u16,
    end: u32,
    token: TokenId,
}

const NO_TOKEN: TokenId = TokenId::MAX;

impl Node {
    /// 1 for a first byte.
    pub fn depth(&self) -> usize {
        self.depth as usize
    }

    pub fn end(&self) -> usize {
        self.end as usize
    }

    pub fn token(&self) -> Option<TokenId> {
        (self.token != NO_TOKEN).then_some(self.token)
    }
}

pub struct TokenTrees {
    /// The plain ones first.
    pub nodes: Vec<Node>,
    pub n_plain_nodes: usize,
    /// Depth of the deepest node.
    pub max_depth: usize,
    /// `[n]`: the plain tokens of at most n bytes.
    plain_up_to: Vec<SimpleVob>,
}

impl TokenTrees {
    pub fn of(trie: &TokTrie) -> TokenTrees {
        let is_plain = |bytes: &[u8]| bytes.len() <= MAX_PLAIN_BYTES && bytes.iter().all(|b| is_plain_byte(*b));
        let (plain, other): (Vec<_>, Vec<_>) = trie.sorted_tokens().into_iter().partition(|(_, bytes)| is_plain(bytes));
        let longest = plain.iter().map(|(_, bytes)| bytes.len()).max().unwrap_or(0);
        let mut plain_up_to = vec![trie.alloc_token_set(); longest + 1];
        for (token, bytes) in &plain {
            plain_up_to[bytes.len()..].iter_mut().for_each(|set| set.allow_token(*token));
        }
        let mut trees = TokenTrees { nodes: vec![], n_plain_nodes: 0, max_depth: 0, plain_up_to };
        trees.append(&plain);
        trees.n_plain_nodes = trees.nodes.len();
        trees.append(&other);
        trees.max_depth = trees.nodes.iter().map(Node::depth).max().unwrap_or(0);
        trees
    }

    /// REQUIRES: tokens of one byte or more, sorted by their bytes.
    fn append(&mut self, tokens: &[(TokenId, Vec<u8>)]) {
        let mut open: Vec<usize> = vec![];
        for (token, bytes) in tokens {
            let n_shared = open.iter().zip(bytes).take_while(|(node, byte)| self.nodes[**node].byte == **byte).count();
            let n_shared = n_shared.min(bytes.len() - 1); // a second token of the same bytes is a node of its own
            self.close(&mut open, n_shared);
            for byte in &bytes[n_shared..] {
                open.push(self.nodes.len());
                self.nodes.push(Node { byte: *byte, depth: open.len() as u16, end: 0, token: NO_TOKEN });
            }
            if let Some(last) = open.last() {
                self.nodes[*last].token = *token;
            }
        }
        self.close(&mut open, 0);
    }

    fn close(&mut self, open: &mut Vec<usize>, n_kept: usize) {
        for node in open.drain(n_kept..) {
            self.nodes[node].end = self.nodes.len() as u32;
        }
    }

    pub fn longest_plain(&self) -> usize {
        self.plain_up_to.len() - 1
    }

    pub fn plain_up_to(&self, n_bytes: usize) -> &SimpleVob {
        &self.plain_up_to[n_bytes.min(self.longest_plain())]
    }
}
