//! How connections begin: half-open connections, SYN cookies, fast open, held SYNs, and what floods
//! of SYNs cost.

pub(crate) mod fast_open;
pub(crate) mod half_open;
mod incoming;
mod option_bombs;
mod syn_cookies;
