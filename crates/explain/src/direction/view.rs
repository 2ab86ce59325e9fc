//! The sender's view of ACKs. One that passes the capture has no effect there before it has reached
//! the sender, and what it lets go has come back: each waits for that time.

use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct InFlightAck {
    /// When what it lets go can pass the capture.
    effect_ns: u64,
    ack: u64,
    edge: Option<u64>,
    /// It SACKs something new.
    sacks: bool,
    /// Octets that were SACKed and not acknowledged then.
    sacked: u64,
}

/// What the sender has heard.
#[derive(Debug)]
pub(super) struct SenderView {
    under_way: VecDeque<InFlightAck>,
    /// Maximum number that is kept.
    limit: usize,
    una: u64,
    sacked: u64,
    /// The end of the receiver's window, and what it was when the last data left.
    edge: Option<u64>,
    edge_at_send: Option<u64>,
    /// The window was zero at some time since then.
    zero: bool,
    heard_ns: u64,
    progress_ns: u64,
    /// Smoothed time from one such ACK to the next.
    spacing_ns: u64,
    raised_ns: u64,
    drained_ns: Option<u64>,
}

impl SenderView {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            under_way: VecDeque::new(),
            limit,
            una: 0,
            sacked: 0,
            edge: None,
            edge_at_send: None,
            zero: false,
            heard_ns: 0,
            progress_ns: 0,
            spacing_ns: 0,
            raised_ns: 0,
            drained_ns: None,
        }
    }

    pub(super) fn push(&mut self, effect_ns: u64, ack: u64, edge: Option<u64>, sacks: bool, sacked: u64) {
        if self.under_way.len() >= self.limit {
            self.under_way.pop_front();
        }
        self.under_way.push_back(InFlightAck { effect_ns, ack, edge, sacks, sacked });
    }

    /// Takes in what has an effect until `until_ns`; `snd_nxt` is what was sent before.
    pub(super) fn advance(&mut self, until_ns: u64, snd_nxt: u64) {
        while let Some(ack) = self.under_way.front().copied().filter(|ack| ack.effect_ns <= until_ns) {
            self.under_way.pop_front();
            self.heard_ns = ack.effect_ns;
            let raised = ack.edge > self.edge;
            if raised {
                self.raised_ns = ack.effect_ns;
            }
            if ack.ack > self.una || ack.sacks || raised {
                let gap = ack.effect_ns.saturating_sub(self.progress_ns);
                self.spacing_ns = self.spacing_ns.saturating_sub(self.spacing_ns / 8) + gap / 8;
                self.progress_ns = ack.effect_ns;
            }
            self.una = self.una.max(ack.ack);
            self.sacked = ack.sacked;
            self.edge = self.edge.max(ack.edge);
            self.zero |= ack.edge.is_some_and(|edge| edge <= ack.ack);
            if self.una >= snd_nxt {
                self.drained_ns.get_or_insert(ack.effect_ns);
            }
        }
    }

    /// New data has left.
    pub(super) const fn sent(&mut self) {
        self.drained_ns = None;
        self.edge_at_send = self.edge;
        self.zero = match self.edge {
            Some(edge) => edge <= self.una,
            None => false,
        };
    }

    /// Everything before has arrived, as the sender knows.
    pub(super) const fn una(&self) -> u64 {
        self.una
    }

    /// Octets behind that which have arrived, as SACK says.
    pub(super) const fn sacked(&self) -> u64 {
        self.sacked
    }

    /// When anything was heard.
    pub(super) const fn heard_ns(&self) -> u64 {
        self.heard_ns
    }

    /// When something was heard that lets more go.
    pub(super) const fn progress_ns(&self) -> u64 {
        self.progress_ns
    }

    /// How far such ACKs are apart.
    pub(super) const fn spacing_ns(&self) -> u64 {
        self.spacing_ns
    }

    /// When everything was acknowledged, if it is.
    pub(super) const fn drained_ns(&self) -> Option<u64> {
        self.drained_ns
    }

    /// If data up to `end` did not fit the receiver's window when the last data left: when the
    /// window was raised last, and whether it was zero meanwhile.
    pub(super) fn held_back(&self, end: u64) -> Option<(u64, bool)> {
        self.edge_at_send.filter(|edge| *edge < end).map(|_| (self.raised_ns, self.zero))
    }
}
