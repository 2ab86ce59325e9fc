//! `kalampoukas`: acknowledgments and data share the uplink by byte counters (Kalampoukas, Varma
//! and Ramakrishnan, 1997, section 6 and figure 6.1).
//!
//! Each class is charged for the bytes that it sends, times a weight; if both wait, the one with
//! the smaller account is served. With weights `wd = q - p` and `wa = p`, balanced accounts give
//! data the share `f = p/q` of the bytes. What one class does not use goes to the other, and leaves
//! a credit of at most one packet.
//!
//! ```text
//!   qd ──► ×wd ──► D ┐
//!                    ├─ A >= D ? data : ACK          after each packet the smaller account is taken off both
//!   qa ──► ×wa ──► A ┘
//! ```
//!
//! Where it fails: a share of `1 - f` for ACKs limits the download to `(1 - f) * beta / alpha` of
//! its rate (equation 6.5), where `alpha` is the ratio of the transmission times of data on the two
//! links and `beta` the ratio of a data packet to an ACK on the uplink. ACK thinning at the source
//! goes beyond that, and `f=auto` adapts the share to what ACKs cost and acknowledge, so that both
//! directions use the same fraction of their links, or downloads the part that is asked for.

mod adaptive;
mod downlink;
mod share;

pub use adaptive::Goal;
pub use share::Share;

use crate::class::Class;
use crate::drr::Drr;
use crate::entry;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::policy::sched::{
    Arrival, Backlog, Bypass, Descriptor, EgressScheduler, Forget, LinkView, Popped, SchedulerProperties,
    Scope,
};
use ackline_tcp_core::policy::spec::{Entry, Key, Keyed, WordOr, set_keys};
use ackline_tcp_core::policy::{Metrics, NewEgressScheduler, Params, SpecError};
use ackline_tcp_core::{Instant, Rate};
use adaptive::Adaptive;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString as _;
use alloc::vec::Vec;

pub(crate) const ENTRY: Entry<NewEgressScheduler> = Entry {
    aliases: &["allocation"],
    source: "Kalampoukas et al. 1997, section 6",
    ..entry::keyed::<KalampoukasParams, Kalampoukas>(
        "kalampoukas",
        "data gets the share f of the uplink's bytes, ACKs the rest; both may use what the other leaves",
    )
};

/// The order of packets within a class (step 23).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Intra {
    /// In order of arrival, as in the paper.
    #[default]
    Fifo,
    /// By deficit round robin over connections.
    Drr,
}

/// The scheduler's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct KalampoukasParams {
    /// The share of data, `f`; one half by default. The initial share if it adapts.
    pub share: Share,
    /// Adapt the share to measurements, so that downloads and uploads meet the goal.
    pub adaptive: bool,
    /// The goal of an adaptive share.
    pub goal: Goal,
    /// Rate of the downlink, for an adaptive share; `None`: estimated.
    pub down: Option<Rate>,
    /// The order within a class.
    pub intra: Intra,
}

impl Keyed for KalampoukasParams {
    const KEYS: &'static [Key<Self>] = &[
        Key::text(
            "f",
            "0<f<1, as P/Q up to 65535 or as a decimal; auto",
            "share of the uplink's bytes that data is guaranteed; auto: what meets the goal",
            |it| if it.adaptive { "auto".into() } else { it.share.to_string() },
            |it, param| {
                it.adaptive = param.text() == "auto";
                if !it.adaptive {
                    it.share = param.text().parse()?;
                }
                Ok(())
            },
        ),
        Key::number_or(
            "goal",
            &["equal"],
            0.001..=0.999,
            "for f=auto: uploads and downloads get equal parts of their links, or downloads this part",
            |it| it.goal.part().map_or(WordOr::Word(0), WordOr::Value),
            |it, goal| {
                it.goal = match goal {
                    WordOr::Word(_) => Goal::Equal,
                    WordOr::Value(part) => Goal::of(part),
                };
            },
        ),
        Key::rate_or(
            "down",
            "auto",
            "rate of the downlink, for f=auto; auto: estimated from what arrives",
            |it| &mut it.down,
        ),
        Key::choice(
            "intra",
            &["fifo", "drr"],
            "within a class: first in, first out; or connections take turns",
            |it| it.intra as usize,
            |it, at| it.intra = [Intra::Fifo, Intra::Drr][at],
        ),
    ];

    fn set(&mut self, policy: &str, params: &Params) -> Result<(), SpecError> {
        let mut new = *self;
        set_keys(policy, Self::KEYS, &mut new, params)?;
        let moot = [("goal", new.goal != Goal::default()), ("down", new.down.is_some())];
        let given = |key| params.get(key).is_some() && !new.adaptive;
        if let Some((key, _)) = moot.into_iter().find(|(key, chosen)| *chosen && given(key)) {
            return Err(SpecError::new(format!(
                "{key}= only has a meaning with f=auto; add that, or leave {key}= out"
            )));
        }
        *self = new;
        Ok(())
    }
}

impl From<KalampoukasParams> for Kalampoukas {
    fn from(params: KalampoukasParams) -> Self {
        Self::new(params)
    }
}

/// The packets of one class.
#[derive(Debug)]
enum Line {
    Fifo(Fifo),
    Drr(Drr),
}

impl Line {
    fn new(intra: Intra) -> Self {
        match intra {
            Intra::Fifo => Self::Fifo(Fifo::default()),
            Intra::Drr => Self::Drr(Drr::default()),
        }
    }

    fn get(&self) -> &dyn EgressScheduler {
        match self {
            Self::Fifo(line) => line,
            Self::Drr(line) => line,
        }
    }

    fn get_mut(&mut self) -> &mut dyn EgressScheduler {
        match self {
            Self::Fifo(line) => line,
            Self::Drr(line) => line,
        }
    }

    fn is_empty(&self) -> bool {
        self.get().backlog(Scope::All).packets == 0
    }
}

/// Two classes that share a link by weighted bytes.
#[derive(Debug)]
pub struct Kalampoukas {
    params: KalampoukasParams,
    /// qd.
    data: Line,
    /// qa.
    acks: Line,
    /// D: data's account, in weighted bytes.
    data_bytes: u64,
    /// A: ACKs' account, in weighted bytes.
    ack_bytes: u64,
    /// Largest packet charged to each class, for the bounds of step 20.
    largest_data: u32,
    largest_ack: u32,
    /// Measurements, if the share adapts.
    measured: Option<Box<Adaptive>>,
}

impl Kalampoukas {
    /// A scheduler with empty queues and accounts.
    #[must_use]
    pub fn new(params: KalampoukasParams) -> Self {
        Self {
            params,
            data: Line::new(params.intra),
            acks: Line::new(params.intra),
            data_bytes: 0,
            ack_bytes: 0,
            largest_data: 0,
            largest_ack: 0,
            measured: params.adaptive.then(Box::default),
        }
    }

    /// The parameters, with the current share.
    #[must_use]
    pub const fn params(&self) -> &KalampoukasParams {
        &self.params
    }

    /// The accounts `(D, A)` in weighted bytes.
    #[must_use]
    pub const fn accounts(&self) -> (u64, u64) {
        (self.data_bytes, self.ack_bytes)
    }

    /// Steps 16 to 18: charges `class` with a packet of `len` bytes; `alone`: the other class had
    /// nothing queued.
    fn charge(&mut self, class: Class, len: u32, alone: bool) {
        let share = &self.params.share;
        let (own, other, weight) = match class {
            Class::Data => (&mut self.data_bytes, &mut self.ack_bytes, share.data_weight()),
            Class::Ack => (&mut self.ack_bytes, &mut self.data_bytes, share.ack_weight()),
        };
        let cost = u64::from(len) * u64::from(weight);
        if alone {
            // Step 18: set, not added. A long run of one class leaves the debt of one packet.
            *own = cost;
            *other = 0;
        } else {
            *own += cost;
            // Step 17: strictly greater. An exact tie subtracts nothing.
            if *own > *other {
                *own -= *other;
                *other = 0;
            }
        }
        match class {
            Class::Data => self.largest_data = self.largest_data.max(len),
            Class::Ack => self.largest_ack = self.largest_ack.max(len),
        }
        self.check_bounds();
    }

    /// Step 20: with `M = max(Lmax_data * wd, Lmax_ack * wa)`, `A < M + Lmax_ack * wa` and
    /// `D < M + Lmax_data * wd`.
    fn check_bounds(&self) {
        let share = &self.params.share;
        let data = u64::from(self.largest_data) * u64::from(share.data_weight());
        let ack = u64::from(self.largest_ack) * u64::from(share.ack_weight());
        let most = data.max(ack);
        debug_assert!(self.ack_bytes < most + ack.max(1), "A = {} beyond {most} + {ack}", self.ack_bytes);
        debug_assert!(self.data_bytes < most + data.max(1), "D = {} beyond {most} + {data}", self.data_bytes);
    }

    /// Clears both accounts and their bounds.
    const fn reset(&mut self) {
        self.data_bytes = 0;
        self.ack_bytes = 0;
        self.largest_data = 0;
        self.largest_ack = 0;
    }

    /// Measures a packet that leaves, and changes the share if there are enough measurements.
    fn adapt(&mut self, now: Instant, class: Class, len: u32, alone: bool) {
        let more = !self.data.is_empty() || !self.acks.is_empty();
        let Some(measured) = &mut self.measured else { return };
        measured.on_pop(now, class, len, alone, more);
        if let Some(share) = measured.decide(self.params.goal, self.params.down, self.params.share) {
            self.reweigh(share);
        }
    }

    /// Adopts a new share, with debts of as many bytes as before. Step 22 would cancel them, which
    /// favours data by half a packet on average: too much for a share that changes twice per
    /// second.
    fn reweigh(&mut self, share: Share) {
        let old = core::mem::replace(&mut self.params.share, share);
        let data = u64::from(self.largest_data) * u64::from(share.data_weight());
        let ack = u64::from(self.largest_ack) * u64::from(share.ack_weight());
        let most = data.max(ack);
        let reweighed = |account: u64, old: u32, new: u32| account * u64::from(new) / u64::from(old);
        self.data_bytes = reweighed(self.data_bytes, old.data_weight(), share.data_weight()).min(most);
        self.ack_bytes = reweighed(self.ack_bytes, old.ack_weight(), share.ack_weight()).min(most);
    }

    /// Reorders the queued packets by `intra`.
    fn reorder(&mut self, intra: Intra) {
        // The time does not matter to either kind of queue.
        let now = Instant::ZERO;
        for line in [&mut self.data, &mut self.acks] {
            let mut old = core::mem::replace(line, Line::new(intra));
            let mut packets = Vec::new();
            while let Popped::Packet(packet) = old.get_mut().pop(now, &LinkView::new(u32::MAX)) {
                packets.push(packet);
            }
            packets.sort_unstable_by_key(|packet| packet.id.serial);
            for packet in packets {
                line.get_mut().push(now, packet);
            }
        }
    }
}

impl Default for Kalampoukas {
    fn default() -> Self {
        Self::new(KalampoukasParams::default())
    }
}

impl EgressScheduler for Kalampoukas {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    /// An adaptive share depends on all that leaves and arrives.
    fn properties(&self) -> SchedulerProperties {
        let bypass = if self.params.adaptive { Bypass::Never } else { Bypass::UntilDeviceFull };
        SchedulerProperties::new().with_bypass(bypass).with_arrivals(self.params.adaptive)
    }

    fn push(&mut self, now: Instant, packet: Descriptor) {
        match Class::of(packet.class) {
            Class::Ack => self.acks.get_mut().push(now, packet),
            Class::Data => self.data.get_mut().push(now, packet),
        }
    }

    /// Step 16, once per packet: one branch. Step 23: first the class, then the packet within it.
    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
        let (class, alone) = match (self.data.is_empty(), self.acks.is_empty()) {
            // The accounts stay unchanged.
            (true, true) => return Popped::Empty,
            (false, true) => (Class::Data, true),
            (true, false) => (Class::Ack, true),
            // Step 17: data wins the tie.
            (false, false) if self.ack_bytes >= self.data_bytes => (Class::Data, false),
            (false, false) => (Class::Ack, false),
        };
        let line = match class {
            Class::Data => &mut self.data,
            Class::Ack => &mut self.acks,
        };
        let popped = line.get_mut().pop(now, link);
        if let Popped::Packet(packet) = &popped {
            self.charge(class, packet.len, alone);
            self.adapt(now, class, packet.len, alone);
        }
        popped
    }

    fn arrived(&mut self, now: Instant, arrival: &Arrival) {
        if let Some(measured) = &mut self.measured {
            measured.on_arrival(now, arrival.len);
        }
    }

    /// Step 16: charges the difference, or refunds it as far as the account allows.
    fn repriced(&mut self, now: Instant, packet: &Descriptor, len: u32) {
        let class = Class::of(packet.class);
        let share = &self.params.share;
        let (own, other, weight) = match class {
            Class::Data => (&mut self.data_bytes, &mut self.ack_bytes, share.data_weight()),
            Class::Ack => (&mut self.ack_bytes, &mut self.data_bytes, share.ack_weight()),
        };
        let cost = |len: u32| u64::from(len) * u64::from(weight);
        *own = (*own + cost(len)).saturating_sub(cost(packet.len));
        if *own > *other {
            *own -= *other;
            *other = 0;
        }
        match class {
            Class::Data => self.largest_data = self.largest_data.max(len),
            Class::Ack => self.largest_ack = self.largest_ack.max(len),
        }
        self.check_bounds();
        match class {
            Class::Data => self.data.get_mut().repriced(now, packet, len),
            Class::Ack => {
                self.acks.get_mut().repriced(now, packet, len);
                if let Some(measured) = &mut self.measured {
                    measured.on_repriced(packet.len, len);
                }
            }
        }
    }

    /// Step 24: removed packets were not sent; the accounts stay unchanged.
    fn forget(&mut self, now: Instant, which: Forget) {
        self.data.get_mut().forget(now, which);
        self.acks.get_mut().forget(now, which);
    }

    fn backlog(&self, scope: Scope) -> Backlog {
        self.acks.get().backlog(scope) + self.data.get().backlog(scope)
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.number("f", self.params.share.as_f64());
        report.number("data_account", self.data_bytes as f64);
        report.number("ack_account", self.ack_bytes as f64);
        let down = self.measured.as_ref().and_then(|measured| self.params.down.or(measured.downlink.rate()));
        if let Some(down) = down {
            report.rate("downlink_bit", down);
        }
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let mut new = self.params;
        new.set(ENTRY.name, params)?;
        if new.share != self.params.share {
            // Step 22: a debt in weighted bytes is wrong under other weights.
            self.reset();
        }
        if new.intra != self.params.intra {
            self.reorder(new.intra);
        }
        if new.adaptive != self.params.adaptive {
            self.measured = new.adaptive.then(Box::default);
        }
        self.params = new;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
