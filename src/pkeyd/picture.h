/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "subnet/survey.h"

/*
 * The fabric as it is known: what is there, and what the tables of its ports hold. The subnet never changes; observed
 * is kept true by every survey and every apply until the next discovery makes another picture. `failed` says which
 * ports did not do as they were asked in the last pass.
 */
struct picture {
        struct arena *arena; /* owns what follows */
        struct subnet *subnet;
        struct observed *observed;
        bool *failed;        /* per port of the subnet */
};

struct picture *picture_free(struct picture *p);
DEFINE_CLEANUP(struct picture *, picture_free)

/* With an arena only, for the discovery to fill. Returns owned, or NULL when memory is out. */
struct picture *picture_new(void);
/* When the subnet is there: all tables unknown. Returns 0 or -ENOMEM. */
int picture_prepare(struct picture *p);

/* Ports whose tables were read, or could not be read, in `seen` (of the same subnet) take the place of what was
 * known. */
void picture_merge(struct picture *p, const struct observed *seen);

/* Managed ports that failed. *ret_ports in the arena a. Returns 0 or -ENOMEM. */
int picture_failed_ports(const struct picture *p, struct arena *a, uint32_t **ret_ports, uint32_t *ret_n);
/* Failed are exactly the ports that could not be read. */
void picture_reset_failed(struct picture *p);
uint32_t picture_n_failed(const struct picture *p);
