//! Many short connections that end in every way, over a bad path, on several threads: nothing
//! hangs, nothing stays behind, and what is said to be whole is whole.

use crate::common::{FAR, NEAR, PORT, pattern, until};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::device::impair::{ImpairConfig, Impaired, Impairment};
use ackline_runtime::{Stack, TcpStream};
use ackline_tcp_core::config::KeepAlive;
use ackline_tcp_core::{ConnConfig, Duration, ListenOn};
use std::io;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Connections of one run.
const CONNECTIONS: u64 = 150;

/// What a client does with its connection.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Conduct {
    /// Sends, closes, reads the echo to its end.
    Whole,
    /// Closes before it reads anything.
    Early,
    /// Drops the stream with the echo unread.
    Dropped,
    /// Resets in the middle.
    Aborted,
    /// Drops one half first, then the other.
    Halves,
}

const CONDUCTS: [Conduct; 5] =
    [Conduct::Whole, Conduct::Early, Conduct::Dropped, Conduct::Aborted, Conduct::Halves];

async fn client(stack: Stack, number: u64) -> io::Result<()> {
    let conduct = CONDUCTS[(number % 5) as usize];
    let length = [1, 700, 5_000, 60_000][(number / 5 % 4) as usize];
    let sent = pattern(number, length);
    let mut stream = stack.connect((FAR, PORT)).await?;
    let mut echo = Vec::new();
    match conduct {
        Conduct::Whole => {
            stream.write_all(&sent).await?;
            stream.shutdown().await?;
            stream.read_to_end(&mut echo).await?;
        }
        Conduct::Early => {
            stream.shutdown().await?;
            stream.read_to_end(&mut echo).await?;
            assert!(echo.is_empty(), "an echo of nothing");
            return Ok(());
        }
        Conduct::Dropped => {
            stream.write_all(&sent).await?;
            return Ok(());
        }
        Conduct::Aborted => {
            stream.write_all(&sent[..length / 2]).await?;
            stream.abort();
            return Ok(());
        }
        Conduct::Halves => {
            let (mut read, mut write) = stream.into_split();
            write.write_all(&sent).await?;
            drop(write);
            read.read_to_end(&mut echo).await?;
        }
    }
    assert!(echo == sent, "connection {number}: the echo of {length} bytes differs");
    Ok(())
}

async fn serve(mut stream: TcpStream) {
    let (mut read, mut write) = stream.split();
    // Fails if the client resets.
    if tokio::io::copy(&mut read, &mut write).await.is_ok() {
        let _ = stream.shutdown().await;
    }
}

async fn churn(impairment: Impairment, seed: u64) {
    let mut config = ConnConfig::default();
    config.initial_rto = Duration::from_millis(300);
    config.min_rto = Duration::from_millis(20);
    config.time_wait = Duration::from_millis(100);
    config.fin_wait_2 = Duration::from_millis(500);
    // A reset may be lost, and its receiver have nothing to say.
    let interval = Duration::from_millis(200);
    config.keep_alive = Some(KeepAlive { idle: interval, interval, count: 50, ..KeepAlive::default() });
    let (near, far) = Channel::pair(ChannelConfig::default().plain());
    let near = Impaired::new(near, ImpairConfig::both(impairment, seed));
    let near = Stack::builder(near).address(NEAR).connections(config.clone()).spawn().expect("a timerfd");
    let far = Stack::builder(far).address(FAR).connections(config).spawn().expect("a timerfd");
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let server = tokio::spawn(async move {
        loop {
            tokio::spawn(serve(listener.accept().await.expect("accepted").0));
        }
    });
    let clients: Vec<_> = (0..CONNECTIONS).map(|n| tokio::spawn(client(near.clone(), n))).collect();
    for (number, client) in clients.into_iter().enumerate() {
        // A lost SYN and a lost segment take 3 s (RFC 6298, section 5.7), a third loss 6 s more.
        let ended = tokio::time::timeout(std::time::Duration::from_secs(60), client).await.expect("it ends");
        ended.expect("no panic").unwrap_or_else(|error| panic!("connection {number}: {error}"));
    }
    until(|| near.stats().connections == 0 && far.stats().connections == 0).await;
    server.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_a_good_path() {
    churn(Impairment::default(), 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_a_bad_path() {
    let impairment = Impairment {
        loss: 1.0,
        duplicate: 2.0,
        reorder: 3.0,
        reorder_by: Duration::from_millis(1),
        corrupt: 0.5,
        ..Impairment::default()
    };
    for seed in 1..3 {
        churn(impairment, seed).await;
    }
}
