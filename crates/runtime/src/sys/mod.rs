//! The system calls that need `unsafe`. Everything else in this crate goes through the safe interfaces of
//! `rustix`, `tokio` and `std`.

#[cfg(any(feature = "af-packet", feature = "netns"))]
pub(crate) mod filter;
#[cfg(feature = "netns")]
pub(crate) mod namespace;
#[cfg(feature = "af-packet")]
pub(crate) mod packet;
pub(crate) mod priority;
pub(crate) mod readiness;
pub(crate) mod socket;
#[cfg(feature = "tun")]
pub(crate) mod tun;
