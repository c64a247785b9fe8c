//! Panics become errors, and work on untrusted input runs on a stack of known size under a time limit.

use std::any::Any;
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Once};
use std::time::Duration;

use crate::error::{Error, Result};

/// The deepest recursion that the limits on work allow (a template's list in a list in a list, a chain of grammar rules)
/// fits; only touched pages cost memory.
const STACK_BYTES: usize = 1 << 30;
/// Overdue jobs end by their own work limits; until then no more than this many may exist.
const MAX_OVERDUE: usize = 4;

static OVERDUE: AtomicUsize = AtomicUsize::new(0);
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

/// Runs `f` on a thread of its own with a large stack. If it is not done after `limit`, the caller gets a `Limit` error
/// and the thread is left to end by itself: `f` must be bounded in work, and must own what it uses.
pub fn run_bounded<T: Send + 'static>(
    what: &str,
    limit: Duration,
    f: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    if OVERDUE.load(Ordering::Acquire) >= MAX_OVERDUE {
        return Err(Error::limit(format!("{what}: too many overdue jobs; try again later")));
    }
    let (sender, receiver) = mpsc::sync_channel::<Result<T>>(1);
    // 0 = running in time, 1 = declared overdue by the caller, 2 = finished. Whoever comes second settles the count.
    let phase = std::sync::Arc::new(AtomicUsize::new(0));
    let worker_phase = phase.clone();
    let spawned = std::thread::Builder::new().name("candor_bridge".into()).stack_size(STACK_BYTES).spawn(move || {
        let result = catch(f);
        let _ = sender.send(result);
        if worker_phase.swap(2, Ordering::AcqRel) == 1 {
            OVERDUE.fetch_sub(1, Ordering::AcqRel);
        }
    });
    if let Err(e) = spawned {
        return Err(Error::internal(format!("{what}: cannot start a thread: {e}")));
    }
    match receiver.recv_timeout(limit) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(Error::internal(format!("{what}: worker ended without a result"))),
        Err(mpsc::RecvTimeoutError::Timeout) => {
            OVERDUE.fetch_add(1, Ordering::AcqRel);
            if phase.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_err() {
                OVERDUE.fetch_sub(1, Ordering::AcqRel);
            }
            Err(Error::limit(format!("{what}: not done after {} ms", limit.as_millis())))
        }
    }
}
