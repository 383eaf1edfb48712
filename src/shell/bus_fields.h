/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Dictionaries (a{sv}) of the daemon's D-Bus interface (org.pkeyd1(5)), for its clients.
 *
 * Each kind of dictionary has a table of fields: the key on the bus and in JSON, and where its value goes. Other keys are skipped:
 * a newer daemon may send more. So are values of an unexpected type, but a number may have any width.
 */

#include <stddef.h>
#include <systemd/sd-bus.h>

#include "ib/types.h"
#include "util/arena.h"

enum bus_field_kind {
        FIELD_TEXT,    /* const char *, NULL: not sent; all others but the last two are uint64_t */
        FIELD_NUMBER,
        FIELD_BOOL,
        FIELD_GUID,
        FIELD_P_KEY,
        FIELD_TIME,    /* CLOCK_REALTIME, microseconds; 0: never */
        FIELD_IF_SET,  /* 0: not set */
        FIELD_MEMBERS, /* struct seen_members */
        FIELD_GUIDS,   /* struct seen_guids */
};

struct bus_field {
        const char *bus_key, *json_key;
        enum bus_field_kind kind;
        size_t offset;
};

struct bus_fields {
        const struct bus_field *items;
        size_t n;
};

#define BUS_FIELDS(array) { array, ELEMENTS(array) }
#define FIELD(type, bus, json, kind, member) { bus, json, kind, offsetof(struct type, member) }

/* The value of field f in the struct at `object`. */
static inline uint64_t bus_field_number(const struct bus_field *f, const void *object)
{
        return *(const uint64_t *) ((const char *) object + f->offset);
}

static inline const char *bus_field_text(const struct bus_field *f, const void *object)
{
        return *(const char *const *) ((const char *) object + f->offset);
}

/* A member of a lease. */
struct seen_member {
        struct guid port, node;
        uint8_t number;
        const char *name, *state; /* "confirmed", "waits", "unseen", "left-out", "may-hold", "released" */
        uint16_t index;           /* of its entry; only if it is confirmed */
        struct p_key key;
};

struct seen_members {
        struct seen_member *items;
        size_t n, allocated;
};

struct seen_guids {
        struct guid *items; /* ascending */
        size_t n, allocated;
};

/* A lease; without an ID: none was sent. */
struct seen_lease {
        const char *id, *pool, *state, *membership, *owner, *why, *held, *selectors;
        uint64_t p_key, created, updated, ends, n_members, n_confirmed, is_open, is_kept;
        uint64_t ip_over_ib, mtu, service_level, rate_limit;
        /* a list of leases lacks these, `held` and `selectors` */
        struct seen_members members;
        struct seen_guids index0;    /* ports of members that ask for index 0 */
};
extern const struct bus_fields seen_lease_fields;

/* Reads a{sv} into an object with these fields. *seen (NULL: not wanted) gets bit i for each field i that was there. Strings and
 * arrays live in the arena. Returns 0 or negative errno. */
int bus_fields_read(struct arena *a, sd_bus_message *m, const struct bus_fields *fields, void *object, uint64_t *seen);

#define _cleanup_message_ _cleanup_(sd_bus_message_unrefp)
