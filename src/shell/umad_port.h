/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One InfiniBand port of this host through libibumad.
 *
 * A umad descriptor need not be one that epoll takes, so receiving is a thread that sits in umad_recv, puts what came into
 * a bounded ring and rings an eventfd. Opened for a pass, closed after it: libibnetdisc needs the agents for itself.
 */

#include "ib/smp.h"
#include "shell/shell.h"
#include "util/cleanup.h"

#define CA_NAME_SIZE 64

/* Which port of this host. */
struct local_port {
        char ca[CA_NAME_SIZE];
        unsigned port;
        struct guid port_guid;
        struct lid lid, sm_lid;
        enum port_state state;
};

/* Finds the port: ca NULL and port 0 mean the first InfiniBand port that is ACTIVE, else ARMED, else INIT. Returns 0,
 * -ENODEV (no such device, or none with an InfiniBand link layer), -ENETDOWN (there is one, but its link is down: *ret is
 * filled), -EACCES, or what the system said. */
int local_port_find(const char *ca, unsigned port, struct local_port *ret);

/* Not struct umad_port: that is libibumad's, and means what local_port is here. */
struct smi_port;

/* Registers for LID-routed and directed-route subnet management. Returns 0 or negative errno; *ret owned. */
int umad_port_open(const struct local_port *lp, struct smi_port **ret);
/* Waits (a second at most) until what was sent has been answered or given back. */
struct smi_port *umad_port_close(struct smi_port *p);
DEFINE_CLEANUP(struct smi_port *, umad_port_close)

/* To be called after another library (libibnetdisc) used the port and closed it, while nobody else has it open. Under
 * ibsim's preload library a close gives back only one of a descriptor's agents, and registering a class twice loses the
 * first agent; without this, a process could discover 32 times. A kernel knows no agent on a descriptor that was just
 * opened, so on a real port this does nothing. */
void umad_port_settle(const struct local_port *lp);

/* Sends now. 0 or negative errno. */
int umad_port_send(struct smi_port *p, const struct mad_frame *frame);

/* Readable (poll it, epoll it) when there is something to take. */
int umad_port_event_fd(const struct smi_port *p);

/* Takes up to max received frames; clears the event. Returns how many, 0 if none. */
size_t umad_port_take(struct smi_port *p, struct mad_frame *ret, size_t max);
