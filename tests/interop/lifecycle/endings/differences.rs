//! Where ackline tells something else than the kernel does, and why.

use super::Table;
use super::cell::{Cell, Event};
use super::ends::Kind;
use super::outcome::Of;
use std::collections::{BTreeMap, BTreeSet};

/// What differs in the same way, for one reason.
struct Difference {
    event: Event,
    of: Of,
    ours: &'static str,
    kernels: &'static str,
    /// States with fates of data: `Established: Unsent Unread; LastAck: Unread`.
    cells: &'static str,
    reason: &'static str,
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        event: Event::Rst,
        of: Of::Write,
        ours: "reset, reset",
        kernels: "broken pipe, broken pipe",
        cells: "CloseWait: Delivered Unsent Unacked Unread",
        reason: "Linux says EPIPE of an RST that comes after the peer's FIN. It is the RST that undoes what was written.",
    },
    Difference {
        event: Event::Rst,
        of: Of::Write,
        ours: "reset, reset",
        kernels: "reset, broken pipe",
        cells: "Established: Delivered Unsent Unacked Unread; FinWait1: Delivered Unsent Unacked Unread; FinWait2: Delivered Unread; Closing: Delivered Unsent Unacked Unread; LastAck: Delivered Unsent Unacked Unread",
        reason: "A socket reports an error once. A stream keeps it, so that whoever asks next (the other half, say) is told the same.",
    },
    Difference {
        event: Event::Rst,
        of: Of::End,
        ours: "delivered",
        kernels: "reset",
        cells: "FinWait2: Delivered Unread",
        reason: "`flushed` asks whether everything written and the FIN were acknowledged; what came later does not change that.",
    },
    Difference {
        event: Event::Rst,
        of: Of::End,
        ours: "reset",
        kernels: "broken pipe",
        cells: "CloseWait: Delivered Unsent Unacked Unread",
        reason: "As for writing: Linux says EPIPE of an RST that comes after the peer's FIN.",
    },
    Difference {
        event: Event::Abort,
        of: Of::Read,
        ours: "aborted",
        kernels: "reset",
        cells: "Established: Delivered Unsent Unacked; FinWait1: Delivered Unsent Unacked; FinWait2: Delivered",
        reason: "This side has reset the connection, not the peer.",
    },
    Difference {
        event: Event::Abort,
        of: Of::Read,
        ours: "all, aborted",
        kernels: "nothing, reset",
        cells: "Established: Unread; FinWait1: Unread; FinWait2: Unread",
        reason: "What was received stays readable; the kernel's disconnect throws it away. And this side has reset the connection, not the peer.",
    },
    Difference {
        event: Event::Abort,
        of: Of::Read,
        ours: "all, end",
        kernels: "nothing, not connected",
        cells: "Closing: Unread; LastAck: Unread; TimeWait: Unread",
        reason: "What was received, and its end, stay readable; the kernel's disconnect throws both away.",
    },
    Difference {
        event: Event::Abort,
        of: Of::Read,
        ours: "all, end",
        kernels: "nothing, reset",
        cells: "CloseWait: Unread",
        reason: "What was received, and its end, stay readable; the kernel's disconnect throws both away.",
    },
    Difference {
        event: Event::Abort,
        of: Of::Read,
        ours: "end",
        kernels: "not connected",
        cells: "Closing: Delivered Unacked; LastAck: Delivered Unacked; TimeWait: Delivered",
        reason: "The peer's FIN had come: the stream has ended whatever becomes of the connection. The kernel's disconnect forgets it.",
    },
    Difference {
        event: Event::Abort,
        of: Of::Read,
        ours: "end",
        kernels: "reset",
        cells: "CloseWait: Delivered Unsent Unacked; Closing: Unsent; LastAck: Unsent",
        reason: "The peer's FIN had come: the stream has ended whatever becomes of the connection. The kernel's disconnect forgets it.",
    },
    Difference {
        event: Event::Abort,
        of: Of::Write,
        ours: "aborted, aborted",
        kernels: "broken pipe, broken pipe",
        cells: "Closing: Delivered Unacked Unread; LastAck: Delivered Unacked Unread",
        reason: "The error is kept. The kernel has none, since its disconnect forgets a connection in these states.",
    },
    Difference {
        event: Event::Abort,
        of: Of::Write,
        ours: "aborted, aborted",
        kernels: "reset, broken pipe",
        cells: "Established: Delivered Unsent Unacked Unread; FinWait1: Delivered Unsent Unacked Unread; FinWait2: Delivered Unread; CloseWait: Delivered Unsent Unacked Unread; Closing: Unsent; LastAck: Unsent",
        reason: "This side has reset the connection, not the peer, and the error is kept.",
    },
    Difference {
        event: Event::Abort,
        of: Of::End,
        ours: "aborted",
        kernels: "delivered",
        cells: "Closing: Delivered Unacked Unread; LastAck: Delivered Unacked Unread",
        reason: "The FIN, and in the cell with data that too, was not acknowledged. The kernel's socket has no error, and was never asked what became of its data.",
    },
    Difference {
        event: Event::Abort,
        of: Of::End,
        ours: "aborted",
        kernels: "reset",
        cells: "Established: Delivered Unsent Unacked Unread; FinWait1: Delivered Unsent Unacked Unread; CloseWait: Delivered Unsent Unacked Unread; Closing: Unsent; LastAck: Unsent",
        reason: "This side has reset the connection, not the peer.",
    },
    Difference {
        event: Event::Abort,
        of: Of::End,
        ours: "delivered",
        kernels: "reset",
        cells: "FinWait2: Delivered Unread",
        reason: "Everything written and the FIN were acknowledged before.",
    },
    Difference {
        event: Event::Abort,
        of: Of::PeerRead,
        ours: "nothing, reset",
        kernels: "nothing, open",
        cells: "LastAck: Unacked",
        reason: "Linux resets from LAST-ACK only while data is unsent, as if everything had arrived. The peer, which waits for the FIN or the data, would wait for ever.",
    },
    Difference {
        event: Event::Abort,
        of: Of::PeerRead,
        ours: "reset",
        kernels: "open",
        cells: "LastAck: Delivered Unread",
        reason: "Linux resets from LAST-ACK only while data is unsent, as if everything had arrived. The peer, which waits for the FIN or the data, would wait for ever.",
    },
    Difference {
        event: Event::Abort,
        of: Of::PeerWrite,
        ours: "reset, broken pipe",
        kernels: "broken pipe, broken pipe",
        cells: "LastAck: Delivered Unacked Unread",
        reason: "Linux resets from LAST-ACK only while data is unsent, as if everything had arrived. The peer, which waits for the FIN or the data, would wait for ever.",
    },
    Difference {
        event: Event::LingerZero,
        of: Of::PeerRead,
        ours: "nothing, reset",
        kernels: "nothing, open",
        cells: "LastAck: Unacked",
        reason: "As for an abort: Linux resets from LAST-ACK only while data is unsent.",
    },
    Difference {
        event: Event::LingerZero,
        of: Of::PeerRead,
        ours: "reset",
        kernels: "open",
        cells: "LastAck: Delivered",
        reason: "As for an abort: Linux resets from LAST-ACK only while data is unsent.",
    },
    Difference {
        event: Event::LingerZero,
        of: Of::PeerWrite,
        ours: "reset, broken pipe",
        kernels: "broken pipe, broken pipe",
        cells: "LastAck: Delivered Unacked",
        reason: "As for an abort: Linux resets from LAST-ACK only while data is unsent.",
    },
    Difference {
        event: Event::LingerTimeout,
        of: Of::PeerRead,
        ours: "a part, reset",
        kernels: "all, end",
        cells: "Established: Unsent; FinWait1: Unsent; CloseWait: Unsent; Closing: Unsent; LastAck: Unsent",
        reason: "The limit ends the background close by an RST; in Linux it only ends the wait of `close`, and the rest goes on for as long as retransmissions last.",
    },
    Difference {
        event: Event::LingerTimeout,
        of: Of::PeerRead,
        ours: "nothing, reset",
        kernels: "all, end",
        cells: "Established: Unacked; FinWait1: Unacked; CloseWait: Unacked; Closing: Unacked; LastAck: Unacked",
        reason: "The limit ends the background close by an RST; in Linux it only ends the wait of `close`, and the rest goes on for as long as retransmissions last.",
    },
    Difference {
        event: Event::LingerTimeout,
        of: Of::PeerRead,
        ours: "reset",
        kernels: "end",
        cells: "FinWait1: Delivered; Closing: Delivered; LastAck: Delivered",
        reason: "The limit ends the background close by an RST; in Linux it only ends the wait of `close`, and the rest goes on for as long as retransmissions last.",
    },
    Difference {
        event: Event::LingerTimeout,
        of: Of::PeerWrite,
        ours: "broken pipe, broken pipe",
        kernels: "ok, broken pipe",
        cells: "Established: Delivered; FinWait2: Delivered",
        reason: "The limit is that of the whole close, the wait for the peer's FIN included, so the RST has come before the peer writes; in Linux it is over when the FIN is acknowledged.",
    },
    Difference {
        event: Event::LingerTimeout,
        of: Of::PeerWrite,
        ours: "reset, broken pipe",
        kernels: "broken pipe, broken pipe",
        cells: "CloseWait: Unsent Unacked; Closing: Delivered Unsent Unacked; LastAck: Delivered Unsent Unacked",
        reason: "The limit ends the background close by an RST, which the peer meets when it writes.",
    },
    Difference {
        event: Event::LingerTimeout,
        of: Of::PeerWrite,
        ours: "reset, broken pipe",
        kernels: "ok, reset",
        cells: "Established: Unsent Unacked; FinWait1: Delivered Unsent Unacked",
        reason: "The limit ends the background close by an RST, which the peer meets when it writes.",
    },
    Difference {
        event: Event::UserTimeout,
        of: Of::Write,
        ours: "timed out, timed out",
        kernels: "timed out, broken pipe",
        cells: "Established: Unsent Unacked; FinWait1: Delivered Unsent Unacked Unread; CloseWait: Unsent Unacked; Closing: Delivered Unsent Unacked Unread; LastAck: Delivered Unsent Unacked Unread",
        reason: "A socket reports an error once. A stream keeps it.",
    },
    Difference {
        event: Event::UserTimeout,
        of: Of::PeerRead,
        ours: "nothing, reset",
        kernels: "nothing, open",
        cells: "Established: Unacked; FinWait1: Unacked; CloseWait: Unacked; LastAck: Unacked",
        reason: "The timeout ends the connection by an RST, so that a peer which is back by then learns of it. RFC 9293, section 3.10.8, and Linux send none.",
    },
    Difference {
        event: Event::UserTimeout,
        of: Of::PeerRead,
        ours: "reset",
        kernels: "open",
        cells: "FinWait1: Delivered Unread; LastAck: Delivered Unread",
        reason: "The timeout ends the connection by an RST, so that a peer which is back by then learns of it. RFC 9293, section 3.10.8, and Linux send none.",
    },
    Difference {
        event: Event::UserTimeout,
        of: Of::PeerWrite,
        ours: "reset, broken pipe",
        kernels: "broken pipe, broken pipe",
        cells: "CloseWait: Unsent Unacked; Closing: Unsent; LastAck: Delivered Unsent Unacked Unread",
        reason: "The timeout ends the connection by an RST, so that a peer which is back by then learns of it. Linux tells it once it sends something.",
    },
    Difference {
        event: Event::UserTimeout,
        of: Of::PeerWrite,
        ours: "reset, broken pipe",
        kernels: "ok, reset",
        cells: "Established: Unsent Unacked; FinWait1: Delivered Unsent Unacked Unread",
        reason: "The timeout ends the connection by an RST, so that a peer which is back by then learns of it. Linux tells it once it sends something.",
    },
    Difference {
        event: Event::DeviceGone,
        of: Of::Read,
        ours: "all, network down",
        kernels: "all, open",
        cells: "Established: Unread; FinWait1: Unread; FinWait2: Unread",
        reason: "The driver knows that its device is gone, and says so once everything received is read. The kernel's connections outlive their interfaces.",
    },
    Difference {
        event: Event::DeviceGone,
        of: Of::Read,
        ours: "network down",
        kernels: "open",
        cells: "Established: Delivered Unsent Unacked; FinWait1: Delivered Unsent Unacked; FinWait2: Delivered",
        reason: "The driver knows that its device is gone, and says so once everything received is read. The kernel's connections outlive their interfaces.",
    },
    Difference {
        event: Event::DeviceGone,
        of: Of::Write,
        ours: "network down, network down",
        kernels: "broken pipe, broken pipe",
        cells: "FinWait1: Delivered Unsent Unacked Unread; FinWait2: Delivered Unread; Closing: Delivered Unsent Unacked Unread; LastAck: Delivered Unsent Unacked Unread; TimeWait: Delivered Unread",
        reason: "The driver knows that its device is gone, whatever the state. The kernel's connections outlive their interfaces.",
    },
    Difference {
        event: Event::DeviceGone,
        of: Of::Write,
        ours: "network down, network down",
        kernels: "ok, ok",
        cells: "Established: Delivered Unsent Unacked Unread; CloseWait: Delivered Unsent Unacked Unread",
        reason: "The driver knows that its device is gone, whatever the state. The kernel's connections outlive their interfaces.",
    },
    Difference {
        event: Event::DeviceGone,
        of: Of::End,
        ours: "network down",
        kernels: "open",
        cells: "Established: Delivered Unsent Unacked Unread; FinWait1: Delivered Unsent Unacked Unread; CloseWait: Delivered Unsent Unacked Unread; Closing: Delivered Unsent Unacked Unread; LastAck: Delivered Unsent Unacked Unread",
        reason: "The driver knows that nothing more will be acknowledged. The kernel's connections outlive their interfaces.",
    },
];

/// What differs without being named, and what is named and does not differ.
pub(super) fn check(table: &Table) -> Vec<String> {
    let mut named: BTreeMap<(String, Of), (&str, &str)> = BTreeMap::new();
    let mut complaints = vec![];
    for Difference { event, of, ours, kernels, cells, reason } in DIFFERENCES {
        assert!(!reason.is_empty());
        for group in cells.split("; ") {
            let (state, fates) = group.split_once(": ").expect("a state and fates");
            for fate in fates.split(' ') {
                let cell = format!("{event:?}, {state}, {fate}");
                if named.insert((cell.clone(), *of), (ours, kernels)).is_some() {
                    complaints.push(format!("{cell}: {of:?} is named twice"));
                }
            }
        }
    }
    let mut unnamed: BTreeMap<(Event, Of, &str, &str), Vec<&Cell>> = BTreeMap::new();
    for (cell, reports) in table {
        let (ours, kernels) = (&reports[&Kind::Stack].0, &reports[&Kind::Kernel].0);
        let asked: BTreeSet<Of> = ours.keys().chain(kernels.keys()).copied().collect();
        for of in asked {
            let told = |report: &'_ BTreeMap<Of, String>| report.get(&of).cloned().unwrap_or_default();
            let (ours_told, kernels_told) = (told(ours), told(kernels));
            match named.remove(&(cell.to_string(), of)) {
                None if ours_told == kernels_told => {}
                Some(named) if named == (&*ours_told, &*kernels_told) => {}
                Some(named) => complaints.push(format!(
                    "{cell}: {of:?}: ackline {ours_told:?}, the kernel {kernels_told:?}; named {named:?}"
                )),
                None => {
                    let key = (cell.event, of, ours[&of].as_str(), kernels[&of].as_str());
                    unnamed.entry(key).or_default().push(cell);
                }
            }
        }
    }
    for ((event, of, ours, kernels), cells) in unnamed {
        let mut states: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for cell in cells {
            states.entry(cell.state).or_default().push(format!("{:?}", cell.data));
        }
        let cells: Vec<_> =
            states.iter().map(|(state, fates)| format!("{state:?}: {}", fates.join(" "))).collect();
        complaints.push(format!(
            "not named: Difference {{ event: Event::{event:?}, of: Of::{of:?}, ours: {ours:?}, kernels: {kernels:?}, cells: {:?} }}",
            cells.join("; ")
        ));
    }
    complaints
        .extend(named.keys().map(|(cell, of)| format!("{cell}: {of:?} is named, and there is no such cell")));
    complaints
}
