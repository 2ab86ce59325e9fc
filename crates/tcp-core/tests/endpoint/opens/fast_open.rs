//! TCP Fast Open (RFC 7413): what travels with the SYN, who hears of it when, and what a stranger
//! can do with it.

use crate::net::{A, B, Link, Net, Plan, bytes_from, host_config, socket};
use crate::opens::half_open::{ACK, Bench, FIN, IRS, RST, SYN, Segment, Sent, bytes, peer, reply, syn};
use ackline_tcp_core::config::FastOpen;
use ackline_tcp_core::error::ConnError;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::wire::{FastOpenCookie, TcpFlags, Transport, parse};
use ackline_tcp_core::{
    AcceptConfig, ConnConfig, ConnId, Duration, EndpointConfig, Event, Ingested, Instant, RxPacket, State,
    TxBudget,
};
use std::sync::Arc;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const REQUEST: &[u8] = b"GET /";

fn config(fast_open: FastOpen) -> ConnConfig {
    let mut config = ConnConfig::default();
    config.fast_open = fast_open;
    config
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A server, and clients made by hand.
fn bench(change: impl FnOnce(&mut EndpointConfig)) -> Bench {
    let mut host = host_config(A);
    change(&mut host);
    Bench::with(host, AcceptConfig::new(Arc::new(config(FastOpen::Server))))
}

/// A SYN with a fast open option, and with data if it brings a cookie.
fn fast(from: u16, cookie: FastOpenCookie) -> Segment<'static> {
    let data = if cookie.is_request() { &[][..] } else { REQUEST };
    Segment { cookie: Some(cookie), data, ..syn(peer(from)) }
}

/// The cookie that the server gives to the clients' address.
fn cookie_of(bench: &mut Bench) -> FastOpenCookie {
    let (_, sent) = bench.arrive(&fast(9_999, FastOpenCookie::REQUEST));
    let cookie = sent[0].cookie.expect("a cookie");
    bench.arrive(&reply(&sent[0], RST, &[]));
    cookie
}

/// A connection that came with its SYN, and the SYN-ACK.
fn opened(bench: &mut Bench, from: u16, cookie: FastOpenCookie) -> (ConnId, Sent) {
    let (Ingested::Accepted(conn), mut sent) = bench.arrive(&fast(from, cookie)) else {
        panic!("not accepted")
    };
    assert_eq!(sent.len(), 1);
    (conn, sent.remove(0))
}

fn read(bench: &mut Bench, conn: ConnId) -> Vec<u8> {
    let mut data = vec![0; 100];
    let read = bench.endpoint.conn(conn).unwrap().read(bench.now, &mut data).unwrap();
    data.truncate(read);
    data
}

pub(crate) fn pass(bench: &mut Bench, time: Duration) -> Vec<Sent> {
    let end = bench.now + time;
    let mut sent = vec![];
    while let Some(wakeup) = bench.endpoint.poll_timeout().filter(|wakeup| wakeup.at <= end) {
        bench.now = wakeup.at;
        bench.endpoint.handle_timeout(bench.now);
        sent.extend(bench.drain());
        while bench.endpoint.poll_event().is_some() {}
    }
    bench.now = end;
    sent
}

#[test]
fn a_client_that_asks_gets_a_cookie_once() {
    let mut bench = bench(|_| {});
    let (ingested, sent) = bench.arrive(&fast(1, FastOpenCookie::REQUEST));
    assert_eq!((ingested, sent.len()), (Ingested::HalfOpen, 1));
    let cookie = sent[0].cookie.expect("a cookie");
    assert_eq!((sent[0].flags, sent[0].ack, cookie.as_slice().len()), (SYN | ACK, IRS + 1, 8));
    assert_eq!(sent[0].options.mss, Some(1_460), "beside the other options");
    // If the SYN-ACK is lost, the option may be the reason.
    let again = pass(&mut bench, SECOND);
    assert_eq!((again.len(), again[0].cookie), (1, None));
    assert_eq!(bench.endpoint.counters().tcp_fast_open_cookie_reqd, 1);
    // Whoever does not ask gets none.
    assert_eq!(bench.open(peer(2)).cookie, None);
    let mut off = Bench::with(host_config(A), AcceptConfig::default());
    for shown in [FastOpenCookie::REQUEST, cookie] {
        let (ingested, sent) = off.arrive(&fast(1 + shown.as_slice().len() as u16, shown));
        assert_eq!((ingested, sent[0].cookie, sent[0].ack), (Ingested::HalfOpen, None, IRS + 1));
    }
}

#[test]
fn the_application_reads_and_answers_before_the_handshake_is_complete() {
    let mut bench = bench(|_| {});
    let cookie = cookie_of(&mut bench);
    let (conn, syn_ack) = opened(&mut bench, 1, cookie);
    assert_eq!((syn_ack.flags, syn_ack.ack, syn_ack.cookie), (SYN | ACK, IRS + 1 + 5, None));
    assert_eq!(syn_ack.window, 65_535 - 5);
    let listener = bench.listener;
    assert_eq!(bench.endpoint.poll_event(), Some(Event::Accepted { listener, conn }));
    assert_eq!(bench.endpoint.poll_event(), Some(Event::Readable(conn)));
    assert_eq!(read(&mut bench, conn), REQUEST);
    assert_eq!((bench.held(), bench.endpoint.fast_open_pending()), ((0, 1), 1));
    let now = bench.now;
    let mut handle = bench.endpoint.conn(conn).unwrap();
    assert_eq!((handle.state(), handle.write(now, b"200 OK")), (State::SynReceived, Ok(6)));
    handle.shutdown(now);
    let sent = bench.drain();
    assert_eq!(sent.len(), 1, "nothing but the answer: the SYN-ACK has acknowledged the request");
    assert_eq!((sent[0].flags, sent[0].seq), (FIN | ACK | TcpFlags::PSH, syn_ack.seq + 1));
    assert_eq!((&sent[0].data[..], sent[0].ack), (&b"200 OK"[..], IRS + 1 + 5));
    // One ACK for the SYN-ACK, the answer and its FIN.
    bench.now += ms(30);
    let ack = Segment { seq: IRS + 1 + 5, ack: syn_ack.seq + 1 + 6 + 1, ..reply(&syn_ack, ACK, &[]) };
    let (_, sent) = bench.arrive(&ack);
    assert!(sent.is_empty());
    let handle = bench.endpoint.conn(conn).unwrap();
    assert_eq!((handle.state(), handle.is_flushed()), (State::FinWait2, true));
    assert_eq!((handle.info().rtt, handle.info().bytes_acked), (Some(ms(30)), 6));
    assert_eq!(bench.endpoint.fast_open_pending(), 0);
    let counters = bench.endpoint.counters();
    assert_eq!((counters.tcp_fast_open_passive, counters.tcp_passive_opens), (1, 1));
}

#[test]
fn a_repeated_syn_delivers_nothing_again() {
    let mut bench = bench(|_| {});
    let cookie = cookie_of(&mut bench);
    let (conn, syn_ack) = opened(&mut bench, 1, cookie);
    // Only one in 500 ms is answered.
    for answers in [1, 0, 0] {
        let (ingested, sent) = bench.arrive(&fast(1, cookie));
        assert_eq!((ingested, sent.len()), (Ingested::Conn(conn), answers));
        for sent in sent {
            assert_eq!((sent.flags, sent.seq, sent.ack), (SYN | ACK, syn_ack.seq, IRS + 1 + 5));
        }
    }
    // Nor does the one without data that a client sends if it heard nothing.
    bench.now += ms(600);
    let (_, sent) = bench.arrive(&syn(peer(1)));
    assert_eq!((sent.len(), sent[0].ack), (1, IRS + 1 + 5));
    assert_eq!((read(&mut bench, conn), bench.held()), (REQUEST.to_vec(), (0, 1)));
    assert_eq!(read(&mut bench, conn), b"", "not connected is no error for an early connection");
    // The client sends it all again, and more.
    let more = Segment { data: b"GET / and more", ..reply(&syn_ack, ACK, &[]) };
    bench.arrive(&more);
    assert_eq!(read(&mut bench, conn), b" and more");
    assert_eq!(bench.endpoint.state(conn), Some(State::Established));
}

#[test]
fn a_forged_cookie_begins_a_handshake_and_its_data_is_ignored() {
    let mut bench = bench(|_| {});
    let cookie = cookie_of(&mut bench);
    let mut octets = cookie.as_slice().to_vec();
    octets[3] ^= 1;
    let forged = FastOpenCookie::new(&octets).unwrap();
    let (ingested, sent) = bench.arrive(&fast(1, forged));
    assert_eq!((ingested, bench.held()), (Ingested::HalfOpen, (1, 0)));
    assert_eq!((sent[0].ack, sent[0].cookie), (IRS + 1, Some(cookie)), "with the right one for next time");
    let (Ingested::Accepted(conn), _) = bench.arrive(&reply(&sent[0], ACK, REQUEST)) else { panic!() };
    assert_eq!(read(&mut bench, conn), REQUEST, "once");
    // Somebody else's is as bad.
    let other = Segment { from: "192.0.2.8:1".parse().unwrap(), ..fast(1, cookie) };
    assert_eq!(bench.arrive(&other).0, Ingested::HalfOpen);
    let counters = bench.endpoint.counters();
    assert_eq!((counters.tcp_fast_open_passive, counters.tcp_fast_open_passive_fail), (0, 2));
}

#[test]
fn a_cookie_of_the_previous_key_is_accepted_and_renewed() {
    let mut bench = bench(|host| host.fast_open_key_lifetime = HOUR);
    bench.now = Instant::from_secs(7_000);
    let old = cookie_of(&mut bench);
    bench.now += HOUR;
    let (_, syn_ack) = opened(&mut bench, 1, old);
    let new = syn_ack.cookie.expect("another cookie");
    assert_ne!(new, old);
    assert_eq!(opened(&mut bench, 2, new).1.cookie, None);
    bench.now += HOUR;
    assert_eq!(bench.arrive(&fast(3, old)).0, Ingested::HalfOpen);
    opened(&mut bench, 4, new);
    let counters = bench.endpoint.counters();
    assert_eq!((counters.tcp_fast_open_passive, counters.tcp_fast_open_passive_alt_key), (3, 2));
    assert_eq!(counters.tcp_fast_open_passive_fail, 1);
    // Keys of the caller's.
    bench.endpoint.set_fast_open_keys([1; 16], None);
    let first = cookie_of(&mut bench);
    bench.endpoint.set_fast_open_keys([2; 16], Some([1; 16]));
    bench.now += HOUR.saturating_mul(1_000);
    assert!(opened(&mut bench, 5, first).1.cookie.is_some());
}

#[test]
fn an_answer_has_the_initial_window_until_the_handshake_is_complete() {
    let mut bench = bench(|_| {});
    let cookie = cookie_of(&mut bench);
    let (conn, syn_ack) = opened(&mut bench, 1, cookie);
    let now = bench.now;
    bench.endpoint.conn(conn).unwrap().write(now, &vec![7; 100_000]).unwrap();
    let sent = bench.drain();
    let smss = 1_400 - 12;
    assert_eq!(sent.len(), 10);
    for (number, segment) in (0..).zip(&sent) {
        assert_eq!((segment.seq, segment.data.len()), (syn_ack.seq + 1 + number * smss, smss as usize));
        assert_eq!(segment.flags, ACK);
    }
    bench.now += ms(20);
    let ack = Segment { seq: IRS + 1 + 5, ack: syn_ack.seq + 1 + 10 * smss, ..reply(&syn_ack, ACK, &[]) };
    let (_, more) = bench.arrive(&ack);
    assert_eq!((more.len(), more[0].seq), (20, ack.ack), "slow start goes on");
}

#[test]
fn only_the_syn_ack_is_retransmitted_until_it_is_acknowledged() {
    let mut bench = bench(|_| {});
    let cookie = cookie_of(&mut bench);
    let (conn, syn_ack) = opened(&mut bench, 1, cookie);
    let now = bench.now;
    bench.endpoint.conn(conn).unwrap().write(now, b"200 OK").unwrap();
    assert_eq!(bench.drain().len(), 1);
    let sent = pass(&mut bench, ms(4_000));
    assert_eq!(sent.len(), 2, "after 1 s and after 3 s");
    assert!(sent.iter().all(|sent| (sent.flags, sent.ack) == (SYN | ACK, IRS + 1 + 5)));
    let (_, sent) = bench.arrive(&Segment { seq: IRS + 1 + 5, ..reply(&syn_ack, ACK, &[]) });
    assert_eq!(bench.endpoint.state(conn), Some(State::Established));
    let answers = [sent, pass(&mut bench, ms(300))].concat();
    assert_eq!(answers[0].data, b"200 OK", "the answer was lost as well");
}

#[test]
fn an_rst_or_silence_ends_an_early_connection_and_frees_its_place() {
    let mut bench = bench(|_| {});
    let cookie = cookie_of(&mut bench);
    let (reset, _) = opened(&mut bench, 1, cookie);
    let (silent, _) = opened(&mut bench, 2, cookie);
    assert_eq!(bench.endpoint.fast_open_pending(), 2);
    // RFC 5961: only an RST at RCV.NXT counts, and a SYN inside the window does not.
    for (flags, at) in [(RST, 1), (RST, 6 + 100), (SYN, 100)] {
        let (_, sent) = bench.arrive(&Segment { flags, seq: IRS + at, ..fast(1, cookie) });
        assert!(sent.iter().all(|sent| sent.flags == ACK && sent.ack == IRS + 6), "{sent:?}");
    }
    assert_eq!(bench.endpoint.fast_open_pending(), 2);
    bench.arrive(&Segment { flags: RST, seq: IRS + 6, data: &[], ..fast(1, cookie) });
    let mut closed = vec![];
    let mut end = |bench: &mut Bench| {
        while let Some(event) = bench.endpoint.poll_event() {
            if let Event::Closed { conn, error } = event {
                closed.push((conn, error));
            }
        }
    };
    end(&mut bench);
    assert_eq!(bench.endpoint.fast_open_pending(), 1);
    let mut syn_acks = 0;
    while bench.endpoint.fast_open_pending() > 0 {
        bench.now = bench.endpoint.poll_timeout().expect("a timer").at;
        bench.endpoint.handle_timeout(bench.now);
        syn_acks += bench.drain().len();
        end(&mut bench);
    }
    assert_eq!(syn_acks, 5, "syn_ack_retries");
    assert_eq!(closed, [(reset, Some(ConnError::Reset)), (silent, Some(ConnError::TimedOut))]);
}

/// A server that answers and drops the connection before the handshake is complete.
#[test]
fn an_early_connection_may_be_released() {
    let mut bench = bench(|_| {});
    let cookie = cookie_of(&mut bench);
    let (conn, syn_ack) = opened(&mut bench, 1, cookie);
    assert_eq!(read(&mut bench, conn), REQUEST);
    let now = bench.now;
    bench.endpoint.conn(conn).unwrap().write(now, b"200 OK").unwrap();
    bench.endpoint.release(now, conn);
    let sent = bench.drain();
    assert_eq!((sent.len(), &sent[0].data[..], sent[0].flags.contains(FIN)), (1, &b"200 OK"[..], true));
    assert_eq!((bench.endpoint.orphans(), bench.endpoint.fast_open_pending()), (1, 1));
    let end = Segment { seq: IRS + 6, ack: syn_ack.seq + 1 + 7, ..reply(&syn_ack, FIN | ACK, &[]) };
    let (_, sent) = bench.arrive(&end);
    assert_eq!((sent.len(), sent[0].ack), (1, IRS + 7));
    assert_eq!((bench.held(), bench.endpoint.fast_open_pending()), ((0, 0), 0));
    assert_eq!((bench.endpoint.orphans(), bench.endpoint.time_wait_records()), (0, 1));
    // With unread data it is reset, as any other.
    let (conn, syn_ack) = opened(&mut bench, 2, cookie);
    bench.endpoint.release(now, conn);
    let sent = bench.drain();
    assert_eq!((sent.len(), sent[0].flags, sent[0].seq), (1, RST | ACK, syn_ack.seq + 1));
    assert_eq!((bench.held(), bench.endpoint.fast_open_pending()), ((0, 0), 0));
    // And so is one that nobody has accepted when its listener ends.
    opened(&mut bench, 3, cookie);
    bench.endpoint.unlisten(now, bench.listener);
    assert_eq!(bench.drain()[0].flags, RST | ACK);
    assert_eq!((bench.held(), bench.endpoint.fast_open_pending()), ((0, 0), 0));
}

/// Somebody has a cookie and sends SYNs with it from forged ports (RFC 7413, section 5.1).
#[test]
fn a_flood_with_a_valid_cookie_holds_a_bounded_number_of_connections() {
    let mut bench = bench(|host| host.fast_open_queue = 64);
    let cookie = cookie_of(&mut bench);
    let mut most = 0;
    for number in 0..5_000 {
        bench.now += ms(1);
        bench.ingest(&fast(10_000 + number, cookie));
        bench.drain();
        most = most.max(bench.endpoint.connections());
        assert!(bench.endpoint.fast_open_pending() <= 64);
    }
    assert_eq!((most, bench.endpoint.connections()), (64, 64));
    assert_eq!(bench.endpoint.counters().tcp_fast_open_listen_overflow, 5_000 - 64);
    // An honest client opens as if there were no fast open, and its data comes with the last ACK.
    let honest = Segment { from: "192.0.2.200:5".parse().unwrap(), ..fast(5, FastOpenCookie::REQUEST) };
    let (ingested, sent) = bench.arrive(&honest);
    assert_eq!((ingested, sent.len()), (Ingested::HalfOpen, 1));
    let cookie_of_honest = sent[0].cookie.expect("a cookie");
    let (Ingested::Accepted(conn), _) = bench.arrive(&reply(&sent[0], ACK, REQUEST)) else { panic!() };
    assert_eq!(read(&mut bench, conn), REQUEST);
    let honest = Segment {
        cookie: Some(cookie_of_honest),
        data: REQUEST,
        from: "192.0.2.200:6".parse().unwrap(),
        ..honest
    };
    let (ingested, sent) = bench.arrive(&honest);
    assert_eq!((ingested, sent[0].ack), (Ingested::HalfOpen, IRS + 1));
    let (Ingested::Accepted(conn), _) = bench.arrive(&reply(&sent[0], ACK, REQUEST)) else { panic!() };
    assert_eq!(read(&mut bench, conn), REQUEST);
    // When the flood is over its connections end, and fast open is back.
    pass(&mut bench, ms(120_000));
    assert_eq!(bench.endpoint.fast_open_pending(), 0);
    opened(&mut bench, 3, cookie);
}

/// Client A and server B, which closes at once and answers with `answer` bytes.
fn net(change: impl FnOnce(&mut EndpointConfig, &mut EndpointConfig), answer: u64) -> Net {
    let mut hosts = [host_config(A), host_config(B)];
    let [a, b] = &mut hosts;
    change(a, b);
    let mut net = Net::with(1, Link::default(), hosts, || Box::new(Fifo::default()));
    net.listen(B, 80, config(FastOpen::Server));
    net.hosts[B].serve = Plan::send(answer);
    net
}

/// Connects and writes before the SYN leaves.
fn connect(net: &mut Net, bytes: u64) -> ConnId {
    net.hosts.iter_mut().for_each(|host| host.streams.clear());
    let id = net.connect(A, socket(B, 80), config(FastOpen::Client), Plan::send(bytes));
    let now = net.now;
    net.hosts[A].attend(now, id);
    id
}

/// Connects, exchanges and ends. Returns when the server's application had the request, and when
/// the client had the answer.
fn exchange(net: &mut Net, request: u64, answer: u64) -> (Duration, Duration) {
    let began = net.now;
    let id = connect(net, request);
    let read =
        |net: &Net, host: usize| net.hosts[host].streams.values().map(|stream| stream.read).sum::<u64>();
    let limit = ms(20_000);
    assert!(net.run_until(limit, |net| read(net, B) == request), "{:?}", net.hosts[A].endpoint.counters());
    let asked = net.now.since(began);
    assert!(net.run_until(limit, |net| net.hosts[A].streams[&id].read == answer));
    let answered = net.now.since(began);
    net.run(ms(70_000));
    assert_eq!((read(net, A), read(net, B)), (answer, request), "every byte once");
    let ends: Vec<_> = net.hosts.iter().flat_map(|host| host.streams.values()).map(|it| it.closed).collect();
    assert_eq!(ends, [Some(None), Some(None)]);
    (asked, answered)
}

#[test]
fn the_second_connection_saves_a_round_trip() {
    let mut net = net(|_, _| {}, 3_000);
    assert_eq!(exchange(&mut net, 200, 3_000), (ms(15), ms(20)));
    assert_eq!(net.endpoint(A).fast_open_entries(), 1);
    let (asked, answered) = exchange(&mut net, 200, 3_000);
    assert_eq!((asked, answered), (ms(5), ms(10)));
    for host in [A, B] {
        let id = connect(&mut net, 200);
        net.run_until(ms(12), |_| false);
        let id = if host == A { id } else { *net.hosts[B].streams.keys().next().unwrap() };
        assert!(net.endpoint(host).conn(id).unwrap().info().syn_data);
        net.run(ms(70_000));
    }
    let (a, b) = (net.endpoint(A).counters().clone(), net.endpoint(B).counters().clone());
    assert_eq!((a.tcp_fast_open_active, a.tcp_fast_open_active_fail), (3, 0));
    assert_eq!((b.tcp_fast_open_cookie_reqd, b.tcp_fast_open_passive), (1, 3));
    assert_eq!(a.tcp_retrans_segs + b.tcp_retrans_segs, 0);
    assert_eq!(net.endpoint(B).fast_open_pending(), 0);
}

/// Over a path that loses, repeats and reorders, every byte arrives once, whatever became of the
/// SYN.
#[test]
fn nothing_is_lost_or_delivered_twice_on_a_bad_path() {
    let mut fast = 0;
    for seed in 0..20 {
        let link = Link { loss: 150, duplicates: 100, late: 100, ..Link::default() };
        let mut client = host_config(A);
        client.fast_open_blackhole_timeout = Duration::ZERO;
        let mut net =
            Net::with(seed, Link::default(), [client, host_config(B)], || Box::new(Fifo::default()));
        net.listen(B, 80, config(FastOpen::Server));
        net.hosts[B].serve = Plan::send(20_000);
        exchange(&mut net, 100, 20_000);
        net.link = link;
        for _ in 0..8 {
            exchange(&mut net, 5_000, 20_000);
        }
        fast += net.endpoint(B).counters().tcp_fast_open_passive;
        assert_eq!(net.endpoint(B).fast_open_pending(), 0);
    }
    assert!(fast > 100, "{fast} of 160");
}

/// What does not fit the SYN follows when the handshake is complete.
#[test]
fn a_syn_carries_as_much_as_the_servers_mss_and_the_options_leave() {
    let mut net = net(|_, b| b.mtu = 1_000, 0);
    exchange(&mut net, 100, 0);
    connect(&mut net, 10_000);
    let syn = net.intercept(A);
    assert_eq!(syn.len(), 1);
    let Transport::Tcp(tcp) = parse(&RxPacket::new(&syn[0].bytes)).unwrap().transport else { panic!() };
    assert_eq!((tcp.flags, syn[0].bytes.len()), (SYN, 1_000));
    let data: Vec<u8> = tcp.payload.iter().collect();
    assert_eq!(data, bytes_from(0)[..data.len()]);
    net.inject(B, &syn[0].bytes);
    net.run(SECOND);
    assert_eq!(net.stream(B).read, 10_000);
    assert_eq!(net.endpoint(A).counters().tcp_fast_open_active, 1);
}

#[test]
fn what_the_syn_ack_does_not_acknowledge_is_sent_after_the_handshake() {
    let mut net = net(|_, b| b.fast_open_queue = 0, 0);
    exchange(&mut net, 100, 0);
    let began = net.now;
    assert_eq!(exchange(&mut net, 3_000, 0).0, ms(15));
    assert!(net.now > began);
    let counters = net.endpoint(A).counters();
    assert_eq!((counters.tcp_fast_open_active, counters.tcp_fast_open_active_fail), (0, 1));
    assert_eq!(net.endpoint(B).counters().tcp_fast_open_listen_overflow, 1);
}

#[test]
fn the_syn_ack_may_acknowledge_a_part() {
    for acked in [0, 1, 123, 500] {
        let mut net = net(|_, _| {}, 0);
        exchange(&mut net, 100, 0);
        let id = connect(&mut net, 500);
        let wire = net.intercept(A).remove(0);
        let Ok(datagram) = parse(&RxPacket::new(&wire.bytes)) else { panic!() };
        let Transport::Tcp(tcp) = datagram.transport else { panic!() };
        assert_eq!(tcp.payload.len(), 500);
        let mut answer = syn(socket(B, 80));
        answer.flags = SYN | ACK;
        answer.options.timestamps = None;
        let client = std::net::SocketAddr::new(datagram.ip.src, tcp.src_port);
        // Neither an ACK below the SYN's data nor one above it is acceptable.
        for wrong in [0, 502] {
            answer.ack = tcp.seq + wrong;
            net.inject(A, &bytes(client, &answer));
            assert_eq!(net.endpoint(A).state(id), Some(State::SynSent));
        }
        net.intercept(A);
        answer.ack = tcp.seq + 1 + acked;
        net.inject(A, &bytes(client, &answer));
        assert_eq!(net.endpoint(A).state(id), Some(State::Established));
        let rest: Vec<u8> = net
            .intercept(A)
            .iter()
            .flat_map(|wire| {
                let Transport::Tcp(tcp) = parse(&wire.rx()).unwrap().transport else { panic!() };
                assert_eq!(tcp.seq, answer.ack);
                tcp.payload.iter().collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(rest, bytes_from(u64::from(acked))[..500 - acked as usize]);
        let counters = net.endpoint(A).counters();
        assert_eq!(counters.tcp_fast_open_active, u64::from(acked == 500));
        assert_eq!(counters.tcp_fast_open_active_fail, u64::from(acked < 500));
    }
}

/// SYNs cross, one of them with data: the peer may take that with our SYN, or not.
#[test]
fn a_simultaneous_open_takes_what_the_peer_acknowledges() {
    for acked in [0, 300, 500] {
        let mut net = net(|_, _| {}, 0);
        exchange(&mut net, 100, 0);
        let id = connect(&mut net, 500);
        let wire = net.intercept(A).remove(0);
        let Ok(datagram) = parse(&RxPacket::new(&wire.bytes)) else { panic!() };
        let Transport::Tcp(tcp) = datagram.transport else { panic!() };
        let client = std::net::SocketAddr::new(datagram.ip.src, tcp.src_port);
        let mut crossing = syn(socket(B, 80));
        crossing.options.timestamps = None;
        net.inject(A, &bytes(client, &crossing));
        assert_eq!(net.endpoint(A).state(id), Some(State::SynReceived));
        assert_eq!(net.intercept(A).len(), 1, "a SYN-ACK, without data");
        let ack = Segment { flags: ACK, seq: IRS + 1, ack: tcp.seq + 1 + acked, ..crossing };
        let ack = Segment { options: Default::default(), ..ack };
        net.inject(A, &bytes(client, &ack));
        assert_eq!(net.endpoint(A).state(id), Some(State::Established));
        let rest: usize = net.intercept(A).iter().map(|wire| wire.bytes.len() - 40).sum();
        assert_eq!(rest, 500 - acked as usize);
    }
}

/// A middlebox drops SYNs with data: the retransmission has neither data nor option, and after the
/// second time the server is connected to without, for an hour, then for two.
#[test]
fn a_dropped_syn_with_data_is_repeated_without_and_then_avoided() {
    let mut net = net(|_, _| {}, 10);
    exchange(&mut net, 100, 10);
    let drop_and_go_on = |net: &mut Net| {
        let began = net.now;
        let id = connect(net, 1_000);
        net.link.mtu = 200;
        // The second SYN passes because it is small.
        net.run_until(ms(1_002), |_| false);
        net.link.mtu = usize::MAX;
        assert!(net.run_until(ms(5_000), |net| net.hosts[A].streams[&id].read == 10));
        let took = net.now.since(began);
        net.run(ms(70_000));
        assert_eq!(net.stream(B).read, 1_000);
        took
    };
    assert_eq!(drop_and_go_on(&mut net), ms(1_020));
    assert_eq!(net.endpoint(A).counters().tcp_fast_open_blackhole, 0, "it may have been a coincidence");
    assert_eq!(drop_and_go_on(&mut net), ms(1_020));
    assert_eq!(net.endpoint(A).counters().tcp_fast_open_blackhole, 1);
    for hours in [1, 2] {
        let until = net.now + HOUR.saturating_mul(hours) - ms(80_000);
        while net.now < until {
            let (asked, _) = exchange(&mut net, 1_000, 10);
            assert_eq!(asked, ms(15), "an ordinary handshake, without a timeout");
            net.now += ms(600_000);
        }
        net.now += ms(600_000);
        assert_eq!(drop_and_go_on(&mut net), ms(1_020), "it is tried again");
    }
    let counters = net.endpoint(A).counters();
    assert_eq!((counters.tcp_fast_open_blackhole, counters.tcp_fast_open_active_fail), (3, 4));
    // It works again: all is forgotten.
    net.now += HOUR.saturating_mul(5);
    assert_eq!(exchange(&mut net, 1_000, 10).0, ms(5));
    assert_eq!(drop_and_go_on(&mut net), ms(1_020));
    assert_eq!(net.endpoint(A).counters().tcp_fast_open_blackhole, 3);
}

/// A middlebox that drops all of a connection whose SYN has the option.
#[test]
fn a_server_that_cannot_be_reached_with_fast_open_is_tried_without() {
    let mut net = net(|_, _| {}, 10);
    for attempt in 1..=3 {
        let id = connect(&mut net, 100);
        let syn = net.intercept(A).remove(0);
        let Transport::Tcp(tcp) = parse(&syn.rx()).unwrap().transport else { panic!() };
        assert_eq!(tcp.fast_open().is_some(), attempt < 3, "{attempt}");
        if attempt < 3 {
            net.link.loss = 1_000;
            net.run(ms(300_000));
            assert_eq!(net.hosts[A].streams[&id].closed, Some(Some(ConnError::TimedOut)));
            assert_eq!((net.endpoint(A).connections(), net.endpoint(A).fast_open_entries()), (0, 1));
        } else {
            net.link.loss = 0;
            net.inject(B, &syn.bytes);
            assert!(net.run_until(SECOND, |net| net.hosts[A].streams[&id].read == 10));
        }
    }
    assert_eq!(net.endpoint(A).counters().tcp_fast_open_blackhole, 1);
}

#[test]
fn the_clients_memory_is_bounded_and_can_be_switched_off() {
    let mut net = net(|a, _| a.max_fast_open_entries = 0, 0);
    exchange(&mut net, 100, 0);
    assert_eq!(exchange(&mut net, 100, 0).0, ms(15));
    assert_eq!(net.endpoint(A).fast_open_entries(), 0);
    assert_eq!(net.endpoint(B).counters().tcp_fast_open_cookie_reqd, 0);
}

#[test]
fn an_early_connection_follows_the_mtu_of_the_device() {
    let mut bench = bench(|_| {});
    let cookie = cookie_of(&mut bench);
    let (conn, _) = opened(&mut bench, 1, cookie);
    let now = bench.now;
    bench.endpoint.set_mtu(now, 600).unwrap();
    assert_eq!(bench.endpoint.conn(conn).unwrap().write(now, &[7; 4_000]), Ok(4_000));
    let sizes: Vec<usize> = bench.drain().iter().map(|sent| sent.data.len()).collect();
    assert!(sizes.len() >= 4 && sizes.iter().all(|size| *size <= 560), "{sizes:?}");
}

#[test]
fn a_syn_that_waits_for_the_device_carries_what_fits_its_new_mtu() {
    let mut net = net(|_, _| {}, 0);
    exchange(&mut net, 100, 0);
    connect(&mut net, 5_000);
    let now = net.now;
    let refused = net.endpoint(A).transmit(now, TxBudget::UNLIMITED, |packet| Err(packet.len()));
    assert!(refused.is_err_and(|len| len > 1_400));
    net.endpoint(A).set_mtu(now, 600).unwrap();
    let syn = net.intercept(A);
    assert_eq!(syn.len(), 1);
    assert!((500..=600).contains(&syn[0].bytes.len()), "{} bytes", syn[0].bytes.len());
    net.inject(B, &syn[0].bytes);
    net.run(SECOND);
    assert_eq!(net.hosts[B].streams.values().map(|stream| stream.read).sum::<u64>(), 5_000);
}

/// RFC 6994: hosts from before RFC 7413 have the option under an experimental kind. It is answered
/// in kind.
#[test]
fn a_client_with_the_experimental_option_is_served_with_it() {
    let mut bench = bench(|_| {});
    let request = fast(1, FastOpenCookie::REQUEST.experimental(true));
    let raw = bytes(socket(A, 80), &request);
    assert_eq!(raw[raw.len() - 4..], [254, 4, 0xf9, 0x89], "kind, length, experiment identifier");
    let (_, sent) = bench.arrive(&request);
    let cookie = sent[0].cookie.expect("a cookie");
    assert!(cookie.is_experimental() && cookie.as_slice().len() == 8);
    assert_eq!(sent[0].options.mss, Some(1_460), "beside the other options");
    let (conn, _) = opened(&mut bench, 2, cookie);
    assert_eq!(read(&mut bench, conn), REQUEST);
    bench.drain();
    // It is the same cookie in either option, and a forged one is as good as none.
    opened(&mut bench, 3, cookie.experimental(false));
    let forged = FastOpenCookie::new(&[7; 8]).unwrap().experimental(true);
    let (ingested, sent) = bench.arrive(&fast(4, forged));
    assert_eq!((ingested, sent[0].ack), (Ingested::HalfOpen, IRS + 1), "its data is ignored");
    assert_eq!(sent[0].cookie, Some(cookie));
}

/// The option and the data of a SYN, which is answered by a server that is the test, with this
/// option and MSS.
fn answered_syn(net: &mut Net, cookie: Option<FastOpenCookie>, mss: u16) -> (Option<FastOpenCookie>, usize) {
    let id = connect(net, 10_000);
    let wire = net.intercept(A).remove(0);
    let datagram = parse(&RxPacket::new(&wire.bytes)).unwrap();
    let Transport::Tcp(tcp) = datagram.transport else { panic!() };
    let mut answer = Segment { cookie, flags: SYN | ACK, ack: tcp.seq + tcp.seg_len(), ..syn(socket(B, 80)) };
    (answer.options.timestamps, answer.options.mss) = (None, Some(mss));
    let client = std::net::SocketAddr::new(datagram.ip.src, tcp.src_port);
    net.inject(A, &bytes(client, &answer));
    let now = net.now;
    net.endpoint(A).conn(id).unwrap().abort(now);
    net.intercept(A);
    (tcp.fast_open(), tcp.payload.len())
}

/// As Linux's: a server that does not answer the option is asked with the experimental one next
/// time, and then no more.
#[test]
fn a_client_tries_the_experimental_option_once() {
    let request = |experimental| (Some(FastOpenCookie::REQUEST.experimental(experimental)), 0);
    let mut net = net(|_, _| {}, 0);
    assert_eq!(
        [(); 4].map(|()| answered_syn(&mut net, None, 1_000)),
        [false, true, false, false].map(request)
    );
    // A server that answers it gets data with it.
    let cookie = FastOpenCookie::new(&[7; 8]).unwrap().experimental(true);
    let mut net = self::net(|_, _| {}, 0);
    assert_eq!(answered_syn(&mut net, None, 1_000), request(false));
    assert_eq!(answered_syn(&mut net, Some(cookie), 1_000), request(true));
    let (shown, data) = answered_syn(&mut net, None, 1_000);
    assert_eq!((shown, data > 900), (Some(cookie), true));
}

#[test]
fn a_syn_ack_tells_its_mss_with_and_without_a_cookie() {
    let mut net = net(|_, _| {}, 0);
    let cookie = FastOpenCookie::new(&[7; 8]).unwrap();
    let sizes = [(Some(cookie), 1_000), (None, 600), (None, 1_200), (Some(cookie), 800), (None, 800)];
    // Options of the SYN: 20 octets, and 12 with the cookie.
    let carried = sizes.map(|(cookie, mss)| answered_syn(&mut net, cookie, mss).1);
    assert_eq!(carried, [0, 1_000, 600, 1_200, 800].map(|mss: usize| mss.saturating_sub(32)));
}

/// Where nobody can forge addresses, both sides may agree to do without cookies. A server that has
/// not agreed ignores the data, and so does one that has agreed with a stranger's beyond its queue.
#[test]
fn without_cookies_the_first_connection_saves_a_round_trip_if_both_sides_say_so() {
    for (server_agrees, asked, passive) in [(true, ms(5), 2), (false, ms(15), 0)] {
        let mut net = Net::new(1, Link::default());
        let bare = |mode| {
            let mut config = config(mode);
            config.fast_open_cookies = false;
            config
        };
        net.listen(B, 80, if server_agrees { bare(FastOpen::Server) } else { config(FastOpen::Server) });
        for attempt in 1..=2 {
            let began = net.now;
            net.hosts.iter_mut().for_each(|host| host.streams.clear());
            let id = net.connect(A, socket(B, 80), bare(FastOpen::Client), Plan::send(200));
            let now = net.now;
            net.hosts[A].attend(now, id);
            let read = |net: &Net| net.hosts[B].streams.values().map(|stream| stream.read).sum::<u64>();
            assert!(net.run_until(SECOND, |net| read(net) == 200));
            assert_eq!(net.now.since(began), asked, "{server_agrees}, {attempt}");
            net.run(ms(70_000));
        }
        assert_eq!(net.endpoint(B).counters().tcp_fast_open_passive, passive);
    }
    let mut accept = config(FastOpen::Server);
    accept.fast_open_cookies = false;
    let mut host = host_config(A);
    host.fast_open_queue = 10;
    let mut bench = Bench::with(host, AcceptConfig::new(Arc::new(accept)));
    for number in 0..100 {
        bench.arrive(&Segment { data: REQUEST, ..syn(crate::opens::half_open::spoofed(number)) });
    }
    assert_eq!((bench.endpoint.fast_open_pending(), bench.endpoint.connections()), (10, 10));
    assert_eq!(bench.endpoint.counters().tcp_fast_open_listen_overflow, 90);
}
