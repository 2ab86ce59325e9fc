//! The ends of connections: one side first, both at once, by RST, by dropping.

use crate::support::stream::{self, read, read_all, write_all};
use crate::support::{Ip, Opens, Setup, World};
use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const MIB: u64 = 1 << 20;

/// Until the stack has forgotten every connection but those in TIME-WAIT.
async fn all_closed(world: &World) {
    assert!(world.stack.shutdown(Duration::from_secs(20)).await, "connections had to be reset");
}

/// What reading says at the end of a stream whose bytes do not matter.
async fn read_to_error(from: &mut (impl tokio::io::AsyncRead + Unpin)) -> std::io::ErrorKind {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer).await {
            Ok(0) => panic!("an orderly end"),
            Ok(_) => {}
            Err(error) => return error.kind(),
        }
    }
}

/// What writing says once it fails.
async fn write_to_error(to: &mut (impl tokio::io::AsyncWrite + Unpin)) -> std::io::ErrorKind {
    loop {
        if let Err(error) = to.write(stream::bytes(0, 0, 1000)).await {
            return error.kind();
        }
        // A write into a buffer needs no packet; give the RST time to come.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Who aborts, closes, or goes first.
async fn kernel_closes_first(world: World, opens: Opens) {
    let (mut kernel, mut stack) = world.connection(opens, Ip::V4).await;
    write_all(&mut kernel, 1, 1000).await;
    read_all(&mut stack, 1, 1000).await;
    // The kernel has closed its side, and is still there for the other.
    tokio::join!(write_all(&mut stack, 2, 4 * MIB), read_all(&mut kernel, 2, 4 * MIB));
    stack.flushed().await.expect("acknowledged");
    drop((kernel, stack));
    all_closed(&world).await;
}

async fn stack_closes_first(world: World, opens: Opens) {
    let (mut kernel, mut stack) = world.connection(opens, Ip::V4).await;
    write_all(&mut stack, 1, 1000).await;
    read_all(&mut kernel, 1, 1000).await;
    stack.flushed().await.expect("acknowledged");
    let refused = stack.write(b"more").await.expect_err("this side is closed");
    assert_eq!(refused.kind(), BrokenPipe);
    tokio::join!(write_all(&mut kernel, 2, 4 * MIB), read_all(&mut stack, 2, 4 * MIB));
    drop((kernel, stack));
    all_closed(&world).await;
}

against_kernel! {
    fn kernel_closes_its_side_first_and_reads_on(world) from Setup::offload(); {
        kernel_closes_first(world, Opens::Kernel).await;
    }
    fn kernel_that_accepted_closes_its_side_first_and_reads_on(world) from Setup::offload(); {
        kernel_closes_first(world, Opens::Stack).await;
    }
    fn stack_closes_its_side_first_and_reads_on(world) from Setup::offload(); {
        stack_closes_first(world, Opens::Stack).await;
    }
    fn stack_that_accepted_closes_its_side_first_and_reads_on(world) from Setup::offload(); {
        stack_closes_first(world, Opens::Kernel).await;
    }

    fn both_close_at_once(world) from Setup::offload(); {
        for _ in 0..20 {
            let (mut kernel, mut stack) = world.connection(Opens::Stack, Ip::V6).await;
            tokio::join!(async { kernel.shutdown().await.expect("closed") }, async {
                stack.shutdown().await.expect("closed");
            });
            tokio::join!(read_all(&mut kernel, 0, 0), read_all(&mut stack, 0, 0));
            stack.flushed().await.expect("acknowledged");
        }
        all_closed(&world).await;
        assert_eq!(world.stack.counters().tcp_out_rsts, 0);
    }

    fn dropping_the_stream_still_delivers_everything(world) from Setup::offload(); {
        let (mut kernel, mut stack) = world.connection(Opens::Stack, Ip::V4).await;
        let len = 3 * MIB;
        let drop_early = async {
            stream::write(&mut stack, 1, len).await.expect("the buffer takes it");
            drop(stack);
        };
        let read_late = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            read_all(&mut kernel, 1, len).await;
        };
        tokio::join!(drop_early, read_late);
        drop(kernel);
        all_closed(&world).await;
    }

    fn dropping_with_unread_data_resets_the_kernel(world) from Setup::offload(); {
        let (mut kernel, stack) = world.connection(Opens::Stack, Ip::V4).await;
        stream::write(&mut kernel, 1, 1000).await.expect("sent");
        while stack.info().expect("connected").bytes_received < 1000 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(stack);
        assert_eq!(read_to_error(&mut kernel).await, ConnectionReset);
        assert_eq!(world.stack.counters().tcp_abort_on_close, 1);
        all_closed(&world).await;
    }

    fn kernel_aborts_and_the_stack_says_reset(world) from Setup::offload(); {
        for opens in [Opens::Kernel, Opens::Stack] {
            let (mut kernel, mut stack) = world.connection(opens, Ip::V4).await;
            stream::write(&mut kernel, 1, 1000).await.expect("sent");
            read(&mut stack, 1, 1000).await;
            rustix::net::sockopt::set_socket_linger(&kernel, Some(Duration::ZERO)).expect("set");
            drop(kernel);
            assert_eq!(read_to_error(&mut stack).await, ConnectionReset);
            assert_eq!(write_to_error(&mut stack).await, ConnectionReset);
        }
        assert_eq!(world.stack.counters().tcp_estab_resets, 2);
        all_closed(&world).await;
    }

    fn kernel_aborts_a_writer_that_waits_for_room(world) from Setup::offload(); {
        let (kernel, mut stack) = world.connection(Opens::Stack, Ip::V4).await;
        let writer = async {
            loop {
                if let Err(error) = stack.write(stream::bytes(0, 0, 100_000)).await {
                    return error.kind();
                }
            }
        };
        let killer = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            rustix::net::sockopt::set_socket_linger(&kernel, Some(Duration::ZERO)).expect("set");
            drop(kernel);
        };
        let (error, ()) = tokio::join!(writer, killer);
        assert_eq!(error, ConnectionReset);
        drop(stack);
        all_closed(&world).await;
    }

    fn stack_aborts_and_the_kernel_says_reset(world) from Setup::offload(); {
        for opens in [Opens::Kernel, Opens::Stack] {
            let (mut kernel, mut stack) = world.connection(opens, Ip::V6).await;
            stream::write(&mut stack, 1, 1000).await.expect("sent");
            read(&mut kernel, 1, 1000).await;
            stack.abort();
            assert_eq!(read_to_error(&mut kernel).await, ConnectionReset);
            assert_eq!(read_to_error(&mut stack).await, ConnectionAborted);
        }
        all_closed(&world).await;
    }

    fn no_linger_resets_the_kernel(world) from Setup::offload(); {
        let (mut kernel, stack) = world.connection(Opens::Kernel, Ip::V4).await;
        stack.set_zero_linger().expect("set");
        drop(stack);
        assert_eq!(read_to_error(&mut kernel).await, ConnectionReset);
        all_closed(&world).await;
    }

    fn data_for_a_stream_that_was_dropped_resets_the_kernel(world) from Setup::offload(); {
        let (mut kernel, stack) = world.connection(Opens::Kernel, Ip::V4).await;
        drop(stack);
        read_all(&mut kernel, 0, 0).await;
        // The kernel's side is still open; nobody will read what it sends (RFC 9293, section
        // 3.6.1).
        let error = write_to_error(&mut kernel).await;
        assert!(matches!(error, ConnectionReset | BrokenPipe), "{error:?}");
        all_closed(&world).await;
    }

    fn kernel_that_dropped_its_end_resets_the_stack(world) from Setup::offload(); {
        let (kernel, mut stack) = world.connection(Opens::Stack, Ip::V4).await;
        drop(kernel);
        read_all(&mut stack, 0, 0).await;
        assert_eq!(write_to_error(&mut stack).await, ConnectionReset);
        drop(stack);
        all_closed(&world).await;
    }
}
