//! Packet sizes of a paper that measures windows and packets in the same unit (Kalampoukas, Varma
//! and Ramakrishnan).

/// The size of a packet with `payload` bytes: its payload if it has any, so that it takes as much
/// of the link as of the window; otherwise `ack`.
pub(crate) const fn paper_price(payload: u32, ack: u16) -> u32 {
    if payload > 0 { payload } else { ack as u32 }
}
