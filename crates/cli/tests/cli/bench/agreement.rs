//! What the two ends of a test must agree upon, whoever is which.

use super::world::Both;
use serde_json::Value;

/// What is written to a socket and not yet read at the other end when a test ends: send buffer,
/// queues, receive buffer.
const BETWEEN: u64 = 16 << 20;

/// The sums of one direction, by their names in the documents.
struct Sums {
    sent: &'static str,
    received: &'static str,
    interval: &'static str,
    /// The client sends.
    forward: bool,
}

const ONLY: [&str; 3] = ["sum_sent", "sum_received", "sum"];
const BACK: [&str; 3] = ["sum_sent_bidir_reverse", "sum_received_bidir_reverse", "sum_bidir_reverse"];

impl Both {
    /// Checks both documents against each other and in themselves; the bytes that arrived, by
    /// direction.
    pub(crate) fn agree(&self) -> Vec<u64> {
        let both_ways = self.client["end"].get(BACK[0]).is_some();
        let reverse = self.client["start"]["test_start"]["reverse"] == 1;
        let mut directions = vec![(ONLY, !reverse)];
        if both_ways {
            directions.push((BACK, false));
        }
        assert_eq!(self.client["start"]["cookie"], self.server["start"]["cookie"]);
        let directions = directions.into_iter().map(|([sent, received, interval], forward)| Sums {
            sent,
            received,
            interval,
            forward,
        });
        directions.map(|sums| self.direction(&sums)).collect()
    }

    fn direction(&self, sums: &Sums) -> u64 {
        let (sender, receiver) =
            if sums.forward { (&self.client, &self.server) } else { (&self.server, &self.client) };
        let sent = bytes(&sender["end"][sums.sent]);
        let received = bytes(&receiver["end"][sums.received]);
        // The client hears what the server counted, and says the same.
        let client = &self.client["end"];
        assert_eq!(bytes(&client[sums.sent]), sent, "{self:#?}");
        assert_eq!(bytes(&client[sums.received]), received, "{self:#?}");
        assert!(received > 0, "{self:#?}");
        // What was written before the part that counts may arrive in it.
        let counted_late = if omits(&self.client) { BETWEEN } else { 0 };
        assert!(received <= sent + counted_late, "{received} arrived of {sent}: {self:#?}");
        assert!(sent <= received + BETWEEN, "only {received} arrived of {sent}: {self:#?}");
        for (end, total, sends) in [(sender, sent, true), (receiver, received, false)] {
            let intervals = end["intervals"].as_array().expect("intervals");
            let counted = intervals.iter().filter(|interval| interval[sums.interval]["omitted"] == false);
            let by_interval: u64 = counted.map(|interval| bytes(&interval[sums.interval])).sum();
            assert_eq!(by_interval, total, "intervals add up: {end:#}");
            let streams = end["end"]["streams"].as_array().expect("streams");
            let half = if sends { "sender" } else { "receiver" };
            let ours = streams.iter().map(|stream| &stream[half]).filter(|stream| stream["sender"] == sends);
            assert_eq!(ours.map(bytes).sum::<u64>(), total, "streams add up: {end:#}");
        }
        received
    }
}

fn omits(document: &Value) -> bool {
    document["start"]["test_start"]["omit"] != 0
}

fn bytes(part: &Value) -> u64 {
    part["bytes"].as_u64().unwrap_or_else(|| panic!("bytes in {part:#}"))
}
