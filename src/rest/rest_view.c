/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rest/rest_view.h"

#include <errno.h>
#include <string.h>
#include <time.h>

void rest_lease_id(uint16_t base, char ret[static REST_LEASE_ID_SIZE])
{
        (void) snprintf(ret, REST_LEASE_ID_SIZE, "rest:0x%04x", base & P_KEY_BASE_MASK);
}

const char *rest_host_of_label(struct arena *a, const char *label)
{
        return arena_strndup(a, label, strcspn(label, " /"));
}

/* A lease that is being released is none for clients: its ports lose the P_Key. */
static bool is_in_force(const struct rest_lease *l)
{
        return strcmp(l->state, "active") == 0 || strcmp(l->state, "granting") == 0;
}

static void set_partition(const struct rest_lease *l, struct rest_partition *ret)
{
        char id[REST_LEASE_ID_SIZE];

        rest_lease_id(l->base, id);
        *ret = (struct rest_partition) {
                .base = l->base, .lease = l->id, .is_hidden = l->n_members == 0 && !l->is_kept,
                .name = strcmp(l->id, id) == 0 ? NULL : l->id, .ip_over_ib = l->ip_over_ib, .qos = l->qos,
                .members = l->members, .n_members = l->n_members,
        };
}

DEFINE_COMPARE(partition_compare, struct rest_partition, ORDER(a->base, b->base))

/* As date(1) prints it, in UTC. */
static const char *date_text(struct arena *a, uint64_t microseconds)
{
        time_t seconds = (time_t) (microseconds / USEC_PER_SEC);
        char text[64];
        struct tm tm;

        if (!gmtime_r(&seconds, &tm) || strftime(text, sizeof(text), "%a %b %e %H:%M:%S UTC %Y", &tm) == 0)
                return "";
        return arena_strdup(a, text);
}

int rest_view_add_leases(struct arena *a, const struct rest_lease *leases, size_t n, struct rest_view *view)
{
        struct rest_partition *partitions = arena_new_array(a, struct rest_partition, n);
        uint64_t updated = 0;

        if (!partitions)
                return -ENOMEM;
        view->n_partitions = 0;
        for (size_t i = 0; i < n; i++) {
                if (!leases[i].is_open || !is_in_force(&leases[i]))
                        continue;
                set_partition(&leases[i], &partitions[view->n_partitions++]);
                updated = MAX(updated, leases[i].updated);
        }
        SORT(partitions, view->n_partitions, partition_compare);
        view->partitions = partitions;
        view->last_updated = updated > 0 ? date_text(a, updated) : NULL;
        return updated > 0 && !view->last_updated ? -ENOMEM : 0;
}
