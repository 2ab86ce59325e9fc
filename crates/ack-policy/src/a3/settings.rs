//! The parameters of A3 and CSA3.

use super::rtt::Source;
use crate::profile::{Host, Profile, Profiled, mss, profile, window};
use ackline_tcp_core::Duration;
use ackline_tcp_core::policy::spec::{Key, Keyed, WordOr};
use ackline_tcp_core::policy::{Params, SpecError};

/// RFC 9293, section 3.8.6.3: the delay is below 500 ms; the paper's is 500 ms.
const LONGEST_DELAY: Duration = Duration::from_millis(500);

/// The shortest time that a parameter accepts.
const SHORTEST: Duration = Duration::from_millis(1);

/// The keys of A3, then those given: for [`A3Params`] and [`Csa3Params`].
macro_rules! keys {
    ($($own:expr),* $(,)?) => {
        &[
            profile(),
            Key::time(
                "delay",
                SHORTEST..=LONGEST_DELAY,
                "T_d: longest wait of the first unacknowledged byte (paper: 500ms); the hold limit caps it",
                |it| &mut it.0.delay,
            ),
            Key::time(
                "bound",
                SHORTEST..=LONGEST_DELAY,
                "longest wait of a byte in a sampling, where delay is not shorter (paper: 500ms)",
                |it| &mut it.0.bound,
            ),
            Key::integer_or(
                "cap",
                1..=1_000,
                "off",
                "full segments that are acknowledged at once, however large MUDS is (paper: off)",
                |it| &mut it.0.cap,
            ),
            Key::integer(
                "interval",
                10..=65_535,
                "ISP_t: data segments between samplings, at first and at least",
                |it| &mut it.0.interval,
            ),
            Key::choice(
                "when",
                &["need", "always"],
                "sample only where an ACK waited for its delay, or MUDS asks for more ACKs; or (paper) always",
                |it| usize::from(!it.0.on_need),
                |it, at| it.0.on_need = at == 0,
            ),
            Key::switch(
                "fewer",
                "fewer samplings: the interval grows fourfold, and is halved instead of set back",
                |it| &mut it.0.fewer,
            ),
            Key::choice(
                "linger",
                &["half", "ipat"],
                "an arrival prolongs a sampling by 1.3 IPAT: at most half a round trip, or (paper) without a limit",
                |it| it.0.linger as usize,
                |it, at| it.0.linger = [Linger::HalfRoundTrip, Linger::Gaps][at],
            ),
            Key::integer_or(
                "push",
                1..=1_000,
                "off",
                "pushed data that was read waits for 1/N of a round trip and of what arrives in one; off (paper): PSH has no effect",
                |it| &mut it.0.push,
            ),
            Key::integer(
                "quick",
                0..=1_000,
                "most ACKs without delay at the start, after a pause and after a duplicate (paper: 0)",
                |it| &mut it.0.quick,
            ),
            Key::time_or(
                "rtt",
                &["auto", "handshake", "timestamps"],
                SHORTEST..=Duration::from_millis(333),
                "round trip: the smallest known, that of one source, or a value",
                |it| match it.0.rtt {
                    Source::Auto => WordOr::Word(0),
                    Source::Handshake => WordOr::Word(1),
                    Source::Timestamps => WordOr::Word(2),
                    Source::Fixed(time) => WordOr::Value(time),
                },
                |it, rtt| {
                    it.0.rtt = match rtt {
                        WordOr::Word(0) => Source::Auto,
                        WordOr::Word(1) => Source::Handshake,
                        WordOr::Word(_) => Source::Timestamps,
                        WordOr::Value(time) => Source::Fixed(time),
                    };
                },
            ),
            Key::choice(
                "sampling",
                &["abort", "paper"],
                "out-of-order and duplicate data in a sampling: ends it with an ACK, or is met by silence",
                |it| usize::from(it.0.silent),
                |it, at| it.0.silent = at == 1,
            ),
            mss(),
            window(),
            $($own,)*
        ]
    };
}

/// The parameters of A3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct A3Params(pub(super) Settings);

/// The parameters of CSA3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Csa3Params(pub(super) Settings);

impl Default for A3Params {
    fn default() -> Self {
        Self(Settings::of(Profile::Default, false))
    }
}

impl Default for Csa3Params {
    fn default() -> Self {
        Self(Settings::of(Profile::Default, true))
    }
}

impl Keyed for A3Params {
    const KEYS: &'static [Key<Self>] = keys![];
}

impl Keyed for Csa3Params {
    const KEYS: &'static [Key<Self>] = keys![
        Key::time_or(
            "pause",
            &["auto", "off"],
            SHORTEST..=Duration::from_secs(60),
            "T_inact: silence of the sender that is a sign of congestion; auto: 2 RTT, at least 200ms",
            |it| match it.0.signs.pause {
                Pause::Auto => WordOr::Word(0),
                Pause::Off => WordOr::Word(1),
                Pause::Fixed(time) => WordOr::Value(time),
            },
            |it, pause| {
                it.0.signs.pause = match pause {
                    WordOr::Word(0) => Pause::Auto,
                    WordOr::Word(_) => Pause::Off,
                    WordOr::Value(time) => Pause::Fixed(time),
                };
            },
        ),
        Key::choice(
            "pause_from",
            &["data", "ack"],
            "the pause counts from the last data, or from the last ACK where that is later",
            |it| usize::from(it.0.signs.pause_from_ack),
            |it, at| it.0.signs.pause_from_ack = at == 1,
        ),
        Key::switch("dupacks", "a third duplicate ACK is a sign of congestion", |it| &mut it.0.signs.dupacks),
        Key::switch("duplicates", "data that comes again is a sign of congestion", |it| {
            &mut it.0.signs.duplicates
        }),
    ];
}

impl Profiled for A3Params {
    fn with_profile(&self, profile: Profile) -> Self {
        Self(Settings::of(profile, false))
    }
}

impl Profiled for Csa3Params {
    fn with_profile(&self, profile: Profile) -> Self {
        Self(Settings::of(profile, true))
    }
}

impl AsRef<Host> for A3Params {
    fn as_ref(&self) -> &Host {
        &self.0.host
    }
}

impl AsMut<Host> for A3Params {
    fn as_mut(&mut self) -> &mut Host {
        &mut self.0.host
    }
}

impl AsRef<Host> for Csa3Params {
    fn as_ref(&self) -> &Host {
        &self.0.host
    }
}

impl AsMut<Host> for Csa3Params {
    fn as_mut(&mut self) -> &mut Host {
        &mut self.0.host
    }
}

/// The parameters of a connection's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) host: Host,
    /// `T_d`.
    pub(super) delay: Duration,
    /// The longest wait in a sampling, unless `delay` is shorter.
    bound: Duration,
    /// Number of full segments that are acknowledged at once.
    pub(super) cap: Option<u32>,
    /// The shortest `ISP_t`, in segments.
    pub(super) interval: u32,
    /// Sample only if it may change something.
    pub(super) on_need: bool,
    /// The variant with fewer samplings.
    pub(super) fewer: bool,
    pub(super) linger: Linger,
    /// The part of a round trip that pushed data waits once it was read; `None` if PSH has no
    /// effect.
    pub(super) push: Option<u32>,
    /// Arrivals acknowledged at once at the start, after a pause and after a duplicate.
    pub(super) quick: u32,
    pub(super) rtt: Source,
    /// The shortest round trip that is believed.
    pub(super) least_rtt: Duration,
    /// Do not report duplicate and out-of-order data during a sampling.
    pub(super) silent: bool,
    /// The signs of congestion that CSA3 looks for.
    signs: Signs,
    /// The policy is CSA3, not A3.
    is_csa3: bool,
}

/// Step 24: how far an arrival prolongs a sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Linger {
    /// By half a round trip at most. A sender with RACK-TLP (RFC 8985, section 7.2) retransmits two
    /// round trips after its last segment left, which is one and a half after it arrived; the ACK
    /// that ends the sampling takes another half.
    HalfRoundTrip,
    /// By 1.3 IPAT, however long that is.
    Gaps,
}

/// The signs of congestion that CSA3 uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signs {
    pub(super) pause: Pause,
    pub(super) pause_from_ack: bool,
    pub(super) dupacks: bool,
    pub(super) duplicates: bool,
}

/// `T_inact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    Off,
    Auto,
    Fixed(Duration),
}

impl Pause {
    /// The shortest pause that counts; `None` if pauses are ignored.
    pub(super) fn threshold(self, auto: impl FnOnce() -> Duration) -> Option<Duration> {
        match self {
            Self::Off => None,
            Self::Auto => Some(auto()),
            Self::Fixed(time) => Some(time),
        }
    }
}

impl Settings {
    const fn of(profile: Profile, is_csa3: bool) -> Self {
        let mut settings = Self {
            host: Host::new(profile),
            delay: Duration::from_millis(40),
            bound: Duration::from_millis(450),
            cap: Some(2),
            interval: 10,
            on_need: true,
            fewer: false,
            linger: Linger::HalfRoundTrip,
            push: Some(64),
            quick: 16,
            rtt: Source::Auto,
            least_rtt: Duration::from_micros(10),
            silent: false,
            signs: Signs { pause: Pause::Auto, pause_from_ack: false, dupacks: true, duplicates: true },
            is_csa3,
        };
        if matches!(profile, Profile::Paper) {
            settings.delay = LONGEST_DELAY;
            settings.bound = LONGEST_DELAY;
            settings.cap = None;
            settings.least_rtt = Duration::from_millis(1);
            settings.linger = Linger::Gaps;
            settings.push = None;
            settings.quick = 0;
            settings.on_need = false;
        }
        settings
    }

    /// The same with `params`. A profile sets everything that is not given.
    pub(super) fn with(self, params: &Params) -> Result<Self, SpecError> {
        if self.is_csa3 {
            let mut new = Csa3Params(self);
            new.set("csa3", params).map(|()| new.0)
        } else {
            let mut new = A3Params(self);
            new.set("a3", params).map(|()| new.0)
        }
    }

    /// The signs of congestion that CSA3 looks for; `None` for A3.
    pub(super) fn signs(&self) -> Option<Signs> {
        self.is_csa3.then_some(self.signs)
    }

    /// Step 25, `T_w`: how long a byte may wait in a sampling.
    pub(super) fn bound(&self, hold_limit: Duration) -> Duration {
        self.bound.min(self.delay).min(hold_limit)
    }
}
