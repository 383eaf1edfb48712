/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/pkeyctl_options.h"

#include <string.h>
#include <time.h>

#include "generation/generation.h"
#include "shell/fabric.h"
#include "util/scan.h"

#define MAX_SPAN     1000000 /* of any unit */
#define MAX_INTERVAL (86400 * USEC_PER_SEC)

/* "90s", "10m", "2h", "3d"; 0: it is no time span. */
static usec_t span_from_string(const char *text)
{
        static const struct {
                const char *unit;
                usec_t length;
        } units[] = {
                { "s", USEC_PER_SEC }, { "m", 60 * USEC_PER_SEC }, { "min", 60 * USEC_PER_SEC }, { "h", 3600 * USEC_PER_SEC },
                { "d", 86400 * USEC_PER_SEC },
        };
        struct scan s = { text, text + strlen(text) };
        uint64_t value;

        if (!scan_number(&s, 10, MAX_SPAN, &value))
                return 0;
        for (size_t i = 0; i < ELEMENTS(units); i++)
                if (strcmp(s.p, units[i].unit) == 0)
                        return value * units[i].length;
        return 0;
}

/* A local time, or UTC with a Z at its end. 0: it is no time. */
static usec_t moment_from_string(const char *text)
{
        static const char *const formats[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
                                               "%Y-%m-%d %H:%M", "%Y-%m-%d" };

        for (size_t i = 0; i < ELEMENTS(formats); i++) {
                struct tm tm = { .tm_isdst = -1 };
                const char *rest = strptime(text, formats[i], &tm);
                int day = tm.tm_mday, second = tm.tm_sec;
                time_t t;

                if (!rest || (*rest && strcmp(rest, "Z") != 0))
                        continue;
                t = *rest ? timegm(&tm) : mktime(&tm);
                if (tm.tm_mday != day || tm.tm_sec != second) /* there is no such day or second */
                        return 0;
                return t > 0 ? (usec_t) t * USEC_PER_SEC : 0;
        }
        return 0;
}

static void read_since(struct findings *findings, const char *text, void *options)
{
        struct options *o = options;
        usec_t span = span_from_string(text), now = (usec_t) time(NULL) * USEC_PER_SEC;

        o->since = span ? now - MIN(span, now - 1) : moment_from_string(text);
        if (!o->since)
                (void) findings_error(findings, FINDING_USAGE, NULL,
                                      "--since: '%s' is not a time (accepted: as in 90s, 10m, 2h, 3d, or 2026-01-31T08:00)", text);
        else if (o->since > now + USEC_PER_SEC)
                (void) findings_error(findings, FINDING_USAGE, NULL, "--since: '%s' is in the future", text);
}

/* An empty name would select all records. */
static void read_node(struct findings *findings, const char *text, void *options)
{
        struct options *o = options;

        o->node = text;
        if (*text == '\0')
                (void) findings_error(findings, FINDING_USAGE, NULL,
                                      "--node: the name is empty; give the name of a host, a switch or a port, "
                                      "or leave --node out");
}

static void read_interval(struct findings *findings, const char *text, void *options)
{
        struct options *o = options;

        o->interval = span_from_string(text);
        if (o->interval == 0 || o->interval > MAX_INTERVAL)
                (void) findings_error(findings, FINDING_USAGE, NULL, "--interval: '%s' is not a time from 1s to 1d", text);
}

static void read_confirm(struct findings *findings, const char *text, void *options)
{
        struct options *o = options;

        o->confirm = span_from_string(text);
        if (o->confirm == 0 || o->confirm > CONFIRM_MAX * USEC_PER_SEC)
                (void) findings_error(findings, FINDING_USAGE, NULL, "--confirm: '%s' is not a time from 1s to 7d (as in 90s, 10m, 2h)",
                                      text);
}

/* With a unit it is the time to wait of a command, without one that of a MAD; the table of commands has which of them applies. */
static void read_timeout(struct findings *findings, const char *text, void *options)
{
        struct options *o = options;

        o->wait = span_from_string(text);
        if (text[strspn(text, "0123456789")] == '\0')
                command_line_read_timeout(findings, "timeout", text, &o->timeout);
        else if (o->wait == 0)
                (void) findings_error(findings, FINDING_USAGE, NULL, "--timeout: '%s' is not a time (accepted: milliseconds to wait for one "
                                      "MAD, 1 to 60000; lease create: like 90s, 10m)", text);
}

static void read_for(struct findings *findings, const char *text, void *options)
{
        struct options *o = options;

        o->lease.seconds = strcmp(text, "unlimited") == 0 ? UINT64_MAX : span_from_string(text) / USEC_PER_SEC;
        if (o->lease.seconds == 0)
                (void) findings_error(findings, FINDING_USAGE, NULL, "--for: '%s' is not a time (accepted: as in 90s, 10m, 2h, 3d; or "
                                      "unlimited)", text);
}

static void read_p_key(struct findings *findings, const char *text, void *options)
{
        struct scan s = { text, text + strlen(text) };
        struct options *o = options;
        uint64_t value = 0;
        bool is_number = scan_word(&s, "0x") && scan_number(&s, 16, UINT16_MAX, &value) && s.p == s.end;

        o->lease.base = (uint16_t) (value & P_KEY_BASE_MASK);
        if (is_number && value > P_KEY_BASE_MASK)
                (void) findings_error(findings, FINDING_USAGE, "whether members are full or limited is chosen with --membership",
                                      "--pkey: '%s' has the high bit set (accepted: 0x%04x)", text, o->lease.base);
        else if (!is_number || value == 0)
                (void) findings_error(findings, FINDING_USAGE, NULL, "--pkey: '%s' is not a P_Key (accepted: 0x0001 to 0x%04x, in hex)",
                                      text, P_KEY_BASE_MASK);
}

static void read_membership(struct findings *findings, const char *text, void *options)
{
        struct options *o = options;

        o->lease.membership = text;
        if (strcmp(text, "full") != 0 && strcmp(text, "limited") != 0)
                (void) findings_error(findings, FINDING_USAGE, NULL, "--membership: '%s' is not a membership (accepted: full, limited)", text);
}

/* Which other format a command has is in the table of commands. */
static void read_format(struct findings *, const char *text, void *options)
{
        struct options *o = options;

        o->format = text;
        o->json = o->json || strcmp(text, "json") == 0;
}

static const struct command_line_option known_options[] = {
        COMMAND_LINE_OPTION("fabric", 0, TEXT, fabric, "FABRIC", "the fabric to work with, if this host has several (" FABRIC_VARIABLE ")"),
        COMMAND_LINE_OPTION("Ca", 'C', TEXT, ca, "CA", "work through this device of this host"),
        COMMAND_LINE_OPTION("Port", 'P', PORT, port, "PORT", "and this port of it"),
        { "timeout", 't', COMMAND_LINE_READ, 0, read_timeout, "MS", "wait this long for one MAD; lease create: for its members, as in 90s" },
        COMMAND_LINE_OPTION("config", 0, TEXT, config, "FILE", "this host's settings (" CONFIG_DIR "/pkeyd.yaml)"),
        COMMAND_LINE_OPTION("policy", 0, TEXT, policy, "FILE", "the policy, if no FILE names it"),
        COMMAND_LINE_OPTION("state-dir", 0, TEXT, state_dir, "DIR", "what is kept between runs (" STATE_DIR ")"),
        COMMAND_LINE_OPTION("topology", 0, TEXT, topology, "FILE", "output of ibnetdiscover instead of a fabric"),
        COMMAND_LINE_OPTION("opensm-config", 0, TEXT, opensm_config, "FILE", "opensm.conf"),
        COMMAND_LINE_OPTION("output", 0, TEXT, output, "FILE", "write to this file; only report overwrites an existing one"),
        COMMAND_LINE_OPTION("json", 0, FLAG, json, NULL, "one JSON object on stdout"),
        { "format", 0, COMMAND_LINE_READ, 0, read_format, "FORMAT", "sh (env), dot (show matrix), or json as --json" },
        COMMAND_LINE_OPTION("yes", 0, FLAG, yes, NULL, "do not ask"),
        { "confirm", 0, COMMAND_LINE_READ, 0, read_confirm, "TIME", "undo the change after this time unless it is confirmed" },
        COMMAND_LINE_OPTION("fix", 0, FLAG, fix, NULL, "make the corrections that are certain; writes FILE"),
        COMMAND_LINE_OPTION("write", 0, FLAG, write, NULL, "also change the lines of the policy that name the old node"),
        COMMAND_LINE_OPTION("local", 0, FLAG, local, NULL, "compare only the tables of this host, as its kernel has them; sends no MAD"),
        COMMAND_LINE_OPTION("beside-opensm", 0, FLAG, beside_opensm, NULL,
                            "accept a subnet manager that may write P_Key tables, too"),
        { "since", 0, COMMAND_LINE_READ, 0, read_since, "WHEN", "only violations after this time: 10m, 2h, 3d ago, or a date and time" },
        { "node", 0, COMMAND_LINE_READ, 0, read_node, "NAME", "only violations at this host or switch" },
        COMMAND_LINE_OPTION("once", 0, FLAG, once, NULL, "work without a daemon: read all counters twice"),
        { "interval", 0, COMMAND_LINE_READ, 0, read_interval, "TIME", "time between the two readings (10s)" },
        COMMAND_LINE_OPTION("pool", 0, TEXT, lease.pool, "POOL", "the pool of the policy to lease from"),
        COMMAND_LINE_OPTION("id", 0, TEXT, lease.id, "ID", "the ID of the lease; repeating a request with the same ID is safe"),
        COMMAND_LINE_OPTION("members", 0, TEXT, lease.members, "SELECTORS", "the ports of the lease, as in a line of the policy"),
        { "pkey", 0, COMMAND_LINE_READ, 0, read_p_key, "KEY", "this P_Key of the pool, like 0x1003 (any)" },
        { "membership", 0, COMMAND_LINE_READ, 0, read_membership, "MEMBERSHIP", "full or limited (that of the pool)" },
        { "for", 0, COMMAND_LINE_READ, 0, read_for, "TIME", "how long, like 2h; or unlimited (as long as the pool allows)" },
        COMMAND_LINE_OPTION("add", 0, TEXT, lease.add, "SELECTORS", "these become members: ports, and GUIDs that no port has yet"),
        COMMAND_LINE_OPTION("remove", 0, TEXT, lease.remove, "SELECTORS", "these members are removed"),
        COMMAND_LINE_OPTION("set", 0, TEXT, lease.set, "SELECTORS", "these become the only members"),
        COMMAND_LINE_OPTION("index0", 0, FLAG, lease.index0, NULL, "put the P_Key at index 0 of the tables of added members"),
        COMMAND_LINE_OPTION("partial", 0, FLAG, lease.partial, NULL, "leave out members that cannot be confirmed in time"),
        COMMAND_LINE_OPTION("release-stranded", 0, FLAG, release_stranded, NULL, "release leases that have no place in the new policy"),
        COMMAND_LINE_OPTION("quiet", 'q', FLAG, quiet, NULL, "print only errors"),
        COMMAND_LINE_OPTION("verbose", 'v', FLAG, verbose, NULL, "print more: every write, every port"),
        COMMAND_LINE_OPTION("help", 'h', FLAG, help, NULL, "this text"),
        COMMAND_LINE_OPTION("version", 'V', FLAG, version, NULL, "the version"),
};

const struct command_line options_line = { "pkeyctl", known_options, ELEMENTS(known_options) };

bool options_are_given(uint64_t given, const char *name)
{
        for (size_t i = 0; i < ELEMENTS(known_options); i++)
                if (strcmp(known_options[i].name, name) == 0)
                        return given & UINT64_C(1) << i;
        return false;
}

int options_parse(int argc, char **argv, struct findings *findings, struct options *ret)
{
        int first;

        *ret = (struct options) {};
        first = command_line_read(&options_line, argc, argv, findings, ret, &ret->given);
        if (first < 0)
                return first;
        ret->arguments = argv + first;
        ret->n_arguments = (unsigned) (argc - first);
        return 0;
}
