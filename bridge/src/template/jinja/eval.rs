//! Runs a template: expressions, scopes, calls.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::arguments::Args;
use super::ast::*;
use super::attributes::{attribute, item};
use super::budget::{fault, limit, spend, Done};
use super::dict::Dict;
use super::operators::{binary, negative, positive, slice};
use super::text::Builder;
use super::value::{Function, Items, Namespace, Value};

/// Evaluations in each other: macros that call themselves end here.
const MAX_DEPTH: u32 = 3000;
const MAX_SCOPES: usize = 1 << 16;

#[derive(Default)]
struct Scope {
    parent: usize,
    values: Vec<(Symbol, Value)>,
    is_kept: bool, // a macro remembers it
}

pub const ROOT: usize = 0;

pub struct Interp<'t> {
    pub template: &'t Template,
    literals: Vec<Value>,
    variables: HashMap<&'t str, Value>,
    scopes: Vec<Scope>,
    unused: Vec<usize>,
    namespaces: Vec<Rc<Namespace>>,
    depth: u32,
}

impl<'t> Interp<'t> {
    /// `variables`: what the template is given, and its functions.
    pub fn new(template: &'t Template, variables: HashMap<String, Value>) -> Done<Interp<'t>> {
        let literals = template.literals.iter().map(|literal| {
            Ok(match literal {
                Literal::Int(i) => Value::Int(*i),
                Literal::Float(f) => Value::Float(*f),
                Literal::Str(s) => Value::own(s)?,
            })
        });
        let known = template.names.iter().filter_map(|name| Some((&**name, variables.get(&**name)?.clone())));
        Ok(Interp {
            template,
            literals: literals.collect::<Done<_>>()?,
            variables: known.collect(),
            scopes: vec![Scope::default()],
            unused: Vec::new(),
            namespaces: Vec::new(),
            depth: 0,
        })
    }

    pub fn name(&self, symbol: Symbol) -> &'t str {
        &self.template.names[symbol as usize]
    }

    pub fn literal(&self, index: u32) -> &Value {
        &self.literals[index as usize]
    }

    pub fn push_scope(&mut self, parent: usize) -> Done<usize> {
        if let Some(scope) = self.unused.pop() {
            self.scopes[scope].parent = parent;
            return Ok(scope);
        }
        if self.scopes.len() >= MAX_SCOPES {
            return limit(format!("template has more than {MAX_SCOPES} scopes"));
        }
        self.scopes.push(Scope { parent, ..Scope::default() });
        Ok(self.scopes.len() - 1)
    }

    pub fn pop_scope(&mut self, scope: usize) {
        if !self.scopes[scope].is_kept {
            self.scopes[scope].values.clear();
            self.unused.push(scope);
        }
    }

    /// A macro that is defined in the scope can read it as long as the template runs.
    pub fn keep_scope(&mut self, mut scope: usize) {
        while !self.scopes[scope].is_kept {
            self.scopes[scope].is_kept = true;
            scope = self.scopes[scope].parent;
        }
    }

    pub fn set(&mut self, scope: usize, name: Symbol, value: Value) {
        let values = &mut self.scopes[scope].values;
        match values.iter_mut().find(|v| v.0 == name) {
            Some(known) => known.1 = value,
            None => values.push((name, value)),
        }
    }

    pub fn lookup(&self, mut scope: usize, name: Symbol) -> Value {
        loop {
            if let Some(known) = self.scopes[scope].values.iter().find(|v| v.0 == name) {
                return known.1.clone();
            }
            if scope == ROOT {
                break;
            }
            scope = self.scopes[scope].parent;
        }
        let name = self.name(name);
        match self.variables.get(name) {
            Some(value) => value.clone(),
            None => Value::undefined(&format!("'{name}' is undefined")),
        }
    }

    /// A namespace lives as long as the template runs: it may hold itself.
    pub fn new_namespace(&mut self, values: Vec<(Value, Value)>) -> Value {
        let space = Rc::new(Namespace { values: values.into() });
        self.namespaces.push(space.clone());
        Value::Namespace(space)
    }

    pub fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Done<T>) -> Done<T> {
        if self.depth >= MAX_DEPTH {
            return limit(format!("template nests more than {MAX_DEPTH} evaluations"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    pub fn eval(&mut self, expr: &Expr, scope: usize) -> Done<Value> {
        spend(1)?;
        match &expr.kind {
            ExprKind::Literal(index) => Ok(self.literals[*index as usize].clone()),
            ExprKind::None => Ok(Value::None),
            ExprKind::Bool(b) => Ok(Value::Bool(*b)),
            ExprKind::Name(name) => Ok(self.lookup(scope, *name)),
            kind => self.deeper(|s| s.compound(kind, scope)).map_err(|mut fault| {
                if fault.line == 0 {
                    fault.line = expr.line;
                }
                fault
            }),
        }
    }

    fn compound(&mut self, kind: &ExprKind, scope: usize) -> Done<Value> {
        match kind {
            ExprKind::Attribute(object, name) => {
                let object = self.eval(object, scope)?;
                attribute(&object, self.name(*name))
            }
            ExprKind::Item(object, key) => {
                let object = self.eval(object, scope)?;
                let key = self.eval(key, scope)?;
                item(&object, &key)
            }
            ExprKind::Slice(object, bounds) => self.slice(object, bounds, scope),
            ExprKind::Call(callee, arguments) => {
                let callee = self.eval(callee, scope)?;
                let arguments = self.arguments(arguments, scope)?;
                self.call(&callee, arguments)
            }
            ExprKind::Filter(value, call) => {
                let value = self.eval(value, scope)?;
                self.filter_call(call, value, scope)
            }
            ExprKind::Test(value, call) => {
                let value = self.eval(value, scope)?;
                let arguments = self.arguments(&call.arguments, scope)?;
                self.test(self.name(call.name), value, arguments).map(Value::Bool)
            }
            ExprKind::Negative(value) => negative(&self.eval(value, scope)?),
            ExprKind::Positive(value) => positive(&self.eval(value, scope)?),
            ExprKind::Not(value) => Ok(Value::Bool(!self.eval(value, scope)?.truth())),
            ExprKind::Binary(operator, sides) => {
                let left = self.eval(&sides.0, scope)?;
                let right = self.eval(&sides.1, scope)?;
                binary(*operator, &left, &right)
            }
            ExprKind::And(sides) => {
                let left = self.eval(&sides.0, scope)?;
                if left.truth() {
                    self.eval(&sides.1, scope)
                } else {
                    Ok(left)
                }
            }
            ExprKind::Or(sides) => {
                let left = self.eval(&sides.0, scope)?;
                if left.truth() {
                    Ok(left)
                } else {
                    self.eval(&sides.1, scope)
                }
            }
            ExprKind::Condition(sides, otherwise) => {
                if self.eval(&sides.0, scope)?.truth() {
                    return self.eval(&sides.1, scope);
                }
                match otherwise {
                    Some(otherwise) => self.eval(otherwise, scope),
                    None => Ok(Value::undefined("the inline if-expression evaluated to false and no else section was defined")),
                }
            }
            ExprKind::Concat(parts) => self.concat(parts, scope),
            ExprKind::Compare(left, links) => self.compare(left, links, scope),
            ExprKind::List(items) => self.all(items, scope).and_then(Value::list),
            ExprKind::Tuple(items) => self.all(items, scope).and_then(Value::tuple),
            ExprKind::Dict(items) => self.dict(items, scope),
            _ => fault("unexpected expression"),
        }
    }

    fn all(&mut self, items: &[Expr], scope: usize) -> Done<Vec<Value>> {
        items.iter().map(|item| self.eval(item, scope)).collect()
    }

    fn dict(&mut self, items: &[(Expr, Expr)], scope: usize) -> Done<Value> {
        let mut dict = Dict::empty();
        for (key, value) in items {
            let key = self.eval(key, scope)?;
            dict.insert(key, self.eval(value, scope)?)?;
        }
        Ok(Value::Dict(Rc::new(dict)))
    }

    fn slice(&mut self, object: &Expr, bounds: &[Option<Expr>; 3], scope: usize) -> Done<Value> {
        let object = self.eval(object, scope)?;
        let mut values = [const { Value::None }; 3];
        for (value, bound) in values.iter_mut().zip(bounds) {
            if let Some(bound) = bound {
                *value = self.eval(bound, scope)?;
            }
        }
        slice(&object, &values)
    }

    fn concat(&mut self, parts: &[Expr], scope: usize) -> Done<Value> {
        let mut out = Builder::default();
        for part in parts {
            self.eval(part, scope)?.write(&mut out)?;
        }
        out.finish().map(Value::Str)
    }

    fn compare(&mut self, left: &Expr, links: &[(Comparison, Expr)], scope: usize) -> Done<Value> {
        let mut left = self.eval(left, scope)?;
        for (comparison, right) in links {
            let right = self.eval(right, scope)?;
            if !super::conditions::compared(*comparison, &left, &right)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    pub fn arguments(&mut self, arguments: &Arguments, scope: usize) -> Done<Args> {
        let mut args = Args::of(self.all(&arguments.positional, scope)?);
        for (name, value) in &arguments.named {
            args.named.push((name.clone(), self.eval(value, scope)?));
        }
        if let Some(more) = &arguments.more_positional {
            args.positional.extend(self.eval(more, scope)?.iterate()?);
        }
        if let Some(more) = &arguments.more_named {
            let more = self.eval(more, scope)?;
            let Value::Dict(dict) = &more else {
                return fault(format!("argument after ** must be a mapping, not {}", more.type_name()));
            };
            for (key, value) in dict.entries() {
                let Some(name) = key.as_str() else { return fault("keywords must be strings") };
                args.named.push((name.into(), value.clone()));
            }
        }
        Ok(args)
    }

    pub fn filter_call(&mut self, call: &FilterCall, value: Value, scope: usize) -> Done<Value> {
        let arguments = self.arguments(&call.arguments, scope)?;
        self.filter(self.name(call.name), value, arguments).map_err(|mut fault| {
            if fault.line == 0 {
                fault.line = call.line;
            }
            fault
        })
    }

    pub fn call(&mut self, callee: &Value, arguments: Args) -> Done<Value> {
        match callee {
            Value::Function(function) => match &**function {
                Function::Macro { definition, scope } => self.call_macro(&definition.clone(), *scope, arguments),
                Function::Method { receiver, name } => super::methods::call(self, receiver, name, arguments),
                Function::Global(name) => super::globals::call(self, name, arguments),
                Function::Cycler { items, at } => {
                    let value = items.get(at.get()).cloned().unwrap_or(Value::None);
                    at.set((at.get() + 1) % items.len().max(1));
                    Ok(value)
                }
                Function::Joiner { separator, is_used } => {
                    if is_used.replace(true) {
                        Ok(Value::Str(separator.clone()))
                    } else {
                        Value::own("")
                    }
                }
            },
            Value::Loop(state) => self.loop_again(&state.clone(), arguments),
            other => {
                other.check_defined()?;
                fault(format!("'{}' object is not callable", other.type_name()))
            }
        }
    }

    fn call_macro(&mut self, definition: &Arc<Macro>, parent: usize, mut arguments: Args) -> Done<Value> {
        let scope = self.push_scope(parent)?;
        let result = self.deeper(|s| {
            s.bind_parameters(definition, scope, &mut arguments)?;
            let mut out = Builder::default();
            s.run(&definition.body, scope, &mut out)?;
            out.finish().map(Value::Str)
        });
        self.pop_scope(scope);
        result
    }

    fn bind_parameters(&mut self, definition: &Macro, scope: usize, arguments: &mut Args) -> Done<()> {
        let name = self.name(definition.name);
        let named = &mut arguments.named;
        let mut take = |wanted: &str| named.iter().position(|n| &*n.0 == wanted).map(|i| named.swap_remove(i).1);
        let mut given = std::mem::take(&mut arguments.positional).into_iter();
        let mut bound = Vec::new();
        for (parameter, default) in &definition.parameters {
            let parameter_name = &*self.template.names[*parameter as usize];
            let by_name = take(parameter_name);
            let by_place = given.next();
            if by_name.is_some() && by_place.is_some() {
                return fault(format!("macro '{name}' got multiple values for argument '{parameter_name}'"));
            }
            bound.push((*parameter, default, by_place.or(by_name)));
        }
        let caller = take("caller");
        for (parameter, default, value) in bound {
            let value = match (value, default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.eval(default, scope)?,
                (None, None) => Value::undefined(&format!("parameter '{}' was not provided", self.name(parameter))),
            };
            self.set(scope, parameter, value);
        }
        self.bind_more(definition, scope, given.collect(), std::mem::take(&mut arguments.named), caller)
    }

    fn bind_more(
        &mut self,
        definition: &Macro,
        scope: usize,
        more: Vec<Value>,
        more_named: Vec<(Arc<str>, Value)>,
        caller: Option<Value>,
    ) -> Done<()> {
        let name = self.name(definition.name);
        let symbol_of = |wanted: &str| self.template.names.iter().position(|n| &**n == wanted).map(|i| i as Symbol);
        let (varargs, kwargs, caller_name) = (symbol_of("varargs"), symbol_of("kwargs"), symbol_of("caller"));
        if !more.is_empty() && !definition.takes_more {
            return fault(format!("macro '{name}' takes not more than {} argument(s)", definition.parameters.len()));
        }
        if let Some((unknown, _)) = more_named.first().filter(|_| !definition.takes_more_named) {
            return fault(format!("macro '{name}' takes no keyword argument '{unknown}'"));
        }
        if let Some(symbol) = varargs.filter(|_| definition.takes_more) {
            self.set(scope, symbol, Value::Tuple(Items::new(more)?));
        }
        if let Some(symbol) = kwargs.filter(|_| definition.takes_more_named) {
            let mut pairs = Vec::new();
            for (key, value) in more_named {
                pairs.push((Value::own(&key)?, value));
            }
            self.set(scope, symbol, Dict::of(pairs)?);
        }
        match (caller, caller_name.filter(|_| definition.takes_caller)) {
            (Some(caller), Some(symbol)) => self.set(scope, symbol, caller),
            (Some(_), None) => {
                return fault(format!("macro '{name}' was invoked with two values for the special caller argument"))
            }
            (None, Some(symbol)) => self.set(scope, symbol, Value::undefined("No caller defined")),
            (None, None) => {}
        }
        Ok(())
    }
}

impl Drop for Interp<'_> {
    fn drop(&mut self) {
        for space in &self.namespaces {
            let values = std::mem::take(&mut *space.values.borrow_mut());
            drop(values);
        }
    }
}
