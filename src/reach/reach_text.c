/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "reach/reach_text.h"

#include <errno.h>

#include "subnet/fold.h"
#include "util/text.h"

const char *reach_name(struct arena *a, const struct reach_names *names, uint16_t base)
{
        const struct policy *policies[] = { names->now, names->before };

        for (size_t i = 0; i < ELEMENTS(policies); i++) {
                int p = policies[i] ? policy_find_base(policies[i], base) : -1;

                if (p >= 0)
                        return policies[i]->partitions[p].name;
        }
        return arena_printf(a, "0x%04x", base);
}

/* "node[0001-0007]", "each other", "each other and oss01": the others may contain all ports of the line. */
static int add_ports(struct text *t, struct arena *a, const struct subnet *s, const struct reach_line *l,
                     const struct reach_others *o)
{
        uint32_t *rest = arena_new_array(a, uint32_t, o->n_ports), n = 0;
        const char *folded;

        if (!rest)
                return -ENOMEM;
        for (uint32_t i = 0; i < o->n_ports; i++)
                if (!bsearch(&o->ports[i], l->ports, l->n_ports, sizeof(*l->ports), uint32_compare))
                        rest[n++] = o->ports[i];
        folded = n > 0 ? fold_ports(a, s, rest, n) : "";
        if (!folded)
                return -ENOMEM;
        text_add(t, "%s%s%s", n < o->n_ports ? "each other" : "", n < o->n_ports && n > 0 ? " and " : "", folded);
        return 0;
}

static int add_others(struct text *t, struct arena *a, const struct subnet *s, const struct reach_names *names,
                      const struct reach_line *l, uint32_t i)
{
        const struct reach_others *o = &l->others[i];
        bool is_first = i == 0 || l->others[i - 1].gained != o->gained;
        int r;

        text_add(t, "%s %s", i == 0 ? ":" : is_first ? ";" : ",", !is_first ? "" : o->gained ? "now with " : "no longer with ");
        r = add_ports(t, a, s, l, o);
        for (uint32_t b = 0; b < o->n_bases; b++)
                text_add(t, "%s%s", b == 0 ? " (" : ", ", reach_name(a, names, o->bases[b]) ?: "?");
        text_add(t, ")");
        return r;
}

const char *reach_describe(struct arena *a, const struct subnet *s, const struct reach_names *names, const struct reach_line *l)
{
        const char *who = fold_ports(a, s, l->ports, l->n_ports);
        _cleanup_text_ struct text t = {};
        int r = who ? 0 : -ENOMEM;

        text_add(&t, "%s", who ?: "");
        for (uint32_t i = 0; i < l->n_others && r == 0; i++)
                r = add_others(&t, a, s, names, l, i);
        return r == 0 && !t.failed ? arena_strdup(a, t.bytes) : NULL;
}

const char *reach_summarize(struct arena *a, const struct reach_changes *r)
{
        if (r->too_many)
                return "who can talk to whom is not compared: too many different tables change";
        if (r->n_lost + r->n_gained == 0)
                return "who can talk to whom does not change";
        return arena_printf(a, "%" PRIu64 " pair%s of ports lost, %" PRIu64 " gained%s; nothing else changes", r->n_lost,
                            text_plural(r->n_lost), r->n_gained, r->truncated ? " (too many to list them all)" : "");
}

static void add_note(struct findings *findings, const char *text)
{
        if (text)
                (void) findings_add(findings, FINDING_NOTE, FINDING_PLAN_REACH, NULL, "%s", text);
        else
                findings->out_of_memory = true;
}

void reach_report(const struct subnet *s, const struct reach_names *names, const struct reach_changes *r,
                  struct findings *findings)
{
        uint32_t shown = MIN(r->n_lines, (uint32_t) REACH_MAX_SHOWN);

        if (r->n_lost + r->n_gained == 0 && !r->too_many)
                return;
        add_note(findings, arena_printf(findings->arena, "%s%s", r->too_many ? "" : "who can talk to whom: ",
                                        reach_summarize(findings->arena, r) ?: "?"));
        for (uint32_t i = 0; i < shown; i++)
                add_note(findings, reach_describe(findings->arena, s, names, &r->lines[i]));
        if (shown < r->n_lines)
                add_note(findings, arena_printf(findings->arena, "and %u more like these, which are not logged", r->n_lines - shown));
}
