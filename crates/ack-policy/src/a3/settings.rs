//! The parameters of A3 and CSA3.

use super::rtt::Source;
use crate::profile::{Host, MSS, PROFILE, Profile, WINDOW};
use ackline_tcp_core::Duration;
use ackline_tcp_core::policy::spec::{Param, ParamInfo};
use ackline_tcp_core::policy::{Params, SpecError};

/// RFC 9293, section 3.8.6.3: the delay is below 500 ms; the paper's is 500 ms.
const LONGEST_DELAY: Duration = Duration::from_millis(500);

pub(super) const A3_TABLE: &[ParamInfo] = &[
    PROFILE,
    ParamInfo {
        name: "delay",
        default: "40ms",
        range: "1ms..500ms",
        summary: "T_d: longest wait of the first unacknowledged byte (paper: 500ms); the hold limit caps it",
    },
    ParamInfo {
        name: "bound",
        default: "450ms",
        range: "1ms..500ms",
        summary: "longest wait of a byte in a sampling, where delay is not shorter (paper: 500ms)",
    },
    ParamInfo {
        name: "cap",
        default: "2",
        range: "1..1000|off",
        summary: "full segments that are acknowledged at once, however large MUDS is (paper: off)",
    },
    ParamInfo {
        name: "interval",
        default: "10",
        range: "10..65535",
        summary: "ISP_t: data segments between samplings, at first and at least",
    },
    ParamInfo {
        name: "when",
        default: "need",
        range: "need|always",
        summary: "sample only where an ACK waited for its delay, or MUDS asks for more ACKs; or (paper) always",
    },
    ParamInfo {
        name: "fewer",
        default: "off",
        range: "on|off",
        summary: "fewer samplings: the interval grows fourfold, and is halved instead of set back",
    },
    ParamInfo {
        name: "linger",
        default: "half",
        range: "half|ipat",
        summary: "an arrival prolongs a sampling by 1.3 IPAT: at most half a round trip, or (paper) without a limit",
    },
    ParamInfo {
        name: "push",
        default: "64",
        range: "1..1000|off",
        summary: "pushed data that was read waits for 1/N of a round trip and of what arrives in one; off (paper): PSH has no effect",
    },
    ParamInfo {
        name: "quick",
        default: "16",
        range: "0..1000",
        summary: "most ACKs without delay at the start, after a pause and after a duplicate (paper: 0)",
    },
    ParamInfo {
        name: "rtt",
        default: "auto",
        range: "auto|handshake|timestamps|1ms..333ms",
        summary: "round trip: the smallest known, that of one source, or a value",
    },
    ParamInfo {
        name: "sampling",
        default: "abort",
        range: "abort|paper",
        summary: "out-of-order and duplicate data in a sampling: ends it with an ACK, or is met by silence",
    },
    MSS,
    WINDOW,
];

const CSA3_OWN: [ParamInfo; 4] = [
    ParamInfo {
        name: "pause",
        default: "auto",
        range: "auto|off|1ms..60s",
        summary: "T_inact: silence of the sender that is a sign of congestion; auto: 2 RTT, at least 200ms",
    },
    ParamInfo {
        name: "pause_from",
        default: "data",
        range: "data|ack",
        summary: "the pause counts from the last data, or from the last ACK where that is later",
    },
    ParamInfo {
        name: "dupacks",
        default: "on",
        range: "on|off",
        summary: "a third duplicate ACK is a sign of congestion",
    },
    ParamInfo {
        name: "duplicates",
        default: "on",
        range: "on|off",
        summary: "data that comes again is a sign of congestion",
    },
];

pub(super) const CSA3_TABLE: &[ParamInfo] = {
    const ALL: [ParamInfo; A3_TABLE.len() + CSA3_OWN.len()] = {
        let mut all = [PROFILE; A3_TABLE.len() + CSA3_OWN.len()];
        let mut i = 0;
        while i < all.len() {
            all[i] = if i < A3_TABLE.len() { A3_TABLE[i] } else { CSA3_OWN[i - A3_TABLE.len()] };
            i += 1;
        }
        all
    };
    &ALL
};

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
    /// What CSA3 adds; `None` for A3.
    pub(super) csa3: Option<Csa3>,
}

/// Step 24: how far an arrival prolongs a sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Linger {
    /// By 1.3 IPAT, however long that is.
    Gaps,
    /// By half a round trip at most. A sender with RACK-TLP (RFC 8985, section 7.2) retransmits two
    /// round trips after its last segment left, which is one and a half after it arrived; the ACK
    /// that ends the sampling takes another half.
    HalfRoundTrip,
}

/// The signs of congestion that CSA3 uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Csa3 {
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
    /// The defaults of A3.
    pub(super) const fn a3() -> Self {
        Self::of(Profile::Default, None)
    }

    /// The defaults of CSA3.
    pub(super) const fn csa3() -> Self {
        Self::of(Profile::Default, Some(Csa3::DEFAULT))
    }

    const fn of(profile: Profile, csa3: Option<Csa3>) -> Self {
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
            csa3,
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

    /// Applies `params` for the policy called `name`. A profile sets everything that is not given.
    pub(super) fn with(mut self, name: &str, params: &Params) -> Result<Self, SpecError> {
        if let Some(profile) = params.get(PROFILE.name) {
            self = Self::of(Profile::read(profile)?, self.csa3.map(|_| Csa3::DEFAULT));
        }
        let short = Duration::from_millis(1);
        for param in params.iter() {
            match param.key() {
                "profile" => {}
                "delay" => self.delay = param.duration(short..=LONGEST_DELAY)?,
                "bound" => self.bound = param.duration(short..=LONGEST_DELAY)?,
                "cap" => self.cap = number_or_off(param)?,
                "linger" => {
                    let gaps = param.choice(&["half", "ipat"])? == 1;
                    self.linger = if gaps { Linger::Gaps } else { Linger::HalfRoundTrip };
                }
                "push" => self.push = number_or_off(param)?,
                "interval" => self.interval = integer(param, 10, 65_535)?,
                "when" => self.on_need = param.choice(&["need", "always"])? == 0,
                "fewer" => self.fewer = param.switch()?,
                "quick" => self.quick = integer(param, 0, 1_000)?,
                "rtt" => {
                    self.rtt = match param.text() {
                        "auto" => Source::Auto,
                        "handshake" => Source::Handshake,
                        "timestamps" => Source::Timestamps,
                        _ => Source::Fixed(param.duration(short..=Duration::from_millis(333)).map_err(
                            |_| param.expected("auto, handshake, timestamps or a duration from 1ms to 333ms"),
                        )?),
                    };
                }
                "sampling" => self.silent = param.choice(&["abort", "paper"])? == 1,
                _ if self.host.take(param)? => {}
                _ => match self.csa3.as_mut() {
                    Some(csa3) => csa3.take(name, param)?,
                    None => return Err(param.unknown(name, A3_TABLE)),
                },
            }
        }
        Ok(self)
    }

    /// Step 25, `T_w`: how long a byte may wait in a sampling.
    pub(super) fn bound(&self, hold_limit: Duration) -> Duration {
        self.bound.min(self.delay).min(hold_limit)
    }
}

impl Csa3 {
    const DEFAULT: Self = Self { pause: Pause::Auto, pause_from_ack: false, dupacks: true, duplicates: true };

    fn take(&mut self, name: &str, param: Param<'_>) -> Result<(), SpecError> {
        match param.key() {
            "pause" => {
                self.pause = match param.text() {
                    "auto" => Pause::Auto,
                    "off" => Pause::Off,
                    _ => Pause::Fixed(
                        param
                            .duration(Duration::from_millis(1)..=Duration::from_secs(60))
                            .map_err(|_| param.expected("auto, off or a duration from 1ms to 60s"))?,
                    ),
                };
            }
            "pause_from" => self.pause_from_ack = param.choice(&["data", "ack"])? == 1,
            "dupacks" => self.dupacks = param.switch()?,
            "duplicates" => self.duplicates = param.switch()?,
            _ => return Err(param.unknown(name, CSA3_TABLE)),
        }
        Ok(())
    }
}

/// A number from 1 to 1000, or `off`.
fn number_or_off(param: Param<'_>) -> Result<Option<u32>, SpecError> {
    match param.text() {
        "off" => Ok(None),
        _ => integer(param, 1, 1_000)
            .map(Some)
            .map_err(|_| param.expected("off or a whole number from 1 to 1000")),
    }
}

fn integer(param: Param<'_>, least: u32, most: u32) -> Result<u32, SpecError> {
    let value = param.integer(u64::from(least)..=u64::from(most))?;
    Ok(u32::try_from(value).unwrap_or(most))
}
