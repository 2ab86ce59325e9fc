//! The interface of the crate netstack-smoltcp: a stack that is a stream and a sink of IP packets,
//! a listener that is a stream of connections, a UDP socket that is a stream and a sink of
//! datagrams.
//!
//! ```no_run
//! use ackline_netstack::netstack_smoltcp::StackBuilder;
//! use futures_util::StreamExt as _;
//!
//! # async fn example() -> std::io::Result<()> {
//! let (stack, runner, udp_socket, tcp_listener) =
//!     StackBuilder::default().enable_tcp(true).enable_udp(true).enable_icmp(true).mtu(1500).build()?;
//! if let Some(runner) = runner {
//!     tokio::spawn(runner);
//! }
//! let (mut to_stack, mut from_stack) = stack.split();
//! # let _ = (&mut to_stack, &mut from_stack, udp_socket);
//! // Packets of a TUN device go to `to_stack`, and those of `from_stack` to the device.
//! let mut tcp_listener = tcp_listener.expect("TCP is enabled");
//! while let Some((stream, client, destination)) = tcp_listener.next().await {
//!     println!("{client} connects to {destination}");
//!     drop(stream);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What differs:
//!
//! | | here |
//! |---|---|
//! | a connection comes from the listener | when its handshake is complete |
//! | [`Runner`] | drives the stack; without TCP it is spawned by [`build`](StackBuilder::build), which returns `None` |
//! | [`build`](StackBuilder::build) | within a tokio runtime with I/O and time |
//! | buffers of a connection | grow as they are needed, up to the stack's defaults, if they are not set |
//! | fragments | are put together before they are looked at |
//! | datagrams with a wrong checksum | are dropped |
//! | ICMP errors about connections | reach them, whether ICMP is enabled or not (RFC 1122, section 4.2.3.9) |

mod builder;
mod filter;
mod packet;
mod runner;
pub mod stack;
pub mod tcp;
pub mod udp;

pub use builder::StackBuilder;
pub use filter::{IpFilter, IpFilters};
pub use runner::Runner;
pub use stack::Stack;
pub use tcp::{TcpListener, TcpStream};
pub use udp::UdpSocket;

/// An IP packet, from the first octet of its header on.
pub type AnyIpPktFrame = Vec<u8>;
