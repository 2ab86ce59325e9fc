//! Stacks of several shards on the queues of one interface, against the kernel.

use ackline_registry::Registry;
use ackline_runtime::device::af_packet::{AfPacket, AfPacketConfig};
use ackline_runtime::device::impair::{ImpairConfig, Impaired, Impairment};
use ackline_runtime::device::tun::{Tun, TunConfig};
use ackline_runtime::netlink::{InterfaceAddress, Netlink};
use ackline_runtime::netns::Namespace;
use ackline_runtime::testing::isolated;
use ackline_runtime::{Error, Stack, timer};
use ackline_tcp_core::{AcceptConfig, ConnConfig, EndpointConfig, ListenOn};
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const KERNEL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
const STACK: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
const PORT: u16 = 7;

fn tun() -> Result<Tun, Error> {
    let network = InterfaceAddress::network("10.77.0.1/24".parse().expect("a network"));
    Tun::create(&TunConfig::new().name("ack0").multi_queue().address(network))
}

/// Runs `work` on a tokio runtime of this thread, for at most a minute and a half.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(90), work).await.expect("still running after 90 seconds")
    })
}

/// Two shards on the queues of an Ethernet interface, behind which is the kernel of this namespace.
fn ethernet() -> Result<Stack, Error> {
    let there = thread::scope(|scope| scope.spawn(Namespace::new_for_thread).join().expect("no panic"))?;
    Netlink::open()?.add_veth("near0", "far0", &there)?;
    let set_up = |name: &str, address: Option<InterfaceAddress>| {
        let mut netlink = Netlink::open()?;
        let index = netlink.interface(name)?.index;
        address.map(|address| netlink.add_address(index, address)).transpose()?;
        netlink.set_up(index)
    };
    let network = InterfaceAddress::network("10.77.0.1/24".parse().expect("a network"));
    set_up("near0", Some(network))?;
    let (first, second) = there.run(|| {
        set_up("far0", None)?;
        let config = AfPacketConfig::new("far0").address("10.77.0.2/24".parse().expect("a network"));
        let mut first = AfPacket::open(&config)?;
        let second = first.open_queue()?;
        Ok::<_, Error>((first, second))
    })??;
    Ok(Stack::builder(first).queue(second).address(STACK).spawn().expect("descriptors and threads"))
}

fn stack(shards: usize) -> Result<Stack, Error> {
    Ok(Stack::builder(tun()?).address(STACK).shards(shards).spawn().expect("descriptors and threads"))
}

/// A request and an answer with somebody who sends everything back.
fn ask(number: u32) -> io::Result<()> {
    let mut stream = TcpStream::connect((STACK, PORT))?;
    stream.write_all(&number.to_be_bytes())?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer)?;
    assert_eq!(answer, number.to_be_bytes());
    Ok(())
}

/// The kernel accepts connections of the stack, and lets `serve` have each.
fn kernel_accepts(serve: impl Fn(TcpStream) + Send + 'static) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((KERNEL, 0))?;
    let place = listener.local_addr()?;
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            serve(stream);
        }
    });
    Ok(place)
}

/// Answers connections of the stack, each by a byte.
fn kernel_server() -> io::Result<SocketAddr> {
    kernel_accepts(|mut stream| {
        let mut byte = [0];
        // Whoever has connected sees an error.
        let _ = stream.read_exact(&mut byte).and_then(|()| stream.write_all(&byte));
    })
}

fn serve(stack: &Stack) {
    let listener = stack.listen(ListenOn::Port(PORT)).expect("free");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.runtime().clone().spawn(async move {
                let mut bytes = [0; 4];
                stream.read_exact(&mut bytes).await?;
                stream.write_all(&bytes).await?;
                // The client closes first.
                stream.read(&mut bytes).await
            });
        }
    });
}

/// `number` connects in each direction, some of them at once; why some failed.
async fn connects(stack: &Stack, number: u32) -> BTreeMap<String, usize> {
    const AT_ONCE: u32 = 20;
    serve(stack);
    let place = kernel_server().expect("a socket");
    let clients = (0..4).map(|client| {
        thread::spawn(move || {
            let failed = (0..number / 4).filter_map(|round| ask(client * number + round).err());
            failed.map(|error| format!("the kernel: {error}")).collect::<Vec<_>>()
        })
    });
    let clients: Vec<_> = clients.collect();
    let ours = (0..AT_ONCE).map(|_| {
        let stack = stack.clone();
        tokio::spawn(async move {
            let mut failed = Vec::new();
            for _ in 0..number / AT_ONCE {
                let outcome = async {
                    let mut stream = stack.connect(place).await?;
                    stream.write_all(&[1]).await?;
                    stream.read_u8().await
                };
                failed.extend(outcome.await.err().map(|error: io::Error| error.to_string()));
            }
            failed
        })
    });
    let mut failed = Vec::new();
    for task in ours.collect::<Vec<_>>() {
        failed.extend(task.await.expect("no panic"));
    }
    for client in clients {
        let join = || client.join().expect("no panic");
        failed.extend(tokio::task::spawn_blocking(join).await.expect("no panic"));
    }
    let mut reasons = BTreeMap::new();
    failed.into_iter().for_each(|reason| *reasons.entry(reason).or_default() += 1);
    reasons
}

/// Connects through two shards; returns how many of the packets were handed over, and how many
/// there were.
async fn connects_over_tun(stack: &Stack) -> (u64, u64) {
    let failed = connects(stack, 10_000).await;
    let stats = stack.stats();
    assert!(failed.is_empty(), "{failed:?}, {stats:?}");
    // An old ACK that the other queue has delayed may be answered with an RST, which ends nothing.
    assert_eq!((stats.counters.tcp_estab_resets, stats.counters.tcp_attempt_fails), (0, 0));
    assert_eq!(stats.handover_drops, 0);
    assert_eq!(stats.counters.tcp_active_opens, 10_000);
    assert_eq!(stats.counters.tcp_passive_opens, 10_000);
    println!("{} of {} packets handed over", stats.handed_over, stats.device.rx_packets);
    for shard in stack.shard_stats() {
        assert!((4_000..6_000).contains(&shard.counters.tcp_passive_opens), "{:?}", shard.counters);
    }
    (stats.handed_over, stats.device.rx_packets)
}

#[test]
fn no_connect_fails_whichever_queue_its_packets_come_to() {
    isolated("no_connect_fails_whichever_queue_its_packets_come_to", || {
        block_on(async {
            // A device that cannot be asked to steer.
            let alone = |tun| Impaired::new(tun, ImpairConfig::both(Impairment::default(), 0));
            let first = tun()?;
            let second = first.open_queue()?;
            let stack = Stack::builder(alone(first)).queue(alone(second)).address(STACK).spawn();
            let (handed_over, packets) = connects_over_tun(&stack.expect("descriptors and threads")).await;
            assert!(handed_over > packets / 10, "{handed_over} of {packets}");
            Ok(())
        })
    });
}

#[test]
fn the_kernel_delivers_segments_of_a_tun_to_their_owners() {
    isolated("the_kernel_delivers_segments_of_a_tun_to_their_owners", || {
        block_on(async {
            let (handed_over, packets) = connects_over_tun(&stack(2)?).await;
            if handed_over > packets / 10 {
                println!("SKIPPED: no right to load extended BPF programs");
            } else {
                assert_eq!(handed_over, 0, "of {packets}");
            }
            Ok(())
        })
    });
}

#[test]
fn the_kernel_delivers_segments_of_an_ethernet_to_their_owners() {
    isolated("the_kernel_delivers_segments_of_an_ethernet_to_their_owners", || {
        block_on(async {
            let stack = ethernet()?;
            let failed = connects(&stack, 2_000).await;
            let stats = stack.stats();
            assert!(failed.is_empty(), "{failed:?}, {stats:?}");
            assert_eq!((stats.counters.tcp_estab_resets, stats.counters.tcp_attempt_fails), (0, 0));
            assert_eq!(stats.counters.tcp_active_opens, 2_000);
            assert_eq!(stats.counters.tcp_passive_opens, 2_000);
            assert_eq!((stats.handed_over, stats.handover_drops), (0, 0));
            for shard in stack.shard_stats() {
                assert!((700..1_300).contains(&shard.counters.tcp_passive_opens), "{:?}", shard.counters);
            }
            Ok(())
        })
    });
}

#[test]
fn a_queue_that_hears_no_answers_finds_neighbours() {
    isolated("a_queue_that_hears_no_answers_finds_neighbours", || {
        block_on(async {
            let stack = ethernet()?;
            let place = kernel_server().expect("a socket");
            // The shards connect by turns. The first one's goes nowhere, so it asks nobody.
            let nowhere = stack.connect((Ipv4Addr::new(192, 0, 2, 1), PORT)).await.expect_err("no route");
            assert_eq!(nowhere.kind(), io::ErrorKind::HostUnreachable, "{nowhere}");
            // Whichever queue looks first reports what the resolution says, and may have had to
            // hand it over.
            let before = stack.stats().handed_over;
            assert!(before <= 1, "{before}");
            let mut stream = stack.connect(place).await.expect("connected");
            assert_eq!(stream.shard(), 1);
            stream.write_all(&[7]).await.expect("sent");
            assert_eq!(stream.read_u8().await.expect("received"), 7);
            let stats = stack.stats();
            let neighbours = stats.device.neighbours;
            assert_eq!((neighbours.requests_sent, neighbours.waited), (1, 1), "{neighbours:?}");
            assert_eq!(stats.handed_over, before, "{stats:?}");
            Ok(())
        })
    });
}

/// Takes all that comes on each connection, and answers its end by a byte.
fn kernel_sink() -> io::Result<SocketAddr> {
    kernel_accepts(|mut stream| {
        // Whoever has connected sees an error.
        thread::spawn(move || io::copy(&mut stream, &mut io::sink()).and_then(|_| stream.write_all(&[1])));
    })
}

/// Sends 100 kB over each of 16 connections, by turns on one shard and the other; returns how long
/// that took.
async fn send(stack: &Stack) -> Duration {
    let place = kernel_sink().expect("a socket");
    let begun = timer::now();
    let senders = (0..16).map(|_| {
        let stack = stack.clone();
        tokio::spawn(async move {
            let mut stream = stack.connect(place).await?;
            stream.write_all(&[0; 100_000]).await?;
            stream.shutdown().await?;
            stream.read_u8().await?;
            Ok::<_, io::Error>(stream.shard())
        })
    });
    let mut shards = [0; 2];
    for sender in senders.collect::<Vec<_>>() {
        shards[sender.await.expect("no panic").expect("sent")] += 1;
    }
    assert_eq!(shards, [8, 8]);
    timer::now().since(begun).into()
}

#[test]
fn a_rate_is_that_of_all_shards() {
    isolated("a_rate_is_that_of_all_shards", || {
        block_on(async {
            let builder = Stack::builder(tun()?).address(STACK).shards(2);
            let stack = builder.options("sched=drr:rate=40mbit,burst=0").expect("a scheduler").spawn();
            let stack = stack.expect("descriptors and threads");
            // 1.6 MB, of which five bytes leave in a microsecond.
            let least = Duration::from_millis(320);
            let took = send(&stack).await;
            assert!(took >= least, "{took:?}");
            // It is configured for all.
            let configured =
                stack.with_scheduler(|scheduler| scheduler.configure(&"rate=20mbit".parse().expect("one")));
            configured.expect("it has a rate");
            let took = send(&stack).await;
            assert!(took >= 2 * least, "{took:?}");
            Ok(())
        })
    });
}

#[test]
fn a_scheduler_that_is_given_is_that_of_all_shards() {
    isolated("a_scheduler_that_is_given_is_that_of_all_shards", || {
        block_on(async {
            let given = Registry::default().sched("flow-queue:limit=8").expect("a scheduler");
            let builder = Stack::builder(tun()?).address(STACK).shards(2);
            let stack = builder.scheduler(given()).spawn().expect("descriptors and threads");
            send(&stack).await;
            assert_eq!(stack.scheduler().name, "flow-queue");
            Ok(())
        })
    });
}

#[test]
fn an_interface_that_is_removed_fails_all_shards() {
    isolated("an_interface_that_is_removed_fails_all_shards", || {
        block_on(async {
            let stack = stack(4)?;
            let place = kernel_server().expect("a socket");
            let mut streams = Vec::new();
            for _ in 0..16 {
                streams.push(stack.connect(place).await.expect("connected"));
            }
            let listener = stack.listen(ListenOn::Port(PORT)).expect("free");
            let index = Netlink::open()?.interface("ack0")?.index;
            Netlink::open()?.remove(index)?;
            for stream in &mut streams {
                let error = stream.read_u8().await.expect_err("gone");
                assert_eq!(error.kind(), io::ErrorKind::NetworkDown, "{error}");
            }
            assert_eq!(listener.accept().await.expect_err("gone").kind(), io::ErrorKind::NetworkDown);
            assert_eq!(stack.connect(place).await.expect_err("gone").kind(), io::ErrorKind::NetworkDown);
            Ok(())
        })
    });
}

#[test]
fn a_tun_device_of_one_queue_has_one_shard() {
    isolated("a_tun_device_of_one_queue_has_one_shard", || {
        block_on(async {
            let tun = Tun::create(&TunConfig::new())?;
            let error = Stack::builder(tun).shards(2).spawn().expect_err("one queue");
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            assert!(error.to_string().contains("multi_queue"), "{error}");
            let tun = Tun::create(&TunConfig::new())?;
            let stack =
                Stack::builder(tun).shards(ackline_runtime::stack::Shards::Auto).spawn().expect("one");
            assert_eq!(stack.shards(), 1);
            Ok(())
        })
    });
}

/// Two shards with these settings.
fn configured(change: impl FnOnce(&mut EndpointConfig)) -> Result<Stack, Error> {
    let stack = Stack::builder(tun()?).address(STACK).shards(2).configure(change);
    Ok(stack.spawn().expect("descriptors and threads"))
}

async fn until(what: &str, done: impl Fn() -> bool) {
    let poll = async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(20), poll).await.is_ok(), "not yet: {what}");
}

/// The kernel connects `number` times, or fails to within a second and a half.
async fn clients(number: usize) -> Vec<io::Result<TcpStream>> {
    let connect = || TcpStream::connect_timeout(&(STACK, PORT).into(), Duration::from_millis(1_500));
    let clients = (0..number).map(|_| tokio::task::spawn_blocking(connect));
    let mut streams = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        streams.push(client.await.expect("no panic"));
    }
    streams
}

#[test]
fn a_limit_of_connections_is_the_hosts_whichever_shards_have_them() {
    isolated("a_limit_of_connections_is_the_hosts_whichever_shards_have_them", || {
        block_on(async {
            let stack = configured(|config| config.max_connections = 10)?;
            let listener = stack.listen(ListenOn::Port(PORT)).expect("free");
            for round in 0..4 {
                let mut theirs = clients(10).await;
                assert!(theirs.iter().all(Result::is_ok), "{round}: {theirs:?}");
                let mut ours = Vec::new();
                while ours.len() < 10 {
                    ours.push(listener.accept().await.expect("accepted"));
                }
                let each: Vec<_> = stack.shard_stats().iter().map(|shard| shard.connections).collect();
                assert_eq!(each.iter().sum::<usize>(), 10, "{each:?}");
                println!("{each:?}");
                if round == 0 {
                    theirs.extend(clients(2).await);
                    assert!(theirs[10..].iter().all(Result::is_err), "{theirs:?}");
                    assert!(stack.stats().counters.listen_drops >= 2);
                }
                // Our side waits in TIME-WAIT, whose records do not count.
                drop((ours, theirs));
                until("all are gone", || stack.stats().connections == 0).await;
            }
            Ok(())
        })
    });
}

#[test]
fn a_backlog_is_the_listeners_whichever_shards_have_its_connections() {
    isolated("a_backlog_is_the_listeners_whichever_shards_have_its_connections", || {
        block_on(async {
            let stack = configured(|_| {})?;
            let mut accept = AcceptConfig::default();
            accept.backlog = 4;
            let listener = stack.listen_with(ListenOn::Port(PORT), accept).expect("free");
            let waiting = || stack.listeners()[0].1;
            for round in 0..4 {
                // Those that find the backlog full when they acknowledge the SYN-ACK are connected
                // as far as they know.
                let theirs = clients(4).await;
                assert!(theirs.iter().all(Result::is_ok), "{round}: {theirs:?}");
                until("four wait", || waiting() == 4).await;
                let more = clients(3).await;
                assert!(more.iter().all(Result::is_err), "{more:?}");
                assert_eq!(waiting(), 4);
                for _ in 0..4 {
                    listener.accept().await.expect("accepted");
                }
                assert_eq!(waiting(), 0);
            }
            Ok(())
        })
    });
}

/// Half of the clients read nothing of what the stack writes to them, and the other half write what
/// it does not read.
#[test]
fn memory_is_the_hosts() {
    const BUDGET: u64 = 2 << 20;
    const CLIENTS: usize = 60;
    // A packet in each direction, in buffers that are powers of two.
    const MOST: u64 = BUDGET + CLIENTS as u64 * 2 * 2_048;
    isolated("memory_is_the_hosts", || {
        block_on(async {
            let mut config = ConnConfig::default();
            config.min_send_buffer = None;
            let stack = Stack::builder(tun()?).address(STACK).shards(2).connections(config);
            let stack = stack.configure(|config| config.max_memory = Some(BUDGET));
            let stack = stack.spawn().expect("descriptors and threads");
            let listener = stack.listen(ListenOn::Port(PORT)).expect("free");
            tokio::spawn(async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    stream.runtime().clone().spawn(async move {
                        let mut first = [0];
                        stream.read_exact(&mut first).await?;
                        if first[0] == 0 {
                            loop {
                                stream.write_all(&[7; 10_000]).await?;
                            }
                        }
                        std::future::pending::<io::Result<()>>().await
                    });
                }
            });
            let theirs = clients(CLIENTS).await;
            for (number, stream) in theirs.iter().enumerate() {
                let mut stream = stream.as_ref().expect("connected");
                stream.set_nonblocking(true).expect("it is a socket");
                let kind = (number % 2) as u8;
                stream.write_all(&[kind]).expect("room for a byte");
                while kind == 1 && stream.write(&[7; 10_000]).is_ok() {}
            }
            let mut highest = 0;
            for _ in 0..1_500 {
                let sum = stack.stats();
                assert_eq!(sum.memory, sum.counters.curr_memory);
                assert!(sum.memory <= MOST, "{} of {BUDGET}", sum.memory);
                highest = highest.max(sum.memory);
                for (number, stream) in theirs.iter().enumerate() {
                    let mut stream = stream.as_ref().expect("connected");
                    while number % 2 == 1 && stream.write(&[7; 10_000]).is_ok() {}
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            let shards = stack.shard_stats();
            let each: Vec<_> = shards.iter().map(|shard| (shard.connections, shard.memory)).collect();
            println!("{each:?}, at most {highest}");
            assert!(highest > BUDGET / 2 && each.iter().all(|(_, memory)| *memory > BUDGET / 10), "{each:?}");
            assert!(stack.stats().counters.tcp_memory_pressures > 0);
            Ok(())
        })
    });
}
