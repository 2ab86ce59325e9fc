//! Several endpoints of one host: its limits hold for all of them together.

use crate::net::{A, host_config};
use crate::opens::fast_open::pass;
use crate::opens::half_open::{ACK, Bench, FIN, RST, Segment, peer, reply, syn};
use ackline_tcp_core::config::{FastOpen, SynCookies};
use ackline_tcp_core::endpoint::Host;
use ackline_tcp_core::steering::Steering;
use ackline_tcp_core::wire::FastOpenCookie;
use ackline_tcp_core::{AcceptConfig, ConnConfig, ConnId, Duration, EndpointConfig, Ingested, State};
use proptest::prelude::*;
use std::net::SocketAddr;
use std::sync::Arc;

/// What there is a limit of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    HalfOpen,
    HeldSyn,
    HeldSynOfListener,
    Waiting,
    FastOpen,
    Connection,
    Orphan,
    TimeWait,
}

const KINDS: [Kind; 8] = [
    Kind::HalfOpen,
    Kind::HeldSyn,
    Kind::HeldSynOfListener,
    Kind::Waiting,
    Kind::FastOpen,
    Kind::Connection,
    Kind::Orphan,
    Kind::TimeWait,
];

impl Kind {
    /// A newer one takes the place of an older one of the same endpoint.
    const fn replaces(self) -> bool {
        matches!(self, Self::HalfOpen | Self::Orphan | Self::TimeWait)
    }

    fn limit<'a>(self, host: &'a mut EndpointConfig, accept: &'a mut AcceptConfig) -> &'a mut u32 {
        match self {
            Self::HalfOpen => &mut host.max_half_open,
            Self::HeldSyn => &mut host.max_held_syns,
            Self::HeldSynOfListener => &mut accept.max_held_syns,
            Self::Waiting => &mut accept.backlog,
            Self::FastOpen => &mut host.fast_open_queue,
            Self::Connection => &mut host.max_connections,
            Self::Orphan => &mut host.max_orphans,
            Self::TimeWait => &mut host.max_time_wait,
        }
    }
}

/// The endpoints of a host, and peers made by hand.
struct Crew {
    kind: Kind,
    benches: Vec<Bench>,
    /// What each has accepted.
    accepted: Vec<Vec<ConnId>>,
    steering: Steering,
    /// The port that the last peer had.
    port: u16,
    cookie: FastOpenCookie,
}

/// The endpoints of a host with these settings.
fn benches(host: &EndpointConfig, accept: &AcceptConfig, steering: Steering) -> Vec<Bench> {
    let (together, shards) = (Host::new(host, steering), steering.shards());
    let bench = |index| {
        let mut bench = Bench::with(host.share(shards), accept.clone());
        bench.endpoint.join(&together, index);
        bench
    };
    (0..shards).map(bench).collect()
}

impl Crew {
    fn new(kind: Kind, limit: u32, shards: usize) -> Self {
        let mut host = host_config(A);
        (host.half_open_per_source, host.held_syns_per_source) = (u32::MAX, u32::MAX);
        host.syn_cookies = SynCookies::Off;
        let mut conn = ConnConfig::default();
        conn.fast_open = FastOpen::Server;
        let mut accept = AcceptConfig::new(Arc::new(conn));
        accept.hold_syns = matches!(kind, Kind::HeldSyn | Kind::HeldSynOfListener);
        *kind.limit(&mut host, &mut accept) = limit;
        let steering = Steering::new(shards, &[7; 32]);
        let benches = benches(&host, &accept.share(shards), steering);
        let cookie = FastOpenCookie::REQUEST;
        let accepted = vec![vec![]; shards];
        let mut crew = Self { kind, benches, accepted, steering, port: 0, cookie };
        if kind == Kind::FastOpen {
            let from = crew.peer_of(0);
            let asks = Segment { cookie: Some(FastOpenCookie::REQUEST), ..syn(from) };
            let (_, sent) = crew.benches[0].arrive(&asks);
            crew.cookie = sent[0].cookie.expect("a cookie");
            crew.benches[0].arrive(&reply(&sent[0], RST, &[]));
        }
        crew
    }

    /// A new peer whose connection would be this shard's.
    fn peer_of(&mut self, shard: usize) -> SocketAddr {
        loop {
            self.port = self.port % 60_000 + 1;
            if self.steering.shard_of(peer(self.port), 80) == shard {
                return peer(self.port);
            }
        }
    }

    /// One more of the kind, if the shard permits it.
    fn add(&mut self, shard: usize) {
        let from = self.peer_of(shard);
        let bench = &mut self.benches[shard];
        let now = bench.now;
        let mut begin = syn(from);
        if self.kind == Kind::FastOpen {
            (begin.cookie, begin.data) = (Some(self.cookie), b"GET /");
        }
        let (mut ingested, mut sent) = bench.arrive(&begin);
        if !matches!(self.kind, Kind::HalfOpen | Kind::HeldSyn | Kind::HeldSynOfListener)
            && ingested == Ingested::HalfOpen
        {
            (ingested, _) = bench.arrive(&reply(&sent[0], ACK, &[]));
            if !matches!(ingested, Ingested::Accepted(_)) {
                // It does not come again.
                bench.arrive(&reply(&sent[0], RST, &[]));
            }
        }
        while bench.endpoint.poll_event().is_some() {}
        let Ingested::Accepted(id) = ingested else { return };
        self.accepted[shard].push(id);
        if self.kind == Kind::Waiting {
            return;
        }
        let mut conn = bench.endpoint.conn(id).expect("it is there");
        if self.kind == Kind::Orphan {
            conn.write(now, b"never acknowledged").expect("it is open");
        }
        if matches!(self.kind, Kind::Orphan | Kind::TimeWait) {
            bench.endpoint.release(now, id);
            sent = bench.drain();
        }
        if self.kind == Kind::TimeWait {
            bench.arrive(&reply(&sent[0], FIN | ACK, &[]));
        }
        while bench.endpoint.poll_event().is_some() {}
    }

    /// All of a shard go.
    fn clear(&mut self, shard: usize) {
        let bench = &mut self.benches[shard];
        for id in self.accepted[shard].drain(..) {
            match self.kind {
                Kind::Waiting => assert!(bench.endpoint.conn(id).is_some()),
                Kind::Connection => {
                    bench.endpoint.release(bench.now, id);
                    bench.endpoint.abort(bench.now, id);
                }
                _ => {}
            }
        }
        bench.drain();
        if !matches!(self.kind, Kind::Waiting | Kind::Connection) {
            pass(bench, Duration::from_secs(200));
        }
        assert_eq!(self.count(shard), 0, "{:?}", self.kind);
    }

    fn count(&self, shard: usize) -> usize {
        let endpoint = &self.benches[shard].endpoint;
        match self.kind {
            Kind::HalfOpen => endpoint.half_open(),
            Kind::HeldSyn | Kind::HeldSynOfListener => endpoint.held_syns(),
            Kind::Waiting => self.accepted[shard].len(),
            Kind::FastOpen => endpoint.fast_open_pending(),
            Kind::Connection => endpoint.connections(),
            Kind::Orphan => endpoint.orphans(),
            Kind::TimeWait => endpoint.time_wait_records(),
        }
    }

    fn sum(&self) -> usize {
        (0..self.benches.len()).map(|shard| self.count(shard)).sum()
    }
}

#[test]
fn small_limits_are_exact_and_whoever_comes_may_have_all() {
    for kind in KINDS {
        for (limit, shards) in [(1, 2), (1, 4), (2, 4), (3, 4), (10, 2)] {
            let mut crew = Crew::new(kind, limit, shards);
            for first in 0..shards {
                (0..limit + 2).for_each(|_| crew.add(first));
                assert_eq!(crew.count(first), limit as usize, "{kind:?}, {shards} shards");
                for other in (0..shards).filter(|other| *other != first) {
                    crew.add(other);
                    assert_eq!(crew.count(other), 0, "{kind:?}, {limit} of {shards} shards");
                }
                crew.clear(first);
            }
        }
    }
}

#[test]
fn a_busy_endpoint_has_nearly_all_of_a_large_limit() {
    for kind in KINDS {
        let mut crew = Crew::new(kind, 1_000, 2);
        (0..600).for_each(|_| crew.add(1));
        assert_eq!(crew.count(1), 600, "{kind:?}");
        crew.clear(1);
        (0..1_000).for_each(|_| crew.add(0));
        assert!((969..1_000).contains(&crew.count(0)), "{kind:?}: {}", crew.count(0));
        // What the other has kept.
        (0..100).for_each(|_| crew.add(1));
        assert!((7..=31).contains(&crew.count(1)), "{kind:?}: {}", crew.count(1));
        assert!(crew.sum() <= 1_000, "{kind:?}: {}", crew.sum());
    }
}

#[test]
fn those_that_replace_come_to_equal_parts() {
    for kind in KINDS.into_iter().filter(|kind| kind.replaces()) {
        let mut crew = Crew::new(kind, 12, 3);
        (0..12).for_each(|_| crew.add(0));
        for _ in 0..60 {
            (0..3).for_each(|shard| crew.add(shard));
            assert!(crew.sum() <= 12, "{kind:?}");
        }
        let counts = [0, 1, 2].map(|shard| crew.count(shard));
        assert_eq!(counts, [4, 4, 4], "{kind:?}");
    }
}

/// An endpoint of a host that ends gives back what it has.
#[test]
fn what_an_endpoint_had_is_the_others_when_it_is_gone() {
    for kind in KINDS {
        let mut crew = Crew::new(kind, 5, 2);
        (0..5).for_each(|_| crew.add(1));
        assert_eq!(crew.count(1), 5, "{kind:?}");
        let mut stopped = crew.benches.pop().expect("two");
        stopped.endpoint.leave();
        (0..5).for_each(|_| crew.add(0));
        assert_eq!(crew.count(0), 5, "{kind:?}");
        crew.clear(0);
        drop(stopped);
        (0..6).for_each(|_| crew.add(0));
        assert_eq!(crew.count(0), 5, "{kind:?}");
    }
}

#[test]
fn held_syns_of_one_source_leave_half_of_the_places_to_others() {
    let mut crew = Crew::new(Kind::HeldSyn, 20, 2);
    // As if it had been configured so.
    let mut host = host_config(A);
    (host.max_held_syns, host.held_syns_per_source) = (20, 2);
    let mut accept = AcceptConfig::default();
    accept.hold_syns = true;
    crew.benches = benches(&host, &accept, crew.steering);
    for _ in 0..20 {
        crew.add(0);
        crew.add(1);
    }
    assert_eq!(crew.sum(), 10);
}

#[test]
fn a_backlog_place_is_not_taken_by_a_handshake_that_is_never_complete() {
    let mut crew = Crew::new(Kind::Waiting, 4, 2);
    for _ in 0..10 {
        let from = crew.peer_of(0);
        assert_eq!(crew.benches[0].arrive(&syn(from)).0, Ingested::HalfOpen);
    }
    (0..6).for_each(|_| crew.add(1));
    assert_eq!(crew.count(1), 4);
    let id = crew.accepted[1][0];
    assert_eq!(crew.benches[1].endpoint.state(id), Some(State::Established));
}

/// Endpoints with this budget, whose listener's connections may fill their buffers at once.
fn short_of_memory(bytes: u64, shards: usize) -> Crew {
    let mut crew = Crew::new(Kind::Connection, 1 << 20, shards);
    let mut host = host_config(A);
    host.max_memory = Some(bytes);
    let mut conn = ConnConfig::default();
    conn.min_send_buffer = None;
    let accept = AcceptConfig::new(Arc::new(conn)).share(shards);
    crew.benches = benches(&host, &accept, crew.steering);
    crew
}

impl Crew {
    /// The application writes as much to a connection as it may, and nobody acknowledges it.
    /// Returns how much that was.
    fn write_all(&mut self, shard: usize, conn: usize) -> usize {
        let bench = &mut self.benches[shard];
        let (now, id) = (bench.now, self.accepted[shard][conn]);
        let mut written = 0;
        while let Ok(more @ 1..) = bench.endpoint.conn(id).expect("it lives").write(now, &[7; 10_000]) {
            written += more;
        }
        bench.drain();
        while bench.endpoint.poll_event().is_some() {}
        written
    }

    fn memory(&self) -> u64 {
        self.benches.iter().map(|bench| bench.endpoint.memory()).sum()
    }
}

const BUDGET: u64 = 4 << 20;

#[test]
fn a_busy_endpoint_has_the_memory_of_all() {
    let mut held = [1, 4].map(|shards| {
        let mut crew = short_of_memory(BUDGET, shards);
        (0..10).for_each(|_| crew.add(shards - 1));
        (0..10).for_each(|conn| {
            crew.write_all(shards - 1, conn);
        });
        crew.memory()
    });
    held.sort_unstable();
    assert!(held[0] > BUDGET * 6 / 10 && held[1] < BUDGET, "{held:?}");
    assert!(held[1] - held[0] < BUDGET / 20, "{held:?}");
}

#[test]
fn endpoints_whose_connections_hold_more_than_others_make_room() {
    let mut crew = short_of_memory(BUDGET, 2);
    (0..4).for_each(|_| crew.add(0));
    let hoarded: usize = (0..4).map(|conn| crew.write_all(0, conn)).sum();
    assert!(hoarded as u64 > BUDGET / 2, "{hoarded}");
    let mut waited = 0;
    for conn in 0..300 {
        crew.add(1);
        if let Some(id) = crew.accepted[1].get(conn) {
            let bench = &mut crew.benches[1];
            assert_eq!(bench.endpoint.conn(*id).expect("it lives").write(bench.now, &[7; 2_000]), Ok(2_000));
            bench.drain();
        }
        assert!(crew.memory() <= BUDGET + 300 * 4_096, "{}", crew.memory());
        if crew.accepted[1].len() <= conn || crew.benches[1].endpoint.calls_others() {
            // The hoarders have stood still for a while, and their driver is called.
            crew.benches[0].now += Duration::from_secs(2);
            crew.benches[0].drain();
            crew.benches[1].now += Duration::from_secs(1);
            waited += 1;
            if crew.accepted[1].len() <= conn {
                crew.add(1);
            }
        }
        assert_eq!(crew.accepted[1].len(), conn + 1, "there is room now");
    }
    assert!(waited > 0);
    let live = [0, 1].map(|shard| {
        let endpoint = &crew.benches[shard].endpoint;
        let states = crew.accepted[shard].iter().map(|id| endpoint.state(*id));
        states.filter(|state| *state == Some(State::Established)).count()
    });
    assert!(live[0] < 4 && live[1] == 300, "some of those who hold much are gone: {live:?}");
    let counters = crew.benches.iter().map(|bench| bench.endpoint.counters().curr_memory);
    assert_eq!(counters.sum::<u64>(), crew.memory());
}

/// Whatever shards of a host strangers ask, they get as many RSTs as from one.
#[test]
fn answers_to_strangers_are_limited_together() {
    let run = |shards: usize| {
        let mut crew = short_of_memory(BUDGET, shards);
        let mut resets = 0;
        for _ in 0..2_000 {
            for shard in 0..shards {
                let from = crew.peer_of(shard);
                let stray = Segment { flags: ACK, ..syn(from) };
                let (_, sent) = crew.benches[shard].arrive(&stray);
                resets += sent.iter().filter(|sent| sent.flags == RST).count();
            }
        }
        resets
    };
    let most = host_config(A).resets_per_second as usize;
    let one = run(1);
    assert!((most / 2..=most).contains(&one));
    for shards in [2, 4] {
        assert_eq!(run(shards), one);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Whatever comes to whom.
    #[test]
    fn no_limit_is_exceeded(
        kind in prop::sample::select(&KINDS[..]),
        limit in prop_oneof![0u32..6, 20u32..50, Just(700)],
        shards in 1usize..5,
        steps in prop::collection::vec((0usize..5, 0usize..60, any::<bool>()), 0..30),
    ) {
        let mut crew = Crew::new(kind, limit, shards);
        for (shard, times, clears) in steps {
            let shard = shard % shards;
            if clears && times % 3 == 0 {
                crew.clear(shard);
            }
            for _ in 0..times {
                crew.add(shard);
                prop_assert!(crew.sum() <= limit as usize);
            }
        }
        (0..shards).for_each(|shard| crew.clear(shard));
        let least = limit - limit / 32;
        (0..least).for_each(|_| crew.add(0));
        prop_assert_eq!(crew.count(0), least as usize);
    }
}
