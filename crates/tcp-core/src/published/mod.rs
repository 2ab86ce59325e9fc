//! Behaviour that is only needed to repeat published measurements. No default uses any of it.
//!
//! | file | holds |
//! |---|---|
//! | `sunos.rs` | which segments SunOS 4.1 sends into a small window ([`Nagle::SunOs`](crate::config::Nagle::SunOs)) |
//! | `pricing.rs` | packet sizes as in a paper ([`Pricing::Paper`](crate::config::Pricing::Paper)) |

mod pricing;
mod sunos;

pub(crate) use pricing::paper_price;
pub use sunos::{HalfRule, NagleTest, SunOs};
