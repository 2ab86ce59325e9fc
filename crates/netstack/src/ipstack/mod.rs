//! The interface of the crate ipstack: a stack over a device that reads and writes packets, from
//! which connections, UDP flows and other packets are accepted.
//!
//! ```no_run
//! use ackline_netstack::ipstack::{IpStack, IpStackConfig, IpStackStream};
//! # use tokio::io::{AsyncRead, AsyncWrite};
//!
//! # async fn example(
//! #     device: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! let mut config = IpStackConfig::default();
//! config.mtu(1500)?;
//! let mut ip_stack = IpStack::new(config, device);
//! loop {
//!     match ip_stack.accept().await? {
//!         IpStackStream::Tcp(mut stream) => {
//!             tokio::spawn(async move {
//!                 let mut outside = tokio::net::TcpStream::connect(stream.peer_addr()).await?;
//!                 tokio::io::copy_bidirectional(&mut stream, &mut outside).await
//!             });
//!         }
//!         other => println!("{} to {}", other.local_addr(), other.peer_addr()),
//!     }
//! }
//! # }
//! ```
//!
//! What differs:
//!
//! | | here |
//! |---|---|
//! | a connection is accepted | when its handshake is complete |
//! | an idle connection | lives for 7,440 s by default, as RFC 5382 (REQ-5) asks of a NAT; there it is 60 s |
//! | a datagram longer than the MTU | is refused with `InvalidInput`; there it is cut |
//! | an empty datagram | is skipped: an empty read is the end of a stream |
//! | fragments | are put together |
//! | buffers and timers of a connection | are the stack's, if they are not set: see [`TcpConfig`] |

mod config;
mod error;
mod stack;
mod tcp;
mod udp;
mod unknown;

pub use config::{IpStackConfig, TcpConfig, TcpOptions};
pub use error::{IpStackError, Result};
pub use etherparse::IpNumber;
pub use stack::{IpStack, IpStackStream};
pub use tcp::IpStackTcpStream;
pub use udp::IpStackUdpStream;
pub use unknown::IpStackUnknownTransport;
