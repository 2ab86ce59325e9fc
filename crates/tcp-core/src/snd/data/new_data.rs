//! How much new data to send: the peer's window, the congestion window, Nagle, cork, and the
//! sender's side of silly window avoidance (RFC 9293, section 3.8.6.2.1).
//!
//! With D the unsent data and U the usable part of the peer's window, a segment is sent if
//!
//! 1. min(D, U) is at least a full segment;
//! 2. or D fits U and Nagle's rule permits a small segment;
//! 3. or min(D, U) is at least half the largest window that the peer ever offered, rounded down,
//!    and Nagle permits it;
//! 4. or the override timer has expired.
//!
//! [`Nagle::SunOs`] has rules of its own ([`SizeQuestion::answer_sunos`]).

use crate::config::{Nagle, SunOs};
use crate::info::Blocked;
use crate::seq::SeqNum;

/// The inputs for the length of a packet of new data.
#[derive(Clone, Copy, Debug)]
pub(in crate::snd) struct SizeQuestion {
    /// Unsent payload bytes.
    pub(in crate::snd) data: u32,
    /// A FIN follows them.
    pub(in crate::snd) fin: bool,
    /// Bytes that the peer's window still takes.
    pub(in crate::snd) usable: u32,
    /// The largest window that the peer ever offered.
    pub(in crate::snd) max_wnd: u32,
    /// Bytes that the congestion window (or the clock) still takes.
    pub(in crate::snd) room: u32,
    /// Maximum payload sent at once; at least `smss`.
    pub(in crate::snd) max_payload: u32,
    pub(in crate::snd) smss: u32,
    /// A small segment may follow outstanding data (Nagle's algorithm, cork).
    pub(in crate::snd) small: bool,
    /// But not full segments sent along with it, which it would have to wait for.
    pub(in crate::snd) alone: bool,
    /// The SWS override timer has fired.
    pub(in crate::snd) override_sws: bool,
    /// The rules of SunOS are in force.
    pub(in crate::snd) sunos: Option<SunOs>,
}

/// A packet of new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::snd) struct Piece {
    pub(in crate::snd) len: u32,
    pub(in crate::snd) fin: bool,
}

impl SizeQuestion {
    /// The length of the packet, or why none is sent.
    pub(in crate::snd) fn answer(&self) -> Result<Piece, Blocked> {
        let Self { data, usable, room, smss, .. } = *self;
        let most = data.min(self.max_payload).min(usable).min(room);
        let whole = most / smss * smss;
        let tail = self.small && !(self.alone && data > smss);
        if most == data && (whole == data || tail || self.fin) {
            // RFC 9293, section 3.10.4: the FIN rides on the last segment, if it fits the window.
            let fin = self.fin && usable > data && room > 0;
            return match data {
                0 if fin => Ok(Piece { len: 0, fin }),
                0 if self.fin => {
                    Err(if room == 0 { Blocked::CongestionWindow } else { Blocked::ReceiveWindow })
                }
                0 => Err(Blocked::App),
                _ => Ok(Piece { len: data, fin }),
            };
        }
        if whole > 0 {
            return Ok(Piece { len: whole, fin: false });
        }
        if let Some(rule) = self.sunos {
            return self.answer_sunos(rule, most);
        }
        let wanted = data.min(smss);
        if room < wanted && room <= usable {
            return Err(Blocked::CongestionWindow);
        }
        if usable < wanted {
            // A receiver that frees half of an odd window frees the smaller half (Linux,
            // `tcp_bound_to_half_wnd`).
            let half = usable >= self.max_wnd / 2;
            if usable > 0 && (self.override_sws || (half && self.small)) {
                return Ok(Piece { len: usable, fin: false });
            }
            return Err(Blocked::ReceiveWindow);
        }
        Err(Blocked::Nagle)
    }

    /// The rules of SunOS 4.1 for a segment of `most` bytes that is not full, or does not hold all
    /// unsent data.
    fn answer_sunos(&self, rule: SunOs, most: u32) -> Result<Piece, Blocked> {
        if most == 0 {
            let by_cwnd = self.room <= self.usable;
            return Err(if by_cwnd { Blocked::CongestionWindow } else { Blocked::ReceiveWindow });
        }
        let lets_out = rule.lets_out(self.data, most, self.smss, self.max_wnd);
        if self.small || lets_out || self.override_sws {
            Ok(Piece { len: most, fin: false })
        } else {
            Err(Blocked::Nagle)
        }
    }
}

/// Nagle's algorithm permits a small segment although `una` to `nxt` is outstanding; `small_end` is
/// the end of the last small segment sent.
pub(in crate::snd) fn nagle_permits(nagle: Nagle, una: SeqNum, nxt: SeqNum, small_end: SeqNum) -> bool {
    match nagle {
        Nagle::Off => true,
        Nagle::Rfc896 | Nagle::SunOs(_) => una == nxt,
        Nagle::Minshall => una.ge(small_end),
    }
}
