/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * All that one run of pkeyctl knows. The context's arena owns every result until the end.
 */

#include <systemd/sd-bus.h>

#include "control/control.h"
#include "session/pkeyctl_options.h"
#include "shell/fabric.h"
#include "shell/opened_port.h"
#include "state/state.h"

enum exit_status {
        EXIT_DONE = 0,       /* done, nothing to do, all equal */
        EXIT_REFUSED = 1,    /* nothing was sent */
        EXIT_DIFFERENCE = 2,
        EXIT_PARTIAL = 3,    /* ports did not answer or refused */
};

/* The exit status if something differs, or if ports could not be read. */
static inline enum exit_status exit_status_of(bool differs, bool is_partial)
{
        if (differs)
                return EXIT_DIFFERENCE;
        return is_partial ? EXIT_PARTIAL : EXIT_DONE;
}

/* How the wait of apply --confirm ended. */
enum wait_end {
        WAIT_NONE,           /* there was none, or it has not ended */
        WAIT_CONFIRMED,      /* elsewhere */
        WAIT_CONFIRMED_HERE, /* on the terminal */
        WAIT_UNDONE,         /* by a pkeyd */
        WAIT_EXPIRED,
        WAIT_INTERRUPTED,
        WAIT_LOST,           /* the store does not have the generation any more */
};

/* Endports of ctx->subnet. */
struct endports {
        uint32_t *ports, n;
};

struct context {
        const struct options *options;
        struct fabric fabric;          /* the one to work on */
        const char *command;           /* its name; "" before it is known */
        char **arguments;              /* after it, NULL at the end; as many as it takes */
        struct arena *arena;
        struct findings findings;
        size_t n_shown;                /* how many of them were printed */

        /* files */
        struct generation *files;      /* a reference; what was read of both files, and the keys that they name */
        const struct settings *settings; /* of it */
        struct plan_options plan_options;
        const struct policy *policy;   /* of it; NULL: none was read */

        /* the fabric (session.h); policy may be absent, then memberships, desired and plan are NULL */
        sd_bus *bus;                   /* owned; NULL: not connected */
        sd_event *event;
        struct control *control;       /* NULL: no sweep was made */
        struct opened_port port;
        struct state state;            /* the state directory */
        bool stage_ended;              /* the stage that runs has ended, with this result */
        int stage_r;
        struct subnet *subnet;         /* this and what follows is control's, or in the arena */
        struct observed *observed;
        struct memberships *memberships;
        struct desired *desired;
        const struct desired *given;   /* what the policy gives frozen ports, too (reconcile.h); NULL with a plan */
        struct plan *plan;
        const struct known *known;     /* endports that pkeyd has seen; NULL: not read */
        const struct pins *pins;       /* by which the policy names nodes; NULL: by the names that they give themselves */
        struct endports selected[2];   /* by the arguments (pipeline.h) */
        struct remembered *remembered; /* owned; what is stored, if the command needs that; NULL: not read */
        bool assume_yes;               /* do not ask, as with --yes */
        bool writing;                  /* writes have begun: "nothing was sent" would be wrong */
        bool is_unanswered;            /* pkeyd has a request, and may have carried it out, or do so later */
        enum wait_end wait_end;
        enum exit_status status;       /* of the result that is shown */
        int output_r;                  /* the first error of output; 0: none */
};

/* A command. Returns an exit status or a negative errno. */
typedef int command_t(struct context *ctx);
