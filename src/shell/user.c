/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"

#define MAX_BUFFER (4u << 20) /* for an entry: a group may have many thousand members */
#define MAX_GROUPS 65536      /* of one user: what Linux allows */

/* Makes a call that has `buffer` and `size`, again with more room as long as there is too little. Returns 0 or -ENOMEM. */
#define LOOK_UP(a, call)                                                                                               \
        ({                                                                                                             \
                int _r = ERANGE;                                                                                       \
                for (size_t size = 4096; _r == ERANGE && size <= MAX_BUFFER; size *= 4) {                              \
                        char *buffer = arena_new_array((a), char, size);                                               \
                        _r = buffer ? (call) : ENOMEM;                                                                 \
                }                                                                                                      \
                _r == ENOMEM ? -ENOMEM : 0;                                                                            \
        })

static int find_user(struct arena *a, uid_t uid, struct passwd *ret, bool *ret_found)
{
        struct passwd *found = NULL;
        int r = LOOK_UP(a, getpwuid_r(uid, ret, buffer, size, &found));

        *ret_found = found;
        return r;
}

static int find_groups(struct arena *a, const struct user *user, gid_t **ret, int *ret_n)
{
        int n = 64, room;

        do {
                room = n;
                *ret = arena_new_array(a, gid_t, (size_t) n);
                if (!*ret)
                        return -ENOMEM;
                if (getgrouplist(user->name, user->group, *ret, &n) >= 0) {
                        *ret_n = n;
                        return 0;
                }
                n = n > room ? n : 2 * room;
        } while (n <= MAX_GROUPS);
        *ret_n = 0; /* more than there can be: something is wrong with where they come from */
        return 0;
}

/* Adds the name of a group, if it has one. */
static int add_group(struct arena *a, gid_t gid, const char **names, size_t *n)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        struct group group, *found = NULL;
        int r = scratch ? LOOK_UP(scratch, getgrgid_r(gid, &group, buffer, size, &found)) : -ENOMEM;

        if (r < 0 || !found)
                return r;
        names[*n] = arena_strdup(a, group.gr_name);
        return names[(*n)++] ? 0 : -ENOMEM;
}

int user_look_up(struct arena *a, uid_t uid, struct user *ret)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        bool found = false;
        struct passwd user;
        int r = scratch ? find_user(scratch, uid, &user, &found) : -ENOMEM;

        if (r < 0)
                return r;
        *ret = (struct user) {
                .name = found ? arena_strdup(a, user.pw_name) : arena_printf(a, "%u", (unsigned) uid),
                .group = found ? user.pw_gid : 0, .is_known = found,
        };
        return ret->name ? 0 : -ENOMEM;
}

int user_list_groups(struct arena *a, const struct user *user, const char ***ret, size_t *ret_n)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        gid_t *groups = NULL;
        int n_groups = 0;
        int r = !scratch ? -ENOMEM : user->is_known ? find_groups(scratch, user, &groups, &n_groups) : 0;

        if (r < 0)
                return r;
        *ret_n = 0;
        *ret = arena_new_array(a, const char *, (size_t) n_groups);
        if (!*ret)
                return -ENOMEM;
        for (int i = 0; r == 0 && i < n_groups; i++)
                r = add_group(a, groups[i], *ret, ret_n);
        return r;
}

bool user_find_group(const char *name, gid_t *ret)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        struct group group, *found = NULL;
        int r = scratch ? LOOK_UP(scratch, getgrnam_r(name, &group, buffer, size, &found)) : -ENOMEM;

        if (r < 0 || !found)
                return false;
        *ret = group.gr_gid;
        return true;
}

const char *user_name_of_process(struct arena *a)
{
        struct user user;

        return user_look_up(a, geteuid(), &user) < 0 ? NULL : user.name;
}

/* -ESRCH: there is no such user. */
static int find_named(struct arena *a, const char *name, struct passwd *ret)
{
        struct passwd *found = NULL;
        int r = LOOK_UP(a, getpwnam_r(name, ret, buffer, size, &found));

        return r < 0 || found ? r : -ESRCH;
}

uid_t user_find_uid(const char *name)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        struct passwd entry;

        return scratch && find_named(scratch, name, &entry) == 0 ? entry.pw_uid : 0;
}

/* In a process of its own, which becomes the user. */
static _Noreturn void try_to_read(const struct passwd *user, const char *path)
{
        if (initgroups(user->pw_name, user->pw_gid) < 0 || setgid(user->pw_gid) < 0 || setuid(user->pw_uid) < 0)
                _exit(ESRCH);
        _exit(access(path, R_OK) < 0 ? errno : 0);
}

int user_may_read(const char *user, const char *path)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        struct passwd entry;
        int status, r = scratch ? find_named(scratch, user, &entry) : -ENOMEM;
        pid_t pid;

        if (r < 0 || geteuid() != 0)
                return r < 0 ? r : -ESRCH;
        pid = fork();
        if (pid == 0)
                try_to_read(&entry, path);
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
                return -errno;
        return WIFEXITED(status) ? -WEXITSTATUS(status) : -ESRCH;
}
