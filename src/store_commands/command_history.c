/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "shell/file.h"
#include "shell/text_diff.h"
#include "store_commands/store_commands.h"
#include "util/scan.h"
#include "util/vector.h"
#include "util/yaml_source.h"

#define POLICY_NAME   "partitions.yaml"
#define SETTINGS_NAME "pkeyd.yaml"
#define ON_DISK       "file"
#define MAX_RANGES    8

/* One stored generation. */
struct past {
        uint64_t number;
        bool is_damaged;               /* nothing below is certain, and the files are not known */
        bool is_in_force;
        uint64_t undone_by;            /* 0: none */
        struct generation_facts facts;
        bool has_settings;
        size_t policy_size, settings_size;
};

/* What changed against the generation before. */
enum comparison {
        COMPARE_UNKNOWN,
        COMPARE_EQUAL,
        COMPARE_DIFFERENT,
};

struct history_result {
        struct past *items;            /* ascending */
        size_t n, allocated;
        const struct past *one;        /* of `show` */
        uint64_t before;               /* the generation before it; 0: none */
        enum comparison policy, settings;
};

/* The files of a generation, or those on the disk. */
struct version {
        uint64_t number;               /* 0: on the disk */
        struct text_version policy, settings; /* settings.bytes NULL: not stored */
};

struct diff_result {
        struct version from, to;
        const char *policy, *settings; /* diffs; settings NULL: not known */
        size_t n_policy, n_settings;
};

static bool has_facts(const struct past *p)
{
        return p->facts.origin.kind != ORIGIN_UNKNOWN;
}

static bool is_waiting(const struct past *p)
{
        return p->is_in_force && generation_waits(&p->facts);
}

/* As the store has it; 0: not known. */
static usec_t time_of(uint64_t seconds)
{
        return seconds > INT64_MAX / USEC_PER_SEC ? 0 : seconds * USEC_PER_SEC;
}

/* --- JSON ------------------------------------------------------------------------------------------------------------ */

static json_t *text_or_null(const char *text)
{
        return *text ? doc_text(text) : json_null();
}

static json_t *origin_object(const struct origin *by)
{
        bool has_uid = by->kind == ORIGIN_BUS || by->kind == ORIGIN_COMMAND;

        if (by->kind == ORIGIN_UNKNOWN)
                return json_null();
        return json_pack("{s:s, s:o, s:o}", "via", origin_to_string(by->kind), "uid", has_uid ? json_integer(by->uid) : json_null(),
                         "user", text_or_null(by->user));
}

static json_t *past_object(struct doc *d, const struct past *p)
{
        const struct generation_facts *f = &p->facts;
        json_t *o = json_pack("{s:I, s:o, s:b, s:b, s:o, s:o, s:o}", "number", (json_int_t) p->number, "time", doc_time(time_of(f->time)),
                              "damaged", p->is_damaged, "in_force", p->is_in_force, "origin", origin_object(&f->origin),
                              "changes", has_facts(p) ? JSON_ARRAY(i, f->n_changes, doc_text(f->changes[i])) : json_null(),
                              "n_held", has_facts(p) ? json_integer(f->n_held) : json_null());

        doc_add(d, o, "{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "outcome", text_or_null(f->outcome), "ended", doc_time(time_of(f->ended)),
                "undoes", doc_number(f->undoes), "restores", doc_number(f->restores), "undone_by", doc_number(p->undone_by),
                "confirm_for", doc_number(f->confirm_for),
                "confirm_until", f->confirm_for > 0 ? doc_time(time_of(f->confirm_until)) : json_null());
        doc_add(d, o, "{s:b, s:o, s:o, s:o, s:o}", "waits", is_waiting(p), "confirmed", doc_time(time_of(f->confirmed)),
                "confirmed_by", origin_object(&f->confirmed_by),
                "policy_size", p->is_damaged ? json_null() : json_integer((json_int_t) p->policy_size),
                "settings_size", p->has_settings ? json_integer((json_int_t) p->settings_size) : json_null());
        return o;
}

static void json_history(struct doc *d, const void *result)
{
        const struct history_result *r = result;

        doc_add(d, d->root, "{s:o}", "generations", JSON_ARRAY(i, r->n, past_object(d, &r->items[r->n - 1 - i])));
}

static json_t *json_comparison(enum comparison c)
{
        return c == COMPARE_UNKNOWN ? json_null() : json_boolean(c == COMPARE_DIFFERENT);
}

static void json_show_one(struct doc *d, const void *result)
{
        const struct history_result *r = result;
        const struct generation_facts *f = &r->one->facts;
        size_t n = MIN(f->n_held, (uint32_t) GENERATION_MAX_HELD);
        json_t *o = past_object(d, r->one);

        doc_add(d, o, "{s:o, s:o, s:o, s:o}", "held", has_facts(r->one) ? JSON_ARRAY(i, n, doc_partition(d, f->held[i], "{}")) : json_null(),
                "previous", doc_number(r->before), "policy_changed", json_comparison(r->policy),
                "settings_changed", json_comparison(r->settings));
        doc_add(d, d->root, "{s:o}", "generation", o);
}

static json_t *diff_object(const char *name, const char *diff)
{
        return json_pack("{s:s, s:o}", "file", name, "diff", doc_text(diff));
}

static void json_diff(struct doc *d, const void *result)
{
        const struct diff_result *r = result;

        doc_add(d, d->root, "{s:o, s:o, s:[o, o]}", "from", doc_number(r->from.number), "to", doc_number(r->to.number),
                "files", diff_object(POLICY_NAME, r->policy), diff_object(SETTINGS_NAME, r->settings));
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

/* A text of the store for a terminal. */
static const char *visible(struct context *ctx, const char *text)
{
        return output_or_fail(ctx, yaml_source_visible(ctx->arena, text, strlen(text)));
}

static const char *time_text(struct context *ctx, uint64_t seconds)
{
        return time_of(seconds) > 0 ? output_time(ctx, time_of(seconds)) : "not known";
}

static const char *origin_text(struct context *ctx, const struct origin *by)
{
        const char *user = *by->user ? visible(ctx, by->user) : output_format(ctx, "uid %u", (unsigned) by->uid);

        switch (by->kind) {
        case ORIGIN_UNKNOWN:
                return "not known";
        case ORIGIN_START:
                return "start of pkeyd";
        case ORIGIN_SIGNAL:
                return "SIGHUP";
        case ORIGIN_BUS:
                return user;
        case ORIGIN_COMMAND:
                return output_format(ctx, "%s, without pkeyd", user);
        case ORIGIN_TIMEOUT:
                return "not confirmed in time";
        }
        return "?";
}

static const char *result_text(struct context *ctx, const struct past *p)
{
        const char *outcome = visible(ctx, p->facts.outcome);

        if (!has_facts(p))
                return "not known";
        if (strcmp(outcome, "carried-out") == 0)
                outcome = "carried out";
        if (p->facts.n_held == 0)
                return *outcome ? outcome : "no sweep ended";
        return output_format(ctx, "%s, %u base%s held", outcome, p->facts.n_held, text_plural(p->facts.n_held));
}

/* The first sentence sums up the others. */
static const char *changes_text(struct context *ctx, const struct past *p)
{
        const struct generation_facts *f = &p->facts;

        if (!has_facts(p))
                return "not known";
        if (f->n_changes == 0)
                return "-";
        if (f->n_changes <= 2)
                return visible(ctx, f->changes[f->n_changes - 1]);
        return output_format(ctx, "%s (and %zu more)", visible(ctx, f->changes[1]), f->n_changes - 2);
}

static void __attribute__((format(printf, 2, 3))) add_mark(struct text *t, const char *format, ...)
{
        char mark[256];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(mark, sizeof(mark), format, ap);
        va_end(ap);
        text_add(t, "%s%s", t->n > 0 ? "; " : "", mark);
}

static const char *marks_text(struct context *ctx, const struct past *p)
{
        const struct generation_facts *f = &p->facts;
        _cleanup_text_ struct text t = {};

        if (p->is_damaged)
                add_mark(&t, "damaged");
        if (p->is_in_force)
                add_mark(&t, "in force");
        if (p->undone_by > 0)
                add_mark(&t, "undone by %" PRIu64, p->undone_by);
        if (f->undoes > 0)
                add_mark(&t, "undoes %" PRIu64 ", with the files of %" PRIu64, f->undoes, f->restores);
        if (is_waiting(p))
                add_mark(&t, "waits until %s to be confirmed", time_text(ctx, f->confirm_until));
        if (f->confirmed > 0)
                add_mark(&t, "confirmed %s by %s", time_text(ctx, f->confirmed), origin_text(ctx, &f->confirmed_by));
        return output_taken(ctx, &t);
}

static void text_history(struct context *ctx, const void *result)
{
        const struct history_result *r = result;
        struct text_table t;

        if (r->n == 0) {
                puts("no policy has come into force with this state directory yet");
                return;
        }
        text_table_begin(&t, ">NUMBER|WHEN|BY|RESULT|NOTES|*CHANGES", 0);
        for (size_t i = r->n; i-- > 0;) {
                const struct past *p = &r->items[i];

                text_table_row(&t, p->is_damaged ? "red" : NULL, "%" PRIu64 "\t%s\t%s\t%s\t%s\t%s", p->number,
                               time_text(ctx, p->facts.time), origin_text(ctx, &p->facts.origin), result_text(ctx, p),
                               marks_text(ctx, p), changes_text(ctx, p));
        }
        text_table_print(ctx, &t);
}

static const char *held_text(struct context *ctx, const struct generation_facts *f)
{
        uint32_t n = MIN(f->n_held, (uint32_t) GENERATION_MAX_HELD);
        _cleanup_text_ struct text t = {};

        for (uint32_t i = 0; i < n; i++) {
                const char *name = output_partition(ctx, f->held[i]);

                text_add(&t, "%s0x%04x%s%s%s", i > 0 ? ", " : "", f->held[i], *name ? " (" : "", name, *name ? ")" : "");
        }
        if (f->n_held > n)
                text_add(&t, " and %u more", f->n_held - n);
        return output_taken(ctx, &t);
}

/* "812 bytes, changed since generation 7" */
static void print_file(const char *name, size_t size, enum comparison c, uint64_t before)
{
        printf("  %-16s %zu byte%s", name, size, text_plural(size));
        if (c != COMPARE_UNKNOWN)
                printf(", %s generation %" PRIu64, c == COMPARE_EQUAL ? "the same as in" : "changed since", before);
        putchar('\n');
}

static void print_files(const struct history_result *r)
{
        const struct past *p = r->one;

        if (p->is_damaged)
                return;
        print_file(POLICY_NAME ":", p->policy_size, r->policy, r->before);
        if (p->has_settings)
                print_file(SETTINGS_NAME ":", p->settings_size, r->settings, r->before);
        else
                printf("  %-16s not stored\n", SETTINGS_NAME ":");
}

static void print_facts(struct context *ctx, const struct past *p)
{
        const struct generation_facts *f = &p->facts;

        printf("  %-16s %s\n", "in force since:", time_text(ctx, f->time));
        printf("  %-16s %s\n", "by:", origin_text(ctx, &f->origin));
        printf("  %-16s %s%s%s\n", "result:", result_text(ctx, p), f->ended > 0 ? ", " : "", f->ended > 0 ? time_text(ctx, f->ended) : "");
        if (f->n_held > 0)
                printf("  %-16s %s\n", "held:", held_text(ctx, f));
}

static void text_show_one(struct context *ctx, const void *result)
{
        const struct history_result *r = result;
        const struct past *p = r->one;
        const char *marks = marks_text(ctx, p);

        printf("generation %" PRIu64 "%s%s\n", p->number, *marks ? ": " : "", marks);
        print_facts(ctx, p);
        print_files(r);
        if (!has_facts(p))
                return;
        puts(p->facts.n_changes > 0 ? "  changes:" : "  changes:         none in who can talk to whom");
        for (size_t i = 0; i < p->facts.n_changes; i++)
                printf("    %s\n", visible(ctx, p->facts.changes[i]));
}

static void print_lines(struct context *ctx, const char *text, size_t n)
{
        struct scan rest = { text, text + n }, line;

        while (scan_line(&rest, &line))
                puts(output_or_fail(ctx, yaml_source_visible(ctx->arena, line.p, (size_t) (line.end - line.p))));
}

static void text_diffs(struct context *ctx, const void *result)
{
        const struct diff_result *r = result;

        print_lines(ctx, r->policy, r->n_policy);
        if (r->settings)
                print_lines(ctx, r->settings, r->n_settings);
        if (ctx->status == EXIT_DONE)
                puts(r->settings ? "both files are the same" : POLICY_NAME " is the same");
}

/* --- the store ------------------------------------------------------------------------------------------------------- */

/* Its files are freed; what is left lives in the arena. Another process may have deleted it a moment ago. */
static int add_past(struct context *ctx, uint64_t number, struct history_result *to)
{
        const struct remembered *m = ctx->remembered;
        struct stored_files files;
        int r = state_read_generation(&ctx->state, ctx->arena, number, &files);

        stored_files_done(&files);
        if (r == -ENOENT)
                return 0;
        if (r < 0 && r != -EBADMSG)
                return state_complain_generation(&ctx->state, &ctx->findings, number, r);
        return VECTOR_ADD(ctx->arena, to->items, to->n, to->allocated, (struct past) {
                .number = number, .is_damaged = r == -EBADMSG, .is_in_force = m->policy && number == m->generation,
                .facts = files.facts, .has_settings = r == 0 && files.has_settings,
                .policy_size = files.policy_size, .settings_size = files.settings_size,
        });
}

static int read_all(struct context *ctx, struct history_result *ret)
{
        const struct generation_history *h = &ctx->remembered->history;
        int r = 0;

        for (size_t i = 0; r == 0 && i < h->n; i++)
                r = add_past(ctx, h->items[i].number, ret);
        for (size_t i = 0; r == 0 && i < ret->n; i++)
                for (size_t k = 0; ret->items[i].facts.undoes > 0 && k < i; k++)
                        if (ret->items[k].number == ret->items[i].facts.undoes)
                                ret->items[k].undone_by = ret->items[i].number;
        return r;
}

/* "3-9, 11" */
static const char *list_numbers(struct context *ctx)
{
        const struct generation_history *h = &ctx->remembered->history;
        _cleanup_text_ struct text t = {};
        size_t n_ranges = 0;

        for (size_t first = 0, next; first < h->n && n_ranges < MAX_RANGES; first = next, n_ranges++) {
                for (next = first + 1; next < h->n && h->items[next].number == h->items[next - 1].number + 1;)
                        next++;
                text_add(&t, "%s%" PRIu64, n_ranges > 0 ? ", " : "", h->items[first].number);
                if (next - first > 1)
                        text_add(&t, "-%" PRIu64, h->items[next - 1].number);
                if (next < h->n && n_ranges + 1 == MAX_RANGES)
                        text_add(&t, ", ...");
        }
        return output_taken(ctx, &t);
}

/* The generation that an argument names, which must be in the store. */
static int take_number(struct context *ctx, const char *text, uint64_t *ret)
{
        const struct generation_history *h = &ctx->remembered->history;
        struct scan s = { text, text + strlen(text) };
        uint64_t number;
        size_t at;

        if (!scan_number(&s, 10, INT64_MAX, &number) || s.p < s.end)
                return findings_error(&ctx->findings, FINDING_USAGE, "pkeyctl history lists the generations",
                                      "'%s' is not the number of a generation", visible(ctx, text));
        at = LOWER_BOUND(item, h->items, h->n, item->number < number);
        if (h->n == 0)
                return findings_error(&ctx->findings, FINDING_USAGE, NULL,
                                      "no policy has come into force with this state directory yet, so there is no generation %" PRIu64, number);
        if (at == h->n || h->items[at].number != number)
                return findings_error(&ctx->findings, FINDING_USAGE, NULL, "generation %" PRIu64 " is not in the store (it has %s)", number,
                                      list_numbers(ctx));
        *ret = number;
        return 0;
}

/* name: of the file. */
static int copy_file(struct context *ctx, const struct text *from, const char *name, uint64_t number, struct text_version *ret)
{
        const char *copy = arena_copy(ctx->arena, from->bytes ?: "", from->n + 1);

        *ret = (struct text_version) { output_format(ctx, "%s (generation %" PRIu64 ")", name, number), copy, from->n };
        return copy ? 0 : -ENOMEM;
}

/* Returns as state_read_generation(). */
static int load_version(struct context *ctx, uint64_t number, struct version *ret)
{
        struct stored_files files;
        int r = state_read_generation(&ctx->state, ctx->arena, number, &files);

        if (r < 0)
                return r;
        *ret = (struct version) { .number = number };
        r = copy_file(ctx, &files.policy, POLICY_NAME, number, &ret->policy);
        if (r == 0 && files.has_settings)
                r = copy_file(ctx, &files.settings, SETTINGS_NAME, number, &ret->settings);
        stored_files_done(&files);
        return r;
}

static int read_version(struct context *ctx, uint64_t number, struct version *ret)
{
        int r = load_version(ctx, number, ret);

        return r < 0 ? state_complain_generation(&ctx->state, &ctx->findings, number, r) : 0;
}

/* --- files on the disk ------------------------------------------------------------------------------------------------ */

/* Without a pkeyd.yaml pkeyd runs with default settings. */
static int read_files(struct context *ctx, struct version *ret)
{
        const char *policy = ctx->options->policy ?: ctx->fabric.policy_file;
        const char *settings = ctx->options->config ?: ctx->fabric.config_file;
        bool has_settings = ctx->options->config || access(settings, F_OK) == 0;
        int r;

        *ret = (struct version) { .policy.label = policy, .settings = { settings, "", 0 } };
        r = file_read_found(ctx->arena, policy, POLICY_MAX_FILE_SIZE, &ctx->findings, &ret->policy.bytes, &ret->policy.n);
        if (r == 0 && has_settings)
                r = file_read_found(ctx->arena, settings, SETTINGS_MAX_FILE_SIZE, &ctx->findings, &ret->settings.bytes,
                                    &ret->settings.n);
        return r;
}

/* --- comparing -------------------------------------------------------------------------------------------------------- */

static enum comparison compare(const struct text_version *a, const struct text_version *b)
{
        if (!a->bytes || !b->bytes)
                return COMPARE_UNKNOWN;
        return a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0 ? COMPARE_EQUAL : COMPARE_DIFFERENT;
}

/* Which files changed, and the names of partitions by its policy. What is damaged or was deleted is not known. */
static int examine(struct context *ctx, struct history_result *r)
{
        _cleanup_findings_ struct findings ignored = { .arena = ctx->arena };
        struct version before = {}, after = {};
        struct policy *policy = NULL;
        int e = load_version(ctx, r->one->number, &after);

        if (e == 0 && r->before > 0)
                e = load_version(ctx, r->before, &before);
        if (e != -ENOMEM && after.policy.bytes)
                e = policy_parse(ctx->arena, POLICY_NAME, after.policy.bytes, after.policy.n, &ignored, &policy);
        if (e == -ENOMEM)
                return e;
        ctx->policy = policy;
        r->policy = compare(&before.policy, &after.policy);
        r->settings = compare(&before.settings, &after.settings);
        return 0;
}

static int complain_diff(struct context *ctx, int r)
{
        static const char otherwise[] = "pkeyctl history policy N --output FILE writes the file of each generation";

        if (r == -ENOMEM)
                return r;
        if (r == -ENOENT)
                return findings_error(&ctx->findings, FINDING_HOST_DIFF, "install diffutils", "diff is not installed");
        if (r == -EFBIG)
                return findings_error(&ctx->findings, FINDING_FILE_TOO_LARGE, otherwise, "the difference is larger than %zu MiB",
                                      TEXT_DIFF_MAX >> 20);
        return findings_error(&ctx->findings, FINDING_HOST_DIFF, otherwise, "diff failed: %s", strerror(-r));
}

static int make_diffs(struct context *ctx, struct diff_result *d)
{
        const struct version *from = &d->from, *to = &d->to;
        int r = text_diff(ctx->arena, &from->policy, &to->policy, &d->policy, &d->n_policy);

        if (r == 0 && from->settings.bytes && to->settings.bytes)
                r = text_diff(ctx->arena, &from->settings, &to->settings, &d->settings, &d->n_settings);
        return r < 0 ? complain_diff(ctx, r) : 0;
}

/* --- the commands ----------------------------------------------------------------------------------------------------- */

int command_history(struct context *ctx)
{
        static const struct printer printer = { text_history, json_history, QUIET };
        struct history_result result = {};
        int r = read_all(ctx, &result);

        return r < 0 ? r : output(ctx, &printer, EXIT_DONE, &result);
}

int command_history_show(struct context *ctx)
{
        static const struct printer printer = { text_show_one, json_show_one, QUIET };
        struct history_result result = {};
        uint64_t number;
        int r = take_number(ctx, ctx->arguments[0], &number) ?: read_all(ctx, &result);

        if (r < 0)
                return r;
        for (size_t i = 0; i < result.n; i++)
                if (result.items[i].number == number)
                        result.one = &result.items[i];
        if (!result.one)
                return state_complain_generation(&ctx->state, &ctx->findings, number, -ENOENT);
        result.before = generation_history_before(&ctx->remembered->history, number);
        r = examine(ctx, &result);
        return r < 0 ? r : output(ctx, &printer, EXIT_DONE, &result);
}

/* One number: what that generation changed. */
static int read_versions(struct context *ctx, struct diff_result *d)
{
        const char *second = ctx->arguments[1];
        uint64_t first, other;
        int r = take_number(ctx, ctx->arguments[0], &first);

        if (r < 0)
                return r;
        if (second && strcmp(second, ON_DISK) == 0)
                return read_version(ctx, first, &d->from) ?: read_files(ctx, &d->to);
        if (second)
                return take_number(ctx, second, &other) ?: read_version(ctx, first, &d->from) ?: read_version(ctx, other, &d->to);
        other = generation_history_before(&ctx->remembered->history, first);
        if (other == 0)
                return findings_error(&ctx->findings, FINDING_USAGE, "pkeyctl history policy prints its policy",
                                      "generation %" PRIu64 " is the oldest one in the store: there is none before it", first);
        return read_version(ctx, other, &d->from) ?: read_version(ctx, first, &d->to);
}

int command_history_diff(struct context *ctx)
{
        static const struct printer printer = { text_diffs, json_diff, QUIET };
        struct diff_result d = {};
        int r = read_versions(ctx, &d) ?: make_diffs(ctx, &d);

        if (r < 0)
                return r;
        if (!d.settings)
                (void) findings_add(&ctx->findings, FINDING_NOTE, FINDING_HOST_STATE_DIR, NULL, SETTINGS_NAME " of generation %" PRIu64
                                    " is not in the store, because pkeyd 0.1.0 did not store it",
                                    d.from.settings.bytes ? d.to.number : d.from.number);
        return output(ctx, &printer, exit_status_of(d.n_policy + d.n_settings > 0, false), &d);
}

int command_history_policy(struct context *ctx)
{
        struct version v;
        uint64_t number;
        int r = take_number(ctx, ctx->arguments[0], &number) ?: read_version(ctx, number, &v);

        return r < 0 ? r : output_file(ctx, EXIT_DONE, v.policy.bytes, v.policy.n);
}
