//! Runs a template: statements and loops.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use super::arguments::Args;
use super::ast::*;
use super::budget::{fault, spend, Charge, Done, Fault, Kind};
use super::eval::Interp;
use super::text::Builder;
use super::value::{Function, LoopState, Value};

#[derive(PartialEq, Eq, Clone, Copy)]
pub enum Flow {
    Next,
    Break,
    Continue,
}

impl Interp<'_> {
    pub fn run(&mut self, body: &[Statement], scope: usize, out: &mut Builder) -> Done<Flow> {
        for statement in body {
            spend(1)?;
            let flow = match statement {
                Statement::Text(index) => {
                    self.literal(*index).clone().write(out)?;
                    Flow::Next
                }
                Statement::Print(expr) => {
                    self.eval(expr, scope)?.write(out)?;
                    Flow::Next
                }
                Statement::Break => Flow::Break,
                Statement::Continue => Flow::Continue,
                Statement::If(branches, otherwise) => self.conditional(branches, otherwise, scope, out)?,
                Statement::Scope(body) => self.scoped(scope, |s, inner| s.run(body, inner, out))?,
                Statement::With(values, body) => self.with(values, body, scope, out)?,
                Statement::For(definition) => self.for_statement(definition, scope, out)?,
                other => {
                    self.simple(other, scope, out)?;
                    Flow::Next
                }
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn scoped<T>(&mut self, parent: usize, inner: impl FnOnce(&mut Self, usize) -> Done<T>) -> Done<T> {
        let scope = self.push_scope(parent)?;
        let result = self.deeper(|s| inner(s, scope));
        self.pop_scope(scope);
        result
    }

    fn conditional(
        &mut self,
        branches: &[(Expr, Vec<Statement>)],
        otherwise: &[Statement],
        scope: usize,
        out: &mut Builder,
    ) -> Done<Flow> {
        for (test, body) in branches {
            if self.eval(test, scope)?.truth() {
                return self.deeper(|s| s.run(body, scope, out));
            }
        }
        self.deeper(|s| s.run(otherwise, scope, out))
    }

    fn with(&mut self, values: &[(Target, Expr)], body: &[Statement], scope: usize, out: &mut Builder) -> Done<Flow> {
        self.scoped(scope, |s, inner| {
            for (target, value) in values {
                let value = s.eval(value, scope)?;
                s.assign(target, value, inner)?;
            }
            s.run(body, inner, out)
        })
    }

    fn captured(&mut self, body: &[Statement], filters: &[FilterCall], scope: usize) -> Done<Value> {
        self.scoped(scope, |s, inner| {
            let mut text = Builder::default();
            s.run(body, inner, &mut text)?;
            let text = Value::Str(text.finish()?);
            filters.iter().try_fold(text, |value, filter| s.filter_call(filter, value, inner))
        })
    }

    fn simple(&mut self, statement: &Statement, scope: usize, out: &mut Builder) -> Done<()> {
        match statement {
            Statement::Set(target, value) => {
                let value = self.eval(value, scope)?;
                self.assign(target, value, scope)
            }
            Statement::SetBlock(target, filters, body) => {
                let value = self.captured(body, filters, scope)?;
                self.assign(target, value, scope)
            }
            Statement::FilterBlock(filters, body) => self.captured(body, filters, scope)?.write(out),
            Statement::Macro(definition) => {
                let function = self.macro_value(definition, scope);
                self.set(scope, definition.name, function);
                Ok(())
            }
            Statement::Call(body, call) => self.call_block(body, call, scope)?.write(out),
            Statement::Unsupported(message, line) => {
                Err(Box::new(Fault { kind: Kind::Invalid, line: *line, message: message.clone() }))
            }
            _ => fault("unexpected statement"),
        }
    }

    fn macro_value(&mut self, definition: &Arc<Macro>, scope: usize) -> Value {
        self.keep_scope(scope);
        Value::Function(Rc::new(Function::Macro { definition: definition.clone(), scope }))
    }

    fn call_block(&mut self, body: &Arc<Macro>, call: &Expr, scope: usize) -> Done<Value> {
        let ExprKind::Call(callee, arguments) = &call.kind else { return fault("expected a call") };
        let callee = self.eval(callee, scope)?;
        let mut arguments = self.arguments(arguments, scope)?;
        let caller = self.macro_value(body, scope);
        arguments.named.push(("caller".into(), caller));
        self.deeper(|s| s.call(&callee, arguments)).map_err(|mut fault| {
            if fault.line == 0 {
                fault.line = call.line;
            }
            fault
        })
    }

    pub fn assign(&mut self, target: &Target, value: Value, scope: usize) -> Done<()> {
        match target {
            Target::Name(name) => {
                self.set(scope, *name, value);
                Ok(())
            }
            Target::Attribute(object, name) => {
                let object = self.lookup(scope, *object);
                let Value::Namespace(space) = &object else {
                    return fault("cannot assign attribute on non-namespace object");
                };
                let name = self.name(*name);
                let mut values = space.values.borrow_mut();
                match values.iter_mut().find(|v| v.0.as_str() == Some(name)) {
                    Some(known) => known.1 = value,
                    None => values.push((Value::own(name)?, value)),
                }
                Ok(())
            }
            Target::Tuple(targets) => {
                let values = value.iterate()?;
                if values.len() != targets.len() {
                    return fault(format!("cannot unpack {} values into {}", values.len(), targets.len()));
                }
                targets.iter().zip(values).try_for_each(|(target, value)| self.assign(target, value, scope))
            }
        }
    }

    fn for_statement(&mut self, definition: &Arc<For>, scope: usize, out: &mut Builder) -> Done<Flow> {
        let items = self.eval(&definition.items, scope)?;
        self.deeper(|s| s.for_loop(definition, &items, scope, 0, out)).map_err(|mut fault| {
            if fault.line == 0 {
                fault.line = definition.items.line;
            }
            fault
        })?;
        Ok(Flow::Next)
    }

    fn filtered(&mut self, definition: &For, items: Vec<Value>, scope: usize) -> Done<Vec<Value>> {
        let Some(test) = &definition.test else { return Ok(items) };
        let mut kept = Vec::new();
        for item in items {
            let inner = self.push_scope(scope)?;
            self.assign(&definition.target, item.clone(), inner)?;
            let is_kept = self.eval(test, inner)?.truth();
            self.pop_scope(inner);
            if is_kept {
                kept.push(item);
            }
        }
        Ok(kept)
    }

    fn for_loop(&mut self, definition: &Arc<For>, items: &Value, scope: usize, depth0: usize, out: &mut Builder) -> Done<()> {
        // jinja2 refuses none; but templates made for tools loop over them unasked, and then no chat without tools would do.
        let items = if items.is_none() { Vec::new() } else { items.iterate()? };
        let items = self.filtered(definition, items, scope)?;
        if items.is_empty() {
            return self.scoped(scope, |s, inner| s.run(&definition.otherwise, inner, out)).map(drop);
        }
        let charge = Charge::of(items.len() * std::mem::size_of::<Value>())?;
        let state = Rc::new(LoopState {
            items,
            index0: Cell::new(0),
            depth0,
            last_changed: RefCell::new(None),
            again: definition.is_recursive.then(|| (definition.clone(), scope)),
            _charge: charge,
        });
        let loop_name = self.template.names.iter().position(|n| &**n == "loop").map(|i| i as Symbol);
        for i in 0..state.items.len() {
            spend(2)?;
            state.index0.set(i);
            let inner = self.push_scope(scope)?;
            if let Some(name) = loop_name {
                self.set(inner, name, Value::Loop(state.clone()));
            }
            self.assign(&definition.target, state.items[i].clone(), inner)?;
            let flow = self.run(&definition.body, inner, out);
            self.pop_scope(inner);
            if flow? == Flow::Break {
                break;
            }
        }
        Ok(())
    }

    /// `loop(items)` in a recursive loop.
    pub fn loop_again(&mut self, state: &LoopState, arguments: Args) -> Done<Value> {
        let items = arguments.bind("loop", ["iterable"])?.needed(0)?;
        let Some((definition, scope)) = &state.again else {
            return fault("The loop must have the 'recursive' marker to be called recursively.");
        };
        self.deeper(|s| {
            let mut out = Builder::default();
            s.for_loop(definition, &items, *scope, state.depth0 + 1, &mut out)?;
            out.finish().map(Value::Str)
        })
    }
}
