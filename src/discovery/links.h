/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Expected peers: which port GUID is expected at the other end of each link, by port GUID and port number (of a switch
 * the GUID of its port 0).
 *
 * A port whose M_Key protects it from reads answers only requests that carry the key, and M_Keys are stored by port
 * GUID. Before the port has answered, its GUID is known only from an earlier walk, or from the file in which OpenSM
 * stores its links. A wrong expectation costs one request with a wrong M_Key; it never puts anything wrong into a
 * snapshot.
 *
 * A link stays until another peer is learned for the same port, so that a host is still expected after a reboot.
 */

#include "ib/types.h"
#include "util/macros.h"

#define DISCOVERY_MAX_LINKS          (1u << 20)
#define DISCOVERY_MAX_NEIGHBORS_SIZE (64u << 20) /* of OpenSM's file: some 600,000 links */

struct discovery_links;

/* Returns owned, or NULL: out of memory. */
struct discovery_links *discovery_links_new(void);
struct discovery_links *discovery_links_free(struct discovery_links *l);
DEFINE_CLEANUP(struct discovery_links *, discovery_links_free)

/* Replaces what was expected at this port. Returns 0, -ENOMEM, or -ENOSPC: there are DISCOVERY_MAX_LINKS, none of this
 * port. */
int discovery_links_set(struct discovery_links *l, struct guid port_guid, uint8_t number, struct guid peer);
/* The expected peer; 0: none. l may be NULL. */
struct guid discovery_links_get(const struct discovery_links *l, struct guid port_guid, uint8_t number);

/*
 * Adds the links of OpenSM's file `neighbors`, which OpenSM keeps in the directory of guid2mkey. A line has the GUID
 * and the number of the port at both ends:
 *
 *     0x0002c90300000001:1 0x0002c90300000100:17
 *
 * A link that is known already stays: it comes from a walk and is newer, or from an earlier line, and of two lines for
 * one port OpenSM uses the first. Other lines are ignored; *ret_ignored is their number. Returns 0, -EFBIG, -ENOMEM,
 * -ENOSPC.
 */
int discovery_links_add_neighbors(struct discovery_links *l, const char *bytes, size_t n, uint32_t *ret_ignored);
