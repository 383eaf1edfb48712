/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * bridge NODE NAME: adds an HCA with this name to this kernel (driver/labhca.c), whose port is that of NODE in a running ibsim.
 * It forwards MADs in both directions until SIGTERM, which removes the HCA.
 *
 * A line "QP LID MAD" (the MAD in hexadecimal) on standard input is delivered as a MAD from the port with that LID. The bridge
 * prints each answer to one of those, each answer to a Report, and each MAD that it drops: to queue pair 1 it forwards only
 * MADs with a P_Key of the default partition, because the tables of the other ports certainly have only that one.
 *
 * ibsim answers for all ports, including that of this HCA. The bridge reads the settings of a remote subnet manager for this
 * port from ibsim ten times a second, and after each Set that it forwards.
 */

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "driver/labhca.h"

/* --- ibsim's client protocol: a datagram socket for control, one for MADs ------------------------------------------ */

#define SIM_MAGIC 0xdeadbeefu

enum { SIM_ERROR, SIM_CONNECT, SIM_DISCONNECT, SIM_SET_ISSM = 9 };

struct sim_control {
        uint32_t magic, client, type, length;
        char data[64];
};

struct sim_identity {
        uint32_t id, qp, is_sm;
        char node[32];
};

/* LIDs and queue pairs in network byte order (a LID in the first two bytes). */
struct sim_packet {
        uint32_t dlid, slid, dqp, sqp, status;
        uint64_t length;
        uint8_t mad[256];
};

#define STATUS_LOST 110

/* --- MADs ---------------------------------------------------------------------------------------------------------- */

enum { METHOD = 3, STATUS = 4, HOP_POINTER = 6, TID = 8, ATTRIBUTE = 16, MODIFIER = 20, DATA = 64 };
enum { CLASS_LID_ROUTED = 0x01, CLASS_DIRECTED = 0x81 };
enum { GET = 1, SET = 2, REPORT = 6, RESPONSE = 0x80 };
enum { NODE_DESCRIPTION = 0x10, NODE_INFO = 0x11, PORT_INFO = 0x15, P_KEY_TABLE = 0x16 };

#define P_KEY_DEFAULT 0x7fff

#define OWN_TID   0x4c414200u /* of the bridge's own queries: the low byte is their kind */
#define MAX_ASKS  64
#define REFRESH_MSEC 100
#define BLOCK     32

enum own_question { OWN_NODE_INFO = 0xf0, OWN_DESCRIPTION, OWN_PORT_INFO, OWN_BLOCK = 0 };

struct bridge {
        int control, data, hca;
        uint32_t client;
        struct {
                uint32_t tid_low, id;
                uint8_t mad[12]; /* to detect a Set that requests clients to register again */
        } asks[MAX_ASKS];
        unsigned next_ask;
        struct {
                char text[1024];
                size_t n;
                bool ended;
        } lines;
        uint8_t handed_in[8]; /* TID of the last MAD from standard input */
        struct labhca_setup setup;
        struct labhca_state state, told;
        unsigned n_blocks, n_missing; /* pending answers of the running refresh */
        bool plugged, refreshing, refresh_again, reregister;
};

static volatile sig_atomic_t stopping;

static void on_stop(int signal_number)
{
        (void) signal_number;
        stopping = 1;
}

__attribute__((noreturn)) static void die(const char *what)
{
        fprintf(stderr, "bridge: %s: %s\n", what, strerror(errno));
        exit(1);
}

static uint16_t get16(const uint8_t *p)
{
        return (uint16_t) (p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
        return (uint32_t) get16(p) << 16 | get16(p + 2);
}

static uint64_t get64(const uint8_t *p)
{
        return (uint64_t) get32(p) << 32 | get32(p + 4);
}

static void put32(uint8_t *p, uint32_t v)
{
        for (int i = 0; i < 4; i++)
                p[i] = (uint8_t) (v >> (24 - 8 * i));
}

/* --- connecting ---------------------------------------------------------------------------------------------------- */

/* ibsim counts the NUL after a name as part of it. */
static socklen_t address(struct sockaddr_un *a, const char *kind, long number)
{
        int n;

        *a = (struct sockaddr_un) { .sun_family = AF_UNIX };
        if (number < 0)
                n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 2, "sim:%s", kind);
        else
                n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 2, "sim:%s%ld", kind, number);
        return (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) n + 1);
}

static int bound_socket(const char *kind)
{
        struct sockaddr_un a;
        socklen_t n = address(&a, kind, getpid());
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || bind(fd, (struct sockaddr *) &a, n) < 0)
                die(kind);
        return fd;
}

static void connect_to(int fd, const char *kind, long number)
{
        struct sockaddr_un a;
        socklen_t n = address(&a, kind, number);

        if (connect(fd, (struct sockaddr *) &a, n) < 0)
                die("ibsim does not listen");
}

static void control(struct bridge *b, uint32_t type, void *data, size_t size)
{
        struct sim_control c = { .magic = SIM_MAGIC, .client = b->client, .type = type, .length = (uint32_t) size };

        memcpy(c.data, data, size);
        if (write(b->control, &c, sizeof(c)) != sizeof(c) || read(b->control, &c, sizeof(c)) != sizeof(c))
                die("control of ibsim");
        if (c.type == SIM_ERROR) {
                errno = EPROTO;
                die("ibsim refuses");
        }
        memcpy(data, c.data, size);
}

/* Connects as a subnet manager, because other clients get no requests. */
static void attach(struct bridge *b, const char *node)
{
        struct sim_identity identity = { .id = (uint32_t) getpid(), .is_sm = 1 };

        (void) snprintf(identity.node, sizeof(identity.node), "%s", node);
        b->control = bound_socket("ctl");
        connect_to(b->control, "ctl", -1);
        b->data = bound_socket("in");
        control(b, SIM_CONNECT, &identity, sizeof(identity));
        b->client = identity.id;
        connect_to(b->data, "out", b->client);
        if (fcntl(b->data, F_SETFL, O_NONBLOCK) < 0)
                die("fcntl");
}

/* --- to ibsim ------------------------------------------------------------------------------------------------------ */

static void send_packet(struct bridge *b, const uint8_t *mad, uint32_t dlid, uint32_t dqp, uint32_t sqp)
{
        struct sim_packet p = {
                .dlid = htobe16((uint16_t) dlid), .dqp = htobe32(dqp), .sqp = htobe32(sqp), .length = htobe64(256),
        };

        p.slid = dlid == 0xffff ? 0xffff : 0;
        memcpy(p.mad, mad, sizeof(p.mad));
        if (p.mad[1] == CLASS_DIRECTED)
                p.mad[HOP_POINTER] = 0; /* as ibsim requires; the kernel counts the first hop itself */
        if (write(b->data, &p, sizeof(p)) != sizeof(p) && errno != EAGAIN)
                die("sending to ibsim");
}

static void ask_self(struct bridge *b, uint8_t what, uint16_t attribute, uint32_t modifier)
{
        uint8_t mad[256] = { 1, CLASS_DIRECTED, 1, GET };

        put32(mad + TID + 4, OWN_TID | what);
        mad[ATTRIBUTE + 1] = (uint8_t) attribute;
        put32(mad + MODIFIER, modifier);
        memset(mad + 32, 0xff, 4); /* DrSLID, DrDLID: permissive */
        send_packet(b, mad, 0xffff, 0, 0);
        b->n_missing++;
}

static void refresh(struct bridge *b)
{
        b->refresh_again = false;
        b->refreshing = true;
        b->n_missing = 0;
        ask_self(b, OWN_PORT_INFO, PORT_INFO, 0);
        for (unsigned i = 0; i < b->n_blocks; i++)
                ask_self(b, (uint8_t) (OWN_BLOCK + i), P_KEY_TABLE, i);
}

/* --- to the kernel ------------------------------------------------------------------------------------------------- */

static void send_message(struct bridge *b, const struct labhca_message *m, const char *what)
{
        if (write(b->hca, m, sizeof(*m)) != sizeof(*m))
                die(what);
}

static void send_state(struct bridge *b)
{
        struct labhca_message m = { .type = LABHCA_STATE };

        b->state.reregister = b->reregister;
        b->reregister = false;
        if (memcmp(&b->state, &b->told, sizeof(b->state)) == 0)
                return;
        m.state = b->state;
        b->told = b->state;
        b->told.reregister = 0;
        send_message(b, &m, "state");
}

static void plug(struct bridge *b)
{
        struct labhca_message m = { .type = LABHCA_SETUP, .setup = b->setup };

        send_message(b, &m, "setup");
        b->plugged = true;
        printf("bridge: %s is plugged in\n", b->setup.name);
        fflush(stdout);
}

static void take_block(struct bridge *b, unsigned block, const uint8_t *data)
{
        for (unsigned i = 0; i < BLOCK && block * BLOCK + i < b->setup.n_p_keys; i++)
                b->state.p_keys[block * BLOCK + i] = get16(data + 2 * i);
}

/* An answer to a query of the bridge. */
static void take_own(struct bridge *b, const uint8_t *mad)
{
        const uint8_t *data = mad + DATA;
        uint8_t what = mad[TID + 7];

        if (b->n_missing > 0)
                b->n_missing--;
        if (what == OWN_NODE_INFO) {
                b->setup.node_guid = get64(data + 12);
                b->setup.port_guid = get64(data + 20);
                b->setup.n_p_keys = get16(data + 28);
                if (b->setup.n_p_keys > LABHCA_MAX_P_KEYS)
                        b->setup.n_p_keys = LABHCA_MAX_P_KEYS;
                b->n_blocks = (b->setup.n_p_keys + BLOCK - 1) / BLOCK;
        } else if (what == OWN_DESCRIPTION) {
                memcpy(b->setup.description, data, sizeof(b->setup.description));
        } else if (what == OWN_PORT_INFO) {
                memcpy(b->state.port_info, data, sizeof(b->state.port_info));
        } else if (what < b->n_blocks) {
                take_block(b, what, data);
        }
        if (b->n_missing > 0)
                return;
        if (!b->plugged && b->refreshing)
                plug(b);
        if (b->plugged)
                send_state(b);
}

/* The bit of a Set(PortInfo) that requests clients to register again. */
static void see_set(struct bridge *b, const uint8_t *mad)
{
        if (mad[METHOD] != (SET | RESPONSE) || (mad[1] != CLASS_DIRECTED && mad[1] != CLASS_LID_ROUTED))
                return;
        b->refresh_again = true;
}

static bool answers_ask(struct bridge *b, const uint8_t *mad, uint32_t *ret_id)
{
        for (unsigned i = 0; i < MAX_ASKS; i++)
                if (b->asks[i].id != 0 && memcmp(b->asks[i].mad, mad + TID, 8) == 0) {
                        *ret_id = b->asks[i].id;
                        b->asks[i].id = 0;
                        return true;
                }
        return false;
}

/* From ibsim. */
static void take_packet(struct bridge *b, struct sim_packet *p)
{
        struct labhca_message m = { .type = LABHCA_RECEIVE };
        bool response = p->mad[METHOD] & RESPONSE;

        if (be32toh(p->status) == STATUS_LOST)
                return; /* the kernel has timeouts of its own */
        if (response)
                memset(p->mad + TID, 0, 2); /* where ibsim keeps the client's number */
        if (response && (get32(p->mad + TID + 4) & 0xffffff00u) == OWN_TID && get32(p->mad + TID) == 0) {
                take_own(b, p->mad);
                return;
        }
        see_set(b, p->mad);
        if (p->mad[1] == CLASS_DIRECTED)
                p->mad[HOP_POINTER] = response ? 1 : 0;
        memcpy(m.mad, p->mad, sizeof(m.mad));
        if (response && answers_ask(b, p->mad, &m.id))
                m.type = LABHCA_ANSWER;
        m.qp = p->mad[1] == CLASS_DIRECTED || p->mad[1] == CLASS_LID_ROUTED ? 0 : 1;
        m.p_key = P_KEY_DEFAULT;
        m.remote_qp = be32toh(p->sqp);
        m.slid = be16toh((uint16_t) p->slid);
        if (b->plugged)
                send_message(b, &m, "MAD");
}

static void print_answer(const struct labhca_message *m)
{
        printf("bridge: answer class 0x%02x method 0x%02x status 0x%04x attribute 0x%04x TID 0x%016" PRIx64 " to LID %u\n",
               m->mad[1], m->mad[METHOD], get16(m->mad + STATUS), get16(m->mad + ATTRIBUTE), get64(m->mad + TID),
               m->dlid);
        fflush(stdout);
}

static void carry(struct bridge *b, const struct labhca_message *m)
{
        bool to_line = (m->mad[METHOD] & RESPONSE) && memcmp(m->mad + TID, b->handed_in, sizeof(b->handed_in)) == 0;

        if (m->qp == 1 && (m->p_key & 0x7fff) != P_KEY_DEFAULT) {
                printf("bridge: not carried to LID %u: P_Key 0x%04x\n", m->dlid, m->p_key);
                fflush(stdout);
                return;
        }
        if (to_line || m->mad[METHOD] == (REPORT | RESPONSE))
                print_answer(m);
        if (!to_line)
                send_packet(b, m->mad, m->dlid, m->remote_qp, m->qp);
}

/* From the kernel. */
static void take_message(struct bridge *b, struct labhca_message *m)
{
        int is_sm = (int) m->id;

        switch (m->type) {
        case LABHCA_ISSM:
                control(b, SIM_SET_ISSM, &is_sm, sizeof(is_sm));
                break;
        case LABHCA_ASK:
                memcpy(b->asks[b->next_ask].mad, m->mad + TID, 8);
                b->asks[b->next_ask].id = m->id;
                b->next_ask = (b->next_ask + 1) % MAX_ASKS;
                if (m->mad[METHOD] == SET && get16(m->mad + ATTRIBUTE) == PORT_INFO && (m->mad[DATA + 51] & 0x80))
                        b->reregister = true;
                send_packet(b, m->mad, 0xffff, 0, 0);
                break;
        case LABHCA_SEND:
                carry(b, m);
                break;
        }
}

/* --- lines --------------------------------------------------------------------------------------------------------- */

static void take_line(struct bridge *b, const char *line)
{
        struct labhca_message m = { .type = LABHCA_RECEIVE, .p_key = P_KEY_DEFAULT };
        size_t n = 0;
        int at = 0;

        if (sscanf(line, "%u %u %n", &m.qp, &m.slid, &at) == 2)
                while (n < sizeof(m.mad) && sscanf(line + at + 2 * n, "%2hhx", &m.mad[n]) == 1)
                        n++;
        if (n < sizeof(m.mad)) {
                errno = EINVAL;
                die("line");
        }
        m.remote_qp = m.qp;
        memcpy(b->handed_in, m.mad + TID, sizeof(b->handed_in));
        send_message(b, &m, "MAD of a line");
}

static void read_lines(struct bridge *b)
{
        ssize_t n = read(STDIN_FILENO, b->lines.text + b->lines.n, sizeof(b->lines.text) - 1 - b->lines.n);
        char *end;

        if (n <= 0) {
                b->lines.ended = true;
                return;
        }
        b->lines.n += (size_t) n;
        b->lines.text[b->lines.n] = '\0';
        while ((end = strchr(b->lines.text, '\n'))) {
                *end++ = '\0';
                take_line(b, b->lines.text);
                b->lines.n -= (size_t) (end - b->lines.text);
                memmove(b->lines.text, end, b->lines.n + 1);
        }
}

/* --- the loop ------------------------------------------------------------------------------------------------------ */

static int64_t now_msec(void)
{
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t) t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void drain(struct bridge *b)
{
        struct labhca_message m;
        struct sim_packet p;

        while (read(b->data, &p, sizeof(p)) == sizeof(p))
                take_packet(b, &p);
        while (b->plugged && read(b->hca, &m, sizeof(m)) == sizeof(m))
                take_message(b, &m);
}

static void run(struct bridge *b)
{
        int64_t due = now_msec(), now;

        while (!stopping) {
                struct pollfd fds[] = { { .fd = b->data, .events = POLLIN },
                                        { .fd = b->plugged ? b->hca : -1, .events = POLLIN },
                                        { .fd = b->plugged && !b->lines.ended ? STDIN_FILENO : -1, .events = POLLIN } };

                now = now_msec();
                if ((now >= due || b->refresh_again) && b->n_blocks > 0) {
                        refresh(b);
                        due = now + REFRESH_MSEC;
                }
                if (poll(fds, 3, due > now ? (int) (due - now) : REFRESH_MSEC) < 0 && errno != EINTR)
                        die("poll");
                if (fds[2].revents)
                        read_lines(b);
                drain(b);
        }
}

int main(int argc, char **argv)
{
        struct bridge b = {};
        char nothing[4] = {};
        struct sigaction stop = { .sa_handler = on_stop };

        if (argc != 3) {
                fprintf(stderr, "usage: bridge NODE NAME\n");
                return 1;
        }
        (void) sigaction(SIGTERM, &stop, NULL);
        (void) sigaction(SIGINT, &stop, NULL);
        (void) snprintf(b.setup.name, sizeof(b.setup.name), "%s", argv[2]);
        b.hca = open("/dev/labhca", O_RDWR | O_CLOEXEC);
        if (b.hca < 0)
                die("/dev/labhca");
        attach(&b, argv[1]);
        ask_self(&b, OWN_DESCRIPTION, NODE_DESCRIPTION, 0);
        ask_self(&b, OWN_NODE_INFO, NODE_INFO, 0); /* last, because its answer starts the first refresh */
        run(&b);
        (void) close(b.hca); /* removes the HCA before ibsim drops the client */
        control(&b, SIM_DISCONNECT, nothing, 0);
        printf("bridge: %s is unplugged\n", b.setup.name);
        return 0;
}
