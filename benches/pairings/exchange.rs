//! One exchange: who with whom, over which path, and how the applications behave.

use crate::LIMIT;
use crate::ends::{Act, Role, Tcp};
use crate::stream::{Bytes, Received};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::device::impair::{ImpairConfig, Impaired, Impairment};
use ackline_runtime::timer;
use ackline_tcp_core::Duration as Span;
use std::path::Path;
use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// How long an exchange took, or why it failed.
pub(crate) type Fate = Result<Duration, String>;

/// What is between the ends, and what they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trial {
    Large,
    Loss,
    Reordering,
    Corruption,
    SmallMtu,
    ClosedWindow,
    HalfClosed,
}

impl Trial {
    pub(crate) const ALL: [Self; 7] = [
        Self::Large,
        Self::Loss,
        Self::Reordering,
        Self::Corruption,
        Self::SmallMtu,
        Self::ClosedWindow,
        Self::HalfClosed,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Large => "large",
            Self::Loss => "loss",
            Self::Reordering => "reordering",
            Self::Corruption => "corruption",
            Self::SmallMtu => "small-mtu",
            Self::ClosedWindow => "closed-window",
            Self::HalfClosed => "half-closed",
        }
    }

    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Large => "8 MiB each way at once, 2 ms",
            Self::Loss => "2 % of all packets lost, 512 KiB each way at once",
            Self::Reordering => "5 % of all packets 10 ms late, 2 % twice, 1 MiB each way at once",
            Self::Corruption => "a bit of 1 % of all packets flipped, 512 KiB each way at once",
            Self::SmallMtu => "MTU 296, 256 KiB each way at once",
            Self::ClosedWindow => "1 MiB each way; both read nothing for 1.5 s, and again in the middle",
            Self::HalfClosed => {
                "the client sends 512 KiB and closes its direction, and only then does the server send 1 MiB"
            }
        }
    }

    /// Octets that client and server send.
    const fn lengths(self) -> [u64; 2] {
        match self {
            Self::Large => [8 * MIB, 8 * MIB],
            Self::Loss | Self::Corruption => [512 * KIB, 512 * KIB],
            Self::Reordering | Self::ClosedWindow => [MIB, MIB],
            Self::SmallMtu => [256 * KIB, 256 * KIB],
            Self::HalfClosed => [512 * KIB, MIB],
        }
    }

    /// Each way.
    fn impairment(self) -> Impairment {
        let clean = Impairment { delay: Span::from_millis(2), ..Impairment::default() };
        match self {
            Self::Loss => Impairment { loss: 2.0, ..clean },
            Self::Reordering => {
                Impairment { reorder: 5.0, reorder_by: Span::from_millis(10), duplicate: 2.0, ..clean }
            }
            Self::Corruption => Impairment { corrupt: 1.0, ..clean },
            _ => clean,
        }
    }

    pub(crate) const fn mtu(self) -> u32 {
        if let Self::SmallMtu = self { 296 } else { 1_500 }
    }

    const fn pause(self) -> Duration {
        if let Self::ClosedWindow = self { Duration::from_millis(1_500) } else { Duration::ZERO }
    }
}

/// In the order of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Exchange {
    pub(crate) client: Tcp,
    pub(crate) server: Tcp,
    pub(crate) trial: Trial,
}

impl Exchange {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Trial::ALL.into_iter().flat_map(|trial| {
            Tcp::ALL.into_iter().flat_map(move |client| {
                Tcp::ALL.into_iter().map(move |server| Self { client, server, trial })
            })
        })
    }

    pub(crate) fn name(self) -> String {
        format!("{}-{}/{}", self.client.name(), self.server.name(), self.trial.name())
    }

    pub(crate) fn has(self, tcp: Tcp) -> bool {
        self.client == tcp || self.server == tcp
    }

    pub(crate) fn run(self, seed: u64, captures: Option<&Path>) -> Fate {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("tokio: {error}"))?;
        // Devices stay on the thread that drives them.
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let began = timer::now();
            match tokio::time::timeout(LIMIT, self.ends(seed, captures)).await {
                Ok(ended) => ended.map(|()| timer::now().since(began).into()),
                Err(_) => Err(format!("no end in {} s", LIMIT.as_secs())),
            }
        })
    }

    async fn ends(self, seed: u64, captures: Option<&Path>) -> Result<(), String> {
        let Self { client, server, trial } = self;
        let config = ChannelConfig::default().plain().mtu(trial.mtu());
        let (near, far) = Channel::pair(config);
        let near = Impaired::new(near, ImpairConfig::both(trial.impairment(), seed));
        let [up, down] = trial.lengths();
        let act = |role, sends, receives| Act {
            role,
            bytes: Bytes::new(role as u64, sends),
            receives,
            waits: trial == Trial::HalfClosed && role == Role::Server,
            pause: trial.pause(),
            mtu: trial.mtu(),
            capture: captures.map(|folder| {
                let name = self.name().replace('/', "-");
                folder.join(format!("{name}-{}.pcapng", role.name()))
            }),
        };
        // The server first: it listens before a SYN comes.
        let mut server = server.start(Box::new(far), act(Role::Server, down, up)).await?;
        let mut client = client.start(Box::new(near), act(Role::Client, up, down)).await?;
        let (at_client, at_server) = tokio::try_join!(
            async { client.ended().await.map_err(|why| format!("the client: {why}")) },
            async { server.ended().await.map_err(|why| format!("the server: {why}")) },
        )?;
        check("the client", at_client, Bytes::new(Role::Server as u64, down))?;
        check("the server", at_server, Bytes::new(Role::Client as u64, up))
    }
}

fn check(who: &str, received: Received, sent: Bytes) -> Result<(), String> {
    let sent = Received::of(sent);
    match () {
        () if received == sent => Ok(()),
        () if received.len != sent.len => {
            Err(format!("{who} received {} bytes of {}", received.len, sent.len))
        }
        () => Err(format!("{who} received {} bytes, and not those that were sent", sent.len)),
    }
}
