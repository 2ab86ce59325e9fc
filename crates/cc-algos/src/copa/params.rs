//! The parameters of Copa.

use ackline_tcp_core::Duration;
use ackline_tcp_core::policy::spec::{Key, Keyed};

/// Copa's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CopaParams {
    /// How much delay counts against throughput, 0.01 to 2 (section 2.2: 0.5). About 1/delta
    /// segments of the flow are in the queue.
    pub delta: f64,
    /// Answer flows that fill the queue, by a smaller delta (section 2.2: on).
    pub competitive: bool,
    /// Part of the RTT's variation below which the queue counts as nearly empty, 0.01 to 0.5
    /// (section 2.2: 0.1).
    pub nearly_empty: f64,
    /// How long the smallest RTT is believed, 1 to 600 s (section 2: 10 s).
    pub min_rtt_window: Duration,
}

impl Default for CopaParams {
    fn default() -> Self {
        Self { delta: 0.5, competitive: true, nearly_empty: 0.1, min_rtt_window: Duration::from_secs(10) }
    }
}

impl Keyed for CopaParams {
    const KEYS: &'static [Key<Self>] = &[
        Key::number("delta", 0.01..=2.0, "weight of delay: about 1/delta segments are in the queue", |it| {
            &mut it.delta
        }),
        Key::switch("competitive", "take a smaller delta beside flows that fill the queue", |it| {
            &mut it.competitive
        }),
        Key::number(
            "nearly_empty",
            0.01..=0.5,
            "part of the RTT's variation below which the queue counts as empty",
            |it| &mut it.nearly_empty,
        ),
        Key::time(
            "min_rtt_window",
            Duration::from_secs(1)..=Duration::from_secs(600),
            "how long the lowest RTT is believed",
            |it| &mut it.min_rtt_window,
        ),
    ];
}
