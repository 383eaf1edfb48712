/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/policy_select.h"

#include <errno.h>
#include <string.h>

int matcher_init_by_pins(struct matcher *m, struct arena *a, const struct policy *policy, const struct subnet *subnet,
                         const struct policy_memory *memory, struct report *report)
{
        const struct subnet *view;
        int e = pins_view(a, memory->pins, subnet, &view) ?: matcher_init(m, a, policy, view, report);

        m->known = memory->known;
        m->pins = memory->pins;
        return e;
}

/* The ports that these selectors select, with why each is contested. */
static int match(struct matcher *matcher, struct selector *const *selectors, uint32_t n, struct port_list *ret)
{
        return matcher_match_list(matcher, selectors, n, ret) ?: report_finish(matcher->report);
}

static int match_text(struct arena *a, const struct policy *policy, const struct subnet *subnet, const struct policy_memory *memory,
                      const char *text, struct report *report, struct port_list *ret)
{
        struct selector_source source = { .text = text };
        struct selector_reader reader = { .arena = a, .policy = policy, .report = report };
        struct selector **selectors;
        struct matcher matcher;
        uint32_t n;
        int e = selector_parse_list(&reader, &source, &selectors, &n) ?:
                matcher_init_by_pins(&matcher, a, policy, subnet, memory, report);

        return e < 0 ? e : match(&matcher, selectors, n, ret);
}

int policy_select(struct arena *a, const struct policy *policy, const struct subnet *subnet, const struct policy_memory *memory,
                  const char *text, struct findings *findings, uint32_t **ret_ports, uint32_t *ret_n)
{
        struct port_list list = {};
        struct report report;
        int e;

        report_init(&report, findings);
        e = match_text(a, policy, subnet, memory, text, &report, &list);
        if (e < 0)
                return e;
        *ret_ports = list.ports;
        *ret_n = list.n;
        return 0;
}

/* ---- many selections ------------------------------------------------------------------------------------------ */

struct policy_selection {
        struct arena *arena;
        struct matcher matcher;
        struct findings ignored;
        struct report report;        /* of what is ignored */
        struct port_list *pools;     /* of each pool; ports NULL: not matched so far */
};

struct policy_selection *policy_selection_new(const struct policy *policy, const struct subnet *subnet,
                                              const struct policy_memory *memory)
{
        struct arena *a = arena_new();
        struct policy_selection *s = a ? arena_new_object(a, struct policy_selection) : NULL;

        if (s) {
                s->arena = a;
                s->pools = arena_new_array(a, struct port_list, policy->n_pools);
                s->ignored = (struct findings) { .arena = a };
                report_init(&s->report, &s->ignored);
        }
        if (s && s->pools && matcher_init_by_pins(&s->matcher, a, policy, subnet, memory, &s->report) == 0)
                return s;
        arena_free(a);
        return NULL;
}

struct policy_selection *policy_selection_free(struct policy_selection *s)
{
        if (!s)
                return NULL;
        findings_done(&s->ignored);
        arena_free(s->arena); /* it is in there itself */
        return NULL;
}

size_t policy_selection_size(const struct policy_selection *s)
{
        return arena_size(s->arena);
}

/* Reports ports of which it is not certain that the text selects them. Returns 0 if there is none, -EBADMSG, -ENOMEM. */
static int refuse_contested(const struct subnet *s, const struct port_list *list, struct findings *findings)
{
        int e = 0;

        for (uint32_t i = 0; i < list->n && e != -ENOMEM; i++)
                if (list->contested[i] != FREEZE_NONE)
                        e = findings_error(findings, FINDING_POLICY_AMBIGUOUS, freeze_way_out((enum freeze) list->contested[i]),
                                           "%s may be the wrong port: %s",
                                           subnet_port_label(findings->arena, s, list->ports[i]) ?: "?",
                                           freeze_reason((enum freeze) list->contested[i]));
        return e;
}

struct unseen {
        struct guid *guids; /* in the arena of the selection */
        size_t n;
};

/* Takes the GUIDs that are not in the fabric out of the selectors. */
static int take_unseen(struct policy_selection *s, struct selector **selectors, uint32_t *n, struct unseen *unseen)
{
        const struct subnet *subnet = s->matcher.subnet;
        uint32_t kept = 0;

        unseen->guids = arena_new_array(s->arena, struct guid, *n);
        if (!unseen->guids)
                return -ENOMEM;
        for (uint32_t i = 0; i < *n; i++) {
                struct guid guid = selectors[i]->guid;

                if (selectors[i]->kind == SELECTOR_GUID && subnet_find_endport(subnet, guid) == SUBNET_NONE &&
                    subnet_find_node(subnet, guid) == SUBNET_NONE)
                        unseen->guids[unseen->n++] = guid;
                else
                        selectors[kept++] = selectors[i];
        }
        *n = kept;
        return 0;
}

/* Finds the ports that a text selects, with the findings about it in this report. unseen NULL: all GUIDs must be in the fabric. */
static int parse_and_match(struct policy_selection *s, const char *text, struct report *report, struct port_list *ret,
                          struct unseen *unseen)
{
        struct selector_source source = { .text = text };
        struct selector_reader reader = { .arena = s->arena, .policy = s->matcher.policy, .report = report };
        struct selector **selectors;
        uint32_t n;
        int e = selector_parse_list(&reader, &source, &selectors, &n);

        if (e == 0 && unseen)
                e = take_unseen(s, selectors, &n, unseen);
        if (e < 0)
                return e;
        s->matcher.report = report;
        s->matcher.hints = MATCHER_HINTS;
        e = match(&s->matcher, selectors, n, ret);
        s->matcher.report = &s->report;
        return e;
}

/* The same; what is a note or warning about a file is an error about a request. */
static int match_strictly(struct policy_selection *s, const char *text, struct findings *findings, struct port_list *ret,
                          struct unseen *unseen)
{
        _cleanup_findings_ struct findings found = { .arena = findings->arena };
        struct report report;
        int e;

        report_init(&report, &found);
        e = parse_and_match(s, text, &report, ret, unseen);
        if (e < 0 && e != -EBADMSG)
                return e;
        for (size_t i = 0; i < found.n; i++) {
                found.items[i].severity = FINDING_ERROR;
                found.items[i].source_line = NULL;
                findings_append(findings, &found.items[i]);
        }
        if (found.out_of_memory)
                return -ENOMEM;
        return found.n > 0 ? -EBADMSG : 0;
}

int policy_selection_exactly(struct policy_selection *s, const char *text, struct findings *findings, struct port_list *ret)
{
        int e = match_strictly(s, text, findings, ret, NULL);

        if (e == 0 && ret->n == 0)
                return findings_error(findings, FINDING_SELECTOR_NO_MATCH, NULL, "'%s' matches nothing in the fabric",
                                      arena_printable(findings->arena, text, strlen(text)) ?: "?");
        return e ?: refuse_contested(s->matcher.subnet, ret, findings);
}

int policy_selection_members(struct policy_selection *s, const char *text, struct findings *findings, struct port_list *ret,
                             const struct guid **ret_unseen, size_t *ret_n_unseen)
{
        struct unseen unseen = {};
        int e = match_strictly(s, text, findings, ret, &unseen) ?: refuse_contested(s->matcher.subnet, ret, findings);

        *ret_unseen = unseen.guids;
        *ret_n_unseen = unseen.n;
        return e;
}

int policy_selection_pool(struct policy_selection *s, const struct policy_pool *pool, struct port_list *ret)
{
        struct port_list *list = &s->pools[pool - s->matcher.policy->pools];
        int e = list->ports ? 0 : matcher_match_list(&s->matcher, pool->ports, pool->n_ports, list);

        if (e < 0)
                return e;
        *ret = *list;
        return 0;
}
