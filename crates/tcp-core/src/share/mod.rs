//! What the parts of an endpoint have in common.
//!
//! | file | holds |
//! |---|---|
//! | `cx.rs` | the context of a public call: its instant, the settings, and where to count |
//! | `keys.rs` | secret keys, one per use |
//! | `limits.rs` | how many of each kind of record there may be |
//! | `deadline_table.rs` | storage of records that wait for a time |
//! | `shares.rs` | how many records come from each source |
//! | `address_table.rs` | what is known by destination |

mod address_table;
mod cx;
mod deadline_table;
mod keys;
mod limits;
mod shares;

pub use cx::Ingested;

pub(crate) use address_table::{AddressTable, Entry as AddressEntry, PathCache};
pub(crate) use cx::{Context, Cx, is_unicast};
pub(crate) use deadline_table::{DeadlineTable, Hashed, KEEP};
pub(crate) use keys::Keys;
pub(crate) use limits::{Each, Limits, Pools};
pub(crate) use shares::{Shares, spread};

use crate::time::Duration;

/// The interval of the limits per second.
pub(crate) const SECOND: Duration = Duration::from_secs(1);
