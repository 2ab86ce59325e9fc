//! The filter of datagrams to clients.

use serde::Deserialize;
use std::str::FromStr;

/// Filtering: sources whose datagrams reach a client's socket (RFC 4787, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filtering {
    /// Anybody's.
    EndpointIndependent,
    /// Those of hosts that it has sent to, from any port (REQ-8).
    #[default]
    AddressDependent,
    /// Those of the addresses and ports that it has sent to.
    AddressAndPortDependent,
}

impl FromStr for Filtering {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "endpoint-independent" => Ok(Self::EndpointIndependent),
            "address-dependent" => Ok(Self::AddressDependent),
            "address-and-port-dependent" => Ok(Self::AddressAndPortDependent),
            _ => Err("write endpoint-independent, address-dependent or address-and-port-dependent"),
        }
    }
}
