/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/bus_status.h"

#include <stddef.h>
#include <string.h>

#include "config.h"
#include "shell/shell.h"

static const struct property {
        const char *name, *signature;
        size_t offset, size;
} properties[] = {
#define X(name, signature, member, kind)                                                                               \
        { #name, signature, offsetof(struct bus_status, member), sizeof(((struct bus_status *) NULL)->member) },
        BUS_PROPERTIES(X)
#undef X
};

static const char *state_of(const struct control_status *c)
{
        static const char *const results[] = {
                [SWEEP_REFUSED] = "refused", [SWEEP_PARTIAL] = "partial", [SWEEP_FAILED] = "failed",
        };

        if (c->stopping)
                return "stopping";
        if (c->waiting)
                return "waiting";
        if (!c->ready)
                return "starting";
        return WORD(results, c->last_result, c->ports.differ > 0 ? "differs" : c->ports.silent > 0 ? "partial" : "right");
}

/* False: there is no room for the line. */
static bool add_line(char *buffer, size_t size, const char *line)
{
        size_t used = strlen(buffer), n_separator = used > 0;

        if (used + n_separator + strlen(line) >= size)
                return false;
        (void) sprintf(buffer + used, "%s%s", used > 0 ? "\n" : "", line);
        return true;
}

struct held_context bus_held_context(const struct control_status *c, struct arena *a)
{
        return (struct held_context) {
                .arena = a, .subnet = c->snapshot ? c->snapshot->subnet : NULL, .known = c->known,
                .policy = c->wanted ? c->wanted->policy : NULL, .time = clock_to_text, .now = clock_wall() / USEC_PER_SEC,
        };
}

/* A line for each of the first bases, as many as there is room for. */
static void describe_held(const struct control_status *c, struct bus_status *s)
{
        _cleanup_arena_ struct arena *a = arena_new();
        const struct held_context context = bus_held_context(c, a);
        size_t n = 0;
        const struct held *const *items = c->held ? held_list_items(c->held, &n) : NULL;

        s->held_bases = (uint32_t) n;
        for (size_t i = 0; a && i < n; i++) {
                _cleanup_text_ struct text t = {};

                held_add_line(&context, items[i], &t);
                if (t.failed || !add_line(s->held_buffer, sizeof(s->held_buffer), t.bytes))
                        return;
        }
}

/* Writes a line for each port, as long as there is room. */
static void describe_frozen(const struct control_status *c, struct bus_status *s)
{
        for (uint32_t i = 0; i < c->n_frozen; i++)
                if (!add_line(s->frozen_buffer, sizeof(s->frozen_buffer), c->frozen[i].text))
                        return;
}

static void count_leases(const struct control_status *c, struct bus_status *s)
{
        uint32_t n[LEASE_N_STATES];

        leases_count(c->leases, n);
        s->leases = n[LEASE_GRANTING] + n[LEASE_ACTIVE] + n[LEASE_RELEASING];
        s->leases_releasing = n[LEASE_RELEASING];
}

static void describe_claims(const struct control_status *c, struct bus_status *s)
{
        for (uint32_t i = 0; i < c->n_claims; i++)
                if (!add_line(s->claims_buffer, sizeof(s->claims_buffer), c->claims[i].text))
                        return;
}

/* Needed after each copy of the struct. */
static void point_to_buffers(struct bus_status *s)
{
        s->text = s->text_buffer;
        s->frozen = s->frozen_buffer;
        s->claims = s->claims_buffer;
        s->held = s->held_buffer;
}

static void fill(struct bus_status *s, const struct control_status *c, const struct violation_list *violations,
                 const char *fabric, const char *policy_file)
{
        const struct generation *g = c->in_force;
        struct violation_summary summary;

        violations->summarize(violations->userdata, &summary);
        *s = (struct bus_status) {
                .version = PACKAGE_VERSION,
                .state = state_of(c),
                .mode = !g ? "" : g->audits ? "audit" : "enforce",
                .role = !g ? "" : g->settings->role == ROLE_FOLLOW_SM ? "follow-sm" : "always",
                .writing = c->writing,
                .fabric = fabric,
                .policy_file = policy_file,
                .reloading = c->reload_pending,
                .generation = g ? g->number : 0,
                .confirm_until = g && generation_waits(&g->facts) ? g->facts.confirm_until * USEC_PER_SEC : 0,
                .undone = g && g->is_off_file ? g->facts.undoes : 0,
                .partitions = g ? g->policy->n_partitions : 0,
                .file_errors = (uint32_t) c->n_file_errors,
                .ports_managed = c->ports.managed,
                .ports_right = c->ports.right,
                .ports_differ = c->ports.differ,
                .ports_unreachable = c->ports.unreachable,
                .links_silent = c->ports.silent,
                .ports_frozen = c->n_frozen,
                .names_claimed = c->n_claims,
                .last_success = c->numbers.last_success,
                .violations_total = summary.total,
                .violations_since = summary.since,
                .notices = summary.notices,
        };
        (void) snprintf(s->text_buffer, sizeof(s->text_buffer), "%s", c->text);
        describe_held(c, s);
        describe_frozen(c, s);
        describe_claims(c, s);
        count_leases(c, s);
        point_to_buffers(s);
}

static bool differs(const struct property *p, const struct bus_status *a, const struct bus_status *b)
{
        const char *pa = (const char *) a + p->offset, *pb = (const char *) b + p->offset, *ta, *tb;

        if (*p->signature != 's')
                return memcmp(pa, pb, p->size) != 0;
        memcpy(&ta, pa, sizeof(ta));
        memcpy(&tb, pb, sizeof(tb));
        return !ta || strcmp(ta, tb) != 0;
}

uint32_t bus_status_update(struct bus_status *s, const struct control_status *control, const struct violation_list *violations,
                           const char *fabric, const char *policy_file)
{
        struct bus_status now;
        uint32_t changed = 0;

        fill(&now, control, violations, fabric, policy_file);
        for (size_t i = 0; i < ELEMENTS(properties); i++)
                if (differs(&properties[i], s, &now))
                        changed |= UINT32_C(1) << i;
        *s = now;
        point_to_buffers(s);
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

void bus_status_append(const struct bus_status *s, struct bus_builder *b)
{
        bus_open(b, 'a', "{sv}");
        for (size_t i = 0; i < ELEMENTS(properties); i++)
                bus_append_variant(b, properties[i].name, properties[i].signature, (const char *) s + properties[i].offset);
        bus_close(b);
}
