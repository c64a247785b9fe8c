//! A parsed template. Names, strings and numbers are indices into its tables. Immutable; any thread may read it.

use std::sync::Arc;

pub type Symbol = u32;

pub enum Literal {
    Int(i128),
    Float(f64),
    Str(String),
}

pub struct Template {
    pub names: Vec<Arc<str>>,
    pub literals: Vec<Literal>,
    pub body: Vec<Statement>,
}

pub struct Expr {
    pub kind: ExprKind,
    pub line: u32,
    pub depth: u32, // of the tree
}

impl Expr {
    pub fn new(line: u32, kind: ExprKind) -> Expr {
        let deepest = |exprs: &mut dyn Iterator<Item = &Expr>| exprs.map(|e| e.depth).max().unwrap_or(0);
        let depth = match &kind {
            ExprKind::Literal(_) | ExprKind::None | ExprKind::Bool(_) | ExprKind::Name(_) => 0,
            ExprKind::Attribute(e, _) | ExprKind::Negative(e) | ExprKind::Positive(e) | ExprKind::Not(e) => e.depth,
            ExprKind::Item(a, b) => a.depth.max(b.depth),
            ExprKind::Slice(e, bounds) => e.depth.max(deepest(&mut bounds.iter().flatten())),
            ExprKind::Call(e, arguments) => e.depth.max(arguments.depth()),
            ExprKind::Filter(e, call) | ExprKind::Test(e, call) => e.depth.max(call.arguments.depth()),
            ExprKind::Binary(_, sides) | ExprKind::And(sides) | ExprKind::Or(sides) => sides.0.depth.max(sides.1.depth),
            ExprKind::Condition(sides, otherwise) => deepest(&mut [&sides.0, &sides.1].into_iter().chain(otherwise.as_deref())),
            ExprKind::Concat(all) | ExprKind::List(all) | ExprKind::Tuple(all) => deepest(&mut all.iter()),
            ExprKind::Compare(e, links) => e.depth.max(deepest(&mut links.iter().map(|l| &l.1))),
            ExprKind::Dict(pairs) => deepest(&mut pairs.iter().flat_map(|p| [&p.0, &p.1])),
        };
        Expr { kind, line, depth: depth + 1 }
    }
}

pub enum ExprKind {
    Literal(u32),
    None,
    Bool(bool),
    Name(Symbol),
    Attribute(Box<Expr>, Symbol),
    Item(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, Box<[Option<Expr>; 3]>),
    Call(Box<Expr>, Box<Arguments>),
    Filter(Box<Expr>, FilterCall),
    Test(Box<Expr>, FilterCall),
    Negative(Box<Expr>),
    Positive(Box<Expr>),
    Not(Box<Expr>),
    Binary(Operator, Box<(Expr, Expr)>),
    And(Box<(Expr, Expr)>),
    Or(Box<(Expr, Expr)>),
    Concat(Vec<Expr>),
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    Condition(Box<(Expr, Expr)>, Option<Box<Expr>>), // (test, then), else
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Power,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    NotIn,
}

#[derive(Default)]
pub struct Arguments {
    pub positional: Vec<Expr>,
    pub named: Vec<(Arc<str>, Expr)>,
    pub more_positional: Option<Expr>,
    pub more_named: Option<Expr>,
}

impl Arguments {
    fn depth(&self) -> u32 {
        let named = self.named.iter().map(|n| &n.1);
        let all = self.positional.iter().chain(named).chain(&self.more_positional).chain(&self.more_named);
        all.map(|e| e.depth).max().unwrap_or(0)
    }
}

pub struct FilterCall {
    pub name: Symbol,
    pub arguments: Box<Arguments>,
    pub line: u32,
}

pub enum Target {
    Name(Symbol),
    Tuple(Vec<Target>),
    Attribute(Symbol, Symbol), // of a namespace
}

pub struct Macro {
    pub name: Symbol,
    pub parameters: Vec<(Symbol, Option<Expr>)>,
    pub takes_more: bool,       // its body has `varargs`
    pub takes_more_named: bool, // `kwargs`
    pub takes_caller: bool,     // `caller`
    pub body: Vec<Statement>,
}

pub struct For {
    pub target: Target,
    pub items: Expr,
    pub test: Option<Expr>,
    pub is_recursive: bool,
    pub body: Vec<Statement>,
    pub otherwise: Vec<Statement>,
}

pub enum Statement {
    Text(u32),
    Print(Expr),
    For(Arc<For>),
    If(Vec<(Expr, Vec<Statement>)>, Vec<Statement>),
    Set(Target, Expr),
    SetBlock(Target, Vec<FilterCall>, Vec<Statement>),
    Macro(Arc<Macro>),
    Call(Arc<Macro>, Expr),
    FilterBlock(Vec<FilterCall>, Vec<Statement>),
    With(Vec<(Target, Expr)>, Vec<Statement>),
    Scope(Vec<Statement>),
    Break,
    Continue,
    Unsupported(String, u32),
}
