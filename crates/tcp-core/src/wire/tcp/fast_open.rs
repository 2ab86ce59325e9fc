//! The cookie of TCP Fast Open (RFC 7413, section 4.1.1), in an option of its own or in the
//! experimental one that came before it (RFC 6994, with the experiment identifier 0xF989).

use core::fmt;

/// What a fast open option holds: a cookie of 4 to 16 octets, an even number, or nothing, which
/// requests one. Two cookies are equal if the option is, too; compare [`as_slice`](Self::as_slice)
/// to compare what was issued.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FastOpenCookie {
    /// Zero from `len` on.
    octets: [u8; Self::MAX_LEN],
    len: u8,
    experimental: bool,
}

impl FastOpenCookie {
    /// Octets of the longest cookie.
    pub const MAX_LEN: usize = 16;
    /// Octets of the shortest cookie.
    pub const MIN_LEN: usize = 4;
    /// No cookie: the client requests one.
    pub const REQUEST: Self = Self { octets: [0; Self::MAX_LEN], len: 0, experimental: false };

    /// A cookie, or a request if there are no octets; `None` if the number of octets is not one
    /// that RFC 7413 permits.
    #[must_use]
    pub fn new(octets: &[u8]) -> Option<Self> {
        let len = octets.len();
        let permitted = len == 0 || ((Self::MIN_LEN..=Self::MAX_LEN).contains(&len) && len.is_multiple_of(2));
        let mut cookie = Self::REQUEST;
        cookie.octets.get_mut(..len).filter(|_| permitted)?.copy_from_slice(octets);
        cookie.len = len as u8;
        Some(cookie)
    }

    /// The octets.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// True if it requests a cookie.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        self.len == 0
    }

    /// The same in the experimental option, or in that of RFC 7413.
    #[must_use]
    pub const fn experimental(self, experimental: bool) -> Self {
        Self { experimental, ..self }
    }

    /// True if it stands in the experimental option.
    #[must_use]
    pub const fn is_experimental(&self) -> bool {
        self.experimental
    }

    /// Octets of the option.
    pub(in crate::wire) const fn option_len(&self) -> usize {
        2 + self.len as usize + if self.experimental { 2 } else { 0 }
    }

    /// Octets of the option, padded to a multiple of four.
    pub(crate) const fn padded_len(&self) -> usize {
        self.option_len().next_multiple_of(4)
    }
}

impl fmt::Debug for FastOpenCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_request() {
            return f.write_str("request");
        }
        self.as_slice().iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}
