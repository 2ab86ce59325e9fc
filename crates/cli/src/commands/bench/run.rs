//! A test while data flows: the same for a client and a server, but for who ends it.

use super::meter::Meter;
use super::protocol::{Control, Results, StreamResult, TestParameters, TestState};
use super::report::record::{Connected, End, Length, StreamPolicies, StreamTotal, Total};
use super::screen::Screen;
use super::stream::{Bitrate, DataStream, Goal, Restarts, Sending, Stopped};
use crate::args::limits::MAX_TIME;
use crate::failure::{Exit, Failure};
use crate::network::peer;
use crate::signals::Signals;
use ackline::core::{Duration, Instant};
use ackline::runtime::{TcpStream, timer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::JoinSet;

/// A test in which nothing moves for this long, and need not at its bitrate, is over.
const IDLE_LIMIT: Duration = Duration::from_secs(120);
/// What a client may be late with the end of a test of a known time.
const OVERDUE: Duration = Duration::from_secs(60);
/// If a data connection ends, the control connection has this long to say why.
const EXPLANATION: Duration = Duration::from_secs(1);
/// Between two looks at whether everything was acknowledged.
const FLUSH_TICK: Duration = Duration::from_millis(1);
/// Longest time between two looks at what has moved.
const LOOK: Duration = Duration::from_secs(1);

/// Role of this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Server,
}

/// A test from its first byte of data on.
pub(super) struct TestRun {
    role: Role,
    length: Length,
    omit: Duration,
    streams: Vec<DataStream>,
    tasks: JoinSet<Stopped>,
    goal: Arc<Goal>,
    restarts: Restarts,
    ended: Arc<AtomicBool>,
    meter: Meter,
    started: Instant,
    /// The end of what does not count, while it lies ahead.
    omit_until: Option<Instant>,
    /// Bytes that had reached their application or been acknowledged, and when that was news.
    moved: (u64, Instant),
    /// Longest time without such news.
    idle_limit: Duration,
    /// Streams whose senders have sent all that was wanted.
    finished: usize,
    /// Why a data connection ended too early, and until when the peer may explain it.
    broken: Option<(Failure, Instant)>,
}

impl TestRun {
    /// Lets data flow.
    pub(super) fn start(
        role: Role,
        parameters: &TestParameters,
        interval: Option<Duration>,
        mut streams: Vec<DataStream>,
    ) -> Self {
        let omit = Duration::from_secs(parameters.omit.into());
        let goal = Arc::new(match role {
            Role::Client => Goal::new(parameters.length, parameters.block),
            Role::Server => Goal::endless(),
        });
        let restarts = Restarts::default();
        let ended = Arc::new(AtomicBool::new(false));
        let sending = Sending {
            // At most MAX_BLOCK.
            block: usize::try_from(parameters.block).unwrap_or(usize::MAX),
            bitrate: (parameters.bitrate > 0)
                .then(|| Bitrate { rate: parameters.bitrate, burst: parameters.burst.max(1) }),
            restarts: restarts.clone(),
            ended: ended.clone(),
        };
        let now = timer::now();
        let omitting = omit > Duration::ZERO;
        let meter = Meter::start(now, interval, omitting, &streams);
        if !omitting {
            goal.count();
        }
        let mut tasks = JoinSet::new();
        for stream in &mut streams {
            stream.start(&sending, &goal, &mut tasks);
        }
        Self {
            role,
            length: parameters.length,
            omit,
            streams,
            tasks,
            goal,
            restarts,
            ended,
            meter,
            started: now,
            omit_until: omitting.then(|| now + omit),
            moved: (0, now),
            idle_limit: IDLE_LIMIT + between_bursts(parameters),
            finished: 0,
            broken: None,
        }
    }

    /// Measures until the test is over: by what this end decides (`None`), or by what the peer
    /// says.
    pub(super) async fn measure(
        &mut self,
        control: &mut Control<TcpStream>,
        signals: &mut Signals,
        screen: &mut Screen,
    ) -> Result<Option<TestState>, Failure> {
        let goal = self.goal.clone();
        loop {
            let wait = self.next_look().since(timer::now());
            tokio::select! {
                state = control.receive() => return state.map(Some),
                Some(stopped) = self.tasks.join_next() => {
                    // A task that panicked is a mistake of this program.
                    let stopped = stopped.map_err(|error| Failure::new(Exit::Incomplete, error.to_string()))?;
                    self.note(&stopped);
                }
                () = goal.reached() => return self.over().map(|()| None),
                signal = signals.next() => return Err(signal.failure("the test was interrupted")),
                () = tokio::time::sleep(wait.into()) => {}
            }
            if self.look(timer::now(), screen)? {
                return Ok(None);
            }
        }
    }

    /// When something is due.
    fn next_look(&self) -> Instant {
        let mut next = self.moved.1.max(timer::now()) + LOOK;
        let ends = match (self.role, self.length) {
            (Role::Client, Length::Seconds(seconds)) if seconds > 0 => Some(self.end_after(seconds)),
            _ => None,
        };
        let flush = self.all_sent().then(|| timer::now() + FLUSH_TICK);
        let explained = self.broken.as_ref().map(|(_, until)| *until);
        for due in [self.meter.next(), self.omit_until, ends, flush, explained].into_iter().flatten() {
            next = next.min(due);
        }
        next
    }

    fn end_after(&self, seconds: u32) -> Instant {
        self.started + self.omit + Duration::from_secs(seconds.into())
    }

    fn all_sent(&self) -> bool {
        self.finished > 0 && self.finished == self.streams.iter().filter(|stream| stream.sends).count()
    }

    /// Does what is due; true if the test is over.
    fn look(&mut self, now: Instant, screen: &mut Screen) -> Result<bool, Failure> {
        if self.omit_until.is_some_and(|until| now >= until) {
            self.omit_until = None;
            if let Some(rest) = self.meter.rest(now, &self.streams) {
                screen.interval(rest)?;
            }
            self.meter.restart(now, &self.streams);
            self.restarts.restart();
            self.goal.count();
        }
        // The last interval of a test ends where that ends.
        if self.is_over(now) {
            return self.over().map(|()| true);
        }
        if self.meter.next().is_some_and(|next| now >= next) {
            screen.interval(self.meter.tick(now, &self.streams))?;
        }
        if let Some((failure, _)) = self.broken.take_if(|(_, until)| now >= *until) {
            return Err(failure);
        }
        let moved = self.streams.iter().map(progress).fold(0, u64::wrapping_add);
        if moved != self.moved.0 {
            self.moved = (moved, now);
        }
        if now.since(self.moved.1) >= self.idle_limit {
            let seconds = self.idle_limit.as_nanos() / 1_000_000_000;
            return Err(self.failure(&format!("moved no data for {seconds} s")));
        }
        match (self.role, self.length) {
            // A client that gives no time tests until its user ends it.
            (Role::Server, Length::Seconds(seconds))
                if seconds > 0 && now >= self.end_after(seconds) + OVERDUE =>
            {
                Err(self.failure("did not end the test in time"))
            }
            _ => Ok(false),
        }
    }

    /// The end of a test: a failure if a data connection ended before that, explained or not.
    fn over(&mut self) -> Result<(), Failure> {
        self.broken.take().map_or(Ok(()), |(failure, _)| Err(failure))
    }

    /// A client's time is over, or its senders have sent what was wanted and the server has it.
    fn is_over(&self, now: Instant) -> bool {
        match (self.role, self.length) {
            (Role::Client, Length::Seconds(seconds)) => seconds > 0 && now >= self.end_after(seconds),
            _ => self.all_sent() && self.streams.iter().all(acknowledged),
        }
    }

    /// Books the end of a stream's task.
    fn note(&mut self, stopped: &Stopped) {
        let Some(stream) = self.streams.iter().find(|stream| stream.id == stopped.id) else { return };
        let failure = match &stopped.outcome {
            Ok(()) if stream.sends => {
                self.finished += 1;
                return;
            }
            Ok(()) => Failure::new(Exit::Network, format!("{} closed a data connection", stream.remote)),
            Err(error) => peer::lost(stream.remote, error),
        };
        if self.broken.is_none() {
            self.broken = Some((failure, timer::now() + EXPLANATION));
        }
    }

    fn failure(&self, what: &str) -> Failure {
        let peer = self.streams.first().map_or_else(String::new, |stream| stream.remote.to_string());
        Failure::new(Exit::Network, format!("{peer} {what}"))
    }

    /// The other end has said that the test is over. A stock client reads on until it has a whole
    /// block or meets a FIN.
    pub(super) fn finish(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Stops the streams' tasks and takes the last measurement. The connections stay until this is
    /// dropped.
    pub(super) async fn stop(&mut self, screen: &mut Screen) -> Result<Measurements, Failure> {
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
        let now = timer::now();
        if let Some(rest) = self.meter.rest(now, &self.streams) {
            screen.interval(rest)?;
        }
        // What did not count is all there is if the test ended that early.
        let streams = self.meter.totals(now, &self.streams);
        let known = || self.streams.iter().filter_map(|stream| Some((stream, stream.info().ok()?)));
        let congestion = known().next().map(|(_, info)| info.cc.to_owned());
        let policies = known()
            .map(|(stream, info)| StreamPolicies { socket: stream.shown(), policies: (&info).into() })
            .collect();
        Ok(Measurements {
            policies,
            streams: self
                .streams
                .iter()
                .zip(streams)
                .map(|(stream, total)| OwnTotal::new(stream, total))
                .collect(),
            cpu: self.meter.cpu(),
            congestion,
        })
    }
}

/// How far a stream has come for its receiver.
fn progress(stream: &DataStream) -> u64 {
    if stream.sends { stream.info().map_or(0, |info| info.bytes_acked) } else { stream.moved() }
}

/// What a bitrate has a sender wait between two bursts.
fn between_bursts(parameters: &TestParameters) -> Duration {
    if parameters.bitrate == 0 {
        return Duration::ZERO;
    }
    let bits = u128::from(parameters.block) * 8 * u128::from(parameters.burst.max(1));
    let nanos = bits * 1_000_000_000 / u128::from(parameters.bitrate);
    // A day is the longest test.
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(Duration::from_secs(MAX_TIME.into()))
}

/// The peer's TCP has everything that was written.
fn acknowledged(stream: &DataStream) -> bool {
    // If the connection is gone, its task says so.
    !stream.sends || stream.info().is_ok_and(|info| info.unacked == 0 && info.notsent_bytes == 0)
}

/// What this end measured.
pub(super) struct Measurements {
    policies: Vec<StreamPolicies>,
    streams: Vec<OwnTotal>,
    cpu: super::report::record::Cpu,
    congestion: Option<String>,
}

struct OwnTotal {
    id: u32,
    shown: u32,
    sends: bool,
    total: Total,
}

impl OwnTotal {
    fn new(stream: &DataStream, total: Total) -> Self {
        Self { id: stream.id, shown: stream.shown(), sends: stream.sends, total }
    }
}

impl Measurements {
    /// For the other end.
    pub(super) fn results(&self) -> Results {
        let streams = self.streams.iter().map(|own| StreamResult {
            id: own.id,
            bytes: own.total.bytes,
            retransmits: own.total.retransmits,
            time: own.total.time,
        });
        Results {
            cpu: self.cpu,
            sends: self.streams.iter().any(|own| own.sends),
            congestion: self.congestion.clone(),
            server_output: None,
            streams: streams.collect(),
        }
    }

    /// For the report, with what the other end has told, if it has.
    pub(super) fn end(&self, told: Option<&Results>) -> End {
        let total = |own: &OwnTotal| {
            let theirs = told.and_then(|told| told.of(own.id)).map(|told| Total {
                bytes: told.bytes,
                time: told.time,
                retransmits: told.retransmits.filter(|_| !own.sends),
            });
            let (sent, received) =
                if own.sends { (Some(own.total), theirs) } else { (theirs, Some(own.total)) };
            StreamTotal { id: own.shown, sent, received }
        };
        let theirs = told.and_then(|told| told.congestion.clone());
        let sends = self.streams.iter().any(|own| own.sends);
        let (sender, receiver) =
            if sends { (self.congestion.clone(), theirs) } else { (theirs, self.congestion.clone()) };
        End {
            streams: self.streams.iter().map(total).collect(),
            local_cpu: self.cpu,
            remote_cpu: told.map(|told| told.cpu),
            sender_congestion: sender,
            receiver_congestion: receiver,
            policies: self.policies.clone(),
        }
    }
}

/// For the report.
pub(super) fn connected(stream: &DataStream) -> Connected {
    Connected { id: stream.shown(), sends: stream.sends, local: stream.local, remote: stream.remote }
}

#[cfg(test)]
mod tests;
