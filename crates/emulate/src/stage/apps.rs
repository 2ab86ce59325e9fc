//! Sources and sinks: what netsim's applications do, over any sockets.

use super::failed;
use super::tally::{ConnIndex, Tally};
use ackline_lab::scenario::AppKind;
use ackline_lab::stage::{OutsideEnd, Role, StageError, cc_name};
use ackline_netsim::app::{Amount, ClientOptions, Draw, Exchange, Reading, Schedule};
use ackline_netsim::record::ConnSample;
use ackline_netsim::{SimRng, pattern};
use ackline_runtime::timer::{self, Timer};
use ackline_tcp_core::config::ConnConfig;
use ackline_tcp_core::{Duration, Instant};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::task::JoinSet;

/// Connections that may wait to be accepted.
pub(super) const BACKLOG: u32 = 1_024;
/// Largest read.
const READ: usize = 64 << 10;
/// The stream of random numbers of the first end, apart from those of the simulation.
const STREAM_ENDS: u64 = 10 << 32;

/// A connection of some TCP.
pub(super) trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Its state now, at this instant of the simulation.
    fn sample(&self, at: Instant) -> Option<ConnSample>;

    /// Its own address, and the peer's.
    fn addresses(&self) -> io::Result<(SocketAddr, SocketAddr)>;
}

/// Where one end waits for connections.
pub(super) trait Listener: Send + 'static {
    /// Its connections.
    type Socket: Socket;

    /// The next one.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Socket>> + Send;
}

/// The TCP of a host.
pub(super) trait Net: Clone + Send + Sync + 'static {
    /// Its connections.
    type Socket: Socket;
    /// What accepts them.
    type Listener: Listener<Socket = Self::Socket>;

    /// Opens a connection.
    fn connect(
        &self,
        to: SocketAddr,
        conn: &Arc<ConnConfig>,
    ) -> impl Future<Output = io::Result<Self::Socket>> + Send;

    /// Accepts connections on a port of this host.
    fn listen(&self, port: u16, conn: &Arc<ConnConfig>) -> io::Result<Self::Listener>;
}

/// One end of a flow, and what it needs to begin.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) end: OutsideEnd,
    tally: Arc<Tally>,
    interval: Duration,
    rng: SimRng,
}

impl Task {
    /// `place`: of the end among all outside.
    pub(super) fn new(end: OutsideEnd, place: usize, tally: Arc<Tally>, interval: Duration) -> Self {
        let rng = SimRng::new(end.seed, STREAM_ENDS + place as u64);
        Self { end, tally, interval, rng }
    }

    /// Listens, if it is the end that accepts.
    pub(super) fn prepare<N: Net>(self, net: &N) -> Result<Ready<N>, StageError> {
        let listener = match self.end.role {
            Role::Accept { port } => {
                let listener = net.listen(port, &self.end.conn);
                Some(listener.map_err(failed(format!("listen on port {port}")))?)
            }
            Role::Open { .. } => None,
        };
        Ok(Ready { task: self, listener, net: net.clone() })
    }
}

/// An end that waits for the beginning.
pub(super) struct Ready<N: Net> {
    task: Task,
    listener: Option<N::Listener>,
    net: N,
}

impl<N: Net> Ready<N> {
    /// Runs to the end, or for ever.
    pub(super) async fn run(self, epoch: Instant) {
        let Self { task: Task { end, tally, interval, rng }, listener, net } = self;
        let clock = Clock { epoch };
        let cc = cc_name(&end.conn);
        let watch = Arc::new(Watch { clock, tally, interval, cc, sends: end.sends });
        match (end.role, listener) {
            (Role::Open { to, start }, _) => {
                clock.sleep_until(start).await;
                let mut opener = Opener { net, to, conn: end.conn, watch, rng };
                match end.kind {
                    AppKind::Bulk { amount, transfers, wait, .. } => {
                        opener.bulk(amount, transfers, wait).await;
                    }
                    AppKind::Request { options } => opener.ask(&options).await,
                    AppKind::Download { wait, files, .. } => opener.download(wait, files).await,
                    AppKind::Source { schedule, .. } => opener.write(&schedule).await,
                    // A scenario has it on hosts inside alone.
                    _ => {}
                }
            }
            (Role::Accept { .. }, Some(listener)) => accept(listener, &end.kind, watch, rng).await,
            (Role::Accept { .. }, None) => {}
        }
    }
}

/// The simulation's time by the real clock.
#[derive(Clone, Copy, Debug)]
struct Clock {
    epoch: Instant,
}

impl Clock {
    fn now(self) -> Instant {
        Instant::ZERO + timer::now().since(self.epoch)
    }

    async fn sleep_until(self, at: Instant) {
        let at = self.epoch + at.since(Instant::ZERO);
        // Without descriptors for a timer it does not wait.
        if let Ok(mut timer) = Timer::new()
            && timer.arm(Some(at)).is_ok()
        {
            let _ = timer.expired().await;
        }
    }

    async fn sleep(self, time: Duration) {
        if time > Duration::ZERO {
            self.sleep_until(self.now() + time).await;
        }
    }
}

/// Whoever looks at the connections of one end.
#[derive(Debug)]
struct Watch {
    clock: Clock,
    tally: Arc<Tally>,
    interval: Duration,
    cc: String,
    /// Only senders are sampled.
    sends: bool,
}

/// A connection that is looked at while it is used, and carries netsim's pattern.
struct Stream<S> {
    socket: S,
    watch: Arc<Watch>,
    place: Option<ConnIndex>,
    /// When it is looked at next.
    next: Instant,
    buffer: Vec<u8>,
    received: u64,
    written: u64,
}

impl<S: Socket> Stream<S> {
    fn new(socket: S, watch: &Arc<Watch>) -> Self {
        let addresses = if watch.sends { socket.addresses().ok() } else { None };
        let place = addresses.and_then(|(local, remote)| {
            watch.tally.connection(&watch.cc, local.to_string(), remote.to_string())
        });
        let next = watch.clock.now();
        Self { socket, watch: watch.clone(), place, next, buffer: vec![], received: 0, written: 0 }
    }

    /// Looks at it if it is time, and says how long there is until the next time.
    fn look(&mut self) -> std::time::Duration {
        let Some(place) = self.place else { return std::time::Duration::MAX };
        let now = self.watch.clock.now();
        if now >= self.next {
            if let Some(sample) = self.socket.sample(now) {
                self.watch.tally.sample(place, sample);
            }
            // On the grid of intervals.
            let interval = self.watch.interval.as_nanos().max(1);
            self.next = Instant::ZERO + Duration::from_nanos((now.as_nanos() / interval + 1) * interval);
        }
        self.next.since(now).into()
    }

    /// Writes some of the next `most` bytes.
    async fn write(&mut self, most: u64) -> io::Result<()> {
        let piece = pattern::piece(self.written, usize::try_from(most).unwrap_or(usize::MAX));
        loop {
            let left = self.look();
            // A write that is given up has written nothing.
            if let Ok(written) = tokio::time::timeout(left, self.socket.write(piece)).await {
                let written = written? as u64;
                self.written += written;
                self.watch.tally.add("written_bytes", written);
                return Ok(());
            }
        }
    }

    /// Writes all of the next `bytes` bytes.
    async fn write_all(&mut self, bytes: u64) -> io::Result<()> {
        let end = self.written.saturating_add(bytes);
        while self.written < end {
            self.write(end - self.written).await?;
        }
        Ok(())
    }

    /// Reads at most `most` bytes, and checks them. 0: the stream has ended.
    async fn read(&mut self, most: usize) -> io::Result<u64> {
        self.buffer.resize(most.clamp(1, READ), 0);
        loop {
            let left = self.look();
            if let Ok(read) = tokio::time::timeout(left, self.socket.read(&mut self.buffer)).await {
                let read = read?;
                if !pattern::check(self.received, &self.buffer[..read]) {
                    self.watch.tally.add("wrong_reads", 1);
                }
                self.received += read as u64;
                return Ok(read as u64);
            }
        }
    }

    /// Ends its own direction, and waits for the end of the other.
    async fn close(&mut self) -> io::Result<()> {
        self.socket.shutdown().await?;
        while self.read(READ).await? > 0 {}
        Ok(())
    }
}

/// The end that opens connections.
struct Opener<N> {
    net: N,
    to: SocketAddr,
    conn: Arc<ConnConfig>,
    watch: Arc<Watch>,
    rng: SimRng,
}

impl<N: Net> Opener<N> {
    async fn open(&self) -> io::Result<Stream<N::Socket>> {
        Ok(Stream::new(self.net.connect(self.to, &self.conn).await?, &self.watch))
    }

    fn failed(&self) {
        self.watch.tally.add("failed", 1);
    }

    async fn bulk(&mut self, amount: Amount, transfers: u64, wait: Draw) {
        for number in 0..transfers {
            if number > 0 {
                self.watch.clock.sleep(wait.time(&mut self.rng)).await;
            }
            self.watch.tally.add("begun", 1);
            let start = self.watch.clock.now();
            match self.send(amount, start).await {
                Ok(()) => {
                    let now = self.watch.clock.now();
                    self.watch.tally.ended((now, now.since(start)));
                    self.watch.tally.add("complete", 1);
                }
                Err(_) => self.failed(),
            }
        }
    }

    async fn send(&self, amount: Amount, start: Instant) -> io::Result<()> {
        let mut stream = self.open().await?;
        match amount {
            Amount::Bytes(bytes) => stream.write_all(bytes).await?,
            Amount::Endless => stream.write_all(u64::MAX).await?,
            Amount::For(time) => {
                let left = (start + time).since(self.watch.clock.now());
                if let Ok(ended) = tokio::time::timeout(left.into(), stream.write_all(u64::MAX)).await {
                    ended?;
                }
            }
        }
        stream.close().await
    }

    async fn ask(&mut self, options: &ClientOptions) {
        let Exchange { request, response } = options.exchange;
        let mut stream = None;
        let mut asked = 0;
        while options.count.is_none_or(|count| asked < count) {
            if asked > 0 {
                self.watch.clock.sleep(options.think.time(&mut self.rng)).await;
            }
            asked += 1;
            self.watch.tally.add("asked", 1);
            let start = self.watch.clock.now();
            match self.exchange(&mut stream, request, response).await {
                Ok(()) => {
                    let now = self.watch.clock.now();
                    self.watch.tally.ended((now, now.since(start)));
                    self.watch.tally.add("answered", 1);
                }
                Err(_) => {
                    self.failed();
                    stream = None;
                }
            }
            if options.reconnect {
                stream = None;
            }
        }
    }

    async fn exchange(
        &self,
        stream: &mut Option<Stream<N::Socket>>,
        request: u64,
        response: u64,
    ) -> io::Result<()> {
        let mut used = match stream.take() {
            Some(stream) => stream,
            None => self.open().await?,
        };
        used.write_all(request.max(1)).await?;
        let end = used.received + response.max(1);
        while used.received < end {
            let left = usize::try_from(end - used.received).unwrap_or(READ);
            if used.read(left).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        *stream = Some(used);
        Ok(())
    }

    async fn download(&mut self, wait: Draw, files: Option<u64>) {
        let mut begun = 0;
        while files.is_none_or(|files| begun < files) {
            begun += 1;
            self.watch.tally.add("begun", 1);
            let start = self.watch.clock.now();
            match self.fetch().await {
                Ok(()) => {
                    let now = self.watch.clock.now();
                    self.watch.tally.ended((now, now.since(start)));
                    self.watch.tally.add("complete", 1);
                }
                Err(_) => self.failed(),
            }
            // A refusal at once must not keep the machine busy.
            self.watch.clock.sleep(wait.time(&mut self.rng).max(Duration::from_micros(1))).await;
        }
    }

    async fn fetch(&self) -> io::Result<()> {
        let mut stream = self.open().await?;
        loop {
            let read = stream.read(READ).await?;
            self.watch.tally.add("received_bytes", read);
            if read == 0 {
                return Ok(());
            }
        }
    }

    async fn write(&mut self, schedule: &Schedule) {
        let start = self.watch.clock.now();
        match self.follow(schedule).await {
            Ok(()) => {
                self.watch.tally.completed(self.watch.clock.now().since(start));
            }
            Err(_) => self.failed(),
        }
    }

    async fn follow(&mut self, schedule: &Schedule) -> io::Result<()> {
        let clock = self.watch.clock;
        let mut stream = self.open().await?;
        let mut rounds = 0;
        let mut next = clock.now();
        let more = |rounds: u64, count: &Option<u64>| count.is_none_or(|count| rounds < count);
        match schedule {
            Schedule::Writes { size, interval, count } => {
                while more(rounds, count) {
                    clock.sleep_until(next).await;
                    rounds += 1;
                    self.watch.tally.add("rounds", 1);
                    next += interval.time(&mut self.rng);
                    stream.write_all(size.bytes(&mut self.rng)).await?;
                }
            }
            Schedule::OnOff { on, off, count } => {
                while more(rounds, count) {
                    rounds += 1;
                    self.watch.tally.add("rounds", 1);
                    let time = on.time(&mut self.rng);
                    if let Ok(ended) = tokio::time::timeout(time.into(), stream.write_all(u64::MAX)).await {
                        ended?;
                    }
                    clock.sleep(off.time(&mut self.rng)).await;
                }
            }
        }
        stream.close().await
    }
}

/// The end that accepts connections: each has a task.
async fn accept<L: Listener>(listener: L, kind: &AppKind, watch: Arc<Watch>, mut rng: SimRng) {
    let mut tasks = JoinSet::new();
    loop {
        let Ok(socket) = listener.accept().await else {
            watch.tally.add("failed", 1);
            return;
        };
        let stream = Stream::new(socket, &watch);
        match *kind {
            AppKind::Request { ref options } => {
                tasks.spawn(serve(stream, options.exchange));
            }
            AppKind::Download { size, .. } => {
                let size = size.bytes(&mut rng);
                tasks.spawn(serve_file(stream, size));
            }
            AppKind::Bulk { reading, .. }
            | AppKind::Source { reading, .. }
            | AppKind::Bsd { reading, .. } => {
                watch.tally.add("accepted", 1);
                tasks.spawn(sink(stream, reading));
            }
            // Refused before.
            _ => return,
        }
        while tasks.try_join_next().is_some() {}
    }
}

async fn serve<S: Socket>(mut stream: Stream<S>, exchange: Exchange) {
    let (request, response) = (exchange.request.max(1), exchange.response.max(1));
    let mut answered = 0;
    let ended: io::Result<()> = async {
        while stream.read(READ).await? > 0 {
            while answered < stream.received / request {
                stream.write_all(response).await?;
                answered += 1;
                stream.watch.tally.add("answered", 1);
            }
        }
        stream.socket.shutdown().await
    }
    .await;
    if ended.is_err() {
        stream.watch.tally.add("failed", 1);
    }
}

async fn serve_file<S: Socket>(mut stream: Stream<S>, size: u64) {
    let sent: io::Result<()> = async {
        stream.write_all(size).await?;
        stream.close().await
    }
    .await;
    stream.watch.tally.add(if sent.is_ok() { "served" } else { "failed" }, 1);
}

async fn sink<S: Socket>(mut stream: Stream<S>, reading: Reading) {
    let clock = stream.watch.clock;
    let most = match reading {
        Reading::Slow { bytes, .. } => bytes,
        _ => READ,
    };
    let ended: io::Result<()> = async {
        loop {
            if let Reading::Slow { interval, .. } = reading {
                clock.sleep(interval).await;
            }
            let read = stream.read(most).await?;
            stream.watch.tally.add("received_bytes", read);
            if read == 0 {
                return stream.socket.shutdown().await;
            }
        }
    }
    .await;
    stream.watch.tally.add(if ended.is_ok() { "complete" } else { "failed" }, 1);
}
