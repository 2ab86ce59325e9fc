//! The kernel's TCP, with blocking calls if one connection is busy, and epoll (through tokio) for
//! many.

use super::{CHUNK, Meter, all, end, some};
use crate::case::{Act, Wait};
use crate::net::{PEER, PORT};
use ackline_runtime::timer;
use rustix::fd::AsFd;
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The other end of every measurement.
pub(crate) fn serve(listener: &TcpListener, act: Act, meter: &Arc<Meter>) -> io::Result<()> {
    let accept = |flows| -> io::Result<Vec<_>> { (0..flows).map(|_| Ok(listener.accept()?.0)).collect() };
    match act {
        Act::Send { flows } => sink(accept(flows)?, meter),
        Act::Receive { flows } => source(accept(flows)?),
        Act::RoundTrip { peer, .. } => echo(listener.accept()?.0, peer),
        Act::Open { .. } => loop {
            // It closes first, so that TIME-WAIT is the other end's burden in no stack.
            let (mut stream, _) = listener.accept()?;
            stream.read_exact(&mut [0])?;
        },
    }
}

/// The measured end.
pub(crate) fn connect(act: Act, cc: Option<&str>, meter: &Arc<Meter>) -> io::Result<()> {
    let several = |flows| -> io::Result<Vec<_>> { (0..flows).map(|_| connect_with(cc)).collect() };
    match act {
        Act::Send { flows } => source(several(flows)?),
        Act::Receive { flows } => sink(several(flows)?, meter),
        Act::RoundTrip { here, .. } => ping(connect_with(cc)?, here, meter),
        Act::Open { at_once: 1 } => loop {
            let mut stream = TcpStream::connect((PEER, PORT))?;
            stream.set_nodelay(true)?;
            stream.write_all(&[7])?;
            end(stream.read(&mut [0])?)?;
            drop(stream);
            meter.add(1);
        },
        Act::Open { at_once } => open_many(at_once, meter),
    }
}

/// `None`: what the machine has by default. Before a socket is connected, for a connection that
/// began with BBR stays paced.
pub(crate) fn set_congestion_control(socket: impl AsFd, name: Option<&str>) -> io::Result<()> {
    let Some(name) = name else { return Ok(()) };
    sockopt::set_tcp_congestion(socket, name)
        .map_err(|errno| io::Error::other(format!("the kernel's TCP does not take {name}: {errno}")))
}

fn connect_with(cc: Option<&str>) -> io::Result<TcpStream> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    set_congestion_control(&socket, cc)?;
    rustix::net::connect(&socket, &SocketAddrV4::new(PEER, PORT))?;
    Ok(socket.into())
}

fn source(mut streams: Vec<TcpStream>) -> io::Result<()> {
    let data: Arc<[u8]> = vec![7; CHUNK].into();
    if let [stream] = &mut streams[..] {
        loop {
            stream.write_all(&data)?;
        }
    }
    all(streams.into_iter().map(|stream| {
        let data = data.clone();
        async move {
            let stream = asynchronous(stream)?;
            loop {
                stream.writable().await?;
                ready(stream.try_write(&data))?;
            }
        }
    }))
}

fn sink(mut streams: Vec<TcpStream>, meter: &Arc<Meter>) -> io::Result<()> {
    thread_local! {
        /// One for all connections of the thread.
        static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; CHUNK]);
    }
    if let [stream] = &mut streams[..] {
        return BUFFER.with_borrow_mut(|buffer| {
            loop {
                meter.add(some(stream.read(buffer)?)? as u64);
            }
        });
    }
    all(streams.into_iter().map(|stream| {
        let meter = meter.clone();
        async move {
            let stream = asynchronous(stream)?;
            loop {
                stream.readable().await?;
                if let Some(read) = ready(BUFFER.with_borrow_mut(|buffer| stream.try_read(buffer)))? {
                    meter.add(some(read)? as u64);
                }
            }
        }
    }))
}

fn ping(mut stream: TcpStream, wait: Wait, meter: &Arc<Meter>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(wait == Wait::Busy)?;
    loop {
        let start = timer::now();
        stream.write_all(&[7])?;
        await_byte(&mut stream)?;
        meter.round_trip(timer::now().since(start));
    }
}

fn echo(mut stream: TcpStream, wait: Wait) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(wait == Wait::Busy)?;
    loop {
        await_byte(&mut stream)?;
        stream.write_all(&[7])?;
    }
}

/// On a non-blocking socket it asks until there is one.
fn await_byte(stream: &mut TcpStream) -> io::Result<()> {
    loop {
        match stream.read(&mut [0]) {
            Ok(read) => return some(read).map(drop),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error),
        }
    }
}

fn open_many(at_once: usize, meter: &Arc<Meter>) -> io::Result<()> {
    all((0..at_once).map(|_| {
        let meter = meter.clone();
        async move {
            loop {
                let mut stream = tokio::net::TcpStream::connect((PEER, PORT)).await?;
                stream.set_nodelay(true)?;
                stream.write_all(&[7]).await?;
                end(stream.read(&mut [0]).await?)?;
                drop(stream);
                meter.add(1);
            }
        }
    }))
}

fn asynchronous(stream: TcpStream) -> io::Result<tokio::net::TcpStream> {
    stream.set_nonblocking(true)?;
    tokio::net::TcpStream::from_std(stream)
}

/// `None`: not yet.
fn ready(outcome: io::Result<usize>) -> io::Result<Option<usize>> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        other => other.map(Some),
    }
}
