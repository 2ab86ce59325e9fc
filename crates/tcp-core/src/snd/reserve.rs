//! Packets that wait in the egress scheduler: they are reserved when it takes them, and claimed
//! when it pops them.

use super::Sender;
use super::flight::Flight;
use super::stream::Stream;
use super::window::wait::WaitCause;
use crate::packet::SendReason;
use crate::plan::Plan;

impl Sender {
    /// The packet waits in the egress scheduler under `serial`.
    pub(crate) fn reserve(&mut self, out: &Plan, serial: u64) {
        if let Some((snd, flight)) = self.in_flight() {
            flight.reserve(snd, out, serial);
        }
    }

    /// The packet that was reserved under `serial` is about to leave: what is still to be sent. May
    /// be asked again if the device refused the packet.
    pub(crate) fn claim(&mut self, serial: u64) -> Option<Plan> {
        let (snd, flight) = self.in_flight()?;
        flight.claim(snd, serial)
    }

    /// A reserved retransmission that became void, by its serial.
    pub(crate) fn take_voided(&mut self) -> Option<u64> {
        self.flight.as_deref_mut()?.reserved.take_voided()
    }
}

impl Flight {
    fn reserve(&mut self, snd: &Stream, out: &Plan, serial: u64) {
        let new = out.end().gt(snd.nxt);
        self.reserved.push(*out, serial, new);
        if new {
            self.note_release(snd, out);
        } else if out.reason != SendReason::WindowProbe {
            self.recovery.on_retransmission(out.seq, out.end(), &self.board);
            self.board.set_reserved(out.seq, out.end(), true);
        }
    }

    /// New data leaves, or waits in the scheduler: counts its segments, and remembers the end of a
    /// small one for Minshall's rule.
    pub(super) fn note_release(&mut self, snd: &Stream, out: &Plan) {
        self.released = self.released.saturating_add(out.segments());
        if !out.len.is_multiple_of(snd.smss()) && out.reason != SendReason::PathMtuProbe {
            self.small_end = out.seq + out.len;
        }
    }

    fn claim(&mut self, snd: &Stream, serial: u64) -> Option<Plan> {
        let entry = self.reserved.find(serial)?;
        let out = entry.out;
        if out.reason == SendReason::WindowProbe {
            if self.wait.cause == WaitCause::Probe {
                return Some(out);
            }
            self.reserved.remove(out.end(), false);
            return None;
        }
        // If the path MTU or the device's fell meanwhile, a packet that was planned as one segment
        // is planned anew.
        let probe = out.reason == SendReason::PathMtuProbe;
        let most = if probe { snd.full_smss() } else { snd.smss() };
        let too_large = out.segment_size.is_none() && out.len > most;
        if entry.new {
            // RFC 9293, section 3.8.6: a window that shrank takes no new data beyond its edge.
            if too_large || (snd.nxt + out.len).gt(snd.wnd_end()) {
                self.reserved.void_new(Some(entry.serial));
                return None;
            }
            return Some(if probe { out } else { Plan { segment_size: snd.segment_size(out.len), ..out } });
        }
        let (start, end) = (out.seq.max(snd.una), out.end());
        // What an expiry sends is a question to the peer, even if the peer has reported it as
        // received.
        let settled = self.board.is_sacked(start, end) && !out.reason.is_rto();
        if too_large || start.ge(end) || settled {
            self.reserved.remove(end, false);
            self.board.set_reserved(start, end, false);
            return None;
        }
        Some(snd.retransmission(start, end, out.reason))
    }

    /// Gives up reserved retransmissions of what is acknowledged.
    pub(super) fn drop_void_reservations(&mut self, snd: &Stream) {
        if self.reserved.is_empty() {
            return;
        }
        let void = |out: &Plan| out.end().le(snd.una) && out.seq != snd.una;
        while self.reserved.take_void(|entry| void(&entry.out)).is_some() {}
    }
}
