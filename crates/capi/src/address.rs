//! Addresses: one struct for both families, and their text.

use crate::boundary::{Out, given, guard, text, value, write_text};
use crate::error::Failure;
use std::ffi::c_char;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes that the text of any address fits, with the zero at its end.
pub const ACKLINE_ADDRESS_TEXT: usize = 64;

/// An IP address and a port.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ackline_address {
    /// 4 or 6.
    pub version: u8,
    /// The address, in network order; of IPv4 the first four bytes, and the others are 0.
    pub ip: [u8; 16],
    /// The port, in the order of this machine.
    pub port: u16,
}

impl ackline_address {
    pub(crate) fn read(&self) -> Result<SocketAddr, Failure> {
        let [a, b, c, d, ..] = self.ip;
        let ip = match self.version {
            4 => Ipv4Addr::new(a, b, c, d).into(),
            6 => IpAddr::from(self.ip),
            other => return Err(Failure::invalid(format!("an address has version 4 or 6, not {other}"))),
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

/// Reads `10.0.0.2:80` or `[fd00::2]:80`. Returns 0, or `ACKLINE_EINVAL`, `ACKLINE_EFAULT`.
///
/// # Safety
/// `from` is null or a string that ends with a zero; `address` is null or has room for an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackline_address_parse(from: *const c_char, address: *mut ackline_address) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise.
        let from = given(unsafe { text(from, "text") }?, "text")?;
        // SAFETY: the caller's promise.
        let address = given(unsafe { Out::new(address) }, "address")?;
        let parsed: SocketAddr = from.parse().map_err(|_| {
            Failure::invalid(format!("{from:?} is no address and port, such as 10.0.0.2:80 or [fd00::2]:80"))
        })?;
        address.write(parsed.into());
        Ok(0)
    })
}

/// Writes an address as text that ends with a zero. `ACKLINE_ADDRESS_TEXT` bytes are enough for
/// any. Returns its length without the zero, or `ACKLINE_EINVAL`, `ACKLINE_EFAULT`.
///
/// # Safety
/// `address` is null or an address; `to` is null or has room for `len` bytes.
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
