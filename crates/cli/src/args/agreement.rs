//! Every place that reads a quantity reads it alike: flags, options, parameters of policies, keys
//! of scenarios.

use super::{Cli, Command};
use ackline::Registry;
use ackline::core::ConnConfig;
use ackline::core::config::options::CONN;
use ackline::core::policy::spec::Keyed as _;
use ackline::core::quantity::Amount;
use ackline::core::quantity::{RATE, SECOND, SIZE, TIME};
use ackline::sched::shaper::ShaperParams;
use ackline_lab::{Scenario, run_one, simulation};
use clap::Parser as _;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A place that reads a quantity, in base units.
struct QuantityReader {
    name: &'static str,
    read: fn(&str) -> Option<u64>,
    /// What the place takes.
    range: RangeInclusive<u64>,
    /// Base units of a number without a unit; `None`: it is refused.
    bare: Option<u64>,
}

const fn place(
    name: &'static str,
    range: RangeInclusive<u64>,
    bare: Option<u64>,
    read: fn(&str) -> Option<u64>,
) -> QuantityReader {
    QuantityReader { name, read, range, bare }
}

/// What the command line `words` becomes; `VALUE` stands for `value`, which may have spaces.
fn parsed(words: &str, value: &str) -> Option<Command> {
    let words = words.split_whitespace().map(|word| if word == "VALUE" { value } else { word });
    Cli::try_parse_from(std::iter::once("ackline").chain(words)).ok().map(|cli| cli.command)
}

macro_rules! flag {
    ($words:literal, $command:ident($args:ident) => $value:expr) => {
        |text| match parsed($words, text)? {
            Command::$command($args) => $value,
            _ => None,
        }
    };
}

fn nanos(time: Duration) -> Option<u64> {
    u64::try_from(time.as_nanos()).ok()
}

fn option(key: &str, text: &str) -> Option<ConnConfig> {
    let mut config = ConnConfig::default();
    ackline::core::config::options::set(CONN, &mut config, key, text).ok()?;
    Some(config)
}

fn shaper(key: &str, text: &str) -> Option<ShaperParams> {
    ShaperParams::from_params("the shaper", &format!("rate=1mbit,{key}={text}").parse().ok()?).ok()
}

/// Two hosts and a file; `line` says something else in place of the line with the same key.
fn scenario(line: &str) -> Option<Scenario> {
    let lines = "duration = \"200ms\"\n\
        [[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
        [[link]]\nname = \"wire\"\nbetween = [\"a\", \"b\"]\nrate = \"10gbit\"\n\
        [[app]]\nname = \"flow\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nsize = \"1K\"";
    let key = line.split_once('=')?.0;
    let lines: Vec<&str> = lines
        .lines()
        .map(|old| if old.split_once('=').is_some_and(|(k, _)| k == key) { line } else { old })
        .collect();
    Scenario::parse(&lines.join("\n"), "net.toml").ok()
}

fn check(places: &[QuantityReader], right: &[(&str, u64)], wrong: &[&str], bare: u64) {
    for QuantityReader { name, read, range, bare: unit } in places {
        for (text, value) in right {
            assert_eq!(read(text), Some(*value).filter(|value| range.contains(value)), "{name}: {text:?}");
        }
        for text in wrong {
            assert_eq!(read(text), None, "{name}: {text:?}");
        }
        assert_eq!(read(&bare.to_string()), unit.map(|unit| bare * unit), "{name}: {bare} without a unit");
    }
}

#[test]
fn rates_mean_the_same_everywhere() {
    let any = 8..=u64::MAX;
    let places = [
        place("--egress-rate", any.clone(), None, |text| {
            let Command::Send(args) = parsed("send --egress-rate VALUE - h:1", text)? else { return None };
            let sched = args.policies.resolve(&Registry::default()).ok()?.names.sched;
            let params = sched.split_once(':')?.1.parse().ok()?;
            Some(ShaperParams::from_params("the shaper", &params).ok()?.rate?.bits_per_second())
        }),
        place("rate=", any.clone(), None, |text| {
            let params = format!("rate={text}").parse().ok()?;
            Some(ShaperParams::from_params("the shaper", &params).ok()?.rate?.bits_per_second())
        }),
        place(
            "bench -b",
            any.clone(),
            Some(1),
            flag!("bench -c h -b VALUE", Bench(args) => {
                Some(args.test.bitrate?.rate)
            }),
        ),
        place("link.rate", any, None, |text| {
            let mut sim = simulation(&scenario(&format!("rate = {text:?}"))?, 0, 0).ok()?;
            let view = sim.view();
            Some(view.rate(*view.links().first()?))
        }),
    ];
    let right = [
        ("9600bit", 9_600),
        ("10kbit", 10_000),
        ("10K", 10_000),
        ("10k", 10_000),
        ("10mbit", 10_000_000),
        ("10Mbit", 10_000_000),
        ("10 Mbit/s", 10_000_000),
        ("10Mbps", 10_000_000),
        ("10M", 10_000_000),
        ("10m", 10_000_000),
        ("1.5gbit", 1_500_000_000),
        ("1.5G", 1_500_000_000),
        ("1Tbit", 1_000_000_000_000),
    ];
    check(&places, &right, &["", "M", "-1M", "1e6bit", "10MB", "10MiB", "5knots", "10s", "1..5M"], 80_000);
}

#[test]
fn sizes_mean_the_same_everywhere() {
    let places = [
        place("demo --size", 1..=u64::MAX, Some(1), flag!("demo --size VALUE", Demo(args) => args.size)),
        place(
            "bench -n",
            1..=u64::MAX,
            Some(1),
            flag!("bench -c h -n VALUE", Bench(args) => args.test.bytes),
        ),
        place(
            "bench -l",
            1..=1 << 20,
            Some(1),
            flag!("bench -c h -l VALUE", Bench(args) => args.test.length),
        ),
        place(
            "bench -w",
            2048..=512 << 20,
            Some(1),
            flag!("bench -c h -w VALUE", Bench(args) => args.test.window),
        ),
        place(
            "bench --max-buffers",
            4096..=u64::MAX,
            Some(1),
            flag!("bench -s --max-buffers VALUE", Bench(args) => {
                Some(args.max_buffers)
            }),
        ),
        place("-o send_buffer", 1..=1 << 30, Some(1), |text| {
            Some(option("send_buffer", text)?.send_buffer.into())
        }),
        place("burst=", 0..=1 << 30, Some(1), |text| match shaper("burst", text)?.burst {
            Amount::Size(bytes) => Some(bytes),
            Amount::Time(_) => None,
        }),
        place("app.size", 1..=4 << 20, Some(1), |text| {
            // What is larger takes longer than the run.
            let outcome = run_one(&scenario(&format!("size = {text:?}"))?, 0, 0).ok()?;
            Some(outcome.result.flows.first()?.received_bytes).filter(|bytes| *bytes <= 4 << 20)
        }),
    ];
    let right = [
        ("4097B", 4_097),
        ("64K", 65_536),
        ("64k", 65_536),
        ("64KB", 65_536),
        ("64KiB", 65_536),
        ("64 KiB", 65_536),
        ("1.5M", 3 << 19),
        ("1m", 1 << 20),
        ("1G", 1 << 30),
        ("2T", 2 << 40),
    ];
    check(&places, &right, &["", "K", "-1K", "1e3", "64kbit", "64 K B", "1X", "1.2.3", "0x10"], 5_000);
}

#[test]
fn times_mean_the_same_everywhere() {
    let day = 86_400 * SECOND;
    let some = 1..=day;
    let places = [
        place(
            "send --timeout",
            some.clone(),
            Some(SECOND),
            flag!("send --timeout VALUE - h:1", Send(args) => {
                nanos(args.timeout?)
            }),
        ),
        place(
            "recv --timeout",
            some.clone(),
            Some(SECOND),
            flag!("recv -l :1 --timeout VALUE", Recv(args) => {
                nanos(args.timeout()?)
            }),
        ),
        place(
            "recv --grace",
            some.clone(),
            Some(SECOND),
            flag!("recv -l :1 --grace VALUE", Recv(args) => {
                nanos(args.grace)
            }),
        ),
        place(
            "demo --seconds",
            some,
            Some(SECOND),
            flag!("demo --seconds VALUE", Demo(args) => {
                nanos(args.seconds?)
            }),
        ),
        place(
            "bench -i",
            SECOND / 10..=60 * SECOND,
            Some(SECOND),
            flag!("bench -c h -i VALUE", Bench(args) => {
                nanos(args.interval)
            }),
        ),
        place(
            "bench --connect-timeout",
            1_000_000..=3_600 * SECOND,
            Some(1_000_000),
            flag!(
                "bench -c h --connect-timeout VALUE",
                Bench(args) => nanos(args.test.connect_timeout?)
            ),
        ),
        place("--busy-poll", 1..=day, None, |text| {
            match parsed(
                "send --busy-poll=VALUE - h:1".replace("VALUE", &text.replace(' ', "")).as_str(),
                "",
            )? {
                Command::Send(args) => nanos(args.tunnel.busy_poll?),
                _ => None,
            }
        }),
        place("-o user_timeout", 1..=365 * day, None, |text| {
            Some(option("user_timeout", text)?.user_timeout?.as_nanos())
        }),
        place("late=", 0..=SECOND, None, |text| Some(shaper("late", text)?.late.as_nanos())),
        place("duration", 1..=24 * 3_600 * SECOND, None, |text| {
            let outcome = run_one(&scenario(&format!("duration = {text:?}"))?, 0, 0).ok()?;
            Some((outcome.result.window_s.1 * 1e9).round() as u64)
        }),
    ];
    let right = [
        ("500us", 500_000),
        ("500µs", 500_000),
        ("250ms", SECOND / 4),
        ("250 ms", SECOND / 4),
        ("250msec", SECOND / 4),
        ("0.5s", SECOND / 2),
        ("10s", 10 * SECOND),
        ("10sec", 10 * SECOND),
        ("2m", 120 * SECOND),
        ("2min", 120 * SECOND),
        ("1h", 3_600 * SECOND),
        ("1d", day),
    ];
    check(&places, &right, &["", "s", "-1s", "1e3s", "10M", "10S", "10mbit", "10K", "1h30m", "soon"], 7);
}

#[test]
fn the_page_of_units_has_every_name() {
    let page = include_str!("../../../../docs/units.md");
    for unit in [&RATE, &SIZE, &TIME].into_iter().flat_map(|measure| measure.units) {
        let names: Vec<String> = unit.names.iter().map(|name| format!("`{name}`")).collect();
        let row_end = format!(" | {} |\n", names.join(", "));
        assert!(page.contains(&row_end), "docs/units.md lacks the names {}", names.join(", "));
    }
}
