/* A terminator of benches/tunnels: lwIP's raw API on the TUN device that is standard input. It carries each connection on to the
 * destination that its SYN named.
 *
 * Stock lwIP takes packets for its own addresses and listens on single ports, so this one is told both: the address of the servers, the
 * first of their ports and how many there are. It answers a SYN before the destination has.
 *
 * Debian's library has a thread for timers and frames by default. Here one thread does everything with the core's lock held, as
 * doc/multithreading.txt of lwIP has it: input, timers, sockets. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* The C library has a name of lwIP's. */
#undef TCP_MSS
#include <lwip/ip.h>
#include <lwip/netif.h>
#include <lwip/pbuf.h>
#include <lwip/tcp.h>
#include <lwip/tcpip.h>
#include <lwip/timeouts.h>

enum {
	DEVICE = 0,
	MTU = 1500,
	/* Packets read before sockets and timers have a turn. */
	PACKETS = 64,
	EVENTS = 256,
	VECTORS = 64,
};

struct connection {
	/* NULL: closed, or gone. */
	struct tcp_pcb *pcb;
	/* -1: closed. */
	int out;
	bool connected, wants_write, reads;
	/* What the destination has not taken yet. */
	struct pbuf *pending;
	/* The client's end came, and was passed on; the same of the server's. */
	bool client_ended, passed_on, server_ended, shut;
	/* lwIP is to be told, in a callback of its own. */
	bool aborted;
	struct connection *next_dead;
};

static int poller;
static struct netif tun;
static struct connection *dead;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void watch(struct connection *c)
{
	uint32_t events = (c->wants_write ? EPOLLOUT : 0) | (c->reads ? EPOLLIN : 0);
	struct epoll_event event = {.events = events, .data.ptr = c};
	epoll_ctl(poller, EPOLL_CTL_MOD, c->out, &event);
}

/* Frees it after the events of this turn, which may name it. */
static void finish(struct connection *c)
{
	if (c->pcb) {
		tcp_arg(c->pcb, NULL);
		tcp_recv(c->pcb, NULL);
		tcp_sent(c->pcb, NULL);
		tcp_err(c->pcb, NULL);
	}
	if (c->pending)
		pbuf_free(c->pending);
	if (c->out >= 0)
		close(c->out);
	c->pending = NULL;
	c->pcb = NULL;
	c->out = -1;
	c->next_dead = dead;
	dead = c;
}

static void reset(struct connection *c)
{
	struct tcp_pcb *pcb = c->pcb;
	finish(c);
	if (pcb) {
		tcp_abort(pcb);
		c->aborted = true;
	}
}

/* Both directions have ended, and everything is passed on. */
static void finish_if_over(struct connection *c)
{
	if (c->out >= 0 && c->passed_on && c->shut) {
		struct tcp_pcb *pcb = c->pcb;
		finish(c);
		if (pcb && tcp_close(pcb) != ERR_OK) {
			tcp_abort(pcb);
			c->aborted = true;
		}
	}
}

/* Passes on what the client has sent; false: the connection is gone. */
static bool to_server(struct connection *c)
{
	while (c->pending && c->connected) {
		struct iovec vectors[VECTORS];
		int count = 0;
		for (struct pbuf *p = c->pending; p && count < VECTORS; p = p->next)
			vectors[count++] = (struct iovec){p->payload, p->len};
		struct msghdr message = {.msg_iov = vectors, .msg_iovlen = count};
		ssize_t sent = sendmsg(c->out, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (sent < 0) {
			reset(c);
			return false;
		}
		for (ssize_t left = sent; left > 0 && c->pcb;) {
			u16_t part = left > 0xffff ? 0xffff : left;
			tcp_recved(c->pcb, part);
			left -= part;
		}
		c->pending = pbuf_free_header(c->pending, sent);
	}
	if (!c->pending && c->client_ended && !c->passed_on && c->connected) {
		c->passed_on = true;
		shutdown(c->out, SHUT_WR);
		finish_if_over(c);
		return c->out >= 0;
	}
	bool wants = !c->connected || c->pending;
	if (wants != c->wants_write) {
		c->wants_write = wants;
		watch(c);
	}
	return true;
}

/* Passes on what the server has sent, as far as the send buffer has room; false: the connection is gone. */
static bool to_client(struct connection *c)
{
	static char buffer[64 << 10];
	while (!c->server_ended) {
		size_t room = tcp_sndbuf(c->pcb);
		bool full = room == 0 || tcp_sndqueuelen(c->pcb) + room / TCP_MSS + 2 > TCP_SND_QUEUELEN;
		if (full)
			break;
		ssize_t got = read(c->out, buffer, room < sizeof buffer ? room : sizeof buffer);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			goto output;
		if (got < 0) {
			reset(c);
			return false;
		}
		if (got == 0) {
			c->server_ended = true;
			break;
		}
		if (tcp_write(c->pcb, buffer, got, TCP_WRITE_FLAG_COPY) != ERR_OK) {
			reset(c);
			return false;
		}
	}
output:
	if (c->server_ended && !c->shut && tcp_shutdown(c->pcb, 0, 1) == ERR_OK)
		c->shut = true;
	tcp_output(c->pcb);
	/* With a full send buffer it reads again once the client has acknowledged. */
	bool reads = c->connected && !c->server_ended && tcp_sndbuf(c->pcb) > 0
		&& tcp_sndqueuelen(c->pcb) + tcp_sndbuf(c->pcb) / TCP_MSS + 2 <= TCP_SND_QUEUELEN;
	if (reads != c->reads) {
		c->reads = reads;
		watch(c);
	}
	finish_if_over(c);
	return c->out >= 0;
}

static err_t received(void *argument, struct tcp_pcb *pcb, struct pbuf *p, err_t error)
{
	struct connection *c = argument;
	(void)pcb;
	(void)error;
	if (!p)
		c->client_ended = true;
	else if (c->pending)
		pbuf_cat(c->pending, p);
	else
		c->pending = p;
	to_server(c);
	return c->aborted ? ERR_ABRT : ERR_OK;
}

static err_t sent(void *argument, struct tcp_pcb *pcb, u16_t length)
{
	struct connection *c = argument;
	(void)pcb;
	(void)length;
	if (c->connected && !c->reads && !c->shut)
		to_client(c);
	return c->aborted ? ERR_ABRT : ERR_OK;
}

/* The client has reset it, or it has ended while the destination still takes what the client has sent. */
static void failed(void *argument, err_t error)
{
	struct connection *c = argument;
	if (!c)
		return;
	c->pcb = NULL;
	if (error == ERR_CLSD && c->pending)
		return;
	if (error != ERR_CLSD) {
		struct linger linger = {1, 0};
		setsockopt(c->out, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
	}
	finish(c);
}

static err_t accepted(void *argument, struct tcp_pcb *pcb, err_t error)
{
	(void)argument;
	if (error != ERR_OK || !pcb)
		return ERR_VAL;
	struct connection *c = calloc(1, sizeof *c);
	int out = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (!c || out < 0) {
		free(c);
		if (out >= 0)
			close(out);
		tcp_abort(pcb);
		return ERR_ABRT;
	}
	int one = 1;
	setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	struct sockaddr_in destination = {
		.sin_family = AF_INET, .sin_port = htons(pcb->local_port), .sin_addr.s_addr = ip_2_ip4(&pcb->local_ip)->addr};
	*c = (struct connection){.pcb = pcb, .out = out, .wants_write = true};
	struct epoll_event event = {.events = EPOLLOUT, .data.ptr = c};
	if ((connect(out, (struct sockaddr *)&destination, sizeof destination) && errno != EINPROGRESS)
		|| epoll_ctl(poller, EPOLL_CTL_ADD, out, &event)) {
		close(out);
		free(c);
		tcp_abort(pcb);
		return ERR_ABRT;
	}
	tcp_nagle_disable(pcb);
	tcp_arg(pcb, c);
	tcp_recv(pcb, received);
	tcp_sent(pcb, sent);
	tcp_err(pcb, failed);
	return ERR_OK;
}

static void of_server(struct connection *c, uint32_t events)
{
	if (c->out < 0)
		return;
	if (!c->connected) {
		int error = 0;
		socklen_t length = sizeof error;
		getsockopt(c->out, SOL_SOCKET, SO_ERROR, &error, &length);
		if (error) {
			reset(c);
			return;
		}
		c->connected = true;
		if (to_server(c) && c->pcb)
			to_client(c);
		return;
	}
	if ((events & (EPOLLOUT | EPOLLERR)) && c->pending && !to_server(c))
		return;
	if (events & EPOLLERR) {
		reset(c);
		return;
	}
	if ((events & (EPOLLIN | EPOLLHUP)) && !c->server_ended && c->pcb)
		to_client(c);
}

static err_t output(struct netif *netif, struct pbuf *p, const ip4_addr_t *to)
{
	struct iovec vectors[VECTORS];
	int count = 0;
	(void)netif;
	(void)to;
	for (; p && count < VECTORS; p = p->next)
		vectors[count++] = (struct iovec){p->payload, p->len};
	return writev(DEVICE, vectors, count) < 0 ? ERR_IF : ERR_OK;
}

static err_t begin(struct netif *netif)
{
	netif->name[0] = 't';
	netif->name[1] = 'u';
	netif->mtu = MTU;
	netif->output = output;
	netif->flags = NETIF_FLAG_LINK_UP;
	/* A TUN device of the same machine delivers no damaged packets. */
	NETIF_SET_CHECKSUM_CTRL(netif, NETIF_CHECKSUM_ENABLE_ALL);
	return ERR_OK;
}

static void input(void)
{
	char packet[MTU];
	for (int number = 0; number < PACKETS; number++) {
		ssize_t length = read(DEVICE, packet, sizeof packet);
		if (length <= 0)
			return;
		/* Not of the pool: in Debian's library its buffers are shorter than it takes them for. */
		struct pbuf *p = pbuf_alloc(PBUF_RAW, length, PBUF_RAM);
		if (!p)
			return;
		pbuf_take(p, packet, length);
		if (ip_input(p, &tun) != ERR_OK)
			pbuf_free(p);
	}
}

int main(int arguments, char **argument)
{
	struct rlimit descriptors;
	if (arguments < 4) {
		fputs("usage: lwip ADDRESS PORT PORTS\n", stderr);
		return 1;
	}
	getrlimit(RLIMIT_NOFILE, &descriptors);
	descriptors.rlim_cur = descriptors.rlim_max;
	setrlimit(RLIMIT_NOFILE, &descriptors);
	if (fcntl(DEVICE, F_SETFL, fcntl(DEVICE, F_GETFL) | O_NONBLOCK))
		fail("standard input");
	poller = epoll_create1(EPOLL_CLOEXEC);

	tcpip_init(NULL, NULL);
	LOCK_TCPIP_CORE();
	ip4_addr_t address, mask, gateway;
	ip4addr_aton(argument[1], &address);
	IP4_ADDR(&mask, 255, 255, 255, 255);
	ip4_addr_set_zero(&gateway);
	if (!netif_add(&tun, &address, &mask, &gateway, NULL, begin, ip_input))
		fail("netif_add");
	netif_set_default(&tun);
	netif_set_up(&tun);
	for (int number = 0; number < atoi(argument[3]); number++) {
		struct tcp_pcb *pcb = tcp_new();
		if (!pcb || tcp_bind(pcb, IP_ADDR_ANY, atoi(argument[2]) + number) != ERR_OK)
			fail("tcp_bind");
		tcp_accept(tcp_listen_with_backlog(pcb, TCP_DEFAULT_LISTEN_BACKLOG), accepted);
	}

	struct epoll_event of_device = {.events = EPOLLIN};
	if (epoll_ctl(poller, EPOLL_CTL_ADD, DEVICE, &of_device))
		fail("standard input");
	for (;;) {
		struct epoll_event events[EVENTS];
		u32_t sleep = sys_timeouts_sleeptime();
		int count = epoll_wait(poller, events, EVENTS, sleep > 1000 ? 1000 : (int)sleep);
		for (int number = 0; number < count; number++) {
			if (events[number].data.ptr)
				of_server(events[number].data.ptr, events[number].events);
			else
				input();
		}
		sys_check_timeouts();
		while (dead) {
			struct connection *next = dead->next_dead;
			free(dead);
			dead = next;
		}
	}
}
