/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Without libFuzzer a fuzz target is an ordinary test. It gets each file below the given folders: whole, truncated at many places,
 * and with single bytes changed. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/macros.h"

#define MAX_SIZE 65536
#define MAX_CUTS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static unsigned n_inputs;

/* A copy of exactly this size, so that a sanitizer detects a read past the end. */
static void run(const uint8_t *data, size_t n)
{
        uint8_t *copy = malloc(n ? n : 1);

        if (!copy)
                abort();
        memcpy(copy, data, n);
        (void) LLVMFuzzerTestOneInput(copy, n);
        free(copy);
        n_inputs++;
}

static void run_variations(uint8_t *data, size_t n)
{
        static const uint8_t bytes[] = { 0, '\n', ':', '[', '-', 0xff };
        size_t step = n / MAX_CUTS + 1, i;

        run(data, n);
        for (i = 0; i < n; i += step) {
                uint8_t kept = data[i];

                run(data, i);
                data[i] = bytes[i / step % sizeof(bytes)];
                run(data, n);
                data[i] = kept;
        }
}

static int run_file(const char *path)
{
        FILE *f = fopen(path, "re");
        uint8_t *data = malloc(MAX_SIZE);
        size_t n;

        if (!f || !data) {
                perror(path);
                free(data);
                if (f)
                        (void) fclose(f);
                return -1;
        }
        n = fread(data, 1, MAX_SIZE, f);
        (void) fclose(f);
        run_variations(data, n);
        free(data);
        return 0;
}

static int run_folder(const char *folder)
{
        DIR *dir = opendir(folder);
        const struct dirent *e;
        char path[4096];
        int r = 0;

        if (!dir) {
                perror(folder);
                return -1;
        }
        while (r == 0 && (e = readdir(dir))) {
                size_t length = strlen(e->d_name);

                if (e->d_name[0] == '.' || (length > 9 && strcmp(e->d_name + length - 9, ".expected") == 0))
                        continue;
                (void) snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
                r = run_file(path);
        }
        (void) closedir(dir);
        return r;
}

int main(int argc, char **argv)
{
        struct stat st;
        int i;

        for (i = 1; i < argc; i++) {
                if (stat(argv[i], &st) < 0) {
                        perror(argv[i]);
                        return EXIT_FAILURE;
                }
                if ((S_ISDIR(st.st_mode) ? run_folder(argv[i]) : run_file(argv[i])) < 0)
                        return EXIT_FAILURE;
        }
        printf("%u inputs\n", n_inputs);
        return n_inputs > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
