//! What this crate's code allocates, counted by thread: how much a piece of work keeps, and an end to one that takes more
//! than it may.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The exit status of a process in which a thread took more than `end_process_beyond` allows, or in which the system gave
/// no more to such a thread.
pub const OUT_OF_MEMORY_STATUS: i32 = 77;

thread_local! {
    /// Allocated less freed. Negative where a thread frees what another allocated.
    static NET: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(isize::MAX) };
}

/// Bytes that this thread has allocated, less those that it has freed.
pub fn net_bytes() -> isize {
    NET.get()
}

/// Ends the process as soon as this thread's `net_bytes` grow by more than `n_bytes` from here.
pub fn end_process_beyond(n_bytes: usize) {
    MOST.set(NET.get().saturating_add_unsigned(n_bytes));
}

#[cold]
fn end_process() -> ! {
    // SAFETY: ends the process at once, without running anything of it.
    unsafe { libc::_exit(OUT_OF_MEMORY_STATUS) }
}

fn count(n: isize) {
    let net = NET.get().wrapping_add(n);
    NET.set(net);
    if n > 0 && net > MOST.get() {
        end_process();
    }
}

fn checked(pointer: *mut u8) -> *mut u8 {
    if pointer.is_null() && MOST.get() != isize::MAX {
        end_process();
    }
    pointer
}

// SAFETY: passes everything on to the system's allocator. Sizes of layouts fit an isize.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        checked(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        checked(unsafe { System.realloc(pointer, layout, size) })
    }
}
