//! Addresses: one struct for both families, and its text form.

use crate::boundary::{Out, given, guard, text, value, write_text};
use crate::error::Failure;
use std::ffi::c_char;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Size of a buffer that has room for any address as text, with the terminating NUL.
pub const ACKLINE_ADDRESS_TEXT: usize = 64;

/// An IP address and a port.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ackline_address {
    /// IP version: 4 or 6.
    pub version: u8,
    /// The address in network byte order. IPv4 uses the first four bytes; the others are written as
    /// 0 and ignored when read.
    pub ip: [u8; 16],
    /// The port in host byte order.
    pub port: u16,
}

impl ackline_address {
    pub(crate) fn read(&self) -> Result<SocketAddr, Failure> {
        let [a, b, c, d, ..] = self.ip;
        let ip = match self.version {
            4 => Ipv4Addr::new(a, b, c, d).into(),
            6 => IpAddr::from(self.ip),
            other => {
                return Err(Failure::invalid(format!("the version of an address is 4 or 6, not {other}")));
            }
        };
        Ok(SocketAddr::new(ip, self.port))
    }
}

impl From<SocketAddr> for ackline_address {
    fn from(address: SocketAddr) -> Self {
        let (version, ip) = match address.ip() {
            IpAddr::V4(v4) => {
                let [a, b, c, d] = v4.octets();
                (4, [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
            }
            IpAddr::V6(v6) => (6, Ipv6Addr::octets(&v6)),
        };
        Self { version, ip, port: address.port() }
    }
}

/// Parses `10.0.0.2:80` or `[fd00::2]:80`. Returns 0, `ACKLINE_EINVAL` or `ACKLINE_EFAULT`.
///
/// # Safety
/// `from` is null or a NUL-terminated string; `address` is null or has room for an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_address_parse(from: *const c_char, address: *mut ackline_address) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let from = given(unsafe { text(from, "text") }?, "text")?;
        // SAFETY: the caller's promise.
        let address = given(unsafe { Out::new(address) }, "address")?;
        let parsed: SocketAddr = from.parse().map_err(|_| {
            Failure::invalid(format!(
                "{from:?} is not an address and port, such as 10.0.0.2:80 or [fd00::2]:80"
            ))
        })?;
        address.write(parsed.into());
        Ok(0)
    })
}

/// Writes an address as NUL-terminated text. `ACKLINE_ADDRESS_TEXT` bytes are always enough.
/// Returns the length without the NUL, `ACKLINE_EINVAL` or `ACKLINE_EFAULT`.
///
/// # Safety
/// `address` is null or points to an address; `to` is null or has room for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_address_format(
    address: *const ackline_address,
    to: *mut c_char,
    len: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let written = given(unsafe { value(address) }, "address")?.read()?.to_string();
        // SAFETY: the caller's promise.
        unsafe { write_text(&written, to, len) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ACKLINE_EINVAL;

    #[test]
    fn an_address_survives_c() {
        for text in ["10.0.0.2:80", "[fd00::2]:65535", "0.0.0.0:0"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(ackline_address::from(address).read().unwrap(), address);
        }
        let wrong = ackline_address { version: 5, ip: [0; 16], port: 1 };
        assert_eq!(wrong.read().unwrap_err().code, ACKLINE_EINVAL);
    }
}
