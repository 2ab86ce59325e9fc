/* Two stacks in one process, in virtual time: every function, what each error is, and what misuse gives. */
#include <ackline.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s; the last error: %s\n", __FILE__, __LINE__, #condition,                 \
                    ackline_last_error());                                                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define FAILS(call, with) CHECK((call) == (with) && ackline_last_error()[0] != 0)

enum { DELAY = 1000000, MAX_NEWS = 64 };

typedef struct packet {
    struct packet *next;
    uint64_t at;
    size_t len;
    uint8_t data[2048];
} packet;

/* A stack, the packets on their way to it, and what was told of its sockets. */
typedef struct host {
    ackline_stack *stack;
    struct host *peer;
    packet *first, **last;
    ackline_event news[MAX_NEWS];
    int count;
    int full;     /* the callback has no room */
    int cut;      /* what it sends is lost */
    int reenters; /* the callback calls its stack */
    uint64_t hash;
    uint64_t deadline;
} host;

static uint64_t now = 1000000000;

static int transmit(void *user, const uint8_t *data, size_t len) {
    host *from = user;
    packet *p;
    size_t i;
    if (from->reenters) {
        uint64_t deadline;
        FAILS(ackline_stack_poll(from->stack, now, &deadline), ACKLINE_EBUSY);
        FAILS(ackline_stack_free(from->stack), ACKLINE_EBUSY);
        from->reenters = 0;
    }
    if (from->full)
        return 1;
    for (i = 0; i < len; i++)
        from->hash = (from->hash ^ data[i]) * 1099511628211u;
    if (from->cut)
        return 0;
    CHECK(len <= sizeof p->data);
    p = malloc(sizeof *p);
    CHECK(p != NULL);
    p->next = NULL;
    p->at = now + DELAY;
    p->len = len;
    memcpy(p->data, data, len);
    *from->peer->last = p;
    from->peer->last = &p->next;
    return 0;
}

static void forget_packets(host *h) {
    while (h->first != NULL) {
        packet *p = h->first;
        h->first = p->next;
        free(p);
    }
    h->last = &h->first;
}

static void make(host *a, host *b, const char *options_a, const char *options_b) {
    uint8_t seed[32];
    memset(seed, 7, sizeof seed);
    memset(a, 0, sizeof *a);
    memset(b, 0, sizeof *b);
    a->peer = b;
    b->peer = a;
    forget_packets(a);
    forget_packets(b);
    CHECK(ackline_stack_new(options_a, transmit, a, seed, &a->stack) == 0);
    CHECK(ackline_stack_new(options_b, transmit, b, NULL, &b->stack) == 0);
}

static void end(host *a, host *b) {
    CHECK(ackline_stack_free(a->stack) == 0);
    CHECK(ackline_stack_free(b->stack) == 0);
    forget_packets(a);
    forget_packets(b);
}

static void turn(host *h) {
    ackline_event events[3];
    int i, n;
    while (h->first != NULL && h->first->at <= now) {
        packet *p = h->first;
        h->first = p->next;
        if (h->first == NULL)
            h->last = &h->first;
        CHECK(ackline_stack_input(h->stack, p->data, p->len, now) == 0);
        free(p);
    }
    CHECK(ackline_stack_poll(h->stack, now, &h->deadline) == h->full);
    while ((n = ackline_stack_events(h->stack, events, 3)) > 0) {
        for (i = 0; i < n; i++) {
            CHECK(h->count < MAX_NEWS);
            h->news[h->count++] = events[i];
        }
    }
    CHECK(n == 0);
}

/* Runs both until `until`. Each turn ends at the next packet or deadline. */
static void run(host *a, host *b, uint64_t until) {
    for (;;) {
        uint64_t next = until;
        host *both[2];
        int i;
        both[0] = a;
        both[1] = b;
        turn(a);
        turn(b);
        for (i = 0; i < 2; i++) {
            if (both[i]->first != NULL && both[i]->first->at < next)
                next = both[i]->first->at;
            if (both[i]->deadline < next)
                next = both[i]->deadline;
        }
        if (now >= until)
            return;
        now = next > now ? next : now;
    }
}

static void soon(host *a, host *b) { run(a, b, now + 100 * (uint64_t)DELAY); }

/* What was told of a socket since the last question. */
static uint32_t news(host *h, ackline_socket socket) {
    uint32_t all = 0;
    int i, kept = 0;
    for (i = 0; i < h->count; i++) {
        if (h->news[i].socket == socket)
            all |= h->news[i].events;
        else
            h->news[kept++] = h->news[i];
    }
    h->count = kept;
    return all;
}

static ackline_address at(const char *text) {
    ackline_address address;
    CHECK(ackline_address_parse(text, &address) == 0);
    return address;
}

static ackline_socket listen_at(host *h, const char *text, uint32_t flags) {
    ackline_address address = at(text);
    ackline_socket listener;
    CHECK(ackline_tcp_listen(h->stack, &address, NULL, flags, now, &listener) == 0);
    return listener;
}

static ackline_socket connect_to(host *h, const char *text, const char *options) {
    ackline_address address = at(text);
    ackline_socket socket;
    CHECK(ackline_tcp_connect(h->stack, &address, NULL, options, now, &socket) == 0);
    return socket;
}

#define A "addresses=10.0.0.1+fd00::1"
#define B "addresses=10.0.0.2+fd00::2"

/* A connection of `a` to `b`. */
static void join(host *a, host *b, ackline_socket *near, ackline_socket *far) {
    ackline_socket listener = listen_at(b, "10.0.0.2:7", 0);
    *near = connect_to(a, "10.0.0.2:7", NULL);
    soon(a, b);
    CHECK(news(a, *near) == ACKLINE_WRITABLE);
    CHECK(news(b, listener) == ACKLINE_READABLE);
    CHECK(ackline_tcp_accept(b->stack, listener, far, NULL) == 0);
    CHECK(ackline_socket_close(b->stack, listener, now) == 0);
}

static void streams(void) {
    enum { SIZE = 1 << 20 };
    static uint8_t sent[SIZE], got[SIZE];
    const char *peers[2] = {"10.0.0.2:80", "[fd00::2]:80"};
    size_t i, v;
    for (i = 0; i < SIZE; i++)
        sent[i] = (uint8_t)(i * 7 + i / 251);
    for (v = 0; v < 2; v++) {
        host a, b;
        ackline_socket listener, client, server = 0, other;
        ackline_address peer, here, there;
        ackline_tcp_info info;
        char text[ACKLINE_ADDRESS_TEXT];
        size_t written = 0, read = 0;
        make(&a, &b, A ",cc=reno", B);
        listener = listen_at(&b, peers[v], 0);
        CHECK(ackline_tcp_state(b.stack, listener) == ACKLINE_LISTEN);
        FAILS(ackline_tcp_accept(b.stack, listener, &server, NULL), ACKLINE_EAGAIN);
        client = connect_to(&a, peers[v], "ack=immediate");
        CHECK(ackline_tcp_state(a.stack, client) == ACKLINE_SYN_SENT);
        FAILS(ackline_tcp_read(a.stack, client, got, 1, now), ACKLINE_ENOTCONN);
        soon(&a, &b);
        CHECK(news(&a, client) == ACKLINE_WRITABLE);
        CHECK(news(&b, listener) == ACKLINE_READABLE);
        CHECK(ackline_tcp_accept(b.stack, listener, &server, &peer) == 0);
        CHECK(ackline_socket_addresses(a.stack, client, &here, &there) == 0);
        CHECK(memcmp(&here.ip, &peer.ip, 16) == 0 && here.port == peer.port && here.version == peer.version);
        CHECK(ackline_address_format(&there, text, sizeof text) == (int)strlen(peers[v]));
        CHECK(strcmp(text, peers[v]) == 0);
        FAILS(ackline_tcp_accept(b.stack, listener, &other, NULL), ACKLINE_EAGAIN);

        CHECK(ackline_tcp_write(a.stack, client, NULL, 0, now) == 0);
        while (read < SIZE) {
            int64_t n = 0;
            while (written < SIZE && (n = ackline_tcp_write(a.stack, client, sent + written, SIZE - written, now)) > 0)
                written += (size_t)n;
            CHECK(written == SIZE || n == ACKLINE_EAGAIN);
            run(&a, &b, now + DELAY);
            news(&a, client);
            news(&b, server);
            while ((n = ackline_tcp_read(b.stack, server, got + read, SIZE - read > 5000 ? 5000 : SIZE - read, now)) > 0) {
                read += (size_t)n;
                if (read == SIZE)
                    break;
            }
            CHECK(read == SIZE || n == ACKLINE_EAGAIN);
        }
        CHECK(memcmp(sent, got, SIZE) == 0);
        CHECK(ackline_tcp_get_info(a.stack, client, &info, sizeof info) == 0);
        CHECK(info.state == ACKLINE_ESTABLISHED && info.bytes_sent >= SIZE && info.rtt >= 2 * DELAY);
        CHECK(info.pmtu == 1500 && strcmp(info.cc, "reno") == 0 && strcmp(info.ack, "immediate") == 0);

        /* Half-close, the other direction, and the end. */
        CHECK(ackline_tcp_shutdown(a.stack, client, now) == 0);
        FAILS(ackline_tcp_write(a.stack, client, sent, 1, now), ACKLINE_EPIPE);
        CHECK(ackline_tcp_is_flushed(a.stack, client) == 0);
        soon(&a, &b);
        CHECK(news(&a, client) & ACKLINE_FLUSHED);
        CHECK(ackline_tcp_is_flushed(a.stack, client) == 1);
        CHECK(news(&b, server) & ACKLINE_READABLE);
        CHECK(ackline_tcp_read(b.stack, server, got, 1, now) == 0);
        CHECK(ackline_tcp_state(b.stack, server) == ACKLINE_CLOSE_WAIT);
        CHECK(ackline_tcp_write(b.stack, server, (const uint8_t *)"bye", 3, now) == 3);
        CHECK(ackline_socket_close(b.stack, server, now) == 0);
        soon(&a, &b);
        CHECK(news(&a, client) == (ACKLINE_READABLE | ACKLINE_ENDED));
        CHECK(ackline_tcp_read(a.stack, client, got, 10, now) == 3 && memcmp(got, "bye", 3) == 0);
        CHECK(ackline_tcp_read(a.stack, client, got, 10, now) == 0);
        CHECK(ackline_tcp_error(a.stack, client) == 0);
        CHECK(ackline_tcp_state(a.stack, client) == ACKLINE_TIME_WAIT);
        CHECK(ackline_socket_close(a.stack, client, now) == 0);
        soon(&a, &b);
        CHECK(ackline_stack_connections(a.stack) == 0 && ackline_stack_connections(b.stack) == 0);
        end(&a, &b);
    }
}

/* The error says how a connection ended. */
static void endings(void) {
    host a, b;
    ackline_socket near, far;
    uint8_t byte = 0;
    make(&a, &b, A, B);

    near = connect_to(&a, "10.0.0.2:9", NULL);
    CHECK(ackline_tcp_error(a.stack, near) == 0);
    soon(&a, &b);
    CHECK(news(&a, near) & ACKLINE_ENDED);
    CHECK(ackline_tcp_error(a.stack, near) == ACKLINE_ECONNREFUSED);
    FAILS(ackline_tcp_read(a.stack, near, &byte, 1, now), ACKLINE_ECONNREFUSED);
    CHECK(strcmp(ackline_last_error(), "connection refused") == 0);
    CHECK(strcmp(ackline_strerror(ACKLINE_ECONNREFUSED), "connection refused") == 0);
    CHECK(ackline_socket_close(a.stack, near, now) == 0);

    join(&a, &b, &near, &far);
    CHECK(ackline_tcp_abort(b.stack, far, now) == 0);
    soon(&a, &b);
    CHECK(ackline_tcp_error(b.stack, far) == ACKLINE_ECONNABORTED);
    CHECK(news(&a, near) & ACKLINE_ENDED);
    CHECK(ackline_tcp_error(a.stack, near) == ACKLINE_ECONNRESET);
    FAILS(ackline_tcp_write(a.stack, near, &byte, 1, now), ACKLINE_ECONNRESET);
    CHECK(ackline_tcp_state(a.stack, near) == ACKLINE_CLOSED);
    CHECK(ackline_socket_close(a.stack, near, now) == 0);
    CHECK(ackline_socket_close(b.stack, far, now) == 0);

    /* Closing with something unread resets (RFC 9293, section 3.6.1). */
    join(&a, &b, &near, &far);
    CHECK(ackline_tcp_write(a.stack, near, &byte, 1, now) == 1);
    soon(&a, &b);
    CHECK(ackline_socket_close(b.stack, far, now) == 0);
    soon(&a, &b);
    CHECK(ackline_tcp_error(a.stack, near) == ACKLINE_ECONNRESET);
    CHECK(ackline_socket_close(a.stack, near, now) == 0);

    a.cut = 1;
    near = connect_to(&a, "10.0.0.2:7", "syn_retries=1");
    run(&a, &b, now + 10000000000u);
    CHECK(ackline_tcp_error(a.stack, near) == ACKLINE_ETIMEDOUT);
    CHECK(ackline_socket_close(a.stack, near, now) == 0);
    end(&a, &b);
}

static void misuse(void) {
    host a, b;
    ackline_stack *stack = NULL;
    ackline_socket near, far, listener, other = 0;
    ackline_address address = at("10.0.0.2:7"), wrong = address;
    ackline_tcp_info info;
    ackline_event event;
    uint64_t value;
    uint8_t byte = 0;
    char text[4];
    make(&a, &b, A, B);

    FAILS(ackline_stack_new(NULL, transmit, NULL, NULL, &stack), ACKLINE_EFAULT);
    FAILS(ackline_stack_new(A, NULL, NULL, NULL, &stack), ACKLINE_EFAULT);
    FAILS(ackline_stack_new(A, transmit, NULL, NULL, NULL), ACKLINE_EFAULT);
    FAILS(ackline_stack_new("", transmit, NULL, NULL, &stack), ACKLINE_EINVAL);
    FAILS(ackline_stack_new(A ",tx_checksum=partial", transmit, NULL, NULL, &stack), ACKLINE_EINVAL);
    FAILS(ackline_stack_new(A ",cc=cubik", transmit, NULL, NULL, &stack), ACKLINE_EINVAL);
    CHECK(strstr(ackline_last_error(), "did you mean \"cubic\"?") != NULL);
    CHECK(stack == NULL);
    CHECK(ackline_stack_free(NULL) == 0);

    FAILS(ackline_stack_poll(NULL, now, &value), ACKLINE_EFAULT);
    FAILS(ackline_stack_input(a.stack, NULL, 20, now), ACKLINE_EFAULT);
    FAILS(ackline_stack_input(a.stack, &byte, SIZE_MAX, now), ACKLINE_EINVAL);
    CHECK(ackline_stack_input(a.stack, &byte, 1, now) == 0); /* malformed: dropped */
    CHECK(ackline_stack_counter(a.stack, "IpInReceives", &value) == 0 && value == 1);
    FAILS(ackline_stack_counter(a.stack, "IpInReceive", &value), ACKLINE_EINVAL);
    FAILS(ackline_stack_poll(a.stack, UINT64_MAX, &value), ACKLINE_EINVAL);
    CHECK(ackline_stack_poll(a.stack, 0, NULL) == 0);
    FAILS(ackline_stack_events(a.stack, &event, 0), ACKLINE_EINVAL);
    FAILS(ackline_stack_events(a.stack, NULL, 1), ACKLINE_EFAULT);

    FAILS(ackline_address_parse("10.0.0.2", &wrong), ACKLINE_EINVAL);
    FAILS(ackline_address_parse(NULL, &wrong), ACKLINE_EFAULT);
    FAILS(ackline_address_format(&address, text, sizeof text), ACKLINE_EINVAL);
    wrong.version = 7;
    FAILS(ackline_tcp_connect(a.stack, &wrong, NULL, NULL, now, &other), ACKLINE_EINVAL);
    FAILS(ackline_tcp_connect(a.stack, NULL, NULL, NULL, now, &other), ACKLINE_EFAULT);
    FAILS(ackline_tcp_connect(a.stack, &address, NULL, NULL, now, NULL), ACKLINE_EFAULT);
    FAILS(ackline_tcp_connect(a.stack, &address, &address, NULL, now, &other), ACKLINE_EADDRNOTAVAIL);
    FAILS(ackline_tcp_connect(a.stack, &address, NULL, "mtu=1400", now, &other), ACKLINE_EINVAL);
    FAILS(ackline_tcp_connect(a.stack, &address, NULL, "sched=fifo", now, &other), ACKLINE_EINVAL);
    FAILS(ackline_tcp_listen(a.stack, &address, NULL, 0, now, &other), ACKLINE_EADDRNOTAVAIL);
    FAILS(ackline_tcp_listen(b.stack, &address, NULL, 2, now, &other), ACKLINE_EINVAL);
    CHECK(ackline_stack_connections(a.stack) == 0);

    join(&a, &b, &near, &far);
    FAILS(ackline_tcp_read(a.stack, near, &byte, 0, now), ACKLINE_EINVAL);
    FAILS(ackline_tcp_read(a.stack, near, NULL, 1, now), ACKLINE_EFAULT);
    FAILS(ackline_tcp_write(a.stack, near, NULL, 1, now), ACKLINE_EFAULT);
    FAILS(ackline_tcp_write(a.stack, near, &byte, (size_t)-5, now), ACKLINE_EINVAL);
    FAILS(ackline_tcp_set(a.stack, near, "sack=off", now), ACKLINE_EINVAL);
    CHECK(strstr(ackline_last_error(), "these can: cc, ack") != NULL);
    CHECK(ackline_tcp_set(a.stack, near, "cc=hstcp,nagle=off", now) == 0);
    CHECK(ackline_tcp_get_info(a.stack, near, &info, sizeof info) == 0 && strcmp(info.cc, "hstcp") == 0);
    info.snd_mss = 1;
    CHECK(ackline_tcp_get_info(a.stack, near, &info, sizeof info.state) == 0 && info.snd_mss == 1);
    FAILS(ackline_tcp_get_info(a.stack, near, &info, 0), ACKLINE_EINVAL);

    /* Sockets of other kinds, of other stacks, and none. */
    listener = listen_at(&a, "10.0.0.1:1", 0);
    FAILS(ackline_tcp_read(a.stack, listener, &byte, 1, now), ACKLINE_EOPNOTSUPP);
    FAILS(ackline_tcp_accept(a.stack, near, &other, NULL), ACKLINE_EOPNOTSUPP);
    FAILS(ackline_udp_receive(a.stack, near, &byte, 1, NULL, NULL), ACKLINE_EOPNOTSUPP);
    FAILS(ackline_tcp_answer(a.stack, near, now), ACKLINE_EOPNOTSUPP);
    FAILS(ackline_tcp_refuse(a.stack, near, 3, now), ACKLINE_EINVAL);
    FAILS(ackline_tcp_state(a.stack, 0), ACKLINE_EBADF);
    FAILS(ackline_tcp_state(a.stack, near + 77), ACKLINE_EBADF);
    FAILS(ackline_socket_close(a.stack, UINT64_MAX, now), ACKLINE_EBADF);

    /* A closed socket stays closed, whoever has its place. */
    CHECK(ackline_socket_close(a.stack, near, now) == 0);
    FAILS(ackline_socket_close(a.stack, near, now), ACKLINE_EBADF);
    other = connect_to(&a, "10.0.0.2:7", NULL);
    CHECK(other != near);
    FAILS(ackline_tcp_write(a.stack, near, &byte, 1, now), ACKLINE_EBADF);
    FAILS(ackline_tcp_abort(a.stack, near, now), ACKLINE_EBADF);

    /* A clock that goes back stands still. */
    CHECK(ackline_stack_poll(a.stack, 5, &value) == 0 && value > now);

    other = connect_to(&a, "10.0.0.2:7", NULL);
    a.reenters = 1;
    soon(&a, &b);
    CHECK(a.reenters == 0);
    end(&a, &b);
}

/* What happens to a connection before it is accepted is told with its socket. */
static void late_accept(void) {
    host a, b;
    ackline_socket listener, near[2], far[2];
    uint8_t data[4];
    int i;
    make(&a, &b, A, B);
    listener = listen_at(&b, "10.0.0.2:7", 0);
    for (i = 0; i < 2; i++) {
        near[i] = connect_to(&a, "10.0.0.2:7", NULL);
        /* Before it is established: it leaves with the handshake's end. */
        CHECK(ackline_tcp_write(a.stack, near[i], (const uint8_t *)"abc", 3, now) == 3);
        soon(&a, &b);
    }
    CHECK(ackline_tcp_abort(a.stack, near[1], now) == 0);
    soon(&a, &b);
    CHECK(news(&b, listener) == ACKLINE_READABLE);
    for (i = 0; i < 2; i++)
        CHECK(ackline_tcp_accept(b.stack, listener, &far[i], NULL) == 0);
    turn(&b);
    CHECK(news(&b, far[0]) == ACKLINE_READABLE);
    CHECK(ackline_tcp_read(b.stack, far[0], data, sizeof data, now) == 3 && memcmp(data, "abc", 3) == 0);
    CHECK(news(&b, far[1]) & ACKLINE_ENDED);
    CHECK(ackline_tcp_error(b.stack, far[1]) == ACKLINE_ECONNRESET);
    end(&a, &b);
}

/* A callback without room: the packet stays, and the deadline says when to ask again. */
static void full(void) {
    host a, b;
    ackline_socket near, listener, far;
    make(&a, &b, A, B);
    listener = listen_at(&b, "10.0.0.2:7", 0);
    a.full = 1;
    near = connect_to(&a, "10.0.0.2:7", NULL);
    turn(&a);
    CHECK(a.deadline > now && a.deadline <= now + 10000000);
    CHECK(b.first == NULL);
    a.full = 0;
    soon(&a, &b);
    CHECK(news(&a, near) == ACKLINE_WRITABLE);
    CHECK(ackline_tcp_accept(b.stack, listener, &far, NULL) == 0);
    end(&a, &b);
}

static void held_syns(void) {
    host a, b;
    ackline_socket listener, near, syn, other;
    ackline_address local;
    uint8_t byte = 0;
    int how, codes[2];
    make(&a, &b, A, B);
    listener = listen_at(&b, "0.0.0.0:7", ACKLINE_HOLD_SYNS);
    near = connect_to(&a, "10.0.0.2:7", NULL);
    soon(&a, &b);
    CHECK(news(&a, near) == 0); /* nothing has been answered */
    CHECK(news(&b, listener) == ACKLINE_READABLE);
    CHECK(ackline_tcp_accept(b.stack, listener, &syn, NULL) == 0);
    FAILS(ackline_tcp_accept(b.stack, listener, &other, NULL), ACKLINE_EAGAIN);
    CHECK(ackline_tcp_state(b.stack, syn) == ACKLINE_SYN_RECEIVED);
    CHECK(ackline_socket_addresses(b.stack, syn, &local, NULL) == 0 && local.port == 7 && local.ip[3] == 2);
    FAILS(ackline_tcp_read(b.stack, syn, &byte, 1, now), ACKLINE_ENOTCONN);
    CHECK(ackline_tcp_answer(b.stack, syn, now) == 0);
    soon(&a, &b);
    CHECK(news(&a, near) == ACKLINE_WRITABLE);
    CHECK(news(&b, syn) == ACKLINE_WRITABLE);
    CHECK(ackline_tcp_write(b.stack, syn, &byte, 1, now) == 1);
    FAILS(ackline_tcp_answer(b.stack, syn, now), ACKLINE_EOPNOTSUPP);
    soon(&a, &b);
    CHECK(ackline_tcp_read(a.stack, near, &byte, 1, now) == 1);

    codes[0] = ACKLINE_ECONNREFUSED;
    codes[1] = 0;
    for (how = ACKLINE_REFUSE_RST; how <= ACKLINE_REFUSE_SILENTLY; how++) {
        near = connect_to(&a, "10.0.0.2:7", NULL);
        soon(&a, &b);
        CHECK(ackline_tcp_accept(b.stack, listener, &syn, NULL) == 0);
        CHECK(ackline_tcp_refuse(b.stack, syn, how, now) == 0);
        FAILS(ackline_tcp_refuse(b.stack, syn, how, now), ACKLINE_EBADF);
        soon(&a, &b);
        CHECK(ackline_tcp_error(a.stack, near) == codes[how]);
        CHECK(ackline_socket_close(a.stack, near, now) == 0);
        news(&b, listener);
    }
    /* Closing refuses. */
    near = connect_to(&a, "10.0.0.2:7", NULL);
    soon(&a, &b);
    CHECK(ackline_tcp_accept(b.stack, listener, &syn, NULL) == 0);
    CHECK(ackline_socket_close(b.stack, syn, now) == 0);
    soon(&a, &b);
    CHECK(ackline_tcp_error(a.stack, near) == ACKLINE_ECONNREFUSED);

    /* Nobody has answered for too long: the client is told, and so is the program. */
    near = connect_to(&a, "10.0.0.2:7", NULL);
    soon(&a, &b);
    CHECK(ackline_tcp_accept(b.stack, listener, &syn, NULL) == 0);
    run(&a, &b, now + 300000000000u);
    CHECK(news(&b, syn) == ACKLINE_ENDED);
    CHECK(ackline_tcp_error(b.stack, syn) == ACKLINE_ETIMEDOUT);
    CHECK(ackline_tcp_state(b.stack, syn) == ACKLINE_CLOSED);
    FAILS(ackline_tcp_answer(b.stack, syn, now), ACKLINE_ETIMEDOUT);
    CHECK(ackline_socket_close(b.stack, syn, now) == 0);
    end(&a, &b);
}

static void datagrams(void) {
    host a, b;
    ackline_socket near, far;
    ackline_address any = at("0.0.0.0:0"), there = at("10.0.0.2:53"), nobody = at("10.0.0.2:54"), from, to;
    uint8_t data[100], big[3000];
    memset(data, 5, sizeof data);
    memset(big, 6, sizeof big);
    make(&a, &b, A, B);
    CHECK(ackline_udp_bind(a.stack, &any, now, &near) == 0);
    CHECK(ackline_udp_bind(b.stack, &there, now, &far) == 0);
    FAILS(ackline_udp_bind(b.stack, &there, now, &far), ACKLINE_EADDRINUSE);
    FAILS(ackline_udp_send(a.stack, near, data, 1, NULL, now), ACKLINE_ENOTCONN);
    FAILS(ackline_udp_send(a.stack, near, big, sizeof big, &there, now), ACKLINE_EMSGSIZE);
    CHECK(ackline_udp_send(a.stack, near, data, sizeof data, &there, now) == sizeof data);
    CHECK(ackline_udp_send(a.stack, near, NULL, 0, &there, now) == 0);
    soon(&a, &b);
    CHECK(news(&b, far) & ACKLINE_READABLE);
    FAILS(ackline_udp_receive(b.stack, far, big, 99, &from, &to), ACKLINE_EMSGSIZE);
    CHECK(ackline_udp_receive(b.stack, far, big, 100, &from, &to) == 100 && memcmp(big, data, 100) == 0);
    CHECK(from.ip[3] == 1 && to.port == 53);
    CHECK(ackline_udp_receive(b.stack, far, NULL, 0, NULL, NULL) == 0);
    FAILS(ackline_udp_receive(b.stack, far, big, 100, NULL, NULL), ACKLINE_EAGAIN);
    CHECK(ackline_udp_send(b.stack, far, data, 3, &from, now) == 3);
    soon(&a, &b);
    CHECK(ackline_udp_receive(a.stack, near, big, 100, NULL, NULL) == 3);
    FAILS(ackline_tcp_state(a.stack, near), ACKLINE_EOPNOTSUPP);

    CHECK(ackline_udp_connect(a.stack, near, &nobody, now) == 0);
    CHECK(ackline_udp_send(a.stack, near, data, 3, NULL, now) == 3);
    soon(&a, &b);
    CHECK(news(&a, near) & ACKLINE_READABLE);
    FAILS(ackline_udp_receive(a.stack, near, big, 100, NULL, NULL), ACKLINE_ECONNREFUSED);
    CHECK(ackline_socket_close(a.stack, near, now) == 0);
    end(&a, &b);
}

/* The descriptor is readable while there are events, and only then. */
static void descriptor(void) {
    host a, b;
    ackline_socket listener, near;
    ackline_event event;
    struct pollfd ready;
    make(&a, &b, A, B);
    ready.fd = ackline_stack_fd(b.stack);
    ready.events = POLLIN;
    CHECK(ready.fd >= 0 && ackline_stack_fd(b.stack) == ready.fd);
    CHECK(poll(&ready, 1, 0) == 0);
    listener = listen_at(&b, "10.0.0.2:7", 0);
    near = connect_to(&a, "10.0.0.2:7", NULL);
    connect_to(&a, "10.0.0.2:7", NULL);
    turn(&a);
    now += DELAY;
    while (b.first != NULL) {
        packet *p = b.first;
        b.first = p->next;
        CHECK(ackline_stack_input(b.stack, p->data, p->len, now) == 0);
        free(p);
    }
    b.last = &b.first;
    CHECK(ackline_stack_poll(b.stack, now, NULL) == 0);
    CHECK(poll(&ready, 1, 0) == 0);
    now += DELAY;
    turn(&a);
    CHECK(news(&a, near) == ACKLINE_WRITABLE);
    now += DELAY;
    while (b.first != NULL) {
        packet *p = b.first;
        b.first = p->next;
        CHECK(ackline_stack_input(b.stack, p->data, p->len, now) == 0);
        free(p);
    }
    b.last = &b.first;
    CHECK(ackline_stack_poll(b.stack, now, NULL) == 0);
    CHECK(poll(&ready, 1, 0) == 1);
    CHECK(ackline_stack_events(b.stack, &event, 1) == 1 && event.socket == listener);
    CHECK(poll(&ready, 1, 0) == 0);
    /* Asked for when there is something already, it is readable as well. */
    CHECK(ackline_tcp_abort(a.stack, near, now) == 0);
    CHECK(ackline_stack_poll(a.stack, now, NULL) == 0);
    ready.fd = ackline_stack_fd(a.stack);
    CHECK(ready.fd >= 0 && poll(&ready, 1, 0) == 1);
    while (ackline_stack_events(a.stack, &event, 1) == 1)
        ;
    CHECK(poll(&ready, 1, 0) == 0);
    end(&a, &b);
}

/* The same seed and calls give the same packets; and sockets that come and go leave nothing. */
static void repeatable(void) {
    uint64_t hashes[2], start = now;
    int round, i;
    for (round = 0; round < 2; round++) {
        host a, b;
        ackline_socket listener, near, far;
        now = start;
        make(&a, &b, A, B);
        listener = listen_at(&b, "10.0.0.2:7", 0);
        CHECK(ackline_socket_close(b.stack, listener, now) == 0);
        for (i = 0; i < 300; i++) {
            near = connect_to(&a, "10.0.0.2:7", NULL);
            soon(&a, &b);
            CHECK(ackline_socket_close(a.stack, near, now) == 0);
            news(&a, near);
        }
        CHECK(ackline_stack_connections(a.stack) == 0);
        hashes[round] = a.hash;
        join(&a, &b, &near, &far);
        end(&a, &b);
    }
    CHECK(hashes[0] == hashes[1]);
}

static void counters(void) {
    char name[64];
    size_t count = 0;
    while (ackline_counter_name(count, name, sizeof name) > 0)
        count++;
    CHECK(count > 50);
    FAILS(ackline_counter_name(count, name, sizeof name), ACKLINE_EINVAL);
    FAILS(ackline_counter_name(0, name, 3), ACKLINE_EINVAL);
}

int main(void) {
    CHECK(ackline_last_error()[0] == 0);
    streams();
    endings();
    misuse();
    full();
    late_accept();
    held_syns();
    datagrams();
    descriptor();
    repeatable();
    counters();
    puts("all as it should be");
    return 0;
}
