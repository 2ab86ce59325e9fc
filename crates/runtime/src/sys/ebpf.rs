//! Loading extended BPF programs: bpf(2).

use rustix::fd::{FromRawFd as _, OwnedFd, RawFd};
use rustix::io::Errno;
use std::ffi::c_int;

/// One instruction of an extended BPF program: `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) code: u8,
    /// The destination in the low half, the source in the high half.
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

/// What BPF_PROG_LOAD needs of `union bpf_attr`; the kernel takes the rest for zeros.
#[repr(C)]
struct Load {
    kind: u32,
    instructions: u32,
    program: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

const BPF_PROG_LOAD: c_int = 5;
const BPF_PROG_TYPE_SOCKET_FILTER: u32 = 1;

/// Loads a program that looks at packets. Needs CAP_BPF, or a kernel that lets everybody do so.
pub(crate) fn load_filter(program: &[Instruction]) -> Result<OwnedFd, Errno> {
    let licence = c"Dual MIT/GPL";
    let load = Load {
        kind: BPF_PROG_TYPE_SOCKET_FILTER,
        instructions: u32::try_from(program.len()).map_err(|_| Errno::INVAL)?,
        program: program.as_ptr().expose_provenance() as u64,
        licence: licence.as_ptr().expose_provenance() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    // SAFETY: the kernel reads one `Load` of the size that it is told, and through it
    // `instructions` instructions and a string that a zero ends. All of them live through the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, &raw const load, size_of::<Load>()) };
    if fd < 0 {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
        return Err(Errno::from_raw_os_error(errno));
    }
    // SAFETY: the kernel has made this descriptor, close-on-exec, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}
