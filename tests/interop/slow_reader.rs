//! Readers that take their time: the window closes, the writer waits, and opens again.

use super::support::stream::{self, read, read_all, write_all};
use super::support::{Ip, Opens, Setup, World};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The kernel reads nothing for a while, then everything.
async fn kernel_is_slow(world: World, pause: Duration) {
    let (mut kernel, mut stack) = world
        .connection_with(Opens::Stack, Ip::V4, |socket| {
            socket.set_recv_buffer_size(64 << 10).expect("set");
        })
        .await;
    // More than the stack's send buffer and the kernel's receive buffer hold together.
    let len = 6 * MIB;
    let reader = async {
        tokio::time::sleep(pause).await;
        read_all(&mut kernel, 1, len).await;
    };
    let writer = async {
        let mut offset = 0;
        let early = async {
            while offset < len {
                let left = usize::try_from(len - offset).expect("fits");
                offset += stack.write(stream::bytes(1, offset, left)).await.expect("written") as u64;
            }
        };
        let late = tokio::time::timeout(pause / 2, early).await;
        late.expect_err("nobody took the data, and yet all was written");
        finish(&mut stack, 1, offset, len).await;
    };
    tokio::join!(reader, writer);
    let counters = world.stack.counters();
    assert!(counters.tcp_peer_zero_window > 0, "the kernel's window never closed");
    if pause > Duration::from_secs(1) {
        assert!(counters.tcp_win_probe > 0, "the closed window was not probed");
    }
    assert_eq!(counters.tcp_timeouts, 0, "a closed window is no loss");
}

/// Writes the rest of a stream and its end.
async fn finish(to: &mut ackline_runtime::TcpStream, key: u64, mut offset: u64, len: u64) {
    while offset < len {
        let left = usize::try_from(len - offset).expect("fits");
        offset += to.write(stream::bytes(key, offset, left)).await.expect("written") as u64;
    }
    to.shutdown().await.expect("closed");
}

/// The stack's application reads nothing for a while, then everything.
async fn stack_is_slow(world: World, pause: Duration) {
    let (mut kernel, mut stack) = world
        .connection_with(Opens::Kernel, Ip::V4, |socket| {
            socket.set_send_buffer_size(64 << 10).expect("set");
        })
        .await;
    let len = 6 * MIB;
    let writer = write_all(&mut kernel, 1, len);
    let reader = async {
        tokio::time::sleep(pause).await;
        let received = stack.info().expect("connected").bytes_received;
        assert!(received <= 256 * KIB, "{received} bytes in a buffer of 256 KiB");
        read_all(&mut stack, 1, len).await;
    };
    tokio::join!(writer, reader);
    let counters = world.stack.counters();
    assert!(counters.tcp_to_zero_window_adv > 0 && counters.tcp_from_zero_window_adv > 0);
    let dropped = (counters.tcp_zero_window_drop, counters.tcp_cut_to_window);
    assert_eq!(dropped, (0, 0), "data within the window was dropped");
}

against_kernel! {
    fn kernel_pauses(world) from Setup::offload(); { kernel_is_slow(world, Duration::from_secs(2)).await; }
    fn kernel_pauses_plain(world) from Setup::plain(); { kernel_is_slow(world, Duration::from_millis(500)).await; }

    fn kernel_that_shrinks_its_window_pauses(world) from
        Setup::plain().sysctl("tcp_shrink_window", "1"); {
        kernel_is_slow(world, Duration::from_millis(500)).await;
    }

    fn stack_pauses(world) from Setup::offload().connections(|config| config.recv_buffer = 256 << 10); {
        stack_is_slow(world, Duration::from_secs(2)).await;
    }
    fn stack_pauses_plain(world) from Setup::plain().connections(|config| config.recv_buffer = 256 << 10); {
        stack_is_slow(world, Duration::from_millis(500)).await;
    }

    fn stack_reads_in_sips(world) from Setup::offload().connections(|config| config.recv_buffer = 16 << 10); {
        let (mut kernel, mut stack) = world.connection(Opens::Kernel, Ip::V4).await;
        let len = 512 * KIB;
        let reader = async {
            let mut offset = 0;
            while offset < len {
                let sip = 100.min(len - offset);
                let mut buffer = vec![0; sip as usize];
                tokio::io::AsyncReadExt::read_exact(&mut stack, &mut buffer).await.expect("data");
                stream::check(&buffer, 1, offset);
                offset += sip;
                if offset % (100 * 50) == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        };
        tokio::join!(write_all(&mut kernel, 1, len), reader);
        // No silly windows (RFC 9293, section 3.8.6.2.2): a window that opened by 100 bytes at a
        // time would have drawn thousands of segments.
        let segments = world.stack.counters().tcp_in_segs;
        assert!(segments < 600, "{segments} segments for {len} bytes");
    }

    fn kernel_reads_in_sips(world) from Setup::offload(); {
        let (mut kernel, mut stack) = world
            .connection_with(Opens::Stack, Ip::V4, |socket| {
                socket.set_recv_buffer_size(8 << 10).expect("set");
            })
            .await;
        let len = 256 * KIB;
        let reader = async {
            let mut left = len;
            let mut offset = 0;
            while left > 0 {
                let sip = 1000.min(left);
                let mut buffer = vec![0; sip as usize];
                tokio::io::AsyncReadExt::read_exact(&mut kernel, &mut buffer).await.expect("data");
                stream::check(&buffer, 1, offset);
                offset += sip;
                left -= sip;
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        };
        tokio::join!(write_all(&mut stack, 1, len), reader);
    }

    fn both_pause_and_go_on(world) from Setup::offload().connections(|config| config.recv_buffer = 64 << 10); {
        let (mut kernel, mut stack) = world.connection(Opens::Stack, Ip::V6).await;
        let (mut kernel_reads, mut kernel_writes) = kernel.split();
        let (mut stack_reads, mut stack_writes) = stack.split();
        let turns = 4;
        let slow_kernel = async {
            for turn in 0..turns {
                tokio::time::sleep(Duration::from_millis(150)).await;
                read(&mut kernel_reads, turn, MIB).await;
            }
        };
        let slow_stack = async {
            for turn in 0..turns {
                tokio::time::sleep(Duration::from_millis(150)).await;
                read(&mut stack_reads, turn, MIB).await;
            }
        };
        let from_kernel = async {
            for turn in 0..turns {
                stream::write(&mut kernel_writes, turn, MIB).await.expect("written");
            }
        };
        let from_stack = async {
            for turn in 0..turns {
                stream::write(&mut stack_writes, turn, MIB).await.expect("written");
            }
        };
        tokio::join!(slow_kernel, slow_stack, from_kernel, from_stack);
    }
}
