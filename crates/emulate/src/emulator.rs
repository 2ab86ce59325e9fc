//! The network's events, at their time by the real clock.

use crate::port::{AttachError, Offload, Port, PortStats};
use crate::wake_up::WakeUp;
use ackline_netsim::{NodeId, Sim};
use ackline_runtime::pacing::{Wait, Waiter, let_others_run};
use ackline_runtime::timer::{self, Timer};
use ackline_runtime::{Device, Pacing};
use ackline_tcp_core::{Duration, Instant};
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

/// Packets taken from each device before others of the runtime's tasks run.
const BATCH: usize = 256;

/// A sleep that ends before something is due.
#[derive(Clone, Copy, Debug)]
struct Nap {
    until: Instant,
    due: Instant,
}

/// The clock and the devices of a simulation in real time.
#[derive(Debug)]
pub struct Emulator {
    ports: Vec<Port>,
    offload: Offload,
    /// The real time of the simulation's zero.
    epoch: Instant,
    timer: Timer,
    waiter: Waiter,
    /// It never sleeps.
    awake: bool,
    wake_up: WakeUp,
    nap: Option<Nap>,
    /// When it was decided to let other tasks run until the next event is near.
    yielded: Option<Instant>,
}

impl Emulator {
    /// For a simulation that has not run yet. Its time zero is now. With [`Pacing::Spin`] it stays
    /// awake as long as it runs: a packet enters the network when it is seen, so one that had to
    /// wake the emulator up would enter late.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O (Linux) or time (elsewhere) enabled.
    pub fn new(pacing: Pacing) -> io::Result<Self> {
        Ok(Self {
            ports: vec![],
            offload: Offload::default(),
            epoch: timer::now(),
            timer: Timer::new()?,
            waiter: Waiter::new(pacing),
            awake: matches!(pacing, Pacing::Spin { .. }),
            wake_up: WakeUp::new(),
            nap: None,
            yielded: None,
        })
    }

    /// How super-packets of all devices pass; to be set before any is attached. By default they are
    /// split.
    #[must_use]
    pub fn with_offload(self, offload: Offload) -> Self {
        Self { offload, ..self }
    }

    /// Attaches `device` to a port of `sim`.
    ///
    /// # Errors
    /// If `port` is not a port; if super-packets are to pass whole, and the device carries none, or
    /// a link corrupts packets.
    pub fn attach(&mut self, sim: &Sim, port: NodeId, device: Box<dyn Device>) -> Result<(), AttachError> {
        if !sim.is_port(port) {
            return Err(AttachError::NotAPort(port));
        }
        if self.offload == Offload::Whole && sim.corrupts() {
            return Err(AttachError::Corrupts);
        }
        self.ports.push(Port::new(port, device, self.offload)?);
        Ok(())
    }

    /// The real time of the simulation's zero.
    #[must_use]
    pub const fn epoch(&self) -> Instant {
        self.epoch
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

    /// Runs `sim` for ever, or until a device fails. Can be dropped at any time, and run again.
    ///
    /// # Errors
    /// If a device or the timer fails.
    pub async fn run(&mut self, sim: &mut Sim) -> io::Result<()> {
        self.run_until(sim, Instant::FAR_FUTURE).await
    }

    /// Runs all events of `sim` up to and including `end`, an instant of the simulation, at their
    /// times.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_until(&mut self, sim: &mut Sim, end: Instant) -> io::Result<()> {
        poll_fn(|cx| self.poll(cx, sim, end)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>, sim: &mut Sim, end: Instant) -> Poll<io::Result<()>> {
        if let Some(decided) = self.yielded.take() {
            self.waiter.on_turn(timer::now().since(decided));
        }
        let mut held = false;
        loop {
            let more = self.turn(cx, sim, end)?;
            if self.virtual_now() >= end {
                self.catch_up(sim, end);
                return Poll::Ready(Ok(()));
            }
            if more {
                let_others_run(cx);
                return Poll::Pending;
            }
            let next = sim.next_at().unwrap_or(end).min(end);
            if next == Instant::FAR_FUTURE && !self.awake {
                // Only a packet brings it on.
                return Poll::Pending;
            }
            let now = timer::now();
            if let Some(Nap { until, due }) = self.nap.take_if(|nap| nap.until <= now) {
                self.wake_up.take(now.since(until));
                if now < due {
                    timer::spin_until(due);
                    continue;
                }
            }
            match self.waiter.wait(now, self.real(next)) {
                Wait::Sleep(until) if !self.awake => {
                    let early = until - self.wake_up.median();
                    // What is due sooner waits for the wake-up: on a busy link it is one for
                    // several packets.
                    self.nap = (early.since(now) > self.wake_up.median())
                        .then(|| Nap { until: early, due: self.real(next) });
                    self.timer.arm(Some(self.nap.map_or(until, |nap| nap.until)))?;
                    ready!(self.timer.poll_expired(cx))?;
                }
                Wait::Hold(_, at) if !held => {
                    timer::spin_until(at);
                    held = true;
                }
                // Also between two events in quick succession: a busy link has no others.
                Wait::Sleep(_) | Wait::Yield | Wait::Hold(..) => {
                    self.yielded = Some(now);
                    let_others_run(cx);
                    return Poll::Pending;
                }
            }
        }
    }

    /// Everything that is due, and the packets that wait at the devices. True if more may wait
    /// there.
    fn turn(&mut self, cx: &mut Context<'_>, sim: &mut Sim, end: Instant) -> io::Result<bool> {
        let mut more = false;
        self.catch_up(sim, end);
        for index in 0..self.ports.len() {
            // Each has a share of its own, so that a flood at one port keeps nothing out at the
            // others.
            let mut taken = 0;
            loop {
                if taken >= BATCH {
                    more = true;
                    break;
                }
                let received = self.ports[index].receive(sim, self.offload)?;
                taken += received;
                if received > 0 {
                    // Each packet enters at its own instant, and what has become due meanwhile
                    // leaves.
                    self.catch_up(sim, end);
                } else if self.ports[index].poll_readable(cx)?.is_pending() {
                    break;
                }
            }
        }
        Ok(more)
    }

    /// Runs the simulation up to now, but not beyond `end`, and hands over what has arrived.
    fn catch_up(&mut self, sim: &mut Sim, end: Instant) {
        sim.run_until(self.virtual_now().min(end));
        for port in &mut self.ports {
            port.send(sim, self.epoch);
        }
    }

    /// The simulation's instant by the real clock.
    fn virtual_now(&self) -> Instant {
        Instant::ZERO + self.elapsed()
    }

    /// The real time of an instant of the simulation.
    fn real(&self, at: Instant) -> Instant {
        self.epoch + at.since(Instant::ZERO)
    }
}
