/* ackline: a TCP stack in userspace, over callbacks for packets. The page docs/c.md explains it.
 *
 * Give the stack packets and the time; then poll it, which sends, and handle the events, until there are none; then sleep until the deadline
 * or the next input. Codes are negative: `ackline_strerror` says what they mean, and `ackline_last_error` what was wrong.
 *
 * Made by .ci/header --write from crates/capi/src: do not edit. */

#ifndef ACKLINE_H
#define ACKLINE_H

#include <stddef.h>
#include <stdint.h>

// Bytes that the text of any address fits, with the zero at its end.
#define ACKLINE_ADDRESS_TEXT 64

// An input/output error of the system: no descriptor, no random numbers.
#define ACKLINE_EIO -5

// The socket is not one of this stack, or it is closed.
#define ACKLINE_EBADF -9

// Not now: nothing to read, no room to write, nobody to accept. An event follows.
#define ACKLINE_EAGAIN -11

// The memory budget is used up; or a connection held more than its share of it.
#define ACKLINE_ENOMEM -12

// A pointer is null that must not be.
#define ACKLINE_EFAULT -14

// The stack is in use: by its callback, which must not call it, or by another thread.
#define ACKLINE_EBUSY -16

// An argument is wrong: an address, an option, a length, a time.
#define ACKLINE_EINVAL -22

// The stack has as many connections as it may have.
#define ACKLINE_ENFILE -23

// This side has shut down sending.
#define ACKLINE_EPIPE -32

// The datagram is longer than the path carries, or than the buffer.
#define ACKLINE_EMSGSIZE -90

// The socket is of another kind, or this platform does not have it.
#define ACKLINE_EOPNOTSUPP -95

// The address and port are in use.
#define ACKLINE_EADDRINUSE -98

// The address is not one of the stack's, or it has none of the peer's family, or no free port.
#define ACKLINE_EADDRNOTAVAIL -99

// This side aborted the connection.
#define ACKLINE_ECONNABORTED -103

// The peer reset the connection.
#define ACKLINE_ECONNRESET -104

// The handshake is not complete; or a UDP socket has no peer.
#define ACKLINE_ENOTCONN -107

// The peer sent data after this side had closed, and the connection was reset (RFC 9293, section
// 3.6.1).
#define ACKLINE_ESHUTDOWN -108

// The peer did not answer in time.
#define ACKLINE_ETIMEDOUT -110

// The peer refused.
#define ACKLINE_ECONNREFUSED -111

// ICMP reported that the peer cannot be reached.
#define ACKLINE_EHOSTUNREACH -113

// An earlier call of this stack hit a bug of ackline's: the stack can only be freed.
#define ACKLINE_ENOTRECOVERABLE -131

// No connection; the end of every one.
#define ACKLINE_CLOSED 0

// A listener.
#define ACKLINE_LISTEN 1

// A SYN has been sent.
#define ACKLINE_SYN_SENT 2

// A SYN has been received.
#define ACKLINE_SYN_RECEIVED 3

// Open.
#define ACKLINE_ESTABLISHED 4

// This side has closed, and the peer still sends.
#define ACKLINE_FIN_WAIT_1 5

// The same, and the peer knows it.
#define ACKLINE_FIN_WAIT_2 6

// The peer has closed, and this side still sends.
#define ACKLINE_CLOSE_WAIT 7

// Both sides have closed at the same time.
#define ACKLINE_CLOSING 8

// The peer has closed, then this side.
#define ACKLINE_LAST_ACK 9

// Both sides have closed; old segments are waited out.
#define ACKLINE_TIME_WAIT 10

// For `ackline_tcp_listen`: nothing is answered before the program has decided. Each SYN is a
// socket that `ackline_tcp_accept` returns, and that `ackline_tcp_answer` or `ackline_tcp_refuse`
// answers.
#define ACKLINE_HOLD_SYNS 1

// For `ackline_tcp_refuse`: an RST, as from a port that nobody listens on.
#define ACKLINE_REFUSE_RST 0

// For `ackline_tcp_refuse`: nothing; the client tries again, and times out in the end.
#define ACKLINE_REFUSE_SILENTLY 1

// For `ackline_tcp_refuse`: an ICMP error, within the limits of such errors.
#define ACKLINE_REFUSE_UNREACHABLE 2

// There may be something to read: data, the end of the stream, an error; or a listener has a
// connection.
#define ACKLINE_READABLE 1

// There may be room to write: a connection is established, or a write that was not taken whole can
// go on.
#define ACKLINE_WRITABLE 2

// The peer has acknowledged everything written, and the end of the stream.
#define ACKLINE_FLUSHED 4

// A connection has ended: `ackline_tcp_error` says how. What was received can still be read.
#define ACKLINE_ENDED 8

// A stack: a host with its addresses, connections and timers.
//
// A stack does nothing by itself: it works during the calls of its functions, on the thread that
// calls. Calls for one stack must come one after the other, from any threads; one that comes
// during another fails with `ACKLINE_EBUSY` and changes nothing. Different stacks are independent.
typedef struct ackline_stack ackline_stack;

// An IP address and a port.
typedef struct ackline_address {
  // 4 or 6.
  uint8_t version;
  // The address, in network order; of IPv4 the first four bytes, and the others are 0.
  uint8_t ip[16];
  // The port, in the order of this machine.
  uint16_t port;
} ackline_address;

// A socket of a stack: a connection, a listener, or one for UDP. Handles are never used again
// within a stack; 0 is none.
typedef uint64_t ackline_socket;

// A snapshot of a connection: fields of Linux's `tcp_info`, in bytes, segments and nanoseconds.
// Later versions may add fields at the end.
typedef struct ackline_tcp_info {
  // `ACKLINE_ESTABLISHED` and so on.
  int32_t state;
  // Largest payload of a segment that is sent.
  uint32_t snd_mss;
  // Largest payload received in a segment.
  uint32_t rcv_mss;
  // Largest IP packet that the sender uses.
  uint32_t pmtu;
  // Retransmission timeout, without back-off.
  uint64_t rto;
  // Smoothed round-trip time; 0: not measured yet.
  uint64_t rtt;
  // Its variation; 0: not measured yet.
  uint64_t rttvar;
  // Smallest round-trip time of the last five minutes; 0: not measured yet.
  uint64_t min_rtt;
  // Congestion window.
  uint64_t snd_cwnd;
  // Slow-start threshold; `UINT64_MAX`: none yet.
  uint64_t snd_ssthresh;
  // The peer's receive window.
  uint64_t snd_wnd;
  // The window last advertised.
  uint64_t rcv_wnd;
  // Bytes sent and not acknowledged.
  uint64_t unacked;
  // Bytes written and not sent.
  uint64_t notsent_bytes;
  // Bytes received in order and not read.
  uint64_t unread_bytes;
  // Pacing rate in bytes per second; `UINT64_MAX`: not paced.
  uint64_t pacing_rate;
  // Last sample of the delivery rate in bytes per second; 0: none.
  uint64_t delivery_rate;
  // Time with something unsent or unacknowledged.
  uint64_t busy_time;
  // Of this, time in which the peer's window was full.
  uint64_t rwnd_limited;
  // Of this, time in which the send buffer was full and all sent.
  uint64_t sndbuf_limited;
  // Payload bytes sent, retransmissions included.
  uint64_t bytes_sent;
  // Payload bytes retransmitted.
  uint64_t bytes_retrans;
  // Payload bytes acknowledged.
  uint64_t bytes_acked;
  // Payload bytes received in order.
  uint64_t bytes_received;
  // Segments sent.
  uint64_t segs_out;
  // Segments received.
  uint64_t segs_in;
  // Segments retransmitted.
  uint64_t total_retrans;
  // Retransmission timeouts.
  uint64_t total_rto;
  // Bytes of memory that the connection holds.
  uint64_t memory;
  // Name of the congestion control, with a zero at its end.
  char cc[32];
  // Name of the ACK policy.
  char ack[32];
  // Name of the response to a retransmission timeout.
  char rto_response[32];
} ackline_tcp_info;

// Takes one IP packet, which the stack sends; called by `ackline_stack_poll`. `packet` has `len`
// bytes, at most the MTU, and is valid during the call. Returns 0 if the packet was taken, or
// lost; another number if there is no room for it at present: then the stack keeps it, and offers
// it first when it is polled again.
//
// The function must return, without `longjmp` or a C++ exception, and must not call the stack that
// calls it, which would answer `ACKLINE_EBUSY`.
typedef int (*ackline_transmit)(void *user,
                                const uint8_t *packet,
                                size_t len);

// What has happened to a socket since its last event.
typedef struct ackline_event {
  // The socket.
  ackline_socket socket;
  // `ACKLINE_READABLE`, `ACKLINE_WRITABLE`, `ACKLINE_FLUSHED`, `ACKLINE_ENDED`, one or several.
  uint32_t news;
} ackline_event;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Reads `10.0.0.2:80` or `[fd00::2]:80`. Returns 0, or `ACKLINE_EINVAL`, `ACKLINE_EFAULT`.
//
// # Safety
// `from` is null or a string that ends with a zero; `address` is null or has room for an address.
int32_t ackline_address_parse(const char *from,
                              struct ackline_address *address);

// Writes an address as text that ends with a zero. `ACKLINE_ADDRESS_TEXT` bytes are enough for
// any. Returns its length without the zero, or `ACKLINE_EINVAL`, `ACKLINE_EFAULT`.
//
// # Safety
// `address` is null or an address; `to` is null or has room for `len` bytes.
int32_t ackline_address_format(const struct ackline_address *address,
                               char *to,
                               size_t len);

// The meaning of `code`, such as "connection refused". A string that lives forever; "unknown code"
// for a number that is no code.
const char *ackline_strerror(int32_t code);

// What was wrong with the last call of this thread that failed, and what would be right. Valid
// until the next call of this thread that fails; empty if none has.
const char *ackline_last_error(void);

// A snapshot of a connection, as of the latest instant that the stack was given. `size` is
// `sizeof(ackline_tcp_info)`: with it, a program that was compiled for a smaller struct gets the
// fields that it has. Returns 0, or `ACKLINE_EBADF`, `ACKLINE_EOPNOTSUPP`.
//
// # Safety
// `info` is null or has room for `size` bytes, if that is a size that a struct can have.
int32_t ackline_tcp_get_info(const struct ackline_stack *stack,
                             ackline_socket socket,
                             struct ackline_tcp_info *info,
                             size_t size);

// Makes a stack.
//
// `options` are settings as in `addresses=10.0.0.2+fd00::2,mtu=1400,cc=cubic:beta=0.8,sack=off`:
// of the host, and of connections that set none of their own. `ackline list host` and
// `ackline list conn` print all of them. There must be an address, or `any_address=on`. The text
// is copied.
//
// `transmit` is called with `user` by `ackline_stack_poll`, as long as the stack exists. The stack
// does not look at what `user` points to.
//
// `seed` has 32 bytes, of which sequence numbers, ports and hashes are made: the same seed and the
// same calls give the same packets. It is null for random ones, which a stack needs that talks to
// others.
//
// Returns 0 and the stack, which `ackline_stack_free` frees; or `ACKLINE_EINVAL`,
// `ACKLINE_EFAULT`, `ACKLINE_EIO`.
//
// # Safety
// `options` is null or a string that ends with a zero, `seed` null or 32 bytes; `stack` is null or
// has room for a pointer; `transmit` may be called as `ackline_transmit` says.
int32_t ackline_stack_new(const char *options,
                          ackline_transmit transmit,
                          void *user,
                          const uint8_t *seed,
                          struct ackline_stack **stack);

// Frees a stack with its sockets and its descriptor. Nothing is sent: peers learn nothing. To end
// in order, close the sockets, and go on until `ackline_stack_connections` is 0. Null is ignored.
// Returns 0, or `ACKLINE_EBUSY` during a call of the stack: then it is not freed.
//
// # Safety
// `stack` is null, or of `ackline_stack_new` and not freed; nobody uses it any more.
int32_t ackline_stack_free(struct ackline_stack *stack);

// Gives the stack an IP packet that arrived at `now`, in nanoseconds of a clock that does not go
// back. `packet` has `len` bytes, and is not used after the call. What is malformed or for nobody
// is dropped and counted, as a host does it. Returns 0, or `ACKLINE_EINVAL`, `ACKLINE_EFAULT`.
//
// Call `ackline_stack_poll` after one or several of these.
//
// # Safety
// `packet` is null or has `len` bytes.
int32_t ackline_stack_input(const struct ackline_stack *stack,
                            const uint8_t *packet,
                            size_t len,
                            uint64_t now);

// Serves the timers up to `now` and sends what is to be sent, by the callback. Call it after
// packets have come in, after calls for sockets, and at the deadline.
//
// `deadline` gets the time of the next call, if nothing happens before: `UINT64_MAX` if there is
// none. It may be null.
//
// Returns 0; or 1 if the callback had no room: call again when it has, or at the deadline, which
// is at most 10 ms away then; or `ACKLINE_EINVAL`.
//
// # Safety
// `deadline` is null or has room for a time.
int32_t ackline_stack_poll(const struct ackline_stack *stack,
                           uint64_t now,
                           uint64_t *deadline);

// Takes up to `max` events, of different sockets. An event is told once, and again only if the
// program has done what it allowed: read until `ACKLINE_EAGAIN`, or written until not all was
// taken. Returns how many there were; 0 if there are no more; or `ACKLINE_EINVAL`,
// `ACKLINE_EFAULT`.
//
// # Safety
// `events` is null or has room for `max` events.
int32_t ackline_stack_events(const struct ackline_stack *stack,
                             struct ackline_event *events,
                             size_t max);

// A descriptor that is readable while there may be events, for `poll`, `epoll` and event loops. It
// belongs to the stack, which closes it; only wait for it. Linux and Android. Returns the
// descriptor, or `ACKLINE_EOPNOTSUPP`, `ACKLINE_EIO`.
int32_t ackline_stack_fd(const struct ackline_stack *stack);

// Number of connections that have not ended, those included whose socket is closed and that still
// deliver. Connections in TIME-WAIT whose socket is closed do not count.
int64_t ackline_stack_connections(const struct ackline_stack *stack);

// The value of a counter, such as `TcpExtListenOverflows`. Returns 0, or `ACKLINE_EINVAL` for an
// unknown name, `ACKLINE_EFAULT`.
//
// # Safety
// `name` is null or a string that ends with a zero; `value` is null or has room for a number.
int32_t ackline_stack_counter(const struct ackline_stack *stack,
                              const char *name,
                              uint64_t *value);

// Writes the name of counter number `index`, from 0 on, as text that ends with a zero. 64 bytes
// are enough for any. Returns the length of the name, or `ACKLINE_EINVAL` if there are no more
// counters or no room.
//
// # Safety
// `to` is null or has room for `len` bytes.
int32_t ackline_counter_name(size_t index,
                             char *to,
                             size_t len);

// Listens on an address and port of the stack. An unspecified address (0.0.0.0 or ::) means all
// addresses, and with port 0 every port of every address, for tunnels. Port 0 of one address picks
// a free port, which `ackline_socket_addresses` tells.
//
// `options` change settings of accepted connections, as for `ackline_tcp_connect`; null: none.
// `flags` is 0 or `ACKLINE_HOLD_SYNS`.
//
// Returns 0 and the socket, or `ACKLINE_EINVAL`, `ACKLINE_EADDRINUSE`, `ACKLINE_EADDRNOTAVAIL`,
// `ACKLINE_EFAULT`.
//
// # Safety
// `on` is null or an address; `options` is null or a string that ends with a zero; `socket` is
// null or has room for a socket.
int32_t ackline_tcp_listen(const struct ackline_stack *stack,
                           const struct ackline_address *on,
                           const char *options,
                           uint32_t flags,
                           uint64_t now,
                           ackline_socket *socket);

// The next connection of a listener, and its peer's address, if `peer` is not null. Returns 0 and
// the socket; `ACKLINE_EAGAIN` if there is none, and `ACKLINE_READABLE` tells of the next; or
// `ACKLINE_EBADF`, `ACKLINE_EOPNOTSUPP`, `ACKLINE_EFAULT`.
//
// The socket can be written to at once. If there is something to read already, an event tells.
//
// # Safety
// `socket` is null or has room for a socket, `peer` is null or has room for an address.
int32_t ackline_tcp_accept(const struct ackline_stack *stack,
                           ackline_socket listener,
                           ackline_socket *socket,
                           struct ackline_address *peer);

// Answers a SYN that a listener with `ACKLINE_HOLD_SYNS` has held. `ACKLINE_WRITABLE` tells that
// it has become a connection, `ACKLINE_ENDED` that it will not. Returns 0; or a negative code:
// then it will not, and the socket is only to be closed.
int32_t ackline_tcp_answer(const struct ackline_stack *stack,
                           ackline_socket syn,
                           uint64_t now);

// Refuses a SYN that a listener with `ACKLINE_HOLD_SYNS` has held, and closes its socket. `how` is
// `ACKLINE_REFUSE_RST`, `ACKLINE_REFUSE_SILENTLY` or `ACKLINE_REFUSE_UNREACHABLE`. Returns 0, or a
// negative code: then the socket is not closed.
int32_t ackline_tcp_refuse(const struct ackline_stack *stack,
                           ackline_socket syn,
                           int32_t how,
                           uint64_t now);

// Connects to `peer`, from `local` if it is not null: its port may be 0, and its address
// unspecified, for any. The SYN leaves when the stack is polled; `ACKLINE_WRITABLE` tells that the
// connection is established, `ACKLINE_ENDED` that it failed.
//
// `options` change settings of this connection, as in `cc=reno,ack=immediate,keep_alive=2m`; null:
// none. `ackline list conn` prints all of them.
//
// Returns 0 and the socket, or `ACKLINE_EINVAL`, `ACKLINE_EADDRINUSE`, `ACKLINE_EADDRNOTAVAIL`,
// `ACKLINE_ENFILE`, `ACKLINE_ENOMEM`, `ACKLINE_EFAULT`.
//
// # Safety
// `peer` and `local` are null or addresses; `options` is null or a string that ends with a zero;
// `socket` is null or has room for a socket.
int32_t ackline_tcp_connect(const struct ackline_stack *stack,
                            const struct ackline_address *peer,
                            const struct ackline_address *local,
                            const char *options,
                            uint64_t now,
                            ackline_socket *socket);

// Takes as many of the `len` bytes at `data` as there is room for, and copies them. They leave
// when the stack is polled. Returns how many were taken; `ACKLINE_EAGAIN` if there is no room, and
// `ACKLINE_WRITABLE` tells when there is; `ACKLINE_EPIPE` after `ackline_tcp_shutdown`, or the
// code of the error that ended the connection. What is written while a connection is being opened
// leaves when it is established.
//
// # Safety
// `data` is null or has `len` bytes.
int64_t ackline_tcp_write(const struct ackline_stack *stack,
                          ackline_socket socket,
                          const uint8_t *data,
                          size_t len,
                          uint64_t now);

// Copies up to `len` received bytes to `to`. Returns how many; 0 at the end of the stream;
// `ACKLINE_EAGAIN` if there are none yet, and `ACKLINE_READABLE` tells when there are;
// `ACKLINE_ENOTCONN` before the connection is established; or the code of the error that ended it
// before the end of the stream. `len` must not be 0.
//
// # Safety
// `to` is null or has room for `len` bytes.
int64_t ackline_tcp_read(const struct ackline_stack *stack,
                         ackline_socket socket,
                         uint8_t *to,
                         size_t len,
                         uint64_t now);

// Ends the stream that this side sends: a FIN follows what was written. The other direction stays
// open. `ACKLINE_FLUSHED` tells that the peer has everything. Returns 0, or a negative code.
int32_t ackline_tcp_shutdown(const struct ackline_stack *stack,
                             ackline_socket socket,
                             uint64_t now);

// Resets a connection: the peer gets an RST, and what was written and not delivered is lost. The
// socket stays until it is closed. Returns 0, or a negative code.
int32_t ackline_tcp_abort(const struct ackline_stack *stack,
                          ackline_socket socket,
                          uint64_t now);

// Changes settings of a connection, as in `cc=reno,nagle=off`: those that can change while it
// lives. Either all change or none. Returns 0, or `ACKLINE_EINVAL`, of which `ackline_last_error`
// says what can change.
//
// # Safety
// `options` is null or a string that ends with a zero.
int32_t ackline_tcp_set(const struct ackline_stack *stack,
                        ackline_socket socket,
                        const char *options,
                        uint64_t now);

// The state of a socket, `ACKLINE_ESTABLISHED` and so on; or `ACKLINE_EBADF`,
// `ACKLINE_EOPNOTSUPP`.
int32_t ackline_tcp_state(const struct ackline_stack *stack,
                          ackline_socket socket);

// How a connection ended: the code of an error, such as `ACKLINE_ECONNRESET`; 0 if it has not
// ended, or both sides closed it. Other codes are `ACKLINE_EBADF` and `ACKLINE_EOPNOTSUPP`, with
// which no connection ends.
int32_t ackline_tcp_error(const struct ackline_stack *stack,
                          ackline_socket socket);

// 1 if the peer has acknowledged everything written and the end of the stream, 0 if not; or a
// negative code. Stays 1 however the connection ends later.
int32_t ackline_tcp_is_flushed(const struct ackline_stack *stack,
                               ackline_socket socket);

// The addresses of a socket of any kind. `local` and `remote` may be null. What a socket does not
// have, such as the remote address of a listener, is 0.0.0.0:0. Returns 0, or a negative code.
//
// # Safety
// `local` and `remote` are null or have room for an address.
int32_t ackline_socket_addresses(const struct ackline_stack *stack,
                                 ackline_socket socket,
                                 struct ackline_address *local,
                                 struct ackline_address *remote);

// Closes a socket of any kind; its handle is invalid afterwards.
//
// A connection delivers what was written, and ends; it is reset if something received was not read
// (RFC 9293, section 3.6.1). The stack must be polled meanwhile. A listener resets connections
// that were not accepted, a SYN is refused, a UDP socket is gone.
//
// Returns 0, or `ACKLINE_EBADF`.
int32_t ackline_socket_close(const struct ackline_stack *stack,
                             ackline_socket socket,
                             uint64_t now);

// Opens a UDP socket. An unspecified address means all addresses of its family, port 0 a free
// port. Returns 0 and the socket, or `ACKLINE_EADDRINUSE`, `ACKLINE_EADDRNOTAVAIL`,
// `ACKLINE_EINVAL`, `ACKLINE_EFAULT`.
//
// # Safety
// `local` is null or an address; `socket` is null or has room for a socket.
int32_t ackline_udp_bind(const struct ackline_stack *stack,
                         const struct ackline_address *local,
                         uint64_t now,
                         ackline_socket *socket);

// Connects a UDP socket: it sends to `peer`, receives from nobody else, and is told ICMP errors.
// Returns 0, or a negative code.
//
// # Safety
// `peer` is null or an address.
int32_t ackline_udp_connect(const struct ackline_stack *stack,
                            ackline_socket socket,
                            const struct ackline_address *peer,
                            uint64_t now);

// Sends a datagram to `to`, or where the socket is connected to if `to` is null. The data is
// copied, and leaves when the stack is polled. Returns `len`; `ACKLINE_EAGAIN` if too many wait,
// and `ACKLINE_WRITABLE` tells when there is room; `ACKLINE_EMSGSIZE` if it is longer than the
// path carries; or the code of an ICMP error about an earlier one, such as `ACKLINE_ECONNREFUSED`.
//
// # Safety
// `data` is null or has `len` bytes; `to` is null or an address.
int64_t ackline_udp_send(const struct ackline_stack *stack,
                         ackline_socket socket,
                         const uint8_t *data,
                         size_t len,
                         const struct ackline_address *to,
                         uint64_t now);

// Takes the next datagram. `from` gets its sender and `to` the address it was sent to; both may be
// null. Returns the length of its data, which may be 0; `ACKLINE_EAGAIN` if there is none, and
// `ACKLINE_READABLE` tells of the next; `ACKLINE_EMSGSIZE` if it has more than `len` bytes: then
// it waits for a call with more room, of which 65,535 bytes are always enough.
//
// # Safety
// `data` is null or has room for `len` bytes; `from` and `to` are null or have room for an
// address.
int64_t ackline_udp_receive(const struct ackline_stack *stack,
                            ackline_socket socket,
                            uint8_t *data,
                            size_t len,
                            struct ackline_address *from,
                            struct ackline_address *to);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ACKLINE_H */
