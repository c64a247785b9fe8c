//! The C boundary: `include/candor_bridge.h` is its contract. Every function catches panics.
#![allow(clippy::missing_safety_doc)] // the safety contract of each function stands in the header

use std::ffi::c_char;
use std::ptr;

use crate::constraint::tok_env::{self, TokEnvironment};
use crate::constraint::{self, Constraint, Kind};
use crate::error::{Error, Result, Status};
use crate::guard::catch;
use crate::split::{Behavior, Splitter, Step};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    data: *const u8,
    size: usize,
}

#[repr(C)]
pub struct Text {
    data: *mut c_char,
    size: usize,
}

#[repr(C)]
pub struct ErrorOut {
    status: Status,
    line: u32,
    message: Text,
}

#[repr(C)]
pub struct Vocab {
    tokens: *const Bytes,
    is_special: *const bool,
    n_tokens: usize,
    eos_tokens: *const u32,
    n_eos_tokens: usize,
}

impl Bytes {
    pub fn of(bytes: &[u8]) -> Bytes {
        Bytes { data: bytes.as_ptr(), size: bytes.len() }
    }

    unsafe fn as_slice<'a>(&self) -> &'a [u8] {
        unsafe { slice(self.data, self.size) }
    }

    unsafe fn as_text<'a>(&self, what: &str) -> Result<&'a str> {
        std::str::from_utf8(unsafe { self.as_slice() })
            .map_err(|e| Error::invalid(format!("{what} is not UTF-8 at byte {}", e.valid_up_to())))
    }
}

/// C arrays of size 0 may be null; Rust slices may not.
unsafe fn slice<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if data.is_null() || size == 0 {
        &[]
    } else {
        unsafe { std::slice::from_raw_parts(data, size) }
    }
}

impl Text {
    const EMPTY: Text = Text { data: ptr::null_mut(), size: 0 };

    /// With a NUL behind it; freed by `candor_text_free`.
    fn owned(text: String) -> Text {
        let size = text.len();
        let mut bytes = text.into_bytes();
        bytes.push(0);
        Text { data: Box::into_raw(bytes.into_boxed_slice()).cast(), size }
    }
}

/// Runs `f`, writes its value to `out` or its error to `error`, and gives the status.
unsafe fn answer<T>(out: *mut T, error: *mut ErrorOut, f: impl FnOnce() -> Result<T>) -> Status {
    match catch(f) {
        Ok(value) => {
            if !out.is_null() {
                unsafe { out.write(value) };
            }
            Status::Ok
        }
        Err(e) => {
            if !error.is_null() {
                let message = Text::owned(e.message);
                unsafe { error.write(ErrorOut { status: e.status, line: e.line, message }) };
            }
            e.status
        }
    }
}

unsafe fn borrowed<'a, T>(handle: *const T) -> Result<&'a T> {
    unsafe { handle.as_ref() }.ok_or_else(|| Error::internal("a handle is null"))
}

unsafe fn borrowed_mut<'a, T>(handle: *mut T) -> Result<&'a mut T> {
    unsafe { handle.as_mut() }.ok_or_else(|| Error::internal("a handle is null"))
}

unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        let _ = catch(|| {
            drop(unsafe { Box::from_raw(handle) });
            Ok(())
        });
    }
}

fn boxed<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

#[no_mangle]
pub unsafe extern "C" fn candor_text_free(text: *mut Text) {
    let Some(text) = (unsafe { text.as_mut() }) else { return };
    if !text.data.is_null() {
        let bytes = ptr::slice_from_raw_parts_mut(text.data.cast::<u8>(), text.size + 1);
        drop(unsafe { Box::from_raw(bytes) });
    }
    *text = Text::EMPTY;
}

#[no_mangle]
pub unsafe extern "C" fn candor_error_clear(error: *mut ErrorOut) {
    let Some(error) = (unsafe { error.as_mut() }) else { return };
    unsafe { candor_text_free(&mut error.message) };
    *error = ErrorOut { status: Status::Ok, line: 0, message: Text::EMPTY };
}

#[no_mangle]
pub unsafe extern "C" fn candor_tok_env_create(
    vocab: *const Vocab,
    out: *mut *mut TokEnvironment,
    error: *mut ErrorOut,
) -> Status {
    unsafe {
        answer(out, error, || {
            let vocab = borrowed(vocab)?;
            let words: Vec<&[u8]> = slice(vocab.tokens, vocab.n_tokens).iter().map(|b| b.as_slice()).collect();
            // C may hold any byte in a bool; Rust may not.
            let flags: Vec<bool> = if vocab.is_special.is_null() {
                vec![false; words.len()]
            } else {
                slice(vocab.is_special.cast::<u8>(), vocab.n_tokens).iter().map(|b| *b != 0).collect()
            };
            tok_env::new(&words, &flags, slice(vocab.eos_tokens, vocab.n_eos_tokens)).map(boxed)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn candor_tok_env_free(handle: *mut TokEnvironment) {
    unsafe { free(handle) }
}

unsafe fn source_of<'a>(kind: Kind, source: &Bytes) -> Result<&'a str> {
    if kind == Kind::JsonObject {
        return Ok("");
    }
    unsafe { source.as_text("constraint") }
}

#[no_mangle]
pub unsafe extern "C" fn candor_constraint_known(
    env: *const TokEnvironment,
    kind: i32,
    source: Bytes,
    out: *mut *mut Constraint,
    error: *mut ErrorOut,
) -> Status {
    unsafe {
        answer(out, error, || {
            let kind = Kind::of(kind)?;
            let known = constraint::known(borrowed(env)?, kind, source_of(kind, &source)?)?;
            Ok(known.map_or(ptr::null_mut(), boxed))
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn candor_constraint_compile(
    env: *const TokEnvironment,
    kind: i32,
    source: Bytes,
    out: *mut *mut Constraint,
    error: *mut ErrorOut,
) -> Status {
    unsafe {
        answer(out, error, || {
            let kind = Kind::of(kind)?;
            constraint::compile(borrowed(env)?, kind, source_of(kind, &source)?).map(boxed)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn candor_constraint_without_effect(
    kind: i32,
    source: Bytes,
    out: *mut Text,
    error: *mut ErrorOut,
) -> Status {
    unsafe {
        answer(out, error, || {
            let found = constraint::without_effect(Kind::of(kind)?, source.as_text("constraint")?);
            Ok(Text::owned(found.join("\n")))
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn candor_constraint_fork(handle: *const Constraint) -> *mut Constraint {
    catch(|| Ok(boxed(unsafe { borrowed(handle) }?.fork()))).unwrap_or(ptr::null_mut())
}

#[no_mangle]
pub unsafe extern "C" fn candor_constraint_free(handle: *mut Constraint) {
    if !handle.is_null() {
        let _ = catch(|| {
            unsafe { Box::from_raw(handle) }.release();
            Ok(())
        });
    }
}

#[no_mangle]
pub unsafe extern "C" fn candor_constraint_mask(
    handle: *mut Constraint,
    words: *mut u32,
    n_words: usize,
    error: *mut ErrorOut,
) -> Status {
    unsafe {
        answer(ptr::null_mut(), error, || {
            if words.is_null() {
                return Err(Error::internal("mask: words is null"));
            }
            borrowed_mut(handle)?.mask(std::slice::from_raw_parts_mut(words, n_words))
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn candor_constraint_accept(handle: *mut Constraint, token: u32, error: *mut ErrorOut) -> Status {
    unsafe {
        answer(ptr::null_mut(), error, || match borrowed_mut(handle)?.accept(token)? {
            true => Ok(()),
            false => Err(Error::invalid(format!("constraint: token {token} is not allowed here"))),
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn candor_constraint_is_accepting(handle: *mut Constraint) -> bool {
    catch(|| Ok(unsafe { borrowed_mut(handle) }?.is_accepting())).unwrap_or(false)
}

#[no_mangle]
pub unsafe extern "C" fn candor_constraint_is_stopped(handle: *const Constraint) -> bool {
    catch(|| Ok(unsafe { borrowed(handle) }?.is_stopped())).unwrap_or(true)
}

#[repr(C)]
pub struct SplitStep {
    expression: Bytes,
    behavior: i32,
    invert: u8,
    over_bytes: u8,
}

#[repr(C)]
pub struct Spans {
    ends: *mut usize,
    size: usize,
}

#[no_mangle]
pub unsafe extern "C" fn candor_splitter_create(
    steps: *const SplitStep,
    n_steps: usize,
    out: *mut *mut Splitter,
    error: *mut ErrorOut,
) -> Status {
    unsafe {
        answer(out, error, || {
            let read = |step: &SplitStep| {
                let expression = step.expression.as_text("an expression")?;
                let behavior = Behavior::of(step.behavior)?;
                Ok(Step { expression, behavior, invert: step.invert != 0, over_bytes: step.over_bytes != 0 })
            };
            let steps: Vec<Step> = slice(steps, n_steps).iter().map(read).collect::<Result<_>>()?;
            Splitter::new(&steps).map(boxed)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn candor_splitter_free(handle: *mut Splitter) {
    unsafe { free(handle) }
}

#[no_mangle]
pub unsafe extern "C" fn candor_splitter_split(
    handle: *const Splitter,
    text: Bytes,
    steps: *mut u64,
    out: *mut Spans,
    error: *mut ErrorOut,
) -> Status {
    unsafe {
        answer(out, error, || {
            let spans = borrowed(handle)?.split(text.as_slice(), borrowed_mut(steps)?)?;
            let ends: Box<[usize]> = spans.iter().flat_map(|&(begin, end)| [begin, end]).collect();
            Ok(Spans { ends: Box::into_raw(ends).cast(), size: spans.len() })
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn candor_spans_free(spans: *mut Spans) {
    let Some(spans) = (unsafe { spans.as_mut() }) else { return };
    if !spans.ends.is_null() {
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(spans.ends, 2 * spans.size)) });
    }
    *spans = Spans { ends: ptr::null_mut(), size: 0 };
}
