/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One InfiniBand port of this host through libibumad.
 *
 * A umad descriptor need not be one that epoll takes, so receiving is a thread that sits in umad_recv, puts what came into
 * a bounded ring and rings an eventfd.
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

/* GUIDs of all InfiniBand ports of this host, up or down, at most max of them. Returns how many. */
size_t local_port_guids(struct guid *ret, size_t max);

/* Not struct umad_port: that is libibumad's, and means what local_port is here. */
struct mad_port;

/* Registers for LID-routed and directed-route subnet management. Returns 0 or negative errno (-EOPNOTSUPP: the kernel has no
 * ib_umad); *ret owned. */
int umad_port_open(const struct local_port *lp, struct mad_port **ret);
/* Waits (a second at most) until what was sent has been answered or given back. */
struct mad_port *umad_port_close(struct mad_port *p);
DEFINE_CLEANUP(struct mad_port *, umad_port_close)

/* Registers for performance management; for subnet administration, with `listen` for Reports too: they are taken like answers
 * then. Doing it again does nothing. Returns 0 or negative errno (another process of this host takes the Reports: what the
 * kernel says is -EINVAL or -EBUSY). */
int umad_port_use_pma(struct mad_port *p);
int umad_port_use_sa(struct mad_port *p, bool listen);

/* The index in the port's P_Key table of what is sent to QP 1: that of the default partition. 0 until it is set. */
void umad_port_set_p_key_index(struct mad_port *p, unsigned index);

/* Sends now; -ENODEV for a class that is not registered. 0 or negative errno. */
int umad_port_send(struct mad_port *p, const struct mad_frame *frame);

/* Readable (poll it, epoll it) when there is something to take. */
int umad_port_event_fd(const struct mad_port *p);

/* Takes up to max received frames (bytes, length, lid and sl of them); clears the event. Returns how many, 0 if none. */
size_t umad_port_take(struct mad_port *p, struct mad_frame *ret, size_t max);
