/* An end of benches/pairings: lwIP's raw API on the socket of IP packets that is standard input.
 *
 *     lwip client|server HERE PEER PORT SENDS RECEIVES WAITS PAUSE MTU
 *
 * It sends SENDS bytes and closes its direction, and receives RECEIVES; with WAITS = 1 it sends after it has received. It
 * reads nothing for PAUSE milliseconds at first, and again after half: what came stays in the window. It says "ready", and
 * at the end the length and the hash of what it has received.
 *
 * Debian's library has a thread for timers and frames by default. Here one thread does everything with the core's lock held, as
 * doc/multithreading.txt of lwIP has it. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <lwip/ip.h>
#include <lwip/netif.h>
#include <lwip/pbuf.h>
#include <lwip/tcp.h>
#include <lwip/tcpip.h>
#include <lwip/timeouts.h>

enum {
	DEVICE = 0,
	LONGEST = 65536,
	CHUNK = 16 << 10,
	VECTORS = 64,
	/* Milliseconds between looks at what the application may do. */
	LOOK = 20,
};

static struct netif device;
static u16_t mtu;

/* The application. */
static struct tcp_pcb *pcb;
static struct pbuf *unread;
static uint64_t state, unsent, wanted, received, hash = 0xcbf29ce484222325;
static bool waits, peer_ended, closed, said, paused_twice;
static int64_t pause_ms, reads_at = -1;

static void fail(const char *what)
{
	printf("lwip: %s\n", what);
	exit(1);
}

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void take(void)
{
	while (unread && now() >= reads_at) {
		struct pbuf *p = unread;
		for (u16_t at = 0; at < p->len; at++)
			hash = (hash ^ ((uint8_t *)p->payload)[at]) * 0x100000001b3;
		received += p->len;
		if (pcb)
			tcp_recved(pcb, p->len);
		unread = p->next;
		if (unread)
			pbuf_ref(unread);
		pbuf_free(p);
		if (!paused_twice && received >= wanted / 2) {
			paused_twice = true;
			reads_at = now() + pause_ms;
		}
	}
}

static void give(void)
{
	static uint8_t chunk[CHUNK];
	static size_t held;
	while (pcb && (unsent || held)) {
		if (!held) {
			held = unsent < CHUNK ? unsent : CHUNK;
			unsent -= held;
			for (size_t at = 0; at < held; at++) {
				state = state * 6364136223846793005u + 1442695040888963407u;
				chunk[at] = state >> 56;
			}
		}
		size_t room = tcp_sndbuf(pcb), part = held < room ? held : room;
		if (!part || tcp_write(pcb, chunk, part, TCP_WRITE_FLAG_COPY) != ERR_OK)
			break;
		held -= part;
		memmove(chunk, chunk + part, held);
	}
	if (pcb && !unsent && !held && !closed && tcp_shutdown(pcb, 0, 1) == ERR_OK)
		closed = true;
	if (pcb)
		tcp_output(pcb);
}

/* What the application does next. */
static void work(void)
{
	if (reads_at < 0)
		return;
	take();
	bool over = peer_ended && !unread;
	if (!waits || over)
		give();
	if (over && closed && !said) {
		printf("%" PRIu64 " %016" PRIx64 "\n", received, hash);
		said = true;
	}
}

static err_t came(void *argument, struct tcp_pcb *from, struct pbuf *p, err_t error)
{
	(void)argument;
	(void)from;
	(void)error;
	if (!p)
		peer_ended = true;
	else if (unread)
		pbuf_cat(unread, p);
	else
		unread = p;
	return ERR_OK;
}

static void failed(void *argument, err_t error)
{
	(void)argument;
	pcb = NULL;
	/* Closed by both is no failure. */
	if (error != ERR_CLSD && !said)
		fail(lwip_strerr(error));
}

static err_t opened(void *argument, struct tcp_pcb *of, err_t error)
{
	(void)argument;
	if (error != ERR_OK || !of)
		return ERR_VAL;
	pcb = of;
	tcp_recv(pcb, came);
	tcp_err(pcb, failed);
	reads_at = now() + pause_ms;
	return ERR_OK;
}

static err_t output(struct netif *netif, struct pbuf *p, const ip4_addr_t *to)
{
	struct iovec vectors[VECTORS];
	int count = 0;
	(void)netif;
	(void)to;
	for (; p && count < VECTORS; p = p->next)
		vectors[count++] = (struct iovec){p->payload, p->len};
	/* A socket that is full waits, as a queue of a device would. */
	while (writev(DEVICE, vectors, count) < 0) {
		struct pollfd full = {.fd = DEVICE, .events = POLLOUT};
		if (errno != EAGAIN || poll(&full, 1, 1000) <= 0)
			return ERR_IF;
	}
	return ERR_OK;
}

static err_t begin(struct netif *netif)
{
	netif->name[0] = 's';
	netif->name[1] = 'o';
	netif->mtu = mtu;
	netif->output = output;
	netif->flags = NETIF_FLAG_LINK_UP;
	NETIF_SET_CHECKSUM_CTRL(netif, NETIF_CHECKSUM_ENABLE_ALL);
	return ERR_OK;
}

static void input(void)
{
	static char packet[LONGEST];
	for (;;) {
		ssize_t length = read(DEVICE, packet, sizeof packet);
		if (length == 0)
			exit(0);
		if (length < 0)
			return;
		/* Not of the pool: in Debian's library its buffers are shorter than it takes them for. */
		struct pbuf *p = pbuf_alloc(PBUF_RAW, length, PBUF_RAM);
		if (!p)
			return;
		pbuf_take(p, packet, length);
		if (ip_input(p, &device) != ERR_OK)
			pbuf_free(p);
	}
}

int main(int arguments, char **argument)
{
	if (arguments != 10)
		fail("usage: lwip client|server HERE PEER PORT SENDS RECEIVES WAITS PAUSE MTU");
	bool server = !strcmp(argument[1], "server");
	u16_t port = atoi(argument[4]);
	state = server ? 2 : 1;
	unsent = strtoull(argument[5], NULL, 10);
	wanted = strtoull(argument[6], NULL, 10);
	waits = atoi(argument[7]);
	pause_ms = atoll(argument[8]);
	mtu = atoi(argument[9]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (fcntl(DEVICE, F_SETFL, fcntl(DEVICE, F_GETFL) | O_NONBLOCK))
		fail("standard input");

	tcpip_init(NULL, NULL);
	LOCK_TCPIP_CORE();
	ip4_addr_t mask, gateway;
	ip_addr_t here, peer;
	if (!ipaddr_aton(argument[2], &here) || !ipaddr_aton(argument[3], &peer))
		fail("an address");
	IP4_ADDR(&mask, 255, 255, 255, 0);
	ip4_addr_set_zero(&gateway);
	if (!netif_add(&device, ip_2_ip4(&here), &mask, &gateway, NULL, begin, ip_input))
		fail("netif_add");
	netif_set_default(&device);
	netif_set_up(&device);
	struct tcp_pcb *first = tcp_new();
	if (server) {
		if (!first || tcp_bind(first, &here, port) != ERR_OK)
			fail("tcp_bind");
		tcp_accept(tcp_listen(first), opened);
	} else {
		if (!first)
			fail("tcp_new");
		tcp_err(first, failed);
		if (tcp_connect(first, &peer, port, opened) != ERR_OK)
			fail("tcp_connect");
	}
	puts("ready");

	for (;;) {
		struct pollfd readable = {.fd = DEVICE, .events = POLLIN};
		u32_t sleep = sys_timeouts_sleeptime();
		if (poll(&readable, 1, sleep > LOOK ? LOOK : (int)sleep) > 0)
			input();
		sys_check_timeouts();
		work();
	}
}
