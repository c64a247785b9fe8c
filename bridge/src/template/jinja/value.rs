//! What a template's variables can hold, with the equality, order, truth and hashing of CPython.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use super::ast::{For, Macro};
use super::budget::{fault, limit, spend, Charge, Done};
use super::dict::{dicts_equal, hash_text, same_keys, Dict};
use super::text::Str;

/// Lists in lists: deeper ones are refused when they are built, so that whatever walks them may recurse.
const MAX_DEPTH: u32 = 400;
pub const ITEM_BYTES: usize = std::mem::size_of::<Value>();

#[derive(Clone)]
pub enum Value {
    Undefined(Rc<str>), // what is said where it is used
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Str),
    List(Rc<Items>),
    Tuple(Rc<Items>),
    Dict(Rc<Dict>),
    View(Rc<Dict>, View),
    Range(Range),
    Stream(Rc<Stream>),
    Namespace(Rc<Namespace>),
    Loop(Rc<LoopState>),
    Function(Rc<Function>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum View {
    Keys,
    Values,
    Items,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub start: i64,
    pub stop: i64,
    pub step: i64,
}

impl Range {
    pub fn len(&self) -> usize {
        let (low, high) = if self.step > 0 { (self.start, self.stop) } else { (self.stop, self.start) };
        if low >= high {
            return 0;
        }
        (high.abs_diff(low) - 1) as usize / self.step.unsigned_abs() as usize + 1
    }

    pub fn at(&self, i: usize) -> Value {
        Value::Int(i128::from(self.start) + i as i128 * i128::from(self.step))
    }
}

pub struct Items {
    pub items: Vec<Value>,
    pub names: &'static [&'static str], // of a named tuple
    depth: u32,
    _charge: Charge,
}

pub fn deeper(depth: u32) -> Done<u32> {
    if depth >= MAX_DEPTH {
        return limit(format!("value is nested deeper than {MAX_DEPTH}"));
    }
    Ok(depth + 1)
}

impl Items {
    pub fn new(items: Vec<Value>) -> Done<Rc<Items>> {
        Items::named(items, &[])
    }

    pub fn named(items: Vec<Value>, names: &'static [&'static str]) -> Done<Rc<Items>> {
        spend(1 + items.len() as u64 / 2)?;
        let depth = deeper(items.iter().map(Value::depth).max().unwrap_or(0))?;
        let charge = Charge::of(items.capacity() * ITEM_BYTES + 64)?;
        Ok(Rc::new(Items { items, names, depth, _charge: charge }))
    }
}

/// What a filter such as `map` gives: it can be walked once.
pub struct Stream {
    rest: RefCell<std::vec::IntoIter<Value>>,
    depth: u32,
    pub what: &'static str,
    _charge: Charge,
}

impl Stream {
    pub fn value(items: Vec<Value>, what: &'static str) -> Done<Value> {
        let list = Items::new(items)?;
        let depth = list.depth;
        let list = Rc::try_unwrap(list).unwrap_or_else(|_| unreachable!("it was just made"));
        let rest = RefCell::new(list.items.into_iter());
        Ok(Value::Stream(Rc::new(Stream { rest, depth, what, _charge: list._charge })))
    }

    pub fn next(&self) -> Option<Value> {
        self.rest.borrow_mut().next()
    }

    fn take(&self) -> Vec<Value> {
        self.rest.borrow_mut().by_ref().collect()
    }
}

pub struct Namespace {
    pub values: RefCell<Vec<(Value, Value)>>,
}

pub struct LoopState {
    pub items: Vec<Value>,
    pub index0: Cell<usize>,
    pub depth0: usize,
    pub last_changed: RefCell<Option<Vec<Value>>>,
    pub again: Option<(Arc<For>, usize)>, // of a recursive loop, with its scope
    pub _charge: Charge,
}

pub enum Function {
    Macro { definition: Arc<Macro>, scope: usize },
    Method { receiver: Value, name: &'static str },
    Global(&'static str),
    Cycler { items: Vec<Value>, at: Cell<usize> },
    Joiner { separator: Str, is_used: Cell<bool> },
}

fn whole(f: f64) -> Option<i128> {
    (f.fract() == 0.0 && f.abs() < 1e38).then_some(f as i128)
}

impl Value {
    pub fn own(text: &str) -> Done<Value> {
        Str::own(text).map(Value::Str)
    }

    pub fn list(items: Vec<Value>) -> Done<Value> {
        Items::new(items).map(Value::List)
    }

    pub fn tuple(items: Vec<Value>) -> Done<Value> {
        Items::new(items).map(Value::Tuple)
    }

    pub fn undefined(words: &str) -> Value {
        Value::Undefined(words.into())
    }

    pub fn global(name: &'static str) -> Value {
        Value::Function(Rc::new(Function::Global(name)))
    }

    pub fn depth(&self) -> u32 {
        match self {
            Value::List(items) | Value::Tuple(items) => items.depth,
            Value::Dict(dict) | Value::View(dict, _) => dict.depth(),
            Value::Stream(stream) => stream.depth,
            Value::Function(function) => match &**function {
                Function::Method { receiver, .. } => receiver.depth() + 1,
                Function::Cycler { items, .. } => items.iter().map(Value::depth).max().unwrap_or(0) + 1,
                _ => 0,
            },
            _ => 0,
        }
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Value::Undefined(_))
    }

    pub fn is_none(&self) -> bool {
        matches!(self, Value::None)
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(s) => Some(s.as_str()),
            _ => None,
        }
    }

    /// int and bool.
    pub fn as_int(&self) -> Option<i128> {
        match self {
            Value::Int(i) => Some(*i),
            Value::Bool(b) => Some(i128::from(*b)),
            _ => None,
        }
    }

    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Float(f) => Some(*f),
            other => other.as_int().map(|i| i as f64),
        }
    }

    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Undefined(_) => "Undefined",
            Value::None => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "str",
            Value::List(_) => "list",
            Value::Tuple(_) => "tuple",
            Value::Dict(_) => "dict",
            Value::View(_, View::Keys) => "dict_keys",
            Value::View(_, View::Values) => "dict_values",
            Value::View(_, View::Items) => "dict_items",
            Value::Range(_) => "range",
            Value::Stream(stream) => stream.what,
            Value::Namespace(_) => "Namespace",
            Value::Loop(_) => "LoopContext",
            Value::Function(_) => "function",
        }
    }

    /// Undefined values give their own words wherever they are used.
    pub fn check_defined(&self) -> Done<()> {
        match self {
            Value::Undefined(words) => fault(&**words),
            _ => Ok(()),
        }
    }

    pub fn truth(&self) -> bool {
        match self {
            Value::Undefined(_) | Value::None => false,
            Value::Bool(b) => *b,
            Value::Int(i) => *i != 0,
            Value::Float(f) => *f != 0.0,
            Value::Str(s) => !s.as_str().is_empty(),
            _ => self.len().is_none_or(|n| n > 0),
        }
    }

    /// None: it has no length.
    pub fn len(&self) -> Option<usize> {
        Some(match self {
            Value::Undefined(_) => 0,
            Value::Str(s) => s.as_str().chars().count(),
            Value::List(items) | Value::Tuple(items) => items.items.len(),
            Value::Dict(dict) | Value::View(dict, _) => dict.entries().len(),
            Value::Range(range) => range.len(),
            Value::Loop(state) => state.items.len(),
            _ => return None,
        })
    }

    pub fn is_iterable(&self) -> bool {
        self.len().is_some() || matches!(self, Value::Stream(_))
    }

    pub fn iterate(&self) -> Done<Vec<Value>> {
        spend(1 + self.len().unwrap_or(0) as u64 / 4)?;
        Ok(match self {
            Value::Undefined(_) => Vec::new(),
            Value::Str(s) => {
                let chars = s.as_str().char_indices();
                chars.map(|(at, c)| s.slice(at, at + c.len_utf8()).map(Value::Str)).collect::<Done<_>>()?
            }
            Value::List(items) | Value::Tuple(items) => {
                super::budget::room(items.items.len() * ITEM_BYTES)?;
                items.items.clone()
            }
            Value::Dict(dict) | Value::View(dict, View::Keys) => dict.entries().iter().map(|e| e.0.clone()).collect(),
            Value::View(dict, View::Values) => dict.entries().iter().map(|e| e.1.clone()).collect(),
            Value::View(dict, View::Items) => {
                let pairs = dict.entries().iter();
                pairs.map(|e| Value::tuple(vec![e.0.clone(), e.1.clone()])).collect::<Done<_>>()?
            }
            Value::Range(range) => (0..range.len()).map(|i| range.at(i)).collect(),
            Value::Stream(stream) => stream.take(),
            other => return fault(format!("'{}' object is not iterable", other.type_name())),
        })
    }

    pub fn check_hashable(&self) -> Done<()> {
        match self {
            Value::List(_) | Value::Dict(_) | Value::View(..) => fault(format!("unhashable type: '{}'", self.type_name())),
            Value::Tuple(items) => items.items.iter().try_for_each(Value::check_hashable),
            _ => Ok(()),
        }
    }

    pub fn hash_into(&self, hasher: &mut impl Hasher) -> Done<()> {
        self.check_hashable()?;
        spend(1)?;
        match self {
            Value::Str(s) => hash_text(s.as_str(), hasher),
            Value::Bool(_) | Value::Int(_) => (2u8, self.as_int()).hash(hasher),
            Value::Float(f) => match whole(*f) {
                Some(i) => (2u8, Some(i)).hash(hasher),
                None => (3u8, f.to_bits()).hash(hasher),
            },
            Value::Tuple(items) => {
                (4u8, items.items.len()).hash(hasher);
                items.items.iter().try_for_each(|item| item.hash_into(hasher))?;
            }
            Value::Range(r) => (5u8, r.len()).hash(hasher),
            other => (6u8, other.type_name()).hash(hasher),
        }
        Ok(())
    }

    /// `==`
    pub fn equals(&self, other: &Value) -> Done<bool> {
        spend(1)?;
        Ok(match (self, other) {
            (Value::Undefined(_), Value::Undefined(_)) | (Value::None, Value::None) => true,
            (Value::Str(a), Value::Str(b)) => a.as_str() == b.as_str(),
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Float(a), b) | (b, Value::Float(a)) => b.as_int().is_some_and(|b| whole(*a) == Some(b)),
            (Value::Bool(_) | Value::Int(_), Value::Bool(_) | Value::Int(_)) => self.as_int() == other.as_int(),
            (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
                if Rc::ptr_eq(a, b) {
                    return Ok(true);
                }
                a.items.len() == b.items.len() && all_equal(&a.items, &b.items)?
            }
            (Value::Dict(a), Value::Dict(b)) => Rc::ptr_eq(a, b) || dicts_equal(a, b)?,
            (Value::View(a, View::Items), Value::View(b, View::Items)) => dicts_equal(a, b)?,
            (Value::View(a, View::Keys), Value::View(b, View::Keys)) => same_keys(a, b)?,
            (Value::Range(a), Value::Range(b)) => {
                a.len() == b.len() && (a.len() == 0 || a.start == b.start && (a.len() == 1 || a.step == b.step))
            }
            _ => self.is_same(other),
        })
    }

    /// `is`, as far as it can be asked.
    pub fn is_same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::None, Value::None) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Str(a), Value::Str(b)) => a.as_str() == b.as_str(),
            (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => Rc::ptr_eq(a, b),
            (Value::Dict(a), Value::Dict(b)) => Rc::ptr_eq(a, b),
            (Value::Stream(a), Value::Stream(b)) => Rc::ptr_eq(a, b),
            (Value::Namespace(a), Value::Namespace(b)) => Rc::ptr_eq(a, b),
            (Value::Function(a), Value::Function(b)) => Rc::ptr_eq(a, b),
            (Value::Loop(a), Value::Loop(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// `<` and its kin; None: neither (NaN).
    pub fn order(&self, other: &Value, operator: &str) -> Done<Option<Ordering>> {
        spend(1)?;
        self.check_defined()?;
        other.check_defined()?;
        match (self, other) {
            (Value::Str(a), Value::Str(b)) => Ok(Some(a.as_str().cmp(b.as_str()))),
            (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
                for (x, y) in a.items.iter().zip(&b.items) {
                    if !x.equals(y)? {
                        return x.order(y, operator);
                    }
                }
                Ok(Some(a.items.len().cmp(&b.items.len())))
            }
            _ => {
                if let (Some(a), Some(b)) = (self.as_int(), other.as_int()) {
                    return Ok(Some(a.cmp(&b)));
                }
                if let (Some(a), Some(b)) = (self.as_f64(), other.as_f64()) {
                    return Ok(a.partial_cmp(&b));
                }
                let (a, b) = (self.type_name(), other.type_name());
                fault(format!("'{operator}' not supported between instances of '{a}' and '{b}'"))
            }
        }
    }

    /// `item in self`
    pub fn contains(&self, item: &Value) -> Done<bool> {
        match self {
            Value::Str(text) => match item {
                Value::Str(part) => {
                    spend(1 + text.as_str().len() as u64 / 32)?;
                    Ok(text.as_str().contains(part.as_str()))
                }
                other => fault(format!("'in <string>' requires string as left operand, not {}", other.type_name())),
            },
            Value::Dict(dict) | Value::View(dict, View::Keys) => Ok(dict.get(item)?.is_some()),
            Value::Stream(stream) => {
                while let Some(next) = stream.next() {
                    if next.equals(item)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Value::List(items) | Value::Tuple(items) => any_equal(&items.items, item),
            Value::Undefined(_) | Value::View(..) | Value::Range(_) => any_equal(&self.iterate()?, item),
            other => fault(format!("argument of type '{}' is not iterable", other.type_name())),
        }
    }
}

fn any_equal(items: &[Value], item: &Value) -> Done<bool> {
    for other in items {
        if other.equals(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn all_equal(a: &[Value], b: &[Value]) -> Done<bool> {
    for (x, y) in a.iter().zip(b) {
        if !x.equals(y)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A stable sort whose order may fail, or be none.
pub fn sort<T: Clone>(items: &mut Vec<T>, before: &mut impl FnMut(&T, &T) -> Done<bool>) -> Done<()> {
    let n = items.len();
    if n < 2 {
        return Ok(());
    }
    spend(n as u64)?;
    let mut right = items.split_off(n / 2);
    sort(items, before)?;
    sort(&mut right, before)?;
    let left = std::mem::replace(items, Vec::with_capacity(n));
    let (mut a, mut b) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        let from_right = before(y, x)?;
        items.extend(if from_right { b.next() } else { a.next() });
    }
    items.extend(a);
    items.extend(b);
    Ok(())
}
