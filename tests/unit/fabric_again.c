/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fabric_again ROUNDS ENDPORTS
 *
 * Discovers the fabric and reads every P_Key table, again and again through one struct fabric, as a daemon does for
 * months. Exit status 0 if each round saw ENDPORTS endports and could read all of them.
 */
#include <string.h>

#include "shell/fabric.h"
#include "subnet/survey.h"

static void on_done(int r, void *userdata)
{
        *(int *) userdata = r;
}

static int wait_for(struct fabric *f, int started)
{
        return started < 0 ? started : fabric_wait(f, NULL, NULL);
}

static int one_round(struct fabric *f, uint32_t *ret_ports, uint32_t *ret_unreachable)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct survey_options options = { .retries = 2 };
        struct subnet *subnet = NULL;
        struct observed *observed;
        struct survey *survey;
        struct mad_stage stage;
        int r, told = 1;

        r = wait_for(f, fabric_discover(f, a, &subnet, on_done, &told));
        if (r < 0 || told != 0)
                return r < 0 ? r : -1;
        r = observed_new(a, subnet, &observed);
        r = r < 0 ? r : survey_new(a, observed, &options, &survey);
        if (r < 0)
                return r;
        told = 1;
        stage = survey_stage(survey);
        r = wait_for(f, fabric_run(f, &stage, on_done, &told));
        *ret_ports = 0;
        for (uint32_t i = 0; i < subnet->n_ports; i++)
                *ret_ports += subnet->ports[i].role == PORT_ENDPORT;
        *ret_unreachable = survey_n_unreachable(survey);
        return r < 0 ? r : -told;
}

int main(int argc, char **argv)
{
        struct settings settings = { .timeout = USEC_PER_SEC / 2, .window = 64 };
        uint32_t n_ports = 0, n_unreachable = 0;
        struct fabric *f = NULL;
        sd_event *event = NULL;
        int r, rounds = argc == 3 ? atoi(argv[1]) : 0;

        r = sd_event_new(&event);
        r = r < 0 ? r : fabric_new(event, &settings, &f);
        for (int i = 0; i < rounds && r == 0; i++) {
                r = one_round(f, &n_ports, &n_unreachable);
                if (r == 0 && (n_ports != (uint32_t) atoi(argv[2]) || n_unreachable > 0))
                        r = -1;
                if (r < 0)
                        fprintf(stderr, "fabric_again: round %d: r %d, %u endports, %u unreachable\n", i, r, n_ports,
                                n_unreachable);
        }
        f = fabric_free(f);
        (void) sd_event_unref(event);
        return r == 0 && rounds > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
