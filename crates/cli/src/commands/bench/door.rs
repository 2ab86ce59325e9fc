//! Where connections arrive at a server. Each has some time to say which test it belongs to, and
//! nobody has to wait for one that does not.

use super::protocol::{COOKIE_SIZE, Cookie, PATIENCE, TestState};
use crate::failure::Failure;
use ackline::core::{AcceptConfig, ConnConfig, ListenOn};
use ackline::runtime::{Stack, TcpListener, TcpStream};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

/// Most connections that have not said who they are; others wait.
const MAX_STRANGERS: usize = 256;

/// A listener, and those who have just come in.
pub(super) struct Door {
    stack: Stack,
    on: ListenOn,
    /// Of connections that are accepted.
    config: Arc<ConnConfig>,
    listener: TcpListener,
    strangers: JoinSet<Option<Guest>>,
    arrivals: u64,
}

/// A connection that has said which test it belongs to.
pub(super) struct Guest {
    pub(super) stream: TcpStream,
    pub(super) cookie: Cookie,
    /// Counts up in the order of accepting.
    pub(super) order: u64,
}

impl Door {
    pub(super) fn open(stack: &Stack, on: ListenOn, config: Arc<ConnConfig>) -> Result<Self, Failure> {
        let listener = listen(stack, on, config.clone())?;
        Ok(Self { stack: stack.clone(), on, config, listener, strangers: JoinSet::new(), arrivals: 0 })
    }

    /// From here on, connections are accepted with these settings. If that is a change, those that
    /// nobody has accepted yet are reset.
    pub(super) fn reopen(self, config: Arc<ConnConfig>) -> Result<Self, Failure> {
        if Arc::ptr_eq(&self.config, &config) {
            return Ok(self);
        }
        let Self { stack, on, config: _, listener, strangers, arrivals } = self;
        // The place is free only then.
        drop(listener);
        let listener = listen(&stack, on, config.clone())?;
        Ok(Self { stack, on, config, listener, strangers, arrivals })
    }

    /// The next one that has said which test it belongs to. Dropping the future loses nobody.
    pub(super) async fn next(&mut self) -> Result<Guest, Failure> {
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if self.strangers.len() < MAX_STRANGERS => {
                    let (stream, _) =
                        accepted.map_err(|error| Failure::system("accept connections", &error))?;
                    let order = self.arrivals;
                    self.arrivals += 1;
                    let beside = stream.runtime().clone();
                    let greeted =
                        async move { tokio::time::timeout(PATIENCE, greet(stream, order)).await.ok().flatten() };
                    self.strangers.spawn_on(greeted, &beside);
                }
                // A pattern that can fail would close this way until the next one is accepted.
                Some(done) = self.strangers.join_next() => {
                    // Any other has gone without a word, or was turned away.
                    if let Ok(Some(guest)) = done {
                        return Ok(guest);
                    }
                }
            }
        }
    }

    /// Tells a guest that another test runs.
    pub(super) fn turn_away(&mut self, guest: Guest) {
        let Guest { mut stream, .. } = guest;
        let beside = stream.runtime().clone();
        let refused = async move {
            // A guest that does not listen needs no answer; the stream closes behind what was
            // written.
            let _ = stream.write_all(&[TestState::AccessDenied.octet()]).await;
            None
        };
        self.strangers.spawn_on(refused, &beside);
    }

    /// Turns everybody away, for as long as this is polled.
    pub(super) async fn turn_all_away(&mut self) -> Failure {
        loop {
            match self.next().await {
                Ok(guest) => self.turn_away(guest),
                Err(failure) => return failure,
            }
        }
    }
}

fn listen(stack: &Stack, on: ListenOn, config: Arc<ConnConfig>) -> Result<TcpListener, Failure> {
    stack.listen_with(on, AcceptConfig::new(config)).map_err(|error| Failure::system("listen", &error))
}

async fn greet(mut stream: TcpStream, order: u64) -> Option<Guest> {
    let mut octets = [0; COOKIE_SIZE];
    stream.read_exact(&mut octets).await.ok()?;
    Some(Guest { stream, cookie: Cookie::from_wire(octets), order })
}
