//! A hundred connections at once.

use super::support::stream::{self, read, read_all, write_all};
use super::support::{Ip, Opens, STACK4, STACK6, Setup, World};
use ackline_runtime::device::impair::{ImpairConfig, Impairment};
use ackline_tcp_core::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net;
use tokio::task::JoinSet;

const CONNECTIONS: u64 = 100;
const LEN: u64 = 200_000;

/// Sends everything back.
async fn echo(
    mut from: impl tokio::io::AsyncRead + Unpin,
    mut to: impl tokio::io::AsyncWrite + Unpin,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 32 << 10];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..read]).await?;
    }
}

/// Writes a stream of its own and reads it back.
async fn write_and_read_back(
    mut from: impl tokio::io::AsyncRead + Unpin,
    mut to: impl tokio::io::AsyncWrite + Unpin,
    key: u64,
) {
    tokio::join!(write_all(&mut to, key, LEN), read_all(&mut from, key, LEN));
}

pub(super) async fn kernel_opens(world: World) {
    let listener = world.listen(7);
    let mut tasks = JoinSet::new();
    for key in 0..CONNECTIONS {
        let to = if key % 2 == 0 { STACK4 } else { STACK6 };
        tasks.spawn(async move {
            let (from, to) = net::TcpStream::connect((to, 7)).await.expect("connected").into_split();
            write_and_read_back(from, to, key).await;
        });
    }
    for _ in 0..CONNECTIONS {
        let (stream, _) = listener.accept().await.expect("accepted");
        tasks.spawn(async move {
            let (from, to) = stream.into_split();
            echo(from, to).await.expect("no error");
        });
    }
    finish(world, tasks).await;
}

pub(super) async fn stack_opens(world: World) {
    let mut tasks = JoinSet::new();
    for ip in [Ip::V4, Ip::V6] {
        let listener = net::TcpListener::bind((ip.kernel(), 7)).await.expect("bound");
        tasks.spawn(async move {
            let mut echoes = JoinSet::new();
            for _ in 0..CONNECTIONS / 2 {
                let (from, to) = listener.accept().await.expect("accepted").0.into_split();
                echoes.spawn(async move { echo(from, to).await.expect("no error") });
            }
            echoes.join_all().await;
        });
    }
    for key in 0..CONNECTIONS {
        let stack = world.clone();
        let to = if key % 2 == 0 { Ip::V4 } else { Ip::V6 }.kernel();
        tasks.spawn(async move {
            let (from, to) = stack.connect((to, 7)).await.expect("connected").into_split();
            write_and_read_back(from, to, key).await;
        });
    }
    finish(world, tasks).await;
}

/// A path of 2 ms that loses and reorders.
fn bad_path() -> Setup {
    let impairment = Impairment {
        loss: 1.0,
        reorder: 1.0,
        reorder_by: Duration::from_micros(500),
        delay: Duration::from_millis(1),
        ..Impairment::default()
    };
    Setup::offload().impair(ImpairConfig::both(impairment, 0x100))
}

async fn finish(world: World, mut tasks: JoinSet<()>) {
    while let Some(task) = tasks.join_next().await {
        if let Err(error) = task {
            // The first panic is the story; it was printed when it happened.
            std::panic::resume_unwind(error.into_panic());
        }
    }
    world.check_device();
    assert!(world.stack.shutdown(std::time::Duration::from_secs(20)).await, "connections had to be reset");
    assert_eq!(world.stack.counters().tcp_estab_resets, 0);
}

against_kernel! {
    fn kernel_opens_a_hundred(world) from Setup::offload(); { kernel_opens(world).await; }
    fn kernel_opens_a_hundred_plain(world) from Setup::plain(); { kernel_opens(world).await; }
    fn stack_opens_a_hundred(world) from Setup::offload(); { stack_opens(world).await; }
    fn stack_opens_a_hundred_plain(world) from Setup::plain(); { stack_opens(world).await; }

    fn kernel_opens_a_hundred_on_a_bad_path(world) from bad_path(); { kernel_opens(world).await; }
    fn stack_opens_a_hundred_on_a_bad_path(world) from bad_path(); { stack_opens(world).await; }

    fn connections_do_not_see_each_others_bytes(world) from Setup::offload(); {
        // One writes, all the others are silent: nothing may appear there.
        let mut connections = Vec::new();
        for _ in 0..10 {
            connections.push(world.connection(Opens::Stack, Ip::V4).await);
        }
        for key in 0..connections.len() as u64 {
            let (kernel, stack) = &mut connections[key as usize];
            stream::write(kernel, key, 10_000).await.expect("written");
            read(stack, key, 10_000).await;
        }
        for (kernel, mut stack) in connections {
            drop(kernel);
            read_all(&mut stack, 0, 0).await;
        }
    }
}
