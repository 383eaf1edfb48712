/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Golden files. For each NAME.yaml of a folder, NAME.expected contains the expected output:
 *
 *     rejected/  bad policies: all findings as they are printed, then their codes
 *     accepted/  good policies: all findings, then the normal form
 *     settings/  good and bad settings: all findings, then "ok" if the file was accepted
 *
 * `golden FOLDER KIND` compares all files of a folder. With GOLDEN_WRITE=1 in the environment it writes the expected output
 * instead; read it critically before you commit it. `golden -c FILE KIND` checks that a shipped file has no findings, `golden -k
 * KIND` lists the keys of such a file.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy_print.h"
#include "policy/policy.h"
#include "policy/policy_keys.h"
#include "util/text.h"
#include "settings/settings.h"

enum kind { REJECTED, ACCEPTED, SETTINGS };

static const char *const kinds[] = { "rejected", "accepted", "settings" };

static void close_p(FILE **f)
{
        if (*f)
                (void) fclose(*f);
}

static int read_file(const char *path, char **ret, size_t *ret_n)
{
        _cleanup_(close_p) FILE *f = fopen(path, "re");
        _cleanup_text_ struct text t = {};
        char buffer[4096];
        size_t n;

        if (!f)
                return -errno;
        while ((n = fread(buffer, 1, sizeof(buffer), f)) > 0)
                text_add_n(&t, buffer, n);
        if (ferror(f) || t.failed)
                return -EIO;
        *ret_n = t.n;
        *ret = t.bytes ? STEAL(t.bytes) : calloc(1, 1);
        return 0;
}

static void add_findings(struct text *t, struct arena *a, const struct findings *findings)
{
        size_t i;

        for (i = 0; i < findings->n; i++)
                text_add(t, "%s", finding_format(a, &findings->items[i]));
        for (i = 0; i < findings->n; i++)
                text_add(t, "[%s]\n", finding_code_to_string(findings->items[i].code));
}

/* Appends the output for a file. Returns whether the file was accepted. */
static bool run(struct text *out, enum kind kind, const char *name, const char *bytes, size_t n)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct settings *settings;
        struct policy *policy;
        int r;

        if (kind == SETTINGS)
                r = settings_parse(a, name, bytes, n, &findings, &settings);
        else
                r = policy_parse(a, name, bytes, n, &findings, &policy);
        add_findings(out, a, &findings);
        if (r == 0)
                text_add(out, "%s", kind == SETTINGS ? "ok\n" : policy_print(a, policy));
        return r == 0 && !findings_refuse(&findings);
}

static int write_expected(const char *path, const struct text *t)
{
        _cleanup_(close_p) FILE *f = fopen(path, "we");

        if (!f || fwrite(t->bytes ? t->bytes : "", 1, t->n, f) != t->n)
                return -EIO;
        return 0;
}

static bool compare(const char *path, const struct text *got)
{
        _cleanup_free_ char *expected = NULL;
        size_t n;

        if (read_file(path, &expected, &n) < 0) {
                fprintf(stderr, "%s: cannot be read\n", path);
                return false;
        }
        if (n == got->n && memcmp(expected, got->bytes ? got->bytes : "", n) == 0)
                return true;
        fprintf(stderr, "%s: differs\n--- expected\n%s--- got\n%s", path, expected, got->bytes ? got->bytes : "");
        return false;
}

static bool check_file(const char *folder, const char *file, enum kind kind)
{
        _cleanup_text_ struct text got = {}, path = {}, expected = {};
        _cleanup_free_ char *bytes = NULL;
        size_t n;
        bool accepted;

        text_add(&path, "%s/%s", folder, file);
        text_add(&expected, "%s/%.*s.expected", folder, (int) strlen(file) - 5, file);
        if (read_file(path.bytes, &bytes, &n) < 0) {
                fprintf(stderr, "%s: cannot be read\n", path.bytes);
                return false;
        }
        accepted = run(&got, kind, file, bytes, n);
        if (kind != SETTINGS && accepted != (kind == ACCEPTED)) {
                fprintf(stderr, "%s: was %s\n%s", path.bytes, accepted ? "accepted" : "rejected",
                        got.bytes ? got.bytes : "");
                return false;
        }
        if (getenv("GOLDEN_WRITE"))
                return write_expected(expected.bytes, &got) == 0;
        return compare(expected.bytes, &got);
}

static bool check_folder(const char *folder, enum kind kind)
{
        DIR *dir = opendir(folder);
        const struct dirent *e;
        unsigned n = 0, bad = 0;

        if (!dir) {
                fprintf(stderr, "%s: %s\n", folder, strerror(errno));
                return false;
        }
        while ((e = readdir(dir))) {
                size_t length = strlen(e->d_name);

                if (length <= 5 || strcmp(e->d_name + length - 5, ".yaml") != 0)
                        continue;
                n++;
                bad += !check_file(folder, e->d_name, kind);
        }
        (void) closedir(dir);
        printf("%s: %u files, %u bad\n", folder, n, bad);
        return n > 0 && bad == 0;
}

/* Checks that a shipped file has no findings. */
static bool check_clean(const char *path, enum kind kind)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };
        _cleanup_text_ struct text t = {};
        _cleanup_free_ char *bytes = NULL;
        struct settings *settings;
        struct policy *policy;
        size_t n;
        int r;

        if (read_file(path, &bytes, &n) < 0) {
                fprintf(stderr, "%s: cannot be read\n", path);
                return false;
        }
        if (kind == SETTINGS)
                r = settings_parse(a, path, bytes, n, &findings, &settings);
        else
                r = policy_parse(a, path, bytes, n, &findings, &policy);
        add_findings(&t, a, &findings);
        if (r == 0 && findings.n == 0)
                return true;
        fprintf(stderr, "%s: not clean\n%s", path, t.bytes ? t.bytes : "");
        return false;
}

static void list_keys(enum kind kind)
{
        size_t i;

        for (i = 0; kind == SETTINGS && i < settings_n_keys; i++)
                printf("%s\n", settings_schema[i].name);
        for (i = 0; kind != SETTINGS && i < ELEMENTS(policy_keys); i++)
                printf("%s\n", policy_keys[i]);
        for (i = 0; kind != SETTINGS && i < ELEMENTS(policy_pool_keys); i++)
                printf("%s\n", policy_pool_keys[i]);
        for (i = 0; kind != SETTINGS && i < ELEMENTS(policy_partition_keys); i++)
                printf("%s\n", policy_partition_keys[i]);
        for (i = 0; kind != SETTINGS && i < ELEMENTS(policy_ipoib_keys); i++)
                printf("%s\n", policy_ipoib_keys[i]);
}

int main(int argc, char **argv)
{
        bool clean = argc == 4 && strcmp(argv[1], "-c") == 0, keys = argc == 3 && strcmp(argv[1], "-k") == 0;
        size_t i;

        for (i = 0; (argc == 3 || clean) && i < ELEMENTS(kinds); i++) {
                if (strcmp(argv[argc - 1], kinds[i]) != 0)
                        continue;
                if (keys) {
                        list_keys((enum kind) i);
                        return EXIT_SUCCESS;
                }
                if (clean)
                        return check_clean(argv[2], (enum kind) i) ? EXIT_SUCCESS : EXIT_FAILURE;
                return check_folder(argv[1], (enum kind) i) ? EXIT_SUCCESS : EXIT_FAILURE;
        }
        fprintf(stderr, "usage: golden FOLDER KIND, golden -c FILE KIND, golden -k KIND\n");
        return EXIT_FAILURE;
}
