//! The network's events, at their time by the real clock.

use crate::port::{AttachError, Port, PortStats};
use ackline_netsim::{NodeId, Sim};
use ackline_runtime::pacing::{Wait, Waiter, let_others_run};
use ackline_runtime::timer::{self, Timer};
use ackline_runtime::{Device, Pacing};
use ackline_tcp_core::{Duration, Instant};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

/// Packets taken from each device before others of the runtime's tasks run.
const BATCH: usize = 256;

/// A simulation in real time.
#[derive(Debug)]
pub struct Emulator {
    sim: Sim,
    ports: Vec<Port>,
    /// The real time of the simulation's zero.
    epoch: Instant,
    timer: Timer,
    waiter: Waiter,
    /// When it was decided to let other tasks run until the next event is near.
    yielded: Option<Instant>,
}

impl Emulator {
    /// Drives `sim`, which has not run yet. Its time zero is now.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O (Linux) or time (elsewhere) enabled.
    pub fn new(sim: Sim, pacing: Pacing) -> io::Result<Self> {
        Ok(Self {
            sim,
            ports: vec![],
            epoch: timer::now(),
            timer: Timer::new()?,
            waiter: Waiter::new(pacing),
            yielded: None,
        })
    }

    /// Attaches `device` to a port of the simulation.
    ///
    /// # Errors
    /// If `port` is not a port, or the device has offload.
    pub fn attach(&mut self, port: NodeId, device: Box<dyn Device>) -> Result<(), AttachError> {
        if !self.sim.is_port(port) {
            return Err(AttachError::NotAPort(port));
        }
        self.ports.push(Port::new(port, device)?);
        Ok(())
    }

    /// The simulation.
    #[must_use]
    pub const fn sim(&self) -> &Sim {
        &self.sim
    }

    /// The simulation, to inspect it or to change it.
    pub const fn sim_mut(&mut self) -> &mut Sim {
        &mut self.sim
    }

    /// What passed each port, in the order in which they were attached.
    pub fn ports(&self) -> impl Iterator<Item = &PortStats> {
        self.ports.iter().map(|port| &port.stats)
    }

    /// Time since the simulation's zero.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        timer::now().since(self.epoch)
    }

    /// Runs for ever, or until a device fails. Can be dropped at any time, and run again.
    ///
    /// # Errors
    /// If a device or the timer fails.
    pub async fn run(&mut self) -> io::Result<Infallible> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Infallible>> {
        if let Some(decided) = self.yielded.take() {
            self.waiter.on_turn(timer::now().since(decided));
        }
        let mut held = false;
        loop {
            if self.turn(cx)? {
                let_others_run(cx);
                return Poll::Pending;
            }
            let Some(next) = self.sim.next_at() else {
                // Only a packet brings it on.
                return Poll::Pending;
            };
            let now = timer::now();
            match self.waiter.wait(now, self.real(next)) {
                Wait::Sleep(until) => {
                    self.timer.arm(Some(until))?;
                    let woken = ready!(self.timer.poll_expired(cx))?;
                    self.waiter.on_wake_up(woken.since(until));
                }
                Wait::Hold(_, at) if !held => {
                    timer::spin_until(at);
                    held = true;
                }
                // Also between two events in quick succession: a busy link has no others.
                Wait::Yield | Wait::Hold(..) => {
                    self.yielded = Some(now);
                    let_others_run(cx);
                    return Poll::Pending;
                }
            }
        }
    }

    /// Everything that is due, and the packets that wait at the devices. True if more may wait there.
    fn turn(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut more = false;
        self.catch_up();
        for index in 0..self.ports.len() {
            // Each has a share of its own, so that a flood at one port keeps nothing out at the others.
            let mut taken = 0;
            loop {
                if taken == BATCH {
                    more = true;
                    break;
                }
                if self.ports[index].receive(&mut self.sim)? {
                    taken += 1;
                    // Each packet enters at its own instant, and what has become due meanwhile leaves.
                    self.catch_up();
                } else if self.ports[index].poll_readable(cx)?.is_pending() {
                    break;
                }
            }
        }
        Ok(more)
    }

    /// Runs the simulation up to now, and hands over what has arrived.
    fn catch_up(&mut self) {
        self.sim.run_until(Instant::ZERO + timer::now().since(self.epoch));
        for port in &mut self.ports {
            port.send(&mut self.sim, self.epoch);
        }
    }

    /// The real time of an instant of the simulation.
    fn real(&self, at: Instant) -> Instant {
        self.epoch + at.since(Instant::ZERO)
    }
}
