//! Prague's parameters.

use ackline_tcp_core::Duration;
use ackline_tcp_core::policy::spec::{Key, Keyed};

/// What is done about a queue that seems to mark as RFC 3168 has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassicQueue {
    /// Nothing.
    Off,
    /// It is reported.
    Detect,
    /// Marks are answered with at least five eighths of what NewReno does.
    Fallback,
}

/// Parameters of [`Prague`](super::Prague).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PragueParams {
    /// The share of marked bytes begins at 1, so that the first mark halves (draft, section 2.3.2);
    /// otherwise at 0 (Linux).
    pub alpha0: bool,
    /// Rounds after slow start until growth follows the virtual round trip (section 2.4.4: 500).
    pub transition: u32,
    /// The least virtual round trip, 0 to 1 s (section 2.4.4: 25 ms).
    pub virtual_rtt: Duration,
    /// Data is sent with ECT(1). Without, queues must be the network's own, as for DCTCP (section
    /// 2.2).
    pub ect1: bool,
    /// What is done about a classic queue.
    pub classic: ClassicQueue,
    /// Bytes of growth per round trip; `None`: a segment (the draft; Linux: 1,500).
    pub ai_bytes: Option<u32>,
}

impl Default for PragueParams {
    fn default() -> Self {
        Self {
            alpha0: true,
            transition: 500,
            virtual_rtt: Duration::from_millis(25),
            ect1: true,
            classic: ClassicQueue::Detect,
            ai_bytes: None,
        }
    }
}

impl Keyed for PragueParams {
    const KEYS: &'static [Key<Self>] = &[
        Key::choice(
            "alpha0",
            &["0", "1"],
            "estimate of the share of marked data to begin with",
            |it| usize::from(it.alpha0),
            |it, at| it.alpha0 = at == 1,
        ),
        Key::integer(
            "transition",
            0..=1_000_000,
            "rounds after slow start until growth follows the virtual round trip",
            |it| &mut it.transition,
        ),
        Key::time(
            "virtual_rtt",
            Duration::ZERO..=Duration::from_secs(1),
            "shorter round trips count as this",
            |it| &mut it.virtual_rtt,
        ),
        Key::choice(
            "ect",
            &["0", "1"],
            "codepoint of data: 0 for networks of one's own",
            |it| usize::from(it.ect1),
            |it, at| it.ect1 = at == 1,
        ),
        Key::choice(
            "classic",
            &["off", "detect", "fallback"],
            "a queue that marks late: not looked for, reported, or answered as it expects",
            |it| it.classic as usize,
            |it, at| it.classic = [ClassicQueue::Off, ClassicQueue::Detect, ClassicQueue::Fallback][at],
        ),
        Key::integer_or("ai_bytes", 1..=65_535, "smss", "bytes of growth per round trip", |it| {
            &mut it.ai_bytes
        }),
    ];
}
