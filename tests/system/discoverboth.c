/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * discoverboth [--once] [--window N] [--retries N] [--neighbors FILE]
 *
 * Discovers the fabric with pkeyd's discovery and with libibnetdisc, and compares the two snapshots member by member.
 * Directed routes may differ; NodeInfo is queried by each route of the walk. Prints the differences, then one JSON
 * object with sizes and times. Exit status 0: no difference, 1: differences, 2: failed.
 *
 * --once: no libibnetdisc. --neighbors: the links in OpenSM's file must be those that the walk found.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "discovery/discovery.h"
#include "netdisc_reader.h"
#include "shell/file.h"
#include "shell/port_session.h"

#define MAX_SHOWN 40

struct options {
        bool once;
        unsigned window;
        uint8_t retries;
        const char *neighbors;
};

struct times {
        double wall, cpu;
};

static unsigned n_differences;

#define DIFFERS(...)                                                                                                   \
        do {                                                                                                           \
                if (n_differences++ < MAX_SHOWN) {                                                                     \
                        printf(__VA_ARGS__);                                                                           \
                        putchar('\n');                                                                                 \
                }                                                                                                      \
        } while (0)

static double seconds(const struct timespec *t)
{
        return (double) t->tv_sec + (double) t->tv_nsec / 1e9;
}

static struct times now(void)
{
        struct timespec wall, cpu;

        (void) clock_gettime(CLOCK_MONOTONIC, &wall);
        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
        return (struct times) { seconds(&wall), seconds(&cpu) };
}

static struct times since(struct times then)
{
        struct times t = now();

        return (struct times) { t.wall - then.wall, t.cpu - then.cpu };
}

/* Not getrusage(), which includes the memory of the parent process before exec. */
static long peak_memory_kb(void)
{
        FILE *f = fopen("/proc/self/status", "re");
        char line[256];
        long kb = 0;

        while (f && fgets(line, sizeof(line), f))
                if (sscanf(line, "VmHWM: %ld", &kb) == 1)
                        break;
        if (f)
                (void) fclose(f);
        return kb;
}

/* --- the walk -------------------------------------------------------------------------------------------------------- */

static sd_event *event;
static struct port_session *session;

static void on_stage_ended(int r, void *userdata)
{
        *(int *) userdata = r;
        (void) sd_event_exit(event, 0);
}

static int run(const struct local_port *lp, unsigned window, const struct mad_stage *stage)
{
        struct settings settings = { .timeout = USEC_PER_SEC / 2, .window = window };
        int r, ended = -ECANCELED;
        struct port_session_handlers handlers = { .stage_ended = on_stage_ended, .userdata = &ended };

        r = sd_event_new(&event);
        r = r < 0 ? r : port_session_open(event, lp, &settings, &handlers, &session);
        if (r == 0) {
                port_session_run(session, stage);
                r = sd_event_loop(event);
        }
        return r < 0 ? r : ended;
}

/* Under ibsim a process has one agent per management class, so the port is closed before libibnetdisc opens it. */
static void hang_up(void)
{
        session = port_session_close(session);
        event = sd_event_unref(event);
}

static int walk(const struct local_port *lp, const struct options *o, struct arena *a, struct discovery_links *links,
                struct subnet **ret)
{
        struct discovery_config config = { .retries = o->retries, .local_port = lp->port_guid };
        _cleanup_(discovery_free_p) struct discovery *d = NULL;
        struct mad_stage stage;
        int r;

        r = discovery_new(&config, &d);
        if (r < 0)
                return r;
        stage = discovery_stage(d);
        r = run(lp, o->window, &stage);
        r = r < 0 ? r : discovery_finish(d, a, ret);
        return r < 0 ? r : discovery_learn_links(d, links);
}

/* --- routes ---------------------------------------------------------------------------------------------------------- */

struct trial {
        const struct subnet *subnet;
        uint32_t next, n_ended;
};

static bool trial_next(void *state, usec_t now, struct mad_request *ret)
{
        struct trial *t = state;
        const struct subnet_port *p;

        (void) now;
        if (t->next == t->subnet->n_by_port_guid)
                return false;
        p = &t->subnet->ports[t->subnet->by_port_guid[t->next]];
        *ret = (struct mad_request) {
                .route = p->route, .destination = t->next, .cookie = t->next, .method = MAD_GET,
                .attribute = SMP_ATTR_NODE_INFO, .retries = STAGE_RETRIES,
        };
        t->next++;
        return true;
}

static void trial_result(void *state, usec_t now, const struct mad_result *result)
{
        struct trial *t = state;
        const struct subnet_port *p = &t->subnet->ports[t->subnet->by_port_guid[result->cookie]];
        struct node_info info;

        (void) now;
        t->n_ended++;
        node_info_decode(result->data, &info);
        if (result->outcome != MAD_ANSWERED)
                DIFFERS("0x%016" PRIx64 ": no answer by its route", p->guid.v);
        else if (info.port_guid.v != p->guid.v || info.node_guid.v != subnet_port_node(t->subnet, p)->guid.v)
                DIFFERS("0x%016" PRIx64 ": its route leads to 0x%016" PRIx64, p->guid.v, info.port_guid.v);
}

static bool trial_done(const void *state)
{
        const struct trial *t = state;

        return t->n_ended == t->subnet->n_by_port_guid;
}

static int try_routes(const struct local_port *lp, unsigned window, const struct subnet *subnet)
{
        struct trial t = { .subnet = subnet };
        struct mad_stage stage = { .state = &t, .next = trial_next, .result = trial_result, .done = trial_done };

        return run(lp, window, &stage);
}

/* --- comparison ------------------------------------------------------------------------------------------------------ */

#define COMPARE(what, x, y, where)                                                                                     \
        do {                                                                                                           \
                if ((x) != (y))                                                                                        \
                        DIFFERS("0x%016" PRIx64 ": " what " is 0x%" PRIx64 ", to libibnetdisc 0x%" PRIx64, where,      \
                                (uint64_t) (x), (uint64_t) (y));                                                       \
        } while (0)

static void compare_node(const struct subnet_node *x, const struct subnet_node *y)
{
        COMPARE("type", x->type, y->type, x->guid.v);
        COMPARE("num_ports", x->num_ports, y->num_ports, x->guid.v);
        COMPARE("partition_cap", x->partition_cap, y->partition_cap, x->guid.v);
        COMPARE("partition_enforcement_cap", x->partition_enforcement_cap, y->partition_enforcement_cap, x->guid.v);
        COMPARE("inbound_enforcement_cap", x->inbound_enforcement_cap, y->inbound_enforcement_cap, x->guid.v);
        COMPARE("outbound_enforcement_cap", x->outbound_enforcement_cap, y->outbound_enforcement_cap, x->guid.v);
        for (size_t i = 0; i < ELEMENTS(x->silent_ports); i++)
                COMPARE("a word of silent_ports", x->silent_ports[i], y->silent_ports[i], x->guid.v);
        if (strcmp(x->description, y->description) != 0 || strcmp(x->name, y->name) != 0 ||
            strcmp(x->device, y->device) != 0)
                DIFFERS("0x%016" PRIx64 ": \"%s\", to libibnetdisc \"%s\"", x->guid.v, x->description, y->description);
        if (x->incomplete)
                DIFFERS("0x%016" PRIx64 ": incomplete", x->guid.v);
}

static void compare_port(const struct subnet *s, const struct subnet_port *x, const struct subnet_port *y)
{
        uint64_t where = subnet_port_node(s, x)->guid.v << 8 | x->number; /* the upper byte of all GUIDs is the same */

        COMPARE("node", x->node, y->node, where);
        COMPARE("number", x->number, y->number, where);
        COMPARE("peer", x->peer, y->peer, where);
        COMPARE("role", x->role, y->role, where);
        COMPARE("state", x->state, y->state, where);
        COMPARE("guid", x->guid.v, y->guid.v, where);
        COMPARE("lid", x->lid.v, y->lid.v, where);
        COMPARE("lmc", x->lmc, y->lmc, where);
        COMPARE("enforce_inbound", x->enforce_inbound, y->enforce_inbound, where);
        COMPARE("enforce_outbound", x->enforce_outbound, y->enforce_outbound, where);
        COMPARE("destination", x->destination, y->destination, where);
        COMPARE("LID of the route", x->route.lid.v, y->route.lid.v, where);
}

static void compare_indexes(const char *what, const uint32_t *x, uint32_t n_x, const uint32_t *y, uint32_t n_y)
{
        if (n_x != n_y || memcmp(x, y, n_x * sizeof(*x)) != 0)
                DIFFERS("%s differs", what);
}

static void compare(const struct subnet *x, const struct subnet *y)
{
        COMPARE("n_nodes", x->n_nodes, y->n_nodes, UINT64_C(0));
        COMPARE("n_ports", x->n_ports, y->n_ports, UINT64_C(0));
        for (uint32_t i = 0; i < MIN(x->n_nodes, y->n_nodes); i++) {
                COMPARE("guid", x->nodes[i].guid.v, y->nodes[i].guid.v, (uint64_t) i);
                compare_node(&x->nodes[i], &y->nodes[i]);
        }
        for (uint32_t i = 0; i < MIN(x->n_ports, y->n_ports); i++)
                compare_port(x, &x->ports[i], &y->ports[i]);
        compare_indexes("by_name", x->by_name, x->n_by_name, y->by_name, y->n_by_name);
        compare_indexes("by_port_guid", x->by_port_guid, x->n_by_port_guid, y->by_port_guid, y->n_by_port_guid);
        COMPARE("self", x->self, y->self, UINT64_C(0));
        COMPARE("sm", x->sm, y->sm, UINT64_C(0));
        COMPARE("sm_lid", x->sm_lid.v, y->sm_lid.v, UINT64_C(0));
        COMPARE("n_conflicts_all", x->n_conflicts_all, 0u, UINT64_C(0));
        COMPARE("truncated", x->truncated, false, UINT64_C(0));
}

/* Counts directed routes that are longer than libibnetdisc's; by how many hops at most. */
static void compare_hops(const struct subnet *x, const struct subnet *y, unsigned *ret_n, int *ret_most)
{
        for (uint32_t i = 0; i < MIN(x->n_ports, y->n_ports); i++) {
                int more = (int) x->ports[i].route.hops - (int) y->ports[i].route.hops;

                *ret_n += more > 0;
                *ret_most = MAX(*ret_most, more);
        }
}

static void count_gaps(const struct subnet *s, unsigned *ret_silent, unsigned *ret_incomplete)
{
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                *ret_incomplete += s->nodes[i].incomplete;
                for (unsigned number = 1; number <= s->nodes[i].num_ports; number++)
                        *ret_silent += subnet_port_is_silent(&s->nodes[i], (uint8_t) number);
        }
}

/* --- OpenSM's neighbors ---------------------------------------------------------------------------------------------- */

/* Reads a line with scanf; counts the links that the walk found as well. */
static void compare_line(const struct discovery_links *found, const struct discovery_links *parsed, const char *line,
                         uint32_t *n)
{
        unsigned number, peer_number;
        struct guid guid, peer, walked;

        if (sscanf(line, "%" SCNx64 ":%u %" SCNx64 ":%u", &guid.v, &number, &peer.v, &peer_number) != 4)
                return;
        if (discovery_links_get(parsed, guid, (uint8_t) number).v != peer.v)
                DIFFERS("0x%016" PRIx64 ":%u was read wrongly", guid.v, number);
        walked = discovery_links_get(found, guid, (uint8_t) number);
        *n += walked.v == peer.v;
        if (walked.v != 0 && walked.v != peer.v)
                DIFFERS("0x%016" PRIx64 ":%u leads to 0x%016" PRIx64 ", to OpenSM to 0x%016" PRIx64, guid.v, number,
                        walked.v, peer.v);
}

static int compare_neighbors(const struct discovery_links *found, const char *path, uint32_t *ret_n)
{
        _cleanup_(discovery_links_free_p) struct discovery_links *parsed = discovery_links_new();
        _cleanup_arena_ struct arena *a = arena_new();
        const char *bytes, *line;
        uint32_t n_ignored;
        size_t n;
        int r;

        if (!parsed || !a)
                return -ENOMEM;
        r = file_read(a, path, DISCOVERY_MAX_NEIGHBORS_SIZE, &bytes, &n);
        r = r < 0 ? r : discovery_links_add_neighbors(parsed, bytes, n, &n_ignored);
        if (r < 0)
                return r;
        if (n_ignored > 0)
                DIFFERS("%s: %u lines are no links", path, n_ignored);
        for (line = bytes; *line; line = strchrnul(line, '\n'), line += *line == '\n')
                if (*line != '\n')
                        compare_line(found, parsed, line, ret_n);
        return 0;
}

/* --- main ------------------------------------------------------------------------------------------------------------ */

struct measured {
        struct times walk, netdisc;
        struct mad_engine_counters counters;
        long memory_kb; /* peak, after the walk */
};

/* libibnetdisc is second, because it does not free its agents. */
static int discover(const struct options *o, struct arena *a, struct discovery_links *links, struct subnet **ret_walked,
                    struct subnet **ret_read, struct measured *ret)
{
        struct local_port lp;
        struct times began;
        int r;

        r = local_port_find(NULL, 0, &lp);
        if (r < 0)
                return r;
        began = now();
        r = walk(&lp, o, a, links, ret_walked);
        ret->walk = since(began);
        ret->memory_kb = peak_memory_kb();
        if (session)
                port_session_get_counters(session, &ret->counters);
        hang_up();
        r = r < 0 ? r : try_routes(&lp, o->window, *ret_walked);
        hang_up();
        if (r < 0 || o->once)
                return r;
        began = now();
        r = netdisc_read(a, lp.ca, lp.port, ret_read);
        ret->netdisc = since(began);
        return r;
}

static int parse(int argc, char **argv, struct options *ret)
{
        *ret = (struct options) { .window = 128, .retries = STAGE_RETRIES };
        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "--once") == 0)
                        ret->once = true;
                else if (strcmp(argv[i], "--window") == 0 && i + 1 < argc)
                        ret->window = (unsigned) atoi(argv[++i]);
                else if (strcmp(argv[i], "--retries") == 0 && i + 1 < argc)
                        ret->retries = (uint8_t) atoi(argv[++i]);
                else if (strcmp(argv[i], "--neighbors") == 0 && i + 1 < argc)
                        ret->neighbors = argv[++i];
                else
                        return -EINVAL;
        }
        return 0;
}

int main(int argc, char **argv)
{
        _cleanup_(discovery_links_free_p) struct discovery_links *links = discovery_links_new();
        _cleanup_arena_ struct arena *a = arena_new();
        struct subnet *walked = NULL, *read = NULL;
        struct measured m = {};
        unsigned n_longer = 0, n_silent = 0, n_incomplete = 0;
        uint32_t n_cables = 0;
        struct options o;
        int r, most = 0;

        r = parse(argc, argv, &o);
        if (r < 0 || !a || !links) {
                fprintf(stderr, "usage: discoverboth [--once] [--window N] [--retries N] [--neighbors FILE]\n");
                return 2;
        }
        r = discover(&o, a, links, &walked, &read, &m);
        if (r == 0 && o.neighbors)
                r = compare_neighbors(links, o.neighbors, &n_cables);
        if (r < 0) {
                fprintf(stderr, "discoverboth: %s\n", strerror(-r));
                return 2;
        }
        if (read) {
                compare(walked, read);
                compare_hops(walked, read, &n_longer, &most);
        }
        count_gaps(walked, &n_silent, &n_incomplete);
        printf("{\"nodes\": %u, \"ports\": %u, \"silent\": %u, \"incomplete\": %u, ", walked->n_nodes, walked->n_ports,
               n_silent, n_incomplete);
        printf("\"smps\": %" PRIu64 ", \"wall\": %.3f, \"cpu\": %.3f, \"memory_kb\": %ld, ",
               m.counters.sent, m.walk.wall, m.walk.cpu, m.memory_kb);
        printf("\"netdisc_wall\": %.3f, \"netdisc_cpu\": %.3f, \"longer\": %u, \"hops_longer\": %d, \"cables\": %u, "
               "\"differences\": %u}\n", m.netdisc.wall, m.netdisc.cpu, n_longer, most, n_cables, n_differences);
        return n_differences > 0 ? 1 : 0;
}
