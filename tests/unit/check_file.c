/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "shell/file.h"

static char directory[64];
static struct arena *arena;

static void setup(void)
{
        strcpy(directory, "/tmp/check_file.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(directory));
        ck_assert_int_eq(chdir(directory), 0);
        arena = arena_new();
        ck_assert_ptr_nonnull(arena);
}

static void teardown(void)
{
        static const char *const left[] = { "a", "fifo" };

        for (size_t i = 0; i < ELEMENTS(left); i++)
                (void) unlink(left[i]);
        ck_assert_int_eq(chdir("/"), 0);
        ck_assert_int_eq(rmdir(directory), 0); /* nothing else was left behind */
        arena = arena_free(arena);
}

START_TEST(write_and_read)
{
        static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 100000 };
        char *bytes = malloc(100000);
        struct stat st;

        ck_assert_ptr_nonnull(bytes);
        for (size_t i = 0; i < 100000; i++)
                bytes[i] = (char) (i * 7);
        for (size_t i = 0; i < ELEMENTS(sizes); i++) {
                const char *back = NULL;
                size_t n = 0;

                ck_assert_int_eq(file_write(FILE_SHARED, "a", bytes, sizes[i]), 0);
                ck_assert_int_eq(file_read(arena, "a", sizes[i], &back, &n), 0);
                ck_assert_uint_eq(n, sizes[i]);
                ck_assert_int_eq(memcmp(back, bytes, n), 0);
                ck_assert_int_eq(back[n], 0);
                ck_assert_int_eq(file_read(arena, "a", SIZE_MAX, &back, &n), -EINVAL);
                if (n > 0)
                        ck_assert_int_eq(file_read(arena, "a", n - 1, &back, &n), -EFBIG);
        }
        ck_assert_int_eq(stat("a", &st), 0);
        ck_assert_uint_eq(st.st_mode & 0777, 0644);
        free(bytes);
}
END_TEST

static void expect_content(const char *path, const char *content)
{
        const char *bytes = NULL;
        struct stat st;
        size_t n = 0;

        ck_assert_int_eq(lstat(path, &st), 0);
        ck_assert(S_ISREG(st.st_mode));
        ck_assert_int_eq(file_read(arena, path, 100, &bytes, &n), 0);
        ck_assert_str_eq(bytes, content);
}

static void expect_link(const char *path, const char *target)
{
        char is[128] = "";

        ck_assert_int_gt(readlink(path, is, sizeof(is) - 1), 0);
        ck_assert_str_eq(is, target);
}

/* NULL for an arena, because there was no memory for it, means -ENOMEM. */
START_TEST(read_without_an_arena)
{
        const char *bytes = NULL;
        size_t n = 0;

        ck_assert_int_eq(file_write(FILE_SHARED, "a", "x", 1), 0);
        ck_assert_int_eq(file_read(NULL, "a", 10, &bytes, &n), -ENOMEM);
        ck_assert_ptr_null(arena_strdup(NULL, "a"));
        ck_assert_ptr_null(arena_printf(NULL, "%d", 1));
}
END_TEST

START_TEST(write_for_others)
{
        const char *back = NULL;
        mode_t mask = umask(077);
        struct stat st;
        size_t n = 0;

        ck_assert_int_eq(file_write(FILE_PUBLIC, "b", "first", 5), 0);
        ck_assert_int_eq(file_write(FILE_PUBLIC, "b", "second", 6), 0);
        (void) umask(mask);
        ck_assert_int_eq(file_read(arena, "b", 100, &back, &n), 0);
        ck_assert_str_eq(back, "second");
        ck_assert_int_eq(stat("b", &st), 0);
        ck_assert_uint_eq(st.st_mode & 0777, 0644);
        ck_assert_int_eq(file_write(FILE_PUBLIC, "nowhere/b", "x", 1), -ENOENT);
        ck_assert_int_eq(unlink("b"), 0);
        ck_assert_int_eq(mkdir("b", 0700), 0);
        ck_assert_int_eq(file_write(FILE_PUBLIC, "b", "x", 1), -EISDIR);
        ck_assert_int_eq(rmdir("b"), 0);
}
END_TEST

static mode_t mode_of(const char *path)
{
        struct stat st;

        ck_assert_int_eq(stat(path, &st), 0);
        return st.st_mode & 0777;
}

/* As a shell would: the umask counts for a new file, an old one keeps its mode, and a link stays. */
START_TEST(write_what_the_user_named)
{
        mode_t mask = umask(027);
        const char *back = NULL;
        size_t n = 0;

        ck_assert_int_eq(file_write(FILE_NAMED, "b", "first", 5), 0);
        ck_assert_uint_eq(mode_of("b"), 0640);
        ck_assert_uint_eq(umask(0), 027); /* it is as before */
        ck_assert_int_eq(chmod("b", 0604), 0);
        ck_assert_int_eq(symlink("b", "link"), 0);
        ck_assert_int_eq(file_write(FILE_NAMED, "link", "second", 6), 0);
        (void) umask(mask);
        ck_assert_int_eq(file_read(arena, "b", 100, &back, &n), 0);
        ck_assert_str_eq(back, "second");
        ck_assert_uint_eq(mode_of("b"), 0604);
        ck_assert_int_eq(unlink("link"), 0);
        ck_assert_int_eq(unlink("b"), 0);
        ck_assert_int_eq(file_write(FILE_NAMED, "nowhere/b", "x", 1), -ENOENT);
}
END_TEST

/* The target of a link is replaced, the link stays, and no temporary file is left. */
START_TEST(write_through_links)
{
        char target[sizeof(directory) + 8];
        struct stat st;

        ck_assert_int_eq(mkdir("folder", 0700), 0);
        ck_assert_int_eq(symlink("folder/real", "link1"), 0);
        ck_assert_int_eq(symlink("real", "folder/beside"), 0); /* relative to the folder of the link */
        ck_assert_int_eq(file_write(FILE_SHARED, "link1", "first", 5), 0); /* the target does not exist yet */
        expect_content("folder/real", "first");
        ck_assert_int_eq(stat("folder/real", &st), 0);
        ck_assert_uint_eq(st.st_mode & 0777, 0644);
        ck_assert_int_eq(file_write(FILE_SHARED, "folder/beside", "second", 6), 0);
        expect_content("folder/real", "second");
        ck_assert_int_eq(chmod("folder/real", 0640), 0); /* this mode is kept */
        (void) snprintf(target, sizeof(target), "%s/link1", directory);
        ck_assert_int_eq(symlink(target, "link2"), 0); /* an absolute link to another link */
        ck_assert_int_eq(file_write(FILE_SHARED, "link2", "third", 5), 0);
        expect_content("folder/real", "third");
        ck_assert_int_eq(stat("folder/real", &st), 0);
        ck_assert_uint_eq(st.st_mode & 07777, 0640);
        expect_link("link1", "folder/real");
        expect_link("link2", target);
        expect_link("folder/beside", "real");
        ck_assert_int_eq(unlink("folder/real"), 0);
        ck_assert_int_eq(unlink("folder/beside"), 0);
        ck_assert_int_eq(rmdir("folder"), 0); /* nothing else was left behind */
        ck_assert_int_eq(file_write(FILE_SHARED, "link2", "x", 1), -ENOENT);
        ck_assert_int_eq(unlink("link1"), 0);
        ck_assert_int_eq(symlink("link2", "link1"), 0); /* a circle */
        ck_assert_int_eq(file_write(FILE_SHARED, "link2", "x", 1), -ELOOP);
        ck_assert_int_eq(unlink("link1"), 0);
        ck_assert_int_eq(unlink("link2"), 0);
}
END_TEST

/* What is kept of a file that a link leads to is where that file is. */
START_TEST(write_beside_a_link)
{
        const char *bytes;
        size_t n;

        ck_assert_int_eq(mkdir("elsewhere", 0700), 0);
        ck_assert_int_eq(file_write(FILE_SHARED, "elsewhere/a", "1", 1), 0);
        ck_assert_int_eq(symlink("elsewhere/a", "link"), 0);
        ck_assert_int_eq(file_write_beside("link.old", "link", "2", 1), 0);
        ck_assert_int_eq(access("link.old", F_OK), -1);
        ck_assert_int_eq(file_read(arena, "elsewhere/link.old", 10, &bytes, &n), 0);
        ck_assert_str_eq(bytes, "2");
        ck_assert_int_eq(file_write_beside("elsewhere/a.old", "elsewhere/a", "3", 1), 0);
        ck_assert_int_eq(file_write_beside("none.old", "none", "4", 1), 0);
        ck_assert_int_eq(file_write_beside("alone", NULL, "5", 1), 0);
        ck_assert_int_eq(access("elsewhere/a.old", F_OK) + access("none.old", F_OK) + access("alone", F_OK), 0);
        ck_assert_int_eq(unlink("elsewhere/a") + unlink("elsewhere/link.old") + unlink("elsewhere/a.old") + rmdir("elsewhere"), 0);
        ck_assert_int_eq(unlink("link") + unlink("none.old") + unlink("alone"), 0);
}
END_TEST

/* Whoever could not read the file before cannot read it now, and its owner still can. */
START_TEST(edit_of_another_user)
{
        static const mode_t modes[] = { 0600, 0640, 0664 };
        struct stat st;

        if (geteuid() != 0)
                return;
        for (size_t i = 0; i < ELEMENTS(modes); i++) {
                ck_assert_int_eq(file_write(FILE_SHARED, "a", "first", 5), 0);
                ck_assert_int_eq(chown("a", i == 1 ? 0 : 65533, 65534), 0);
                ck_assert_int_eq(chmod("a", modes[i]), 0);
                ck_assert_int_eq(file_write(FILE_EDITED, "a", "second", 6), 0);
                expect_content("a", "second");
                ck_assert_int_eq(stat("a", &st), 0);
                ck_assert_uint_eq(st.st_uid, i == 1 ? 0 : 65533);
                ck_assert_uint_eq(st.st_gid, 65534);
                ck_assert_uint_eq(st.st_mode & 07777, modes[i]);
        }
        ck_assert_int_eq(chmod(".", 0777), 0);
        ck_assert_int_eq(seteuid(65533), 0);
        ck_assert_int_eq(file_write(FILE_EDITED, "a", "third", 5), -EPERM); /* the user is not in the group of the file */
        ck_assert_int_eq(seteuid(0), 0);
        expect_content("a", "second");
        ck_assert_int_eq(unlink("a"), 0);
        ck_assert_int_eq(file_write(FILE_EDITED, "a", "x", 1), -ENOENT);
}
END_TEST

/* Links are not followed, because other users may be able to write to the directory. */
START_TEST(others_links_are_replaced)
{
        ck_assert_int_eq(file_write(FILE_SHARED, "a", "mine", 4), 0);
        ck_assert_int_eq(symlink("a", "b"), 0);
        ck_assert_int_eq(file_write(FILE_PUBLIC, "b", "public", 6), 0);
        expect_content("a", "mine");
        expect_content("b", "public");
        ck_assert_int_eq(unlink("b"), 0);
}
END_TEST

START_TEST(write_fails)
{
        ck_assert_int_eq(file_write(FILE_SHARED, "nowhere/a", "x", 1), -ENOENT);
        ck_assert_int_eq(mkdir("a", 0700), 0);
        ck_assert_int_eq(file_write(FILE_SHARED, "a", "x", 1), -EISDIR);
        ck_assert_int_eq(rmdir("a"), 0);
}
END_TEST

START_TEST(what_is_no_file)
{
        const char *bytes;
        size_t n;

        ck_assert_int_eq(file_read(arena, "absent", 10, &bytes, &n), -ENOENT);
        ck_assert_int_eq(file_read(arena, ".", 10, &bytes, &n), -EISDIR);
        ck_assert_int_eq(mkfifo("fifo", 0600), 0);
        ck_assert_int_eq(file_read(arena, "fifo", 10, &bytes, &n), -EINVAL);
        ck_assert_int_eq(file_read(arena, "/dev/zero", 10, &bytes, &n), -EINVAL);
}
END_TEST

START_TEST(standard_input)
{
        const char *bytes;
        int ends[2];
        size_t n;

        ck_assert_int_eq(pipe(ends), 0);
        ck_assert_int_eq(write(ends[1], "hello", 5), 5);
        ck_assert_int_eq(close(ends[1]), 0);
        ck_assert_int_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
        ck_assert_int_eq(file_read(arena, "-", 5, &bytes, &n), 0);
        ck_assert_str_eq(bytes, "hello");
        ck_assert_uint_eq(n, 5);
        ck_assert_int_eq(close(ends[0]), 0);
}
END_TEST

START_TEST(found)
{
        _cleanup_findings_ struct findings f = { .arena = arena };
        const char *bytes;
        size_t n;

        ck_assert_int_eq(file_write(FILE_SHARED, "a", "hello", 5), 0);
        ck_assert_int_eq(file_read_found(arena, "a", 5, &f, &bytes, &n), 0);
        ck_assert_uint_eq(f.n, 0);
        ck_assert_int_eq(file_read_found(arena, "a", 4, &f, &bytes, &n), -EBADMSG);
        ck_assert_int_eq(f.items[0].code, FINDING_FILE_TOO_LARGE);
        ck_assert_ptr_nonnull(strstr(f.items[0].text, "4 bytes"));
        ck_assert_str_eq(f.items[0].where.file, "a");
        ck_assert_int_eq(file_read_found(arena, "absent", 4, &f, &bytes, &n), -EBADMSG);
        ck_assert_int_eq(f.items[1].code, FINDING_FILE_UNREADABLE);
        ck_assert_ptr_nonnull(strstr(f.items[1].text, "No such file"));
        ck_assert_int_eq(file_read_found(arena, "/dev/null", 4, &f, &bytes, &n), -EBADMSG);
        ck_assert_int_eq(f.items[2].code, FINDING_FILE_UNREADABLE);
        ck_assert(findings_refuse(&f));
}
END_TEST

/* The next file that is opened does not get a standard descriptor that was closed, and that one stays unusable. */
START_TEST(closed_descriptors)
{
        for (int closed = 0; closed < 8; closed++) {
                pid_t pid = fork();
                int status;

                if (pid == 0) {
                        char byte = 0;
                        bool right;

                        for (int fd = 0; fd < 3; fd++)
                                if (closed >> fd & 1)
                                        (void) close(fd);
                        right = file_take_standard() == 0 && file_open("/dev/null") > 2;
                        for (int fd = 0; fd < 3; fd++)
                                if (closed >> fd & 1)
                                        right = right && (fd == 0 ? read(fd, &byte, 1) : write(fd, &byte, 1)) < 0 && errno == EBADF;
                        _exit(right ? 0 : 1);
                }
                ck_assert_int_eq(waitpid(pid, &status, 0), pid);
                ck_assert_int_eq(status, 0);
        }
}
END_TEST

int main(void)
{
        Suite *s = suite_create("file");
        TCase *t = tcase_create("file");
        SRunner *r;
        int n_failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, write_and_read);
        tcase_add_test(t, read_without_an_arena);
        tcase_add_test(t, write_for_others);
        tcase_add_test(t, write_what_the_user_named);
        tcase_add_test(t, write_through_links);
        tcase_add_test(t, write_beside_a_link);
        tcase_add_test(t, edit_of_another_user);
        tcase_add_test(t, others_links_are_replaced);
        tcase_add_test(t, write_fails);
        tcase_add_test(t, what_is_no_file);
        tcase_add_test(t, standard_input);
        tcase_add_test(t, found);
        tcase_add_test(t, closed_descriptors);
        suite_add_tcase(s, t);
        r = srunner_create(s);
        srunner_run_all(r, CK_ENV);
        n_failed = srunner_ntests_failed(r);
        srunner_free(r);
        return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
