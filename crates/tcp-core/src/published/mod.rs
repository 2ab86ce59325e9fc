//! Behaviour that only the repetition of published measurements needs. No default uses any of it.
//!
//! | file | holds |
//! |---|---|
//! | `sunos.rs` | which segments SunOS 4.1 sends into a small window ([`Nagle::SunOs`](crate::config::Nagle::SunOs)) |
//! | `pricing.rs` | packets that cost what a paper says ([`Pricing::Paper`](crate::config::Pricing::Paper)) |

mod pricing;
mod sunos;

pub(crate) use pricing::paper_price;
pub use sunos::{HalfRule, NagleTest, SunOs};
