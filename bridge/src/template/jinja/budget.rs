//! What one rendering may use, counted where the work is done: steps, and bytes that are alive at once. A rendering
//! belongs to one thread; its budget is that thread's.

use std::cell::Cell;

/// Evaluations, items of lists that are made (2 count as one), bytes of text (64): a second or so of work.
pub const MAX_STEPS: u64 = 10_000_000;
/// Strings, lists and dicts that exist at one time.
pub const MAX_LIVE_BYTES: usize = 192 << 20;
pub const MAX_TEXT_BYTES: usize = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Invalid,
    Raised,
    Limit,
}

/// Why a template does not compile or render. `line` 0: not known yet.
#[derive(Debug)]
pub struct Fault {
    pub kind: Kind,
    pub line: u32,
    pub message: String,
}

pub type Done<T> = Result<T, Box<Fault>>;

pub fn fault<T>(message: impl Into<String>) -> Done<T> {
    Err(Box::new(Fault { kind: Kind::Invalid, line: 0, message: message.into() }))
}

pub fn limit<T>(message: impl Into<String>) -> Done<T> {
    Err(Box::new(Fault { kind: Kind::Limit, line: 0, message: message.into() }))
}

struct Budget {
    steps: Cell<u64>,
    live: Cell<usize>,
    now: Cell<i64>,
}

thread_local! {
    static BUDGET: Budget = const { Budget { steps: Cell::new(0), live: Cell::new(0), now: Cell::new(0) } };
}

/// Begins a rendering. `now`: what `strftime_now` shows.
pub fn begin(now: i64) {
    BUDGET.with(|b| {
        b.steps.set(MAX_STEPS);
        b.live.set(0);
        b.now.set(now);
    });
}

pub fn now() -> i64 {
    BUDGET.with(|b| b.now.get())
}

#[inline]
pub fn spend(steps: u64) -> Done<()> {
    BUDGET.with(|b| match b.steps.get().checked_sub(steps) {
        Some(left) => {
            b.steps.set(left);
            Ok(())
        }
        None => limit(format!("template does more than {MAX_STEPS} steps")),
    })
}

/// Is there room for so many bytes? Asked before they are allocated.
pub fn room(bytes: usize) -> Done<()> {
    if bytes > MAX_LIVE_BYTES || BUDGET.with(|b| b.live.get()) + bytes > MAX_LIVE_BYTES {
        return limit(format!("template needs more than {} MiB", MAX_LIVE_BYTES >> 20));
    }
    Ok(())
}

/// Bytes that are counted as long as this exists.
#[derive(Default)]
pub struct Charge(usize);

impl Charge {
    pub fn of(bytes: usize) -> Done<Charge> {
        let mut charge = Charge(0);
        charge.grow_to(bytes)?;
        Ok(charge)
    }

    pub fn bytes(&self) -> usize {
        self.0
    }

    pub fn grow_to(&mut self, bytes: usize) -> Done<()> {
        let more = bytes.saturating_sub(self.0);
        room(more)?;
        BUDGET.with(|b| b.live.set(b.live.get() + more));
        self.0 += more;
        Ok(())
    }

    pub fn shrink_to(&mut self, bytes: usize) {
        let less = self.0.saturating_sub(bytes);
        BUDGET.with(|b| b.live.set(b.live.get().saturating_sub(less)));
        self.0 -= less;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}
