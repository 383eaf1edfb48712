/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/bus_status.h"

#include <stddef.h>
#include <string.h>

#include "config.h"
#include "pkeyd/bus_message.h"

static const struct property {
        const char *name, *signature;
        size_t offset, size;
} properties[] = {
#define X(name, signature, member)                                                                                     \
        { #name, signature, offsetof(struct bus_status, member), sizeof(((struct bus_status *) NULL)->member) },
        BUS_PROPERTIES(X)
#undef X
};

static const char *state_of(const struct daemon *d)
{
        if (d->stopping)
                return "stopping";
        if (d->waiting)
                return "waiting";
        if (!d->ready)
                return "starting";
        switch (d->last_result) {
        case PASS_REFUSED:
                return "refused";
        case PASS_PARTIAL:
                return "partial";
        case PASS_ERROR:
                return "failed";
        case PASS_DONE:
        case PASS_WAIT:
        case PASS_STALE:
        case PASS_ENDED:
                break;
        }
        return d->ports.differ > 0 ? "differs" : "right";
}

static void fill(struct bus_status *s, const struct daemon *d, const char *policy_file)
{
        const struct generation *g = d->generation;

        *s = (struct bus_status) {
                .version = PACKAGE_VERSION,
                .state = state_of(d),
                .mode = !g ? "" : g->settings->mode == MODE_AUDIT ? "audit" : "enforce",
                .role = !g ? "" : g->settings->role == ROLE_FOLLOW_SM ? "follow-sm" : "always",
                .writing = g && g->settings->mode == MODE_ENFORCE && head_may_write(d, g),
                .policy_file = policy_file,
                .reloading = d->reload_pending,
                .generation = g ? g->number : 0,
                .partitions = g ? g->policy->n_partitions : 0,
                .file_errors = (uint32_t) d->n_file_errors,
                .ports_managed = d->ports.managed,
                .ports_right = d->ports.right,
                .ports_differ = d->ports.differ,
                .ports_unreachable = d->ports.unreachable,
                .last_success = d->last_success,
                .violations_total = d->violations.total ? d->violations.total(d->violations.userdata) : 0,
                .violations_since = d->violations.since,
                .notices = d->violations.notices ? d->violations.notices(d->violations.userdata) : "off",
        };
        memcpy(s->text_buffer, d->status, sizeof(s->text_buffer));
        s->text = s->text_buffer;
}

static bool differs(const struct property *p, const struct bus_status *a, const struct bus_status *b)
{
        const char *pa = (const char *) a + p->offset, *pb = (const char *) b + p->offset;
        const char *ta, *tb;

        if (*p->signature != 's')
                return memcmp(pa, pb, p->size) != 0;
        memcpy(&ta, pa, sizeof(ta));
        memcpy(&tb, pb, sizeof(tb));
        return !ta || strcmp(ta, tb) != 0;
}

uint32_t bus_status_update(struct bus_status *s, const struct daemon *d, const char *policy_file)
{
        struct bus_status now;
        uint32_t changed = 0;

        fill(&now, d, policy_file);
        for (size_t i = 0; i < ELEMENTS(properties); i++)
                if (differs(&properties[i], s, &now))
                        changed |= UINT32_C(1) << i;
        *s = now;
        s->text = s->text_buffer;
        return changed;
}

void bus_status_names(uint32_t changed, const char *names[static BUS_STATUS_MAX_NAMES])
{
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTS(properties); i++)
                if (changed & UINT32_C(1) << i)
                        names[n++] = properties[i].name;
        names[n] = NULL;
}

int bus_status_append(const struct bus_status *s, sd_bus_message *m)
{
        int r;

        r = sd_bus_message_open_container(m, 'a', "{sv}");
        for (size_t i = 0; i < ELEMENTS(properties) && r >= 0; i++) {
                const struct property *p = &properties[i];
                const void *value = (const char *) s + p->offset;
                const char *text;

                if (*p->signature == 's') {
                        memcpy(&text, value, sizeof(text));
                        value = text;
                }
                r = bus_append_variant(m, p->name, p->signature, value);
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}
