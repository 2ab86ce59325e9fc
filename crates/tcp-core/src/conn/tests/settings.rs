//! Settings that change while the connection runs.

use super::{ACK, Bench, IRS, ISS, SentSegment, config, segment};
use crate::State;
use crate::config::{ConnConfig, KeepAlive, MIN_BUFFER, Nagle};
use crate::conn::{Connection, Notices};
use crate::ctx::Ctx;
use crate::events::WakeReason;
use crate::packet::SendReason;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::wire::{HeaderBuf, RxPacket, TcpFlags, parse};
use std::vec;
use std::vec::Vec;

const SYN_ACK: TcpFlags = TcpFlags::SYN.union(ACK);

/// An established connection with these settings, whose peer scales no window.
fn established(config: ConnConfig) -> Bench {
    let mut bench = Bench::active(config);
    bench.arrive(&segment(SYN_ACK, IRS, ISS + 1, &[]));
    bench.drain();
    assert_eq!(bench.conn.state(), State::Established);
    bench.conn.take_notices();
    bench
}

/// Buffers of these sizes, which can be filled from the beginning.
fn buffers(send_buffer: u32, recv_buffer: u32) -> ConnConfig {
    ConnConfig { send_buffer, recv_buffer, min_send_buffer: None, initial_recv_window: None, ..config() }
}

impl Bench {
    /// `len` octets arrive from `offset` of the peer's stream on, and what they are answered with
    /// leaves.
    fn data(&mut self, offset: u32, len: u32) -> Vec<SentSegment> {
        let data = vec![7; len as usize];
        self.arrive(&segment(ACK, IRS + 1 + offset, ISS + 1, &data));
        self.drain()
    }

    fn edge_of(sent: &SentSegment) -> SeqNum {
        sent.ack + u32::from(sent.window)
    }
}

#[test]
fn a_smaller_receive_buffer_takes_back_nothing_that_was_promised() {
    let mut bench = established(buffers(100_000, 40_000));
    let promised = IRS + 1 + 40_000;
    bench.data(0, 1_000);
    bench.conn.set_recv_buffer(10_000);
    for offset in (1_000..40_000).step_by(1_000) {
        for ack in bench.data(offset, 1_000) {
            assert_eq!(Bench::edge_of(&ack), promised, "RFC 9293, section 3.8.6 (SHLD-14)");
        }
    }
    assert_eq!(bench.conn.peek().map(<[u8]>::len).iter().sum::<usize>(), 40_000, "all of it is there");

    let mut read = vec![0; 40_000];
    let now = bench.now;
    assert_eq!(bench.conn.read(ctx!(bench), &mut read), Ok(40_000));
    let update = bench.drain();
    assert_eq!(update.len(), 1, "at {now:?}");
    assert_eq!(update[0].window, 10_000, "the next window is the new one");
}

#[test]
fn a_larger_receive_buffer_opens_a_window_that_is_closed() {
    let mut bench = established(buffers(100_000, 4_000));
    let last = (0..4).flat_map(|part| bench.data(part * 1_000, 1_000)).last().expect("an ACK");
    assert_eq!(last.window, 0);
    bench.conn.set_recv_buffer(12_000);
    let update = bench.drain();
    assert_eq!(update.len(), 1);
    assert_eq!((update[0].reason, update[0].window), (SendReason::WindowUpdate, 8_000));
    assert_eq!(bench.data(4_000, 8_000).len(), 1, "there is room for that");
    assert_eq!(bench.conn.peek().map(<[u8]>::len).iter().sum::<usize>(), 12_000);
}

#[test]
fn a_buffer_that_the_syn_has_announced_stays_while_that_is_unanswered() {
    let mut bench = Bench::active(buffers(100_000, 40_000));
    bench.conn.set_recv_buffer(MIN_BUFFER);
    bench.arrive(&segment(SYN_ACK, IRS, ISS + 1, &[]));
    let ack = bench.drain();
    assert_eq!(Bench::edge_of(&ack[0]), IRS + 1 + 40_000);
}

#[test]
fn what_is_written_leaves_through_a_smaller_send_buffer() {
    let mut bench = established(buffers(100_000, 40_000));
    assert_eq!(bench.conn.write(&vec![1; 120_000]), Ok(100_000));
    assert!(!bench.conn.is_writable());
    bench.conn.set_send_buffer(10_000);
    assert_eq!(bench.conn.write(&[1]), Ok(0), "it holds ten times what it may");
    let mut sent = 0;
    while sent < 100_000 {
        assert!(!bench.conn.take_notices().contains(Notices::WRITABLE), "after {sent} octets");
        sent += bench.drain().iter().map(|packet| packet.len).sum::<u32>();
        bench.arrive(&segment(ACK, IRS + 1, ISS + 1 + sent, &[]));
    }
    assert!(bench.conn.take_notices().contains(Notices::WRITABLE), "there will never be a third of 100,000");
    assert_eq!(bench.conn.write_space(), 10_000);
    assert_eq!(bench.conn.write(&vec![1; 20_000]), Ok(10_000));
}

#[test]
fn a_larger_send_buffer_wakes_a_writer() {
    let mut bench = established(buffers(20_000, 40_000));
    assert_eq!(bench.conn.write(&vec![1; 30_000]), Ok(20_000));
    bench.conn.set_send_buffer(21_000);
    assert!(!bench.conn.take_notices().contains(Notices::WRITABLE), "that is not worth a write");
    bench.conn.set_send_buffer(60_000);
    assert!(bench.conn.take_notices().contains(Notices::WRITABLE));
    assert!(bench.conn.is_writable());
}

#[test]
fn a_writer_is_told_that_the_congestion_window_has_grown() {
    let mut bench = established(ConnConfig { min_send_buffer: Some(MIN_BUFFER), ..config() });
    let segments =
        |bench: &Bench| bench.conn.info(bench.now).snd_cwnd / u64::from(bench.conn.info(bench.now).snd_mss);
    assert_eq!(segments(&bench), 10);
    let written = bench.conn.write(&vec![1; 1 << 20]).unwrap() as u32;
    assert_eq!(u64::from(written), 2 * bench.conn.info(bench.now).snd_cwnd);
    let sent: u32 = bench.drain().iter().map(|packet| packet.len).sum();
    assert!(!bench.conn.take_notices().contains(Notices::WRITABLE));
    // In slow start, each byte acknowledged is another one in the window: three more may be
    // written.
    let mss = bench.conn.info(bench.now).snd_mss;
    let mut acked = 0;
    while !bench.conn.take_notices().contains(Notices::WRITABLE) {
        acked += mss;
        assert!(acked < sent, "half of the buffer is acknowledged");
        bench.arrive(&segment(ACK, IRS + 1, ISS + 1 + acked, &[]));
    }
    assert_eq!(bench.conn.info(bench.now).snd_buf, written + 2 * acked);
    assert!(3 * acked >= (written + 2 * acked) / 3);
    assert!(bench.conn.write(&vec![1; 1 << 20]).unwrap() as u32 == 3 * acked);
}

#[test]
fn a_departure_wakes_a_writer_with_a_limit_of_unsent_data() {
    let mut bench = established(buffers(100_000, 40_000));
    bench.conn.set_notsent_lowat(Some(4_000));
    assert_eq!(bench.conn.write(&[1; 5_000]), Ok(4_000));
    assert!(!bench.conn.is_writable() && !bench.conn.take_notices().contains(Notices::WRITABLE));
    bench.drain();
    assert!(
        bench.conn.take_notices().contains(Notices::WRITABLE),
        "nothing is acknowledged, but all has left"
    );
    assert!(bench.conn.is_writable());
    bench.conn.write(&vec![1; 50_000]).unwrap();
    bench.conn.set_notsent_lowat(None);
    assert!(bench.conn.take_notices().contains(Notices::WRITABLE), "there is no limit any more");
}

#[test]
fn room_that_no_write_was_cut_short_for_is_told_of_too() {
    let mut bench = established(buffers(5_000, 40_000));
    bench.conn.set_nodelay(true);
    assert!(bench.conn.is_writable());
    assert_eq!(bench.conn.write(&vec![1; 5_000]), Ok(5_000), "it fits exactly");
    assert!(!bench.conn.is_writable());
    bench.drain();
    bench.arrive(&segment(ACK, IRS + 1, ISS + 1 + 5_000, &[]));
    assert!(bench.conn.take_notices().contains(Notices::WRITABLE));
    assert!(bench.conn.is_writable());
}

#[test]
fn another_variant_of_nagle_lets_go_of_what_it_permits() {
    let mut bench = established(config());
    bench.conn.set_nagle(Nagle::Rfc896);
    bench.conn.write(b"small").expect("established");
    assert_eq!(bench.drain().len(), 1);
    bench.conn.write(b"small").expect("established");
    assert_eq!(bench.drain(), [], "the first is not acknowledged");
    bench.conn.set_nagle(Nagle::Off);
    assert_eq!(bench.drain().len(), 1);
}

#[test]
fn quick_acks_last_until_they_are_switched_off() {
    let mut bench = established(buffers(100_000, 60_000));
    assert_eq!(bench.data(0, 100), [], "the policy delays it");
    bench.conn.set_quick_acks(true);
    assert_eq!(bench.drain().len(), 1, "what it held back");
    for part in 1..5 {
        assert_eq!(bench.data(part * 100, 100).len(), 1);
    }
    bench.conn.set_quick_acks(false);
    assert_eq!(bench.data(500, 100), []);
}

#[test]
fn hop_limit_and_dscp_are_those_of_the_next_packet() {
    let mut bench = established(config());
    let header = |bench: &mut Bench| {
        bench.conn.write(b"x").expect("established");
        let plan = bench.conn.next(bench.now, &bench.host, 0, false, 1).expect("data to send");
        let mut buf = HeaderBuf::new();
        bench.conn.build(bench.now, &bench.host, &plan, bench.host.tx_checksum, &mut buf).expect("it fits");
        bench.emit(&plan, &mut HeaderBuf::new());
        let mut bytes = buf.as_slice().to_vec();
        bytes.push(b'x');
        let ip = parse(&RxPacket::new(&bytes)).expect("well-formed").ip;
        (ip.ttl, ip.dscp)
    };
    bench.conn.set_nodelay(true);
    assert_eq!(header(&mut bench), (64, 0));
    bench.conn.set_ttl(Some(3));
    bench.conn.set_dscp(46);
    assert_eq!(header(&mut bench), (3, 46));
    bench.conn.set_ttl(None);
    assert_eq!(header(&mut bench), (64, 46));
}

#[test]
fn keep_alive_counts_from_the_last_arrival() {
    let mut bench = established(config());
    let arrival = bench.now;
    let at = |bench: &Bench| {
        bench.conn.next_deadline().filter(|(_, reason)| *reason == WakeReason::KeepAlive).map(|(at, _)| at)
    };
    assert_eq!(at(&bench), None);
    bench.now = arrival + Duration::from_secs(20);
    let interval = Duration::from_secs(5);
    bench.conn.set_keep_alive(Some(KeepAlive {
        idle: Duration::from_secs(30),
        interval,
        count: 3,
        ..KeepAlive::default()
    }));
    assert_eq!(at(&bench), Some(arrival + Duration::from_secs(30)));
    bench.conn.set_keep_alive(Some(KeepAlive {
        idle: Duration::from_secs(10),
        interval,
        count: 3,
        ..KeepAlive::default()
    }));
    bench.conn.on_timeout(ctx!(bench));
    assert_eq!(bench.drain().len(), 1, "a probe is due already");
    bench.conn.set_keep_alive(None);
    assert_eq!(at(&bench), None);
    bench.conn.set_keep_alive(Some(KeepAlive {
        idle: Duration::from_secs(30),
        interval,
        count: 3,
        ..KeepAlive::default()
    }));
    assert_eq!(at(&bench), Some(arrival + Duration::from_secs(30)), "no probe counts any more");
}

#[test]
fn a_user_timeout_counts_from_the_last_progress() {
    let mut bench = established(config());
    let begun: Instant = bench.now;
    bench.conn.write(b"unheard").expect("established");
    bench.drain();
    bench.now = begun + Duration::from_secs(3);
    bench.conn.set_user_timeout(Some(Duration::from_secs(3)));
    bench.conn.on_timeout(ctx!(bench));
    assert_eq!(bench.conn.state(), State::Closed);
    assert_eq!(bench.conn.error(), Some(crate::error::ConnError::TimedOut));
}

/// A setting that does not differ does not cost a copy of the configuration.
#[test]
fn settings_are_shared_until_they_differ() {
    let shared = alloc::sync::Arc::new(config());
    let mut bench = Bench::with(|ctx| Connection::connect(ctx, super::tuple(), shared.clone(), ISS, 0));
    let same = |bench: &Bench| core::ptr::eq(bench.conn.config(), &raw const *shared);
    let defaults = config();
    bench.conn.set_nodelay(false);
    bench.conn.set_nagle(defaults.nagle);
    bench.conn.set_cork(false);
    bench.conn.set_keep_alive(defaults.keep_alive);
    bench.conn.set_user_timeout(defaults.user_timeout);
    bench.conn.set_ttl(defaults.ttl);
    bench.conn.set_dscp(defaults.dscp);
    bench.conn.set_send_buffer(defaults.send_buffer);
    bench.conn.set_recv_buffer(defaults.recv_buffer);
    assert!(same(&bench));
    bench.conn.set_cork(true);
    assert!(!same(&bench));
}

/// `TCP_LINGER2` and `TCP_SYNCNT`.
#[test]
fn the_time_of_fin_wait_2_and_the_number_of_syns_can_change() {
    let mut bench = Bench::in_state(State::FinWait1);
    let start = bench.now;
    bench.conn.set_fin_wait_2(bench.now, Duration::from_secs(5));
    bench.conn.release(ctx!(bench));
    bench.arrive(&segment(ACK, IRS + 1, ISS + 2, &[]));
    let ends = |bench: &Bench| bench.conn.wait_until.since(start).as_millis();
    assert_eq!(ends(&bench), 5_000);
    bench.now += Duration::from_secs(3);
    bench.conn.set_fin_wait_2(bench.now, Duration::from_secs(20));
    assert_eq!(ends(&bench), 23_000, "begun anew");

    let mut bench = Bench::in_state(State::SynSent);
    bench.conn.set_syn_retries(1);
    let mut syns = 1;
    while bench.conn.state() == State::SynSent {
        bench.now = bench.conn.next_deadline().unwrap().0;
        bench.conn.on_timeout(ctx!(bench));
        syns += bench.drain().len();
    }
    assert_eq!((syns, bench.conn.error()), (2, Some(crate::error::ConnError::TimedOut)));
}
