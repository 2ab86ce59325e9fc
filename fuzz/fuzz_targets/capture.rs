//! A capture: pcap or pcapng, in either byte order, of any link.
//!
//! Any octets are read to their end, or up to the place that is damaged, and what was read has a
//! story: with few connections at once and many, drawn or not. It does not depend on how many
//! octets a read returns. What the capture becomes as a script of packetdrill is one.
#![cfg_attr(feature = "link", no_main)]

use ackline_drill::{CapturedPacket, Script, record};
use ackline_explain::{Explainer, Limits, Reader, Story, text};
use std::io::Read;

ackline_fuzz::target!(run);

fn run(octets: &[u8]) {
    let mut few = Limits::default();
    (few.open, few.stories, few.records, few.drawn) = (3, 2, 100, 20);
    let whole = story(octets, few);
    let sliced = story(Slices(octets, 0), few);
    assert_eq!(whole, sliced);
    story(octets, Limits::default());

    let mut packets = vec![];
    let Ok(mut reader) = Reader::new(octets) else { return };
    while let Ok(Some(frame)) = reader.next_frame() {
        packets.push(CapturedPacket { at_ns: frame.at_ns, octets: frame.data.to_vec() });
    }
    if let Ok(script) = record(&packets, None) {
        Script::parse(&script, &[]).unwrap_or_else(|error| panic!("{error}\n{script}"));
    }
}

/// All that is told of a capture.
fn story(file: impl Read, limits: Limits) -> Option<String> {
    let mut reader = Reader::new(file).ok()?;
    let mut explainer = Explainer::new(limits);
    let outcome = explainer.read(&mut reader).map_err(|error| error.to_string());
    Some(format!("{outcome:?}\n{}", tell(&explainer.finish())))
}

fn tell(story: &Story) -> String {
    let pages = story.connections.iter().map(text::page);
    pages.fold(text::summary(story) + &text::left_out(story), |all, page| all + &page)
}

/// Reads that return few octets.
struct Slices<'a>(&'a [u8], usize);

impl Read for Slices<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.1 = self.1 % 5 + 1;
        let most = buffer.len().min(self.1);
        self.0.read(&mut buffer[..most])
    }
}
