//! `docs/metrics.md` has every variable that the policies show, with its unit, and no other.

use ackline::Registry;
use ackline::core::policy::Unit;
use ackline::core::policy::spec::PolicyKind;
use ackline::core::{Duration, Instant};
use ackline_lab::{Scenario, simulation};
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../../docs/metrics.md");

/// A sender whose packets are dropped, and whose link then stands still for longer than a
/// retransmission timeout.
const STALL: &str = r#"
duration = "6s"
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
name = "line"
between = ["a", "b"]
rate = "10mbit"
delay = "20ms"
queue = { kind = "drop-tail", limit = "30p" }
[[app]]
name = "bulk"
kind = "bulk"
from = "a"
to = "b"
[[change]]
at = "3s"
link = "line"
state = "stall"
for = "1500ms"
"#;

/// Policy, variable and unit.
type Row = (String, String, String);

const fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Flag => "yes or no",
        Unit::Bytes => "bytes",
        Unit::Micros => "µs",
        Unit::Millis => "ms",
        Unit::BitsPerSecond => "bit/s",
        _ => "",
    }
}

/// Everything that a policy shows during a run with it.
fn shown(registry: &Registry, kind: PolicyKind, policy: &str) -> BTreeSet<Row> {
    let place = if kind == PolicyKind::Sched { "host.sched" } else { &format!("conn.{}", kind.keyword()) };
    let scenario = Scenario::parse_with(STALL, "stall.toml", std::path::Path::new(""), registry.clone());
    let spec = if kind == PolicyKind::Sched { format!("{policy}:rate=8mbit") } else { policy.to_owned() };
    let scenario = scenario.and_then(|scenario| scenario.with_set([format!("{place}={spec}")]));
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let mut sim = simulation(&scenario, 0, 0).unwrap_or_else(|error| panic!("{policy}: {error}"));
    let mut shown = BTreeSet::new();
    for step in 1..=300 {
        sim.run_until(Instant::ZERO + Duration::from_millis(20 * step));
        let mut view = sim.view();
        for node in view.hosts() {
            let conns = view.conns(node);
            let Some(endpoint) = view.endpoint(node) else { continue };
            let mut add = |of, metric: ackline::core::policy::Metric| {
                if of == kind {
                    shown.insert((policy.to_owned(), metric.name.to_owned(), unit(metric.unit).to_owned()));
                }
            };
            endpoint.scheduler_metrics(&mut |metric| add(PolicyKind::Sched, metric));
            for (id, _) in conns {
                if let Some(conn) = endpoint.conn(id) {
                    conn.metrics(&mut add);
                }
            }
        }
    }
    shown
}

/// The table on the page that is headed by the kind: variable, policies, unit, meaning.
fn documented(kind: PolicyKind, policies: &[&str]) -> BTreeSet<Row> {
    let head = format!("| of the {kind} | ");
    let rows = PAGE.lines().skip_while(|line| !line.starts_with(&head)).skip(2);
    let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let mut found = BTreeSet::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [variables, of, unit, _] = cells[..] else { panic!("docs/metrics.md: {row}") };
        let of =
            if of == "all" { policies.iter().map(|name| (*name).to_owned()).collect() } else { quoted(of) };
        for policy in of {
            for variable in quoted(variables) {
                let row = (policy.clone(), variable, unit.to_owned());
                assert!(found.insert(row.clone()), "docs/metrics.md: {row:?} stands there twice");
            }
        }
    }
    assert!(!found.is_empty(), "docs/metrics.md: no table begins with {head:?}");
    found
}

fn compare(kind: PolicyKind) {
    let registry = Registry::default();
    let policies: Vec<&str> = registry.list(kind).iter().map(|policy| policy.name).collect();
    let shown: BTreeSet<Row> = policies.iter().flat_map(|policy| shown(&registry, kind, policy)).collect();
    let documented = documented(kind, &policies);
    let missing: Vec<_> = shown.difference(&documented).collect();
    let never: Vec<_> = documented.difference(&shown).collect();
    assert!(
        missing.is_empty() && never.is_empty(),
        "docs/metrics.md lacks {missing:#?}, and nobody shows {never:#?}"
    );
}

#[test]
fn congestion_controls_show_what_the_page_says() {
    compare(PolicyKind::Cc);
}

#[test]
fn ack_policies_show_what_the_page_says() {
    compare(PolicyKind::Ack);
}

#[test]
fn responses_to_a_timeout_show_what_the_page_says() {
    compare(PolicyKind::Rto);
}

#[test]
fn schedulers_show_what_the_page_says() {
    compare(PolicyKind::Sched);
}
