//! One connection (RFC 9293).
#![expect(dead_code, reason = "the connection is under construction")]

pub(crate) mod ctx;

pub(crate) use ctx::Ctx;
