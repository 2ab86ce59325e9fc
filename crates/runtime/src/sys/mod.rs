//! The system calls that need `unsafe`. Everything else in this crate goes through the safe
//! interfaces of `rustix`, `tokio` and `std`.

#[cfg(feature = "tun")]
pub(crate) mod descriptor;
#[cfg(feature = "tun")]
pub(crate) mod ebpf;
#[cfg(any(feature = "af-packet", feature = "netns", feature = "raw"))]
pub(crate) mod filter;
#[cfg(feature = "netns")]
pub(crate) mod namespace;
#[cfg(any(feature = "af-packet", feature = "raw"))]
pub(crate) mod packet;
pub(crate) mod priority;
pub(crate) mod readiness;
pub(crate) mod socket;
#[cfg(feature = "standard-streams")]
pub(crate) mod standard_output;
#[cfg(feature = "tun")]
pub(crate) mod tun;
