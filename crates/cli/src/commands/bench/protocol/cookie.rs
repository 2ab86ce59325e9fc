//! What tells the connections of one test from those of another.

use crate::failure::Failure;
use std::fmt;

/// 36 characters and a NUL.
pub(crate) const COOKIE_SIZE: usize = 37;

/// Characters of base 32.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The mark of all connections of one test.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Cookie([u8; COOKIE_SIZE]);

impl Cookie {
    /// A new one from the kernel's random numbers.
    pub(crate) fn random() -> Result<Self, Failure> {
        let mut octets = [0; COOKIE_SIZE];
        let mut filled = 0;
        while let Some(rest) = octets.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty())
                .map_err(|error| Failure::system("get random numbers", &error.into()))?;
        }
        for octet in &mut octets {
            *octet = ALPHABET[usize::from(*octet) % ALPHABET.len()];
        }
        octets[COOKIE_SIZE - 1] = 0;
        Ok(Self(octets))
    }

    /// A peer's, whatever it is.
    pub(crate) const fn from_wire(octets: [u8; COOKIE_SIZE]) -> Self {
        Self(octets)
    }

    pub(crate) const fn octets(&self) -> &[u8; COOKIE_SIZE] {
        &self.0
    }
}

/// Up to the NUL; what is no letter or digit is shown as a question mark.
impl fmt::Display for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.iter().take_while(|octet| **octet != 0).map(|octet| match octet {
            octet if octet.is_ascii_alphanumeric() => char::from(*octet),
            _ => '?',
        });
        f.write_str(&text.collect::<String>())
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cookie({self})")
    }
}
