//! The stack as a host of scripts: an endpoint in virtual time, and system calls over it.

use crate::calls::Sockets;
use crate::cookie;
use crate::host::{Attempt, Host, OpenCall, Progress, SentPacket};
use crate::info;
use crate::outcome::DialoguePacket;
use crate::report;
use crate::script::{Call, OptionLine, Shell, TcpLine};
use crate::settings::Settings;
use crate::world::World;
use ackline_registry::Registry;
use ackline_tcp_core::wire::TcpFlags;
use ackline_tcp_core::{ConnId, State};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

pub(crate) struct Stack {
    world: World,
    sockets: Sockets,
    settings: Settings,
    registry: Arc<Registry>,
}

impl Stack {
    pub(crate) fn new(settings: Settings, registry: Arc<Registry>) -> Self {
        let mut world = World::new(settings.host.clone(), &registry);
        if let Some((current, previous)) = settings.fast_open_keys {
            world.endpoint.set_fast_open_keys(current, previous);
        }
        let sockets = Sockets::new(&settings, registry.clone());
        Self { world, sockets, settings, registry }
    }

    /// The connection between these ends, if the endpoint has one.
    fn conn_of(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<ConnId> {
        let endpoint = &mut self.world.endpoint;
        let ids: Vec<ConnId> = endpoint.conn_ids(0).collect();
        ids.into_iter()
            .find(|id| endpoint.inspect(*id).is_some_and(|conn| conn.addresses() == (local, remote)))
    }

    fn state_of(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<State> {
        let id = self.conn_of(local, remote)?;
        self.world.endpoint.state(id)
    }
}

impl Host for Stack {
    fn now(&self) -> u64 {
        self.world.micros_now()
    }

    fn step(&mut self, limit: u64, _: bool) -> bool {
        let limit = self.world.at(limit);
        let went_on = self.world.step(limit);
        self.sockets.hear(&mut self.world);
        went_on
    }

    fn inject(&mut self, octets: Vec<u8>, line: Option<&TcpLine>) {
        if let Some(tcp) = line.filter(|tcp| tcp.flags.contains(TcpFlags::ACK)) {
            for option in &tcp.options {
                match option {
                    OptionLine::FastOpen { cookie, .. } => {
                        self.sockets.has_cookie |= cookie.as_ref().is_none_or(|cookie| !cookie.is_empty());
                    }
                    OptionLine::Mss(mss) => self.sockets.peer_mss = u32::from(*mss),
                    _ => {}
                }
            }
        }
        self.sockets.release_more(&mut self.world);
        self.world.inject(octets);
        self.sockets.hear(&mut self.world);
    }

    fn sent(&mut self) -> &mut VecDeque<SentPacket> {
        &mut self.world.sent
    }

    fn attempt(&mut self, call: &Call, progress: &mut Progress) -> Attempt {
        self.sockets.attempt(&mut self.world, call, progress)
    }

    fn opened(&mut self) -> Vec<OpenCall> {
        std::mem::take(&mut self.sockets.opened)
    }

    fn shell(&mut self, shell: &Shell) -> Result<(), String> {
        self.settings.shell(shell, &self.registry).map_err(|error| error.problem)?;
        self.sockets.set_defaults(&self.settings);
        Ok(())
    }

    fn snapshot(&mut self, ends: Option<(SocketAddr, SocketAddr)>) -> Result<String, String> {
        let id = match (self.sockets.latest_conn(), ends) {
            (Some(id), _) => Some(id),
            (None, Some((local, remote))) => self.conn_of(local, remote),
            (None, None) => None,
        };
        let now = self.world.now;
        let conn = id.and_then(|id| self.world.endpoint.inspect(id));
        Ok(conn.map_or_else(|| info::CLOSED.to_owned(), |conn| info::assignments(&conn.info_at(now))))
    }

    fn may_begin_anew(&mut self, local: SocketAddr, remote: SocketAddr) -> bool {
        let state = self.state_of(local, remote);
        self.world.endpoint.half_open() == 0 && matches!(state, None | Some(State::TimeWait | State::Closed))
    }

    fn is_over(&mut self, local: SocketAddr, remote: SocketAddr) -> bool {
        let endpoint = &self.world.endpoint;
        endpoint.half_open() + endpoint.time_wait_records() == 0
            && matches!(self.state_of(local, remote), None | Some(State::Closed))
    }

    fn cookie(&mut self, local: SocketAddr, remote: SocketAddr) -> Result<Vec<u8>, String> {
        Ok(cookie::of(&self.settings, local, remote, &self.registry))
    }

    fn passed(&self) -> Vec<DialoguePacket> {
        let start = self.world.at(0);
        let passed = |passed: &crate::world::ExchangedPacket| DialoguePacket {
            at_ns: passed.at.since(start).as_nanos(),
            outbound: passed.reason.is_some(),
            octets: passed.octets.clone(),
            comment: passed.reason.map_or("", ackline_observe::labels::send_reason),
        };
        self.world.passed.iter().map(passed).collect()
    }

    fn concluded(&mut self) -> Vec<String> {
        report::concluded(&mut self.world, self.sockets.latest_conn())
    }
}
