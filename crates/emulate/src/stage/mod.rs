//! Scenarios in real time: the network is the simulator's, its clock is the machine's, and hosts
//! are where the scenario says.
//!
//! ```text
//!   world = "kernel"                  world = "live"                world = "virtual"
//!   applications (tokio)              applications (tokio)          applications of netsim
//!   kernel's TCP, a namespace         Stack of ackline              an endpoint inside the simulation
//!   TUN ───────── port                channel ─────── port          node
//!                   └──────────────── links, queues ────┴──────────────┘
//! ```

mod apps;
mod kernel;
mod live;
mod tally;

use crate::emulator::Emulator;
use crate::load::LoadWatch;
use crate::port::{LATEST, Offload, PortStats};
use ackline_lab::stage::{
    EndReport, OutsideEnd, OutsideHost, Role, Stage, StageError, Stages, Validity, World,
};
use ackline_netsim::record::ConnRecord;
use ackline_netsim::{NodeId, Sim};
use ackline_runtime::priority::Priority;
use ackline_runtime::{Device, Pacing};
use ackline_tcp_core::{Duration, Instant};
use apps::Task;
use kernel::KernelHost;
use live::LiveHost;
use std::fmt::Display;
use std::sync::Arc;
use tally::Tally;
use tokio::runtime::{Builder, Handle, Runtime};

/// Runs in real time, one after the other.
///
/// Hosts of the kernel need the rights to make network namespaces and TUN devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealTime {
    /// How departures are waited for.
    pub pacing: Pacing,
    /// How super-packets pass. Unless it is off, hosts of the kernel have offload; live hosts have
    /// it if they pass whole.
    pub offload: Offload,
    /// The priority of the thread that emulates; `None`: the usual one.
    pub priority: Option<Priority>,
}

impl RealTime {
    /// What runs depend on and their scenario does not say, in words.
    #[must_use]
    pub fn conditions(&self) -> Vec<String> {
        let super_packets = match self.offload {
            Offload::Off => "hosts have no segmentation offload",
            Offload::Split => "super-packets are split where they enter the network",
            Offload::Whole => "super-packets pass whole, each as one packet of a queue",
        };
        let priority =
            self.priority.map(|priority| format!("the emulator's thread has the priority {priority}"));
        let throttled = self.priority.filter(|_| self.spins()).and_then(Priority::throttled).map(|time| {
            format!(
                "the kernel may stop a real-time thread that spins for {:.0} ms of each second (sysctl kernel.sched_rt_runtime_us)",
                time.as_secs_f64() * 1e3
            )
        });
        let spins = self.spins().then(|| "the emulator's thread spins".to_owned());
        [Some(super_packets.to_owned()), spins, priority, throttled].into_iter().flatten().collect()
    }

    /// True if its thread never sleeps.
    #[must_use]
    pub const fn spins(&self) -> bool {
        matches!(self.pacing, Pacing::Spin { .. })
    }
}

impl RealTime {
    /// Makes a host of the kernel, and drops it: says at once what a run would say later.
    ///
    /// # Errors
    /// If the machine has no TUN devices, or does not permit them or namespaces.
    pub fn probe() -> Result<(), StageError> {
        kernel::probe()
    }
}

impl Stages for RealTime {
    fn name(&self) -> &'static str {
        "real-time "
    }

    fn stage(&self) -> Result<Box<dyn Stage>, StageError> {
        if let Some(priority) = self.priority {
            priority.set_for_thread().map_err(|error| StageError::Machine(error.to_string()))?;
        }
        // Stacks of hosts beside the emulator, which may spin.
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(failed("start the runtime"))?;
        Ok(Box::new(RealStage { kind: *self, runtime, emulator: None, hosts: Hosts::default() }))
    }

    fn is_parallel(&self) -> bool {
        false
    }
}

/// The error for something that the machine does not do.
fn failed<E: Display>(what: impl Display) -> impl FnOnce(E) -> StageError {
    move |error| StageError::Machine(format!("cannot {what}: {error}"))
}

/// A host outside the simulation, which has begun.
#[derive(Debug)]
enum Host {
    Kernel(KernelHost),
    Live(LiveHost),
}

impl Host {
    fn begin(&mut self, runtime: &Handle, epoch: Instant) -> Result<(), StageError> {
        match self {
            Self::Kernel(host) => host.begin(epoch),
            Self::Live(host) => {
                host.begin(runtime, epoch);
                Ok(())
            }
        }
    }
}

/// The hosts of a scenario that are outside its simulation, and their applications. They are gone
/// when this is dropped.
#[derive(Debug, Default)]
pub struct Hosts {
    hosts: Vec<Host>,
    tallies: Vec<Arc<Tally>>,
}

/// Devices, each with the port at which its packets enter and leave.
pub type Devices = Vec<(NodeId, Box<dyn Device>)>;

impl Hosts {
    /// Makes them, and what listens on them; `runtime` drives stacks and devices. Connections of
    /// `ends` are sampled every `interval`.
    ///
    /// # Errors
    /// If a host cannot be made.
    pub fn start(
        kind: RealTime,
        runtime: &Handle,
        hosts: Vec<OutsideHost>,
        ends: Vec<OutsideEnd>,
        interval: Duration,
    ) -> Result<(Self, Devices), StageError> {
        let mut started = Self::default();
        let mut tasks: Vec<Vec<Task>> = hosts.iter().map(|_| vec![]).collect();
        for (place, end) in ends.into_iter().enumerate() {
            let tally = Arc::new(Tally::new(&end, hosts[end.host].port.index()));
            started.tallies.push(tally.clone());
            tasks[end.host].push(Task::new(end, place, tally, interval));
        }
        let mut devices: Devices = vec![];
        for (host, tasks) in hosts.into_iter().zip(tasks) {
            let port = host.port;
            let (host, device) = match host.world {
                World::Kernel => {
                    let (host, device) = KernelHost::start(host, tasks, kind.offload, runtime)?;
                    (Host::Kernel(host), device)
                }
                World::Live | World::Virtual => {
                    let (host, device) = LiveHost::start(host, tasks, kind, runtime)?;
                    (Host::Live(host), device)
                }
            };
            started.hosts.push(host);
            devices.push((port, device));
        }
        Ok((started, devices))
    }

    /// Their applications begin; the simulation's time zero was at `epoch`.
    ///
    /// # Errors
    /// If a host is gone.
    pub fn begin(&mut self, runtime: &Handle, epoch: Instant) -> Result<(), StageError> {
        self.hosts.iter_mut().try_for_each(|host| host.begin(runtime, epoch))
    }
}

/// One run.
#[derive(Debug)]
struct RealStage {
    kind: RealTime,
    hosts: Hosts,
    emulator: Option<(Emulator, LoadWatch)>,
    /// Last, because what came before may use it.
    runtime: Runtime,
}

impl Stage for RealStage {
    fn is_outside(&self, world: World) -> bool {
        world != World::Virtual
    }

    fn begin(
        &mut self,
        sim: &mut Sim,
        hosts: Vec<OutsideHost>,
        ends: Vec<OutsideEnd>,
        interval: Duration,
    ) -> Result<(), StageError> {
        let runtime = self.runtime.handle().clone();
        let (hosts, devices) = Hosts::start(self.kind, &runtime, hosts, ends, interval)?;
        self.hosts = hosts;
        let _entered = runtime.enter();
        let emulator = Emulator::new(self.kind.pacing).map_err(failed("start the clock"))?;
        let mut emulator = emulator.with_offload(self.kind.offload);
        for (port, device) in devices {
            emulator.attach(sim, port, device).map_err(failed("attach a host"))?;
        }
        self.hosts.begin(&runtime, emulator.epoch())?;
        self.emulator = Some((emulator, LoadWatch::start()));
        Ok(())
    }

    fn run_until(&mut self, sim: &mut Sim, until: Instant) -> Result<(), StageError> {
        let Some((emulator, _)) = &mut self.emulator else { return Ok(()) };
        self.runtime.block_on(emulator.run_until(sim, until)).map_err(failed("emulate the network"))
    }

    fn report(&self, end: usize) -> EndReport {
        self.hosts.tallies.get(end).map(|tally| tally.report()).unwrap_or_default()
    }

    fn finish(&mut self) -> (Vec<ConnRecord>, Option<Validity>) {
        let validity = self.emulator.take().map(|(emulator, load)| {
            let mut validity = judge(emulator.ports());
            validity.reasons.extend(load.read().reasons(emulator.elapsed(), self.kind.spins()));
            validity.conditions = self.kind.conditions();
            validity
        });
        self.hosts.hosts.clear();
        (self.hosts.tallies.iter().flat_map(|tally| tally.connections()).collect(), validity)
    }
}

/// Whether departures were in time: by the port at which they were latest.
#[must_use]
pub fn judge<'a>(ports: impl Iterator<Item = &'a PortStats>) -> Validity {
    let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
    let mut validity = Validity::default();
    let mut refused = 0;
    for port in ports {
        for (most, quantile) in [(&mut validity.late_p50_us, 0.5), (&mut validity.late_p99_us, 0.99)] {
            *most = most.max(micros(port.lateness.quantile(quantile)));
        }
        validity.late_max_us = validity.late_max_us.max(micros(port.lateness.max()));
        refused += port.refused;
    }
    if validity.late_p99_us > micros(LATEST) {
        validity.reasons.push(format!(
            "one packet of a hundred reached its host {:.0} us late or later; at most {:.0} us are right",
            validity.late_p99_us,
            micros(LATEST)
        ));
    }
    if refused > 0 {
        validity.reasons.push(format!("{refused} packets found no room at their host"));
    }
    validity
}

/// True for the end that opens connections.
const fn opens(role: Role) -> bool {
    matches!(role, Role::Open { .. })
}
