//! `ackline proxy`: connections and flows of a program, or of a TUN device, carried on.

mod decisions;
mod device;
mod namespace;
mod report;
mod way_out;

use crate::args::proxy::ProxyArgs;
use crate::failure::Failure;
use crate::network::names::Names;
use crate::network::program;
use crate::network::tunnel;
use crate::network::tunnel::Tunnel;
use crate::output;
use crate::output::result_file::ResultFile;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::transfer::traffic::Stopwatch;
use crate::watchers::WatchPlan;
use crate::watchers::publishing::{Publishing, to_guest};
use ackline::Registry;
use ackline::runtime::device::inherited;
use ackline_proxy::{
    Action, Config, ConfigFile, Exit, Hosts, Limits, NameUse, Protocol, Proxy, Publish, Resolver, Rules,
    Upstream,
};
use decisions::DecisionLog;
use device::{ClientSide, OpenDevice};
use report::Summary;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

/// Descriptors that are for other things than connections and flows: the device, signals, metrics,
/// files, connections that are made.
const RESERVED: u32 = 64;

/// Time for what the last connections have said to leave the stack.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &ProxyArgs, registry: &Registry) -> Result<(), Failure> {
    // Before this process opens descriptors of its own, which could have the number.
    let descriptor = args.device.fd.map(|number| inherited(number).map(|fd| (number, fd))).transpose()?;
    let settings = args.policies.resolve(registry)?;
    let plan = plan(args)?;
    let out = way_out::plan(args)?;
    let json = args.json.as_deref().map(|path| ResultFile::open("--json", path)).transpose()?;
    let decisions = args.decisions.as_deref();
    let decisions = decisions.map(|path| decisions::open(path).map(|file| (file, path))).transpose()?;
    let speaks = !args.quiet;
    let watch = args.watch.plan("proxy", speaks)?;
    // While the process has one thread.
    let place = ClientSide::find(args, descriptor)?;
    let decisions = decisions.map(|(file, path)| DecisionLog::start(file, path)).transpose()?;
    let log = decisions.as_ref().map(DecisionLog::log);
    let plan = Plan {
        config: Config { own: place.own.clone(), one_host: place.is_one_host(), log, ..plan.config },
        ..plan
    };
    let runtime = tunnel::runtime()?;
    let outcome = runtime.block_on(serve(args, place, plan, out.as_ref(), &settings, watch));
    runtime.shutdown_background();
    decisions.into_iter().for_each(DecisionLog::finish);
    let (status, summary) = outcome?;
    if speaks {
        summary.lines().iter().for_each(|line| output::say(line));
    }
    if let Some(json) = json {
        json.write(&output::json(&summary))?;
        json.finish()?;
    }
    status.map_or(Ok(()), program::outcome)
}

/// What the proxy is to do.
struct Plan {
    config: Config,
    /// Resolvers of names.
    names: Names,
    publish: Vec<Publish>,
}

/// What can be told without touching the system.
fn plan(args: &ProxyArgs) -> Result<Plan, Failure> {
    let file = args.config.as_deref().map(read).transpose()?;
    let usual = Config::default();
    let file = file.unwrap_or_default();
    let ConfigFile { rules, otherwise, dns, mut hosts, names: uses, udp_filtering, publish, limits } = file;
    let publish = publish.into_iter().chain(args.publish.iter().cloned()).collect();
    let through = |upstream: &Upstream| Action::Through(Arc::new(upstream.clone()));
    // The command line goes before the file.
    let otherwise = args.upstream.as_ref().map(through).or(otherwise);
    let rules = Rules { rules, otherwise: otherwise.unwrap_or_else(|| through(&Upstream::Direct)) };
    let dns = if args.dns.is_empty() { dns } else { args.dns.clone() };
    if let (Some(Resolver { address, .. }), Action::Through(upstream)) =
        (dns.iter().find(|dns| dns.protocol == Protocol::Udp), &rules.otherwise)
        && let Upstream::Http(_) = **upstream
        && rules.rules.is_empty()
    {
        return Err(Failure::usage(format!(
            "--dns {address}: {upstream} carries no datagrams; write tcp://{address}"
        )));
    }
    let uses = args.names.or(uses).unwrap_or(usual.names);
    if uses == NameUse::Off && rules.rules.iter().any(|rule| !rule.domains.is_empty()) {
        return Err(Failure::usage(
            "--names off: rules by domain need names; write rules or upstreams".to_owned(),
        ));
    }
    if let (Some(tun), [route, ..], None) = (&args.device.tun, &args.device.route[..], &args.out.out_dev)
        && rules == Rules::all_through(Upstream::Direct)
    {
        return Err(Failure::usage(format!(
            "--route {route}: what the proxy carries on to there would be routed to {tun}, and come back; give it another way \
             (--upstream, --out-dev), or route by the clients' address or interface (ip rule) instead"
        )));
    }
    hosts.extend(named(&args.host)?);
    let names = Names::of_machine(&dns);
    names.warn("proxy");
    let most = tunnel::descriptor_limit().saturating_sub(RESERVED).max(1);
    let config = Config {
        rules,
        resolvers: names.resolvers.clone(),
        hosts,
        names: uses,
        filtering: args.udp_filtering.or(udp_filtering).unwrap_or(usual.filtering),
        resolver_is_near: dns.is_empty(),
        loopback: args.loopback,
        dry_run: args.dry_run,
        limits: Limits { total: limits.clients.total.min(most), ..limits.clients },
        connect_timeout: limits.connect_timeout.into(),
        server_timeout: limits.server_timeout.into(),
        backlog: limits.backlog,
        windows: limits.windows,
        mtu: args.device.mtu,
        say: Some(Arc::new(|line| output::say(&format!("ackline proxy: {line}")))),
        ..usual
    };
    Ok(Plan { config, names, publish })
}

/// The names of --host.
fn named(hosts: &[(String, IpAddr)]) -> Result<Hosts, Failure> {
    let mut named = Hosts::default();
    for (name, address) in hosts {
        let wrong = |why| Failure::usage(format!("--host {name}={address}: {why}"));
        named.add(name, *address).map_err(wrong)?;
    }
    Ok(named)
}

/// A file of rules.
fn read(path: &Path) -> Result<ConfigFile, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::file("read", format_args!("--config {}", path.display()), &error))?;
    ConfigFile::parse(&text).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

/// Serves until the program has ended, or a signal comes.
async fn serve(
    args: &ProxyArgs,
    place: ClientSide,
    plan: Plan,
    out: Option<&Tunnel>,
    settings: &Settings,
    watch: WatchPlan,
) -> Result<(Option<ExitStatus>, Summary), Failure> {
    let mut signals = Signals::catch()?;
    let recording = watch.begin((&place.name, place.link()), settings)?;
    let title = place.title.clone();
    let Plan { config, names, publish } = plan;
    let guests = place.guests.clone();
    let publish = publish.iter().map(|published| to_guest(published, &guests)).collect::<Result<Vec<_>, _>>();
    let publish = publish.map_err(|why| Failure::usage(format!("--publish {why}")))?;
    let OpenDevice { device, program, interface, queue } = place.open(args, &names)?;
    tunnel::claim_descriptors();
    let out = out.map(|tunnel| way_out::start(tunnel, settings)).transpose()?;
    let (stack, exit) = match &out {
        Some(out) => {
            let stack = tunnel::start_for_all(device, &settings.with_usual_egress(), args.device.shards)?;
            (stack, Exit::Stack(out.clone()))
        }
        None => (tunnel::start_for_all(device, settings, args.device.shards)?, Exit::Kernel),
    };
    // A super-packet is one of a queue's many; of single ones, of whatever size, it holds as many.
    // Half is for those that are not full.
    let held =
        queue.filter(|_| args.device.plain).map(|queue| u64::from(queue) * u64::from(args.device.mtu) / 2);
    let windows = config.windows.min(held.unwrap_or(u64::MAX));
    let config = Config { exit, interface, windows, ..config };
    let refused = |error: io::Error| Failure::system("accept connections", &error);
    let own = config.own.first().map(ToString::to_string).unwrap_or_default();
    let mut proxy = Proxy::new(&stack, config).map_err(refused)?;
    let meter = proxy.meter();
    let publishing = Publishing::new(proxy.publisher(), guests);
    publishing.begin(&publish)?;
    let watchers = recording.with_proxy(meter.clone(), publishing).watch(&stack, settings)?;
    let stopwatch = Stopwatch::of_process();
    if !args.quiet && program.is_none() {
        output::say(&format!("proxy on {title}; its own address is {own}"));
    }
    let end = async {
        match program {
            Some(program) => program::wait(program, &mut signals).await.map(Some),
            None => {
                signals.next().await;
                Ok(None)
            }
        }
    };
    let ended = tokio::select! {
        error = proxy.run() => Err(failed(&title, &error)),
        ended = end => ended,
    };
    if ended.is_ok() {
        tokio::select! {
            () = proxy.finish(args.grace) => {}
            // Once more: at once.
            _ = signals.next() => {}
        }
    }
    stack.shutdown(CLOSE_WAIT).await;
    if let Some(out) = &out {
        out.shutdown(CLOSE_WAIT).await;
    }
    watchers.end();
    let summary = Summary::new(stopwatch.elapsed(), meter.read(), out.as_ref().unwrap_or(&stack));
    ended.map(|status| (status, summary))
}

/// Why nothing comes any more.
fn failed(title: &str, error: &io::Error) -> Failure {
    let what = if error.kind() == io::ErrorKind::InvalidData { "cannot be used" } else { "is gone" };
    Failure::system(&format!("go on: {title} {what}"), error)
}
