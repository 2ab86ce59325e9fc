//! Endings: in each state, whatever ends a connection and whatever is left, what is the application
//! told, and what the peer?
//!
//! The rule: an end is told as an error unless everything written was acknowledged, the FIN behind
//! it included, and everything the peer sent, up to its FIN, can be read.

use super::*;
use crate::conn::checks::Verdict;

/// What is left when the end comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leftover {
    /// Nothing was written or received.
    Nothing,
    /// The application's data waits for the peer's window.
    Unsent,
    /// The application's data left, and is not acknowledged.
    Unacked,
    /// The peer's data was not read.
    Unread,
}

const LEFT: [Leftover; 4] = [Leftover::Nothing, Leftover::Unsent, Leftover::Unacked, Leftover::Unread];
const DATA: &[u8] = b"written";
const UNREAD: &[u8] = b"unread";

impl Bench {
    /// A connection in `state` with `left`; `None` if the two exclude each other.
    fn with_left(state: State, left: Leftover) -> Option<Self> {
        let closed = !matches!(state, State::Established | State::CloseWait);
        let acknowledged = acknowledged(state);
        let writes = matches!(left, Leftover::Unsent | Leftover::Unacked);
        if acknowledged && writes {
            return None;
        }
        let config = ConnConfig { user_timeout: Some(Duration::from_secs(20)), ..config() };
        let mut bench = Self::active(config);
        bench.arrive(&segment(SYN | ACK, IRS, ISS + 1, &[]));
        bench.drain();
        let mut seq = IRS + 1;
        if left == Leftover::Unread {
            bench.arrive(&segment(ACK, seq, ISS + 1, UNREAD));
            seq += UNREAD.len() as u32;
        }
        let window = if left == Leftover::Unsent { 0 } else { 60_000 };
        let heard = |flags, seq, ack| TcpSegment { window, ..segment(flags, seq, ack, &[]) };
        bench.arrive(&heard(ACK, seq, ISS + 1));
        let closes_first = matches!(state, State::CloseWait | State::LastAck);
        if closes_first {
            bench.arrive(&heard(FIN | ACK, seq, ISS + 1));
        }
        if writes {
            bench.conn.write(DATA).unwrap();
        }
        if closed {
            bench.conn.shutdown(ctx!(bench));
        }
        bench.drain();
        let ack = if acknowledged { ISS + 2 } else { ISS + 1 };
        if acknowledged {
            bench.arrive(&heard(ACK, seq, ack));
        }
        if peer_closed(state) && !closes_first {
            bench.arrive(&heard(FIN | ACK, seq, ack));
        }
        bench.drain();
        assert_eq!(bench.conn.state(), state, "{left:?}");
        Some(bench)
    }

    /// What leaves is an RST.
    fn resets(&mut self) -> bool {
        self.drain().iter().any(|sent| sent.flags.contains(RST))
    }

    /// What the application is told, and whether the peer is told of a reset.
    fn end(mut self, reset: bool) -> String {
        assert_eq!(self.conn.state(), State::Closed);
        let mut buf = [0; 100];
        let mut told = String::new();
        loop {
            match self.conn.read(ctx!(self), &mut buf) {
                Ok(0) => break told += if self.conn.at_end() { "end-of-stream" } else { "nothing" },
                Ok(n) => told += &format!("{n} bytes, "),
                Err(error) => break told += &format!("{error}"),
            }
        }
        let flushed = if self.conn.is_flushed() { "flushed" } else { "not flushed" };
        let error = self.conn.error().map_or_else(|| "in order".into(), |error| format!("{error}"));
        let reset = if reset { "; sends RST" } else { "" };
        format!("{error}; {flushed}; reads {told}{reset}")
    }
}

/// The peer has closed its side.
fn peer_closed(state: State) -> bool {
    matches!(state, State::CloseWait | State::LastAck | State::Closing | State::TimeWait)
}

/// Our FIN is acknowledged, and with it everything written.
fn acknowledged(state: State) -> bool {
    matches!(state, State::FinWait2 | State::TimeWait)
}

/// What [`Bench::end`] must say if the connection ends with `error`.
fn told(state: State, left: Leftover, error: Option<ConnError>, reset: bool) -> String {
    let unread = if left == Leftover::Unread { "6 bytes, " } else { "" };
    let error = error.map_or_else(|| "in order".into(), |error| format!("{error}"));
    let last = if peer_closed(state) { "end-of-stream" } else { &error };
    let flushed = if acknowledged(state) { "flushed" } else { "not flushed" };
    let reset = if reset { "; sends RST" } else { "" };
    format!("{error}; {flushed}; reads {unread}{last}{reset}")
}

/// Ends a connection in each state with each rest, which must say what `expected` says. `end` says
/// whether an RST left, or `None` if the connection is not over; `ended` is the number of cells in
/// which it is.
fn check(
    ended: usize,
    end: impl Fn(&mut Bench) -> Option<bool>,
    expected: impl Fn(State, Leftover) -> String,
) {
    let mut cells = 0;
    for state in SYNCHRONIZED {
        for left in LEFT {
            let Some(mut bench) = Bench::with_left(state, left) else { continue };
            let Some(reset) = end(&mut bench) else { continue };
            cells += 1;
            assert_eq!(bench.end(reset), expected(state, left), "{state} {left:?}");
        }
    }
    assert_eq!(cells, ended);
}

fn rcv_nxt(bench: &Bench) -> SeqNum {
    bench.conn.rcv.rcv_nxt()
}

#[test]
fn by_the_peers_reset() {
    check(
        22,
        |bench| {
            bench.arrive(&segment(RST, rcv_nxt(bench), SeqNum(0), &[]));
            // RFC 1337: TIME-WAIT goes on.
            (bench.conn.state() == State::Closed).then(|| bench.resets())
        },
        // Also in CLOSING and LAST-ACK, with nothing but our FIN unacknowledged (Linux,
        // `tcp_reset`; FreeBSD, `tcp_input`).
        |state, left| told(state, left, Some(ConnError::Reset), false),
    );
}

#[test]
fn by_an_abort() {
    check(
        24,
        |bench| {
            bench.conn.abort(ctx!(bench), ConnError::Aborted);
            Some(bench.resets())
        },
        |state, left| {
            let lost = state != State::TimeWait;
            told(state, left, lost.then_some(ConnError::Aborted), lost)
        },
    );
}

/// Unread data resets at once, and is freed; the rest closes in the background until its time is
/// up.
#[test]
fn by_letting_go() {
    check(
        24,
        |bench| {
            let unread = bench.conn.rcv.readable() > 0;
            let waits = bench.conn.state() == State::TimeWait;
            bench.conn.release(ctx!(bench));
            let at_once = bench.resets();
            assert_eq!(at_once, unread && !waits);
            bench.conn.abort(ctx!(bench), ConnError::Aborted);
            Some(at_once | bench.resets())
        },
        |state, _| {
            let lost = state != State::TimeWait;
            told(state, Leftover::Nothing, lost.then_some(ConnError::Aborted), lost)
        },
    );
}

/// It runs while something is outstanding, or the window is closed.
#[test]
fn by_the_user_timeout() {
    check(
        16,
        |bench| {
            let start = bench.now;
            while let Some((at, _)) = bench.conn.next_deadline()
                && at.since(start) <= Duration::from_secs(40)
            {
                bench.now = at;
                bench.conn.on_timeout(ctx!(bench));
                if bench.conn.state() == State::Closed {
                    return bench.conn.error().map(|_| bench.resets());
                }
                bench.drain();
            }
            None
        },
        |state, left| told(state, left, Some(ConnError::TimedOut), true),
    );
}

/// Both sides close, and the peer takes everything.
#[test]
fn by_both_fins() {
    check(
        24,
        |bench| {
            if matches!(bench.conn.state(), State::Established | State::CloseWait) {
                bench.conn.shutdown(ctx!(bench));
            }
            // The peer's window opens.
            bench.arrive(&segment(ACK, rcv_nxt(bench), bench.conn.snd.snd_una(), &[]));
            let mut reset = bench.resets();
            let all = bench.conn.snd.snd_nxt();
            let fin = if matches!(bench.conn.state(), State::FinWait1 | State::FinWait2) { FIN } else { ACK };
            bench.arrive(&segment(fin | ACK, rcv_nxt(bench), all, &[]));
            reset |= bench.resets();
            bench.now += bench.conn.config.time_wait;
            bench.conn.on_timeout(ctx!(bench));
            Some(reset)
        },
        |_, left| told(State::TimeWait, left, None, false),
    );
}

/// What the peer sent before it saw our FIN acknowledges less than the FIN, and may arrive after
/// the ACK of it. Once more than all that was ever sent, an acknowledgment is still refused.
#[test]
fn by_the_peers_fin_sent_before_it_saw_ours() {
    for written in [0, 100] {
        let mut bench = Bench::active(config());
        let options = TcpOptions { sack_permitted: true, ..TcpOptions::NONE };
        bench.arrive(&TcpSegment { options, ..segment(SYN | ACK, IRS, ISS + 1, &[]) });
        bench.conn.write(&[7; 100][..written]).unwrap();
        bench.conn.shutdown(ctx!(bench));
        bench.drain();
        let first = ISS + 1;
        let all = first + written as u32 + 1;
        // Its numbers are those behind what was reordered.
        bench.arrive(&segment(ACK, IRS + 5, all, &[]));
        assert_eq!(bench.conn.state(), State::FinWait2);
        bench.drain();
        assert_eq!(bench.conn.judge(bench.now, &segment(ACK, IRS + 1, first - 1, b"late")), Verdict::BadAck);
        bench.arrive(&segment(ACK, IRS + 1, first, b"la"));
        bench.arrive(&segment(FIN | ACK, IRS + 3, first, b"te"));
        assert_eq!(bench.conn.state(), State::TimeWait, "{written}");
        assert_eq!(bench.conn.peek().concat(), b"late");
        assert_eq!(bench.observe.counters.tcp_ack_unacceptable, 0);
        // All of the peer's stream again, from its first byte on, is reported as a duplicate (RFC
        // 2883).
        bench.now += Duration::from_secs(1);
        bench.arrive(&segment(ACK, IRS + 1, all, b"late"));
        bench.drain();
        assert_eq!(bench.observe.counters.tcp_dsack_old_sent, 1);
    }
}
