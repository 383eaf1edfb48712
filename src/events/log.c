/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "events/log.h"

struct item {
        struct log_entry entry;
        struct location where;
        struct finding finding;
        struct item *next;
};

/* Entries share an arena. The first entry after all were taken begins another one. */
struct log {
        struct arena *arena;
        struct item *first, *last; /* last: only if there is a first one */
};

struct log *log_new(void)
{
        return calloc(1, sizeof(struct log));
}

struct log *log_free(struct log *l)
{
        if (l)
                arena_free(l->arena);
        free(l);
        return NULL;
}

static struct item *add_item(struct log *l, enum log_event event)
{
        struct item *item;

        if (!l->first) {
                arena_free(l->arena);
                l->arena = arena_new();
        }
        item = l->arena ? arena_new_object(l->arena, struct item) : NULL;
        if (item)
                item->entry.event = event;
        return item;
}

/* An entry whose text could not be copied is dropped. */
static void append(struct log *l, struct item *item)
{
        if (!item->entry.text)
                return;
        *(l->first ? &l->last->next : &l->first) = item;
        l->last = item;
}

static const char *copy_text(struct log *l, const char *text)
{
        return text ? arena_strdup(l->arena, text) : NULL;
}

static void copy_about(struct log *l, const struct log_about *from, struct item *item)
{
        struct log_about *to = &item->entry.about;
        struct p_key *p_keys = arena_copy(l->arena, from->p_keys, from->n_p_keys);

        *to = *from;
        to->node = copy_text(l, from->node);
        to->switch_name = copy_text(l, from->switch_name);
        to->partition = copy_text(l, from->partition);
        to->source = copy_text(l, from->source);
        to->p_keys = p_keys;
        to->n_p_keys = p_keys ? from->n_p_keys : 0;
        if (!from->where)
                return;
        item->where = *from->where;
        item->where.file = copy_text(l, from->where->file);
        to->where = &item->where;
}

void log_add(struct log *l, enum log_event event, const struct log_about *about, const char *format, ...)
{
        struct item *item = add_item(l, event);
        va_list ap;

        if (!item)
                return;
        va_start(ap, format);
        item->entry.text = arena_vprintf(l->arena, format, ap);
        va_end(ap);
        if (about)
                copy_about(l, about, item);
        append(l, item);
}

void log_add_finding(struct log *l, enum log_event event, uint64_t generation, const struct finding *finding)
{
        struct item *item = add_item(l, event);

        if (!item || !finding_copy(l->arena, finding, &item->finding))
                return;
        item->entry.text = item->finding.text;
        item->entry.finding = &item->finding;
        item->entry.about = (struct log_about) { .generation = generation, .where = &item->finding.where };
        append(l, item);
}

const struct log_entry *log_next(struct log *l)
{
        struct item *item = l->first;

        if (!item)
                return NULL;
        l->first = item->next;
        return &item->entry;
}
