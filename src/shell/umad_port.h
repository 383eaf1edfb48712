/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One InfiniBand port of this host through libibumad.
 *
 * A umad descriptor need not work with epoll, so a thread receives: it blocks in umad_recv(), puts MADs into a bounded ring and
 * writes to an eventfd.
 */

#include "ib/smp.h"
#include "shell/shell.h"
#include "util/findings.h"
#include "util/macros.h"

#define CA_NAME_SIZE 64

/* A port of this host. */
struct local_port {
        char ca[CA_NAME_SIZE];
        unsigned port;
        struct guid port_guid;
        struct lid lid, sm_lid;
        enum port_state state;
        unsigned n_choices; /* how many ports local_port_find() chose from, up or down */
};

/* Finds a port. With ca NULL or port 0, any device or any port will do: the first that is ACTIVE, else ARMED, else INIT. Returns 0,
 * -ENODEV (no such port, or none with an InfiniBand link layer), -ENETDOWN (its link is down; *ret is filled), or another negative
 * errno. */
int local_port_find(const char *ca, unsigned port, struct local_port *ret);
/* Adds that there is no such port. Returns -EBADMSG or -ENOMEM. */
int local_port_complain(const char *ca, unsigned port, struct findings *findings);

/* Writes the GUIDs of all InfiniBand ports of this host, up or down, at most max. Returns their number. */
size_t local_port_guids(struct guid *ret, size_t max);

/* An open port. The name struct umad_port belongs to libibumad. */
struct mad_port;

/* Opens the port and registers for LID-routed and directed-route subnet management. Returns 0 or negative errno (-EOPNOTSUPP: the
 * kernel has no ib_umad); *ret owned. */
int umad_port_open(const struct local_port *lp, struct mad_port **ret);
/* Claims the port until it is closed: no other pkeyd of this host may serve it by another policy. Returns 0 (also if the device
 * cannot be locked, as in a simulation) or -EBUSY. */
int umad_port_claim(const struct mad_port *p);
/* Waits until all requests were answered or timed out, at most a second. */
struct mad_port *umad_port_close(struct mad_port *p);
DEFINE_CLEANUP(struct mad_port *, umad_port_close)

/* Register for performance management, and for subnet administration; with `listen` for Reports, too, which umad_port_take()
 * returns like answers. A second call does nothing. Return 0 or negative errno (-EINVAL, -EBUSY: another process of this host gets
 * the Reports). */
int umad_port_use_pma(struct mad_port *p);
int umad_port_use_sa(struct mad_port *p, bool listen);

/* Sets the index in the port's P_Key table for MADs to QP 1, which must be that of the default partition. 0 until it is set. */
void umad_port_set_p_key_index(struct mad_port *p, unsigned index);

/* Sends at once. Returns 0 or negative errno; -ENODEV: the frame's class is not registered. */
int umad_port_send(struct mad_port *p, const struct mad_frame *frame);

/* A descriptor that is readable while there are received frames. Borrowed. */
int umad_port_event_fd(const struct mad_port *p);

/* Takes up to max received frames (their bytes, length, lid and sl) and clears the event if none is left. Returns their number. */
size_t umad_port_take(struct mad_port *p, struct mad_frame *ret, size_t max);
