//! Jinja's grammar: statements. Expressions: see `expressions.rs`.

use std::collections::HashMap;
use std::sync::Arc;

use super::ast::*;
use super::budget::Done;
use super::lexer::{tokens, wrong, Token};

/// Brackets and blocks in each other, and links of a chain such as `a.b.c`.
pub const MAX_NESTING: u32 = 200;
pub const MAX_CHAIN: u32 = 1000;

pub struct Parser {
    tokens: Vec<(Token, u32)>,
    at: usize,
    pub nesting: u32,
    names: Vec<Arc<str>>,
    symbols: HashMap<Arc<str>, Symbol>,
    literals: Vec<Literal>,
    /// Of each macro that is being parsed: does it use `varargs`, `kwargs`, `caller`?
    macros: Vec<[bool; 3]>,
    loops: u32,
}

pub fn parse(source: &str) -> Done<Template> {
    let mut parser = Parser {
        tokens: tokens(source)?,
        at: 0,
        nesting: 0,
        names: Vec::new(),
        symbols: HashMap::new(),
        literals: Vec::new(),
        macros: Vec::new(),
        loops: 0,
    };
    let body = parser.statements(&[])?;
    Ok(Template { names: parser.names, literals: parser.literals, body })
}

fn shown(token: &Token) -> String {
    match token {
        Token::Name(name) => format!("'{name}'"),
        Token::Operator(o) => format!("'{o}'"),
        Token::BlockEnd => "end of statement block".into(),
        Token::PrintEnd => "end of print statement".into(),
        Token::End => "end of template".into(),
        Token::Str(_) => "a string".into(),
        Token::Int(_) | Token::Float(_) => "a number".into(),
        _ => "text".into(),
    }
}

impl Parser {
    pub fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    pub fn peek_second(&self) -> &Token {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].0
    }

    pub fn line(&self) -> u32 {
        self.tokens[self.at].1
    }

    pub fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    pub fn fail<T>(&self, expected: &str) -> Done<T> {
        wrong(self.line(), format!("expected {expected}, got {}", shown(self.peek())))
    }

    pub fn is_operator(&self, operator: &str) -> bool {
        matches!(self.peek(), Token::Operator(o) if *o == operator)
    }

    pub fn skip_operator(&mut self, operator: &str) -> bool {
        let found = self.is_operator(operator);
        if found {
            self.advance();
        }
        found
    }

    pub fn expect_operator(&mut self, operator: &str) -> Done<()> {
        if self.skip_operator(operator) {
            return Ok(());
        }
        self.fail(&format!("'{operator}'"))
    }

    pub fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Token::Name(n) if n == name)
    }

    pub fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        if found {
            self.advance();
        }
        found
    }

    pub fn expect_name(&mut self) -> Done<String> {
        match self.peek().clone() {
            Token::Name(name) => {
                self.advance();
                Ok(name)
            }
            _ => self.fail("a name"),
        }
    }

    fn expect(&mut self, token: &Token) -> Done<()> {
        if self.peek() == token {
            self.advance();
            return Ok(());
        }
        self.fail(&shown(token))
    }

    pub fn symbol(&mut self, name: &str) -> Symbol {
        if let Some(symbol) = self.symbols.get(name) {
            return *symbol;
        }
        let name: Arc<str> = name.into();
        let symbol = self.names.len() as Symbol;
        self.names.push(name.clone());
        self.symbols.insert(name, symbol);
        symbol
    }

    pub fn literal(&mut self, literal: Literal) -> u32 {
        self.literals.push(literal);
        self.literals.len() as u32 - 1
    }

    /// A name that is read: macros know which of their hidden arguments they use.
    pub fn note_use(&mut self, name: &str) {
        let Some(uses) = self.macros.last_mut() else { return };
        match name {
            "varargs" => uses[0] = true,
            "kwargs" => uses[1] = true,
            "caller" => uses[2] = true,
            _ => {}
        }
    }

    pub fn nested<T>(&mut self, inner: impl FnOnce(&mut Parser) -> Done<T>) -> Done<T> {
        if self.nesting >= MAX_NESTING {
            return wrong(self.line(), format!("nested deeper than {MAX_NESTING}"));
        }
        self.nesting += 1;
        let result = inner(self);
        self.nesting -= 1;
        result
    }

    /// Up to a tag that begins with one of `ends`, which is then the current token.
    fn statements(&mut self, ends: &[&str]) -> Done<Vec<Statement>> {
        let mut body = Vec::new();
        loop {
            match self.peek().clone() {
                Token::Data(text) => {
                    let text = self.literal(Literal::Str(text));
                    body.push(Statement::Text(text));
                    self.advance();
                }
                Token::PrintBegin => {
                    self.advance();
                    let expr = self.nested(|p| p.tuple(true, &[]))?;
                    body.push(Statement::Print(expr));
                    self.expect(&Token::PrintEnd)?;
                }
                Token::BlockBegin => {
                    self.advance();
                    if ends.iter().any(|end| self.is_name(end)) {
                        return Ok(body);
                    }
                    let statement = self.nested(Parser::statement)?;
                    body.push(statement);
                    self.expect(&Token::BlockEnd)?;
                }
                Token::End if ends.is_empty() => return Ok(body),
                _ => return self.fail(&format!("'{}'", ends.join("' or '"))),
            }
        }
    }

    /// Behind a tag's head: its body, up to and with the name that ends it.
    fn body(&mut self, ends: &[&str]) -> Done<(Vec<Statement>, String)> {
        self.skip_operator(":");
        self.expect(&Token::BlockEnd)?;
        let body = self.statements(ends)?;
        Ok((body, self.expect_name()?))
    }

    fn statement(&mut self) -> Done<Statement> {
        let line = self.line();
        let tag = self.expect_name()?;
        Ok(match tag.as_str() {
            "for" => self.for_loop()?,
            "if" => self.conditional()?,
            "set" => self.assignment()?,
            "macro" => {
                let name = self.expect_name()?;
                Statement::Macro(self.macro_definition(&name, "endmacro")?)
            }
            "call" => self.call_block()?,
            "filter" => {
                let filters = self.filters_inline()?;
                Statement::FilterBlock(filters, self.body(&["endfilter"])?.0)
            }
            "with" => self.with()?,
            "generation" => Statement::Scope(self.body(&["endgeneration"])?.0),
            "autoescape" => {
                self.nested(|p| p.expression())?;
                Statement::Scope(self.body(&["endautoescape"])?.0)
            }
            "block" => self.block()?,
            "print" => Statement::Print(self.tuple(true, &[])?),
            "break" if self.loops > 0 => Statement::Break,
            "continue" if self.loops > 0 => Statement::Continue,
            "include" | "extends" | "import" | "from" => {
                while !matches!(self.peek(), Token::BlockEnd | Token::End) {
                    self.advance();
                }
                Statement::Unsupported(format!("there are no other templates to {tag}"), line)
            }
            _ => return wrong(line, format!("unknown tag '{tag}'")),
        })
    }

    fn block(&mut self) -> Done<Statement> {
        let name = self.expect_name()?;
        while self.skip_name("scoped") || self.skip_name("required") {}
        let (body, _) = self.body(&["endblock"])?;
        self.skip_name(&name);
        Ok(Statement::Scope(body))
    }

    fn for_loop(&mut self) -> Done<Statement> {
        let target = self.target(&["in"], false)?;
        if !self.skip_name("in") {
            return self.fail("'in'");
        }
        let items = self.tuple(false, &["recursive"])?;
        let test = if self.skip_name("if") { Some(self.expression()?) } else { None };
        let is_recursive = self.skip_name("recursive");
        self.loops += 1;
        let (body, end) = self.body(&["endfor", "else"])?;
        self.loops -= 1;
        let otherwise = if end == "else" { self.body(&["endfor"])?.0 } else { Vec::new() };
        Ok(Statement::For(Arc::new(For { target, items, test, is_recursive, body, otherwise })))
    }

    fn conditional(&mut self) -> Done<Statement> {
        let mut branches = Vec::new();
        loop {
            let test = self.tuple(false, &[])?;
            let (body, end) = self.body(&["elif", "else", "endif"])?;
            branches.push((test, body));
            match end.as_str() {
                "elif" => {}
                "else" => return Ok(Statement::If(branches, self.body(&["endif"])?.0)),
                _ => return Ok(Statement::If(branches, Vec::new())),
            }
        }
    }

    fn assignment(&mut self) -> Done<Statement> {
        let target = self.target(&[], true)?;
        if self.skip_operator("=") {
            return Ok(Statement::Set(target, self.tuple(true, &[])?));
        }
        let mut filters = Vec::new();
        while self.skip_operator("|") {
            filters.push(self.filter_call()?);
        }
        Ok(Statement::SetBlock(target, filters, self.body(&["endset"])?.0))
    }

    fn filters_inline(&mut self) -> Done<Vec<FilterCall>> {
        let mut filters = vec![self.filter_call()?];
        while self.skip_operator("|") {
            filters.push(self.filter_call()?);
        }
        Ok(filters)
    }

    fn with(&mut self) -> Done<Statement> {
        let mut values = Vec::new();
        while !matches!(self.peek(), Token::BlockEnd) && !self.is_operator(":") {
            if !values.is_empty() {
                self.expect_operator(",")?;
            }
            let target = self.target(&[], false)?;
            self.expect_operator("=")?;
            values.push((target, self.expression()?));
        }
        Ok(Statement::With(values, self.body(&["endwith"])?.0))
    }

    fn signature(&mut self) -> Done<Vec<(Symbol, Option<Expr>)>> {
        let mut parameters: Vec<(Symbol, Option<Expr>)> = Vec::new();
        self.expect_operator("(")?;
        while !self.is_operator(")") {
            if !parameters.is_empty() {
                self.expect_operator(",")?;
            }
            let name = self.expect_name()?;
            let default = if self.skip_operator("=") { Some(self.expression()?) } else { None };
            if default.is_none() && parameters.last().is_some_and(|p| p.1.is_some()) {
                return wrong(self.line(), "non-default argument follows default argument");
            }
            parameters.push((self.symbol(&name), default));
        }
        self.expect_operator(")")?;
        Ok(parameters)
    }

    fn macro_definition(&mut self, name: &str, end: &str) -> Done<Arc<Macro>> {
        let parameters = if end == "endmacro" || self.is_operator("(") { self.signature()? } else { Vec::new() };
        self.macro_body(name, parameters, end)
    }

    fn macro_body(&mut self, name: &str, parameters: Vec<(Symbol, Option<Expr>)>, end: &str) -> Done<Arc<Macro>> {
        let outer_loops = std::mem::take(&mut self.loops);
        self.macros.push([false; 3]);
        let body = self.body(&[end]);
        let [takes_more, takes_more_named, takes_caller] = self.macros.pop().unwrap_or_default();
        self.loops = outer_loops;
        let name = self.symbol(name);
        Ok(Arc::new(Macro { name, parameters, takes_more, takes_more_named, takes_caller, body: body?.0 }))
    }

    fn call_block(&mut self) -> Done<Statement> {
        let parameters = if self.is_operator("(") { self.signature()? } else { Vec::new() };
        let call = self.expression()?;
        if !matches!(call.kind, ExprKind::Call(..)) {
            return wrong(call.line, "expected a call");
        }
        let body = self.macro_body("caller", parameters, "endcall")?;
        Ok(Statement::Call(body, call))
    }

    /// What can be assigned to. `ends`: names that end it.
    fn target(&mut self, ends: &[&str], with_attribute: bool) -> Done<Target> {
        let mut targets = Vec::new();
        let mut is_tuple = false;
        loop {
            let at_end = matches!(self.peek(), Token::BlockEnd | Token::PrintEnd)
                || self.is_operator(")")
                || ends.iter().any(|end| self.is_name(end));
            if at_end {
                break;
            }
            targets.push(self.single_target(with_attribute)?);
            if !self.skip_operator(",") {
                break;
            }
            is_tuple = true;
        }
        match targets.pop() {
            Some(target) if !is_tuple => Ok(target),
            Some(target) => {
                targets.push(target);
                Ok(Target::Tuple(targets))
            }
            None => self.fail("a name"),
        }
    }

    fn single_target(&mut self, with_attribute: bool) -> Done<Target> {
        if self.skip_operator("(") {
            let target = self.nested(|p| p.target(&[], with_attribute))?;
            self.expect_operator(")")?;
            return Ok(target);
        }
        let name = self.expect_name()?;
        if matches!(name.as_str(), "true" | "false" | "none" | "True" | "False" | "None") {
            return wrong(self.line(), format!("can't assign to '{name}'"));
        }
        let symbol = self.symbol(&name);
        if with_attribute && self.skip_operator(".") {
            let attribute = self.expect_name()?;
            self.note_use(&name);
            return Ok(Target::Attribute(symbol, self.symbol(&attribute)));
        }
        Ok(Target::Name(symbol))
    }
}
