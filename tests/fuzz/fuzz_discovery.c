/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bytes decide which request is answered next, how it ends, and what every answer contains. The first four set
 * limits and the window; after the last byte no request is answered. The walk must end, never have two requests in
 * flight to one destination, stay below the number of requests that the limits allow, and make a consistent snapshot.
 */
#include <errno.h>
#include <infiniband/mad.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/snapshot_rules.h"
#include "discovery/discovery.h"

#define MAX_WAITING 512
#define MAX_TOLD    256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool condition)
{
        if (!condition)
                abort();
}

struct tape {
        const uint8_t *at, *end;
};

/* The NodeInfo that was answered by a route. */
struct told {
        struct mad_route route;
        uint8_t data[MAD_DATA_SIZE];
};

struct fabric {
        struct tape tape;
        struct mad_request waiting[MAX_WAITING];
        unsigned n_waiting, window;
        struct told told[MAX_TOLD];
        unsigned n_told;
        uint64_t n_requests;
};

static uint8_t take(struct tape *t)
{
        return t->at < t->end ? *t->at++ : 0;
}

static bool is_same_route(const struct mad_route *x, const struct mad_route *y)
{
        return x->hops == y->hops && memcmp(x->path, y->path, sizeof(x->path)) == 0;
}

/* Few GUIDs, so that duplicates are frequent. */
static void make_node_info(struct tape *t, uint8_t *data)
{
        static const uint8_t types[] = { NODE_SWITCH, NODE_SWITCH, NODE_SWITCH, NODE_CA, NODE_CA, NODE_ROUTER, 0, 4 };
        uint8_t shape = take(t), guids = take(t);

        mad_set_field(data, 0, IB_NODE_TYPE_F, types[shape & 7]);
        mad_set_field(data, 0, IB_NODE_NPORTS_F, shape >> 3 == 31 ? take(t) : (shape >> 3) % 9);
        mad_set_field64(data, 0, IB_NODE_GUID_F, guids);
        mad_set_field64(data, 0, IB_NODE_PORT_GUID_F, guids & 1 ? take(t) : guids);
        mad_set_field(data, 0, IB_NODE_LOCAL_PORT_F, take(t));
        mad_set_field(data, 0, IB_NODE_PARTITION_CAP_F, guids & 2 ? take(t) : 64);
}

/* A new NodeInfo, or the same as before by this route. */
static void tell_node_info(struct fabric *f, const struct mad_route *route, uint8_t *data)
{
        bool again = take(&f->tape) & 1;

        for (unsigned i = 0; again && i < f->n_told; i++)
                if (is_same_route(&f->told[i].route, route)) {
                        memcpy(data, f->told[i].data, MAD_DATA_SIZE);
                        return;
                }
        make_node_info(&f->tape, data);
        if (f->n_told == MAX_TOLD)
                return;
        f->told[f->n_told].route = *route;
        memcpy(f->told[f->n_told++].data, data, MAD_DATA_SIZE);
}

static void tell_port_info(struct tape *t, uint8_t *data)
{
        uint8_t state = take(t), lid = take(t);

        mad_set_field(data, 0, IB_PORT_PHYS_STATE_F, state & 0x80 ? state & 7 : 5);
        mad_set_field(data, 0, IB_PORT_STATE_F, state >> 3 & 7);
        mad_set_field(data, 0, IB_PORT_LMC_F, lid & 7);
        mad_set_field(data, 0, IB_PORT_LID_F, lid & 0x80 ? 0xbf00u + lid : lid);
        mad_set_field(data, 0, IB_PORT_SMLID_F, lid & 0x40 ? 0xbfff : lid & 0x1f);
        mad_set_field(data, 0, IB_PORT_PART_EN_INB_F, lid & 1);
}

static void answer(struct fabric *f, const struct mad_request *request, struct mad_result *ret)
{
        static const enum mad_outcome outcomes[] = { MAD_TIMED_OUT, MAD_REFUSED, MAD_BUSY, MAD_UNSENT };
        uint8_t how = f->tape.at < f->tape.end ? take(&f->tape) : 0xc0;

        *ret = (struct mad_result) { .cookie = request->cookie };
        if (how >= 0xc0) {
                ret->outcome = outcomes[how & 3];
                ret->mad_status = ret->outcome == MAD_REFUSED ? how & 0x1c : 0;
        } else if (request->attribute == SMP_ATTR_NODE_INFO) {
                tell_node_info(f, &request->route, ret->data);
        } else if (request->attribute == SMP_ATTR_PORT_INFO) {
                tell_port_info(&f->tape, ret->data);
        } else {
                memset(ret->data, take(&f->tape), sizeof(ret->data));
        }
}

static void check_request(const struct fabric *f, const struct mad_request *r)
{
        require(r->mgmt_class == MAD_CLASS_SMP && r->method == MAD_GET && mad_route_is_directed(&r->route));
        require(r->route.hops <= MAD_MAX_HOPS);
        for (unsigned i = 0; i < f->n_waiting; i++)
                require(f->waiting[i].destination != r->destination);
}

static void take_requests(struct fabric *f, const struct mad_stage *stage)
{
        while (f->n_waiting < f->window && stage->next(stage->state, 0, &f->waiting[f->n_waiting])) {
                check_request(f, &f->waiting[f->n_waiting]);
                f->n_waiting++;
                f->n_requests++;
        }
}

static void run(struct fabric *f, struct discovery *d)
{
        struct mad_stage stage = discovery_stage(d);
        struct mad_result result;
        uint64_t done, total;

        while (!stage.done(stage.state)) {
                uint8_t choice = take(&f->tape);
                unsigned i;

                if (!(choice & 0x80) || f->n_waiting == 0)
                        take_requests(f, &stage);
                require(f->n_waiting > 0);
                i = (choice & 0x7f) % f->n_waiting;
                answer(f, &f->waiting[i], &result);
                f->waiting[i] = f->waiting[--f->n_waiting];
                stage.result(stage.state, 0, &result);
        }
        require(f->n_waiting == 0 && !stage.next(stage.state, 0, &f->waiting[0]));
        stage.progress(stage.state, &done, &total);
        require(done == total && done >= f->n_requests);
}

static struct m_keys *make_keys(struct arena *a)
{
        static const char text[] = "0x2 0x1111\n0x4 0x2222\n0x6 0x2222\n0x8 0x0\n";
        struct m_keys *keys = NULL;
        struct findings findings = { .arena = a };

        require(m_keys_parse("m_key", text, sizeof(text) - 1, &findings, &keys) == 0);
        findings_done(&findings);
        return keys;
}

static void check_snapshot(struct discovery *d, struct arena *a, uint32_t max_nodes)
{
        struct subnet *subnet = NULL;
        int r = discovery_finish(d, a, &subnet);

        require(r == 0 || r == -ENODATA || r == -EIO);
        require((r == 0) == (subnet != NULL));
        require(r < 0 || (!snapshot_rules_broken(subnet) && subnet->n_nodes <= max_nodes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        struct fabric *f = calloc(1, sizeof(*f));
        struct discovery_links *links = discovery_links_new();
        struct arena *a = arena_new();
        struct m_keys *keys = make_keys(a);
        struct discovery_config config = { .m_keys = keys, .expected = links, .retries = 1 };
        struct discovery *d;
        uint8_t flags;

        require(f && links);
        f->tape = (struct tape) { data, data + n };
        config.max_nodes = 1u + take(&f->tape) % 64;
        config.max_ports = 1u + 4u * take(&f->tape);
        config.max_hops = take(&f->tape) % (MAD_MAX_HOPS + 1);
        flags = take(&f->tape);
        f->window = flags >> 2 ? flags >> 2 : MAX_WAITING;
        for (unsigned i = flags & 3; i > 0; i--)
                require(discovery_links_set(links, (struct guid) { take(&f->tape) }, (uint8_t) i,
                                            (struct guid) { 2 * i }) == 0);
        require(discovery_new(&config, &d) == 0);
        run(f, d);
        require(f->n_requests <= 1 + 4 * config.max_nodes + 3 * config.max_ports);

        check_snapshot(d, a, config.max_nodes);
        require(discovery_learn_links(d, links) == 0);
        (void) discovery_free(d);
        (void) discovery_links_free(links);
        (void) m_keys_free(keys);
        arena_free(a);
        free(f);
        return 0;
}
