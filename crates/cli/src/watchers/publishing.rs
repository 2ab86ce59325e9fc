//! Published ports of a running proxy: those of the command line, and changes by the control
//! socket.

use crate::failure::Failure;
use ackline_proxy::{Publish, PublishError, Published, Publisher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a proxy publishes, and its only guest if it has one.
#[derive(Clone, Debug)]
pub(crate) struct Publishing {
    publisher: Publisher,
    guests: Vec<IpAddr>,
}

impl Publishing {
    pub(crate) const fn new(publisher: Publisher, guests: Vec<IpAddr>) -> Self {
        Self { publisher, guests }
    }

    /// Publishes what the command line has, each with its guest.
    pub(crate) fn begin(&self, publish: &[Publish]) -> Result<(), Failure> {
        for published in publish {
            self.publisher.add(published).map_err(|error| match error {
                PublishError::Listen { address, error } => {
                    Failure::system(&format!("publish {published}: listen at {address}"), &error)
                }
                other => Failure::usage(format!("--publish {published}: {other}")),
            })?;
        }
        Ok(())
    }

    /// Publishes what a client of the control socket has written.
    pub(crate) fn add(&self, text: &str) -> Result<(), String> {
        let publish = self.read(text)?;
        self.publisher.add(&publish).map(drop).map_err(|error| format!("{text}: {error}"))
    }

    /// Closes it again.
    pub(crate) fn remove(&self, text: &str) -> Result<(), String> {
        let publish = self.read(text)?;
        if self.publisher.remove(&publish) { Ok(()) } else { Err(format!("{publish} is not published")) }
    }

    pub(crate) fn list(&self) -> Vec<Published> {
        self.publisher.list()
    }

    fn read(&self, text: &str) -> Result<Publish, String> {
        let publish: Publish = text.parse().map_err(|error| format!("{text:?}: {error}"))?;
        to_guest(&publish, &self.guests)
    }
}

/// With the guest that it does not name.
///
/// # Errors
/// If there is not just one.
pub(crate) fn to_guest(publish: &Publish, guests: &[IpAddr]) -> Result<Publish, String> {
    publish.to(guests).ok_or_else(|| {
        let is_v4 = publish.address.is_none_or(|address| address.is_ipv4());
        let guest: IpAddr = if is_v4 {
            Ipv4Addr::new(10, 0, 2, 15).into()
        } else {
            Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0x15).into()
        };
        let named = Publish { guest: Some(guest), ..publish.clone() };
        format!("{publish}: name the guest, as in {named}")
    })
}
