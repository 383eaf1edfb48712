/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * port_again ROUNDS ENDPORTS
 *
 * Discovers the fabric and reads every P_Key table, again and again through one port, which is closed and opened now and then,
 * as a daemon does for months. Exit status 0 if each round saw ENDPORTS endports and could read all of them.
 */
#include <string.h>

#include "discovery/discovery.h"
#include "shell/opened_port.h"
#include "subnet/survey.h"

struct loop {
        sd_event *event;
        struct opened_port port;
        bool ended;
        int r;
};

static void on_stage_ended(int r, void *userdata)
{
        struct loop *l = userdata;

        l->r = r;
        l->ended = true;
}

static int run(struct loop *l, const struct mad_stage *stage)
{
        int r = 0;

        l->ended = false;
        port_session_run(l->port.session, stage);
        while (r >= 0 && !l->ended)
                r = sd_event_run(l->event, UINT64_MAX);
        return r < 0 ? r : l->r;
}

static int discover(struct loop *l, struct arena *a, struct subnet **ret)
{
        const struct discovery_config config = { .retries = 2 };
        _cleanup_(discovery_free_p) struct discovery *d = NULL;
        struct mad_stage stage;
        int r;

        r = discovery_new(&config, &d);
        if (r < 0)
                return r;
        stage = discovery_stage(d);
        r = run(l, &stage);
        return r < 0 ? r : discovery_finish(d, a, ret);
}

static int one_round(struct loop *l, uint32_t *ret_ports, uint32_t *ret_unreachable)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct survey_options options = { .retries = 2 };
        struct subnet *subnet = NULL;
        struct observed *observed;
        struct survey *survey;
        struct mad_stage stage;
        int r;

        r = discover(l, a, &subnet);
        r = r < 0 ? r : observed_new(a, subnet, &observed);
        r = r < 0 ? r : survey_new(a, observed, &options, &survey);
        if (r < 0)
                return r;
        stage = survey_stage(survey);
        r = run(l, &stage);
        *ret_ports = *ret_unreachable = 0;
        for (uint32_t i = 0; i < subnet->n_ports; i++) {
                *ret_ports += subnet->ports[i].role == PORT_ENDPORT;
                *ret_unreachable += observed->tables[i].failure != MAD_ANSWERED;
        }
        return r;
}

int main(int argc, char **argv)
{
        const struct settings settings = { .timeout = USEC_PER_SEC / 2, .window = 64 };
        uint32_t n_ports = 0, n_unreachable = 0;
        struct loop l = {};
        const struct port_session_handlers handlers = { .stage_ended = on_stage_ended, .userdata = &l };
        struct control_port opened;
        int r, rounds = argc == 3 ? atoi(argv[1]) : 0;

        r = sd_event_new(&l.event);
        for (int i = 0; i < rounds && r >= 0; i++) {
                if (i % 2 == 0)
                        opened_port_close(&l.port);
                opened_port_open(&l.port, l.event, &settings, &handlers, &opened);
                r = opened.r < 0 ? opened.r : one_round(&l, &n_ports, &n_unreachable);
                if (r == 0 && (n_ports != (uint32_t) atoi(argv[2]) || n_unreachable > 0))
                        r = -1;
                if (r < 0)
                        fprintf(stderr, "port_again: round %d: r %d, %u endports, %u unreachable\n", i, r, n_ports,
                                n_unreachable);
        }
        opened_port_close(&l.port);
        (void) sd_event_unref(l.event);
        return r >= 0 && rounds > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
