/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/fabric.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "util/macros.h"
#include "util/text.h"
#include "util/vector.h"

#define BUS_PATH "/org/pkeyd1"
/* What pkeyd has in the state directory of a host without named fabrics, where those of named ones are. */
#define RESERVED "lock"

static const struct fabric unnamed = {
        .config_file = CONFIG_DIR "/pkeyd.yaml",
        .policy_file = CONFIG_DIR "/partitions.yaml",
        .rest_file = CONFIG_DIR "/rest.yaml",
        .state_dir = STATE_DIR,
        .bus_name = FABRIC_BUS_NAME,
        .bus_path = BUS_PATH,
};

/* As an element of a bus name, a file name, and the instance of a unit; the path on the bus has no - (see bus_path). */
static bool is_name(const char *name)
{
        size_t n = strlen(name);

        if (n == 0 || n > FABRIC_NAME_MAX || !isascii(name[0]) || !isalpha((unsigned char) name[0]) || strcmp(name, RESERVED) == 0)
                return false;
        for (size_t i = 0; i < n; i++)
                if (!isascii(name[i]) || (!isalnum((unsigned char) name[i]) && name[i] != '-' && name[i] != '_'))
                        return false;
        return true;
}

/* A path has no -, which becomes _2d, as sd_bus_path_encode() does it; all else stays. */
static const char *bus_path(struct arena *a, const char *name)
{
        _cleanup_text_ struct text t = {};

        text_add(&t, BUS_PATH "/");
        for (; *name; name++)
                if (*name == '-')
                        text_add(&t, "_2d");
                else
                        text_add_n(&t, name, 1);
        return text_copy(a, &t);
}

int fabric_init(struct arena *a, const char *name, const char *where, struct findings *findings, struct fabric *ret)
{
        *ret = unnamed;
        if (!name || !*name)
                return 0;
        if (!is_name(name))
                return findings_error(findings, FINDING_USAGE, fabric_hint(a),
                                      "%s: '%s' is not the name of a fabric (accepted: a letter, then letters, digits, - and _, at most %d; "
                                      "not " RESERVED ")", where, name, FABRIC_NAME_MAX);
        *ret = (struct fabric) {
                .name = arena_strdup(a, name),
                .config_file = arena_printf(a, CONFIG_DIR "/%s/pkeyd.yaml", name),
                .policy_file = arena_printf(a, CONFIG_DIR "/%s/partitions.yaml", name),
                .rest_file = arena_printf(a, CONFIG_DIR "/%s/rest.yaml", name),
                .state_dir = arena_printf(a, STATE_DIR "/%s", name),
                .bus_name = arena_printf(a, FABRIC_BUS_NAME ".%s", name),
                .bus_path = bus_path(a, name),
        };
        if (!ret->name || !ret->config_file || !ret->policy_file || !ret->rest_file || !ret->state_dir || !ret->bus_name ||
            !ret->bus_path)
                return -ENOMEM;
        return 0;
}

/* --- the fabrics of this host --------------------------------------------------------------------------------------- */

static bool has_files(int dir, const char *name)
{
        char path[NAME_MAX + sizeof("/partitions.yaml")];

        (void) snprintf(path, sizeof(path), "%s/pkeyd.yaml", name);
        if (faccessat(dir, path, F_OK, 0) == 0)
                return true;
        (void) snprintf(path, sizeof(path), "%s/partitions.yaml", name);
        return faccessat(dir, path, F_OK, 0) == 0;
}

DEFINE_COMPARE(compare_names, struct fabric_name, strcmp(a->text, b->text))

int fabric_list(struct arena *a, struct fabric_names *ret)
{
        DIR *dir = opendir(CONFIG_DIR);
        int r = 0;

        *ret = (struct fabric_names) {};
        if (!dir)
                return errno == ENOMEM ? -ENOMEM : 0;
        for (const struct dirent *e; r == 0 && (e = readdir(dir));) {
                if (!is_name(e->d_name) || !has_files(dirfd(dir), e->d_name))
                        continue;
                r = VECTOR_GROW(a, ret->items, ret->n, ret->allocated) < 0 ? -ENOMEM : 0;
                if (r == 0)
                        ret->items[ret->n++].text = arena_strdup(a, e->d_name);
                if (r == 0 && !ret->items[ret->n - 1].text)
                        r = -ENOMEM;
        }
        (void) closedir(dir);
        if (r == 0)
                SORT(ret->items, ret->n, compare_names);
        return r;
}

const char *fabric_hint(struct arena *a)
{
        _cleanup_text_ struct text t = {};
        struct fabric_names names;

        if (fabric_list(a, &names) < 0 || names.n == 0)
                return NULL;
        text_add(&t, "fabrics of this host, for --fabric: ");
        for (size_t i = 0; i < names.n; i++)
                text_add(&t, "%s%s", i > 0 ? ", " : "", names.items[i].text);
        return text_copy(a, &t);
}
