/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "policy/policy.h"
#include "shell/file.h"

#define SCHEMA              1
#define INDEXES_MAX_SIZE    (64u << 20)
#define GENERATION_MAX_SIZE 4096u

struct state_dir {
        char *indexes, *known, *policy, *generation, *lock; /* paths */
        int lock_fd;                                /* -1: not held */
};

static void json_decref_p(json_t **j)
{
        json_decref(*j);
}
#define _cleanup_json_ _cleanup_(json_decref_p)

static void close_fd_p(int *fd)
{
        if (*fd >= 0)
                (void) close(*fd);
}
#define _cleanup_fd_ _cleanup_(close_fd_p)

/* --- the directory ------------------------------------------------------------------------------------------------ */

static char *join(const char *path, const char *name)
{
        char *joined;

        return asprintf(&joined, "%s/%s", path, name) < 0 ? NULL : joined;
}

/* Makes it if it is absent; 0 if it is a directory that may be used. */
static int ensure_directory(const char *path)
{
        _cleanup_fd_ int fd = -1;

        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return -errno;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : 0;
}

int state_dir_open(const char *path, struct state_dir **ret)
{
        _cleanup_(state_dir_close_p) struct state_dir *s = NULL;
        int r;

        r = ensure_directory(path);
        if (r < 0)
                return r;
        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->lock_fd = -1;
        s->indexes = join(path, "indexes.json");
        s->known = join(path, "known.json");
        s->policy = join(path, "policy.yaml");
        s->generation = join(path, "generation.json");
        s->lock = join(path, "lock");
        if (!s->indexes || !s->known || !s->policy || !s->generation || !s->lock)
                return -ENOMEM;
        *ret = STEAL(s);
        return 0;
}

struct state_dir *state_dir_close(struct state_dir *s)
{
        if (!s)
                return NULL;
        state_dir_unlock(s);
        free(s->indexes);
        free(s->known);
        free(s->policy);
        free(s->generation);
        free(s->lock);
        free(s);
        return NULL;
}

/* --- the lock ----------------------------------------------------------------------------------------------------- */

static int read_pid(int fd)
{
        char text[16], *end;
        ssize_t n;
        long pid;

        n = pread(fd, text, sizeof(text) - 1, 0);
        if (n <= 0)
                return 0;
        text[n] = '\0';
        pid = strtol(text, &end, 10);
        return end != text && *end == '\n' && pid > 0 && pid <= INT_MAX ? (int) pid : 0;
}

/* For people who wonder who has it; the lock itself is the kernel's. */
static void write_pid(int fd)
{
        char text[16];
        int n = snprintf(text, sizeof(text), "%d\n", (int) getpid());

        if (ftruncate(fd, 0) == 0)
                (void) !pwrite(fd, text, (size_t) n, 0);
}

int state_dir_lock(struct state_dir *s, int *ret_pid)
{
        _cleanup_fd_ int fd = -1;

        if (s->lock_fd >= 0)
                return 0;
        fd = open(s->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK)
                        return -errno;
                *ret_pid = read_pid(fd);
                return -EWOULDBLOCK;
        }
        write_pid(fd);
        s->lock_fd = fd;
        fd = -1;
        return 0;
}

void state_dir_unlock(struct state_dir *s)
{
        if (s->lock_fd < 0)
                return;
        (void) !ftruncate(s->lock_fd, 0);
        (void) close(s->lock_fd);
        s->lock_fd = -1;
}

/* --- index memory ------------------------------------------------------------------------------------------------- */

/* A whole number in its range; false: it is none. */
static bool get_number(const json_t *j, json_int_t min, json_int_t max, json_int_t *ret)
{
        if (!json_is_integer(j) || json_integer_value(j) < min || json_integer_value(j) > max)
                return false;
        *ret = json_integer_value(j);
        return true;
}

static bool get_hex(const json_t *j, uint64_t max, uint64_t *ret)
{
        const char *text = json_string_value(j);
        char *end;
        uint64_t v;

        if (!text || strncmp(text, "0x", 2) != 0 || !text[2] || strspn(text + 2, "0123456789abcdef") != strlen(text + 2))
                return false;
        errno = 0;
        v = strtoull(text + 2, &end, 16);
        if (errno || *end || v > max)
                return false;
        *ret = v;
        return true;
}

/* Returns 0, -EBADMSG, -ENOMEM. */
static int read_freed(struct index_memory *m, struct guid node_guid, uint8_t port, const json_t *freed)
{
        const json_t *lost = json_object_get(freed, "lost");
        json_int_t index, sequence;
        uint64_t base;
        struct freed_index record = { .node_guid = node_guid, .port = port };

        if (!get_number(json_object_get(freed, "index"), 0, UINT16_MAX, &index) ||
            !get_hex(json_object_get(freed, "base"), P_KEY_BASE_MASK, &base) ||
            !get_number(json_object_get(freed, "sequence"), 0, INT64_MAX, &sequence) || (lost && !json_is_boolean(lost)))
                return -EBADMSG;
        record.index = (uint16_t) index;
        record.base = (uint16_t) base;
        record.sequence = (uint64_t) sequence;
        record.lost = json_is_true(lost);
        return index_memory_restore(m, &record);
}

static int read_port(struct index_memory *m, const json_t *port)
{
        const json_t *freed = json_object_get(port, "freed");
        json_int_t number;
        uint64_t guid;
        int r;

        if (!get_hex(json_object_get(port, "node"), UINT64_MAX, &guid) ||
            !get_number(json_object_get(port, "port"), 0, UINT8_MAX, &number) || !json_is_array(freed))
                return -EBADMSG;
        for (size_t i = 0; i < json_array_size(freed); i++) {
                r = read_freed(m, (struct guid) { guid }, (uint8_t) number, json_array_get(freed, i));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_indexes(struct index_memory *m, const char *bytes, size_t n)
{
        _cleanup_json_ json_t *root = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, NULL);
        const json_t *ports = json_object_get(root, "ports");
        json_int_t schema;
        int r;

        if (!get_number(json_object_get(root, "schema"), SCHEMA, SCHEMA, &schema) || !json_is_array(ports))
                return -EBADMSG;
        for (size_t i = 0; i < json_array_size(ports); i++) {
                r = read_port(m, json_array_get(ports, i));
                if (r < 0)
                        return r;
        }
        return 0;
}

int state_dir_load_indexes(struct state_dir *s, struct index_memory **ret, bool *ret_damaged)
{
        _cleanup_index_memory_ struct index_memory *m = index_memory_new();
        _cleanup_arena_ struct arena *a = arena_new();
        const char *bytes;
        size_t n;
        int r;

        if (!m || !a)
                return -ENOMEM;
        r = file_read(a, s->indexes, INDEXES_MAX_SIZE, &bytes, &n);
        if (r == 0)
                r = read_indexes(m, bytes, n);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                /* half a memory would be taken for a whole one */
                index_memory_free(m);
                m = index_memory_new();
                if (!m)
                        return -ENOMEM;
        }
        *ret_damaged = r < 0 && r != -ENOENT;
        *ret = STEAL(m);
        return 0;
}

/* All items[first..] that are of the same port, as one object; *ret_n: how many they are. NULL: memory is out. */
static json_t *write_port(const struct freed_index *items, size_t n, size_t *ret_n)
{
        _cleanup_json_ json_t *list = json_array();
        char guid[32], base[16];
        size_t i;

        for (i = 0; i < n && items[i].node_guid.v == items[0].node_guid.v && items[i].port == items[0].port; i++) {
                (void) snprintf(base, sizeof(base), "0x%04x", items[i].base);
                if (json_array_append_new(list, json_pack("{s:i, s:s, s:I, s:b}", "index", items[i].index, "base",
                                                          base, "sequence", (json_int_t) items[i].sequence, "lost",
                                                          items[i].lost)) < 0)
                        return NULL;
        }
        (void) snprintf(guid, sizeof(guid), "0x%016" PRIx64, items[0].node_guid.v);
        *ret_n = i;
        return json_pack("{s:s, s:i, s:O}", "node", guid, "port", items[0].port, "freed", list);
}

static int write_json(const char *path, const json_t *root)
{
        _cleanup_free_ char *text = json_dumps(root, JSON_INDENT(1));

        if (!text)
                return -ENOMEM;
        return file_write_atomic(path, text, strlen(text));
}

int state_dir_save_indexes(struct state_dir *s, const struct index_memory *m)
{
        _cleanup_json_ json_t *root = json_pack("{s:i, s:[]}", "schema", SCHEMA, "ports");
        const struct freed_index *items;
        size_t n, here = 0;

        if (!root)
                return -ENOMEM;
        items = index_memory_all(m, &n);
        for (size_t i = 0; i < n; i += here)
                if (json_array_append_new(json_object_get(root, "ports"), write_port(items + i, n - i, &here)) < 0)
                        return -ENOMEM;
        return write_json(s->indexes, root);
}

/* --- ports that were seen once ------------------------------------------------------------------------------------ */

static int read_known_port(const json_t *j, struct known *k)
{
        const char *description = json_string_value(json_object_get(j, "description"));
        json_int_t type, number, switch_port, seen;
        struct known_port port = {};
        size_t n;

        if (!get_hex(json_object_get(j, "node"), UINT64_MAX, &port.node_guid.v) ||
            !get_hex(json_object_get(j, "port_guid"), UINT64_MAX, &port.port_guid.v) ||
            !get_hex(json_object_get(j, "switch"), UINT64_MAX, &port.switch_guid.v) ||
            !get_number(json_object_get(j, "type"), NODE_CA, NODE_ROUTER, &type) ||
            !get_number(json_object_get(j, "port"), 0, UINT8_MAX, &number) ||
            !get_number(json_object_get(j, "switch_port"), 0, UINT8_MAX, &switch_port) ||
            !get_number(json_object_get(j, "seen"), 0, INT64_MAX, &seen) || !description || port.port_guid.v == 0)
                return -EBADMSG;
        n = strlen(description);
        if (n >= sizeof(port.description))
                return -EBADMSG;
        memcpy(port.description, description, n);
        port.type = (enum node_type) type;
        port.number = (uint8_t) number;
        port.switch_port = (uint8_t) switch_port;
        port.seen = (uint64_t) seen;
        return known_add(k, &port);
}

int state_dir_load_known(struct state_dir *s, struct known *ret)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_json_ json_t *root = NULL;
        const json_t *ports;
        json_int_t schema;
        const char *bytes;
        size_t n;
        int r;

        r = a ? file_read(a, s->known, INDEXES_MAX_SIZE, &bytes, &n) : -ENOMEM;
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        root = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, NULL);
        ports = json_object_get(root, "ports");
        r = get_number(json_object_get(root, "schema"), SCHEMA, SCHEMA, &schema) && json_is_array(ports) ? 0 : -EBADMSG;
        for (size_t i = 0; r == 0 && i < json_array_size(ports); i++)
                r = read_known_port(json_array_get(ports, i), ret);
        if (r < 0)
                known_done(ret);
        return r;
}

static json_t *write_known_port(const struct known_port *p)
{
        char node[32], port[32], leaf[32];

        (void) snprintf(node, sizeof(node), "0x%016" PRIx64, p->node_guid.v);
        (void) snprintf(port, sizeof(port), "0x%016" PRIx64, p->port_guid.v);
        (void) snprintf(leaf, sizeof(leaf), "0x%016" PRIx64, p->switch_guid.v);
        return json_pack("{s:s, s:i, s:s, s:i, s:s, s:s, s:i, s:I}", "node", node, "port", p->number, "port_guid", port, "type",
                         (int) p->type, "description", p->description, "switch", leaf, "switch_port", p->switch_port, "seen",
                         (json_int_t) p->seen);
}

int state_dir_save_known(struct state_dir *s, const struct known *k)
{
        _cleanup_json_ json_t *root = json_pack("{s:i, s:[]}", "schema", SCHEMA, "ports");

        if (!root)
                return -ENOMEM;
        for (uint32_t i = 0; i < k->n; i++)
                if (json_array_append_new(json_object_get(root, "ports"), write_known_port(&k->ports[i])) < 0)
                        return -ENOMEM;
        return write_json(s->known, root);
}

/* --- the policy in force ------------------------------------------------------------------------------------------ */

/* 0 if nobody knows. */
static uint64_t load_generation(const struct state_dir *s, struct arena *a)
{
        _cleanup_json_ json_t *root = NULL;
        const char *bytes;
        json_int_t generation;
        size_t n;

        if (file_read(a, s->generation, GENERATION_MAX_SIZE, &bytes, &n) < 0)
                return 0;
        root = json_loadb(bytes, n, 0, NULL);
        return get_number(json_object_get(root, "generation"), 0, INT64_MAX, &generation) ? (uint64_t) generation : 0;
}

int state_dir_load_policy(struct state_dir *s, struct arena *a, const char **ret_bytes, size_t *ret_n,
                          uint64_t *ret_generation)
{
        int r;

        r = file_read(a, s->policy, POLICY_MAX_FILE_SIZE, ret_bytes, ret_n);
        if (r < 0)
                return r;
        *ret_generation = load_generation(s, a);
        return 0;
}

int state_dir_save_policy(struct state_dir *s, const char *bytes, size_t n, uint64_t generation)
{
        _cleanup_json_ json_t *root = NULL;
        char when[32] = "";
        time_t now = time(NULL);
        struct tm tm;
        int r;

        r = file_write_atomic(s->policy, bytes, n);
        if (r < 0)
                return r;
        if (gmtime_r(&now, &tm))
                (void) strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
        root = json_pack("{s:i, s:I, s:s}", "schema", SCHEMA, "generation", (json_int_t) generation, "time", when);
        return root ? write_json(s->generation, root) : -ENOMEM;
}
