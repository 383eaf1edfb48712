/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/output_text.h"

#include <errno.h>
#include <time.h>

#include "subnet/fold.h"

void output_fail(struct context *ctx, int r)
{
        if (ctx->output_r == 0)
                ctx->output_r = r;
}

const char *output_or_fail(struct context *ctx, const char *text)
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
        return output_or_fail(ctx, text);
}

const char *output_taken(struct context *ctx, const struct text *t)
{
        return output_or_fail(ctx, text_copy(ctx->arena, t));
}

const char *output_time(struct context *ctx, usec_t when)
{
        time_t seconds = (time_t) (when / USEC_PER_SEC);
        char buffer[32];
        struct tm tm;

        if (when == 0 || !localtime_r(&seconds, &tm) || strftime(buffer, sizeof(buffer), "%Y-%m-%d %H:%M:%S", &tm) == 0)
                return "never";
        return output_format(ctx, "%s", buffer);
}

const char *output_label(struct context *ctx, uint32_t port)
{
        return output_or_fail(ctx, subnet_port_label(ctx->arena, ctx->subnet, port));
}

const char *output_folded(struct context *ctx, const uint32_t *ports, uint32_t n)
{
        return output_or_fail(ctx, fold_ports(ctx->arena, ctx->subnet, ports, n));
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

const char *output_base(struct context *ctx, uint16_t base)
{
        const char *name = output_partition(ctx, base);

        return *name ? name : output_format(ctx, "0x%04x", base);
}

const struct held_list *output_held(const struct context *ctx)
{
        return control_get_results(ctx->control)->held;
}

struct held_context output_held_context(struct context *ctx)
{
        return (struct held_context) {
                .arena = ctx->arena, .subnet = ctx->subnet, .known = ctx->known, .policy = ctx->policy,
                .now = clock_wall() / USEC_PER_SEC, .time = clock_to_text,
        };
}

static enum m_key_source m_key_source(const struct context *ctx, uint32_t port)
{
        return m_keys_source(ctx->files->m_keys, ctx->subnet->ports[port].guid);
}

static const char *no_answer(struct context *ctx, uint32_t port)
{
        return output_format(ctx, "no answer (" M_KEY_SILENCE_FORMAT ")", m_key_source_to_string(m_key_source(ctx, port)));
}

static const char *refused(struct context *ctx, uint16_t status)
{
        return output_format(ctx, "refused with status 0x%04x (%s)", status, mad_status_to_string(status));
}

const char *output_failure(struct context *ctx, uint32_t port)
{
        const struct subnet_node *incomplete = subnet_port_incomplete_node(ctx->subnet, &ctx->subnet->ports[port]);
        const struct observed_table *t = &ctx->observed->tables[port];

        switch (t->failure) {
        case MAD_ANSWERED:
                return "its table was not read";
        case MAD_TIMED_OUT:
                if (incomplete)
                        return output_format(ctx, "not queried: %s did not answer all discovery queries", subnet_node_label(ctx->arena, incomplete) ?: "?");
                return no_answer(ctx, port);
        case MAD_REFUSED:
                return t->is_stranger ? "another node answers at its LID" : refused(ctx, t->mad_status);
        case MAD_BUSY:
                return "still busy after all retries";
        case MAD_UNSENT:
                return "this host could not send to it";
        }
        return "?";
}

const char *output_reason(struct context *ctx, uint32_t port, const struct apply_outcome *outcome)
{
        static const char *const sentences[] = {
                [APPLY_OK] = "waits for another port whose table is not certain",
                [APPLY_BUSY] = "still busy after all retries",
                [APPLY_UNSENT] = "this host could not send it",
                [APPLY_CHANGED] = "the block changed after the plan was made: another program writes it",
                [APPLY_MISMATCH] = "answered, but does not hold what was sent",
                [APPLY_REVERTED] = "was written, but read back different at the end: another program writes it",
                [APPLY_STRANGER] = "another port has its address now: the fabric changed since it was discovered",
                [APPLY_UNREACHABLE] = "its table could not be read before, so it was not written",
                [APPLY_ABORTED] = "the run ended before its turn",
        };

        if (outcome->reason == APPLY_TIMEOUT)
                return no_answer(ctx, port);
        if (outcome->reason == APPLY_SET_UNANSWERED)
                return m_key_source_of_reader(m_key_source(ctx, port), outcome->m_key_counted);
        if (outcome->reason == APPLY_STATUS)
                return refused(ctx, outcome->mad_status);
        return WORD(sentences, outcome->reason, "?");
}

const char *output_line(struct context *ctx, uint32_t port, uint16_t base, const struct port_membership **ret)
{
        const struct port_membership *item = ctx->memberships ? memberships_find(ctx->memberships, port, base) : NULL;

        *ret = item;
        if (!item)
                return "";
        if (!item->rule)
                return "the default partition's own rules";
        if (item->rule->where.line == 0)
                return "lease";
        return output_format(ctx, "%s:%u", item->rule->where.file, item->rule->where.line);
}
