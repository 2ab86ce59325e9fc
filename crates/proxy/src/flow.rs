//! One UDP flow, until nothing has passed for too long.

use crate::dns::DNS;
use crate::mapping::{Flow, Held, Mapped, Mappings};
use crate::resolution;
use crate::shared::{Choice, Shared, Way};
use crate::throttle::{Gate, Pace};
use ackline_runtime::{Refusal, UdpFlow};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// How long a flow to port 53 stays when each question has its answer: another question may be on
/// its way.
const SETTLED: Duration = Duration::from_secs(1);

/// Relays both directions. If the destination's port is closed, the client is refused.
pub(crate) async fn carry(mappings: &Arc<Mappings>, inside: UdpFlow) {
    let shared = &*mappings.shared;
    let (Ok(client), Ok(wanted)) = (inside.peer_addr(), inside.local_addr()) else { return };
    let _open = shared.counters.open_flows.enter();
    let Choice { way, decision, .. } = shared.choose_for_flow(client, wanted);
    let (upstream, target) = match way {
        Way::Through(upstream, target) => (upstream, target),
        Way::Resolvers(ways) => return resolution::serve_flow(shared, inside, client, ways).await,
        Way::Refuse => return inside.refuse(),
        Way::Drop => return,
    };
    // By its address, even if it has a name: only so can the sender of an answer be compared with
    // it.
    let pace = shared.pace(&decision);
    let holds_back = pace.down().is_some();
    match mappings.join(inside, client, wanted, &upstream, target.address, holds_back).await {
        Ok(mapped) => run(shared, mapped, wanted.port() == DNS, &pace).await,
        Err((inside, error)) => match shared.refusal(&*upstream, &error) {
            Refusal::Drop => {}
            Refusal::Rst | Refusal::Unreachable => inside.refuse(),
        },
    }
}

/// Sends what the client sends, until nothing passes any more. What comes back the mapping gives
/// it, or what waits for its turn.
async fn run(shared: &Shared, mut mapped: Mapped, resolves: bool, pace: &Pace<'_>) {
    let flow = mapped.flow();
    match mapped.held.take().zip(pace.down()) {
        Some((held, gate)) => tokio::select! {
            () = send(shared, mapped, &flow, resolves, pace.up()) => {}
            () = Box::pin(release(shared, &flow, held, gate)) => {}
        },
        None => send(shared, mapped, &flow, resolves, pace.up()).await,
    }
}

/// Gives the client what has come back, each datagram at its turn.
async fn release(shared: &Shared, flow: &Flow, mut held: mpsc::Receiver<Held>, gate: Gate<'_>) {
    while let Some(next) = held.recv().await {
        gate.pass(next.datagram.len()).await;
        flow.release(shared, &next);
    }
}

/// Sends what the client sends, each datagram at its turn.
async fn send(shared: &Shared, mut mapped: Mapped, flow: &Flow, resolves: bool, gate: Option<Gate<'_>>) {
    let headroom = mapped.headroom();
    let mtu = shared.config.mtu as usize;
    let mut there = Vec::new();
    let mut questions = 0_u64;
    loop {
        let is_settled = resolves && questions > 0 && flow.answers() >= questions;
        // What a client sends may have come in fragments. Room for that is only kept while it is
        // needed.
        there.shrink_to(headroom + mtu);
        there.resize(headroom, 0);
        tokio::select! {
            taken = flow.inside.recv_buf(&mut there) => match taken {
                Ok(_) => {
                    questions += 1;
                    if let Some(gate) = gate {
                        tokio::select! {
                            () = Box::pin(gate.pass(there.len() - headroom)) => {}
                            () = mapped.end() => return,
                        }
                    }
                    shared.counters.datagrams_up.one();
                    // One that does not leave is lost, as on any path.
                    let _ = mapped.send(&mut there).await;
                }
                // It has ended, or the client has closed its socket.
                Err(_) => return,
            },
            // The next datagram gets another one.
            () = mapped.end() => return,
            () = flow.next_answer(), if resolves => {}
            () = sleep(SETTLED), if is_settled => return,
        }
    }
}
