//! Jinja's grammar: expressions.

use std::sync::Arc;

use super::ast::*;
use super::budget::Done;
use super::lexer::{wrong, Token};
use super::parser::{Parser, MAX_CHAIN};

fn at(line: u32, kind: ExprKind) -> Expr {
    Expr::new(line, kind)
}

/// Counts the links of a chain: its tree is as deep.
struct Chain(u32);

impl Chain {
    fn link(&mut self, line: u32) -> Done<()> {
        self.0 += 1;
        if self.0 > MAX_CHAIN {
            return wrong(line, format!("expression with more than {MAX_CHAIN} links"));
        }
        Ok(())
    }
}

impl Parser {
    pub fn expression(&mut self) -> Done<Expr> {
        let expr = self.nested(Parser::condition)?;
        self.check_depth(expr)
    }

    fn check_depth(&self, expr: Expr) -> Done<Expr> {
        if expr.depth > MAX_CHAIN {
            return wrong(expr.line, format!("expression nested deeper than {MAX_CHAIN}"));
        }
        Ok(expr)
    }

    fn condition(&mut self) -> Done<Expr> {
        let line = self.line();
        let mut chain = Chain(0);
        let mut expr = self.disjunction()?;
        while self.skip_name("if") {
            chain.link(line)?;
            let test = self.disjunction()?;
            let otherwise = if self.skip_name("else") { Some(Box::new(self.expression()?)) } else { None };
            expr = at(line, ExprKind::Condition(Box::new((test, expr)), otherwise));
        }
        Ok(expr)
    }

    fn disjunction(&mut self) -> Done<Expr> {
        let mut chain = Chain(0);
        let mut left = self.conjunction()?;
        while self.is_name("or") {
            let line = self.line();
            chain.link(line)?;
            self.advance();
            left = at(line, ExprKind::Or(Box::new((left, self.conjunction()?))));
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Done<Expr> {
        let mut chain = Chain(0);
        let mut left = self.negation()?;
        while self.is_name("and") {
            let line = self.line();
            chain.link(line)?;
            self.advance();
            left = at(line, ExprKind::And(Box::new((left, self.negation()?))));
        }
        Ok(left)
    }

    fn negation(&mut self) -> Done<Expr> {
        if self.is_name("not") {
            let line = self.line();
            self.advance();
            let inner = self.nested(Parser::negation)?;
            return Ok(at(line, ExprKind::Not(Box::new(inner))));
        }
        self.comparison()
    }

    fn comparison_operator(&mut self) -> Option<Comparison> {
        let found = match self.peek() {
            Token::Operator("==") => Comparison::Equal,
            Token::Operator("!=") => Comparison::NotEqual,
            Token::Operator("<") => Comparison::Less,
            Token::Operator("<=") => Comparison::LessEqual,
            Token::Operator(">") => Comparison::Greater,
            Token::Operator(">=") => Comparison::GreaterEqual,
            Token::Name(name) if name == "in" => Comparison::In,
            Token::Name(name) if name == "not" && matches!(self.peek_second(), Token::Name(n) if n == "in") => {
                self.advance();
                Comparison::NotIn
            }
            _ => return None,
        };
        self.advance();
        Some(found)
    }

    fn comparison(&mut self) -> Done<Expr> {
        let line = self.line();
        let left = self.sum()?;
        let mut links = Vec::new();
        while let Some(operator) = self.comparison_operator() {
            links.push((operator, self.sum()?));
        }
        if links.is_empty() {
            return Ok(left);
        }
        Ok(at(line, ExprKind::Compare(Box::new(left), links)))
    }

    fn binary(&mut self, operators: &[(&str, Operator)], operand: fn(&mut Parser) -> Done<Expr>) -> Done<Expr> {
        let mut chain = Chain(0);
        let mut left = operand(self)?;
        while let Some((_, operator)) = operators.iter().find(|(text, _)| self.is_operator(text)) {
            let line = self.line();
            chain.link(line)?;
            self.advance();
            left = at(line, ExprKind::Binary(*operator, Box::new((left, operand(self)?))));
        }
        Ok(left)
    }

    fn sum(&mut self) -> Done<Expr> {
        self.binary(&[("+", Operator::Add), ("-", Operator::Subtract)], Parser::concatenation)
    }

    fn concatenation(&mut self) -> Done<Expr> {
        let line = self.line();
        let first = self.product()?;
        if !self.is_operator("~") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.skip_operator("~") {
            parts.push(self.product()?);
        }
        Ok(at(line, ExprKind::Concat(parts)))
    }

    fn product(&mut self) -> Done<Expr> {
        let operators =
            [("*", Operator::Multiply), ("/", Operator::Divide), ("//", Operator::FloorDivide), ("%", Operator::Modulo)];
        self.binary(&operators, Parser::power)
    }

    fn power(&mut self) -> Done<Expr> {
        self.binary(&[("**", Operator::Power)], |p| p.unary(true))
    }

    fn unary(&mut self, with_filter: bool) -> Done<Expr> {
        let line = self.line();
        let mut expr = if self.skip_operator("-") {
            let inner = self.nested(|p| p.unary(false))?;
            at(line, ExprKind::Negative(Box::new(inner)))
        } else if self.skip_operator("+") {
            let inner = self.nested(|p| p.unary(false))?;
            at(line, ExprKind::Positive(Box::new(inner)))
        } else {
            self.primary()?
        };
        expr = self.postfix(expr)?;
        if with_filter {
            expr = self.filters(expr)?;
        }
        Ok(expr)
    }

    fn primary(&mut self) -> Done<Expr> {
        let line = self.line();
        let token = self.peek().clone();
        let kind = match token {
            Token::Name(name) => {
                self.advance();
                match name.as_str() {
                    "true" | "True" => ExprKind::Bool(true),
                    "false" | "False" => ExprKind::Bool(false),
                    "none" | "None" => ExprKind::None,
                    _ => {
                        self.note_use(&name);
                        ExprKind::Name(self.symbol(&name))
                    }
                }
            }
            Token::Str(mut text) => {
                self.advance();
                while let Token::Str(more) = self.peek().clone() {
                    text.push_str(&more);
                    self.advance();
                }
                ExprKind::Literal(self.literal(Literal::Str(text)))
            }
            Token::Int(value) => {
                self.advance();
                ExprKind::Literal(self.literal(Literal::Int(value)))
            }
            Token::Float(value) => {
                self.advance();
                ExprKind::Literal(self.literal(Literal::Float(value)))
            }
            Token::Operator("(") => {
                self.advance();
                let inner = self.nested(|p| p.parenthesized())?;
                self.expect_operator(")")?;
                return Ok(inner);
            }
            Token::Operator("[") => ExprKind::List(self.list()?),
            Token::Operator("{") => ExprKind::Dict(self.dict()?),
            _ => return self.fail("an expression"),
        };
        Ok(at(line, kind))
    }

    fn parenthesized(&mut self) -> Done<Expr> {
        if self.is_operator(")") {
            return Ok(at(self.line(), ExprKind::Tuple(Vec::new())));
        }
        self.tuple(true, &[])
    }

    fn list(&mut self) -> Done<Vec<Expr>> {
        self.expect_operator("[")?;
        let mut items = Vec::new();
        while !self.is_operator("]") {
            items.push(self.expression()?);
            if !self.is_operator("]") {
                self.expect_operator(",")?;
            }
        }
        self.expect_operator("]")?;
        Ok(items)
    }

    fn dict(&mut self) -> Done<Vec<(Expr, Expr)>> {
        self.expect_operator("{")?;
        let mut items = Vec::new();
        while !self.is_operator("}") {
            let key = self.expression()?;
            self.expect_operator(":")?;
            items.push((key, self.expression()?));
            if !self.is_operator("}") {
                self.expect_operator(",")?;
            }
        }
        self.expect_operator("}")?;
        Ok(items)
    }

    fn tuple_ends(&self, ends: &[&str]) -> bool {
        matches!(self.peek(), Token::PrintEnd | Token::BlockEnd)
            || self.is_operator(")")
            || ends.iter().any(|end| self.is_name(end))
    }

    /// One expression, or several with commas between them.
    pub fn tuple(&mut self, with_condition: bool, ends: &[&str]) -> Done<Expr> {
        let line = self.line();
        let mut items = Vec::new();
        let mut is_tuple = false;
        while !self.tuple_ends(ends) {
            let item = if with_condition { self.expression()? } else { self.nested(Parser::disjunction)? };
            items.push(self.check_depth(item)?);
            if !self.skip_operator(",") {
                break;
            }
            is_tuple = true;
        }
        if is_tuple {
            return Ok(at(line, ExprKind::Tuple(items)));
        }
        match items.pop() {
            Some(item) => Ok(item),
            None => self.fail("an expression"),
        }
    }

    fn postfix(&mut self, mut expr: Expr) -> Done<Expr> {
        let mut chain = Chain(0);
        loop {
            let line = self.line();
            chain.link(line)?;
            if self.skip_operator(".") {
                expr = self.attribute(expr, line)?;
            } else if self.skip_operator("[") {
                expr = self.nested(|p| p.subscript(expr, line))?;
            } else if self.is_operator("(") {
                let arguments = self.arguments()?;
                expr = at(line, ExprKind::Call(Box::new(expr), Box::new(arguments)));
            } else {
                return Ok(expr);
            }
        }
    }

    fn attribute(&mut self, expr: Expr, line: u32) -> Done<Expr> {
        if let Token::Int(index) = self.peek() {
            let index = *index;
            self.advance();
            let key = at(line, ExprKind::Literal(self.literal(Literal::Int(index))));
            return Ok(at(line, ExprKind::Item(Box::new(expr), Box::new(key))));
        }
        let name = self.expect_name()?;
        Ok(at(line, ExprKind::Attribute(Box::new(expr), self.symbol(&name))))
    }

    fn subscript(&mut self, expr: Expr, line: u32) -> Done<Expr> {
        let mut bounds = [None, None, None];
        if !self.is_operator(":") {
            let key = self.tuple_in_brackets(line)?;
            if self.skip_operator("]") {
                return Ok(at(line, ExprKind::Item(Box::new(expr), Box::new(key))));
            }
            bounds[0] = Some(key);
        }
        for bound in &mut bounds[1..] {
            if self.skip_operator(":") && !self.is_operator(":") && !self.is_operator("]") {
                *bound = Some(self.expression()?);
            }
        }
        self.expect_operator("]")?;
        Ok(at(line, ExprKind::Slice(Box::new(expr), Box::new(bounds))))
    }

    fn tuple_in_brackets(&mut self, line: u32) -> Done<Expr> {
        let first = self.expression()?;
        if !self.is_operator(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.skip_operator(",") {
            items.push(self.expression()?);
        }
        Ok(at(line, ExprKind::Tuple(items)))
    }

    fn arguments(&mut self) -> Done<Arguments> {
        self.nested(Parser::arguments_inside)
    }

    fn arguments_inside(&mut self) -> Done<Arguments> {
        let line = self.line();
        let mut result = Arguments::default();
        self.expect_operator("(")?;
        while !self.is_operator(")") {
            let is_named = matches!(self.peek(), Token::Name(_)) && matches!(self.peek_second(), Token::Operator("="));
            if self.skip_operator("**") {
                result.more_named = Some(self.expression()?);
            } else if self.skip_operator("*") {
                result.more_positional = Some(self.expression()?);
            } else if is_named {
                let name: Arc<str> = self.expect_name()?.into();
                self.advance();
                result.named.push((name, self.expression()?));
            } else if !result.named.is_empty() || result.more_positional.is_some() || result.more_named.is_some() {
                return wrong(line, "invalid syntax for function call expression");
            } else {
                result.positional.push(self.expression()?);
            }
            if !self.is_operator(")") {
                self.expect_operator(",")?;
            }
        }
        self.expect_operator(")")?;
        Ok(result)
    }

    fn dotted_name(&mut self) -> Done<Symbol> {
        let mut name = self.expect_name()?;
        while self.skip_operator(".") {
            name.push('.');
            name.push_str(&self.expect_name()?);
        }
        Ok(self.symbol(&name))
    }

    pub fn filter_call(&mut self) -> Done<FilterCall> {
        let line = self.line();
        let name = self.dotted_name()?;
        let arguments = if self.is_operator("(") { self.arguments()? } else { Arguments::default() };
        Ok(FilterCall { name, arguments: Box::new(arguments), line })
    }

    fn filters(&mut self, mut expr: Expr) -> Done<Expr> {
        let mut chain = Chain(0);
        loop {
            let line = self.line();
            chain.link(line)?;
            if self.skip_operator("|") {
                let call = self.filter_call()?;
                expr = at(line, ExprKind::Filter(Box::new(expr), call));
            } else if self.skip_name("is") {
                expr = self.test(expr, line)?;
            } else if self.is_operator("(") {
                let arguments = self.arguments()?;
                expr = at(line, ExprKind::Call(Box::new(expr), Box::new(arguments)));
            } else {
                return Ok(expr);
            }
        }
    }

    fn test(&mut self, expr: Expr, line: u32) -> Done<Expr> {
        let is_negated = self.skip_name("not");
        let name = self.dotted_name()?;
        let takes_one = match self.peek() {
            Token::Name(name) => !matches!(name.as_str(), "else" | "or" | "and"),
            Token::Str(_) | Token::Int(_) | Token::Float(_) | Token::Operator("[" | "{") => true,
            _ => false,
        };
        let mut arguments = Arguments::default();
        if self.is_operator("(") {
            arguments = self.arguments()?;
        } else if takes_one {
            if self.is_name("is") {
                return wrong(line, "You cannot chain multiple tests with is");
            }
            let argument = self.nested(Parser::primary)?;
            arguments.positional.push(self.postfix(argument)?);
        }
        let test = at(line, ExprKind::Test(Box::new(expr), FilterCall { name, arguments: Box::new(arguments), line }));
        Ok(if is_negated { at(line, ExprKind::Not(Box::new(test))) } else { test })
    }
}
