/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/output.h"

#include <errno.h>
#include <string.h>

#include "subnet/fold.h"
#include "shell/shell.h"

void output_fail(struct context *ctx, int r)
{
        if (ctx->output_r == 0)
                ctx->output_r = r;
}

/* Where memory was out there is no text. */
static const char *text_or_fail(struct context *ctx, const char *text)
{
        if (!text)
                output_fail(ctx, -ENOMEM);
        return text ?: "?";
}

const char *output_format(struct context *ctx, const char *format, ...)
{
        const char *text;
        va_list ap;

        va_start(ap, format);
        text = arena_vprintf(ctx->arena, format, ap);
        va_end(ap);
        return text_or_fail(ctx, text);
}

const char *output_taken(struct context *ctx, const struct text *t)
{
        return text_or_fail(ctx, text_copy(ctx->arena, t));
}

const char *output_label(struct context *ctx, uint32_t port)
{
        return text_or_fail(ctx, subnet_port_label(ctx->arena, ctx->subnet, port));
}

const char *output_folded(struct context *ctx, const uint32_t *ports, uint32_t n)
{
        return text_or_fail(ctx, fold_ports(ctx->arena, ctx->subnet, ports, n));
}

int output_write_file(struct context *ctx, const char *bytes, size_t n)
{
        static const char in_the_way[] = "no file is replaced: move it away, or name another one with --output";
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
        output_fail(ctx, findings_error(&ctx->findings, FINDING_FILE_UNWRITABLE, error == EEXIST ? in_the_way : NULL, "%s: %s",
                                        path, strerror(error)));
        return -EBADMSG;
}

const char *output_node(const struct context *ctx, uint32_t port)
{
        char buf[SUBNET_NAME_SIZE];
        const char *name = subnet_node_name(subnet_port_node(ctx->subnet, &ctx->subnet->ports[port]), buf);

        return name != buf ? name : arena_strdup(ctx->arena, name) ?: "?";
}

const char *output_partition(const struct context *ctx, uint16_t base)
{
        int i = ctx->policy ? policy_find_base(ctx->policy, base) : -1;

        return i < 0 ? "" : ctx->policy->partitions[i].name;
}

struct held_words output_held_words(struct context *ctx)
{
        return (struct held_words) {
                .arena = ctx->arena, .subnet = ctx->subnet, .known = ctx->known, .policy = ctx->policy,
                .now = clock_wall() / USEC_PER_SEC,
                .time = clock_to_text,
        };
}

static enum m_key_source m_key_source(const struct context *ctx, uint32_t port)
{
        return m_keys_source(ctx->m_keys, ctx->subnet->ports[port].guid);
}

static const char *no_answer(struct context *ctx, uint32_t port)
{
        return output_format(ctx, "no answer (" M_KEY_SILENCE_FORMAT ")", m_key_source_to_string(m_key_source(ctx, port)));
}

const char *output_failure(struct context *ctx, uint32_t port)
{
        const struct subnet_node *incomplete = subnet_port_incomplete_node(ctx->subnet, &ctx->subnet->ports[port]);
        const struct observed_table *t = &ctx->observed->tables[port];

        if (incomplete && t->failure == MAD_TIMED_OUT)
                return output_format(ctx, "not asked: %s did not answer all of discovery", subnet_node_label(ctx->arena, incomplete) ?: "?");
        switch (t->failure) {
        case MAD_ANSWERED:
                return "its table was not read";
        case MAD_TIMED_OUT:
                return no_answer(ctx, port);
        case MAD_REFUSED:
                if (t->is_stranger)
                        return "another node answers at its LID";
                return output_format(ctx, "refused with status 0x%04x (%s)", t->mad_status,
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
                return "it waits for another port, of which it is not certain what it holds";
        case APPLY_TIMEOUT:
                return no_answer(ctx, port);
        case APPLY_SET_UNANSWERED:
                return m_key_source_of_reader(m_key_source(ctx, port), outcome->m_key_counted);
        case APPLY_STATUS:
                return output_format(ctx, "refused with status 0x%04x (%s)", outcome->mad_status,
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
        case APPLY_STRANGER:
                return "another port is at its address now: the fabric changed since it was discovered";
        case APPLY_UNREACHABLE:
                return "its table could not be read before, so nothing was tried";
        case APPLY_ABORTED:
                return "the run was ended before it was its turn";
        }
        return "?";
}

const char *output_line(struct context *ctx, uint32_t port, uint16_t base, const struct port_membership **ret)
{
        const struct port_membership *item = ctx->memberships ? memberships_find(ctx->memberships, port, base) : NULL;

        *ret = item;
        if (!item)
                return "";
        if (!item->rule)
                return "the default partition's own rules";
        return output_format(ctx, "%s:%u", item->rule->where.file, item->rule->where.line);
}

/* --- verdicts -------------------------------------------------------------------------------------------------------- */

static void add_base(struct text *t, const struct context *ctx, const struct explain_base *b)
{
        const char *name = output_partition(ctx, b->base);

        text_add(t, "%s%s", name, *name ? " (" : "");
        if (b->verdict == EXPLAIN_BOTH_LIMITED)
                text_add(t, "0x%04x", b->base);
        else
                text_add(t, "0x%04x with 0x%04x", b->a.v, b->b.v);
        text_add(t, "%s", *name ? ")" : "");
}

/* The common bases that fare as the pair does. */
static void add_bases(struct text *t, const struct context *ctx, const struct explain_end *a,
                      const struct explain_end *b, enum explain_verdict verdict)
{
        struct explain_cursor cursor = {};
        struct explain_base base;
        const char *separator = "";

        while (explain_next_base(a, b, &cursor, &base)) {
                if (base.verdict != verdict)
                        continue;
                text_add(t, "%s", separator);
                separator = ", ";
                add_base(t, ctx, &base);
        }
}

static void add_filter(struct text *t, struct context *ctx, const struct explain_side *side)
{
        text_add(t, "switch port %s enforces partitions and does not hold ",
                 output_label(ctx, ctx->subnet->ports[side->port].peer));
}

const char *output_verdict(struct context *ctx, const struct explain_side *a, const struct explain_side *b,
                           bool by_policy)
{
        const struct explain_end *ea = by_policy ? &a->by_policy : &a->in_hardware;
        const struct explain_end *eb = by_policy ? &b->by_policy : &b->in_hardware;
        enum explain_verdict verdict = explain_pair(ea, eb);
        _cleanup_text_ struct text t = {};

        switch (verdict) {
        case EXPLAIN_TALK:
                text_add(&t, "through ");
                break;
        case EXPLAIN_UNKNOWN:
                return by_policy ? "there is no policy" : "a table that decides could not be read";
        case EXPLAIN_BLOCKED_A:
                add_filter(&t, ctx, a);
                break;
        case EXPLAIN_BLOCKED_B:
                add_filter(&t, ctx, b);
                break;
        case EXPLAIN_BOTH_LIMITED:
                text_add(&t, "both are only limited members of ");
                break;
        case EXPLAIN_NOTHING_COMMON:
                return "they have no partition in common";
        }
        add_bases(&t, ctx, ea, eb, verdict);
        return output_taken(ctx, &t);
}
