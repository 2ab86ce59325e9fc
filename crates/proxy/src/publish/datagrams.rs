//! Datagrams to a published port: a flow for each client, until nothing has passed for too long.

use super::udp_port::{Local, Port};
use super::{Base, source};
use crate::clients::{LimitReached, Permit};
use crate::target::Protocol;
use ackline_runtime::{UdpSocket, timer};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Longest datagram that UDP has.
const LONGEST: usize = 65_535;

/// A client, and the address of this machine that it has sent to.
type Key = (SocketAddr, Local);

/// One client's flow.
struct Flow {
    /// The client as the guest sees it.
    inside: UdpSocket,
    /// When something has passed, in nanoseconds of the stack's clock.
    latest: AtomicU64,
    _permit: Permit,
}

impl Flow {
    fn passed(&self) {
        self.latest.store(timer::now().as_nanos(), Ordering::Relaxed);
    }

    /// Time until it has been idle for `limit`; none if it has been.
    fn rest(&self, limit: Duration) -> Option<Duration> {
        let idle = timer::now().as_nanos().saturating_sub(self.latest.load(Ordering::Relaxed));
        limit.checked_sub(Duration::from_nanos(idle)).filter(|rest| !rest.is_zero())
    }
}

/// Listens at `address`, whose datagrams are for `guest`. Returns where it listens.
pub(super) fn listen(
    base: Base,
    address: SocketAddr,
    guest: SocketAddr,
    tasks: &mut JoinSet<()>,
) -> io::Result<SocketAddr> {
    let outside = Arc::new(Port::bind(address)?);
    let at = outside.local_addr()?;
    tasks.spawn(async move {
        let limit = base.stack.config().udp_flow_timeout.into();
        let mut flows: HashMap<Key, Arc<Flow>> = HashMap::new();
        let mut returning = JoinSet::new();
        let mut datagram = vec![0; LONGEST];
        let answers = Arc::new(Mutex::new(vec![0; LONGEST]));
        loop {
            tokio::select! {
                came = outside.recv(&mut datagram) => {
                    // What ICMP says of an answer to somebody.
                    let Ok((length, key)) = came else { continue };
                    let flow = match flows.entry(key) {
                        Entry::Occupied(flow) => flow.into_mut(),
                        Entry::Vacant(vacant) => {
                            let Some(flow) = begin(&base, key.0, guest).await else { continue };
                            let flow = vacant.insert(Arc::new(flow));
                            let (base, outside, answers) = (base.clone(), outside.clone(), answers.clone());
                            let answered = flow.clone();
                            returning.spawn(async move {
                                give_back(&base, &outside, &answered, key, &answers, limit).await;
                                key
                            });
                            flow
                        }
                    };
                    flow.passed();
                    let counters = &base.shared.counters;
                    match flow.inside.try_send(&datagram[..length]) {
                        Ok(_) => counters.datagrams_down.one(),
                        Err(_) => counters.datagrams_lost.one(),
                    }
                }
                Some(Ok(key)) = returning.join_next() => drop(flows.remove(&key)),
            }
        }
    });
    Ok(at)
}

/// A flow for a client that has none. Counts why there is none.
async fn begin(base: &Base, client: SocketAddr, guest: SocketAddr) -> Option<Flow> {
    let Base { shared, stack, clients, .. } = base;
    let counters = &shared.counters;
    counters.flows.one();
    counters.published.one();
    let permit = match clients.enter(client.ip(), Protocol::Udp) {
        Ok(permit) => permit,
        Err(full) => {
            let counter = if full == LimitReached::Client {
                &counters.client_flows_limit
            } else {
                &counters.no_descriptor
            };
            counter.one();
            return None;
        }
    };
    let bound = async {
        let from = source(shared, client, guest).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let inside = stack.bind_udp(from)?;
        inside.connect(guest).await?;
        io::Result::Ok(inside)
    };
    match bound.await {
        Ok(inside) => Some(Flow { inside, latest: AtomicU64::new(timer::now().as_nanos()), _permit: permit }),
        Err(error) => {
            counters.published_failed.one();
            shared.notices.trouble("published ports", format_args!("{client} to {guest}: {error}"));
            None
        }
    }
}

/// Gives the client what the guest answers, until nothing has passed for `limit`.
async fn give_back(
    base: &Base,
    outside: &Port,
    flow: &Flow,
    (client, local): Key,
    answers: &Mutex<Vec<u8>>,
    limit: Duration,
) {
    let counters = &base.shared.counters;
    let _open = counters.open_flows.enter();
    while let Some(rest) = flow.rest(limit) {
        tokio::select! {
            ready = flow.inside.readable() => {
                if ready.is_err() {
                    return;
                }
                let mut answer = answers.lock().unwrap_or_else(PoisonError::into_inner);
                // An error is what ICMP says: the guest's port is closed for the moment.
                if let Ok(length) = flow.inside.try_recv(&mut answer) {
                    flow.passed();
                    match outside.try_send(&answer[..length], client, local) {
                        Ok(()) => counters.datagrams_up.one(),
                        Err(_) => counters.datagrams_lost.one(),
                    }
                }
            }
            () = sleep(rest) => {}
        }
    }
}
