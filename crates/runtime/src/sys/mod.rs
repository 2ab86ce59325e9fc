//! The system calls that need `unsafe`. Everything else in this crate goes through the safe interfaces of
//! `rustix`, `tokio` and `std`.

pub(crate) mod namespace;
pub(crate) mod packet;
pub(crate) mod readiness;
pub(crate) mod socket;
pub(crate) mod tun;
