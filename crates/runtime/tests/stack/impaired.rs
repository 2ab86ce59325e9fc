//! Bad paths lose nothing but time.

use crate::common::{FAR, NEAR, PORT, assert_same, pattern, read_all, soon};
use ackline_runtime::Stack;
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::device::impair::{ImpairConfig, ImpairStats, Impaired, Impairment};
use ackline_tcp_core::{ConnConfig, Duration, ListenOn};
use tokio::io::AsyncWriteExt as _;

/// Bytes sent in each direction.
const LENGTH: usize = 1 << 20;

/// Sends data both ways at once over a path that is bad in both directions; what befell the
/// packets.
async fn survives(impairment: Impairment, seed: u64) -> [ImpairStats; 2] {
    let mut config = ConnConfig::default();
    config.min_rto = Duration::from_millis(20);
    config.initial_rto = Duration::from_millis(100);
    // Checksums are computed, or damage could not be noticed.
    let (near, far) = Channel::pair(ChannelConfig::default().plain());
    let near = Impaired::new(near, ImpairConfig::both(impairment, seed));
    let monitor = near.monitor();
    let near = Stack::builder(near).address(NEAR).connections(config.clone()).spawn().expect("a timerfd");
    let far = Stack::builder(far).address(FAR).connections(config).spawn().expect("a timerfd");
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let (opened, accepted) = tokio::join!(near.connect((FAR, PORT)), listener.accept());
    let streams = [opened.expect("connected"), accepted.expect("accepted").0];
    let exchanges = streams.into_iter().zip([seed, seed + 1]).map(|(stream, own)| {
        tokio::spawn(async move {
            let (mut read, mut write) = stream.into_split();
            let writer = tokio::spawn(async move {
                write.write_all(&pattern(own, LENGTH)).await.expect("written");
                write.shutdown().await.expect("closed");
            });
            let received = read_all(&mut read).await.expect("read");
            writer.await.expect("no panic");
            received
        })
    });
    let exchanges: Vec<_> = exchanges.collect();
    for (exchange, of_peer) in exchanges.into_iter().zip([seed + 1, seed]) {
        let received = soon(exchange).await.expect("no panic");
        assert_same(&received, &pattern(of_peer, LENGTH));
    }
    [monitor.outgoing(), monitor.incoming()]
}

#[tokio::test]
async fn loss() {
    for direction in survives(Impairment { loss: 2.0, ..Impairment::default() }, 1).await {
        assert!(direction.lost > 0);
    }
}

#[tokio::test]
async fn duplicates() {
    for direction in survives(Impairment { duplicate: 10.0, ..Impairment::default() }, 2).await {
        assert!(direction.duplicated > 0);
    }
}

#[tokio::test]
async fn reordering() {
    let late = Impairment { reorder: 5.0, reorder_by: Duration::from_micros(500), ..Impairment::default() };
    for direction in survives(late, 3).await {
        assert!(direction.reordered > 0);
    }
}

#[tokio::test]
async fn damage() {
    for direction in survives(Impairment { corrupt: 2.0, ..Impairment::default() }, 4).await {
        assert!(direction.corrupted > 0);
    }
}

#[tokio::test]
async fn everything_at_once_with_delay() {
    let impairment = Impairment {
        loss: 1.0,
        duplicate: 1.0,
        reorder: 1.0,
        reorder_by: Duration::from_millis(2),
        corrupt: 1.0,
        delay: Duration::from_millis(3),
        jitter: Duration::from_millis(1),
        ..Impairment::default()
    };
    for direction in survives(impairment, 5).await {
        assert!(direction.lost > 0 && direction.duplicated > 0 && direction.corrupted > 0);
    }
}
