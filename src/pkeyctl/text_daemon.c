/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>
#include <time.h>

#include "pkeyctl/result_text.h"

#define TIME_SIZE      32
#define MAX_HELD_LINES 4

/* Local time, as journalctl has it. */
static const char *format_time(usec_t when, char buffer[static TIME_SIZE])
{
        time_t seconds = (time_t) (when / USEC_PER_SEC);
        struct tm tm;

        if (when == 0 || !localtime_r(&seconds, &tm) || strftime(buffer, TIME_SIZE, "%Y-%m-%d %H:%M:%S", &tm) == 0)
                (void) snprintf(buffer, TIME_SIZE, "never");
        return buffer;
}

/* --- status ---------------------------------------------------------------------------------------------------------- */

/* Nothing where there is only one of it. */
static const char *describe_role(const struct daemon_status *s)
{
        if (!s->role || strcmp(s->role, "follow-sm") != 0)
                return "";
        return s->writing ? ", role follow-sm (writing)" : ", role follow-sm (not writing)";
}

static void print_files(const struct daemon_status *s)
{
        if (s->generation == 0)
                printf("  in force      nothing yet\n");
        else
                printf("  in force      generation %" PRIu64 ", %" PRIu64 " partition%s, mode %s%s%s\n", s->generation,
                       s->partitions, text_plural(s->partitions), s->mode ?: "?", describe_role(s),
                       daemon_is(s, "failed") ? "; the last sweep failed to carry it out" : "");
        printf("  policy        %s", s->policy_file ?: "?");
        if (s->file_errors > 0)
                printf(": refused as it is or its settings are, with %" PRIu64 " error%s; pkeyctl reload tells them again",
                       s->file_errors, text_plural(s->file_errors));
        putchar('\n');
}

/* A line for each that the daemon named; n of them are printed or counted, and there are `all`. */
static void print_lines(const char *lines, uint64_t max, uint64_t all)
{
        uint64_t n = 0;

        for (const char *line = lines; line && *line && n < max; n++) {
                size_t length = strcspn(line, "\n");

                printf("                %.*s\n", (int) length, line);
                line += length + (line[length] == '\n');
        }
        if (n < all)
                printf("                and %" PRIu64 " more\n", all - n);
}

static void print_silent(const struct daemon_status *s)
{
        if (s->links_silent > 0)
                printf("  silent        %" PRIu64 " link%s up whose other end did not answer discovery; pkeyctl verify names %s\n",
                       s->links_silent, s->links_silent == 1 ? " is" : "s are", s->links_silent == 1 ? "it" : "them");
}

static void print_frozen(const struct daemon_status *s)
{
        if (s->ports_frozen == 0)
                return;
        printf("  frozen        %" PRIu64 " port%s; pkeyctl plan says what to do\n", s->ports_frozen, text_plural(s->ports_frozen));
        print_lines(s->frozen, UINT64_MAX, s->ports_frozen);
}

static void print_held(const struct daemon_status *s)
{
        if (s->held_bases == 0)
                return;
        printf("  held          %" PRIu64 " base%s; pkeyctl show held lists them\n", s->held_bases, text_plural(s->held_bases));
        print_lines(s->held, MAX_HELD_LINES, s->held_bases);
}

void text_status(struct context *ctx, const struct result *result)
{
        const struct daemon_status *s = &result->daemon;
        char buffer[TIME_SIZE];

        (void) ctx;
        printf("pkeyd %s: %s%s\n", s->version ?: "?", s->state ?: "?", s->reloading ? ", a reload is under way" : "");
        printf("  status        %s\n", s->text ?: "");
        print_files(s);
        printf("  ports         %" PRIu64 " managed: %" PRIu64 " right, %" PRIu64 " differ, %" PRIu64 " unreachable\n",
               s->ports_managed, s->ports_right, s->ports_differ, s->ports_unreachable);
        print_silent(s);
        print_frozen(s);
        print_held(s);
        printf("  last success  %s\n", format_time(s->last_success, buffer));
        if (s->violations_since == 0)
                printf("  violations    are not counted\n");
        else
                printf("  violations    %" PRIu64 " since %s\n", s->violations_total, format_time(s->violations_since, buffer));
        if (s->notices) /* an older daemon does not say */
                printf("  notices       %s\n", s->notices);
}

/* --- reload ---------------------------------------------------------------------------------------------------------- */

void text_reload(struct context *ctx, const struct result *result)
{
        const struct reload_result *r = &result->reload;
        static const struct {
                const char *outcome, *sentence;
        } sentences[] = {
                { "carried-out", "carried out: " },
                { "unchanged", "both files are as they were: " },
                { "partial", "carried out in part, pkeyd goes on: " },
                { "waits", "not carried out yet, pkeyd goes on trying: " },
        };
        const char *sentence = "";

        for (size_t i = 0; i < ELEMENTS(sentences); i++)
                if (strcmp(r->outcome, sentences[i].outcome) == 0)
                        sentence = sentences[i].sentence;
        if (result->status == EXIT_REFUSED)
                fprintf(stderr, "%s\n", r->text);
        else if (!ctx->options->quiet)
                printf("%s%s\n", sentence, r->text);
        if (result->status != EXIT_REFUSED && !ctx->options->quiet)
                print_held(&r->daemon);
}

/* --- violations ------------------------------------------------------------------------------------------------------ */

static void add_row(struct text_table *t, const struct seen_violation *v)
{
        char first[TIME_SIZE] = "?", last[TIME_SIZE] = "?", key[16] = "", total[32] = "maximum";

        if (v->p_key)
                (void) snprintf(key, sizeof(key), "0x%04x", (unsigned) v->p_key);
        /* one that stood at its maximum at the first look: nobody knows since when, nor how many */
        if (v->total > 0) {
                (void) format_time(v->first, first);
                (void) format_time(v->last, last);
                (void) snprintf(total, sizeof(total), "%s%" PRIu64, v->saturated ? ">=" : "", v->total);
        }
        text_table_row(t, NULL, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", first, last, v->node ?: "?", v->switch_name ?: "",
                       v->source ?: "", key, v->partition ?: "", total);
}

static void print_none(const struct violations_result *r)
{
        usec_t since = r->since > r->counted_since ? r->since : r->counted_since;
        const char *at = r->node ? " at " : "", *node = r->node ?: "";
        char buffer[TIME_SIZE];

        if (r->once)
                printf("no violations%s%s within %.0f s, on %u ports\n", at, node,
                       (double) r->interval / (double) USEC_PER_SEC, r->n_polled);
        else if (r->counted_since == 0)
                printf("pkeyd does not count violations\n");
        else
                printf("no violations%s%s since %s\n", at, node, format_time(since, buffer));
}

void text_violations(struct context *ctx, const struct result *result)
{
        const struct violations_result *r = &result->violations;
        struct text_table t;

        if (r->once && r->n_silent > 0)
                printf("%u of %u ports did not tell their counters\n", r->n_silent, r->n_polled);
        if (r->n_items == 0) {
                print_none(r);
                return;
        }
        text_table_begin(&t, "SINCE|LAST|PORT|SWITCH|SOURCE|P_KEY|PARTITION|>COUNT", 0);
        for (uint32_t i = 0; i < r->n_items; i++)
                add_row(&t, &r->items[i]);
        text_table_print(ctx, &t);
        if (r->n_all > r->n_items)
                printf("and %" PRIu64 " more; --node and --since choose among them\n", r->n_all - r->n_items);
        for (uint32_t i = 0; i < r->n_items && (r->once || ctx->options->verbose); i++)
                if (r->items[i].text)
                        printf("%s\n", r->items[i].text);
}

/* --- watch ----------------------------------------------------------------------------------------------------------- */

/* "state=right generation=2", and behind it the status line if that changed. */
static void print_changes(const struct watched *r)
{
        char buffer[TIME_SIZE];
        const char *space = "";

        for (size_t i = 0; i < n_daemon_status_fields; i++) {
                const struct bus_field *f = &daemon_status_fields[i];

                if (!(r->changed & UINT64_C(1) << i) || i == DAEMON_STATUS_TEXT || i == DAEMON_STATUS_FROZEN ||
                    i == DAEMON_STATUS_HELD)
                        continue;
                if (f->kind == FIELD_TEXT)
                        printf("%s%s=%s", space, f->json_key, bus_field_text(f, &r->status) ?: "");
                else if (f->kind == FIELD_TIME)
                        printf("%s%s='%s'", space, f->json_key, format_time(bus_field_number(f, &r->status), buffer));
                else
                        printf("%s%s=%" PRIu64, space, f->json_key, bus_field_number(f, &r->status));
                space = " ";
        }
        if (r->status.text)
                printf("%s%s", *space ? ": " : "", r->status.text);
}

/* A line for each base, with all that status has of it. */
static void print_watched_held(const struct watched *r)
{
        const char *line = r->changed & UINT64_C(1) << DAEMON_STATUS_HELD ? r->status.held : NULL;
        char buffer[TIME_SIZE];

        (void) format_time(r->when, buffer);
        if (line && *line == '\0' && r->kind == WATCHED_CHANGE)
                printf("%s no base is held any more\n", buffer);
        while (line && *line) {
                size_t length = strcspn(line, "\n");

                printf("%s %.*s\n", buffer, (int) length, line);
                line += length + (line[length] == '\n');
        }
}

void text_watched(struct context *ctx, const struct watched *r)
{
        char buffer[TIME_SIZE];

        (void) ctx;
        if (r->kind == WATCHED_CHANGE && r->changed == UINT64_C(1) << DAEMON_STATUS_HELD) {
                print_watched_held(r);
                return;
        }
        printf("%s ", format_time(r->when, buffer));
        switch (r->kind) {
        case WATCHED_STATUS:
        case WATCHED_CHANGE:
                print_changes(r);
                break;
        case WATCHED_RELOAD:
                printf("reload %s: %s", r->reload.outcome, r->reload.text);
                break;
        case WATCHED_VIOLATION:
                printf("violation: %s", r->violation.text ?: "?");
                break;
        case WATCHED_GONE:
                printf("pkeyd is gone");
                break;
        }
        putchar('\n');
        print_watched_held(r);
}
