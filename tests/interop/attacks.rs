//! The strongest attacks, on real packets, while honest clients of the kernel are served. What
//! bounds each of them in virtual time is tested with the core; docs/attacks.md lists them all.

mod stranger;

use super::support::stream::{read, read_all, write, write_all};
use super::support::{Ip, Opens, STACK4, Setup, World};
use ackline_tcp_core::wire::{SackBlocks, TcpFlags, TcpOptions};
use ackline_tcp_core::{Duration, SeqNum};
use std::net::SocketAddr;
use stranger::{Liar, Stranger, somewhere};
use tokio::io::AsyncReadExt as _;
use tokio::net;
use tokio::task::JoinSet;
use tokio::time::timeout;

const SECOND: std::time::Duration = std::time::Duration::from_secs(1);
/// Bytes that an honest client gets while others attack.
const HONEST: u64 = 5_000_000;

/// Sends a stream to each client that sends a byte, and drops the connection.
fn serve(world: &World, port: u16, len: u64) -> tokio::task::JoinHandle<()> {
    let listener = world.listen(port);
    tokio::spawn(async move {
        let mut tasks = JoinSet::new();
        loop {
            let (mut stream, _) = listener.accept().await.expect("the stack is there");
            tasks.spawn(async move {
                if stream.read_exact(&mut [0]).await.is_ok() {
                    // An attacker may be gone; what it gets is not the test.
                    let _ = write(&mut stream, 1, len).await;
                }
            });
        }
    })
}

/// An honest client asks, and gets everything.
async fn is_served(port: u16, len: u64) {
    let mut client = net::TcpStream::connect((STACK4, port)).await.expect("connected");
    write(&mut client, 0, 1).await.expect("asked");
    read_all(&mut client, 1, len).await;
}

/// Lets the stack work on what was said.
async fn pause() {
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
}

/// Honest clients connect, one after the other; how many of them are connected within a second.
async fn connect_in_time(port: u16, clients: usize) -> usize {
    let mut connected = 0;
    for _ in 0..clients {
        let connect = net::TcpStream::connect((STACK4, port));
        connected += usize::from(timeout(SECOND, connect).await.is_ok_and(|stream| stream.is_ok()));
    }
    connected
}

against_kernel! {
    // CVE-1996-0116, RFC 4987: SYNs in the names of hosts that do not exist.
    fn a_flood_of_forged_syns_keeps_no_client_out(world) from Setup::plain().host(|config| config.max_half_open = 256); {
        const CLIENTS: usize = 100;
        const FORGED: u64 = 10_000;
        let served = serve(&world, 7, 0);
        let flood = tokio::spawn(async {
            let stranger = Stranger::new();
            let options = TcpOptions { mss: Some(1_460), sack_permitted: true, ..TcpOptions::NONE };
            for number in 0.. {
                let mut syn = Liar::at(somewhere(number), SocketAddr::new(STACK4, 7)).header(TcpFlags::SYN);
                syn.options = options;
                stranger.say(&syn, &[]);
                if number % 64 == 63 {
                    tokio::task::yield_now().await;
                }
            }
        });
        while world.stack.counters().tcp_in_segs < FORGED {
            pause().await;
        }
        let before = world.stack.counters().tcp_in_segs;
        let forged = || world.stack.counters().tcp_in_segs - before;
        // More clients on a machine that has other work, until there was a flood beside them.
        let (mut clients, mut connected) = (0, 0);
        while clients < CLIENTS || (forged() <= FORGED && clients < 100 * CLIENTS) {
            connected += connect_in_time(7, CLIENTS).await;
            clients += CLIENTS;
        }
        flood.abort();
        let forged = forged();
        assert!(connected * 100 >= clients * 99, "{connected} of {clients} clients");
        assert!(forged > FORGED, "{forged} forged SYNs are no flood");
        let stats = world.stack.stats();
        assert!(stats.half_open <= 256, "{} half-open", stats.half_open);
        assert!(stats.connections <= clients + 1, "{} connections", stats.connections);
        served.abort();
    }

    // sockstress: clients ask, close their windows, and answer every probe. The kernel does that
    // for sockets that nobody reads.
    fn closed_windows_do_not_stay(world) from Setup::offload()
        .connections(|config| (config.send_buffer, config.min_send_buffer) = (256 << 10, None))
        .host(|config| {
            config.max_orphans = 50;
            config.orphan_timeout = Some(Duration::from_secs(3));
        });
    {
        let _served = serve(&world, 7, 200_000);
        let mut attackers = Vec::new();
        for _ in 0..200 {
            let socket = net::TcpSocket::new_v4().expect("a socket");
            socket.set_recv_buffer_size(4_096).expect("set");
            let mut attacker = socket.connect(SocketAddr::new(STACK4, 7)).await.expect("connected");
            write(&mut attacker, 0, 1).await.expect("asked");
            attackers.push(attacker);
        }
        while world.stack.counters().tcp_abort_on_memory < 150 {
            pause().await;
        }
        assert_eq!(world.stack.stats().orphans, 50);
        is_served(7, 200_000).await;
        while world.stack.stats().orphans > 0 {
            pause().await;
        }
        let counters = world.stack.counters();
        assert!(counters.tcp_win_probe > 0, "their windows were closed");
        assert_eq!(counters.tcp_abort_on_memory + counters.tcp_orphan_timeouts, 200, "each has ended");
        for attacker in &mut attackers {
            let mut rest = Vec::new();
            let error = attacker.read_to_end(&mut rest).await.expect_err("not everything came");
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "each is told");
        }
    }

    // RFC 5961: a stranger knows addresses and ports of a connection, and guesses numbers.
    fn segments_in_anothers_name_change_nothing(world) from Setup::offload(); {
        const FORGED: u32 = 50_000;
        let (mut kernel, mut stack) = world.connection(Opens::Kernel, Ip::V4).await;
        let (own, to) = (kernel.local_addr().expect("connected"), SocketAddr::new(STACK4, 7));
        let forge = async {
            let stranger = Stranger::new();
            let liar = Liar::at(own, to);
            // The kernel may drop some on the way: others take their places.
            for number in 0..2 * FORGED {
                let flags = match number % 4 {
                    0 => TcpFlags::RST,
                    1 => TcpFlags::SYN,
                    2 => TcpFlags::RST.union(TcpFlags::ACK),
                    _ => TcpFlags::ACK,
                };
                let mut header = liar.header(flags);
                // Spread over all numbers: some fall into the window.
                header.seq = SeqNum(number.wrapping_mul(0x9e37_79b1));
                header.ack = SeqNum(number.wrapping_mul(0x85eb_ca6b));
                stranger.say(&header, if number % 4 == 3 { &[0xa5; 100] } else { &[] });
                if number % 100 == 99 {
                    pause().await;
                    if world.stack.counters().tcp_syn_challenge >= u64::from(FORGED / 4) {
                        break;
                    }
                }
            }
        };
        let transfer = async {
            tokio::join!(write(&mut stack, 1, HONEST), read(&mut kernel, 1, HONEST)).0.expect("written");
            tokio::join!(write(&mut kernel, 2, HONEST), read(&mut stack, 2, HONEST)).0.expect("written");
        };
        let start = tokio::time::Instant::now();
        tokio::join!(forge, transfer);
        let seconds = start.elapsed().as_secs() + 2;
        let counters = world.stack.counters();
        assert!(counters.tcp_syn_challenge >= u64::from(FORGED / 4), "enough SYNs came");
        assert!(counters.tcp_ack_skipped_challenge > 0, "they are not all answered");
        assert!(counters.tcp_challenge_ack <= 2 * seconds, "{} in {seconds} s", counters.tcp_challenge_ack);
        assert_eq!(counters.tcp_estab_resets, 0);
        // The connection goes on, and ends as its owners want.
        tokio::join!(write_all(&mut kernel, 3, 1_000), read_all(&mut stack, 3, 1_000));
        tokio::join!(write_all(&mut stack, 4, 1_000), read_all(&mut kernel, 4, 1_000));
    }

    // A byte at the end of each window, and others all over it: what arrived of a window of 64 KiB
    // is 41 bytes.
    fn bytes_past_a_hole_cost_what_they_hold(world) from Setup::plain(); {
        const LIARS: u32 = 300;
        const MOST: u64 = 12 << 10;
        let served = serve(&world, 7, HONEST);
        let mut stranger = Stranger::new();
        let options = TcpOptions { mss: Some(1_460), sack_permitted: true, window_scale: Some(7), ..TcpOptions::NONE };
        let mut liars = Vec::new();
        for number in 0..LIARS {
            liars.push(stranger.open(somewhere(number), 7, options).await);
        }
        let before = world.stack.stats().memory;
        let attack = async {
            for liar in &liars {
                for byte in (0..=40).rev() {
                    let mut header = liar.header(TcpFlags::ACK);
                    header.seq += 1_500 * byte + 1;
                    stranger.say(&header, b"!");
                }
                pause().await;
            }
        };
        tokio::join!(attack, is_served(7, HONEST));
        let counters = world.stack.counters();
        assert!(counters.tcp_ofo_queue >= u64::from(LIARS) * 30, "{} came", counters.tcp_ofo_queue);
        let held = world.stack.stats().memory - before;
        assert!(held <= u64::from(LIARS) * MOST, "{held} bytes for {LIARS} peers");
        assert_eq!((counters.tcp_abort_on_memory, counters.ofo_pruned), (0, 0));
        served.abort();
    }

    // CVE-2019-11477 to 11479 and their kin: crumbs of SACK, taken back at once, for each ACK.
    fn crumbs_of_sack_delay_nobody_else(world) from Setup::plain(); {
        const ACKS: u32 = 30_000;
        let served = serve(&world, 7, HONEST);
        let mut stranger = Stranger::new();
        let options = TcpOptions { mss: Some(536), sack_permitted: true, window_scale: Some(7), ..TcpOptions::NONE };
        let mut liar = stranger.open(somewhere(0), 7, options).await;
        stranger.say(&liar.header(TcpFlags::ACK.union(TcpFlags::PSH)), b"!");
        liar.seq += 1;
        let first = loop {
            let heard = stranger.hear_at(liar.own).await;
            if heard.len > 0 {
                break heard;
            }
        };
        liar.ack = first.seq;
        let attack = async {
            for number in 0..ACKS {
                let mut header = liar.header(TcpFlags::ACK);
                // Up to four octets of what was sent, others each time.
                let crumbs = (0..4).map(|crumb| {
                    let start = liar.ack + 1 + (number.wrapping_mul(7) + crumb * 1_001) % 5_000;
                    (start, start + 1)
                });
                header.options.sack = crumbs.collect::<SackBlocks>();
                stranger.say(&header, &[]);
                if number % 100 == 99 {
                    pause().await;
                }
            }
        };
        tokio::join!(attack, is_served(7, HONEST));
        let counters = world.stack.counters();
        assert_eq!(counters.tcp_abort_on_memory, 0);
        assert!(counters.tcp_in_segs > u64::from(ACKS), "the attack came");
        served.abort();
    }
}
