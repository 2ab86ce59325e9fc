//! Links ackline without std, with a panic handler and an allocator of its own.
#![no_std]

use core::alloc::{GlobalAlloc, Layout};

struct NoMemory;

// SAFETY: null is a valid answer of `alloc`, and nothing is ever handed out that `dealloc` could
// get back.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: NoMemory = NoMemory;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Names something of every crate, so that each is linked.
#[unsafe(no_mangle)]
pub extern "C" fn ackline_links() -> usize {
    ackline::Registry::default().cc_table().entries().len()
}
