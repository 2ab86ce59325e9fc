//! A file of the proxy: rules, upstreams, resolvers, names, published ports and limits, in TOML.
//!
//! Any text is read or refused, twice alike. An error is one line, and names a line that the text
//! has; it never shows what stands before the last `@` of an upstream's URL, a user and a password.
#![cfg_attr(feature = "link", no_main)]

use ackline_proxy::{ConfigFile, Upstream, without_credentials};

ackline_fuzz::target!(run);

fn run(octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else { return };
    let read = ConfigFile::parse(text);
    assert_eq!(read, ConfigFile::parse(text));
    if let Err(error) = read {
        let lines = text.matches('\n').count() + 1;
        assert!((1..=lines).contains(&error.line), "{error:?}");
        assert!(!error.message.is_empty() && !error.to_string().contains('\n'), "{error:?}");
    }
    // Each line alone as what an option of the command would take.
    for line in text.lines() {
        if let Ok(upstream) = line.parse::<Upstream>() {
            let shown = upstream.to_string();
            assert!(!shown.contains('@'), "{shown}");
            assert_eq!(shown.parse::<Upstream>().map(|again| again.to_string()), Ok(shown.clone()));
        }
        assert!(without_credentials(line).len() <= line.len() + 3);
    }
}
