//! Arguments of a call, bound to the names of the parameters.

use std::sync::Arc;

use super::budget::{fault, Done};
use super::text::Str;
use super::value::Value;

#[derive(Default)]
pub struct Args {
    pub positional: Vec<Value>,
    pub named: Vec<(Arc<str>, Value)>,
}

impl Args {
    pub fn of(positional: Vec<Value>) -> Args {
        Args { positional, named: Vec::new() }
    }

    /// The values by parameter. A parameter whose name is empty is given by its place alone.
    pub fn bind<const N: usize>(self, what: &str, parameters: [&str; N]) -> Done<Bound<N>> {
        if self.positional.len() > N {
            return fault(format!("{what}() takes at most {N} arguments ({} given)", self.positional.len()));
        }
        let mut values = [const { None }; N];
        for (i, value) in self.positional.into_iter().enumerate() {
            values[i] = Some(value);
        }
        for (name, value) in self.named {
            let Some(i) = parameters.iter().position(|p| !p.is_empty() && *p == &*name) else {
                return fault(format!("{what}() got an unexpected keyword argument '{name}'"));
            };
            if values[i].replace(value).is_some() {
                return fault(format!("{what}() got multiple values for argument '{name}'"));
            }
        }
        Ok(Bound { what: what.to_string(), values })
    }
}

pub struct Bound<const N: usize> {
    what: String,
    values: [Option<Value>; N],
}

impl<const N: usize> Bound<N> {
    pub fn take(&mut self, i: usize) -> Option<Value> {
        self.values[i].take()
    }

    pub fn needed(&mut self, i: usize) -> Done<Value> {
        match self.values[i].take() {
            Some(value) => Ok(value),
            None => fault(format!("{}() misses an argument", self.what)),
        }
    }

    pub fn truth(&self, i: usize, default: bool) -> bool {
        self.values[i].as_ref().map_or(default, Value::truth)
    }

    pub fn int(&self, i: usize, default: i128) -> Done<i128> {
        match &self.values[i] {
            None => Ok(default),
            Some(value) => match value.as_int() {
                Some(int) => Ok(int),
                None => {
                    value.check_defined()?;
                    fault(format!("{}(): '{}' object cannot be interpreted as an integer", self.what, value.type_name()))
                }
            },
        }
    }

    /// None where it is not given, or None.
    pub fn some_int(&self, i: usize) -> Done<Option<i128>> {
        match &self.values[i] {
            None | Some(Value::None) => Ok(None),
            Some(_) => self.int(i, 0).map(Some),
        }
    }

    pub fn text(&self, i: usize) -> Done<Option<Str>> {
        match &self.values[i] {
            None | Some(Value::None) => Ok(None),
            Some(Value::Str(text)) => Ok(Some(text.clone())),
            Some(other) => {
                other.check_defined()?;
                fault(format!("{}() argument must be str, not {}", self.what, other.type_name()))
            }
        }
    }

    pub fn needed_text(&self, i: usize) -> Done<Str> {
        match self.text(i)? {
            Some(text) => Ok(text),
            None => fault(format!("{}() argument must be str", self.what)),
        }
    }
}
