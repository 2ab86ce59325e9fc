//! Segments of somebody who knows the addresses and ports of a connection, and guesses some of its
//! numbers.

use super::*;
use crate::DropReason;
use crate::conn::checks::Verdict;
use crate::events::{TraceEvent, Tracer};
use crate::wire::SackBlocks;
use alloc::boxed::Box;
use proptest::prelude::*;
use std::sync::Mutex;

/// A connection with timestamps, whose peer's clock shows 5,001.
fn stamped_connection() -> Bench {
    let syn = stamped(&segment(SYN, IRS, SeqNum(0), &[]), 5_000, 0);
    let mut bench = Bench::with(|ctx| accepted(ctx, Arc::new(ConnConfig::default()), 5, &syn));
    let ecr = bench.drain()[0].options.timestamps.unwrap().val;
    bench.arrive(&stamped(&segment(ACK, IRS + 1, ISS + 1, &[]), 5_001, ecr));
    assert_eq!(bench.conn.state(), State::Established);
    bench
}

fn stamped<'a>(seg: &TcpSegment<'a>, val: u32, ecr: u32) -> TcpSegment<'a> {
    let options = TcpOptions { timestamps: Some(Timestamps { val, ecr }), ..seg.options };
    TcpSegment { options, ..*seg }
}

/// RFC 5961 would be undone if a sequence number alone could set TS.Recent: PAWS would then reject
/// the peer for up to 24 days.
#[test]
fn a_timestamp_counts_only_with_an_ack_that_counts() {
    let far_ahead = 5_001 + (1 << 30);
    let forged = [
        ("no ACK", segment(TcpFlags::NONE, IRS + 1, SeqNum(0), b"x")),
        ("no ACK, no data", segment(TcpFlags::NONE, IRS + 1, SeqNum(0), &[])),
        ("an ACK of what was never sent", segment(ACK, IRS + 1, ISS + 200_000, b"x")),
        ("an ACK from long ago", segment(ACK, IRS + 1, ISS - 1_000_000, b"x")),
        ("an older ACK than SND.UNA", segment(ACK, IRS + 1, ISS, b"x")),
        ("SYN", segment(SYN, IRS + 1, SeqNum(0), &[])),
        ("RST in the window", segment(RST, IRS + 2, SeqNum(0), &[])),
        ("FIN without ACK", segment(FIN, IRS + 1, SeqNum(0), &[])),
        ("an older sequence number", segment(ACK, IRS - 10, ISS + 1, b"x")),
        ("beyond the window", segment(ACK, IRS + 0x1000_0000, ISS + 1, b"x")),
    ];
    for (name, forged) in forged {
        let mut bench = stamped_connection();
        bench.arrive(&stamped(&forged, far_ahead, 0));
        bench.drain();
        bench.arrive(&stamped(&segment(ACK, IRS + 1, ISS + 1, b"genuine"), 5_002, 0));
        assert_eq!(bench.conn.peek()[0], b"genuine", "{name}");
        assert_eq!(bench.conn.ts.recent(), 5_002, "{name}");
    }
}

/// RFC 7323, section 4.3: TS.Recent follows the segment that fills a gap, whose ACK may be an old
/// one, so that the peer measures its round trip. It was sent before the segment behind the gap
/// that brought the newer ACK, so nobody can forge one with a clock ahead of that.
#[test]
fn the_timestamp_of_a_segment_that_fills_a_gap_counts_up_to_that_of_the_newest_ack() {
    for (what, val, recent) in [
        ("the segment itself", 5_010, 5_010),
        ("sent in the same tick", 5_011, 5_011),
        ("forged, just ahead of what the peer has shown", 5_012, 5_001),
        ("forged, far ahead", 5_001 + (1 << 30), 5_001),
    ] {
        let mut bench = stamped_connection();
        bench.conn.write(&[7; 100]).unwrap();
        bench.drain();
        let behind = stamped(&segment(ACK, IRS + 5, ISS + 101, b"last"), 5_011, 0);
        bench.arrive(&behind);
        assert_eq!(bench.drain()[0].options.timestamps.unwrap().ecr, 5_001, "{what}: behind a gap");
        bench.arrive(&stamped(&segment(ACK, IRS + 1, ISS + 1, b"frst"), val, 0));
        let ack = bench.drain()[0].clone();
        assert_eq!((ack.ack, ack.options.timestamps.unwrap().ecr), (IRS + 9, recent), "{what}");
        bench.arrive(&stamped(&segment(ACK, IRS + 9, ISS + 101, b"next"), 5_012, 0));
        assert_eq!(bench.conn.peek().concat(), b"frstlastnext", "{what}");
        assert_eq!(bench.conn.ts.recent(), 5_012, "{what}");
    }
}

/// What a peer, or a middlebox, sends without the timestamp that was agreed on: Linux takes it, RFC
/// 7323, section 3.2, says SHOULD drop it.
#[test]
fn a_segment_without_the_agreed_timestamp_is_taken_unless_the_settings_insist_on_it() {
    let syn = stamped(&segment(SYN, IRS, SeqNum(0), &[]), 5_000, 0);
    for (insists, state, data, probe, next) in [
        (false, State::Established, &b"hello"[..], 1, &b"hello world"[..]),
        (true, State::SynReceived, b"", 0, b""),
    ] {
        let config = Arc::new(ConnConfig { require_timestamps: insists, ..ConnConfig::default() });
        let mut bench = Bench::with(|ctx| accepted(ctx, config.clone(), 5, &syn));
        bench.drain();
        bench.arrive(&segment(ACK, IRS + 1, ISS + 1, &[]));
        assert_eq!(bench.conn.state(), state, "the ACK of the handshake");
        bench.arrive(&segment(ACK, IRS + 1, ISS + 1, b"hello"));
        assert_eq!(bench.conn.peek().concat(), data);
        bench.drain();

        let mut bench = Bench::with(|ctx| accepted(ctx, config, 5, &syn));
        bench.drain();
        bench.arrive(&stamped(&segment(ACK, IRS + 1, ISS + 1, &[]), 5_001, 0));
        bench.now += Duration::from_secs(60);
        bench.arrive(&segment(ACK, IRS, ISS + 1, &[]));
        let answers = bench.drain();
        assert_eq!(answers.len(), probe, "an answer to a keep-alive probe");
        assert!(answers.iter().all(|answer| answer.ack == IRS + 1 && answer.options.timestamps.is_some()));
        bench.arrive(&segment(ACK, IRS + 1, ISS + 1, b"hello world"));
        assert_eq!(bench.conn.peek().concat(), next, "data in the middle of the connection");
        // What has a timestamp still has to be in order.
        bench.arrive(&stamped(&segment(ACK, bench.conn.rcv.rcv_nxt(), ISS + 1, b"old"), 4_999, 0));
        assert_eq!(bench.conn.peek().concat(), next);
        assert_eq!(bench.observe.counters.tcp_no_timestamp, 2 * u64::from(insists));
    }
}

/// RFC 6191, section 2: which SYN ends TIME-WAIT. TS.Recent is 5,010, RCV.NXT is IRS + 2.
#[test]
fn a_syn_ends_time_wait_if_it_is_provably_newer() {
    for (offset, val, newer) in [
        (100, Some(5_011), true),
        (-100, Some(5_011), true),
        (100, Some(5_010), true),
        (0, Some(5_010), false),
        (-100, Some(5_010), false),
        (100, Some(5_009), false),
        (100, None, true),
        (0, None, false),
        (-100, None, false),
    ] {
        let mut bench = stamped_connection();
        bench.conn.shutdown(ctx!(bench));
        bench.drain();
        bench.arrive(&stamped(&segment(FIN | ACK, IRS + 1, ISS + 2, &[]), 5_010, 0));
        bench.drain();
        assert_eq!((bench.conn.state(), bench.conn.ts.recent()), (State::TimeWait, 5_010));
        let syn = segment(SYN, SeqNum((IRS + 2).0.wrapping_add_signed(offset)), SeqNum(0), &[]);
        let syn = val.map_or(syn, |val| stamped(&syn, val, 0));
        let expected = if newer { Disposition::NewSyn { iss_floor: ISS + 2 } } else { Disposition::Handled };
        assert_eq!(bench.arrive(&syn), expected, "{offset} {val:?}");
        assert_eq!(bench.observe.counters.tcp_tw_reopened, u64::from(newer));
    }
    // Timestamps that were not agreed on do not count.
    for (offset, val, newer) in [(-100, 5, false), (100, 1 << 31, true)] {
        let mut bench = Bench::in_state(State::TimeWait);
        let syn = segment(SYN, SeqNum((IRS + 2).0.wrapping_add_signed(offset)), SeqNum(0), &[]);
        let disposition = bench.arrive(&stamped(&syn, val, 0));
        assert_eq!(disposition != Disposition::Handled, newer, "{offset}");
    }
}

/// The timestamp of the SYN is the first that PAWS judges by.
#[test]
fn an_old_timestamp_does_not_establish_a_connection() {
    let syn = stamped(&segment(SYN, IRS, SeqNum(0), &[]), 5_000, 0);
    let open = || {
        let mut bench = Bench::with(|ctx| accepted(ctx, Arc::new(ConnConfig::default()), 5, &syn));
        bench.drain();
        bench
    };
    let ack = segment(ACK, IRS + 1, ISS + 1, &[]);
    assert_eq!(open().reaction(&stamped(&ack, 4_999, 0)), "SYN-RECEIVED ChallengeAck");
    let mut bench = open();
    bench.arrive(&stamped(&ack, 4_999, 0));
    assert_eq!(bench.observe.counters.tcp_paws_estab, 1);
    assert_eq!(open().reaction(&stamped(&ack, 5_000, 0)), "ESTABLISHED ");
    assert_eq!(open().reaction(&stamped(&segment(RST, IRS + 1, SeqNum(0), &[]), 1, 0)), "CLOSED ");
}

/// Keep-alive finds a peer that is gone although somebody keeps sending segments in its name.
#[test]
fn what_is_not_acceptable_is_no_sign_of_life() {
    let keep_alive = crate::config::KeepAlive {
        idle: Duration::from_secs(10),
        interval: Duration::from_secs(2),
        count: 3,
        ..Default::default()
    };
    let forged = [
        segment(ACK, IRS - 100, ISS + 1, &[]),
        segment(ACK, IRS + 0x1000_0000, ISS + 1, b"x"),
        segment(ACK, IRS + 1, ISS + 200_000, &[]),
        segment(SYN, IRS + 1, SeqNum(0), &[]),
        segment(RST, IRS + 2, SeqNum(0), &[]),
        segment(TcpFlags::NONE, IRS + 1, SeqNum(0), b"x"),
    ];
    for forged in forged {
        let mut bench = Bench::active(ConnConfig { keep_alive: Some(keep_alive), ..config() });
        bench.arrive(&segment(SYN | ACK, IRS, ISS + 1, &[]));
        bench.drain();
        let start = bench.now;
        while bench.conn.state() == State::Established {
            assert!(bench.now.since(start) < Duration::from_secs(60), "{forged:?} counts as a sign of life");
            bench.now = bench.conn.next_deadline().unwrap().0;
            bench.conn.on_timeout(ctx!(bench));
            bench.arrive(&forged);
            bench.drain();
        }
        assert_eq!(bench.now.since(start).as_millis(), 16_000, "{forged:?}");
        assert_eq!(bench.conn.error(), Some(ConnError::TimedOut));
    }
    let mut bench = Bench::active(ConnConfig { keep_alive: Some(keep_alive), ..config() });
    bench.arrive(&segment(SYN | ACK, IRS, ISS + 1, &[]));
    bench.drain();
    bench.now += Duration::from_secs(9);
    bench.arrive(&segment(ACK, IRS + 1, ISS + 1, &[]));
    let next = bench.conn.next_deadline().unwrap().0;
    assert_eq!(next.since(bench.now), Duration::from_secs(10), "the peer itself");
}

/// A timestamp that was not agreed on is just an unknown option.
#[test]
fn a_timestamp_that_was_not_agreed_on_says_nothing() {
    let mut bench = Bench::in_state(State::Established);
    bench.now += Duration::from_millis(50);
    let stamp = bench.conn.ts.value(bench.now) - 10;
    let data = stamped(&segment(ACK, IRS + 1, ISS + 1, b"data"), 7_000, stamp);
    assert_eq!(bench.conn.incoming(bench.now, &ip(), &data, data.seq).ts_rtt, None);
    bench.arrive(&data);
    assert_eq!((bench.conn.info(bench.now).timestamps, bench.conn.ts.recent()), (false, 0));
    bench.conn.write(b"answer").unwrap();
    assert_eq!(bench.drain()[0].options.timestamps, None);

    let mut bench = stamped_connection();
    bench.now += Duration::from_millis(50);
    let stamp = bench.conn.ts.value(bench.now) - 10;
    let data = stamped(&segment(ACK, IRS + 1, ISS + 1, b"data"), 7_000, stamp);
    let incoming = bench.conn.incoming(bench.now, &ip(), &data, data.seq);
    assert_eq!(incoming.ts_rtt, Some(Duration::from_millis(10)));
}

/// RFC 7323, section 5.5: TS.Recent of an idle connection is not trusted for more than 24 days.
#[test]
fn an_old_timestamp_counts_again_after_24_days() {
    for (days, taken) in [(24, false), (25, true)] {
        let mut bench = stamped_connection();
        bench.now += Duration::from_secs(days * 24 * 3_600);
        bench.arrive(&stamped(&segment(ACK, IRS + 1, ISS + 1, b"data"), 1, 0));
        assert_eq!(bench.conn.peek()[0] == b"data", taken, "{days} days");
        assert_eq!(bench.conn.ts.recent(), if taken { 1 } else { 5_001 });
    }
}

/// RFC 4022: from ESTABLISHED or CLOSE-WAIT straight to CLOSED, whoever ended it.
#[test]
fn a_connection_that_is_aborted_counts_as_reset() {
    for (state, counted) in [(State::Established, 1), (State::CloseWait, 1), (State::FinWait1, 0)] {
        let mut bench = Bench::in_state(state);
        bench.conn.abort(ctx!(bench), ConnError::Aborted);
        assert_eq!(bench.observe.counters.tcp_estab_resets, counted, "{state}");
    }
}

#[derive(Debug)]
struct Drops(Arc<Mutex<Vec<DropReason>>>);

impl Tracer for Drops {
    fn trace(&mut self, _: Instant, _: crate::ConnId, event: &TraceEvent) {
        if let TraceEvent::Dropped { reason } = event {
            self.0.lock().unwrap().push(*reason);
        }
    }
}

#[test]
fn what_is_dropped_is_traced_with_its_reason() {
    let mut bench = Bench::in_state(State::Established);
    let drops = Arc::default();
    bench.observe.tracer = Some(Box::new(Drops(Arc::clone(&drops))));
    for seg in [
        segment(ACK, IRS + 0x1000_0000, ISS + 1, b"x"),
        segment(RST, IRS + 9, SeqNum(0), &[]),
        segment(ACK, IRS + 1, ISS + 1, b"taken"),
    ] {
        bench.arrive(&seg);
    }
    assert_eq!(*drops.lock().unwrap(), [DropReason::OutOfWindow, DropReason::RstNotExpected]);
}

/// Whatever is refused is counted, and nothing else is.
#[test]
fn each_refusal_has_its_counter() {
    let count = |state, segs: &[TcpSegment<'_>]| {
        let mut bench = Bench::in_state(state);
        let before: Vec<(&str, u64)> = bench.observe.counters.iter().collect();
        for seg in segs {
            bench.arrive(seg);
        }
        let changed = bench.observe.counters.iter().zip(before).filter(|(after, before)| after != before);
        changed
            .map(|(after, before)| format!("{} {}", after.0, after.1 as i64 - before.1 as i64))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (established, opening) = (State::Established, State::SynReceived);
    let [rst, rst_in_window] = [IRS - 5, IRS + 9].map(|seq| segment(RST, seq, SeqNum(0), &[]));
    let syn = segment(SYN, IRS + 9, SeqNum(0), &[]);
    let beyond = segment(ACK, IRS + 0x1000_0000, ISS + 1, b"x");
    let bad_ack = segment(ACK, IRS + 1, ISS + 200_000, b"x");
    let unacknowledging = segment(TcpFlags::PSH, IRS + 1, SeqNum(0), b"x");
    let before = segment(ACK, IRS - 99, ISS + 1, &[]);
    let past_hole = segment(ACK, IRS + 9, ISS + 1, b"x");
    let urgent = segment(ACK | TcpFlags::URG, IRS + 1, ISS + 1, b"");
    let cases: &[(State, &[TcpSegment<'_>], &str)] = &[
        (opening, &[rst], "AcklineTcpRstUnacceptable 1"),
        (opening, &[rst_in_window], "AcklineTcpRstUnacceptable 1"),
        (opening, &[beyond], "AcklineTcpOutOfWindow 1"),
        (opening, &[beyond, beyond], "TcpExtTCPACKSkippedSynRecv 1, AcklineTcpOutOfWindow 2"),
        (established, &[rst], "AcklineTcpRstUnacceptable 1"),
        (established, &[beyond], "AcklineTcpOutOfWindow 1"),
        (established, &[bad_ack], "AcklineTcpAckUnacceptable 1"),
        (established, &[syn, syn], "TcpExtTCPACKSkippedChallenge 1, TcpExtTCPSYNChallenge 2"),
        (established, &[urgent, urgent], "TcpExtTCPPureAcks 2, AcklineTcpUrgent 2"),
        (established, &[segment(RST, IRS + 1, SeqNum(0), &[])], "TcpEstabResets 1, TcpCurrEstab -1"),
        (State::CloseWait, &[segment(RST, IRS + 2, SeqNum(0), &[])], "TcpEstabResets 1, TcpCurrEstab -1"),
        (State::FinWait1, &[segment(RST, IRS + 1, SeqNum(0), &[])], ""),
        (opening, &[segment(RST, IRS + 1, SeqNum(0), &[])], "TcpAttemptFails 1"),
        (established, &[unacknowledging], "AcklineTcpNoAck 1"),
        (established, &[before, before], "TcpExtTCPACKSkippedSeq 1, AcklineTcpOutOfWindow 2"),
        (State::FinWait2, &[before, before], "TcpExtTCPACKSkippedSeq 1, AcklineTcpOutOfWindow 2"),
        (State::TimeWait, &[before, before], "TcpExtTCPACKSkippedTimeWait 1, AcklineTcpOutOfWindow 2"),
        (established, &[past_hole, past_hole], "TcpExtTCPOFOQueue 2, TcpExtTCPOFOMerge 1"),
        (State::TimeWait, &[rst, rst_in_window], "AcklineTcpTwRstIgnored 2"),
        (established, &[segment(ACK, IRS + 1, ISS + 1, b"x")], "TcpExtTCPHPHits 1"),
        (established, &[segment(FIN | ACK, IRS + 1, ISS + 1, b"")], ""),
    ];
    for (state, segs, expected) in cases {
        assert_eq!(count(*state, segs), *expected, "{state}");
    }
}

#[test]
fn a_closed_window_lets_acks_at_its_edge_count() {
    let config = ConnConfig { recv_buffer: 2_000, ..config() };
    let mut bench = Bench::active(config);
    bench.arrive(&segment(SYN | ACK, IRS, ISS + 1, &[]));
    bench.conn.write(&[0; 100]).unwrap();
    bench.drain();
    bench.arrive(&segment(ACK, IRS + 1, ISS + 1, &[7; 2_000]));
    bench.drain();
    assert_eq!(bench.conn.info(bench.now).rcv_wnd, 0);
    let edge = IRS + 2_001;
    assert_eq!(bench.conn.judge(bench.now, &segment(ACK, edge, ISS + 51, b"x")), Verdict::AckOnly);
    assert_eq!(bench.conn.judge(bench.now, &segment(ACK, edge + 1, ISS + 51, b"x")), Verdict::OutOfWindow);
    assert_eq!(bench.conn.judge(bench.now, &segment(ACK, edge, ISS + 102, b"x")), Verdict::OutOfWindow);
    assert_eq!(bench.conn.judge(bench.now, &segment(RST, edge, SeqNum(0), b"text")), Verdict::Reset);
    bench.arrive(&segment(ACK, edge, ISS + 51, b"x"));
    assert_eq!(bench.conn.info(bench.now).bytes_acked, 50);
    assert_eq!(bench.observe.counters.tcp_out_of_window, 1);
    assert_eq!(bench.drain()[0].ack, edge, "the text is answered");
}

/// What a segment may change that has not passed the last check: nothing.
fn untouched(bench: &Bench) -> String {
    let conn = &bench.conn;
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        conn.state,
        conn.snd,
        conn.ts,
        conn.last_arrival,
        conn.wait_until,
        conn.error,
        conn.notices,
        conn.flushed
    )
}

proptest! {
    /// In every state, whatever the segment: only one that passed all checks writes to the
    /// connection.
    #[test]
    fn nothing_is_written_before_the_last_check(
        state in prop::sample::select(&SYNCHRONIZED[..]),
        flags in 0u16..64,
        seq in prop_oneof![-3i32..4, 65_530i32..65_540, any::<i32>()],
        ack in prop_oneof![-3i32..4, any::<i32>()],
        window in any::<u16>(),
        val in prop_oneof![Just(None), any::<u32>().prop_map(Some)],
        len in 0usize..4,
        with_ts in any::<bool>(),
    ) {
        let mut bench = if with_ts { stamped_connection() } else { Bench::in_state(state) };
        bench.conn.take_notices();
        let at = |base: SeqNum, offset: i32| SeqNum(base.0.wrapping_add_signed(offset));
        let data: &'static [u8] = Box::leak(alloc::vec![b'x'; len].into_boxed_slice());
        let forged = TcpSegment {
            window,
            options: TcpOptions {
                timestamps: val.map(|val| Timestamps { val, ecr: val ^ 1 }),
                sack: [(at(bench.snd_nxt(), ack), at(bench.snd_nxt(), ack) + 1)].into_iter().collect::<SackBlocks>(),
                ..TcpOptions::NONE
            },
            ..segment(TcpFlags::from_bits(flags), at(bench.rcv_nxt(), seq), at(bench.snd_nxt(), ack), data)
        };
        let before = untouched(&bench);
        let verdict = bench.conn.judge(bench.now, &forged);
        bench.now += Duration::from_secs(1);
        let disposition = bench.arrive(&forged);
        let counts = matches!(verdict, Verdict::Acceptable | Verdict::AckOnly | Verdict::Reset)
            || matches!(disposition, Disposition::NewSyn { .. })
            // The peer's FIN once more restarts TIME-WAIT.
            || (bench.conn.state() == State::TimeWait && forged.flags.contains(FIN));
        if !counts {
            prop_assert_eq!(before, untouched(&bench), "{:?}", verdict);
        }
    }
}

/// Whoever knows the addresses and ports, and even a sequence number, cannot make the peer's
/// keep-alive probes go unanswered, nor challenge ACKs.
#[test]
fn forged_segments_use_up_no_limit_but_their_own() {
    let mut bench = Bench::in_state(State::Established);
    let (nxt, ack) = (bench.rcv_nxt(), bench.snd_nxt());
    let strays = [
        segment(ACK, nxt - 100, ack, &[]),
        segment(ACK, nxt + 10_000_000, ack, &[]),
        segment(ACK, nxt - 1, ack + 1_000, &[]),
        segment(ACK, nxt - 1, ack - 1_000_000, &[]),
    ];
    let mut probes = 0;
    let mut forged = [0, 0];
    for tick in 0..1_000 {
        bench.now += Duration::from_millis(10);
        if tick % 100 == 50 {
            bench.arrive(&segment(ACK, nxt - 1, ack, &[]));
            let answer = bench.drain();
            assert_eq!(answer.len(), 1, "the peer's probe at {tick}");
            assert_eq!((answer[0].flags, answer[0].ack), (ACK, nxt));
            probes += 1;
        }
        bench.arrive(&segment(SYN, nxt, SeqNum(0), &[]));
        forged[0] += bench.drain().len();
        bench.arrive(&strays[tick % strays.len()]);
        forged[1] += bench.drain().len();
    }
    assert_eq!(probes, 10);
    assert!(
        forged.iter().all(|answers| (15..=20).contains(answers)),
        "two a second of each kind: {forged:?}"
    );
}
