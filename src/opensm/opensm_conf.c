/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm/opensm_conf.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "opensm/opensm_numbers.h"
#include "util/file_report.h"
#include "util/text.h"

#define LINE_MAX_SIZE 1022 /* characters that one fgets of OpenSM reads of this file */

struct reader {
        struct arena *arena;
        struct report report;
        struct opensm_conf *conf;
        struct place place;
};

static void warn(struct reader *r, const char *key, const char *value, const char *what)
{
        report_add(&r->report, FINDING_WARNING, FINDING_OPENSM_CONF, &r->place, "%s: %s %s", key,
                   report_quote(&r->report, value), what);
}

static bool read_bool(struct reader *r, const char *key, const char *value)
{
        bool is_true = strcmp(value, "TRUE") == 0;

        if (!is_true && strcmp(value, "FALSE") != 0)
                warn(r, key, value, "is read as FALSE by OpenSM (accepted: TRUE, FALSE, in capitals)");
        return is_true;
}

/* The value of a key must not appear in a finding. */
static void check_key(struct reader *r, const char *key, const char *value)
{
        const char *end;

        (void) opensm_number(OPENSM_NUMBERS_UNKNOWN, value, &end);
        if (opensm_number_is_binary(value))
                report_add(&r->report, FINDING_WARNING, FINDING_OPENSM_CONF, &r->place,
                           "%s: its value is a binary number, which only an OpenSM that was built with glibc 2.38 or later reads",
                           key);
        else if (end == value || *end)
                report_add(&r->report, FINDING_WARNING, FINDING_OPENSM_CONF, &r->place,
                           "%s: its value is not a number; OpenSM ignores it", key);
}

static void check_level(struct reader *r, const char *key, const char *value)
{
        const char *end;
        uint64_t v = opensm_number(OPENSM_NUMBERS_UNKNOWN, value, &end);

        if (opensm_number_is_binary(value) || end == value || *end || v > 3)
                warn(r, key, value, "is not a protection level (accepted: 0 to 3)");
}

static void check_enforcement(struct reader *r, const char *key, const char *value)
{
        static const char *const words[] = { "both", "in", "out", "off" };

        if (!text_is_one_of(value, words, ELEMENTS(words)))
                warn(r, key, value, "is read as both by OpenSM (accepted: both, in, out, off)");
}

static int read_option(struct reader *r, const char *key, const char *value)
{
        struct opensm_conf *c = r->conf;

        if (strcmp(key, "allow_both_pkeys") == 0)
                c->allow_both_pkeys = read_bool(r, key, value);
        else if (strcmp(key, "qos") == 0 || strcmp(key, "keep_pkey_indexes") == 0)
                (void) read_bool(r, key, value);
        else if (strcmp(key, "m_key") == 0 || strcmp(key, "sa_key") == 0)
                check_key(r, key, value);
        else if (strcmp(key, "m_key_protection_level") == 0)
                check_level(r, key, value);
        else if (strcmp(key, "part_enforce") == 0)
                check_enforcement(r, key, value);
        else if (strcmp(key, "partition_config_file") == 0) {
                c->partition_config_file = strcmp(value, "(null)") == 0 ? NULL : arena_strdup(r->arena, value);
                if (!c->partition_config_file && strcmp(value, "(null)") != 0)
                        return -ENOMEM;
        }
        return 0;
}

static char *strip(char *s)
{
        size_t n;

        while (isspace((unsigned char) *s))
                s++;
        n = strlen(s);
        while (n > 0 && isspace((unsigned char) s[n - 1]))
                s[--n] = '\0';
        if (n > 1 && (s[0] == '"' || s[0] == '\'') && s[n - 1] == s[0]) {
                s[n - 1] = '\0';
                s++;
        }
        return s;
}

static int read_line(struct reader *r, char *line)
{
        char *key, *value;

        line[strcspn(line, "#")] = '\0';
        key = line + strspn(line, " \t\n");
        value = key + strcspn(key, " \t\n");
        if (value == key)
                return 0;
        if (*value)
                *value++ = '\0';
        return read_option(r, key, strip(value));
}

int opensm_conf_parse(struct arena *a, const char *file_name, const char *bytes, size_t n, struct findings *findings,
                      struct opensm_conf *ret)
{
        struct opensm_conf conf = {};
        struct reader r = { .arena = a, .conf = &conf, .place = { .where = { file_name, 0, 1 } } };
        char line[LINE_MAX_SIZE + 1];
        size_t used;
        int e = 0;

        report_init(&r.report, findings);
        for (size_t offset = 0; offset < n && e == 0; offset += used) {
                const char *end = memchr(bytes + offset, '\n', MIN(n - offset, (size_t) LINE_MAX_SIZE));

                used = end ? (size_t) (end - bytes) - offset + 1 : MIN(n - offset, (size_t) LINE_MAX_SIZE);
                if (offset == 0 || bytes[offset - 1] == '\n')
                        r.place.where.line++;
                memcpy(line, bytes + offset, used);
                line[used] = '\0';
                e = read_line(&r, line);
        }
        if (e < 0 || findings->out_of_memory)
                return -ENOMEM;
        *ret = conf;
        return 0;
}

/* The path without its leading slashes and "." components. */
static const char *skip_empty(const char *path)
{
        while (*path == '/' || (*path == '.' && (path[1] == '/' || path[1] == '\0')))
                path++;
        return path;
}

bool opensm_conf_is_same_file(const char *x, const char *y)
{
        if ((*x == '/') != (*y == '/'))
                return false;
        for (;;) {
                size_t n;

                x = skip_empty(x);
                y = skip_empty(y);
                n = strcspn(x, "/");
                if (n != strcspn(y, "/") || memcmp(x, y, n) != 0)
                        return false;
                if (n == 0)
                        return true;
                x += n;
                y += n;
        }
}

void opensm_conf_check_file(const struct opensm_conf *conf, const char *path, const char *written, struct findings *findings)
{
        const struct location where = { .file = path };
        const char *read = conf->partition_config_file;
        struct finding *item;

        if (!read && path && !opensm_conf_is_same_file(OPENSM_PARTITIONS_CONF, written)) {
                item = findings_add(findings, FINDING_WARNING, FINDING_OPENSM_CONF, &where,
                                    "no partition_config_file is named: OpenSM reads " OPENSM_PARTITIONS_CONF " unless it is started "
                                    "with -P, but the partition file in pkeyd.yaml is %s", written);
                finding_set_hint(findings, item, "add the line 'partition_config_file %s' to it, and restart OpenSM", written);
        }
        if (!read || opensm_conf_is_same_file(read, written))
                return;
        item = findings_add(findings, FINDING_ERROR, FINDING_OPENSM_CONF, &where,
                            "partition_config_file is %s, but the partition file in pkeyd.yaml is %s", *read ? read : "empty", written);
        finding_set_hint(findings, item, "name the same path in both, also if one is a link to the other");
}
