/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * report/: `pkeyctl report`, the fabric on one page for a web browser.
 *
 *     command_report   collects what is known: of the fabric, the store and the daemon
 *     report_json      as JSON, folded: its size grows with the names of the hosts, and with what differs between them
 *     report_page      the JSON in a page (report/report.html beside src/) that shows it
 *
 * The page has what other commands show one by one: it is kept, or sent to someone who has no access to the fabric. So it needs
 * nothing but itself, and what could not be read is shown as not known, never as right. Nothing is written except the page.
 *
 * C knows no HTML, and the page knows only the JSON. This folder does not know the other commands: what it has in common with them
 * is in session/.
 */

#include "reach/matrix.h"
#include "session/bus_client.h"
#include "session/group_matrix.h"
#include "session/held_output.h"
#include "session/partitions.h"
#include "session/session.h"
#include "verify/verify.h"

command_t command_report;

/* The daemon's part of a report. */
enum report_daemon {
        REPORT_DAEMON_RUNNING,
        REPORT_DAEMON_ABSENT,     /* it does not run, or permission is denied */
        REPORT_DAEMON_SILENT,     /* it is on the bus and does not answer */
        REPORT_DAEMON_NOT_ASKED,  /* another port was named, so it may have another fabric */
};

/* An endport that has this base in its table. */
struct report_member {
        uint16_t base;
        enum membership membership;
        uint32_t port;
};

struct report_data {
        usec_t made;                     /* CLOCK_REALTIME */
        const char *host;
        struct verification *verification; /* NULL: no policy */
        const struct held_list *held;    /* NULL: not known */
        uint32_t n_endports, n_switches, n_switch_ports, n_silent; /* switches: each has an endport, port 0 */
        struct endports read, unreachable, frozen; /* frozen: endports */
        struct matrix matrix;
        struct reach_kind *kinds;
        uint32_t n_kinds;
        struct partitions partitions;
        struct report_member *members;   /* ascending base, membership, port */
        size_t n_members, allocated_members;
        enum report_daemon daemon_state;
        struct daemon_status daemon;     /* REPORT_DAEMON_RUNNING */
        struct violations_result violations; /* the same */
        const struct remembered *stored; /* NULL: not known */
};

/* Adds the report to the JSON of a command. */
void report_json(struct doc *d, const struct report_data *r);

/* The text of report/report.html, which the build puts into report_html.c: ASCII without a NUL, with the word @DATA@ once. */
extern const char report_html[];
extern const size_t report_html_size;

/* The whole page with this JSON in it. Returns 0 or -ENOMEM; the text is the caller's. */
int report_page(const json_t *root, struct text *ret);
