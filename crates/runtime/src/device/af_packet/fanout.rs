//! Several packet sockets as the queues of one interface: packet(7), `PACKET_FANOUT`.
//!
//! A group of sockets gets each frame once. A [classic BPF program](steering) says which of them.
//! It decides alone until the [filter](super::filter) of that queue drops what is not the stack's.
//! Before there is a program, everything goes to the first queue.
//!
//! The kernel's own hashes (`PACKET_FANOUT_HASH`, `_CPU`, `_QM`) know no key, so that each frame
//! would have to be handed over with a probability of 1 - 1/n. Fragments are not put together first
//! (`PACKET_FANOUT_FLAG_DEFRAG`): the stack does that, within its own limits.

use crate::device::interface::steering;
use crate::error::{Error, Result};
use crate::sys::filter;
use crate::sys::packet as sys;
use ackline_tcp_core::steering::Terms;
use rustix::fd::AsFd;
use std::ffi::c_int;

/// The group's number and kind, as the kernel wants them in one word.
const GROUP: u32 = (libc::PACKET_FANOUT_CBPF | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING) << 16;

/// Makes a group of one bound socket; returns its number.
pub(super) fn found(socket: impl AsFd) -> Result<u16> {
    join_as(&socket, GROUP | libc::PACKET_FANOUT_FLAG_UNIQUEID << 16)?;
    let word = sys::option(&socket, libc::PACKET_FANOUT)
        .map_err(Error::on("ask for the number of the queues' group"))?;
    Ok(word as u16)
}

/// Makes a bound socket the group's next one.
pub(super) fn join(socket: impl AsFd, group: u16) -> Result<()> {
    join_as(&socket, GROUP | u32::from(group))
}

fn join_as(socket: impl AsFd, word: u32) -> Result<()> {
    sys::set_option(socket, libc::PACKET_FANOUT, word as c_int)
        .map_err(Error::on("make the packet socket one of several queues"))
}

/// Lets the group of `socket` deliver each segment to its owner's queue.
pub(super) fn steer(socket: impl AsFd, terms: &Terms) -> Result<()> {
    filter::attach_fanout(socket, &mut steering::program(terms))
        .map_err(Error::on("set what chooses the packet socket"))
}
