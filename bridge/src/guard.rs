//! Panics become errors, and work on untrusted input runs on a stack of known size.

use std::any::Any;
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

use crate::error::{Error, Result};

/// The deepest recursion that the limits on work allow (a template's list in a list in a list, a chain of grammar rules)
/// fits; only touched pages cost memory.
pub const STACK_BYTES: usize = 256 << 20;

static QUIET_HOOK: Once = Once::new();

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_string()).or_else(|| payload.downcast_ref::<String>().cloned());
    format!("internal fault: {}", text.as_deref().unwrap_or("panic without a text"))
}

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f`; a panic inside becomes `Status::Internal`. Nothing is printed.
pub fn catch<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    // The default hook prints to stderr, which a library must not do; a panic that nobody catches may.
    QUIET_HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IS_CAUGHT.get() {
                previous(info);
            }
        }));
    });
    let outer = IS_CAUGHT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    IS_CAUGHT.set(outer);
    result.unwrap_or_else(|payload| Err(Error::internal(panic_text(&*payload))))
}

/// Runs `f` on a thread of its own with a large stack, and waits for it as long as it takes.
pub fn on_large_stack<T: Send>(f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let spawned = std::thread::Builder::new()
            .name("candor_bridge".into())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || catch(f))
            .map_err(|e| Error::internal(format!("cannot start a thread: {e}")))?;
        spawned.join().unwrap_or_else(|payload| Err(Error::internal(panic_text(&*payload))))
    })
}
