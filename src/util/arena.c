/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Chunk sizes double from the first to the last, so that an arena for a message is small and one for a fabric has few chunks. */
#define CHUNK_FIRST ((size_t) 4 * 1024)
#define CHUNK_LAST  ((size_t) 1024 * 1024)

struct chunk {
        struct chunk *next;
        size_t used, size;
        _Alignas(max_align_t) unsigned char bytes[];
};

struct arena {
        struct chunk *chunks; /* the newest first; only the newest has room left */
        size_t total;
        size_t chunk_size; /* of the next one */
};

struct arena *arena_new(void)
{
        struct arena *a = calloc(1, sizeof(*a));

        if (a)
                a->chunk_size = CHUNK_FIRST;
        return a;
}

struct arena *arena_free(struct arena *a)
{
        struct chunk *next;

        if (!a)
                return NULL;
        for (struct chunk *c = a->chunks; c; c = next) {
                next = c->next;
                free(c);
        }
        free(a);
        return NULL;
}

/* Adds a chunk with room for `need` bytes. A large object gets a chunk of its size, after the newest one in the list, so that the
 * room in the newest one is not lost. */
static struct chunk *add_chunk(struct arena *a, size_t need)
{
        bool is_own = a->chunks && need > a->chunk_size / 4;
        size_t size = is_own ? need : MAX(need, a->chunk_size);
        struct chunk *c;

        if (size > SIZE_MAX - sizeof(*c))
                return NULL;
        c = calloc(1, sizeof(*c) + size);
        if (!c)
                return NULL;
        c->size = size;
        a->total += sizeof(*c) + size;
        if (is_own) {
                c->next = a->chunks->next;
                a->chunks->next = c;
        } else {
                c->next = a->chunks;
                a->chunks = c;
                a->chunk_size = MIN(a->chunk_size * 2, CHUNK_LAST);
        }
        return c;
}

void *arena_alloc_array(struct arena *a, size_t n, size_t size)
{
        const size_t align = _Alignof(max_align_t);
        struct chunk *c;
        size_t need;
        void *p;

        if (!a || __builtin_mul_overflow(n, size, &need) || need > SIZE_MAX - 2 * align)
                return NULL;
        need = MAX(need, (size_t) 1);
        need = (need + align - 1) / align * align;
        c = a->chunks;
        if (!c || c->size - c->used < need) {
                c = add_chunk(a, need);
                if (!c)
                        return NULL;
        }
        p = c->bytes + c->used;
        c->used += need;
        return p;
}

void *arena_copy_array(struct arena *a, const void *items, size_t n, size_t size)
{
        void *copy = arena_alloc_array(a, n, size);

        if (copy && n > 0)
                memcpy(copy, items, n * size);
        return copy;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
        size_t length = strnlen(s, n);
        char *copy = arena_alloc_array(a, length + 1, 1);

        if (copy)
                memcpy(copy, s, length);
        return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
        return arena_strndup(a, s, strlen(s));
}

char *arena_printable(struct arena *a, const char *bytes, size_t n)
{
        char *text = arena_alloc_array(a, n + 1, 1);

        for (size_t i = 0; text && i < n; i++)
                text[i] = bytes[i] == '\t' ? ' ' : bytes[i] < 0x20 || bytes[i] > 0x7e ? '?' : bytes[i];
        return text;
}

char *arena_vprintf(struct arena *a, const char *format, va_list ap)
{
        va_list again;
        char *text;
        int n;

        va_copy(again, ap);
        n = vsnprintf(NULL, 0, format, again);
        va_end(again);
        if (n < 0)
                return NULL;
        text = arena_alloc_array(a, (size_t) n + 1, 1);
        if (text)
                (void) vsnprintf(text, (size_t) n + 1, format, ap);
        return text;
}

char *arena_printf(struct arena *a, const char *format, ...)
{
        va_list ap;
        char *text;

        va_start(ap, format);
        text = arena_vprintf(a, format, ap);
        va_end(ap);
        return text;
}

size_t arena_size(const struct arena *a)
{
        return a->total;
}
