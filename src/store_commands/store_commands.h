/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * store_commands/: the commands that show or change what pkeyd has stored.
 *
 *     command_history   the policies that came into force, and what each of them changed
 *     command_pins      names bound to nodes: who has them, who claims them; accept and drop
 *     command_replace   moves the name of a node to the one that replaced it, and the GUIDs in the policy with it
 *     command_forget    vouches for ports that do not answer
 *     command_store     moves what is stored to another kind of store
 *     command_show_held what waits because of what is known, and of what is not
 *     explain_since     since when a membership has been what it is, from the stored generations
 *     store_change      changes what is stored
 *     vouches           ports for which a person vouches
 *
 * Reading takes no lock. A change is made under the lock, to what is stored then: pkeyd or another command may have stored
 * something while a person was thinking. It is committed as one transaction or not at all, and a running pkeyd finds it when it
 * locks the store. What cannot be read of a damaged store is shown as damaged; nothing is guessed.
 *
 * This folder writes no tables, and it does not know the other commands, what the records look like (records/), and where they are
 * (state/state.h).
 */

#include "session/output.h"
#include "session/session.h"

command_t command_history, command_history_show, command_history_diff, command_history_policy;
command_t command_pins, command_pin_accept, command_pin_drop, command_replace;
command_t command_forget, command_show_vouches, command_show_held;
command_t command_store_copy;

#define MAX_FORGET 64 /* arguments */

/* The tables that `forget` reads (session.h). */
int forget_choose(struct context *ctx, const uint32_t **ret, uint32_t *ret_n);

/* Reads "0x" and up to 16 hex digits. Returns 0, or -EBADMSG with a finding. */
int guid_argument(struct context *ctx, const char *text, struct guid *ret);
/* The node with this GUID, or with this GUID of a port; SUBNET_NONE: there is none. */
uint32_t find_node_of(const struct subnet *s, struct guid guid);

/* Since which generation a port has been what it is now in a partition. */
struct since {
        uint64_t generation; /* 0: not known */
        bool or_earlier;     /* the generations before it are not stored, or are too many */
};

struct explain_since {
        uint64_t in_force;   /* the newest generation; 0: none is stored */
        bool is_in_force;    /* its policy is the one at hand */
        struct since *items; /* n_ports for each partition; NULL: not known */
        uint32_t n_ports;
};

/* For n endports, from the stored generations and the present fabric; nothing without a store. Returns 0 or -ENOMEM. */
int explain_find_since(struct context *ctx, const uint32_t *ports, uint32_t n, struct explain_since *ret);
