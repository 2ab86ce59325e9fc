//! A stage of one's own: hosts outside the simulation, and time that passes elsewhere.

use ackline_lab::scenario::AppKind;
use ackline_lab::stage::{
    EndReport, OutsideEnd, OutsideHost, Role, Stage, StageError, Stages, Validity, World,
};
use ackline_lab::{RunError, RunOptions, Scenario, run_on, run_one_on};
use ackline_netsim::Sim;
use ackline_netsim::record::ConnRecord;
use ackline_tcp_core::{Duration, Instant};
use std::sync::{Arc, Mutex};

const SCENARIO: &str = r#"
duration = "2s"
seed = 7
[[node]]
name = "a"
[[node]]
name = "r"
kind = "router"
[[node]]
name = "b"
world = "kernel"
mtu = 1400
kernel = { cc = "bbr", sysctl = { net.ipv4.tcp_sack = 0, "net.ipv4.tcp_ecn" = "1" } }
[[link]]
name = "wire"
between = ["a", "r"]
rate = "1mbit"
delay = "5ms"
[[link]]
between = ["r", "b"]
[[app]]
kind = "bulk"
name = "up"
from = "a"
to = "b"
[[app]]
kind = "download"
name = "down"
from = "b"
to = "a"
size = "10k"
start = "1s"
[measure]
from = "1s"
"#;

/// What a stage was told, and how many packets reached its host.
#[derive(Debug, Default)]
struct Seen {
    hosts: Vec<OutsideHost>,
    ends: Vec<OutsideEnd>,
    until: Vec<Instant>,
    packets: u64,
}

/// Hosts of the kernel that say nothing, and report 1,000 bytes for each time that was let pass.
#[derive(Clone, Debug, Default)]
struct Silent {
    seen: Arc<Mutex<Seen>>,
    fails: bool,
}

impl Stages for Silent {
    fn name(&self) -> &'static str {
        "silent"
    }

    fn stage(&self) -> Result<Box<dyn Stage>, StageError> {
        Ok(Box::new(self.clone()))
    }

    fn is_parallel(&self) -> bool {
        false
    }
}

impl Stage for Silent {
    fn is_outside(&self, world: World) -> bool {
        world == World::Kernel
    }

    fn begin(
        &mut self,
        sim: &mut Sim,
        hosts: Vec<OutsideHost>,
        ends: Vec<OutsideEnd>,
        interval: Duration,
    ) -> Result<(), StageError> {
        assert!(interval > Duration::ZERO);
        assert!(hosts.iter().all(|host| sim.is_port(host.port)));
        let mut seen = self.seen.lock().expect("no panic");
        (seen.hosts, seen.ends) = (hosts, ends);
        Ok(())
    }

    fn run_until(&mut self, sim: &mut Sim, until: Instant) -> Result<(), StageError> {
        if self.fails {
            return Err(StageError::Machine("the clock has stopped".to_owned()));
        }
        sim.run_until(until);
        let mut seen = self.seen.lock().expect("no panic");
        seen.until.push(until);
        let ports: Vec<_> = seen.hosts.iter().map(|host| host.port).collect();
        for port in ports {
            while sim.arrived(port, |_, _| ()).is_some() {
                seen.packets += 1;
            }
        }
        Ok(())
    }

    fn report(&self, end: usize) -> EndReport {
        let seen = self.seen.lock().expect("no panic");
        let accepts = matches!(seen.ends[end].role, Role::Accept { .. });
        let bytes = if accepts { 1_000.0 * seen.until.len() as f64 } else { 0.0 };
        EndReport { metrics: [("received_bytes".to_owned(), bytes)].into(), times: vec![] }
    }

    fn finish(&mut self) -> (Vec<ConnRecord>, Option<Validity>) {
        (vec![], Some(Validity { reasons: vec!["nobody answers".to_owned()], ..Validity::default() }))
    }
}

fn scenario() -> Scenario {
    Scenario::parse(SCENARIO, "stage.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_stage_learns_of_hosts_outside_and_of_the_ends_of_flows_on_them() {
    let stage = Silent::default();
    run_one_on(&stage, &scenario(), 0, 2).expect("it runs");
    let seen = stage.seen.lock().expect("no panic");
    let [host] = seen.hosts.as_slice() else { panic!("one host: {:?}", seen.hosts) };
    assert_eq!((host.name.as_str(), host.world, host.config.mtu), ("b", World::Kernel, 1_400));
    assert_eq!(host.kernel.cc.as_ref().map(|cc| cc.value.as_str()), Some("bbr"));
    let sysctls: Vec<_> =
        host.kernel.sysctls.iter().map(|set| (set.name.as_str(), set.value.as_str())).collect();
    assert_eq!(sysctls, [("net.ipv4.tcp_sack", "0"), ("net.ipv4.tcp_ecn", "1")]);
    let place = &host.kernel.sysctls[1].place;
    assert!(place.starts_with("stage.toml:") && place.ends_with("net.ipv4.tcp_ecn"), "{place}");
    let [up, down] = seen.ends.as_slice() else { panic!("two ends: {:?}", seen.ends) };
    assert!(matches!(up.kind, AppKind::Bulk { .. }) && !up.sends && up.seed == 9);
    assert_eq!(up.role, Role::Accept { port: 1_024 });
    let start = Instant::ZERO + Duration::from_secs(1);
    let Role::Open { to, start: begins } = down.role else { panic!("{:?}", down.role) };
    assert_eq!((to.port(), begins, down.sends), (1_025, start, false), "it asks, and receives");
    assert!(seen.packets > 0, "SYNs of a have come");
    assert_eq!(seen.until.last(), Some(&(Instant::ZERO + Duration::from_secs(2))));
}

#[test]
fn results_are_what_hosts_outside_report() {
    let result = run_one_on(&Silent::default(), &scenario(), 0, 0).expect("it runs").result;
    let up = &result.flows[0];
    // Between the beginning and the end of the window time was let pass once.
    assert_eq!((up.goodput_bps, up.received_bytes), (8_000.0, 3_000));
    assert_eq!((up.cc.as_str(), up.ack.as_str()), ("cubic", "kernel"));
    let down = &result.flows[1];
    assert_eq!((down.cc.as_str(), down.ack.as_str()), ("cubic", "kernel"));
    let validity = result.validity.expect("its time was not virtual");
    assert!(!validity.is_valid());
    let hosts: Vec<&str> = result.hosts.iter().map(|host| host.host.as_str()).collect();
    assert_eq!(hosts, ["a"], "schedulers of hosts inside");
}

#[test]
fn what_stops_a_stage_stops_the_run() {
    let stage = Silent { fails: true, ..Silent::default() };
    let error = run_one_on(&stage, &scenario(), 0, 0).expect_err("it fails");
    assert!(matches!(error, RunError::Stage(_)), "{error:?}");
    assert_eq!(error.to_string(), "the clock has stopped");
}

#[test]
fn results_of_one_stage_are_not_taken_for_those_of_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = RunOptions { out: Some(folder.path().to_owned()), ..RunOptions::default() };
    let silent = run_on(&Silent::default(), &scenario(), &options).expect("it runs");
    assert_eq!(silent.resumed, 0);
    let again = run_on(&Silent::default(), &scenario(), &options).expect("it runs");
    assert_eq!((again.resumed, &again.results), (1, &silent.results));
    let simulated = ackline_lab::run(&scenario(), &options).expect("it runs");
    assert_eq!((simulated.resumed, &simulated.results[0].validity), (0, &None));
}
