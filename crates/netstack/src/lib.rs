#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod ipstack;
pub mod netstack_smoltcp;

mod accept;
#[cfg(feature = "futures-io")]
mod futures_streams;
mod io_device;
mod queue;
mod queue_device;
