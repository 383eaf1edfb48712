/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "desired/desired.h"
#include "mad_engine/stage.h"
#include "pkeyd/generation.h"
#include "pkeyd/own_port.h"
#include "verify/verify.h"
#include "watch/role.h"

/*
 * This daemon as one of a pair of head nodes (role: follow-sm): who writes, watch/role.h, carried into the daemon.
 *
 * Each pass asks the port, after it has read what it decides by, where the master SM is (head_see). The one that stands by
 * does all that the writer does, but it writes nothing: it reads, plans, compares, remembers which indexes are freed and
 * says when its own policy is not what the fabric has. The writer's apply goes through a guard, a stage around the stage,
 * that asks again and again and ends the apply when the SM is not here any more.
 */
struct daemon;

struct head {
        struct role role;
        char sm_name[96];       /* of the node that the master SM is on; "": not known */
        uint64_t differs;       /* digest of the difference that was said while standing by; 0: none */
};

/* True if the settings in force, or those that are to be, follow the SM. */
bool head_follows(const struct daemon *d);
/* True if pkeyd on this host may write by this generation, as far as the role matters. */
bool head_may_write(const struct daemon *d, const struct generation *g);
/* "writing", "standing by: the master SM is at LID 5 (node head2)". */
void head_describe(const struct daemon *d, char *ret, size_t size);

enum head_step {
        HEAD_GO_ON,      /* what was read can be decided by */
        HEAD_LOOK_AGAIN, /* another SM, or another role, since it was read: begin anew */
        HEAD_WAIT,       /* the other one may still write: begin anew at *ret_at */
};

/* What the port answered, beside the picture; says in the journal when the role changed. full: the picture is of this
 * pass. */
enum head_step head_see(struct daemon *d, const struct port_info *info, bool full, usec_t *ret_at);
/* A local event: the master SM may have moved. */
void head_doubt(struct daemon *d);

/* Standing by: says how tables differ from the policy, once, and again when that changes. Writing: forgets. v was made by g
 * from the picture. */
void head_compare(struct daemon *d, const struct generation *g, const struct verification *v);

/* A stage around `inner` that ends it (`end`) when the master SM is not on this host, or the port does not say: no request
 * leaves it later than ROLE_ASK after the last answer that the SM is here (asked_at, to begin with). Borrows all. */
struct head_guard {
        struct daemon *d;
        struct mad_stage inner;
        struct own_port question;
        struct mad_stage ask;   /* of question */
        uint64_t m_key;
        bool asking;
        usec_t asked_at;
        void (*end)(void *userdata);
        void *userdata;
};
struct mad_stage head_guard_stage(struct head_guard *g);
