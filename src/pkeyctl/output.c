/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/output.h"

#include <errno.h>
#include <string.h>

const struct output *output_for(const struct options *options)
{
        return options->json ? &output_json : &output_text;
}

int output_write_file(struct context *ctx, const char *bytes, size_t n)
{
        const char *path = ctx->options->output;
        FILE *f = fopen(path, "wxe");
        bool failed = !f || fwrite(bytes, 1, n, f) != n;
        int error = errno;

        if (f && fclose(f) != 0) {
                failed = true;
                error = errno;
        }
        if (!failed)
                return 0;
        (void) findings_add(&ctx->findings, FINDING_ERROR, FINDING_FILE_UNWRITABLE, NULL, "%s: %s", path, strerror(error));
        return -EBADMSG;
}

const char *output_node(const struct context *ctx, uint32_t port)
{
        const struct subnet_node *node = subnet_port_node(ctx->subnet, &ctx->subnet->ports[port]);

        return *node->name ? node->name : node->description;
}

const char *output_partition(const struct context *ctx, uint16_t base)
{
        int i = ctx->policy ? policy_find_base(ctx->policy, base) : -1;

        return i < 0 ? "" : ctx->policy->partitions[i].name;
}

static enum m_key_source m_key_source(const struct context *ctx, uint32_t port)
{
        return m_keys_source(ctx->m_keys, ctx->subnet->ports[port].guid);
}

const char *output_failure(struct context *ctx, uint32_t port)
{
        const struct observed_table *t = &ctx->observed->tables[port];

        switch (t->failure) {
        case MAD_ANSWERED:
                return "its table was not read";
        case MAD_TIMED_OUT:
                return arena_printf(ctx->arena, "no answer (the node is hung, MADs are lost, %s)",
                                    m_key_source_to_string(m_key_source(ctx, port)));
        case MAD_REFUSED:
                return arena_printf(ctx->arena, "refused with status 0x%04x (%s)", t->mad_status,
                                    mad_status_to_string(t->mad_status));
        case MAD_BUSY:
                return "still busy after all retries";
        case MAD_UNSENT:
                return "this host could not send to it";
        }
        return "?";
}

const char *output_reason(struct context *ctx, uint32_t port, const struct apply_outcome *outcome)
{
        switch (outcome->reason) {
        case APPLY_OK:
                return "its bases were held back, for an earlier write of them was not confirmed";
        case APPLY_TIMEOUT:
                return arena_printf(ctx->arena, "no answer (the node is hung, MADs are lost, %s)", m_key_source_to_string(m_key_source(ctx, port)));
        case APPLY_SET_UNANSWERED:
                return m_key_source_of_reader(m_key_source(ctx, port), outcome->m_key_counted);
        case APPLY_STATUS:
                return arena_printf(ctx->arena, "refused with status 0x%04x (%s)", outcome->mad_status,
                                    mad_status_to_string(outcome->mad_status));
        case APPLY_BUSY:
                return "still busy after all retries";
        case APPLY_UNSENT:
                return "this host could not send it";
        case APPLY_CHANGED:
                return "the block is not what the plan rests on: somebody else writes it";
        case APPLY_MISMATCH:
                return "answered, but does not hold what was sent";
        case APPLY_REVERTED:
                return "was written, but read back different at the end: somebody else writes it";
        case APPLY_UNREACHABLE:
                return "its table could not be read before, so nothing was tried";
        case APPLY_ABORTED:
                return "the run was ended before it was its turn";
        }
        return "?";
}

const char *output_line(struct context *ctx, uint32_t port, uint16_t base, const struct port_membership **ret)
{
        const struct memberships *m = ctx->memberships;
        int partition = ctx->policy ? policy_find_base(ctx->policy, base) : -1;

        *ret = NULL;
        if (!m || partition < 0)
                return "";
        for (uint32_t i = m->first[port]; i < m->first[port + 1]; i++) {
                const struct port_membership *item = &m->items[i];

                if (item->partition != (uint32_t) partition)
                        continue;
                *ret = item;
                if (!item->rule)
                        return "the default partition's own rules";
                return arena_printf(ctx->arena, "%s:%u", item->rule->where.file, item->rule->where.line);
        }
        return "";
}

/* --- verdicts -------------------------------------------------------------------------------------------------------- */

static void print_base(FILE *f, const struct context *ctx, const struct explain_base *b)
{
        const char *name = output_partition(ctx, b->base);

        fprintf(f, "%s%s", name, *name ? " (" : "");
        if (b->verdict == EXPLAIN_BOTH_LIMITED)
                fprintf(f, "0x%04x", b->base);
        else
                fprintf(f, "0x%04x with 0x%04x", b->a.v, b->b.v);
        fputs(*name ? ")" : "", f);
}

/* The common bases that fare as the pair does. */
static void print_bases(FILE *f, const struct context *ctx, const struct explain_end *a, const struct explain_end *b,
                        enum explain_verdict verdict)
{
        struct explain_cursor cursor = {};
        struct explain_base base;
        bool first = true;

        while (explain_next_base(a, b, &cursor, &base)) {
                if (base.verdict != verdict)
                        continue;
                if (!first)
                        fputs(", ", f);
                print_base(f, ctx, &base);
                first = false;
        }
}

static void print_filter(FILE *f, struct context *ctx, const struct explain_side *side)
{
        uint32_t port = ctx->subnet->ports[side->port].neighbour;
        const char *label = subnet_port_label(ctx->arena, ctx->subnet, port);

        fprintf(f, "switch port %s enforces partitions and does not hold ", label ?: "?");
}

static void print_verdict(FILE *f, struct context *ctx, const struct explain_side *a, const struct explain_side *b,
                          bool by_policy)
{
        const struct explain_end *ea = by_policy ? &a->by_policy : &a->in_hardware;
        const struct explain_end *eb = by_policy ? &b->by_policy : &b->in_hardware;
        enum explain_verdict verdict = explain_pair(ea, eb);

        switch (verdict) {
        case EXPLAIN_TALK:
                fputs("through ", f);
                break;
        case EXPLAIN_UNKNOWN:
                fputs(by_policy ? "there is no policy" : "a table that decides could not be read", f);
                return;
        case EXPLAIN_BLOCKED_A:
                print_filter(f, ctx, a);
                break;
        case EXPLAIN_BLOCKED_B:
                print_filter(f, ctx, b);
                break;
        case EXPLAIN_BOTH_LIMITED:
                fputs("both are only limited members of ", f);
                break;
        case EXPLAIN_NOTHING_COMMON:
                fputs("they have no partition in common", f);
                return;
        }
        print_bases(f, ctx, ea, eb, verdict);
}

const char *output_verdict(struct context *ctx, const struct explain_side *a, const struct explain_side *b,
                           bool by_policy)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        print_verdict(f, ctx, a, b, by_policy);
        if (fclose(f) != 0)
                return NULL;
        return arena_strndup(ctx->arena, text, size);
}
