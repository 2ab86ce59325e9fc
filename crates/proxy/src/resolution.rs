//! The resolvers behind port 53 of the proxy's own addresses.
//!
//! ```text
//!   client ── question ─► open questions ── one resolver at a time ─► answer
//!                              │                                        │ ID and question are open?
//!                              │ no answer in time, a failure, an end   ▼
//!                              └──────► the next resolver             names, client
//! ```
//!
//! An answer that fits no open question changes nothing (RFC 5452, section 9.1): it reaches neither
//! the client nor the table of names.

use crate::dns::framed::Framed;
use crate::dns::question::{Question, is_unhelpful};
use crate::ends::Client;
use crate::names::NameUse;
use crate::outside::WayOut;
use crate::shared::{Shared, Ways};
use crate::target::Protocol;
use crate::upstream::{ConnectError, ToResolver};
use ackline_runtime::{Refusal, TcpStream, UdpFlow, timer};
use simple_dns::{Packet, RCODE};
use std::collections::VecDeque;
use std::future::pending;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

/// How long a flow to a resolver stays when each question has its answer.
const SETTLED: Duration = Duration::from_secs(1);

/// How long a client's connection may have no question open (RFC 7766, section 6.2.3).
const IDLE: Duration = Duration::from_secs(10);

/// Questions of one flow or connection that may be open, and their bytes. A further one is dropped,
/// and may come again.
const MOST_OPEN: usize = 64;
const MOST_BYTES: usize = 16 << 10;

/// The code of an answer that policy forbids (RFC 1035, section 4.1.1).
const REFUSED: u8 = 5;

/// Serves a client's questions over UDP, until each has its answer and no other comes.
pub(crate) async fn serve_flow(shared: &Shared, inside: UdpFlow, client: SocketAddr, ways: Ways) {
    let headers = if client.is_ipv4() { 28 } else { 48 };
    let room = (shared.config.mtu as usize).saturating_sub(headers);
    let mut asking = Asking::new(shared, client.ip(), ways, Some(room));
    let mut message = Vec::new();
    let mut has_asked = false;
    loop {
        message.clear();
        let is_settled = has_asked && asking.is_settled();
        tokio::select! {
            taken = inside.recv_buf(&mut message) => match taken {
                Ok(_) => {
                    shared.counters.datagrams_up.one();
                    has_asked |= asking.ask(&message);
                }
                // It has ended, or the client has closed its socket.
                Err(_) => return,
            },
            outcome = asking.next() => match outcome {
                Ok(answer) => match inside.send(&answer).await {
                    Ok(_) => shared.counters.datagrams_down.one(),
                    Err(error) if error.kind() == ErrorKind::InvalidInput => shared.counters.datagrams_too_long.one(),
                    Err(_) => return,
                },
                // Others may still be answered.
                Err(_) if !asking.is_settled() => {}
                Err(Refusal::Drop) => return,
                Err(_) => return inside.refuse(),
            },
            () = sleep(SETTLED), if is_settled => return,
        }
    }
}

/// Serves a client's questions over TCP, once a resolver has taken the connection.
pub(crate) async fn serve_connection(shared: &Shared, client: Client, from: IpAddr, ways: Ways) {
    let counters = &shared.counters;
    let mut asking = Asking::new(shared, from, ways, None);
    let Ok(reached) = client.hold(asking.reach()).await else { return counters.abandoned.one() };
    // The proxy answers its own names without a resolver.
    if let (Err(refusal), true) = (reached, shared.config.hosts.is_empty()) {
        return client.refuse(refusal);
    }
    let Ok(mut inside) = client.accept().await else { return counters.abandoned.one() };
    let _open = counters.open_connections.enter();
    inside.is_over = exchange(&mut asking, Framed::new(&mut inside.stream, vec![])).await.is_ok();
    if inside.is_over { counters.finished.one() } else { counters.reset.one() }
}

async fn exchange(asking: &mut Asking<'_>, mut inside: Framed<&mut TcpStream>) -> io::Result<()> {
    let mut has_ended = false;
    while !has_ended || !asking.is_settled() {
        let is_idle = asking.is_settled();
        tokio::select! {
            taken = inside.recv(), if !has_ended => match taken {
                Ok(message) => {
                    asking.ask(&message);
                }
                // What it has asked it is still answered.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => has_ended = true,
                Err(error) => return Err(error),
            },
            outcome = asking.next() => match outcome {
                Ok(answer) => inside.send(&answer),
                Err(_) => return Err(ErrorKind::ConnectionAborted.into()),
            },
            () = sleep(IDLE), if is_idle => break,
        }
    }
    inside.finish().await
}

/// The questions of one client's socket, and the resolver that is asked now.
struct Asking<'a> {
    shared: &'a Shared,
    client: IpAddr,
    ways: Ways,
    /// Longest answer that reaches the client over UDP; over TCP `None`, and resolvers are asked
    /// over TCP as well.
    room: Option<usize>,
    /// The one of `ways` that is asked.
    at: usize,
    line: Line,
    /// The resolver has answered on this line.
    has_answered: bool,
    /// Resolvers have closed with questions open: each gets one at a time. What a server has not
    /// read when it closes resets the connection, and an answer with it.
    one_by_one: bool,
    open: Vec<Open>,
    bytes: usize,
    /// Answers, and why there is none.
    done: VecDeque<Result<Vec<u8>, Refusal>>,
}

/// A question that has no answer yet.
struct Open {
    question: Question,
    message: Vec<u8>,
    is_sent: bool,
    until: Instant,
    /// Resolvers that were asked before in vain.
    tries: usize,
    /// What one has answered that could not help.
    unhelpful: Option<Vec<u8>>,
}

/// Way to the resolver.
enum Line {
    Closed,
    Opening(Pin<Box<dyn Future<Output = Result<ToResolver, ConnectError>> + Send>>),
    Open(ToResolver),
}

/// Event on a connection to a resolver.
enum News {
    Opened,
    Answer(Vec<u8>),
    Failed(ConnectError),
    Ended,
}

impl<'a> Asking<'a> {
    fn new(shared: &'a Shared, client: IpAddr, ways: Ways, room: Option<usize>) -> Self {
        // In their order, but for those that were silent lately.
        let at = ways.iter().position(|(_, resolver)| !shared.health.was_silent(resolver.address));
        Self {
            shared,
            client,
            ways,
            room,
            at: at.unwrap_or(0),
            line: Line::Closed,
            has_answered: false,
            one_by_one: false,
            open: vec![],
            bytes: 0,
            done: VecDeque::new(),
        }
    }

    /// Each question has its answer, and the client has it.
    fn is_settled(&self) -> bool {
        self.open.is_empty() && self.done.is_empty()
    }

    /// Takes a question. One that is open already is only asked again; what is none is dropped.
    fn ask(&mut self, message: &[u8]) -> bool {
        let counters = &self.shared.counters;
        let Some(question) = Question::read(message) else {
            counters.dns_malformed.one();
            return false;
        };
        if let Some(open) = self.open.iter_mut().find(|open| open.question == question) {
            open.is_sent = false;
            return true;
        }
        if self.open.len() + self.done.len() >= MOST_OPEN || self.bytes + message.len() > MOST_BYTES {
            counters.dns_too_many.one();
            return false;
        }
        counters.dns_questions.one();
        if let Some(answer) = self.shared.config.hosts.answer(&question) {
            self.learn(&question, &answer);
            self.give(&question, answer);
            return true;
        }
        if self.ways.is_empty() {
            // The rules leave no resolver.
            counters.rule_refused.one();
            self.give(&question, question.answered(REFUSED, &[]));
            return true;
        }
        self.bytes += message.len();
        let until = Instant::now() + self.shared.config.resolvers.timeout;
        let message = message.to_vec();
        self.open.push(Open { question, message, is_sent: false, until, tries: 0, unhelpful: None });
        true
    }

    /// Connects to the first resolver that can be reached; what the client is told if there is
    /// none.
    async fn reach(&mut self) -> Result<(), Refusal> {
        let mut outcome = Err(Refusal::Drop);
        for _ in 0..self.ways.len() {
            let until = Instant::now() + self.shared.config.resolvers.timeout;
            let opening = timeout_at(until, self.connect()).await;
            match opening.unwrap_or(Err(ConnectError::TimedOut)) {
                Ok(line) => {
                    self.line = Line::Open(line);
                    return Ok(());
                }
                Err(error) => {
                    outcome = Err(self.failed(&error));
                    self.at = (self.at + 1) % self.ways.len();
                }
            }
        }
        outcome
    }

    fn connect(&self) -> Pin<Box<dyn Future<Output = Result<ToResolver, ConnectError>> + Send>> {
        let (upstream, resolver) = self.ways[self.at].clone();
        let by = if self.room.is_none() { Protocol::Tcp } else { resolver.protocol };
        let out: WayOut = self.shared.out_to_resolver().clone();
        let limit = self.shared.config.server_timeout;
        let room = self.room.unwrap_or(0);
        Box::pin(async move { upstream.ask(&out, resolver.address, by, room, limit).await })
    }

    /// Waits for the next answer, or until there is none for a question. Dropping the future loses
    /// nothing.
    async fn next(&mut self) -> Result<Vec<u8>, Refusal> {
        loop {
            if let Some(done) = self.done.pop_front() {
                return done;
            }
            if self.open.is_empty() && matches!(self.line, Line::Closed) {
                pending::<()>().await;
            }
            if matches!(self.line, Line::Closed) {
                self.line = Line::Opening(self.connect());
            }
            let deadline = self.open.iter().map(|open| open.until).min();
            let news = tokio::select! {
                news = self.line.news(&mut self.open, self.one_by_one) => Some(news),
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => None,
            };
            match news {
                Some(News::Opened) => {}
                Some(News::Answer(answer)) => self.heard(answer),
                Some(News::Ended) => self.ended(),
                Some(News::Failed(error)) => self.go_on(&error),
                None => self.go_on(&ConnectError::TimedOut),
            }
        }
    }

    /// A message of the resolver that is asked.
    fn heard(&mut self, answer: Vec<u8>) {
        let counters = &self.shared.counters;
        let found = self.open.iter().position(|open| open.question.is_answered_by(&answer));
        let Some(at) = found.filter(|at| self.learn(&self.open[*at].question, &answer)) else {
            counters.dns_unasked.one();
            return;
        };
        self.has_answered = true;
        self.shared.health.answers(self.ways[self.at].1.address);
        let open = &mut self.open[at];
        if is_unhelpful(&answer) && open.tries + 1 < self.ways.len() {
            open.unhelpful = Some(answer);
            self.ask_next(false);
        } else {
            self.answer(at, answer);
        }
    }

    /// Gives the client what it takes of an answer.
    fn answer(&mut self, at: usize, answer: Vec<u8>) {
        let open = self.open.swap_remove(at);
        self.bytes -= open.message.len();
        self.give(&open.question, answer);
    }

    /// Gives the client an answer, as long as it takes it.
    fn give(&mut self, question: &Question, answer: Vec<u8>) {
        let room = self.room.map_or(usize::MAX, |room| room.min(question.room()));
        let answer = if answer.len() > room { question.truncated(&answer) } else { answer };
        self.shared.counters.dns_answers.one();
        self.done.push_back(Ok(answer));
    }

    /// Remembers the addresses in an answer. False for one that should have some and cannot be
    /// read: it cannot be known what the client would learn from it.
    fn learn(&self, question: &Question, answer: &[u8]) -> bool {
        let Shared { config, names, counters, .. } = self.shared;
        let room = self.room.map_or(usize::MAX, |room| room.min(question.room()));
        if config.names == NameUse::Off || !question.is_for_addresses() || answer.len() > room {
            return true;
        }
        let Ok(answer) = Packet::parse(answer) else { return false };
        if answer.rcode() == RCODE::NoError {
            let client = self.shared.resolving(self.client);
            let forgotten = names.learn(timer::now(), client, &question.name(), &answer);
            counters.names_forgotten.add(forgotten);
        }
        true
    }

    /// The resolver has closed. It may when it likes, and what it has not answered is asked again
    /// (RFC 7766, section 6.2.4).
    fn ended(&mut self) {
        let has_several = self.open.iter().filter(|open| open.is_sent).nth(1).is_some();
        let was_one_by_one = self.one_by_one;
        self.one_by_one |= !self.open.is_empty();
        if self.has_answered || self.open.is_empty() || (has_several && !was_one_by_one) {
            self.begin_line();
            let until = Instant::now() + self.shared.config.resolvers.timeout;
            self.open.iter_mut().for_each(|open| open.until = until);
        } else {
            self.go_on(&ConnectError::Server("it closes without an answer".into()));
        }
    }

    /// The resolver has failed, or is silent.
    fn go_on(&mut self, error: &ConnectError) {
        let refusal = self.failed(error);
        let most = self.ways.len() * self.shared.config.resolvers.attempts.max(1) as usize;
        self.ask_next(matches!(error, ConnectError::TimedOut));
        while let Some(at) = self.open.iter().position(|open| open.tries >= most) {
            match self.open[at].unhelpful.take() {
                Some(answer) => self.answer(at, answer),
                None => {
                    let gone = self.open.swap_remove(at);
                    self.bytes -= gone.message.len();
                    self.done.push_back(Err(refusal));
                }
            }
        }
    }

    /// Notes that the resolver is silent; what the client is told if no other helps.
    fn failed(&self, error: &ConnectError) -> Refusal {
        let (upstream, resolver) = &self.ways[self.at];
        self.shared.health.is_silent(resolver.address);
        self.shared.refusal(upstream, error)
    }

    /// All open questions go to the next resolver.
    fn ask_next(&mut self, is_silent: bool) {
        let is_same = self.ways.len() == 1;
        self.at = (self.at + 1) % self.ways.len();
        if is_same && is_silent && matches!(&self.line, Line::Open(line) if line.is_of_datagrams()) {
            // Its answer may only be late.
            self.open.iter_mut().for_each(|open| open.is_sent = false);
        } else {
            self.begin_line();
        }
        let until = Instant::now() + self.shared.config.resolvers.timeout;
        for open in &mut self.open {
            open.tries += 1;
            open.until = until;
        }
    }

    /// All open questions are asked anew.
    fn begin_line(&mut self) {
        self.line = Line::Closed;
        self.has_answered = false;
        for open in &mut self.open {
            open.is_sent = false;
        }
    }
}

impl Line {
    /// Sends what has not been sent, and waits for what happens then. Dropping the future loses
    /// nothing.
    async fn news(&mut self, open: &mut [Open], one_by_one: bool) -> News {
        match self {
            Self::Closed => pending().await,
            Self::Opening(opening) => match opening.await {
                Ok(line) => {
                    *self = Self::Open(line);
                    News::Opened
                }
                Err(error) => News::Failed(error),
            },
            Self::Open(line) => {
                let waits = open.iter().any(|open| open.is_sent);
                let most = if !one_by_one { usize::MAX } else { usize::from(!waits) };
                let exchange = async {
                    for open in open.iter_mut().filter(|open| !open.is_sent).take(most) {
                        line.send(&open.message).await?;
                        open.is_sent = true;
                    }
                    line.recv().await
                };
                match exchange.await.map_err(|error| (error.kind(), error)) {
                    Ok(answer) => News::Answer(answer),
                    Err((
                        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe,
                        _,
                    )) if !line.is_of_datagrams() => News::Ended,
                    Err((_, error)) => News::Failed(ConnectError::of_destination(error)),
                }
            }
        }
    }
}
