//! Socket filters: classic BPF, socket(7) `SO_ATTACH_FILTER`.

use super::socket::set;
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::ffi::{c_int, c_ushort};

/// One instruction of a classic BPF program.
pub(crate) type Instruction = libc::sock_filter;

/// Attaches `program`: the socket only receives frames of which it keeps at least one byte.
pub(crate) fn attach_filter(socket: impl AsFd, program: &mut [Instruction]) -> Result<(), Errno> {
    attach(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program)
}

/// Lets `program` choose who of a packet socket's fanout group gets a frame: packet(7),
/// `PACKET_FANOUT_DATA`.
#[cfg(feature = "af-packet")]
pub(crate) fn attach_fanout(socket: impl AsFd, program: &mut [Instruction]) -> Result<(), Errno> {
    attach(socket, libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, program)
}

fn attach(socket: impl AsFd, level: c_int, option: c_int, program: &mut [Instruction]) -> Result<(), Errno> {
    let program = libc::sock_fprog {
        len: c_ushort::try_from(program.len()).map_err(|_| Errno::INVAL)?,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the kernel reads `len` instructions through the pointer, which the exclusive borrow
    // keeps valid.
    unsafe { set(socket, level, option, &program) }
}
