//! Which packets reach the stack, by their addresses.

use std::fmt;
use std::net::IpAddr;

/// True for the source and destination of a packet that may pass.
pub type IpFilter<'a> = Box<dyn Fn(&IpAddr, &IpAddr) -> bool + Send + Sync + 'a>;

/// Filters, all of which a packet must pass.
#[derive(Default)]
pub struct IpFilters<'a> {
    filters: Vec<IpFilter<'a>>,
}

impl fmt::Debug for IpFilters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IpFilters").field("filters", &self.filters.len()).finish()
    }
}

impl<'a> IpFilters<'a> {
    /// No filter: everything passes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Only packets between addresses of hosts pass: no broadcast, multicast or unspecified one.
    #[must_use]
    pub fn with_non_broadcast() -> Self {
        fn is_of_host(address: &IpAddr) -> bool {
            let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
            !(is_broadcast || address.is_multicast() || address.is_unspecified())
        }
        let mut filters = Self::new();
        filters.add_fn(|from, to| is_of_host(from) && is_of_host(to));
        filters
    }

    /// Adds a filter.
    pub fn add(&mut self, filter: IpFilter<'a>) {
        self.filters.push(filter);
    }

    /// Adds a filter.
    pub fn add_fn<F>(&mut self, filter: F)
    where
        F: Fn(&IpAddr, &IpAddr) -> bool + Send + Sync + 'a,
    {
        self.add(Box::new(filter));
    }

    /// Adds filters.
    pub fn add_all<I: IntoIterator<Item = IpFilter<'a>>>(&mut self, filters: I) {
        self.filters.extend(filters);
    }

    /// True if a packet from `src` to `dst` may pass.
    #[must_use]
    pub fn is_allowed(&self, src: &IpAddr, dst: &IpAddr) -> bool {
        self.filters.iter().all(|filter| filter(src, dst))
    }
}
