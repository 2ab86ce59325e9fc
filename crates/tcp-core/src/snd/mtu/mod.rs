//! The path MTU: what ICMP, the device, probes and losses say of it.

pub(in crate::snd) mod black_hole;
pub(in crate::snd) mod device_mtu;
pub(in crate::snd) mod mtu_search;
pub(in crate::snd) mod packet_too_big;
