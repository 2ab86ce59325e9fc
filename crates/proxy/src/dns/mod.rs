//! Messages of DNS, and the resolvers and names that answer them.

pub(crate) mod framed;
mod hosts;
pub(crate) mod question;
mod resolvers;

pub use hosts::Hosts;
pub(crate) use resolvers::{DNS, Health};
pub use resolvers::{Resolver, Resolvers};
