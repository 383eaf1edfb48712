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

/* The ports that these selectors mean, with why each is contested. */
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

/* Ports of which it is not certain that the text means them. */
static int refuse_contested(const struct subnet *s, const struct port_list *list, struct findings *findings)
{
        int e = 0;

        for (uint32_t i = 0; i < list->n && e != -ENOMEM; i++)
                if (list->contested[i] != FREEZE_NONE)
                        e = findings_error(findings, FINDING_POLICY_AMBIGUOUS, freeze_way_out((enum freeze) list->contested[i]),
                                           "it is not certain that %s is meant: %s",
                                           subnet_port_label(findings->arena, s, list->ports[i]) ?: "?",
                                           freeze_reason((enum freeze) list->contested[i]));
        return e;
}

int policy_select_exactly(struct arena *a, const struct policy *policy, const struct subnet *subnet,
                          const struct policy_memory *memory, const char *text, struct findings *findings, struct port_list *ret)
{
        _cleanup_findings_ struct findings found = { .arena = findings->arena };
        struct report report;
        int e;

        report_init(&report, &found);
        e = match_text(a, policy, subnet, memory, text, &report, ret);
        if (e < 0 && e != -EBADMSG)
                return e;
        for (size_t i = 0; i < found.n; i++) {
                found.items[i].severity = FINDING_ERROR; /* what is a warning about a file is an error about a request */
                found.items[i].source_line = NULL;
                findings_append(findings, &found.items[i]);
        }
        if (found.out_of_memory)
                return -ENOMEM;
        if (e == 0 && found.n == 0 && ret->n == 0)
                return findings_error(findings, FINDING_SELECTOR_NO_MATCH, NULL, "'%s' matches nothing in the fabric",
                                      arena_printable(findings->arena, text, strlen(text)) ?: "?");
        return found.n > 0 ? -EBADMSG : refuse_contested(subnet, ret, findings);
}

int policy_select_pool(struct arena *a, const struct policy *policy, const struct policy_pool *pool, const struct subnet *subnet,
                       const struct policy_memory *memory, struct port_list *ret)
{
        _cleanup_findings_ struct findings ignored = { .arena = a };
        struct matcher matcher;
        struct report report;
        uint32_t n = 0;
        int e;

        report_init(&report, &ignored);
        e = matcher_init_by_pins(&matcher, a, policy, subnet, memory, &report) ?:
            matcher_match_list(&matcher, pool->ports, pool->n_ports, ret);
        for (uint32_t i = 0; e == 0 && i < ret->n; i++)
                if (ret->contested[i] == FREEZE_NONE) {
                        ret->ports[n] = ret->ports[i];
                        ret->contested[n++] = FREEZE_NONE;
                }
        ret->n = e == 0 ? n : 0;
        return e;
}
