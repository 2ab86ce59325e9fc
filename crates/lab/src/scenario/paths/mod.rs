//! Paths with names: access lines and networks of today, with parameters that were published.
//!
//! `path = "lte"` on a link is rate, delay, queue and impairments of both directions; what else the
//! link says overrides it. Rates of wireless paths come from generators with a seed of their own
//! (`generator`): they are models with published figures, not recordings. After a colon stand
//! parameters: `path = "lte:rate=12mbit,seed=3"`.

mod generator;

use super::link::{ImpairSetup, PathSetup, QueueSetup};
use ackline_netsim::queue::{Action, Limit, PieParams};
use ackline_netsim::{Service, Trace};
use ackline_tcp_core::policy::spec::nearest;
use ackline_tcp_core::quantity;
use ackline_tcp_core::{Duration, Rate};
use generator::Walk;

/// A path, for listings.
#[derive(Clone, Copy, Debug)]
pub struct NamedPath {
    /// Its name.
    pub name: &'static str,
    /// What it is like, in one line.
    pub summary: &'static str,
    /// Where its numbers are from.
    pub source: &'static str,
    make: fn(&Params) -> Both,
}

/// The way down, from the network to the user, and the way up.
struct Both {
    down: PathSetup,
    up: PathSetup,
}

/// What stands behind the colon.
#[derive(Clone, Copy, Debug, Default)]
struct Params {
    /// Mean of the way down, bits per second.
    rate: Option<u64>,
    seed: u64,
    /// The link leads from the user to the network.
    is_up: bool,
}

/// All of them.
pub const PATHS: &[NamedPath] = &[
    NamedPath {
        name: "dsl",
        summary: "VDSL2: 50 Mbit/s down, 10 up, 20 ms of round trip, and buffers of 200 ms down and 600 up",
        source: "ITU-T G.993.2 (profile 17a, interleaving of 8 ms); Kreibich et al., IMC 2010 (buffers)",
        make: |params| {
            let down = params.rate.unwrap_or(50_000_000);
            Both {
                down: line(down, 10, drop_tail_ms(down, 200)),
                up: line(down / 5, 10, drop_tail_ms(down / 5, 600)),
            }
        },
    },
    NamedPath {
        name: "cable",
        summary: "DOCSIS 3.1: 200 Mbit/s down, 20 up behind PIE, 2 to 8 ms until an upstream grant",
        source: "RFC 8034 (PIE with a target of 10 ms); White et al., Low Latency DOCSIS, 2019 (media access)",
        make: |params| {
            let down = params.rate.unwrap_or(200_000_000);
            let pie = PieParams {
                limit: Limit::Packets(1_000),
                target: Duration::from_millis(10),
                update: Duration::from_millis(16),
                action: Action::Drop,
                ..PieParams::default()
            };
            let up = PathSetup {
                queue: QueueSetup::Pie(pie),
                impairments: vec![ImpairSetup::Jitter(Duration::from_millis(6), false)],
                ..line(down / 10, 8, QueueSetup::DropTail(Limit::Packets(1_000)))
            };
            Both { down: line(down, 6, drop_tail_ms(down, 100)), up }
        },
    },
    NamedPath {
        name: "lte",
        summary: "LTE: a rate that walks around 20 Mbit/s, handovers of 50 ms each 20 to 60 s, a deep buffer, 60 ms",
        source: "Winstein et al., NSDI 2013 (walk, buffers); Huang et al., SIGCOMM 2013 (round trip); 3GPP TR 36.881 (handover)",
        make: |params| {
            let rate = params.rate.unwrap_or(20_000_000);
            let walk = Walk { spread: 0.25, step_ms: 20, ..Walk::new(rate, params.seed) };
            let gaps = walk.gaps((20.0, 60.0), (0.045, 0.055));
            radio(&walk.with(gaps), rate / 4, 30, 2_000)
        },
    },
    NamedPath {
        name: "5g",
        summary: "5G at millimetre waves: around 200 Mbit/s, blocked for 0.1 to 2 s each 5 to 25 s, 30 ms",
        source: "Narayanan et al., WWW 2020 and SIGCOMM 2021 (rates, blockage and handovers)",
        make: |params| {
            let rate = params.rate.unwrap_or(200_000_000);
            let walk = Walk { spread: 0.45, step_ms: 50, ..Walk::new(rate, params.seed) };
            let gaps = walk.gaps((5.0, 25.0), (0.1, 2.0));
            radio(&walk.with(gaps), rate / 8, 15, 3_000)
        },
    },
    NamedPath {
        name: "wifi",
        summary: "802.11n: 60 Mbit/s in aggregates of up to 5 ms, shared with others, 10 ms",
        source: "IEEE 802.11-2020 (aPPDUMaxTime of 5.484 ms); Høiland-Jørgensen et al., USENIX ATC 2017 (aggregation)",
        make: |params| {
            let rate = params.rate.unwrap_or(60_000_000);
            let walk = Walk { spread: 0.2, step_ms: 100, burst_ms: 5, ..Walk::new(rate, params.seed) };
            let Both { down, up } = radio(&walk, rate / 2, 5, 1_000);
            let batch = ImpairSetup::Batch(Duration::from_millis(5));
            Both { down, up: PathSetup { impairments: vec![batch], ..up } }
        },
    },
    NamedPath {
        name: "leo",
        summary: "Low orbit: 150 Mbit/s, another satellite each 15 s with 0 to 20 ms more and a gap, 1 % lost in bursts, 40 ms",
        source: "Mohan et al., WWW 2024; Tanveer et al., CoNEXT 2023 (steps of 15 s)",
        make: |params| {
            let rate = params.rate.unwrap_or(150_000_000);
            let walk = Walk { spread: 0.3, step_ms: 15_000, ..Walk::new(rate, params.seed) };
            let gaps = walk.handovers(15.0, (0.03, 0.12));
            let steps = ImpairSetup::Steps(Duration::from_secs(15), walk.delays(Duration::from_millis(20)));
            let burst = ImpairSetup::GilbertElliott { to_bad: 0.0005, to_good: 0.05, good: 0.0, bad: 1.0 };
            let Both { down, up } = radio(&walk.with(gaps), rate / 10, 20, 2_000);
            let down = PathSetup { impairments: vec![burst, steps.clone()], ..down };
            Both { down, up: PathSetup { impairments: vec![steps], ..up } }
        },
    },
    NamedPath {
        name: "geo",
        summary: "Geostationary: 30 Mbit/s down, 5 up, 600 ms, and a buffer of 500 ms",
        source: "RFC 2488, section 2 (delay of the orbit); rate and buffer are a decision",
        make: |params| {
            let down = params.rate.unwrap_or(30_000_000);
            Both {
                down: line(down, 300, drop_tail_ms(down, 500)),
                up: line(down / 6, 300, drop_tail_ms(down / 6, 500)),
            }
        },
    },
    NamedPath {
        name: "datacentre",
        summary: "Ethernet of 10 Gbit/s, 100 us, that marks above 65 packets",
        source: "Alizadeh et al., SIGCOMM 2010 (K = 65 at 10 Gbit/s); RFC 8257, section 3.1",
        make: |params| {
            let rate = params.rate.unwrap_or(10_000_000_000);
            let step =
                QueueSetup::Step { limit: Limit::Packets(400), threshold: 65 * 1_500, action: Action::Mark };
            let path = PathSetup { delay: Duration::from_micros(50), ..line(rate, 0, step) };
            Both { down: path.clone(), up: path }
        },
    },
];

/// A fixed rate.
fn line(rate: u64, delay_ms: u64, queue: QueueSetup) -> PathSetup {
    PathSetup {
        service: Service::Rate(rate.max(1)),
        delay: Duration::from_millis(delay_ms),
        queue,
        ..PathSetup::empty()
    }
}

/// A buffer of so many milliseconds at a rate.
fn drop_tail_ms(rate: u64, ms: u64) -> QueueSetup {
    QueueSetup::DropTail(Limit::Packets(((rate * ms / 12_000_000) as usize).max(10)))
}

/// A rate that changes on the way down, a fixed one on the way up.
fn radio(walk: &Walk, up: u64, delay_ms: u64, packets: usize) -> Both {
    let queue = QueueSetup::DropTail(Limit::Packets(packets));
    let down = PathSetup { service: Service::Trace(walk.trace()), ..line(1, delay_ms, queue.clone()) };
    Both { down, up: line(up, delay_ms, queue) }
}

/// Both directions of a link with this path, in the order of its nodes.
///
/// # Errors
/// What is wrong with the text.
pub(crate) fn resolve(text: &str) -> Result<(PathSetup, PathSetup), String> {
    let (name, settings) = text.split_once(':').unwrap_or((text, ""));
    let Some(path) = PATHS.iter().find(|path| path.name == name) else {
        let names = || PATHS.iter().map(|path| path.name);
        let near = nearest(name, names()).map_or(String::new(), |near| format!("; did you mean {near:?}?"));
        let all = names().collect::<Vec<_>>().join(", ");
        return Err(format!("there is no path {name:?}{near} (there are {all})"));
    };
    let mut params = Params { seed: 1, ..Params::default() };
    let mut given = vec![];
    for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        if given.contains(&key) {
            return Err(format!("parameter {key:?} is given twice"));
        }
        given.push(key);
        match (key, value) {
            ("rate", value) => {
                let rate = quantity::parse_rate(value).map(Rate::bits_per_second);
                // A trace lists each packet.
                let rate = rate.filter(|rate| (100_000..=1_000_000_000).contains(rate));
                params.rate = Some(rate.ok_or_else(|| format!("rate={value}: from 100kbit to 1gbit"))?);
            }
            ("seed", value) => {
                params.seed =
                    value.parse().map_err(|_| format!("seed={value}: it must be a whole number"))?;
            }
            ("way", "up") => params.is_up = true,
            ("way", "down") => params.is_up = false,
            _ => {
                return Err(format!(
                    "{setting:?} is no parameter of a path: rate=RATE, seed=N, way=up or way=down"
                ));
            }
        }
    }
    let Both { down, up } = (path.make)(&params);
    Ok(if params.is_up { (up, down) } else { (down, up) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_its_mean_rate() {
        for path in PATHS {
            let (down, _) = resolve(path.name).unwrap();
            let default = down.service.rate();
            let (scaled, _) = resolve(&format!("{}:rate=12mbit", path.name)).unwrap();
            let rate = scaled.service.rate() as f64 / 12e6;
            assert!((0.97..1.03).contains(&rate), "{}: {rate}", path.name);
            assert!(default > 12_000_000, "{}", path.name);
        }
    }

    #[test]
    fn seeds_differ_and_repeat_and_ways_turn() {
        let trace = |text: &str| match resolve(text).unwrap().0.service {
            Service::Trace(trace) => trace,
            other => panic!("{other:?}"),
        };
        assert_eq!(trace("lte"), trace("lte:seed=1"));
        assert_ne!(trace("lte"), trace("lte:seed=2"));
        let ((down, up), (first, second)) = (resolve("dsl").unwrap(), resolve("dsl:way=up").unwrap());
        assert_eq!((down.service.rate(), up.service.rate()), (second.service.rate(), first.service.rate()));
    }

    #[test]
    fn what_there_is_not_is_refused() {
        let error = |text: &str| resolve(text).err().unwrap_or_default();
        assert!(error("lt").starts_with("there is no path \"lt\"; did you mean \"lte\"?"), "{}", error("lt"));
        assert_eq!(error("lte:rate=1kbit"), "rate=1kbit: from 100kbit to 1gbit");
        assert!(error("lte:sede=3").contains("is no parameter of a path"));
        assert_eq!(error("lte:seed=3,seed=4"), "parameter \"seed\" is given twice");
    }
}
