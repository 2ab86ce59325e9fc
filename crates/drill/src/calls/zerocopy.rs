//! `MSG_ZEROCOPY` and the error queue on which it reports (Linux: `msg_zerocopy`).
//!
//! Nothing is saved here, for all that is written is copied: what remains is when the application is
//! told that its memory is free again, which is when the peer has acknowledged it.

use super::{Kind, Sockets};
use crate::host::Attempt;
use crate::script::{Call, Expr};
use crate::symbols;
use crate::world::World;
use std::collections::VecDeque;

/// `SO_EE_ORIGIN_ZEROCOPY`.
const ORIGIN: i64 = 5;

/// The sends of a socket with `SO_ZEROCOPY`.
#[derive(Debug, Default)]
pub(super) struct ZeroCopy {
    /// Bytes written so far.
    written: u64,
    /// The number of the next send.
    next: u32,
    /// Sends that wait: their number, and the byte behind their last one.
    waiting: VecDeque<(u32, u64)>,
    /// Reports: numbers from the first to the last.
    reports: VecDeque<(u32, u32)>,
}

impl ZeroCopy {
    /// `bytes` were written, with the flag or without.
    pub(super) fn on_written(&mut self, bytes: usize, with_flag: bool) {
        self.written += bytes as u64;
        if with_flag && bytes > 0 {
            self.waiting.push_back((self.next, self.written));
            self.next = self.next.wrapping_add(1);
        }
    }

    /// The peer has acknowledged so many bytes, or all that it ever will; returns whether there is
    /// a new report.
    pub(super) fn on_acked(&mut self, bytes: u64) -> bool {
        let mut any = false;
        while let Some((number, _)) = self.waiting.front().copied().filter(|(_, end)| *end <= bytes) {
            self.waiting.pop_front();
            any = true;
            match self.reports.back_mut() {
                Some((_, last)) if last.wrapping_add(1) == number => *last = number,
                _ => self.reports.push_back((number, number)),
            }
        }
        any
    }

    pub(super) fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }
}

impl Sockets {
    /// `recvmsg` with `MSG_ERRQUEUE`, which never waits.
    pub(super) fn receive_report(
        &mut self,
        world: &mut World,
        fd: i64,
        call: &Call,
    ) -> Result<Attempt, String> {
        self.hear(world);
        let Some(socket) = self.get(fd) else { return Ok(Attempt::Failed("EBADF")) };
        let Some((first, last)) = socket.zero_copy.as_mut().and_then(|zero| zero.reports.pop_front()) else {
            return Ok(Attempt::Failed("EAGAIN"));
        };
        let control = call.args.get(1).and_then(|message| message.field("msg_control"));
        let Some(Expr::List(control)) = control else { return Ok(Attempt::Returned(0)) };
        for item in control {
            let Some(data) = item.field("cmsg_data") else { continue };
            let fields = [
                ("ee_errno", 0),
                ("ee_origin", ORIGIN),
                ("ee_type", 0),
                ("ee_info", i64::from(first)),
                ("ee_data", i64::from(last)),
            ];
            for (name, actual) in fields {
                let Some(expected) = data.field(name) else { continue };
                let expected = symbols::value(expected)?;
                if expected != actual {
                    return Ok(Attempt::Differs(format!("{name}: expected {expected}, got {actual}")));
                }
            }
        }
        Ok(Attempt::Returned(0))
    }

    /// Looks which sends have been acknowledged.
    pub(super) fn hear_reports(&mut self, world: &mut World) {
        for socket in self.sockets() {
            let Kind::Conn(id) = socket.kind else { continue };
            let Some(zero_copy) = socket.zero_copy.as_mut() else { continue };
            let acked = world.endpoint.inspect(id).map_or(u64::MAX, |conn| conn.info().bytes_acked);
            if zero_copy.on_acked(acked) {
                socket.edges.on_report();
            }
        }
    }
}
