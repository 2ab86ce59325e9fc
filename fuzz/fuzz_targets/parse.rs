//! Any octets as a received packet: see the text of [`packet`].
#![cfg_attr(feature = "link", no_main)]

#[path = "../../tests/scripted/packet.rs"]
mod packet;

ackline_fuzz::target!(packet::run);
