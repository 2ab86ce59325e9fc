//! Every policy that has a name, against the kernel.

use super::support::stream::{self, read, read_all, write_all};
use super::support::{Ip, Opens, Setup, World};
use ackline::Registry;
use ackline::core::ConnConfig;
use ackline::core::policy::spec::PolicyKind;
use ackline::registry::{DEFAULT_ACK, DEFAULT_CC, DEFAULT_RTO};
use ackline_runtime::device::impair::{ImpairConfig, Impairment};
use ackline_runtime::timer;
use ackline_tcp_core::Duration;

const MIB: u64 = 1 << 20;

/// A path of 2 ms that loses, reorders and doubles.
fn bad_path() -> Setup {
    let impairment = Impairment {
        loss: 1.0,
        duplicate: 1.0,
        reorder: 1.0,
        reorder_by: Duration::from_micros(500),
        delay: Duration::from_millis(1),
        ..Impairment::default()
    };
    Setup::offload().impair(ImpairConfig::both(impairment, 0x901))
}

/// All names of a kind of policy.
fn names(kind: PolicyKind) -> Vec<&'static str> {
    Registry::default().list(kind).iter().map(|policy| policy.name).collect()
}

fn config(cc: &str, ack: &str, rto: &str) -> ConnConfig {
    let mut config = ConnConfig::default();
    config.policies = Registry::default().named(cc, ack, rto).expect("a name from the tables");
    config
}

async fn both_ways(world: &World, len: u64) {
    let (mut kernel, mut stack) = world.connection(Opens::Stack, Ip::V4).await;
    tokio::join!(write_all(&mut stack, 1, len), read_all(&mut kernel, 1, len));
    tokio::join!(write_all(&mut kernel, 2, len), read_all(&mut stack, 2, len));
}

async fn every_congestion_control(mut world: World, len: u64) {
    for name in names(PolicyKind::Cc) {
        eprintln!("{}", name);
        world.use_connections(config(name, DEFAULT_ACK, DEFAULT_RTO));
        let (_kernel, stack) = world.connection(Opens::Stack, Ip::V4).await;
        assert_eq!(stack.info().expect("connected").cc, name);
        both_ways(&world, len).await;
    }
}

async fn every_ack_policy(mut world: World, len: u64) {
    for name in names(PolicyKind::Ack) {
        eprintln!("{}", name);
        world.use_connections(config(DEFAULT_CC, name, DEFAULT_RTO));
        let (_kernel, stack) = world.connection(Opens::Kernel, Ip::V4).await;
        assert_eq!(stack.info().expect("connected").ack_policy, name);
        both_ways(&world, len).await;
    }
}

/// A metric of the stack's ACK policy.
fn ack_metric(stack: &ackline_runtime::TcpStream, name: &str) -> f64 {
    let info = stack.info().expect("the device is there");
    info.metrics.ack.value(name).expect("the policy has this metric")
}

/// Seconds that a kernel sender with a small buffer takes for `len` bytes, and the stream of the
/// stack.
async fn small_sender(world: &mut World, ack: &str, len: u64) -> (f64, ackline_runtime::TcpStream) {
    world.use_connections(config(DEFAULT_CC, ack, DEFAULT_RTO));
    let small = |socket: &tokio::net::TcpSocket| socket.set_send_buffer_size(4_096).expect("set");
    let (mut kernel, mut stack) = world.connection_with(Opens::Kernel, Ip::V4, small).await;
    let start = timer::now();
    tokio::join!(
        async { stream::write(&mut kernel, 1, len).await.expect("written") },
        read(&mut stack, 1, len)
    );
    (timer::now().since(start).as_secs_f64(), stack)
}

against_kernel! {
    fn a3_frees_a_small_sender_from_the_delayed_ack(world) from Setup::plain(); {
        let (mut world, len) = (world, 256 << 10);
        let (held, stack) = small_sender(&mut world, "delayed:segments=1000,delay=100ms", len).await;
        assert!(stack.info().expect("connected").acks_waived > 0);
        // Nothing of A3 but the estimate sends an ACK before the delay, once there is one.
        let (free, stack) = small_sender(&mut world, "a3:cap=off,delay=100ms,when=always,push=off", len).await;
        assert!(free < held / 3.0, "{free} s with A3, {held} s with delayed ACKs only");
        let (samples, muds) = (ack_metric(&stack, "samples"), ack_metric(&stack, "muds"));
        assert!(samples > 0.0 && (1.0..65_536.0).contains(&muds), "{samples} samples, MUDS {muds}");
    }

    fn adaptive_ack_policies_with_parameters(world) from bad_path(); {
        let mut world = world;
        for ack in [
            "a3:profile=paper", "a3:sampling=paper,cap=off,fewer=on,when=always", "csa3:profile=paper,pause_from=ack",
            "csa3:rtt=timestamps,when=always", "sunos-delayed:profile=paper,timer=segment",
        ] {
            eprintln!("{ack}");
            world.use_connections(config(DEFAULT_CC, ack, DEFAULT_RTO));
            both_ways(&world, MIB / 2).await;
        }
    }

    fn congestion_controls(world) from Setup::offload(); { every_congestion_control(world, 8 * MIB).await; }
    fn congestion_controls_plain(world) from Setup::plain(); { every_congestion_control(world, 4 * MIB).await; }
    fn congestion_controls_on_a_bad_path(world) from bad_path(); {
        every_congestion_control(world, MIB).await;
    }
    fn ack_policies(world) from Setup::offload(); { every_ack_policy(world, 8 * MIB).await; }
    fn ack_policies_plain(world) from Setup::plain(); { every_ack_policy(world, 4 * MIB).await; }
    fn ack_policies_on_a_bad_path(world) from bad_path(); { every_ack_policy(world, MIB).await; }

    fn rto_responses_on_a_bad_path(world) from bad_path(); {
        let mut world = world;
        for name in names(PolicyKind::Rto) {
            eprintln!("{}", name);
            world.use_connections(config(DEFAULT_CC, DEFAULT_ACK, name));
            both_ways(&world, MIB).await;
        }
    }

    fn the_cores_own_policies(world) from Setup::offload(); {
        let mut world = world;
        world.use_connections(ConnConfig::default());
        both_ways(&world, 8 * MIB).await;
    }

    fn a_shaper_keeps_its_rate(world) from Setup::offload().scheduler("fifo:rate=50mbit,burst=5ms"); {
        let (mut kernel, mut stack) = world.connection(Opens::Stack, Ip::V4).await;
        let len = 2 * MIB;
        let start = timer::now();
        tokio::join!(write_all(&mut stack, 1, len), read_all(&mut kernel, 1, len));
        let seconds = timer::now().since(start).as_secs_f64();
        let ideal = len as f64 * 8.0 / 50e6;
        // Headers make it longer; the burst, the first 5 ms, makes it shorter.
        assert!(seconds > ideal * 0.95, "{seconds} s, where {ideal} s are the least");
        assert!(seconds < ideal * 3.0, "{seconds} s for what takes {ideal} s");
        // Only what leaves is shaped.
        tokio::join!(write_all(&mut kernel, 2, 8 * MIB), read_all(&mut stack, 2, 8 * MIB));
    }

    fn policies_change_while_data_flows(world) from Setup::offload().connections(|config| config.min_send_buffer = None); {
        let (mut kernel, mut stack) = world.connection(Opens::Stack, Ip::V4).await;
        let names_of = |turn: u64| {
            let (ccs, acks) = (names(PolicyKind::Cc), names(PolicyKind::Ack));
            (ccs[turn as usize % ccs.len()], acks[turn as usize % acks.len()])
        };
        for turn in 0..12 {
            let (cc, ack) = names_of(turn);
            stack
                .set_congestion_control(&*Registry::default().cc(cc).expect("known"))
                .expect("connected");
            stack.set_ack_policy(&*Registry::default().ack(ack).expect("known")).expect("connected");
            let info = stack.info().expect("connected");
            assert_eq!((info.cc, info.ack_policy), (cc, ack));
            // What one turn leaves under way, the next one's policies take over.
            let kernel_turn = async {
                stream::write(&mut kernel, turn, MIB).await.expect("written");
                if turn > 0 {
                    read(&mut kernel, turn - 1, MIB).await;
                }
            };
            let stack_turn = async {
                stream::write(&mut stack, turn, MIB).await.expect("written");
                read(&mut stack, turn, MIB).await;
            };
            tokio::join!(kernel_turn, stack_turn);
        }
        read(&mut kernel, 11, MIB).await;
    }
}
