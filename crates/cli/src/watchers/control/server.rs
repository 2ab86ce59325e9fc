//! Answering requests.

use super::limits::{ControlCounters, Limits, count};
use super::protocol::{About, Answer, Brief, ConnectionReport, Listening, Publishes, Request};
use crate::output::{self, clock};
use crate::settings::{PolicyNames, Settings};
use crate::watchers::background;
use crate::watchers::filter::{Filter, Subject};
use crate::watchers::publishing::Publishing;
use crate::watchers::recorded::RecordedCounters;
use crate::watchers::summary::{Census, Chunks, Summary};
use ackline::Registry;
use ackline::core::{State, WakeReason};
use ackline::registry::Change;
use ackline::runtime::{Stack, stack::ConnSnapshot, timer};
use std::io;
use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream, unix::OwnedWriteHalf};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Answers for one stack.
pub(super) struct Server {
    stack: Stack,
    registry: Registry,
    names: PolicyNames,
    about: About,
    limits: Limits,
    counters: ControlCounters,
    recorded: RecordedCounters,
    publishing: Option<Publishing>,
}

impl Server {
    pub(super) fn new(
        stack: Stack,
        settings: &Settings,
        command: &'static str,
        limits: Limits,
        recorded: RecordedCounters,
        publishing: Option<Publishing>,
    ) -> Self {
        let about = About {
            pid: std::process::id(),
            command: command.to_owned(),
            started: clock::micros_since_1970(),
        };
        Self {
            stack,
            registry: settings.registry().clone(),
            names: settings.names.clone(),
            about,
            limits,
            counters: ControlCounters::default(),
            recorded,
            publishing,
        }
    }

    /// Answers until `stopped`.
    pub(super) async fn run(self, listener: StdListener, stopped: oneshot::Receiver<()>) {
        // Fails only without a reactor, and the runtime has one.
        let Ok(listener) = UnixListener::from_std(listener) else { return };
        let server = Arc::new(self);
        let accept = async || listener.accept().await.map(|(stream, _)| stream);
        let attend = |stream| {
            let server = server.clone();
            async move {
                // A client that has gone wants no answer.
                if let Err(error) = server.attend(stream).await
                    && error.kind() == io::ErrorKind::TimedOut
                {
                    count(&server.counters.timeouts);
                }
            }
        };
        background::serve(server.limits.clients, stopped, accept, attend, |stream| server.refuse(&stream))
            .await;
    }

    /// There are too many clients.
    fn refuse(&self, stream: &UnixStream) {
        count(&self.counters.overflows);
        let most = self.limits.clients;
        let answer = Answer::Error(format!("too many clients: at most {most} at once"));
        // The buffer of a new socket takes it.
        let _ = stream.try_write(output::json_line(&answer).as_bytes());
    }

    /// One request of one client.
    async fn attend(&self, stream: UnixStream) -> io::Result<()> {
        let Limits { request, timeout: patience, .. } = self.limits;
        let (reader, writer) = stream.into_split();
        let mut writer = Writer { writer, patience };
        let mut line = Vec::new();
        let mut reader = BufReader::new(reader.take(request));
        match timeout(patience, reader.read_until(b'\n', &mut line)).await {
            Err(elapsed) => {
                let why = format!("no request within {} s", patience.as_secs_f64());
                writer.send(&Answer::Error(why)).await?;
                return Err(elapsed.into());
            }
            Ok(Err(error)) => return Err(error),
            Ok(Ok(0)) => return Ok(()),
            Ok(Ok(_)) => {}
        }
        let outcome = if line.last() == Some(&b'\n') {
            self.answer(&line, &mut writer).await?
        } else {
            Err(format!("not a line of at most {request} bytes"))
        };
        let (counter, last) = match outcome {
            Ok(done) => (&self.counters.requests, Answer::Done(done)),
            Err(why) => (&self.counters.refused, Answer::Error(why)),
        };
        count(counter);
        writer.send(&last).await
    }

    /// Answers a request. Returns what the last line says.
    async fn answer(&self, line: &[u8], writer: &mut Writer) -> io::Result<Result<usize, String>> {
        let request = match serde_json::from_slice(line) {
            Ok(request) => request,
            Err(error) => return Ok(Err(format!("not a request: {error}"))),
        };
        writer.send(&Answer::Stack(self.about.clone())).await?;
        match request {
            Request::Show { filter } => match Filter::parse(&filter) {
                Ok(filter) => self.show(&filter, writer).await.map(Ok),
                Err(why) => Ok(Err(why)),
            },
            Request::Set { options, filter } => {
                let parsed = Change::parse(&self.registry, &options)
                    .map_err(|error| error.to_string())
                    .and_then(|change| Filter::parse(&filter).map(|filter| (change, filter)));
                match parsed {
                    Ok((change, filter)) => Ok(self.set(&change, &filter).await),
                    Err(why) => Ok(Err(why)),
                }
            }
            Request::Summary => {
                let stats = self.stack.stats();
                let summary = Summary::new(self.names.clone(), &stats, Census::of(&self.stack, &stats));
                writer.send(&Answer::Summary(Box::new(summary))).await?;
                Ok(Ok(1))
            }
            Request::Top { filter } => match Filter::parse(&filter) {
                Ok(filter) => self.top(&filter, writer).await.map(Ok),
                Err(why) => Ok(Err(why)),
            },
            Request::Count => {
                let own = self.recorded.iter().filter(|counter| !counter.is_gauge);
                let own = own.map(|counter| (counter.name, counter.value));
                let counters: Vec<_> =
                    self.stack.counters().iter().chain(own).chain(self.counters.iter()).collect();
                let number = counters.len();
                writer.send(&Answer::Counters(counters)).await?;
                Ok(Ok(number))
            }
            Request::Publish { add, remove } => match self.publish(&add, &remove) {
                Ok(published) => {
                    for publishes in &published {
                        writer.send(&Answer::Published(publishes.clone())).await?;
                    }
                    Ok(Ok(published.len()))
                }
                Err(why) => Ok(Err(why)),
            },
        }
    }

    /// Changes what the proxy publishes, up to the first change that fails. Returns what it
    /// publishes then: nothing, of a command that is no proxy.
    fn publish(&self, add: &[String], remove: &[String]) -> Result<Vec<Publishes>, String> {
        let Some(publishing) = &self.publishing else {
            let nothing = add.is_empty() && remove.is_empty();
            let why = || format!("ackline {} publishes no ports; ackline proxy does", self.about.command);
            return if nothing { Ok(vec![]) } else { Err(why()) };
        };
        remove.iter().try_for_each(|text| publishing.remove(text))?;
        add.iter().try_for_each(|text| publishing.add(text))?;
        let published = publishing.list().into_iter();
        Ok(published
            .map(|one| Publishes { publish: one.publish.to_string(), listens: one.listens })
            .collect())
    }

    async fn show(&self, filter: &Filter, writer: &mut Writer) -> io::Result<usize> {
        let mut shown = 0;
        for (local, queued) in self.stack.listeners() {
            let subject = Subject { state: State::Listen, local, remote: None };
            if filter.selects(&subject) {
                writer.send(&Answer::Listener(Listening { local, queued })).await?;
                shown += 1;
            }
        }
        for chunk in Chunks::of(&self.stack) {
            let now = timer::now();
            let mut text = String::new();
            for ConnSnapshot { id, info, deadline, .. } in chunk {
                if filter.selects(&subject(&info)) {
                    let timer = deadline.map(|(at, reason)| (timer_name(reason), at));
                    let connection = ConnectionReport { id: format!("{id:?}"), now, timer, info };
                    text += &output::json_line(&Answer::Connection(Box::new(connection)));
                    shown += 1;
                }
            }
            writer.write(&text).await?;
        }
        Ok(shown)
    }

    async fn top(&self, filter: &Filter, writer: &mut Writer) -> io::Result<usize> {
        let (mut shown, mut census) = (0, Census::default());
        for chunk in Chunks::of(&self.stack) {
            let mut text = String::new();
            for ConnSnapshot { id, info, .. } in &chunk {
                census.add(info);
                if filter.selects(&subject(info)) {
                    text += &output::json_line(&Answer::Brief(Brief::new(*id, info)));
                    shown += 1;
                }
            }
            writer.write(&text).await?;
        }
        let stats = self.stack.stats();
        census.add_records(&self.stack, &stats);
        let summary = Summary::new(self.names.clone(), &stats, census);
        writer.send(&Answer::Summary(Box::new(summary))).await?;
        Ok(shown)
    }

    async fn set(&self, change: &Change, filter: &Filter) -> Result<usize, String> {
        let mut changed = 0;
        for chunk in Chunks::of(&self.stack) {
            for found in chunk.iter().filter(|found| filter.selects(&subject(&found.info))) {
                // It may have gone meanwhile.
                if let Some(outcome) =
                    self.stack.with_connection(found.id, |conn, now| change.apply(conn, now))
                {
                    outcome.map_err(|why| format!("{why} ({changed} changed before)"))?;
                    changed += 1;
                }
            }
            // Other clients have their turn.
            tokio::task::yield_now().await;
        }
        Ok(changed)
    }
}

fn subject(info: &ackline::runtime::Info) -> Subject {
    Subject { state: info.state, local: info.local, remote: Some(info.remote) }
}

/// The way to a client.
struct Writer {
    writer: OwnedWriteHalf,
    patience: Duration,
}

impl Writer {
    async fn send(&mut self, answer: &Answer) -> io::Result<()> {
        self.write(&output::json_line(answer)).await
    }

    /// Writes all of it, unless the client does not read.
    async fn write(&mut self, text: &str) -> io::Result<()> {
        timeout(self.patience, self.writer.write_all(text.as_bytes())).await?
    }
}

/// The name of a timer as `ss -o` has it; ackline's own name if `ss` has none.
const fn timer_name(reason: WakeReason) -> &'static str {
    match reason {
        WakeReason::Rto | WakeReason::Tlp | WakeReason::Reorder => "on",
        WakeReason::KeepAlive => "keepalive",
        WakeReason::TimeWait | WakeReason::FinWait2 => "timewait",
        WakeReason::Persist | WakeReason::SwsOverride => "persist",
        WakeReason::DelayedAck => "delack",
        WakeReason::Pace | WakeReason::Shaper => "pacing",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_never_reads_is_sent_away() {
        let (near, far) = UnixStream::pair().expect("sockets");
        let (_reader, writer) = near.into_split();
        let mut writer = Writer { writer, patience: Duration::from_millis(50) };
        let error = writer.write(&"x".repeat(16 << 20)).await.expect_err("it does not fit");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(far);
    }
}
