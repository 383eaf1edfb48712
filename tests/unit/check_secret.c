/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shell/file.h"
#include "shell/secret.h"
#include "shell/user.h"
#include "util/macros.h"

#define CONTENT "0x5ec4e75ec4e75ec4\n"

static char directory[64];
static struct arena *arena;
static struct findings findings;
static struct secret secret;

static void setup(void)
{
        strcpy(directory, "/tmp/check_secret.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(directory));
        ck_assert_int_eq(chdir(directory), 0);
        ck_assert_int_eq(unsetenv("CREDENTIALS_DIRECTORY"), 0);
        arena = arena_new();
        ck_assert_ptr_nonnull(arena);
        findings = (struct findings) { .arena = arena };
}

/* No finding of any test contains a part of the secret. */
static void teardown(void)
{
        static const char *const left[] = { "a", "link", "fifo", "credentials/m_key", "neighbors", "credentials/neighbors" };

        for (size_t i = 0; i < findings.n; i++)
                ck_assert_ptr_null(strstr(finding_format(arena, &findings.items[i]), "5ec4e7"));
        secret_done(&secret);
        ck_assert_ptr_null(secret.bytes);
        for (size_t i = 0; i < ELEMENTS(left); i++)
                (void) unlink(left[i]);
        (void) rmdir("credentials");
        ck_assert_int_eq(chdir("/"), 0);
        ck_assert_int_eq(rmdir(directory), 0);
        findings_done(&findings);
        arena_free(arena);
}

static void write_content(const char *path, const char *content, mode_t mode)
{
        ck_assert_int_eq(file_write(FILE_PUBLIC, path, content, strlen(content)), 0);
        ck_assert_int_eq(chmod(path, mode), 0);
}

static void write_file(const char *path, mode_t mode)
{
        write_content(path, CONTENT, mode);
}

static int read_it(const char *path, size_t max)
{
        secret_done(&secret);
        return secret_read(path, "m_key", max, &findings, &secret);
}

static void accept(const char *path)
{
        ck_assert_int_eq(read_it(path, 4096), 0);
        ck_assert_uint_eq(findings.n, 0);
        ck_assert_uint_eq(secret.n, strlen(CONTENT));
        ck_assert_str_eq(secret.bytes, CONTENT);
}

static void refuse(const char *path, size_t max, enum finding_code code)
{
        size_t before = findings.n;

        ck_assert_int_eq(read_it(path, max), -EBADMSG);
        ck_assert_uint_eq(findings.n, before + 1);
        ck_assert_int_eq(findings.items[before].code, code);
        ck_assert_int_eq(findings.items[before].severity, FINDING_ERROR);
}

static void make_credential(mode_t mode)
{
        ck_assert_int_eq(mkdir("credentials", 0700), 0);
        write_file("credentials/m_key", mode);
        ck_assert_int_eq(setenv("CREDENTIALS_DIRECTORY", arena_printf(arena, "%s/credentials", directory), 1), 0);
}

START_TEST(nothing_named)
{
        ck_assert_int_eq(read_it(NULL, 4096), 0);
        ck_assert_ptr_null(secret.bytes);
        ck_assert_int_eq(setenv("CREDENTIALS_DIRECTORY", directory, 1), 0); /* does not have this credential */
        ck_assert_int_eq(read_it(NULL, 4096), 0);
        ck_assert_ptr_null(secret.bytes);
}
END_TEST

START_TEST(owners_only)
{
        static const mode_t fine[] = { 0600, 0400 };

        for (size_t i = 0; i < ELEMENTS(fine); i++) {
                write_file("a", fine[i]);
                accept("a");
                ck_assert_str_eq(secret.path, "a");
        }
        ck_assert_int_eq(symlink("a", "link"), 0);
        accept("link");
        for (mode_t bit = 1; bit <= 020; bit <<= 1) {
                write_file("a", 0600 | bit);
                refuse("a", 4096, FINDING_SECRET_EXPOSED);
                refuse("link", 4096, FINDING_SECRET_EXPOSED);
        }
}
END_TEST

/* Only root can change a file's owner; other users test with a file of another user in /proc, which they may not open. */
START_TEST(owner)
{
        if (geteuid() == 0) {
                write_file("a", 0600);
                ck_assert_int_eq(chown("a", 65534, 65534), 0);
                refuse("a", 4096, FINDING_SECRET_EXPOSED);
                ck_assert_ptr_nonnull(strstr(findings.items[0].text, "does not belong to root"));
        } else {
                refuse("/proc/1/environ", 4096, FINDING_FILE_UNREADABLE);
        }
}
END_TEST

/* The group that pkeyd runs as, which root's pkeyctl looks up by name. */
#define GROUP_OF_PKEYD 65533

static bool is_group_known = true;

struct group *getgrnam(const char *name)
{
        static struct group group = { .gr_gid = GROUP_OF_PKEYD };

        return is_group_known && strcmp(name, "pkeyd") == 0 ? &group : NULL;
}

static void write_for_group(mode_t mode, gid_t gid)
{
        write_file("a", 0600);
        ck_assert_int_eq(chown("a", 0, gid), 0);
        ck_assert_int_eq(chmod("a", mode), 0);
}

START_TEST(group_of_pkeyd)
{
        static const mode_t wrong[] = { 0660, 0650, 0644, 0642, 0641 };

        if (geteuid() != 0)
                return;
        write_for_group(0640, GROUP_OF_PKEYD);
        accept("a");
        write_for_group(0440, GROUP_OF_PKEYD);
        accept("a");
        for (size_t i = 0; i < ELEMENTS(wrong); i++) {
                write_for_group(wrong[i], GROUP_OF_PKEYD);
                refuse("a", 4096, FINDING_SECRET_EXPOSED);
                ck_assert_ptr_nonnull(strstr(findings.items[i].text, "the group that pkeyd runs as"));
        }
        write_for_group(0640, GROUP_OF_PKEYD - 1);
        refuse("a", 4096, FINDING_SECRET_EXPOSED);
        write_for_group(0640, 0); /* that of root itself */
        refuse("a", 4096, FINDING_SECRET_EXPOSED);
        is_group_known = false;
        write_for_group(0640, GROUP_OF_PKEYD);
        refuse("a", 4096, FINDING_SECRET_EXPOSED);
}
END_TEST

/* Reads `a` in a process of a user of this group and of one more; the number of the finding's code, or 0. */
static int read_as_user(void)
{
        const gid_t more = GROUP_OF_PKEYD - 1;
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                if (setgroups(1, &more) < 0 || setgid(GROUP_OF_PKEYD) < 0 || setuid(65534) < 0)
                        _exit(100);
                if (read_it("a", 4096) == 0)
                        _exit(strcmp(secret.bytes, CONTENT) == 0 ? 0 : 101);
                _exit(findings.n == 1 ? (int) findings.items[0].code : 102);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFEXITED(status));
        return WEXITSTATUS(status);
}

/* Another group of the user is not accepted: others may be in it. */
START_TEST(own_group)
{
        if (geteuid() != 0)
                return;
        ck_assert_int_eq(chmod(directory, 0711), 0);
        write_for_group(0640, GROUP_OF_PKEYD);
        ck_assert_int_eq(read_as_user(), 0);
        write_for_group(0660, GROUP_OF_PKEYD);
        ck_assert_int_eq(read_as_user(), FINDING_SECRET_EXPOSED);
        write_for_group(0640, GROUP_OF_PKEYD - 1);
        ck_assert_int_eq(read_as_user(), FINDING_SECRET_EXPOSED);
        write_for_group(0640, 0);
        ck_assert_int_eq(read_as_user(), FINDING_FILE_UNREADABLE);
        write_for_group(0600, GROUP_OF_PKEYD);
        ck_assert_int_eq(read_as_user(), FINDING_FILE_UNREADABLE);
}
END_TEST

/* What root asks about another user, as the doctor does. */
START_TEST(may_read)
{
        ck_assert_int_eq(user_may_read("no-such-user", "a"), -ESRCH);
        ck_assert_uint_eq(user_find_uid("no-such-user"), 0);
        ck_assert_uint_ne(user_find_uid("nobody"), 0);
        if (geteuid() != 0)
                return;
        write_file("a", 0644);
        ck_assert_int_eq(user_may_read("nobody", "a"), -EACCES); /* of the directory */
        ck_assert_int_eq(chmod(directory, 0711), 0);
        ck_assert_int_eq(user_may_read("nobody", "a"), 0);
        write_file("a", 0640);
        ck_assert_int_eq(user_may_read("nobody", "a"), -EACCES);
        ck_assert_int_eq(user_may_read("root", "a"), 0);
        ck_assert_int_eq(user_may_read("nobody", "absent"), -ENOENT);
}
END_TEST

/* The user of a service reads the file by its group. */
START_TEST(of_group)
{
        static const mode_t fine[] = { 0600, 0640 }, wrong[] = { 0660, 0644, 0642, 0641 };

        for (size_t i = 0; i < ELEMENTS(fine); i++) {
                write_file("a", fine[i]);
                secret_done(&secret);
                ck_assert_int_eq(secret_read_of_group("a", 4096, &findings, &secret), 0);
                ck_assert_str_eq(secret.bytes, CONTENT);
                ck_assert_uint_eq(findings.n, 0);
        }
        for (size_t i = 0; i < ELEMENTS(wrong); i++) {
                write_file("a", wrong[i]);
                secret_done(&secret);
                ck_assert_int_eq(secret_read_of_group("a", 4096, &findings, &secret), -EBADMSG);
                ck_assert_int_eq(findings.items[i].code, FINDING_SECRET_EXPOSED);
                ck_assert_ptr_nonnull(strstr(findings.items[i].text, "its owner and its group"));
        }
        secret_done(&secret);
        ck_assert_int_eq(secret_read_of_group("absent", 4096, &findings, &secret), -EBADMSG);
        secret_done(&secret);
        ck_assert_int_eq(secret_read_of_group("a", 3, &findings, &secret), -EBADMSG);
}
END_TEST

START_TEST(unreadable)
{
        refuse("absent", 4096, FINDING_FILE_UNREADABLE);
        refuse(directory, 4096, FINDING_FILE_UNREADABLE);
        ck_assert_int_eq(mkfifo("fifo", 0600), 0);
        refuse("fifo", 4096, FINDING_FILE_UNREADABLE);
        refuse("/proc/self/environ", 4096, FINDING_FILE_UNREADABLE); /* longer than its size, which is 0 */
        write_file("a", 0600);
        refuse("a", strlen(CONTENT) - 1, FINDING_FILE_TOO_LARGE);
        findings.n = 0;
        ck_assert_int_eq(read_it("a", strlen(CONTENT)), 0);
}
END_TEST

START_TEST(empty)
{
        write_content("a", "", 0600);
        ck_assert_int_eq(read_it("a", 4096), 0);
        ck_assert_ptr_nonnull(secret.bytes);
        ck_assert_uint_eq(secret.n, 0);
}
END_TEST

/* A credential takes precedence over a file, readable or not. */
START_TEST(credential)
{
        make_credential(0400);
        accept(NULL);
        accept("absent");
        ck_assert_ptr_nonnull(strstr(secret.path, "/credentials/m_key"));
        write_file("credentials/m_key", 0440); /* the mode that an ACL leads to */
        accept(NULL);
        write_file("credentials/m_key", 0404);
        refuse(NULL, 4096, FINDING_SECRET_EXPOSED);
        write_file("credentials/m_key", 0420);
        refuse(NULL, 4096, FINDING_SECRET_EXPOSED);
        write_file("a", 0600);
        refuse("a", 4096, FINDING_SECRET_EXPOSED);
}
END_TEST

/* A relative path in $CREDENTIALS_DIRECTORY is ignored. */
START_TEST(relative_credentials)
{
        make_credential(0400);
        ck_assert_int_eq(setenv("CREDENTIALS_DIRECTORY", "credentials", 1), 0);
        ck_assert_int_eq(read_it(NULL, 4096), 0);
        ck_assert_ptr_null(secret.bytes);
}
END_TEST

static int read_keys(const char *path, struct m_keys **ret)
{
        struct settings settings;

        settings_default(&settings);
        settings.m_key_file = path;
        findings.n = 0;
        return secret_read_m_keys(&settings, &findings, ret);
}

START_TEST(m_keys)
{
        struct m_keys *keys;

        ck_assert_int_eq(read_keys(NULL, &keys), 0);
        ck_assert_ptr_null(keys);
        write_file("a", 0600);
        ck_assert_int_eq(read_keys("a", &keys), 0);
        ck_assert_uint_eq(findings.n, 0);
        ck_assert_uint_eq(m_keys_common(keys), UINT64_C(0x5ec4e75ec4e75ec4));
        keys = m_keys_free(keys);
        write_file("a", 0640);
        ck_assert_int_eq(read_keys("a", &keys), -EBADMSG);
        ck_assert_ptr_null(keys);
        write_content("a", "0x5ec4e7 0x5ec4e7 0x5ec4e7", 0600);
        ck_assert_int_eq(read_keys("a", &keys), -EBADMSG);
        ck_assert_ptr_null(keys);
}
END_TEST

static size_t read_neighbors(const char *path, const struct m_keys *keys, const char **ret)
{
        struct settings settings;
        size_t n;

        settings_default(&settings);
        settings.m_key_file = path;
        findings.n = 0;
        ck_assert_int_eq(secret_read_neighbors(arena, &settings, keys, &findings, ret, &n), 0);
        return n;
}

static void expect_note(const char *path, const char *text)
{
        ck_assert_uint_eq(findings.n, 1);
        ck_assert_int_eq(findings.items[0].code, FINDING_M_KEYS_DIFFER);
        ck_assert_int_eq(findings.items[0].severity, FINDING_NOTE);
        ck_assert_str_eq(findings.items[0].where.file, path);
        ck_assert_msg(strstr(findings.items[0].text, text) != NULL, "%s", findings.items[0].text);
        ck_assert_ptr_nonnull(strstr(findings.items[0].text, "2 different M_Keys"));
}

/* The file is only needed if there are several M_Keys. */
START_TEST(neighbors)
{
        static const char same[] = "0x1 0x5ec4e7\n\n0x2 0x5ec4e7\n", several[] = "0x1 0x5ec4e7\n\n0x2 0x5ec4e75ec4e7\n";
        const char *path = "./a", *bytes;
        struct m_keys *keys;

        write_content(path, same, 0600);
        ck_assert_int_eq(read_keys(path, &keys), 0);
        ck_assert_uint_eq(read_neighbors(path, keys, &bytes), 0);
        ck_assert_ptr_null(bytes);
        ck_assert_uint_eq(findings.n, 0);
        (void) m_keys_free(keys);
        write_content(path, several, 0600);
        ck_assert_int_eq(read_keys(path, &keys), 0);
        ck_assert_uint_eq(read_neighbors(path, keys, &bytes), 0);
        expect_note("./neighbors", "No such file");
        ck_assert_int_eq(file_write(FILE_PUBLIC, "neighbors", "0x1:1 0x2:1\n", 12), 0);
        ck_assert_uint_eq(read_neighbors(path, keys, &bytes), 12);
        ck_assert_str_eq(bytes, "0x1:1 0x2:1\n");
        ck_assert_uint_eq(findings.n, 0);
        /* a user who can write it could redirect an M_Key to another port */
        ck_assert_int_eq(chmod("neighbors", 0664), 0);
        ck_assert_uint_eq(read_neighbors(path, keys, &bytes), 0);
        ck_assert_ptr_null(bytes);
        expect_note("./neighbors", "users other than root and pkeyd can write it");
        ck_assert_int_eq(chmod("neighbors", 0646), 0);
        ck_assert_uint_eq(read_neighbors(path, keys, &bytes), 0);
        expect_note("./neighbors", "users other than root and pkeyd can write it");
        /* opening a FIFO does not block */
        ck_assert_int_eq(unlink("neighbors"), 0);
        ck_assert_int_eq(mkfifo("neighbors", 0644), 0);
        ck_assert_uint_eq(read_neighbors(path, keys, &bytes), 0);
        expect_note("./neighbors", "Invalid argument");
        ck_assert_int_eq(unlink("neighbors"), 0);
        ck_assert_int_eq(file_write(FILE_PUBLIC, "neighbors", "0x1:1 0x2:1\n", 12), 0);
        /* a credential takes precedence; without m_key_file there is no other place */
        ck_assert_uint_eq(read_neighbors(NULL, keys, &bytes), 0);
        ck_assert_uint_eq(findings.n, 1);
        ck_assert_int_eq(mkdir("credentials", 0700), 0);
        ck_assert_int_eq(setenv("CREDENTIALS_DIRECTORY", arena_printf(arena, "%s/credentials", directory), 1), 0);
        ck_assert_uint_eq(read_neighbors(path, keys, &bytes), 12);
        ck_assert_int_eq(file_write(FILE_PUBLIC, "credentials/neighbors", "0x1:1 0x2:22\n", 13), 0);
        ck_assert_uint_eq(read_neighbors(path, keys, &bytes), 13);
        ck_assert_uint_eq(read_neighbors(NULL, keys, &bytes), 13);
        ck_assert_uint_eq(findings.n, 0);
        (void) m_keys_free(keys);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("secret");
        TCase *c = tcase_create("secret");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_add_test(c, nothing_named);
        tcase_add_test(c, owners_only);
        tcase_add_test(c, owner);
        tcase_add_test(c, group_of_pkeyd);
        tcase_add_test(c, own_group);
        tcase_add_test(c, may_read);
        tcase_add_test(c, of_group);
        tcase_add_test(c, unreadable);
        tcase_add_test(c, empty);
        tcase_add_test(c, credential);
        tcase_add_test(c, relative_credentials);
        tcase_add_test(c, m_keys);
        tcase_add_test(c, neighbors);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
