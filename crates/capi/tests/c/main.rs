//! C programs against the library: compiled with all warnings as errors, and run under valgrind if
//! there is one.
#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "programs are waited for in real time")]

use ackline_runtime::Error;
use ackline_runtime::netlink::{InterfaceAddress, Netlink};
use ackline_runtime::testing::{has_programs, isolated};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// What the library needs of the system when it is linked statically.
const SYSTEM: [&str; 3] = ["-lpthread", "-ldl", "-lm"];

/// Where cargo has put the library, beside this test.
fn libraries() -> PathBuf {
    let this = std::env::current_exe().expect("a path");
    this.parent().expect("a folder").to_owned()
}

/// A folder of its own for each test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("c-{name}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Compiles `source` and links it, statically or not.
fn compile(name: &str, source: &str, is_static: bool) -> PathBuf {
    let program = folder(name).join("program");
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-O1", "-I"]);
    cc.arg(Path::new(HERE).join("include")).arg("-o").arg(&program).arg(Path::new(HERE).join(source));
    let libraries = libraries();
    if is_static {
        cc.arg(libraries.join("libackline_c.a")).args(SYSTEM);
    } else {
        let path = libraries.to_str().expect("UTF-8");
        cc.args(["-L", path, "-lackline_c", &format!("-Wl,-rpath,{path}")]);
    }
    succeed(&mut cc);
    program
}

/// The program, under valgrind if there is one: leaks and wrong accesses fail.
fn checked(test: &str, program: &Path) -> Command {
    if !has_programs(&format!("{test} under valgrind"), &["valgrind"]) {
        return Command::new(program);
    }
    let mut valgrind = Command::new("valgrind");
    valgrind.args([
        "--quiet",
        "--error-exitcode=9",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite,indirect",
    ]);
    valgrind.arg(program);
    valgrind
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn two_stacks_of_a_c_program() {
    if !has_programs("two_stacks_of_a_c_program", &["cc"]) {
        return;
    }
    let program = compile("pair-static", "tests/c/pair.c", true);
    assert_eq!(succeed(&mut checked("two_stacks_of_a_c_program", &program)), "all as it should be\n");
    let program = compile("pair-dynamic", "tests/c/pair.c", false);
    assert_eq!(succeed(&mut Command::new(program)), "all as it should be\n");
}

#[test]
fn the_header_is_c_plus_plus_too() {
    if !has_programs("the_header_is_c_plus_plus_too", &["c++"]) {
        return;
    }
    let source = folder("c++").join("header.cpp");
    let text = "#include <ackline.h>\nint main() { return ackline_stack_free(nullptr); }\n";
    std::fs::write(&source, text).expect("written");
    for standard in ["-std=c++11", "-std=c++20"] {
        let mut compiler = Command::new("c++");
        compiler.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I"]);
        succeed(compiler.arg(Path::new(HERE).join("include")).arg(&source));
    }
}

/// Ends the program, however a test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended, if all is well.
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Waits until `ready` gives something.
fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no {what} within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_example_echoes_to_the_kernels_tcp() {
    let name = "the_example_echoes_to_the_kernels_tcp";
    if !has_programs(name, &["cc"]) {
        return;
    }
    isolated(name, || {
        let program = compile("echo", "../../examples/c/echo.c", true);
        // Errors are printed, and end the program.
        let options = "addresses=10.0.0.2+fd00::2";
        for (arguments, complaint) in [
            (["ack0", options, "10.0.0.3:7"], "echo: 10.0.0.3:7: the address is not one of this endpoint's"),
            (["ack0", "cc=cubik", "10.0.0.2:7"], "did you mean \"cubic\"?"),
            (["ack0", options, "10.0.0.2"], "is not an address and port, such as 10.0.0.2:80"),
        ] {
            let output = Command::new(&program).args(arguments).output().expect("it runs");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains(complaint), "{said}");
        }

        // Who may not open the device may not run this test, and is told by the same request.
        drop(ackline_runtime::device::tun::Tun::create(&Default::default())?);
        let mut command = checked(name, &program);
        command.args(["ack0", options, "0.0.0.0:7"]).stdout(Stdio::piped());
        let mut running = Running(command.spawn().expect("it runs"));
        let mut said = String::new();
        BufReader::new(running.0.stdout.take().expect("piped")).read_line(&mut said).expect("a line");
        assert_eq!(said, "listening on 0.0.0.0:7\n");
        let mut netlink = Netlink::open()?;
        let index = netlink.interface("ack0")?.index;
        for network in ["10.0.0.1/24", "fd00::1/64"] {
            netlink.add_address(index, InterfaceAddress::network(network.parse().expect("a network")))?;
        }
        netlink.set_up(index)?;
        let [v4, v6] = ["10.0.0.2:7", "[fd00::2]:7"].map(|text| text.parse().expect("an address"));
        wait_for("connection over IPv6", || TcpStream::connect_timeout(&v6, Duration::from_secs(5)).ok());
        for to in [v4, v6] {
            transfer(to, 1 << 20);
        }
        let mut clients: Vec<_> = (0..20).map(|_| connect(v4)).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            client.write_all(&[number as u8; 10]).expect("written");
        }
        for (number, client) in clients.iter_mut().enumerate() {
            let mut back = [0; 10];
            client.read_exact(&mut back).expect("it comes back");
            assert_eq!(back, [number as u8; 10]);
        }
        // Another program of the kernel's TCP.
        let script = "exec 3<>/dev/tcp/10.0.0.2/7; echo from bash >&3; head -n 1 <&3";
        assert_eq!(succeed(Command::new("bash").args(["-c", script])), "from bash\n");
        // With connections open. Valgrind's findings are its exit status.
        terminate(&running.0);
        let status = wait_for("end", || running.0.try_wait().expect("a child"));
        assert!(status.success(), "{status}");
        Ok::<(), Error>(())
    });
}

fn terminate(child: &Child) {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(id, Signal::TERM).expect("the child runs");
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&to, Duration::from_secs(30)).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    stream.set_write_timeout(Some(Duration::from_secs(60))).expect("set");
    stream
}

/// Sends `size` bytes, and the end of the stream; the same must come back.
fn transfer(to: SocketAddr, size: usize) {
    let sent: Vec<u8> = (0..size).map(|at| (at * 7 + at / 251) as u8).collect();
    let mut stream = connect(to);
    let mut writer = stream.try_clone().expect("a second handle");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            writer.write_all(&sent).expect("written");
            writer.shutdown(Shutdown::Write).expect("shut down");
        });
        let mut back = Vec::new();
        stream.read_to_end(&mut back).expect("it comes back");
        assert!(back == sent, "{} bytes of {} came back", back.len(), sent.len());
    });
}
