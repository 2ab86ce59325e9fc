//! Two endpoints, their applications and a hostile network, driven by a script: see the text of
//! [`script`].
#![no_main]

#[expect(dead_code, reason = "only the tests look at what became of a script")]
#[path = "../../tests/scripted/script/mod.rs"]
mod script;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    script::run(octets);
});
