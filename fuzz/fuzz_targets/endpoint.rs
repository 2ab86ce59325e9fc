//! Two endpoints, their applications and a hostile network, driven by a script: see the text of
//! [`script`].
#![cfg_attr(feature = "link", no_main)]

#[expect(dead_code, reason = "only the tests look at what became of a script")]
#[path = "../../tests/scripted/script/mod.rs"]
mod script;

ackline_fuzz::target!(script::run);
