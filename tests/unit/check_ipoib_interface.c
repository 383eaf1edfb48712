/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The IPoIB interface of a port, in a directory like sysfs. */

#include <check.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "shell/ipoib_interface.h"
#include "util/macros.h"

static char root[] = "/tmp/check-ipoib-XXXXXX";

static char *path(const char *format, ...)
{
        static char buf[8][PATH_MAX];
        static unsigned next;
        char *ret = buf[next++ % 8];
        size_t n = (size_t) snprintf(ret, PATH_MAX, "%s/", root);
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(ret + n, PATH_MAX - n, format, ap);
        va_end(ap);
        return ret;
}

static void put(const char *file, const char *text)
{
        FILE *f = fopen(file, "w");

        ck_assert_ptr_nonnull(f);
        ck_assert_int_ge(fputs(text, f), 0);
        ck_assert_int_eq(fclose(f), 0);
}

static void add(const char *name, const char *type, const char *dev_port, const char *device, bool child)
{
        ck_assert_int_eq(mkdir(path("net/%s", name), 0755), 0);
        put(path("net/%s/type", name), type);
        put(path("net/%s/dev_port", name), dev_port);
        if (device)
                ck_assert_int_eq(symlink(path("pci/%s", device), path("net/%s/device", name)), 0);
        if (child)
                put(path("net/%s/parent", name), "ib0\n");
}

static void make_tree(void)
{
        static const char *const folders[] = { "net", "pci", "pci/0", "pci/1", "ib", "ib/mlx5_0", "ib/mlx5_1", "ib/mlx5_2" };

        ck_assert_ptr_nonnull(mkdtemp(root));
        for (size_t i = 0; i < ELEMENTS(folders); i++)
                ck_assert_int_eq(mkdir(path("%s", folders[i]), 0755), 0);
        ck_assert_int_eq(symlink(path("pci/0"), path("ib/mlx5_0/device")), 0);
        ck_assert_int_eq(symlink(path("pci/1"), path("ib/mlx5_1/device")), 0);
        add("lo", "772\n", "0\n", NULL, false);
        add("eth0", "1\n", "0\n", "0", false);
        add("ib0.8001", "32\n", "0\n", "0", true);
        add("ib0", "32\n", "0\n", "0", false);
        add("ib1", "32\n", "1\n", "0", false);
        add("ibp3s0", "32\n", "0\n", "1", false);
        add("broken", "", "", "1", false);
}

static void expect(const char *device, unsigned port, const char *name)
{
        char found[IF_NAMESIZE] = "";
        bool is_found = ipoib_interface_find(path("net"), path("ib/%s", device), port, found);

        ck_assert_msg(is_found == (name != NULL), "%s/%u: %s", device, port, found);
        if (name)
                ck_assert_str_eq(found, name);
}

START_TEST(find)
{
        make_tree();
        expect("mlx5_0", 1, "ib0");
        expect("mlx5_0", 2, "ib1");
        expect("mlx5_0", 3, NULL);
        expect("mlx5_1", 1, "ibp3s0");
        expect("mlx5_2", 1, NULL); /* it has no device */
        ck_assert(!ipoib_interface_find(path("nothing"), path("ib/mlx5_0"), 1, (char[IF_NAMESIZE]) {}));
}
END_TEST

int main(void)
{
        Suite *s = suite_create("ipoib_interface");
        TCase *t = tcase_create("ipoib_interface");
        SRunner *r;
        char command[64];
        int n_failed;

        tcase_add_test(t, find);
        suite_add_tcase(s, t);
        r = srunner_create(s);
        srunner_set_fork_status(r, CK_NOFORK); /* the directory is removed below */
        srunner_run_all(r, CK_ENV);
        n_failed = srunner_ntests_failed(r);
        srunner_free(r);
        (void) snprintf(command, sizeof(command), "rm -rf %s", root);
        return system(command) != 0 || n_failed > 0;
}
