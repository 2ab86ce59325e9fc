//! Any octets as a received packet: see the text of [`packet`].
#![no_main]

#[path = "../../tests/scripted/packet.rs"]
mod packet;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    packet::run(octets);
});
