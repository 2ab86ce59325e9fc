//! Answering requests.

use super::change::Change;
use super::protocol::{About, Answer, Listening, MAX_REQUEST, Request, Shown};
use crate::output;
use crate::ss::filter::{Filter, Subject};
use ackline::Registry;
use ackline::core::{State, WakeReason};
use ackline::runtime::{Stack, stack::ConnSnapshot, timer};
use std::io;
use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

/// Clients at once; others are told that there are too many.
const MAX_CLIENTS: usize = 16;

/// A client that asks nothing, or does not read its answer, for this long is sent away.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connections that are looked at under one hold of the stack's lock: the driver does not wait for a long list.
const CHUNK: usize = 32;

/// After an error of accepting, which is usually that the process has no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers for one stack.
#[derive(Clone)]
pub(super) struct Server {
    stack: Stack,
    registry: Registry,
    command: &'static str,
}

impl Server {
    pub(super) const fn new(stack: Stack, registry: Registry, command: &'static str) -> Self {
        Self { stack, registry, command }
    }

    /// Answers until `stopped`.
    pub(super) async fn run(self, listener: StdListener, mut stopped: oneshot::Receiver<()>) {
        // Fails only without a reactor, and the runtime has one.
        let Ok(listener) = UnixListener::from_std(listener) else { return };
        let places = Arc::new(Semaphore::new(MAX_CLIENTS));
        let server = Arc::new(self);
        loop {
            let accepted = tokio::select! {
                _ = &mut stopped => return,
                accepted = listener.accept() => accepted,
            };
            match (accepted, places.clone().try_acquire_owned()) {
                (Ok((stream, _)), Ok(place)) => {
                    let server = server.clone();
                    tokio::spawn(async move {
                        // A client that has gone wants no answer.
                        let _ = server.attend(stream).await;
                        drop(place);
                    });
                }
                (Ok((stream, _)), Err(_)) => {
                    let answer = Answer::Error(format!("too many clients: at most {MAX_CLIENTS} at once"));
                    // The buffer of a new socket takes it.
                    let _ = stream.try_write(output::json_line(&answer).as_bytes());
                }
                (Err(_), _) => sleep(PAUSE).await,
            }
        }
    }

    /// One request of one client.
    async fn attend(&self, stream: UnixStream) -> io::Result<()> {
        let (reader, mut writer) = stream.into_split();
        let mut line = Vec::new();
        let mut reader = BufReader::new(reader.take(MAX_REQUEST));
        let answer = match timeout(PATIENCE, reader.read_until(b'\n', &mut line)).await {
            Err(_) => Some(Answer::Error(format!("no request within {} s", PATIENCE.as_secs()))),
            Ok(Err(error)) => return Err(error),
            Ok(Ok(0)) => return Ok(()),
            Ok(Ok(_)) if line.last() != Some(&b'\n') => {
                Some(Answer::Error(format!("not a line of at most {MAX_REQUEST} bytes")))
            }
            Ok(Ok(_)) => None,
        };
        let last = match answer {
            Some(answer) => answer,
            None => match self.answer(&line, &mut writer).await? {
                Ok(done) => Answer::Done(done),
                Err(why) => Answer::Error(why),
            },
        };
        send(&mut writer, &output::json_line(&last)).await
    }

    /// Answers a request. Returns what the last line says.
    async fn answer(
        &self,
        line: &[u8],
        writer: &mut (impl tokio::io::AsyncWrite + Unpin),
    ) -> io::Result<Result<usize, String>> {
        let request = match serde_json::from_slice(line) {
            Ok(request) => request,
            Err(error) => return Ok(Err(format!("not a request: {error}"))),
        };
        let about = About { pid: std::process::id(), command: self.command.to_owned() };
        send(writer, &output::json_line(&Answer::Stack(about))).await?;
        match request {
            Request::Show { filter } => match Filter::parse(&filter) {
                Ok(filter) => self.show(&filter, writer).await.map(Ok),
                Err(why) => Ok(Err(why)),
            },
            Request::Set { options, filter } => {
                let parsed = Change::parse(&self.registry, &options)
                    .and_then(|change| Filter::parse(&filter).map(|filter| (change, filter)));
                match parsed {
                    Ok((change, filter)) => Ok(self.set(&change, &filter).await),
                    Err(why) => Ok(Err(why)),
                }
            }
        }
    }

    async fn show(
        &self,
        filter: &Filter,
        writer: &mut (impl tokio::io::AsyncWrite + Unpin),
    ) -> io::Result<usize> {
        let mut shown = 0;
        for (local, queued) in self.stack.listeners() {
            let subject = Subject { state: State::Listen, local, remote: None };
            if filter.selects(&subject) {
                send(writer, &output::json_line(&Answer::Listener(Listening { local, queued }))).await?;
                shown += 1;
            }
        }
        let mut next = Some(0);
        while let Some(from) = next {
            let (chunk, then) = self.stack.snapshots(from, CHUNK);
            next = then;
            let now = timer::now();
            let mut text = String::new();
            for ConnSnapshot { id, info, deadline, .. } in chunk {
                if filter.selects(&subject(&info)) {
                    let timer = deadline.map(|(at, reason)| (timer_name(reason), at));
                    let connection = Shown { id: format!("{id:?}"), now, timer, info };
                    text += &output::json_line(&Answer::Connection(Box::new(connection)));
                    shown += 1;
                }
            }
            send(writer, &text).await?;
        }
        Ok(shown)
    }

    async fn set(&self, change: &Change, filter: &Filter) -> Result<usize, String> {
        let (mut changed, mut next) = (0, Some(0));
        while let Some(from) = next {
            let (chunk, then) = self.stack.snapshots(from, CHUNK);
            next = then;
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

/// Writes all of it, unless the client does not read.
async fn send(writer: &mut (impl tokio::io::AsyncWrite + Unpin), text: &str) -> io::Result<()> {
    timeout(PATIENCE, writer.write_all(text.as_bytes())).await?
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
