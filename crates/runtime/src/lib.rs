//! ackline on tokio: devices, namespaces, timers, TCP streams, and UDP sockets.
//!
//! ```text
//!   TcpStream  TcpListener          application tasks
//!        └───┬───┘
//!   one lock: Endpoint, device, timer     whoever holds it runs them
//!        ┌───┴───┐
//!     Driver task                   packets in, deadlines, a full device that has room again
//! ```
//!
//! - [`Stack`]: a host with its addresses on one [`Device`]. It opens connections and listens.
//! - [`TcpStream`], [`TcpListener`], [`TcpSocket`]: like tokio's ([what
//!   differs](#parity-with-tokionet)), plus [`info`](TcpStream::info), changing policies at run
//!   time, reading and writing in place, and [chunks](TcpStream::read_chunk) of shared memory
//!   instead of copies.
//! - [`Incoming`], [`HeldSyn`]: a listener that answers a SYN when the program has decided.
//! - [`UdpSocket`], [`UdpFlow`]: UDP on the same stack, for its own addresses and for any.
//! - [`Packets`]: pings for any address, and other protocols, for a program that asks for them.
//! - [`device`]: TUN and Ethernet with segmentation and checksum offload, Ethernet over a socket,
//!   some ports of the host's own address, `tun-tap`, memory, and impaired paths for tests.
//! - `netns`, `netlink`: private networks, and their interfaces, addresses and routes.
//! - [`stats`]: the driver's measurements of itself.
//! # Who does the work
//!
//! A write, a read or a close runs the stack at once, in the task that calls it: packets that may
//! be sent are sent before the call returns, without a task switch. Only further small writes wait
//! until the applications of this turn have run, to leave together. The [`Driver`](stack::Driver),
//! a task of its own, does the rest. It receives all waiting packets, up to a limit, with one time
//! stamp, answers them together, and wakes each application task once.
//!
//! Driver and applications therefore share one lock, and no blocking system call is made under it.
//! A runtime with one thread never contends for it, and is the fastest for a few busy connections.
//! If applications compute a lot, give them other threads, and let them read and write by copy
//! ([`AsyncRead`](tokio::io::AsyncRead)) rather than in place, so that they only hold the lock
//! during the copy.
//! # Fair turns
//!
//! A task that always finds room to write, or data to read, would keep the driver and all other
//! tasks of its thread waiting. So the busy connections share 1 MiB for each turn of the driver
//! ([`Builder::turn`](stack::Builder::turn)). An operation of a connection whose share is used up
//! waits until the driver has run, in line with the others that wait. A single flow does not
//! notice; with ten bulk senders the driver runs after each 100 KiB of theirs.
//!
//! Nor does bulk data keep the runtime itself waiting. tokio looks for I/O, and a runtime with one
//! thread at the future of `block_on`, only when no task is ready, or after 61 polls. So a driver
//! that has been busy for 200 µs stands aside until the runtime has gone round: a byte that `main`
//! sends beside a bulk flow waits for a turn or two, not for 61 polls.
//!
//! # Back-pressure
//!
//! A write waits while the send buffer is full; if the application does not read, the receive
//! window closes. If the device is full, packets stay in the endpoint, so nothing is dropped
//! between TCP and the device.
//!
//! # Features and platforms
//!
//! | feature | brings | needs |
//! |---|---|---|
//! | `tun` (default) | `device::tun` | Linux |
//! | `af-packet` | `device::af_packet`: Ethernet | Linux; Rust 1.91; the crate smoltcp |
//! | `frame-socket` | `device::frame_socket`: Ethernet frames over a Unix socket | Linux; Rust 1.91; the crate smoltcp |
//! | `raw` | `device::raw`: some ports of the host's own address | Linux |
//! | `tun-tap` | `device::tun_tap` | Linux; a C compiler, for the crate tun-tap |
//! | `netns` | `netns`, `testing` | Linux |
//! | `standard-streams` | `standard_streams`: whether standard output was closed at the start | Linux |
//! | `serde` | `Serialize` for all statistics | |
//! | `stream` | `TcpListenerStream`: a listener as a `Stream` | |
//! | `tracing` | `spans`: a span of the crate `tracing` for each connection | |
//!
//! `netlink` comes with `tun`, `af-packet`, `raw`, `tun-tap` and `netns`, and `kernel` with Linux.
//! Everything else runs wherever tokio does, on [`device::channel`] or your own [`Device`]: checked
//! for Windows, macOS, FreeBSD and Android. Outside Linux the timers are tokio's, so pacing is as
//! coarse as a millisecond unless the driver [spins](Pacing::Spin).
//!
#![doc = include_str!("tokio.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

// What the standard library, tokio and the operating system offer, in the form that is needed here.
mod platform;
mod sync;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the one place for system calls that no safe interface covers")]
mod sys;
mod wakes;

// Errors, and what they name.
pub mod mac;

pub mod error;
mod io_error;

// The machine: its clock, its interfaces, and how a process stands in it.
#[cfg(target_os = "linux")]
pub mod kernel;
#[cfg(target_os = "linux")]
#[cfg(any(feature = "tun", feature = "af-packet", feature = "netns", feature = "raw"))]
pub mod netlink;
#[cfg(target_os = "linux")]
pub mod priority;
#[cfg(target_os = "linux")]
#[cfg(feature = "standard-streams")]
pub mod standard_streams;
pub mod timer;

#[cfg(target_os = "linux")]
#[cfg(feature = "netns")]
pub mod netns;
pub mod pacing;

#[cfg(target_os = "linux")]
#[cfg(feature = "netns")]
pub mod testing;

// What carries packets, and what is shown of it.
pub mod device;
pub mod info;
#[cfg(feature = "tracing")]
pub mod spans;

pub mod stats;

// An endpoint with its device and timer behind one lock, and the driver that runs it.
mod shard;

// What an application holds.
mod packets;
pub mod stream;
pub mod udp;

mod listener;

pub mod stack;

mod socket;

pub use device::Device;
pub use error::Error;
pub use info::Info;
pub use listener::TcpListener;
#[cfg(feature = "stream")]
pub use listener::TcpListenerStream;
pub use listener::incoming::{self, HeldSyn, Incoming, Refusal};
pub use mac::MacAddress;
pub use pacing::Pacing;
pub use packets::Packets;
pub use socket::TcpSocket;
pub use stack::Stack;
pub use stream::TcpStream;
pub use udp::{IncomingUdp, UdpArrival, UdpFlow, UdpSocket};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
