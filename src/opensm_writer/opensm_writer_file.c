/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "opensm_writer/opensm_writer_internal.h"
#include "util/text.h"

/* --- problems ----------------------------------------------------------------------------------------------------- */

int writer_report(struct opensm_writer *w, int r, enum log_event event, const char *format, ...)
{
        struct log_about about = { .generation = w->job.generation->number };
        char text[sizeof(w->problem)];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        w->reported = true;
        if (strcmp(text, w->problem) == 0)
                return r;
        (void) strcpy(w->problem, text);
        log_add(w->log, event, &about, "%s", text);
        return r;
}

/* --- the file that this process wrote last -------------------------------------------------------------------------- */

bool writer_is_last_path(const struct opensm_writer *w)
{
        return w->last.path && strcmp(w->last.path, w->path) == 0;
}

static bool was_cut_short(const struct opensm_writer *w, struct file_bytes f)
{
        return writer_is_last_path(w) && f.n < w->last.n && memcmp(f.bytes, w->last.bytes, f.n) == 0;
}

static void report_new_path(const struct opensm_writer *w)
{
        const struct log_about about = { .generation = w->job.generation->number };

        if (w->last.path && !writer_is_last_path(w))
                log_add(w->log, LOG_EVENT_OPENSM_FILE_MOVED, &about,
                        "pkeyd writes OpenSM's partition file to %s from now on, and leaves %s as it is; check that OpenSM reads "
                        "the new one (partition_config_file in opensm.conf)", w->path, w->last.path);
}

/* Without memory for the copy, pkeyd will not recognize this file as its own if it is cut short later. */
void writer_remember_file(struct opensm_writer *w, struct file_bytes f, bool is_done)
{
        char *copy = malloc(MAX(f.n, (size_t) 1)), *path = strdup(w->path);

        report_new_path(w);
        free(w->last.bytes);
        free(w->last.path);
        if (copy)
                memcpy(copy, f.bytes, f.n);
        w->last = (struct written_file) {
                .path = path, .bytes = copy, .n = copy ? f.n : 0, .is_done = is_done && copy,
                .is_after_open = opensm_phases_are_open(&w->phases, w->job.snapshot->observed),
        };
}

bool writer_is_last_file(const struct opensm_writer *w, struct file_bytes f)
{
        return writer_is_last_path(w) && writer_same_bytes(f, (struct file_bytes) { w->last.bytes, w->last.n });
}

/* --- may it be replaced? -------------------------------------------------------------------------------------------- */

static int parse_as(struct opensm_writer *w, enum opensm_numbers numbers, struct file_bytes f, struct partitions_conf **ret)
{
        _cleanup_findings_ struct findings ignored = { .arena = w->arena };
        int r = partitions_conf_parse(w->arena, numbers, w->path, f.bytes, f.n, &ignored, ret);

        return r == 0 && (*ret)->discarded ? -EBADMSG : r;
}

/* Returns 0; -EBADMSG: OpenSM would drop the file and fall back to its default partitions; -ENOTUNIQ: that depends on its build;
 * -ENOMEM. */
static int parse_file(struct opensm_writer *w, struct file_bytes f, struct partitions_conf **ret)
{
        int r = parse_as(w, OPENSM_NUMBERS_UNKNOWN, f, ret), c17, c23;
        struct partitions_conf *other;

        if (r != -EBADMSG)
                return r;
        c17 = parse_as(w, OPENSM_NUMBERS_C17, f, &other);
        c23 = parse_as(w, OPENSM_NUMBERS_C23, f, &other);
        if (c17 == -ENOMEM || c23 == -ENOMEM)
                return -ENOMEM;
        return c17 == -EBADMSG && c23 == -EBADMSG ? -EBADMSG : -ENOTUNIQ;
}

const char *writer_describe_consequence(const struct opensm_writer *w)
{
        if (!w->job.mirror)
                return "nothing is written";
        return w->job.in_force ? "pkeyd carries out the policy without it, and OpenSM may undo that at its next heavy sweep"
                               : "when this host takes over, OpenSM will follow this file, not the policy";
}

static int refuse_numbers(struct opensm_writer *w)
{
        return writer_report(w, -EEXIST, LOG_EVENT_OPENSM_FILE_FOREIGN,
                             "%s contains a binary number (0b...), which only an OpenSM built with glibc 2.38 or later accepts, so pkeyd "
                             "does not replace it; %s; to resolve this, write the number in hexadecimal, then hand the file over again: "
                             "cp --backup=numbered %s %s.before-pkeyd", w->path, writer_describe_consequence(w), w->path, w->path);
}

static int refuse_file(struct opensm_writer *w, enum partitions_file_owner owner)
{
        const char *path = w->path;

        if (owner == PARTITIONS_FILE_OTHER)
                return writer_report(w, -EEXIST, LOG_EVENT_OPENSM_FILE_FOREIGN,
                                     "%s is written by the pkeyd of another fabric of this host, so this one does not replace it; %s; to resolve "
                                     "this, give the OpenSM of each fabric a partition file of its own (opensm in pkeyd.yaml, "
                                     "partition_config_file in opensm.conf), or hand the file over: cp --backup=numbered %s %s.before-pkeyd",
                                     path, writer_describe_consequence(w), path, path);
        if (owner == PARTITIONS_FILE_EDITED)
                return writer_report(w, -EEXIST, LOG_EVENT_OPENSM_FILE_FOREIGN,
                                     "%s was edited after pkeyd wrote it, so pkeyd does not replace it; %s; to resolve this, put the "
                                     "change into the policy, then hand the file over to pkeyd: cp --backup=numbered %s %s.before-pkeyd",
                                     path, writer_describe_consequence(w), path, path);
        return writer_report(w, -EEXIST, LOG_EVENT_OPENSM_FILE_FOREIGN,
                             "%s was not written by pkeyd, so pkeyd does not replace it; %s; to resolve this, convert it to a policy with "
                             "pkeyctl import %s, then hand the file over to pkeyd: cp --backup=numbered %s %s.before-pkeyd", path,
                             writer_describe_consequence(w), path, path, path);
}

void writer_report_damaged(struct opensm_writer *w, const char *what)
{
        if (!writer_is_last_path(w) || w->last.damage_reported)
                return;
        w->last.damage_reported = true;
        log_add(w->log, LOG_EVENT_OPENSM_FILE_BROKEN, &(struct log_about) { .generation = w->job.generation->number },
                "%s, which pkeyd wrote, %s: at its next heavy sweep OpenSM would set tables that do not match the policy; pkeyd writes "
                "the file again", w->path, what);
}

/* The copy with the same content is the sign by which an admin hands the file over. */
static bool was_handed_over(const struct control_file *copy, struct file_bytes f)
{
        return copy->r == 0 && writer_same_bytes((struct file_bytes) { copy->bytes, copy->n }, f);
}

int writer_check_in_place(struct opensm_writer *w, struct file_bytes f, const struct control_file *copy)
{
        enum partitions_file_owner owner = partitions_file_recognize(f.bytes, f.n, w->job.fabric, &w->is_phase);
        struct partitions_conf *conf;
        int r;

        if (owner == PARTITIONS_FILE_INTACT) {
                w->in_place = f;
                w->last.damage_reported = false;
        } else if (was_cut_short(w, f)) {
                writer_report_damaged(w, "was cut short");
        } else if (was_handed_over(copy, f)) {
                r = parse_file(w, f, &conf);
                if (r == -ENOMEM)
                        return r;
                if (r == -ENOTUNIQ)
                        return refuse_numbers(w);
                w->handover_unreported = true;
                w->handed_over = r == 0;
                /* what it gives to hosts that are down must stay in pkeyd's first file */
                w->conf_in_place = w->handed_over ? conf : NULL;
        } else {
                r = owner == PARTITIONS_FILE_EDITED ? parse_file(w, f, &conf) : 0;
                if (r == -ENOMEM)
                        return r;
                return r == -EBADMSG ? 1 : refuse_file(w, owner);
        }
        return 0;
}

/* Without a usable file conf_in_place is the last one that this process wrote, if it was damaged since, or else OpenSM's fallback:
 * its broadcast group would be gone after OpenSM's next restart if the new file did not have it. */
int writer_read_in_place(struct opensm_writer *w, struct opensm_tables *tables, const struct opensm_tables **ret)
{
        struct file_bytes f = w->in_place;
        struct partitions_conf *conf;
        int r;

        *ret = NULL;
        if (!f.bytes && !w->handed_over && writer_is_last_path(w))
                f = (struct file_bytes) { w->last.bytes, w->last.n };
        if (!f.bytes) {
                r = w->handed_over ? 0 : partitions_conf_fallback(w->arena, w->path, &w->conf_in_place);
                w->conf_before_pkeyd = w->conf_in_place;
                return r;
        }
        r = parse_file(w, f, &conf);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        w->conf_in_place = conf;
        if (!w->in_place.bytes)
                return 0;
        *ret = tables;
        r = opensm_tables_of_file(w->arena, conf, tables);
        tables->is_done = w->last.is_done && writer_is_last_file(w, w->in_place);
        return r;
}

/* --- a file that was handed over ------------------------------------------------------------------------------------ */

/* "; the old file gave ...", or "" */
static const char *describe_lost_all(struct opensm_writer *w)
{
        const struct opensm_manager manager = writer_manager(w);
        const struct partitions_conf_partition *p = w->handed_over ? opensm_find_unmanaged_all(&manager, w->conf_in_place) : NULL;

        if (!p)
                return "";
        return arena_printf(w->arena, "; the old file gave partition %s (0x%04x), which pkeyd does not manage, to ALL ports; the "
                            "new file gives it only to ports that pkeyd knows now: add it to the policy if new hosts need it",
                            p->name, p->base) ?: "";
}

void writer_report_handover(struct opensm_writer *w)
{
        if (w->handover_unreported)
                log_add(w->log, LOG_EVENT_OPENSM_FILE_TAKEN, &(struct log_about) { .generation = w->job.generation->number },
                        "pkeyd manages %s from now on; its previous content is in %s%s", w->path, w->copy_path, describe_lost_all(w));
        w->handover_unreported = false;
}

static bool loses_group(const struct opensm_writer *w, const struct partitions_conf_partition *p)
{
        const struct policy *policy = writer_policy(w);
        int i = policy_find_base(policy, p->base);

        return p->has_broadcast && i >= 0 && policy_owns(policy, p->base) && !policy->partitions[i].ipoib;
}

/* A first policy often does not mention the broadcast group of OpenSM's fallback. OpenSM keeps a group as long as it runs, so that
 * hosts would lose IPoIB weeks later, without any change. */
void writer_report_lost_groups(struct opensm_writer *w)
{
        const struct policy *policy = writer_policy(w);
        const struct partitions_conf *before = w->conf_before_pkeyd;
        _cleanup_text_ struct text names = {};
        const char *line = "";
        uint32_t n = 0;

        for (uint32_t i = 0; before && i < before->n_partitions; i++) {
                const struct partitions_conf_partition *p = &before->partitions[i];
                const struct policy_partition *of_policy;

                if (!loses_group(w, p) || n++ >= WRITER_MAX_NAMED)
                        continue;
                of_policy = &policy->partitions[policy_find_base(policy, p->base)];
                text_add(&names, "%s%s (0x%04x)", n > 1 ? ", " : "", of_policy->name, p->base);
                if (of_policy->where.line == 0)
                        line = " ('default: {pkey: 0x7fff, ipoib: true}', because the policy does not name it yet)";
        }
        if (n > WRITER_MAX_NAMED)
                text_add(&names, " and %u more", n - WRITER_MAX_NAMED);
        if (n > 0 && !names.failed)
                log_add(w->log, LOG_EVENT_OPENSM_GROUPS_END, &(struct log_about) { .generation = w->job.generation->number },
                        "OpenSM made a broadcast group in partition%s %s; the policy has no ipoib there, so the group, and IPoIB with "
                        "it, will be gone after OpenSM's next restart; to keep it, add 'ipoib: true' to %s%s",
                        text_plural(n), names.bytes, n == 1 ? "that partition" : "these partitions", line);
        w->conf_before_pkeyd = NULL;
}
