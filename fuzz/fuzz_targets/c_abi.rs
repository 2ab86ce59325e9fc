//! Two stacks through the functions that C calls.
//!
//! An input is a sequence of calls with arguments that the header allows: any socket, length, time
//! and text, null pointers, and any packets beside those that the stacks send to each other. No
//! call finds a bug (`ACKLINE_ENOTRECOVERABLE`; libFuzzer ends at a panic that was caught, too).
//! Errors are codes that have a text. What is said to have been written fits into its place, which
//! is as large as the call says: the address sanitizer sees the rest.
#![cfg_attr(feature = "link", no_main)]

use ackline_c::address::{ackline_address, ackline_address_format, ackline_address_parse};
use ackline_c::error::{ACKLINE_ENOTRECOVERABLE, ackline_last_error, ackline_strerror};
use ackline_c::info::{ackline_tcp_get_info, ackline_tcp_info};
use ackline_c::stack::*;
use ackline_c::tcp::*;
use ackline_c::types::{ackline_event, ackline_socket};
use ackline_c::udp::*;
use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_int, c_void};
use std::{mem, ptr};

/// Calls of an input.
const MOST: usize = 300;
/// Packets that wait for the other stack; more are lost.
const QUEUE: usize = 64;
/// Longest buffer of a call.
const LONGEST: usize = 4_096;

const OPTIONS: [&CStr; 8] = [
    c"",
    c"cc=reno,ack=immediate",
    c"nagle=off",
    c"sack=off",
    c"keep_alive=1s",
    c"cc=bbr",
    c"cc=nonsense",
    c"mtu=",
];
const ADDRESSES: [&CStr; 8] = [
    c"10.0.0.1:80",
    c"10.0.0.2:80",
    c"10.0.0.1:0",
    c"10.0.0.2:7",
    c"0.0.0.0:0",
    c"[fd00::1]:80",
    c"[fd00::2]:80",
    c"[::]:53",
];

ackline_fuzz::target!(run);

/// A stack, and what it has sent.
struct Side {
    stack: *mut ackline_stack,
    sent: VecDeque<Vec<u8>>,
    /// The callback takes no more packets.
    full: bool,
    sockets: Vec<ackline_socket>,
}

unsafe extern "C" fn transmit(user: *mut c_void, packet: *const u8, len: usize) -> c_int {
    // SAFETY: `user` is a side, of which nobody has a reference during a call of its stack; the
    // packet has `len` octets.
    unsafe {
        let side = user.cast::<Side>();
        if (*side).full {
            return 1;
        }
        let sent = &mut (*side).sent;
        if sent.len() < QUEUE {
            sent.push_back(std::slice::from_raw_parts(packet, len).to_vec());
        }
    }
    0
}

/// The rest of an input.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn octet(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A length, small or not.
    fn length(&mut self) -> usize {
        let octet = usize::from(self.octet());
        if octet < 128 { octet } else { (octet - 127) * 32 }.min(LONGEST)
    }

    fn text(&mut self) -> CString {
        let length = usize::from(self.octet() % 64);
        let octets: Vec<u8> = self.take(length).iter().copied().filter(|octet| *octet != 0).collect();
        CString::new(octets).expect("no NUL")
    }

    /// Options of a connection; perhaps none.
    fn options(&mut self) -> Option<CString> {
        match self.octet() {
            octet @ 0..8 => Some(OPTIONS[usize::from(octet)].to_owned()),
            8..16 => Some(self.text()),
            _ => None,
        }
    }

    fn address(&mut self) -> Option<ackline_address> {
        match self.octet() {
            octet @ 0..240 => {
                let mut address = ackline_address { version: 0, ip: [0; 16], port: 0 };
                let text = ADDRESSES[usize::from(octet % 8)];
                // SAFETY: both are valid.
                assert_eq!(unsafe { ackline_address_parse(text.as_ptr(), &raw mut address) }, 0);
                Some(address)
            }
            240..252 => {
                let mut ip = [0; 16];
                let octets = self.take(16);
                ip[..octets.len()].copy_from_slice(octets);
                Some(ackline_address { version: self.octet() % 8, ip, port: self.octet().into() })
            }
            _ => None,
        }
    }
}

fn at<T>(value: Option<&T>) -> *const T {
    value.map_or(ptr::null(), ptr::from_ref)
}

fn text_at(text: Option<&CString>) -> *const std::ffi::c_char {
    text.map_or(ptr::null(), |text| text.as_ptr())
}

/// What a call returned, if that is no error.
fn checked(code: impl Into<i64>) -> Option<usize> {
    let code = code.into();
    if let Ok(number) = usize::try_from(code) {
        return Some(number);
    }
    let code = i32::try_from(code).expect("a code");
    // SAFETY: both return strings.
    let (meaning, last) =
        unsafe { (CStr::from_ptr(ackline_strerror(code)), CStr::from_ptr(ackline_last_error())) };
    assert_ne!(code, ACKLINE_ENOTRECOVERABLE, "{last:?}");
    assert_ne!(meaning, c"unknown error code", "{code}");
    None
}

fn run(octets: &[u8]) {
    let mut input = Input(octets);
    let sides = [c"addresses=10.0.0.1+fd00::1", c"addresses=10.0.0.2+fd00::2,mtu=1400"].map(|options| {
        let side = Side { stack: ptr::null_mut(), sent: VecDeque::new(), full: false, sockets: vec![0] };
        let side = Box::into_raw(Box::new(side));
        // SAFETY: all of it is valid, and the side outlives the stack.
        let code = unsafe {
            let stack = &raw mut (*side).stack;
            ackline_stack_new(options.as_ptr(), Some(transmit), side.cast(), [7; 32].as_ptr(), stack)
        };
        assert_eq!(code, 0);
        side
    });
    let mut now = 1_000_000_000;
    for _ in 0..MOST {
        if input.0.is_empty() {
            break;
        }
        let call = input.octet();
        let side = usize::from(call >> 7);
        // SAFETY: no call is going on, and `call` keeps no reference to a side during one.
        unsafe { step(call & 0x7f, sides[side], sides[1 - side], &mut now, &mut input) };
    }
    for side in sides {
        // SAFETY: it was made above, and nobody uses it any more.
        unsafe {
            assert_eq!(ackline_stack_free((*side).stack), 0);
            drop(Box::from_raw(side));
        }
    }
}

/// One call.
///
/// # Safety
/// The sides are different, and their stacks not in use.
unsafe fn step(call: u8, side: *mut Side, other: *mut Side, now: &mut u64, input: &mut Input<'_>) {
    // SAFETY: this function's promise, and that the places have room for what the calls say.
    unsafe {
        let stack = (*side).stack.as_ref();
        let which = usize::from(input.octet());
        let sockets = &(*side).sockets;
        let socket = sockets[which % sockets.len()];
        let mut new: ackline_socket = 0;
        let mut local = ackline_address { version: 0, ip: [0; 16], port: 0 };
        let mut remote = local;
        match call % 32 {
            0..4 => {
                let mut deadline = 0;
                checked(ackline_stack_poll(stack, *now, &raw mut deadline));
            }
            4..9 => {
                // Some of what the other one has sent; changed in one place, perhaps.
                for _ in 0..=which % 8 {
                    let Some(mut packet) = (*other).sent.pop_front() else { break };
                    if which >= 192 {
                        let place = usize::from(input.octet()) % packet.len();
                        packet[place] ^= input.octet();
                    }
                    checked(ackline_stack_input(stack, packet.as_ptr(), packet.len(), *now));
                }
                checked(ackline_stack_poll(stack, *now, ptr::null_mut()));
            }
            9 => *now += (which as u64) << 16,
            10 => *now += (which as u64) << 26,
            11 => {
                let mut events = vec![ackline_event { socket: 0, events: 0 }; which % 5];
                let taken = checked(ackline_stack_events(stack, events.as_mut_ptr(), events.len()));
                assert!(taken.is_none_or(|taken| taken <= events.len()));
                checked(ackline_stack_fd(stack));
            }
            12 => {
                let (on, options) = (input.address(), input.options());
                let (on, options, flags) = (at(on.as_ref()), text_at(options.as_ref()), which as u32 % 3);
                checked(ackline_tcp_listen(stack, on, options, flags, *now, &raw mut new));
            }
            13 | 14 => {
                checked(ackline_tcp_accept(stack, socket, &raw mut new, &raw mut remote));
            }
            15 => {
                let (peer, from, options) = (input.address(), input.address(), input.options());
                let from = if which < 200 { ptr::null() } else { at(from.as_ref()) };
                let (peer, options) = (at(peer.as_ref()), text_at(options.as_ref()));
                checked(ackline_tcp_connect(stack, peer, from, options, *now, &raw mut new));
            }
            16 | 17 => {
                let data = vec![call; input.length()];
                let taken = checked(ackline_tcp_write(stack, socket, data.as_ptr(), data.len(), *now));
                assert!(taken.is_none_or(|taken| taken <= data.len()));
            }
            18 | 19 => {
                let mut room = vec![0; input.length()];
                let got = checked(ackline_tcp_read(stack, socket, room.as_mut_ptr(), room.len(), *now));
                assert!(got.is_none_or(|got| got <= room.len()));
            }
            20 => drop(checked(ackline_tcp_shutdown(stack, socket, *now))),
            21 => drop(checked(ackline_tcp_abort(stack, socket, *now))),
            22 => {
                let options = input.options();
                checked(ackline_tcp_set(stack, socket, text_at(options.as_ref()), *now));
            }
            23 => drop(checked(ackline_socket_close(stack, socket, *now))),
            24 => {
                checked(ackline_tcp_answer(stack, socket, *now));
            }
            25 => drop(checked(ackline_tcp_refuse(stack, socket, i32::from(input.octet()) - 1, *now))),
            26 => {
                let local = input.address();
                checked(ackline_udp_bind(stack, at(local.as_ref()), *now, &raw mut new));
                let peer = input.address();
                checked(ackline_udp_connect(stack, socket, at(peer.as_ref()), *now));
            }
            27 => {
                let (data, to) = (vec![call; input.length()], input.address());
                let to = at(to.as_ref());
                let sent = checked(ackline_udp_send(stack, socket, data.as_ptr(), data.len(), to, *now));
                assert!(sent.is_none_or(|sent| sent == data.len()));
                let mut room = vec![0; input.length()];
                let (from, to) = (&raw mut remote, &raw mut local);
                let got = ackline_udp_receive(stack, socket, room.as_mut_ptr(), room.len(), from, to);
                assert!(checked(got).is_none_or(|got| got <= room.len()));
            }
            28 => {
                checked(ackline_tcp_state(stack, socket));
                checked(ackline_tcp_is_flushed(stack, socket));
                // It returns the error of the connection, and that has a text as well.
                checked(ackline_tcp_error(stack, socket));
                checked(ackline_socket_addresses(stack, socket, &raw mut local, &raw mut remote));
                checked(ackline_stack_connections(stack));
            }
            29 => {
                // Structs of older and newer programs.
                let size = which * 4;
                let mut room = vec![0u64; size.div_ceil(8)];
                assert!(mem::align_of::<ackline_tcp_info>() <= 8);
                checked(ackline_tcp_get_info(stack, socket, room.as_mut_ptr().cast(), size));
            }
            30 => {
                let (text, mut room) = (input.text(), vec![0; which % 70]);
                let length = room.len();
                let fits = |code| assert!(checked(code).is_none_or(|written| written < length));
                if checked(ackline_address_parse(text.as_ptr(), &raw mut local)).is_some() {
                    fits(ackline_address_format(&raw const local, room.as_mut_ptr(), length));
                }
                fits(ackline_counter_name(usize::from(input.octet()), room.as_mut_ptr(), length));
                let mut value = 0;
                checked(ackline_stack_counter(stack, text.as_ptr(), &raw mut value));
                checked(ackline_stack_counter(stack, c"TcpRetransSegs".as_ptr(), ptr::null_mut()));
            }
            _ => {
                (*side).full = which & 1 != 0;
                let packet = input.take(which / 2);
                checked(ackline_stack_input(stack, packet.as_ptr(), packet.len(), *now));
            }
        }
        if new != 0 {
            assert!(!(*side).sockets.contains(&new), "a handle is used again");
            (*side).sockets.push(new);
        }
    }
}
