/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_GROUPS 65536 /* of one user: what Linux allows */

/* The functions of libc that return static memory are enough: no other thread looks anything up. */

int user_look_up(struct arena *a, uid_t uid, struct user *ret)
{
        const struct passwd *user = getpwuid(uid);

        *ret = (struct user) {
                .name = user ? arena_strdup(a, user->pw_name) : arena_printf(a, "%u", (unsigned) uid),
                .group = user ? user->pw_gid : 0, .is_known = user,
        };
        return ret->name ? 0 : -ENOMEM;
}

int user_list_groups(struct arena *a, const struct user *user, const char ***ret, size_t *ret_n)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        gid_t *groups = arena_new_array(scratch, gid_t, MAX_GROUPS);
        int n = user->is_known ? MAX_GROUPS : 0;

        if (!groups)
                return -ENOMEM;
        if (n > 0 && getgrouplist(user->name, user->group, groups, &n) < 0)
                n = 0; /* more groups than Linux allows: the database is wrong, so none is trusted */
        *ret = arena_new_array(a, const char *, (size_t) n);
        *ret_n = 0;
        for (int i = 0; *ret && i < n; i++) {
                const struct group *group = getgrgid(groups[i]);

                if (!group)
                        continue;
                (*ret)[*ret_n] = arena_strdup(a, group->gr_name);
                if (!(*ret)[(*ret_n)++])
                        return -ENOMEM;
        }
        return *ret ? 0 : -ENOMEM;
}

bool user_find_group(const char *name, gid_t *ret)
{
        const struct group *group = getgrnam(name);

        if (group)
                *ret = group->gr_gid;
        return group;
}

const char *user_name_of_process(struct arena *a)
{
        struct user user;

        return user_look_up(a, geteuid(), &user) < 0 ? NULL : user.name;
}

uid_t user_find_uid(const char *name)
{
        const struct passwd *user = getpwnam(name);

        return user ? user->pw_uid : 0;
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
        const struct passwd *entry = getpwnam(user);
        int status;
        pid_t pid;

        if (!entry || geteuid() != 0)
                return -ESRCH;
        pid = fork();
        if (pid == 0)
                try_to_read(entry, path);
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
                return -errno;
        return WIFEXITED(status) ? -WEXITSTATUS(status) : -ESRCH;
}
