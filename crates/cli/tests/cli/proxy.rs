//! `ackline proxy`: programs and a TUN device behind it.

use crate::common::{BackgroundCommand, Exit, ackline, run, scratch, text, until, with_own_mounts};
use crate::emulate::resolver;
use crate::fields::check_on;
use crate::net::*;
use crate::usage::refused;
use ackline::runtime::netlink::{InterfaceAddress, Netlink};
use ackline::runtime::netns::Namespace;
use ackline::runtime::testing::{has_programs, skip};
use serde_json::Value;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Where a program asks to be connected to: nobody has this address.
pub(crate) const FAR: &str = "192.0.2.7";

/// A server that answers each request of HTTP with the same text, until the process ends. Its port.
pub(crate) fn http(body: &'static str) -> u16 {
    http_at(Ipv4Addr::LOCALHOST.into(), body)
}

/// The same at one of this machine's addresses.
fn http_at(at: IpAddr, body: &'static str) -> u16 {
    serve_at(at, move |mut stream| {
        let mut head = vec![];
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            head.extend(byte);
        }
        let length = body.len();
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
    })
}

/// A SOCKS5 server (RFC 1928) that connects to the same port of the loopback, whatever the host,
/// and tells that.
pub(crate) fn socks() -> (u16, mpsc::Receiver<String>) {
    socks_at(Ipv4Addr::LOCALHOST.into())
}

/// The same at one of this machine's addresses.
fn socks_at(at: IpAddr) -> (u16, mpsc::Receiver<String>) {
    let (tell, told) = mpsc::channel();
    let port = serve_at(at, move |mut stream| {
        let byte = || -> io::Result<u8> {
            let mut one = [0];
            (&stream).read_exact(&mut one).map(|()| one[0])
        };
        let (_version, methods) = (byte()?, byte()?);
        for _ in 0..methods {
            byte()?;
        }
        (&stream).write_all(&[5, 0])?;
        let head = [byte()?, byte()?, byte()?, byte()?];
        let length = match head[3] {
            1 => 4,
            3 => byte()?.into(),
            _ => 16,
        };
        let host = (0..length).map(|_| byte()).collect::<io::Result<Vec<u8>>>()?;
        let port = u16::from_be_bytes([byte()?, byte()?]);
        let host = match *host {
            [a, b, c, d] if head[3] == 1 => Ipv4Addr::new(a, b, c, d).to_string(),
            _ => String::from_utf8_lossy(&host).into_owned(),
        };
        let _ = tell.send(host);
        let far = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
        let pass = |mut from: TcpStream, mut to: TcpStream| {
            let passed = io::copy(&mut from, &mut to);
            to.shutdown(Shutdown::Write).and(passed).map(drop)
        };
        let (near, other) = (stream.try_clone()?, far.try_clone()?);
        let up = thread::spawn(move || pass(near, far));
        let down = pass(other, stream);
        up.join().expect("no panic").and(down)
    });
    (port, told)
}

/// Attends each connection on a thread of its own, until the process ends.
pub(crate) fn serve(attend: impl Fn(TcpStream) -> io::Result<()> + Clone + Send + 'static) -> u16 {
    serve_at(Ipv4Addr::LOCALHOST.into(), attend)
}

/// The same at one of this machine's addresses.
fn serve_at(at: IpAddr, attend: impl Fn(TcpStream) -> io::Result<()> + Clone + Send + 'static) -> u16 {
    let listener = TcpListener::bind((at, 0)).expect("a listener");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let attend = attend.clone();
            thread::spawn(move || attend(stream));
        }
    });
    port
}

pub(crate) fn stdout(ended: &Exit) -> String {
    String::from_utf8_lossy(&ended.stdout).into_owned()
}

#[test]
fn a_program_reaches_a_server_through_socks_and_by_its_name() {
    let name = "proxy::a_program_reaches_a_server_through_socks_and_by_its_name";
    if !has_programs(name, &["curl"]) {
        return;
    }
    with_tun(name, || {
        let (web, (socks, told)) = (http("a page\n"), socks());
        let (directory, json) = scratch("summary");
        let upstream = format!("socks5://127.0.0.1:{socks}");
        let curl = |host: &str| format!("curl -sS --noproxy '*' http://{host}:{web}/");
        let proxy = ["proxy", "--upstream", &upstream, "--json", text(&json)];
        let ended = run(&[&proxy[..], &["--", "sh", "-c", &curl(FAR)]].concat());
        succeeded(&ended);
        assert_eq!((stdout(&ended).as_str(), told.recv()), ("a page\n", Ok(FAR.to_owned())));
        let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
        check_on(include_str!("../../../../docs/proxy.md"), "of the proxy", &summary, &[]);
        for (key, number) in [("connections", 1), ("finished", 1), ("open_connections", 0)] {
            assert_eq!(summary[key], number, "{summary}");
        }
        assert!(summary["bytes_down"].as_u64() > Some(7), "{summary}");
        assert!(ended.stderr.contains("1 connections"), "{ended:?}");
        // The resolver is asked directly; the upstream gets the name.
        let resolver = resolver(Ipv4Addr::new(192, 0, 2, 9));
        let rules = directory.path().join("rules.toml");
        let file = format!(
            "default = 'office'\ndns = '{resolver}'\nupstream.office = '{upstream}'\n\
             [[rule]]\nto = '127.0.0.1'\nport = {}\naction = 'direct'\n[[rule]]\ndomain = 'refused.test'\naction = 'refuse'\n",
            resolver.port()
        );
        // A rule for all ports of the resolver's host would have a say in all ways, and names would
        // be the client's alone.
        std::fs::write(&rules, file).expect("ours");
        let proxy = ["proxy", "-q", "--config", text(&rules), "--", "sh", "-c"];
        let ended = run(&[&proxy[..], &[&curl("server.test")]].concat());
        succeeded(&ended);
        assert_eq!((stdout(&ended).as_str(), told.recv()), ("a page\n", Ok("server.test".to_owned())));
        assert_eq!(ended.stderr, "", "--quiet");
        // curl's status 7: it could not connect.
        let ended = run(&[&proxy[..], &[&curl("www.refused.test")]].concat());
        assert_eq!(ended.status, Some(7), "{ended:?}");
    });
}

/// `openssl s_server` on a port of the loopback, which answers with a page about itself. It trusts
/// nobody, and is trusted by whoever has `cert.pem`, for the name server.test.
struct SecureServer {
    child: Child,
    port: u16,
}

impl SecureServer {
    fn start(directory: &Path) -> Self {
        let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out cert.pem -subj /CN=server.test \
             -addext subjectAltName=DNS:server.test";
        let mut openssl = Command::new("openssl");
        openssl.current_dir(directory).args(words.split_whitespace()).stderr(Stdio::null());
        assert!(openssl.status().expect("openssl runs").success(), "a certificate");
        let words = "s_server -accept 127.0.0.1:0 -www -cert cert.pem -key key.pem";
        let mut openssl = Command::new("openssl");
        openssl.current_dir(directory).args(words.split_whitespace());
        let mut child = openssl.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("openssl runs");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        // It says which port it has got.
        let port =
            lines.find_map(|line| line.ok()?.strip_prefix("ACCEPT ")?.rsplit(':').next()?.parse().ok());
        // What else it says is read, so that it can.
        thread::spawn(move || lines.for_each(drop));
        Self { child, port: port.expect("a port") }
    }
}

impl Drop for SecureServer {
    fn drop(&mut self) {
        // Fails if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a shell's script as an ordinary user who may open `/dev/net/tun`: one in a mount namespace,
/// so that the machine's keeps its mode. `$program` is `ackline`. `None`, after a line about it, if
/// the test has no rights to give up.
pub(crate) fn as_ordinary_user(test: &str, script: &str, args: &[&str]) -> Option<Exit> {
    let Some(nobody) = Nobody::new() else {
        skip(test, &"no rights to give up");
        return None;
    };
    let prepare = "mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200 || exit 99\n\
                   exec setpriv --reuid 65534 --regid 65534 --clear-groups sh -c \"$script\" sh \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", prepare, "sh"]).args(args).current_dir("/");
    command.env("program", nobody.command(&[]).get_program()).env("script", script);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Some(running) = BackgroundCommand::try_start(&mut command) else {
        skip(test, &"no unshare");
        return None;
    };
    let ended = running.end();
    if ended.status.is_none_or(|status| [1, 99, 127].contains(&status))
        || ended.stderr.contains("user namespace")
    {
        skip(test, &ended.stderr);
        return None;
    }
    Some(ended)
}

/// As [`as_ordinary_user`], `ackline` alone.
fn ackline_as_ordinary_user(test: &str, args: &[&str]) -> Option<Exit> {
    as_ordinary_user(test, "exec \"$program\" \"$@\"", args)
}

#[test]
fn an_ordinary_users_https_passes_a_socks_server_by_name() {
    let name = "proxy::an_ordinary_users_https_passes_a_socks_server_by_name";
    if !has_programs(name, &["curl", "openssl"]) {
        return;
    }
    let (directory, rules) = scratch("rules.toml");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    let server = SecureServer::start(directory.path());
    let (socks, told) = socks();
    let resolver = resolver(Ipv4Addr::new(192, 0, 2, 9));
    let file = format!(
        "default = 'office'\ndns = '{resolver}'\nupstream.office = 'socks5://127.0.0.1:{socks}'\n\
         [[rule]]\nto = '127.0.0.1'\nport = {}\naction = 'direct'\n",
        resolver.port()
    );
    std::fs::write(&rules, file).expect("ours");
    let trusted = directory.path().join("cert.pem");
    let url = format!("https://server.test:{}/", server.port);
    let curl = |more: &[&str]| {
        let proxy = ["proxy", "-q", "--config", text(&rules), "--", "curl", "-sS", "--noproxy", "*"];
        ackline_as_ordinary_user(name, &[&proxy[..], more, &[&url]].concat())
    };
    let Some(ended) = curl(&["--cacert", text(&trusted)]) else { return };
    succeeded(&ended);
    assert!(stdout(&ended).contains("s_server"), "{ended:?}");
    assert_eq!(told.recv(), Ok("server.test".to_owned()));
    assert_eq!(ended.stderr, "");
    // TLS is from end to end: who does not trust the server hears so from curl (its status 60).
    let Some(ended) = curl(&[]) else { return };
    assert_eq!(ended.status, Some(60), "{ended:?}");
}

#[test]
fn an_ordinary_user_has_a_program_behind_a_proxy() {
    let name = "proxy::an_ordinary_user_has_a_program_behind_a_proxy";
    if !has_programs(name, &["curl"]) {
        return;
    }
    let (web, (socks, told)) = (http("a page\n"), socks());
    let (upstream, url) = (format!("socks5://127.0.0.1:{socks}"), format!("http://{FAR}:{web}/"));
    let proxy = ["proxy", "-q", "--upstream", &upstream, "--", "curl", "-sS", "--noproxy", "*", &url];
    let Some(ended) = ackline_as_ordinary_user(name, &proxy) else { return };
    succeeded(&ended);
    assert_eq!((stdout(&ended).as_str(), told.recv()), ("a page\n", Ok(FAR.to_owned())));
}

#[test]
fn rules_hear_the_names_that_programs_state_and_tell_their_decisions() {
    let name = "proxy::rules_hear_the_names_that_programs_state_and_tell_their_decisions";
    if !has_programs(name, &["curl"]) {
        return;
    }
    with_tun(name, || {
        let (web, (socks, _told)) = (http("a page\n"), socks());
        let (directory, log) = scratch("decisions.jsonl");
        let rules = directory.path().join("rules.toml");
        let file = format!(
            "default = 'office'\nupstream.office = 'socks5://127.0.0.1:{socks}'\n\
             [[rule]]\nserver_name = 'refused.test'\naction = 'refuse'\n"
        );
        std::fs::write(&rules, file).expect("ours");
        let proxy = ["proxy", "-q", "--config", text(&rules), "--decisions", text(&log)];
        let decided = |more: &[&str], curl: &[&str]| -> (Exit, Value) {
            let _ = std::fs::remove_file(&log);
            let curl = [&["curl", "-sS", "-k", "--noproxy", "*"], curl].concat();
            let ended = run(&[&proxy[..], more, &["--"], &curl].concat());
            let lines = std::fs::read_to_string(&log).expect("a log");
            assert_eq!(lines.lines().count(), 1, "{lines}");
            (ended, serde_json::from_str(&lines).expect("JSON"))
        };
        let url = format!("http://{FAR}:{web}/");
        let (ended, open) = decided(&[], &["-H", "Host: other.test", &url]);
        succeeded(&ended);
        assert_eq!(stdout(&ended), "a page\n");
        assert_eq!((&open["server_name"], &open["rule"]), (&"other.test".into(), &Value::Null), "{open}");
        assert_eq!(open["action"], format!("socks5://127.0.0.1:{socks}"));
        assert_eq!(open["destination"], format!("{FAR}:{web}"));

        let host = ["-H", "Host: www.refused.test", &url];
        let (ended, refused) = decided(&[], &host);
        assert_eq!(ended.status, Some(56), "reset, {ended:?}");
        let said = |decision: &Value| {
            ["server_name", "rule", "action", "reason", "enforced"].map(|key| decision[key].clone())
        };
        let expected = |enforced: bool| -> [Value; 5] {
            ["www.refused.test".into(), 1.into(), "refuse".into(), "rule".into(), enforced.into()]
        };
        assert_eq!(said(&refused), expected(true));
        let (ended, spared) = decided(&["--dry-run"], &host);
        assert_eq!((stdout(&ended), said(&spared)), ("a page\n".to_owned(), expected(false)));

        // In TLS, in a ClientHello as curl makes it.
        let at = format!("www.refused.test:{web}:{FAR}");
        let (ended, refused) = decided(&[], &["--resolve", &at, &format!("https://www.refused.test:{web}/")]);
        assert_eq!(ended.status, Some(35), "no TLS, {ended:?}");
        assert_eq!(said(&refused), expected(true));

        let ended = run(&["proxy", "--decisions", "/nowhere/x", "--", "true"]);
        assert_eq!(ended.status, Some(5), "{ended:?}");
        assert!(ended.complaint().contains("--decisions /nowhere/x: no such file"), "{ended:?}");
    });
}

#[test]
fn a_rate_holds_a_download_and_is_told_with_the_decision() {
    let name = "proxy::a_rate_holds_a_download_and_is_told_with_the_decision";
    if !has_programs(name, &["curl"]) {
        return;
    }
    with_tun(name, || {
        let page: &'static str = "a".repeat(200_000).leak();
        let (web, (socks, _told)) = (http(page), socks());
        let (directory, log) = scratch("decisions.jsonl");
        let rules = directory.path().join("rules.toml");
        let file = |rate: &str| {
            format!(
                "upstream.office = 'socks5://127.0.0.1:{socks}'\n\
                 [[rule]]\nport = {web}\nrate = {rate}\naction = 'office'\n"
            )
        };
        std::fs::write(&rules, file("{ down = '4mbit' }")).expect("ours");
        let summary = directory.path().join("summary.json");
        let proxy =
            ["proxy", "-q", "--config", text(&rules), "--decisions", text(&log), "--json", text(&summary)];
        let url = format!("http://{FAR}:{web}/");
        let curl = [
            "--",
            "curl",
            "-sS",
            "--noproxy",
            "*",
            "-o",
            "/dev/null",
            "-w",
            "%{size_download} %{time_total}",
            &url,
        ];
        let ended = run(&[&proxy[..], &curl].concat());
        succeeded(&ended);
        let said = stdout(&ended);
        let (size, seconds) = said.split_once(' ').expect("two numbers");
        let seconds: f64 = seconds.parse().expect("a number");
        // 200,000 bytes are 0.4 s, of which 20 ms pass at once.
        assert!(size == "200000" && (0.37..3.0).contains(&seconds), "{said}");
        let decision = std::fs::read_to_string(&log).expect("a log");
        let decision: Value = serde_json::from_str(&decision).expect("one line of JSON");
        assert_eq!(decision["rate"], serde_json::json!({ "up": null, "down": 4_000_000 }), "{decision}");
        let summary = std::fs::read(&summary).expect("a summary");
        let summary: Value = serde_json::from_slice(&summary).expect("JSON");
        assert!(summary["rate_waits"].as_u64() > Some(50), "{summary}");
        assert_eq!((&summary["rate_waiting"], &summary["rate_lost"]), (&0.into(), &0.into()), "{summary}");

        std::fs::write(&rules, file("'4 mbyte'")).expect("ours");
        let refused = run(&[&proxy[..], &["--", "true"]].concat());
        let complaint = refused.complaint();
        let expected =
            "rules.toml: line 4, rate: \"4 mbyte\" is not possible; write a rate from 8kbit to 1tbit";
        assert!(refused.status == Some(2) && complaint.contains(expected), "{complaint}");
    });
}

/// Whichever of its addresses the system's resolver gives first (RFC 8305, section 5).
#[test]
fn an_upstream_of_two_addresses_is_reached_at_either() {
    let name = "proxy::an_upstream_of_two_addresses_is_reached_at_either";
    if !has_programs(name, &["curl"]) {
        return;
    }
    let (directory, hosts) = scratch("hosts");
    let addresses = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2)];
    let lines = addresses.map(|address| format!("{address} office.test\n"));
    std::fs::write(&hosts, lines.concat()).expect("ours");
    let script = "mount --bind \"$hosts\" /etc/hosts || exit 99; exec \"$program\" \"$@\"";
    for address in addresses {
        let (web, (socks, told)) = (http("a page\n"), socks_at(address.into()));
        let (upstream, url) = (format!("socks5://office.test:{socks}"), format!("http://{FAR}:{web}/"));
        let proxy = ["proxy", "-q", "--upstream", &upstream, "--", "curl", "-sS", "--noproxy", "*", &url];
        let Some(ended) = with_own_mounts(name, script, &proxy, &[("hosts", text(&hosts))]) else { return };
        succeeded(&ended);
        assert_eq!((stdout(&ended).as_str(), told.recv()), ("a page\n", Ok(FAR.to_owned())));
    }
    drop(directory);
}

#[test]
fn an_upstream_in_trouble_is_told_to_the_program_in_a_line_and_in_counters() {
    let name = "proxy::an_upstream_in_trouble_is_told_to_the_program_in_a_line_and_in_counters";
    if !has_programs(name, &["curl"]) {
        return;
    }
    with_tun(name, || {
        let closed =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("free").port();
        let silent = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let silent_port = silent.local_addr().expect("bound").port();
        let leaving = serve(|mut stream| stream.read_exact(&mut [0; 3]));
        let (directory, json) = scratch("summary");
        let rules = directory.path().join("rules.toml");
        std::fs::write(&rules, "[limits]\nserver_timeout = '200ms'\n").expect("ours");
        for (upstream, line) in [
            (format!("socks5://127.0.0.1:{closed}"), "refused"),
            (format!("http://127.0.0.1:{closed}"), "refused"),
            (format!("socks5://127.0.0.1:{silent_port}"), "it does not answer within 200ms"),
            (format!("socks5://127.0.0.1:{leaving}"), ""),
        ] {
            let proxy = ["proxy", "--config", text(&rules), "--upstream", &upstream, "--json", text(&json)];
            let curl = ["--", "curl", "-sS", "--noproxy", "*", "http://192.0.2.7/"];
            let ended = run(&[&proxy[..], &curl].concat());
            // curl's: it could not connect.
            assert_eq!(ended.status, Some(7), "{ended:?}");
            let expected = format!("ackline proxy: {upstream}: ");
            let mut told = ended.stderr.lines().filter_map(|line| line.strip_prefix(&expected));
            assert!(
                told.next().is_some_and(|told| told.contains(line)) && told.next().is_none(),
                "{ended:?}"
            );
            let summary: Value =
                serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
            assert_eq!((&summary["upstream_failed"], &summary["open_connections"]), (&1.into(), &0.into()));
        }
    });
}

#[test]
fn the_loopback_is_closed_unless_it_is_asked_for_and_the_status_is_the_programs() {
    let name = "proxy::the_loopback_is_closed_unless_it_is_asked_for_and_the_status_is_the_programs";
    if !has_programs(name, &["curl"]) {
        return;
    }
    with_tun(name, || {
        let web = http("mine\n");
        let curl = format!("curl -sS --noproxy '*' http://$ACKLINE_BASE:{web}/");
        let ended = run(&["proxy", "--", "sh", "-c", &curl]);
        assert_eq!(ended.status, Some(7), "{ended:?}");
        assert!(ended.stderr.contains("1 to addresses that are not carried on"), "{ended:?}");
        let ended = run(&["proxy", "--loopback", "--", "sh", "-c", &curl]);
        assert_eq!((ended.status, stdout(&ended).as_str()), (Some(0), "mine\n"), "{ended:?}");
        let ended = run(&["proxy", "-q", "--", "sh", "-c", "exit 9"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(9), ""));
        let ended = run(&["proxy", "-q", "--", "/nonexistent/program"]);
        assert_eq!(
            (ended.status, ended.complaint()),
            (Some(5), "ackline: /nonexistent/program: no such program")
        );
    });
}

#[test]
fn this_machines_addresses_are_closed_as_its_loopback_is_in_whatever_form() {
    let name = "proxy::this_machines_addresses_are_closed_as_its_loopback_is_in_whatever_form";
    if !has_programs(name, &["bash", "curl"]) {
        return;
    }
    with_tun(name, || {
        let mut netlink = Netlink::open().expect("a socket");
        let here = Namespace::of_thread().expect("it is there");
        netlink.add_veth("lan0", "lan1", &here).expect("a pair");
        let index = netlink.interface("lan0").expect("there").index;
        netlink.set_up(index).expect("up");
        for net in ["10.7.0.1/24", "fd07::1/64"] {
            let address = InterfaceAddress::network(net.parse().expect("a network"));
            netlink.add_address(index, address).expect("an address");
        }
        netlink.await_address("fd07::1".parse().expect("an address")).expect("usable");
        // As somebody's database, which is open to this machine's networks.
        let web = http_at(Ipv6Addr::UNSPECIFIED.into(), "mine\n");
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        let udp = socket.local_addr().expect("bound").port();
        let script = format!(
            "for host in 10.7.0.1 '[fd07::1]' '[64:ff9b::a07:1]' '[2002:a07:1::1]' 169.254.169.254; do\n\
                 curl -sS --noproxy '*' --max-time 20 http://$host:{web}/; echo $?\n\
             done\n\
             echo datagram >/dev/udp/10.7.0.1/{udp}; sleep 0.3"
        );
        let (_directory, json) = scratch("summary");
        let proxy = |options: &[&str]| {
            let sandbox = ["proxy", "--json", text(&json)];
            let ended = run(&[&sandbox[..], options, &["--", "bash", "-c", &script]].concat());
            let summary: Value =
                serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
            (stdout(&ended), summary["not_carried"].clone())
        };
        socket.set_nonblocking(true).expect("an option");
        // curl's status 7: it could not connect.
        assert_eq!(proxy(&[]), ("7\n7\n7\n7\n7\n".to_owned(), 6.into()));
        assert_eq!(socket.recv(&mut [0; 9]).expect_err("nothing").kind(), io::ErrorKind::WouldBlock);
        // Of what a translator or tunnel leads to there is nothing here, and metadata are always
        // closed.
        let (said, not_carried) = proxy(&["--loopback"]);
        assert!(said.starts_with("mine\n0\nmine\n0\n7\n7\n7\n") && not_carried == 1, "{said}");
        assert_eq!(socket.recv(&mut [0; 9]).expect("a datagram"), 9);
        // A server knows which addresses are its own.
        let (port, told) = socks();
        let (upstream, url) = (format!("socks5://127.0.0.1:{port}"), format!("http://10.7.0.1:{web}/"));
        let ended =
            run(&["proxy", "-q", "--upstream", &upstream, "--", "curl", "-sS", "--noproxy", "*", &url]);
        assert_eq!((stdout(&ended).as_str(), told.recv()), ("mine\n", Ok("10.7.0.1".to_owned())));
    });
}

#[test]
fn a_route_that_leads_back_to_the_proxy_is_refused_or_told_and_nothing_circles() {
    with_tun("proxy::a_route_that_leads_back_to_the_proxy_is_refused_or_told_and_nothing_circles", || {
        let device = ["proxy", "--tun", "ack0", "--route", "10.0.0.0/8", "--no-control"];
        let complaint = refused(&device, 2);
        assert!(
            complaint
                .contains("--route 10.0.0.0/8: what the proxy carries on to there would be routed to ack0"),
            "{complaint}"
        );
        // With rules it may be meant, and depends on the destination.
        let (directory, rules) = scratch("rules.toml");
        let json = directory.path().join("summary");
        std::fs::write(&rules, "[[rule]]\nto = '10.9.0.0/16'\naction = 'refuse'\n").expect("ours");
        let options = ["--config", text(&rules), "--json", text(&json)];
        let proxy = BackgroundCommand::start(&mut ackline(&[&device[..], &options].concat()));
        until("the route", || {
            let to = (Ipv4Addr::new(10, 9, 0, 1), 80).into();
            let error = TcpStream::connect_timeout(&to, Duration::from_secs(9)).expect_err("nobody is there");
            (error.kind() == io::ErrorKind::ConnectionRefused).then_some(())
        });
        let to = (Ipv4Addr::new(10, 1, 2, 3), 80).into();
        let error = TcpStream::connect_timeout(&to, Duration::from_secs(60)).expect_err("nobody is there");
        assert_eq!(error.kind(), io::ErrorKind::HostUnreachable);
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        socket.connect(("10.1.2.4", 53)).expect("a route");
        socket.send(b"datagram").expect("sent");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("an option");
        let error = socket.recv(&mut [0; 9]).expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let ended = proxy.end_while_signalled(|| {});
        succeeded(&ended);
        assert!(
            ended.stderr.contains("direct: 10.1.2.3 is routed to ack0, by which it would come back"),
            "{ended:?}"
        );
        let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
        for (key, number) in [("upstream_failed", 2), ("flows", 1)] {
            assert_eq!(summary[key], number, "{summary}");
        }
        let connections = summary["connections"].as_u64().expect("a number");
        assert_eq!(Some(connections - 1), summary["rule_refused"].as_u64(), "{summary}");
    });
}

/// What a program says that tries to enter the namespace of this thread, to mount, and to get
/// rights.
fn escapes(command: &[&str]) -> String {
    let thread = rustix::thread::gettid().as_raw_nonzero();
    let script = format!(
        "grep -E '^(Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs)' /proc/self/status | tr -d '\t\n'; echo\n\
         nsenter --net=/proc/{}/task/{thread}/ns/net true; echo enter $?\n\
         mount -t tmpfs none /mnt; echo mount $?\n\
         ip link set ackline0 mtu 1400; echo change $?\n\
         ping -c 1 -W 30 $ACKLINE_BASE >/dev/null; echo ping $?",
        std::process::id()
    );
    let ended = run(&[command, &["--", "sh", "-c", &script]].concat());
    assert_eq!(ended.status, Some(0), "{ended:?}");
    stdout(&ended)
}

#[test]
fn a_program_of_root_cannot_leave_unless_it_keeps_its_capabilities() {
    let name = "proxy::a_program_of_root_cannot_leave_unless_it_keeps_its_capabilities";
    if !has_programs(name, &["ip", "mount", "nsenter", "ping"]) {
        return;
    }
    with_tun(name, || {
        if !rustix::process::geteuid().is_root() {
            return skip(name, &"no root");
        }
        // The bounding set has CAP_NET_RAW, number 13, which the program does not get.
        let set = |name: &str, bits: u64| format!("Cap{name}:{bits:016x}");
        let none = [set("Prm", 0), set("Eff", 0), set("Bnd", 1 << 13), set("Amb", 0)].concat();
        for command in ["proxy", "emulate"] {
            let said = escapes(&[command, "-q"]);
            let expected = format!("{none}NoNewPrivs:1\nenter 1\nmount 32\nchange 2\nping 0\n");
            assert_eq!(said, expected, "{command}");
            let said = escapes(&[command, "-q", "--keep-capabilities"]);
            assert!(said.ends_with("NoNewPrivs:0\nenter 0\nmount 0\nchange 0\nping 0\n"), "{said}");
        }
    });
}

#[test]
fn a_device_of_the_machine_is_served_until_a_signal_and_watched() {
    with_tun("proxy::a_device_of_the_machine_is_served_until_a_signal_and_watched", || {
        let (web, (socks, told)) = (http("a page\n"), socks());
        let (_directory, json) = scratch("summary");
        let upstream = format!("socks5://127.0.0.1:{socks}");
        let metrics = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("free");
        let options = ["--upstream", &upstream, "--metrics", &metrics.to_string(), "--json", text(&json)];
        let device = ["proxy", "--tun", "ack0", "--route", "192.0.2.0/24", "--no-control"];
        let proxy = BackgroundCommand::start(&mut ackline(&[&device[..], &options].concat()));
        let page = until("the interface", || {
            let mut stream = TcpStream::connect((FAR, web)).ok()?;
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n").ok()?;
            Some(String::from_utf8(read_all(stream).expect("the end")).expect("UTF-8"))
        });
        assert!(page.ends_with("a page\n"), "{page}");
        assert_eq!(told.recv(), Ok(FAR.to_owned()));
        until("the end of the connection in the metrics", || {
            let mut stream = TcpStream::connect(metrics).expect("metrics");
            stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("sent");
            let shown = String::from_utf8(read_all(stream).expect("the end")).expect("UTF-8");
            assert!(shown.contains("ackline_proxy_connections_total 1"), "{shown}");
            shown.contains("ackline_proxy_open_connections 0").then_some(())
        });
        let ended = proxy.end_while_signalled(|| {});
        succeeded(&ended);
        let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
        assert_eq!(summary["finished"], 1, "{summary}");
        assert!(
            ended.stderr.contains("proxy on the interface ack0; its own address is 100.64.0.1"),
            "{ended:?}"
        );
    });
}

#[test]
fn a_device_that_is_removed_ends_the_proxy_with_one_line() {
    let name = "proxy::a_device_that_is_removed_ends_the_proxy_with_one_line";
    if !has_programs(name, &["ip"]) {
        return;
    }
    with_tun(name, || {
        let proxy = BackgroundCommand::start(&mut ackline(&[
            "proxy",
            "--tun",
            "ack0",
            "--route",
            "192.0.2.0/24",
            "--upstream",
            "socks5://127.0.0.1:1",
        ]));
        // Its route is the last that the command gives it.
        let routes = || std::fs::read_to_string("/proc/thread-self/net/route").expect("proc");
        until("the route", || routes().contains("000200C0").then_some(()));
        let delete = || Command::new("ip").args(["link", "delete", "ack0"]).stderr(Stdio::null()).status();
        until("the interface", || delete().expect("ip is there").success().then_some(()));
        let ended = proxy.end();
        assert_eq!(ended.status, Some(3), "{ended:?}");
        assert!(ended.complaint().contains("ack0"), "{ended:?}");
    });
}

#[test]
fn what_cannot_be_is_told_before_anything_runs() {
    let (directory, file) = scratch("rules.toml");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    std::fs::write(&file, "[[rule]]\nport = '80'\naction = 'ofice'\n").expect("ours");
    let complaint = refused(&["proxy", "--config", text(&file), "--", "true"], 2);
    let expected = format!(
        "ackline: {}: line 3, action: no action \"ofice\"; there are direct, resolver, refuse, drop",
        file.display()
    );
    assert_eq!(complaint, expected);
    for (arguments, status, parts) in [
        (
            &["--upstream", "socks4://h:1", "--", "true"][..],
            2,
            "--upstream \"socks4://h:1\": no upstream; write direct",
        ),
        (
            &["--upstream", "socks4://me:secret@h:1", "--", "true"],
            2,
            "--upstream \"socks4://...@h:1\": no upstream; write direct",
        ),
        (&["--dns", "name.test", "--", "true"], 2, "--dns \"name.test\": not an address"),
        (&["--dns", "fe80::1", "--", "true"], 2, "fe80::1 is of a link; write which, as fe80::1%eth0"),
        (&["--dns", "fe80::1%no-such-link", "--", "true"], 2, "there is no interface \"no-such-link\""),
        (&["--names", "on", "--", "true"], 2, "--names \"on\": write off, rules or upstreams"),
        (&["--udp-filtering", "none", "--", "true"], 2, "write endpoint-independent, address-dependent or"),
        (&["--config", "/nonexistent", "--", "true"], 5, "cannot read --config /nonexistent"),
        (
            &["--upstream", "http://h:1", "--dns", "192.0.2.53", "--", "true"],
            2,
            "carries no datagrams; write tcp://192.0.2.53:53",
        ),
    ] {
        let complaint = refused(&[&["proxy"], arguments].concat(), status);
        assert!(complaint.contains(parts), "{complaint}");
    }
    std::fs::write(&file, "[[rule]]\ndomain = 'a.test'\naction = 'drop'\n").expect("ours");
    let complaint = refused(&["proxy", "--names", "off", "--config", text(&file), "--", "true"], 2);
    assert_eq!(complaint, "ackline: --names off: rules by domain need names; write rules or upstreams");
    let ended = run(&["proxy"]);
    assert!(ended.status == Some(2) && ended.stderr.contains("--tun <NAME>"), "{ended:?}");
}
