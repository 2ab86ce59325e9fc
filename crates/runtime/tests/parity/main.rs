//! The same code over the kernel's sockets, through `tokio::net` and loopback, and over two stacks
//! on a cable in memory.
//!
//! Each test is compiled twice: `kernel::NAME` and `ackline::NAME`. What cannot be the same is in
//! the table of `src/tokio.md`, and not here.

#![cfg(target_os = "linux")]

mod ending;
mod listening;
mod options;
mod readiness;
mod sockets;
mod splitting;
mod worlds;

use std::future::Future;
use std::io;
use std::time::Duration;

/// Compiles tests for both worlds. In each, `Net`, `TcpStream`, `TcpListener` and `TcpSocket` are
/// its own.
macro_rules! on_both {
    ($($(#[$meta:meta])* async fn $name:ident($net:ident) $body:block)*) => {
        crate::on_both!(@ kernel $($(#[$meta])* $name $net $body)*);
        crate::on_both!(@ ackline $($(#[$meta])* $name $net $body)*);
    };
    (@ $world:ident $($(#[$meta:meta])* $name:ident $net:ident $body:block)*) => {
        mod $world {
            use super::*;
            use crate::worlds::$world::*;

            $(
                $(#[$meta])*
                #[tokio::test]
                async fn $name() {
                    let $net = Net::new();
                    crate::soon(async { $body }).await;
                }
            )*
        }
    };
}
pub(crate) use on_both;

/// `work`, or a panic after twenty seconds.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("still waiting after twenty seconds")
}

/// Whether `work` is still waiting after a while in which it should not end.
async fn waits<T>(work: impl Future<Output = T>) -> bool {
    tokio::time::timeout(Duration::from_millis(50), work).await.is_err()
}

/// The kind of error, or none.
fn kind<T>(result: io::Result<T>) -> Option<io::ErrorKind> {
    result.err().map(|error| error.kind())
}
