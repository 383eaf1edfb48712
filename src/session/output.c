/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/output.h"

#include <errno.h>
#include <string.h>

#include "shell/findings_print.h"

/* --- text --------------------------------------------------------------------------------------------------------------- */

#define MAX_OF_A_KIND 16

/* Of many notes or warnings that are about no place in a file, as one for each port that does not answer, the first, and how many
 * there are. */
static int shorten(struct context *ctx, struct findings *f)
{
        size_t n_of_kind[FINDING_CODE_MAX] = {}, last[FINDING_CODE_MAX] = {}, n = 0;
        struct finding *kept = arena_new_array(ctx->arena, struct finding, f->n);

        if (!kept)
                return -ENOMEM;
        for (size_t i = 0; i < f->n; i++) {
                const struct finding *item = &f->items[i];

                if (item->severity < FINDING_ERROR && item->where.line == 0) {
                        if (n_of_kind[item->code]++ > MAX_OF_A_KIND)
                                continue;
                        last[item->code] = n;
                }
                kept[n++] = *item;
        }
        for (size_t code = 0; code < FINDING_CODE_MAX; code++)
                if (n_of_kind[code] > MAX_OF_A_KIND + 1)
                        kept[last[code]].text = output_format(ctx, "%zu more of this kind (-v lists them)", n_of_kind[code] - MAX_OF_A_KIND);
        f->items = kept;
        f->n = n;
        return 0;
}

void text_findings(struct context *ctx, bool terse)
{
        enum finding_severity least = FINDING_NOTE;
        struct findings rest = ctx->findings;

        if (ctx->options->quiet || (terse && !ctx->options->verbose))
                least = FINDING_ERROR;
        rest.items += ctx->n_shown;
        rest.n -= ctx->n_shown;
        if (!ctx->options->verbose)
                output_fail(ctx, shorten(ctx, &rest));
        ctx->n_shown = ctx->findings.n;
        output_fail(ctx, findings_print(stderr, &rest, least));
}

void text_unjudged(uint32_t n_unreachable, uint32_t n_silent, uint32_t n_frozen)
{
        if (n_unreachable > 0)
                printf(", %u could not be read", n_unreachable);
        if (n_silent > 0)
                printf(", %u link%s did not answer discovery", n_silent,
                       n_silent == 1 ? " is up, but its other end" : "s are up, but their other ends");
        if (n_frozen > 0)
                printf(", %u %s frozen", n_frozen, n_frozen == 1 ? "is" : "are");
}

void text_table_print(struct context *ctx, struct text_table *t)
{
        output_fail(ctx, text_table_end(t));
}

const char *text_p_keys(struct context *ctx, const struct p_key *keys, uint32_t n)
{
        _cleanup_text_ struct text t = {};

        for (uint32_t i = 0; i < n; i++)
                if (keys[i].v != 0)
                        text_add(&t, "%s0x%04x", t.n > 0 ? " " : "", keys[i].v);
        return output_taken(ctx, &t);
}

json_t *json_unreachable(struct doc *d, const uint32_t *ports, uint32_t n)
{
        const struct observed_table *tables = d->ctx->observed->tables;

        return JSON_ARRAY(i, n, doc_port(d, ports[i], "{s:s, s:o, s:b}",
                                           "reason", mad_outcome_to_string(tables[ports[i]].failure),
                                           "detail", doc_text(output_failure(d->ctx, ports[i])),
                                           "assumed", tables[ports[i]].source == TABLE_ASSUMED));
}

json_t *json_member_count(const struct member_count *count)
{
        return json_pack("{s:i, s:i, s:i}", "full", count->full, "limited", count->limited, "both", count->both);
}

/* --- results --------------------------------------------------------------------------------------------------------- */

int output(struct context *ctx, const struct printer *p, enum exit_status status, const void *result)
{
        _cleanup_doc_ struct doc d = {};

        ctx->status = status;
        if (ctx->options->json) {
                doc_begin(&d, ctx, (!(p->flags & OK_IF_DONE) || status == EXIT_DONE) && ctx->wait_end <= WAIT_CONFIRMED_HERE);
                if (p->json)
                        p->json(&d, result);
                if (ctx->output_r == 0)
                        doc_print(&d);
                return status;
        }
        if (!(p->flags & FINDINGS_LAST))
                text_findings(ctx, p->flags & TERSE);
        if (!ctx->options->quiet || !(p->flags & QUIET))
                p->text(ctx, result);
        if (p->flags & FINDINGS_LAST && ctx->output_r == 0)
                text_findings(ctx, p->flags & TERSE);
        return status;
}

void output_sentence(struct context *ctx, const char *text)
{
        if (ctx->status == EXIT_REFUSED)
                fprintf(stderr, "%s\n", text);
        else if (!ctx->options->quiet)
                puts(text);
}

static void text_refusal(struct context *ctx, const void *)
{
        fprintf(stderr, "%s; %s\n", findings_print_count(&ctx->findings).text,
                ctx->writing         ? "the run ended early; pkeyctl verify shows which tables differ"
                : ctx->is_unanswered ? "whether the request is carried out is not known" : "nothing was sent");
}

void output_refusal(struct context *ctx)
{
        static const struct printer printer = { text_refusal, NULL, OK_IF_DONE };

        (void) output(ctx, &printer, EXIT_REFUSED, NULL);
}

/* --- questions ------------------------------------------------------------------------------------------------------- */

int ask_check_terminal(struct context *ctx)
{
        if (ctx->options->yes || ctx->assume_yes || isatty(STDIN_FILENO))
                return 0;
        return findings_error(&ctx->findings, FINDING_USAGE, "--yes confirms", "confirmation required, but standard input is not a terminal");
}

int ask_person(struct context *ctx, const char *question, ...)
{
        char answer[16] = "";
        va_list ap;

        if (ctx->options->yes || ctx->assume_yes)
                return 0;
        (void) fflush(stdout);
        va_start(ap, question);
        (void) vfprintf(stderr, question, ap);
        va_end(ap);
        fputs(" [y/N] ", stderr);
        if (!fgets(answer, sizeof(answer), stdin))
                fputc('\n', stderr);
        answer[strcspn(answer, "\r\n")] = '\0';
        if (strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0)
                return 0;
        return findings_error(&ctx->findings, FINDING_USAGE, NULL, "not confirmed");
}

/* --- a file ---------------------------------------------------------------------------------------------------------- */

struct file {
        const char *bytes;
        size_t n;
};

/* Writes --output, which must not exist. False: a finding has the reason, the output has failed, and no part of it is left: the
 * beginning of a policy may be a policy. */
static bool write_file(struct context *ctx, const struct file *file)
{
        static const char in_the_way[] = "no file is replaced: move it away, or name another one with --output";
        const char *path = ctx->options->output;
        FILE *f = fopen(path, "wxe");
        const bool is_made = f != NULL;
        bool failed = !f || fwrite(file->bytes, 1, file->n, f) != file->n;
        int error = errno;

        if (f && fclose(f) != 0) {
                failed = true;
                error = errno;
        }
        if (is_made && failed)
                (void) unlink(path);
        if (failed)
                output_fail(ctx, findings_error(&ctx->findings, FINDING_FILE_UNWRITABLE, error == EEXIST ? in_the_way : NULL, "%s: %s",
                                                path, strerror(error)));
        return !failed;
}

static void text_file(struct context *ctx, const void *result)
{
        const struct file *file = result;

        if (ctx->options->output)
                (void) write_file(ctx, file);
        else if (fwrite(file->bytes, 1, file->n, stdout) != file->n)
                output_fail(ctx, -EIO);
}

static void json_file(struct doc *d, const void *result)
{
        const struct file *file = result;
        const char *path = d->ctx->options->output;

        if (!path || write_file(d->ctx, file))
                doc_add(d, d->root, "{s:o}", path ? "output" : "text", doc_text(path ?: file->bytes));
}

int output_file(struct context *ctx, enum exit_status status, const char *bytes, size_t n)
{
        static const struct printer printer = { text_file, json_file, FINDINGS_LAST };
        const struct file file = { bytes, n };

        return output(ctx, &printer, status, &file);
}
