//! One point of a scenario, understood and checked: what a simulation is built from.

use super::app::{self, AppKind};
use super::keys::{MAX_FLOWS, MAX_NODES};
use super::link::PathSetup;
use super::options::{self, ConnSettings};
use super::paths;
use super::reader::{Item, Table};
use super::stis;
use super::world::{KernelSetting, KernelSettings, World};
use crate::error::ScenarioError;
use ackline_netsim::app::Reading;
use ackline_netsim::stis::StisParams;
use ackline_netsim::{Checksums, Egress, Service};
use ackline_registry::{Options, Registry};
use ackline_tcp_core::config::options::{CONN, find};
use ackline_tcp_core::config::{ConnConfig, Nagle, Pricing};
use ackline_tcp_core::policy::NewEgressScheduler;
use ackline_tcp_core::policy::spec::nearest;
use ackline_tcp_core::{Duration, EndpointConfig};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

type Result<T> = std::result::Result<T, ScenarioError>;

/// What Linux takes for TCP_MAXSEG (TCP_MIN_MSS and MAX_TCP_WINDOW of its tcp.h).
const KERNEL_MSS: RangeInclusive<u16> = 88..=32_767;

/// One point, ready to be built.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) duration: Duration,
    pub(crate) seed: u64,
    pub(crate) repeat: u32,
    pub(crate) checksums: Checksums,
    pub(crate) nodes: Vec<NodeSetup>,
    pub(crate) links: Vec<LinkSetup>,
    pub(crate) flows: Vec<FlowSetup>,
    pub(crate) changes: Vec<ChangeSetup>,
    pub(crate) measure: MeasureSetup,
}

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct NodeSetup {
    pub(crate) name: String,
    /// `None`: a router, or else what `stis` says.
    pub(crate) host: Option<HostSetup>,
    pub(crate) stis: Option<StisParams>,
}

/// What a host is made of.
#[derive(Clone)]
pub(crate) struct HostSetup {
    pub(crate) egress: Egress,
    pub(crate) scheduler: Arc<NewEgressScheduler>,
    /// Without addresses, which the network gives.
    pub(crate) config: EndpointConfig,
    pub(crate) world: World,
    pub(crate) kernel: KernelSettings,
}

impl fmt::Debug for HostSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { egress, scheduler: _, config, world, kernel } = self;
        let mut text = f.debug_struct("HostSetup");
        text.field("egress", egress).field("config", config).field("world", world).field("kernel", kernel);
        text.finish_non_exhaustive()
    }
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct LinkSetup {
    /// `bottleneck`, `bottleneck.back`, or `left>right` if nobody named it.
    pub(crate) name: String,
    pub(crate) is_named: bool,
    /// Places of nodes.
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) path: PathSetup,
}

/// A flow: one opener, one acceptor.
#[derive(Clone, Debug)]
pub(crate) struct FlowSetup {
    pub(crate) name: String,
    /// The application it belongs to.
    pub(crate) app: String,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) start: Duration,
    /// A random time up to this is added to the start.
    pub(crate) jitter: Duration,
    pub(crate) kind: AppKind,
    pub(crate) conn: Arc<ConnConfig>,
    pub(crate) accept: Arc<ConnConfig>,
    /// Where the congestion control of each of the two is named, for errors; `None`: nowhere.
    pub(crate) conn_cc: Option<String>,
    pub(crate) accept_cc: Option<String>,
}

/// A change of some links at a time.
#[derive(Clone, Debug)]
pub(crate) struct ChangeSetup {
    pub(crate) at: Duration,
    /// Places of links.
    pub(crate) links: Vec<usize>,
    pub(crate) what: What,
}

/// What changes.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Rate(u64),
    Delay(Duration),
    Stall,
    Resume,
    Down,
    Up,
}

/// What is measured, and when.
#[derive(Clone, Debug)]
pub(crate) struct MeasureSetup {
    pub(crate) from: Duration,
    pub(crate) until: Duration,
    pub(crate) interval: Duration,
    /// Length of the bins in which the received bytes of each flow are counted.
    pub(crate) bins: Option<Duration>,
    /// Places of links.
    pub(crate) queues: Vec<usize>,
    /// Flows whose senders are sampled.
    pub(crate) flows: usize,
    pub(crate) series: bool,
    /// The summary shows the congestion window with which each flow ends.
    pub(crate) cwnd: bool,
    /// Each download is measured by itself.
    pub(crate) transfers: bool,
    /// Rows of packets.
    pub(crate) trace: Option<usize>,
    /// Rows of dropped packets.
    pub(crate) drops: Option<usize>,
}

/// Names that stand for one or more things.
#[derive(Debug, Default)]
struct Names(BTreeMap<String, Vec<usize>>);

impl Names {
    fn find(&self, item: &Item<'_>, what: &str) -> Result<Vec<usize>> {
        let name = item.text()?;
        if let Some(places) = self.0.get(name) {
            return Ok(places.clone());
        }
        let mut text = format!("there is no {what} named {name:?}");
        if let Some(near) = nearest(name, self.0.keys().map(String::as_str)) {
            text += &format!("; did you mean {near:?}?");
        } else if self.0.len() <= 12 {
            let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
            text += &format!(" (there are {})", names.join(", "));
        }
        Err(item.error(text))
    }

    fn add(&mut self, name: String, places: Vec<usize>) -> bool {
        self.0.insert(name, places).is_none()
    }
}

impl Setup {
    pub(crate) fn read(root: &Item<'_>, registry: &Registry, folder: &Path) -> Result<Self> {
        let top = root.table()?;
        let text = |key: &str| top.or(key, String::new(), |item| Ok(item.text()?.trim().to_owned()));
        let duration = top.need("duration")?.time()?;
        let checksums =
            [("auto", Checksums::Auto), ("computed", Checksums::Computed), ("omitted", Checksums::Omitted)];
        registry.check().map_err(|error| top.error(error.to_string()))?;
        let mut defaults = ConnSettings::of(registry);
        if let Some(item) = top.get("conn") {
            defaults = defaults.with(&item)?;
        }
        let hosts = Hosts::read(&top, registry)?;
        let (nodes, node_names) = nodes(&top.need("node")?, &hosts)?;
        let (mut links, link_names) = match top.get("link") {
            Some(item) => links(&item, &node_names, folder)?,
            None => (vec![], Names::default()),
        };
        for link in links.iter_mut().filter(|link| !link.is_named) {
            link.name = format!("{}>{}", nodes[link.from].name, nodes[link.to].name);
        }
        one_way_out(&top, &nodes, &links)?;
        let apps = App { defaults, nodes: &nodes, names: &node_names };
        let flows = apps.flows(&top.need("app")?)?;
        let changes = match top.get("change") {
            Some(item) => changes(&item, &link_names)?,
            None => vec![],
        };
        let measure = measure(&top, duration, &links, &link_names)?;
        Ok(Self {
            title: text("title")?,
            description: text("description")?,
            duration,
            seed: top.or("seed", 1, Item::integer)?,
            repeat: top.or("repeat", 1, |item| Ok(item.integer()? as u32))?,
            checksums: top.or("checksums", Checksums::Auto, |item| item.choice(&checksums))?,
            nodes,
            links,
            flows,
            changes,
            measure,
        })
    }
}

fn nodes(item: &Item<'_>, hosts: &Hosts) -> Result<(Vec<NodeSetup>, Names)> {
    let mut nodes = vec![];
    let mut names = Names::default();
    for item in item.list()? {
        let table = item.table()?;
        let (mut host_setup, mut stis_params) = (None, None);
        match table.kind() {
            "host" => {
                let host = hosts.host(&table)?;
                one_world(&table, &host)?;
                host_setup = Some(host);
            }
            "stis" => stis_params = Some(stis::read(&table)?),
            _ => {}
        }
        let name = table.need("name")?.name()?;
        let count = table.maybe("count", |item| Ok(item.integer()? as usize))?;
        let first = nodes.len();
        let twice = |name: &str| table.error(format!("two nodes are named {name:?}"));
        for number in 1..=count.unwrap_or(1) {
            let name = if count.is_some() { format!("{name}-{number}") } else { name.clone() };
            if count.is_some() && !names.add(name.clone(), vec![nodes.len()]) {
                return Err(twice(&name));
            }
            nodes.push(NodeSetup { name, host: host_setup.clone(), stis: stis_params.clone() });
        }
        if nodes.len() as u64 > MAX_NODES {
            return Err(table.error(format!("these are more than {MAX_NODES} nodes")));
        }
        if !names.add(name.clone(), (first..nodes.len()).collect()) {
            return Err(twice(&name));
        }
    }
    Ok((nodes, names))
}

/// What all hosts of a scenario have in common.
struct Hosts {
    default: HostSetup,
}

impl Hosts {
    fn read(top: &Table<'_>, registry: &Registry) -> Result<Self> {
        let config = EndpointConfig::default();
        let default = HostSetup {
            egress: Egress::Queued,
            scheduler: registry.scheduler(),
            config,
            world: World::default(),
            kernel: KernelSettings::default(),
        };
        let mut hosts = Self { default };
        if let Some(item) = top.get("pricing") {
            hosts.default.config.pricing = pricing(&item)?;
        }
        if let Some(item) = top.get("host") {
            hosts.default = hosts.host(&item.table()?)?;
        }
        Ok(hosts)
    }

    fn host(&self, table: &Table<'_>) -> Result<HostSetup> {
        let HostSetup { egress, scheduler, config, world, kernel } = &self.default;
        let options: Options = options::options(table)?;
        let mut config = options.host(config).map_err(|error| table.error(error.to_string()))?;
        if let Some(item) = table.get("pricing").filter(Item::is_table) {
            config.pricing = pricing(&item)?;
        }
        let kinds = [("queued", Egress::Queued), ("fed", Egress::Fed)];
        let worlds = [World::Virtual, World::Live, World::Kernel].map(|world| (world.name(), world));
        Ok(HostSetup {
            egress: table.or("egress", *egress, |item| item.choice(&kinds))?,
            scheduler: options.sched().unwrap_or(scheduler).clone(),
            config,
            world: table.or("world", *world, |item| item.choice(&worlds))?,
            kernel: table.or("kernel", kernel.clone(), kernel_settings)?,
        })
    }
}

fn kernel_settings(item: &Item<'_>) -> Result<KernelSettings> {
    let table = item.table()?;
    let mut sysctls = vec![];
    if let Some(item) = table.get("sysctl") {
        sysctl(&item, "", &mut sysctls)?;
    }
    let cc = |item: &Item<'_>| {
        Ok(KernelSetting { name: "cc".to_owned(), value: item.text()?.to_owned(), place: item.place() })
    };
    Ok(KernelSettings { cc: table.maybe("cc", cc)?, sysctls })
}

/// `net.ipv4.tcp_sack = 0`, in quotes or as tables.
fn sysctl(item: &Item<'_>, name: &str, settings: &mut Vec<KernelSetting>) -> Result<()> {
    if !item.is_table() {
        // Others are not apart in each namespace.
        if !name.starts_with("net.") {
            return Err(item.error(format!(
                "{name:?} is no setting of a network namespace: its name begins with \"net.\""
            )));
        }
        settings.push(KernelSetting { name: name.to_owned(), value: item.spelled()?, place: item.place() });
        return Ok(());
    }
    for (key, item) in item.table()?.iter() {
        let name = if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
        sysctl(&item, &name, settings)?;
    }
    Ok(())
}

/// A host of the kernel has an MTU, and else nothing that only ackline's hosts have, and the other
/// way round.
fn one_world(table: &Table<'_>, host: &HostSetup) -> Result<()> {
    let only = |key: &str, item: &Item<'_>, whose: &str| {
        item.error(format!(
            "{key} is for hosts of {whose}, and this one is of the world {:?}",
            host.world.name()
        ))
    };
    if host.world == World::Kernel {
        let own = ["egress", "pricing"].into_iter().filter_map(|key| Some((key, table.get(key)?)));
        if let Some((key, item)) = own.chain(table.options().filter(|(key, _)| *key != "mtu")).next() {
            return Err(only(key, &item, "ackline"));
        }
    } else if let Some(item) = table.get("kernel") {
        return Err(only("kernel", &item, "the kernel"));
    }
    Ok(())
}

/// `{ overhead = 38 }`: IP bytes and so many more; `{ ack = 40 }`: the sizes of a paper, where a
/// data packet of 1,500 bytes is 1,500 bytes of the stream, on the link and in the window, and an
/// ACK (or SYN, FIN, RST) is so much.
fn pricing(item: &Item<'_>) -> Result<Pricing> {
    let table = item.table()?;
    let size = |item: &Item<'_>| Ok(item.integer()? as u16);
    match (table.get("overhead"), table.get("ack")) {
        (Some(overhead), None) => Ok(Pricing::Wire { overhead: size(&overhead)? }),
        (None, Some(ack)) => Ok(Pricing::Paper { ack: size(&ack)? }),
        _ => Err(table.error("write { overhead = BYTES } or { ack = BYTES }")),
    }
}

fn links(item: &Item<'_>, nodes: &Names, folder: &Path) -> Result<(Vec<LinkSetup>, Names)> {
    let mut links: Vec<LinkSetup> = vec![];
    let mut names = Names::default();
    for item in item.list()? {
        let table = item.table()?;
        let name = table.maybe("name", Item::name)?;
        let (named, named_back) = match table.get("path") {
            Some(item) => {
                let (there, back) = paths::resolve(item.text()?).map_err(|error| item.error(error))?;
                (there, Some(back))
            }
            None => (PathSetup::empty(), None),
        };
        let path = PathSetup::read(&table, &named, folder)?;
        let (pairs, back) = match (table.get("between"), table.get("from"), table.get("to")) {
            (Some(ends), None, None) => {
                let [first, second] = <[Item<'_>; 2]>::try_from(ends.list()?)
                    .map_err(|_| ends.error("a link is between two nodes: between = [\"a\", \"b\"]"))?;
                let pairs = pairs(&ends, &nodes.find(&first, "node")?, &nodes.find(&second, "node")?)?;
                let base = named_back.as_ref().unwrap_or(&path);
                let back = match table.get("back") {
                    None => base.clone(),
                    Some(item) => PathSetup::read(&item.table()?, base, folder)?,
                };
                (pairs, Some(back))
            }
            (None, Some(from), Some(to)) => {
                if let Some(back) = table.get("back") {
                    return Err(back.error("a link with from and to has one direction; use between for both"));
                }
                (pairs(&to, &nodes.find(&from, "node")?, &nodes.find(&to, "node")?)?, None)
            }
            _ => {
                return Err(
                    table.error("give between = [\"a\", \"b\"] for both directions, or from and to for one")
                );
            }
        };
        let (mut there, mut again) = (vec![], vec![]);
        let many = pairs.len() > 1;
        for (number, (from, to)) in pairs.iter().enumerate() {
            if from == to {
                return Err(table.error("a link leads from a node to another one"));
            }
            let label = |suffix: &str| match &name {
                Some(name) if many => format!("{name}-{}{suffix}", number + 1),
                Some(name) => format!("{name}{suffix}"),
                None => String::new(),
            };
            // Links without a name are called by their ends, once these are known.
            there.push(links.len());
            let is_named = name.is_some();
            links.push(LinkSetup { name: label(""), is_named, from: *from, to: *to, path: path.clone() });
            if let Some(back) = &back {
                again.push(links.len());
                let path = back.clone();
                links.push(LinkSetup { name: label(".back"), is_named, from: *to, to: *from, path });
            }
        }
        if let Some(name) = name {
            let mut new = true;
            if many {
                for place in there.iter().chain(&again) {
                    new &= names.add(links[*place].name.clone(), vec![*place]);
                }
            }
            new &= names.add(name.clone(), there);
            if !again.is_empty() {
                new &= names.add(format!("{name}.back"), again);
            }
            if !new {
                return Err(table.error(format!("two links are named {name:?}")));
            }
        }
    }
    Ok((links, names))
}

/// One to one; or one to each of many, whichever side they are on.
fn pairs(item: &Item<'_>, from: &[usize], to: &[usize]) -> Result<Vec<(usize, usize)>> {
    match (from, to) {
        ([one], _) => Ok(to.iter().map(|other| (*one, *other)).collect()),
        (_, [one]) => Ok(from.iter().map(|other| (*other, *one)).collect()),
        _ if from.len() == to.len() => Ok(from.iter().copied().zip(to.iter().copied()).collect()),
        _ => Err(item.error(format!(
            "{} nodes cannot be paired with {}: both must be as many, or one of them a single node",
            from.len(),
            to.len()
        ))),
    }
}

/// A host that feeds its link has one.
fn one_way_out(top: &Table<'_>, nodes: &[NodeSetup], links: &[LinkSetup]) -> Result<()> {
    for (place, node) in nodes.iter().enumerate() {
        let fed = node.host.as_ref().is_some_and(|host| host.egress == Egress::Fed);
        let out = links.iter().filter(|link| link.from == place);
        if fed && out.count() > 1 {
            return Err(
                top.error(format!("{} has egress = \"fed\", and so at most one outgoing link", node.name))
            );
        }
    }
    Ok(())
}

/// What applications are read with.
struct App<'a> {
    defaults: ConnSettings,
    nodes: &'a [NodeSetup],
    names: &'a Names,
}

impl App<'_> {
    fn flows(&self, item: &Item<'_>) -> Result<Vec<FlowSetup>> {
        let mut flows: Vec<FlowSetup> = vec![];
        let mut seen: Vec<String> = vec![];
        for (number, item) in item.some()?.iter().enumerate() {
            let table = item.table()?;
            let kind = app::kind(&table)?;
            let app = match table.get("name") {
                Some(item) => item.name()?,
                None => format!("app-{}", number + 1),
            };
            if seen.contains(&app) {
                return Err(table.error(format!("two apps are named {app:?}")));
            }
            let (from, to) = (table.need("from")?, table.need("to")?);
            let pairs = pairs(&to, &self.hosts(&from)?, &self.hosts(&to)?)?;
            if let Some((one, _)) = pairs.iter().find(|(from, to)| from == to) {
                return Err(to.error(format!("{} would talk to itself", self.nodes[*one].name)));
            }
            let conn = self.conn(table.get("conn"), &self.defaults)?;
            let accept = self.conn(table.get("accept"), &conn)?;
            let (from, to): (Vec<usize>, Vec<usize>) = pairs.iter().copied().unzip();
            self.taken_by_kernel(table.get("conn"), &from, &conn)?;
            self.taken_by_kernel(table.get("accept"), &to, &accept)?;
            self.simulated_only(&table, &kind, &from, &to)?;
            let count = table.or("count", 1, |item| Ok(item.integer()? as usize))?;
            let start = table.or("start", Duration::ZERO, Item::time)?;
            let stagger = table.or("stagger", Duration::ZERO, Item::time)?;
            let jitter = table.or("jitter", Duration::ZERO, Item::time)?;
            let total = count * pairs.len();
            if (flows.len() + total) as u64 > MAX_FLOWS {
                return Err(table.error(format!("these are more than {MAX_FLOWS} flows")));
            }
            for place in 0..total {
                let (from, to) = pairs[place % pairs.len()];
                flows.push(FlowSetup {
                    name: if total > 1 { format!("{app}-{}", place + 1) } else { app.clone() },
                    app: app.clone(),
                    from,
                    to,
                    start: start + stagger.saturating_mul(place as u64),
                    jitter,
                    kind: kind.clone(),
                    conn: conn.config.clone(),
                    accept: accept.config.clone(),
                    conn_cc: conn.cc_place.clone(),
                    accept_cc: accept.cc_place.clone(),
                });
            }
            seen.push(app);
        }
        Ok(flows)
    }

    fn hosts(&self, item: &Item<'_>) -> Result<Vec<usize>> {
        let places = self.names.find(item, "node")?;
        match places.iter().find(|place| self.nodes[**place].host.is_none()) {
            Some(router) => {
                Err(item
                    .error(format!("{} is a router; applications run on hosts", self.nodes[*router].name)))
            }
            None => Ok(places),
        }
    }

    /// The first of these hosts that is of such a world.
    fn in_world(&self, hosts: &[usize], is: impl Fn(World) -> bool) -> Option<(&str, &'static str)> {
        let nodes = hosts.iter().map(|place| &self.nodes[*place]);
        nodes
            .filter_map(|node| Some((node.name.as_str(), node.host.as_ref()?.world)))
            .find(|(_, world)| is(*world))
            .map(|(name, world)| (name, world.name()))
    }

    /// What an app's own table says for an end of the kernel, the kernel has, too.
    fn taken_by_kernel(&self, item: Option<Item<'_>>, hosts: &[usize], conn: &ConnSettings) -> Result<()> {
        let (Some(item), Some((host, _))) = (item, self.in_world(hosts, |world| world == World::Kernel))
        else {
            return Ok(());
        };
        for (key, item) in item.table()?.options() {
            let key = find(CONN, key).map_or(key, |known| known.name);
            let wrong = match key {
                "nagle" if !matches!(conn.config.nagle, Nagle::Off | Nagle::Minshall) => {
                    "nagle is off or minshall there"
                }
                "mss" if conn.config.mss.is_some_and(|mss| !KERNEL_MSS.contains(&mss)) => {
                    "mss is 88 to 32767 there"
                }
                "cc" | "mss" | "nagle" | "send_buffer" | "recv_buffer" => continue,
                _ => "settings of connections there are cc, mss, nagle, send_buffer and recv_buffer",
            };
            return Err(item.error(format!(
                "{host} is of the world \"kernel\": {wrong} (others for it are in the node's `kernel.sysctl`, and [conn] has them for ackline's ends)"
            )));
        }
        Ok(())
    }

    /// Hosts outside the simulation do not have what repeats the costs of a host.
    fn simulated_only(&self, table: &Table<'_>, kind: &AppKind, from: &[usize], to: &[usize]) -> Result<()> {
        let outside = |hosts| self.in_world(hosts, |world| world != World::Virtual);
        let refused = |item: Option<Item<'_>>, what: &str, (host, world): (&str, &str)| {
            let text = format!("{what} is for hosts of the world \"virtual\", and {host} is of {world:?}");
            Err(item.map_or_else(|| table.error(&text), |item| item.error(&text)))
        };
        let written = |key: &str| table.iter().find(|(own, _)| *own == key).map(|(_, item)| item);
        let (AppKind::Bulk { reading, .. } | AppKind::Source { reading, .. } | AppKind::Bsd { reading, .. }) =
            kind
        else {
            return Ok(());
        };
        if let (AppKind::Bsd { .. }, Some(host)) = (kind, outside(from)) {
            return refused(written("kind"), "bsd-writer", host);
        }
        if let (Reading::Copying(_), Some(host)) = (reading, outside(to)) {
            return refused(written("reader"), "a reader with costs", host);
        }
        Ok(())
    }

    fn conn(&self, item: Option<Item<'_>>, base: &ConnSettings) -> Result<ConnSettings> {
        item.map_or_else(|| Ok(base.clone()), |item| base.with(&item))
    }
}

/// Places of what a list names, each once.
fn places(item: &Item<'_>, names: &Names) -> Result<Vec<usize>> {
    let mut places = vec![];
    for item in item.one_or_more()? {
        let found = names.find(&item, "link")?;
        if found.iter().any(|place| places.contains(place)) {
            return Err(item.error(format!("{:?} is there twice; name each link once", item.text()?)));
        }
        places.extend(found);
    }
    Ok(places)
}

fn changes(item: &Item<'_>, links: &Names) -> Result<Vec<ChangeSetup>> {
    let mut changes = vec![];
    for item in item.list()? {
        let table = item.table()?;
        let at = table.need("at")?.time()?;
        let link = table.need("link")?;
        let places = places(&link, links)?;
        if places.is_empty() {
            return Err(link.error("the list is empty: nothing would change"));
        }
        let period = table.maybe("for", Item::time)?;
        if let (Some(_), None, Some(item)) = (period, table.get("state"), table.get("for")) {
            return Err(item.error("only a state lasts for a time"));
        }
        let mut add = |at, what| changes.push(ChangeSetup { at, links: places.clone(), what });
        let mut any = false;
        if let Some(item) = table.get("rate") {
            add(at, What::Rate(item.rate()?));
            any = true;
        }
        if let Some(item) = table.get("delay") {
            add(at, What::Delay(item.time()?));
            any = true;
        }
        if let Some(item) = table.get("state") {
            let states = [("stall", 0), ("resume", 1), ("down", 2), ("up", 3)];
            let (what, after) = match item.choice(&states)? {
                0 => (What::Stall, Some(What::Resume)),
                1 => (What::Resume, None),
                2 => (What::Down, Some(What::Up)),
                _ => (What::Up, None),
            };
            add(at, what);
            match (period, after) {
                (Some(period), Some(after)) => add(at + period, after),
                (Some(_), None) => return Err(item.error("only stall and down last for a time")),
                (None, _) => {}
            }
            any = true;
        }
        if !any {
            return Err(table.error("a change needs a rate, a delay or a state"));
        }
    }
    Ok(changes)
}

fn measure(top: &Table<'_>, duration: Duration, links: &[LinkSetup], names: &Names) -> Result<MeasureSetup> {
    let usual = Duration::from_nanos((duration.as_nanos() / 1_000).next_multiple_of(1_000_000));
    let by_default = |named: bool| -> Vec<usize> {
        let wanted = |link: &LinkSetup| match named {
            true => link.is_named && !link.name.ends_with(".back"),
            false => !matches!(link.path.service, Service::Instant),
        };
        (0..links.len()).filter(|place| wanted(&links[*place])).collect()
    };
    let mut queues = by_default(true);
    if queues.is_empty() {
        queues = by_default(false);
    }
    let mut measure = MeasureSetup {
        from: Duration::ZERO,
        until: duration,
        interval: usual,
        bins: None,
        queues,
        flows: 200,
        series: false,
        cwnd: false,
        transfers: false,
        trace: None,
        drops: None,
    };
    let Some(item) = top.get("measure") else { return Ok(measure) };
    let table = item.table()?;
    measure.from = table.or("from", measure.from, Item::time)?;
    measure.until = table.or("until", duration, Item::time)?;
    if measure.from >= measure.until || measure.until > duration {
        return Err(
            table.error("the window must lie within the duration, and from must be earlier than until")
        );
    }
    measure.interval = table.or("interval", usual, Item::time)?;
    if measure.interval.as_nanos() < duration.as_nanos() / 100_000 {
        return Err(table.error("interval is so short that there would be more than 100,000 samples"));
    }
    for key in ["interval", "bins"] {
        if let Some(item) = table.get(key)
            && item.time()? > duration
        {
            return Err(item.error("this is longer than the run: see `duration`"));
        }
    }
    measure.bins = table.maybe("bins", Item::time)?;
    if let Some(bins) = measure.bins
        && bins.as_nanos() < duration.as_nanos() / 10_000
    {
        return Err(table.error("bins are so short that there would be more than 10,000 of them"));
    }
    if let Some(item) = table.get("queues") {
        measure.queues = places(&item, names)?;
    }
    measure.flows = table.or("flows", measure.flows, |item| Ok(item.integer()? as usize))?;
    measure.series = table.or("series", false, Item::switch)?;
    measure.cwnd = table.or("cwnd", false, Item::switch)?;
    measure.transfers = table.or("transfers", false, Item::switch)?;
    let rows = |key: &str| table.maybe(key, |item| Ok(item.integer()? as usize));
    (measure.trace, measure.drops) = (rows("trace")?, rows("drops")?);
    Ok(measure)
}
