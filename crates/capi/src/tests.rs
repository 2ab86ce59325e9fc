//! Two stacks through the functions that C calls, with pointers as C may pass them. Miri runs these
//! tests (`.ci/miri`): it finds what is undefined although every result is right.

use crate::address::{ACKLINE_ADDRESS_TEXT, ackline_address, ackline_address_format, ackline_address_parse};
use crate::error::{ACKLINE_EADDRNOTAVAIL, ACKLINE_EFAULT, ACKLINE_EINVAL};
use crate::info::{ackline_tcp_get_info, ackline_tcp_info};
use crate::stack::{
    ackline_counter_name, ackline_stack, ackline_stack_counter, ackline_stack_events, ackline_stack_free,
    ackline_stack_input, ackline_stack_new, ackline_stack_poll,
};
use crate::tcp::{
    ackline_socket_addresses, ackline_tcp_accept, ackline_tcp_connect, ackline_tcp_listen, ackline_tcp_read,
    ackline_tcp_write,
};
use crate::types::{ackline_event, ackline_socket};
use crate::udp::{ackline_udp_bind, ackline_udp_receive, ackline_udp_send};
use std::ffi::{CStr, c_int, c_void};
use std::net::SocketAddr;
use std::ptr;

/// What a program has for a stack. The callback writes to all of it, also to where the call that it
/// comes from will write.
struct Side {
    stack: *mut ackline_stack,
    deadline: u64,
    sent: Vec<Vec<u8>>,
}

unsafe extern "C" fn transmit(user: *mut c_void, packet: *const u8, len: usize) -> c_int {
    let side = user.cast::<Side>();
    // SAFETY: `user` is the side, of which nobody has a reference during a call of the stack.
    unsafe {
        (*side).deadline = 1;
        (*side).sent.push(std::slice::from_raw_parts(packet, len).to_vec());
    }
    0
}

/// Two stacks, 10.0.0.1 and 10.0.0.2, in a world of a microsecond per packet.
struct Pair {
    sides: [*mut Side; 2],
    now: u64,
}

impl Pair {
    fn new() -> Self {
        let sides = [c"addresses=10.0.0.1", c"addresses=10.0.0.2"].map(|options: &CStr| {
            let side = Side { stack: ptr::null_mut(), deadline: 0, sent: vec![] };
            let side = Box::into_raw(Box::new(side));
            let seed = [7; 32];
            // SAFETY: all of it is valid; the stack is freed before the side.
            let code = unsafe {
                let stack = &raw mut (*side).stack;
                ackline_stack_new(options.as_ptr(), Some(transmit), side.cast(), seed.as_ptr(), stack)
            };
            assert_eq!(code, 0);
            side
        });
        Self { sides, now: 0 }
    }

    fn stack(&self, side: usize) -> Option<&ackline_stack> {
        // SAFETY: it lives as long as the pair.
        unsafe { (*self.sides[side]).stack.as_ref() }
    }

    /// Polls both, and carries what they send, until there is nothing.
    fn settle(&mut self) {
        loop {
            let mut carried = false;
            for (from, to) in [(0, 1), (1, 0)] {
                // SAFETY: the side outlives the call, and the callback writes to the deadline
                // before it.
                let sent = unsafe {
                    let deadline = &raw mut (*self.sides[from]).deadline;
                    assert_eq!(ackline_stack_poll(self.stack(from), self.now, deadline), 0);
                    assert_ne!(deadline.read(), 1, "the callback's number is not the last");
                    let sent = &mut (*self.sides[from]).sent;
                    std::mem::take(sent)
                };
                for packet in sent {
                    self.now += 1_000;
                    carried = true;
                    // SAFETY: it has as many bytes.
                    let code = unsafe {
                        ackline_stack_input(self.stack(to), packet.as_ptr(), packet.len(), self.now)
                    };
                    assert_eq!(code, 0);
                }
            }
            if !carried {
                return;
            }
        }
    }

    /// A connection from the first to the second, by its socket at each side.
    fn connection(&mut self) -> [ackline_socket; 2] {
        // One place for what goes in and for what comes out.
        let mut place = [0u64; 3];
        let at = place.as_mut_ptr();
        // SAFETY: all pointers are null, or to the place, which has room for either.
        unsafe {
            let (given, out) = (at.cast::<ackline_address>(), at.cast::<ackline_socket>());
            given.write(address("10.0.0.2:80"));
            assert_eq!(ackline_tcp_listen(self.stack(1), given, ptr::null(), 0, self.now, out), 0);
            let listener = out.read();
            given.write(address("10.0.0.2:80"));
            let connected = ackline_tcp_connect(self.stack(0), given, given, ptr::null(), self.now, out);
            assert_eq!(connected, ACKLINE_EADDRNOTAVAIL, "10.0.0.2 is the other stack's");
            let connected =
                ackline_tcp_connect(self.stack(0), given, ptr::null(), ptr::null(), self.now, out);
            assert_eq!(connected, 0);
            let ours = out.read();
            self.settle();
            // The peer's address is written last, over the socket's number.
            assert_eq!(ackline_tcp_accept(self.stack(1), listener, out, given), 0);
            assert_eq!(given.read().read().unwrap().ip(), "10.0.0.1".parse::<std::net::IpAddr>().unwrap());
            let mut events = [ackline_event { socket: 0, events: 0 }; 4];
            assert!(ackline_stack_events(self.stack(1), events.as_mut_ptr(), events.len()) >= 1);
            // The handle of the only connection follows that of the only listener.
            [ours, listener + 1]
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for side in self.sides {
            // SAFETY: `new` made both, and nobody else frees them.
            unsafe {
                assert_eq!(ackline_stack_free((*side).stack), 0);
                drop(Box::from_raw(side));
            }
        }
    }
}

fn address(text: &str) -> ackline_address {
    text.parse::<SocketAddr>().unwrap().into()
}

#[test]
fn places_for_results_may_be_those_of_arguments_and_of_each_other() {
    let mut pair = Pair::new();
    let [ours, theirs] = pair.connection();
    let mut both = address("0.0.0.0:0");
    let at = &raw mut both;
    // SAFETY: there is room for an address.
    unsafe {
        assert_eq!(ackline_socket_addresses(pair.stack(1), theirs, at, at), 0);
        assert_eq!(at.read().read().unwrap().ip().to_string(), "10.0.0.1", "the remote one is the second");
        let parsed = c"10.0.0.9:1";
        assert_eq!(ackline_address_parse(parsed.as_ptr(), at), 0);
        let mut text = [0; ACKLINE_ADDRESS_TEXT];
        assert_eq!(ackline_address_format(at, text.as_mut_ptr(), text.len()), 10);
    }
    let (said, mut heard) = (*b"ping", [0u8; 8]);
    // SAFETY: the lengths are those of the arrays.
    unsafe {
        assert_eq!(ackline_tcp_write(pair.stack(0), ours, said.as_ptr(), said.len(), pair.now), 4);
        pair.settle();
        let got = ackline_tcp_read(pair.stack(1), theirs, heard.as_mut_ptr(), heard.len(), pair.now);
        assert_eq!((got, &heard[..4]), (4, &said[..]));
    }
}

#[test]
fn a_datagram_and_its_addresses_may_go_to_one_place() {
    let mut pair = Pair::new();
    let mut place = [0u64; 8];
    let at = place.as_mut_ptr();
    // SAFETY: the place has room for 64 bytes, an address or a socket.
    unsafe {
        let (given, out) = (at.cast::<ackline_address>(), at.cast::<ackline_socket>());
        let bind = |side: usize, local: &str| {
            given.write(address(local));
            assert_eq!(ackline_udp_bind(pair.stack(side), given, pair.now, out), 0);
            out.read()
        };
        let (from, to) = (bind(0, "10.0.0.1:5000"), bind(1, "10.0.0.2:5001"));
        // The data is the address to which it goes, but for its padding, which has no value.
        given.write(address("10.0.0.2:5001"));
        assert_eq!(ackline_udp_send(pair.stack(0), from, at.cast(), 17, given, pair.now), 17);
        pair.settle();
        assert_eq!(ackline_udp_receive(pair.stack(1), to, at.cast(), 64, given, given), 17);
        assert_eq!(given.read().read().unwrap(), "10.0.0.2:5001".parse().unwrap());
    }
}

#[test]
fn a_size_is_refused_before_anything_is_made_of_it() {
    let mut pair = Pair::new();
    let [ours, _] = pair.connection();
    let mut info = std::mem::MaybeUninit::<ackline_tcp_info>::uninit();
    let mut text = [0; 64];
    let mut value = 0;
    // SAFETY: the places have room for what is written; what is refused writes nothing.
    unsafe {
        let mut get = |size| ackline_tcp_get_info(pair.stack(0), ours, info.as_mut_ptr(), size);
        for wrong in [0, 4_097, 1 << 40, isize::MAX as usize, usize::MAX] {
            assert_eq!(get(wrong), ACKLINE_EINVAL, "{wrong}");
        }
        assert_eq!(get(8), 0, "an older program's struct");
        assert_eq!(get(size_of::<ackline_tcp_info>()), 0);
        assert_eq!(ackline_tcp_get_info(pair.stack(0), ours, ptr::null_mut(), 8), ACKLINE_EFAULT);
        // A length that is too large, of a text that would fit.
        assert!(ackline_counter_name(0, text.as_mut_ptr(), isize::MAX as usize) > 0);
        assert_eq!(ackline_counter_name(0, text.as_mut_ptr(), usize::MAX), ACKLINE_EINVAL);
        assert_eq!(ackline_counter_name(0, text.as_mut_ptr(), 3), ACKLINE_EINVAL);
        assert_eq!(ackline_counter_name(0, ptr::null_mut(), 64), ACKLINE_EFAULT);
        let name = text.as_ptr();
        assert_eq!(ackline_stack_counter(pair.stack(0), name, &raw mut value), 0);
        assert_eq!(ackline_stack_counter(pair.stack(0), name, ptr::null_mut()), ACKLINE_EFAULT);
    }
}
