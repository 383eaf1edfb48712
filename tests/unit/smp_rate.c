/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * smp_rate (session|bare) WINDOW N LEAVES HOSTS
 *
 * Asks the hosts of the fabric that check_port_session.sh lays out for the first block of their P_Key tables, N times in all,
 * and prints how long that took. `session` takes the way that pkeyd takes: a stage, the MAD engine, the port with its thread, an
 * event loop. `bare` is the least that any program could do: umad_send and umad_recv in one loop with the same window.
 * Exit status 0 if every answer came and was the expected one.
 */
#include <errno.h>
#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <string.h>

#include "shell/port_session.h"

struct fabric_of_leaves {
        unsigned n, leaves, hosts;
        unsigned asked, answered, wrong;
};

/* The netfile gives leaf L the root's port L, its own port 36 to the root, and host H its port H; we are host 1 of leaf 1. */
static struct mad_request question(const struct fabric_of_leaves *f, unsigned i)
{
        unsigned leaf = 1 + i % f->leaves, host = 1 + i / f->leaves % f->hosts;
        struct mad_request q = {
                .destination = leaf * 64 + host,
                .cookie = i,
                .method = MAD_GET,
                .attribute = SMP_ATTR_P_KEY_TABLE,
                .retries = 2,
        };

        if (leaf == 1)
                q.route = (struct mad_route) { .hops = 2, .path = { 0, 1, (uint8_t) host } };
        else
                q.route = (struct mad_route) { .hops = 4, .path = { 0, 1, 36, (uint8_t) leaf, (uint8_t) host } };
        if (leaf == 1 && host == 1)
                q.route = (struct mad_route) { .hops = 0 };
        return q;
}

/* ibsim's endports begin with the default partition, as full members, and nothing else. */
static bool is_as_expected(const uint8_t data[SMP_DATA_SIZE])
{
        struct p_key keys[P_KEY_BLOCK_ENTRIES];

        p_key_block_decode(data, keys);
        for (size_t i = 1; i < P_KEY_BLOCK_ENTRIES; i++)
                if (keys[i].v != 0)
                        return false;
        return keys[0].v == 0xffff;
}

static bool next(void *state, usec_t now, struct mad_request *ret)
{
        struct fabric_of_leaves *f = state;

        (void) now;
        if (f->asked == f->n)
                return false;
        *ret = question(f, f->asked++);
        return true;
}

static void take_result(void *state, usec_t now, const struct mad_result *result)
{
        struct fabric_of_leaves *f = state;

        (void) now;
        f->answered++;
        if (result->outcome != MAD_ANSWERED || !is_as_expected(result->data))
                f->wrong++;
}

static bool is_done(const void *state)
{
        const struct fabric_of_leaves *f = state;

        return f->answered == f->n;
}

static void progress(const void *state, uint64_t *ret_done, uint64_t *ret_total)
{
        const struct fabric_of_leaves *f = state;

        *ret_done = f->answered;
        *ret_total = f->n;
}

static void on_done(int r, void *userdata)
{
        (void) sd_event_exit(userdata, r < 0 ? 1 : 0);
}

static int run_session(struct fabric_of_leaves *f, const struct local_port *lp, unsigned window)
{
        struct mad_stage stage = { .state = f, .next = next, .result = take_result, .done = is_done, .progress = progress };
        const struct settings settings = { .window = window, .timeout = USEC_PER_SEC / 2 };
        struct port_session_handlers handlers = { .stage_ended = on_done };
        struct port_session *session = NULL;
        struct mad_engine_counters c;
        sd_event *event = NULL;
        int r;

        r = sd_event_new(&event);
        handlers.userdata = event;
        r = r < 0 ? r : port_session_open(event, lp, &settings, &handlers, &session);
        if (r == 0) {
                port_session_run(session, &stage);
                r = sd_event_loop(event);
        }
        if (r == 0) {
                port_session_get_counters(session, &c);
                printf("sent %" PRIu64 ", retried %" PRIu64 ", stray %" PRIu64 ", malformed %" PRIu64 ", window %u\n",
                       c.sent, c.retried, c.stray, c.malformed, c.window);
        }
        (void) port_session_close(session);
        (void) sd_event_unref(event);
        return r;
}

static int run_bare(struct fabric_of_leaves *f, const struct local_port *lp, unsigned window)
{
        int fd = umad_open_port(lp->ca, (int) lp->port), agent, length, r = 0;
        _cleanup_free_ void *umad = umad_alloc(1, umad_size() + MAD_SIZE);
        struct mad_frame frame;
        struct mad_request q;

        agent = fd < 0 ? fd : umad_register(fd, IB_SMI_DIRECT_CLASS, 1, 0, NULL);
        if (agent < 0 || !umad)
                return -EIO;
        while (f->answered < f->n && r >= 0) {
                while (f->asked - f->answered < window && next(f, 0, &q)) {
                        mad_request_encode(&q, f->asked, &frame);
                        (void) umad_set_addr(umad, 0xffff, 0, 0, 0);
                        memcpy(umad_get_mad(umad), frame.mad, MAD_SIZE);
                        r = umad_send(fd, agent, umad, MAD_SIZE, 500, 0);
                        if (r < 0)
                                return r;
                }
                length = MAD_SIZE;
                r = umad_recv(fd, umad, &length, 5000);
                f->answered++;
                if (r < 0 || umad_status(umad) != 0 || !is_as_expected((uint8_t *) umad_get_mad(umad) + 64))
                        f->wrong++;
        }
        (void) umad_unregister(fd, agent);
        (void) umad_close_port(fd);
        return MIN(r, 0);
}

int main(int argc, char **argv)
{
        struct fabric_of_leaves f = {};
        struct local_port lp;
        usec_t start;
        int r;

        if (argc != 6) {
                fprintf(stderr, "usage: smp_rate session|bare WINDOW N LEAVES HOSTS\n");
                return 1;
        }
        f.n = (unsigned) atoi(argv[3]);
        f.leaves = (unsigned) atoi(argv[4]);
        f.hosts = (unsigned) atoi(argv[5]);
        r = local_port_find(NULL, 0, &lp);
        if (r < 0) {
                fprintf(stderr, "smp_rate: no port: %s\n", strerror(-r));
                return 1;
        }
        start = clock_now();
        r = (strcmp(argv[1], "bare") == 0 ? run_bare : run_session)(&f, &lp, (unsigned) atoi(argv[2]));
        printf("%s: r %d, asked %u, answered %u, wrong %u, %" PRIu64 " us\n", argv[1], r, f.asked, f.answered, f.wrong,
               clock_now() - start);
        return r == 0 && f.answered == f.n && f.wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
