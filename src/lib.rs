//! ackline: a TCP stack in userspace whose four decisions are plug-ins.
//!
//! | decision | trait | names |
//! |---|---|---|
//! | how much to send | [`CongestionControl`](core::policy::CongestionControl) | [`Registry::cc_table`] |
//! | when to acknowledge | [`AckPolicy`](core::policy::AckPolicy) | [`Registry::ack_table`] |
//! | what to do when the retransmission timer fires | [`RtoResponse`](core::policy::RtoResponse) | [`Registry::rto_table`] |
//! | which packet leaves the host next | [`EgressScheduler`](core::policy::EgressScheduler) | [`Registry::sched_table`] |
//!
//! The first three are chosen per connection, the last per host; all by name, with parameters, at
//! run time. The first three can be replaced on a live connection. A [`Registry`] has the names;
//! add your own policies to it.
//!
//! # Two ways to use it
//!
//! **On tokio** ([`runtime`], the default): a [`Stack`] on a TUN device gives streams and
//! listeners.
//!
//! ```no_run
//! # #[cfg(all(target_os = "linux", feature = "tun"))]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use ackline::core::ListenOn;
//! use ackline::runtime::device::tun::Tun;
//! use ackline::Stack;
//!
//! let stack = Stack::builder(Tun::open_existing("tun0", true)?)
//!     .address([10, 0, 0, 2])
//!     .options("cc=cubic:beta=0.8; sched=fifo:rate=20mbit,burst=5ms; sack=off")?
//!     .spawn()?;
//! let listener = stack.listen(ListenOn::Port(7))?;
//! let (mut stream, peer) = listener.accept().await?;
//! println!("{peer} talks to {}", stream.info()?.cc);
//! let (mut read, mut write) = stream.split();
//! tokio::io::copy(&mut read, &mut write).await?;
//! # Ok(())
//! # }
//! ```
//!
//! **Without I/O** ([`core`]): an [`Endpoint`] takes packets and timestamps and returns packets and
//! deadlines. It is `no_std`, reads no clock, and runs the same in a simulator as against the
//! kernel.
//!
//! ```
//! use ackline::core::events::WakeReason;
//! use ackline::core::{Endpoint, EndpointConfig, Instant, TxBudget};
//! use ackline::Registry;
//! use std::{convert::Infallible, net::SocketAddr, sync::Arc};
//!
//! let mut config = EndpointConfig::default();
//! config.addresses.push([10, 0, 0, 2].into());
//! let mut host = Endpoint::new(config, Registry::default().sched("fifo")?(), [7; 32]);
//!
//! let now = Instant::from_secs(1);
//! let server: SocketAddr = "10.0.0.1:80".parse()?;
//! host.connect(now, server.into(), Arc::new(Registry::default().conn_config()))?;
//!
//! let mut sent = Vec::new();
//! host.transmit(now, TxBudget::UNLIMITED, |packet| {
//!     sent.push(packet.header.to_vec());
//!     Ok::<_, Infallible>(())
//! })?;
//! assert_eq!(sent.len(), 1); // the SYN
//! assert_eq!(host.poll_timeout().unwrap().reason, WakeReason::Rto);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A policy of your own
//!
//! Implement one trait, check it with [`core::policy::conformance`], and put its maker into a
//! [`ConnConfig`]: `examples/custom_cc.rs` does it in one file. A congestion control that only
//! grows and shrinks a window needs two methods of [`core::policy::window`]: `examples/small_cc`
//! has Reno and Vegas. An egress scheduler gets parameters such as `rate=`, `limit=` and `acks=`
//! from [`sched::entry`].
//!
//! # Features
//!
//! | feature | brings | needs |
//! |---|---|---|
//! | `runtime` (default) | [`Stack`], on the in-memory device or your own [`Device`](runtime::Device) | std, tokio |
//! | `tun` (default) | `runtime::device::tun` | Linux |
//! | `af-packet` | `runtime::device::af_packet`: a host on an Ethernet interface | Linux, Rust 1.91, smoltcp |
//! | `tun-tap` | `runtime::device::tun_tap`: devices of the crate `tun-tap` | Linux, a C compiler |
//! | `tun-rs` | `runtime::device::tun_rs`: devices of the crate `tun-rs` | Linux, macOS, Windows, FreeBSD, Android |
//! | `netns` | `runtime::netns`: network namespaces, for tests and demonstrations | Linux |
//! | `stream` | `runtime::TcpListenerStream`: a listener as a `Stream` of connections | |
//! | `tracing` | `runtime::spans`: a span of the crate `tracing` for each connection | |
//! | `serde` | `Serialize` for `info()`, counters and all statistics | |
//!
//! Without any feature this crate is `no_std` with `alloc`. A feature adds items and changes none.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub use ackline_ack_policy as ack_policy;
pub use ackline_cc_algos as cc_algos;
pub use ackline_registry as registry;
pub use ackline_registry::Registry;
pub use ackline_sched as sched;

pub use ackline_tcp_core as core;
pub use ackline_tcp_core::{ConnConfig, Endpoint, EndpointConfig};

#[cfg(feature = "runtime")]
pub use ackline_runtime as runtime;
#[cfg(feature = "runtime")]
pub use ackline_runtime::{Stack, TcpListener, TcpStream, UdpSocket};

/// The examples of the README compile.
#[cfg(all(doctest, target_os = "linux", feature = "tun"))]
#[doc = include_str!("../README.md")]
struct Readme;
