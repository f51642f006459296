//! Memory that a test's own thread holds: the only observer of what the reader sets aside and gives back again.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn note(bytes: isize) {
    HELD.set(HELD.get() + bytes);
    MOST.set(MOST.get().max(HELD.get()));
}

// Each call goes to the system's allocator as it came; only sizes are added up.
#[expect(unsafe_code, reason = "an allocator can only be watched from inside one")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both can be there for a moment.
        note(size as isize);
        note(-(layout.size() as isize));
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note(-(layout.size() as isize));
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Runs `work` and says how many bytes its thread held at most beyond those that it held before.
pub(crate) fn most_held<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    MOST.set(before);
    let result = work();
    (result, usize::try_from(MOST.get() - before).unwrap_or(0))
}

#[test]
fn what_is_set_aside_and_given_back_counts() {
    let (kept, most) = most_held(|| {
        drop(std::hint::black_box(vec![0_u8; 1 << 20]));
        vec![1_u8; 1000]
    });
    assert!((1 << 20..(1 << 20) + 1000).contains(&most), "{most}");
    drop(kept);
}
