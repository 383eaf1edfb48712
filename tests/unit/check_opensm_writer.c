/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The writer of OpenSM's partition file: which files it writes, when it signals OpenSM, and what it does if OpenSM does not carry
 * them out. */

#include <signal.h>

#include "control/control_internal.h"
#include "control_fixture.h"

#define S USEC_PER_SEC
#define COPY FILE_CONF ".before-pkeyd"

/* Begins a sweep, up to the first action of the writer. */
static void begin(const char *policy)
{
        start(OPENSM, policy);
        until(CONTROL_WRITING_OPENSM);
}

/* OpenSM has carried out the policy; the next sweep has reached the writer. */
static void begin_again(const char *policy)
{
        start("mode: enforce\nwriter: opensm\nsweep_interval: 1h\nopensm: {partitions_conf: " FILE_CONF
              ", reload: \"pid:2\"}\n",
              policy);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        forget_log();
        until(CONTROL_WRITING_OPENSM);
}

static void read_files(void)
{
        const struct control_action *a = take(CONTROL_READ_FILES);
        struct control_event event = {.kind = CONTROL_EVENT_FILES_READ};

        ck_assert_str_eq(a->files[0].path, FILE_CONF);
        ck_assert_str_eq(a->files[1].path, COPY);
        ck_assert_ptr_null(a->files[2].path);
        for (unsigned i = 0; i < 2; i++) {
                const struct fixture_file *file = file_at(i ? COPY : FILE_CONF);

                event.files[i] = (struct control_file) {file->path, file->bytes, file->n,
                                                       file->r       ? file->r
                                                       : file->bytes ? 0
                                                                     : -ENOENT};
        }
        give(&event);
}

/* Takes the file to be written, and reports it as in place. Returns its text. */
static const char *write_file(void)
{
        const struct control_action *a = take(CONTROL_WRITE_FILE);
        const char *text = arena_strndup(arena, a->files[0].bytes, a->files[0].n);

        ck_assert_str_eq(a->files[0].path, FILE_CONF);
        put_file(FILE_CONF, text);
        give_file_written(0);
        return text;
}

static void expect_signal(int number)
{
        const struct control_action *a = take(CONTROL_SIGNAL_OPENSM);

        ck_assert_int_eq(a->signal, number);
}

static void signal_opensm(void)
{
        expect_signal(SIGHUP);
        give_signalled(0);
}

/* Advances to the due time, and reads the tables; before a further file, also the one in place. */
static void look(void)
{
        take_nothing();
        wait_until_due();
        answer();
        if (is_next(CONTROL_READ_FILES))
                read_files();
}

/* OpenSM hangs until the writer gives up on the file. */
static void give_up_on_opensm(void)
{
        while (state() == CONTROL_WRITING_OPENSM) {
                look();
                expect_signal(0);
                give_signalled(0);
        }
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
}

static const struct opensm_writer *control_writer(void)
{
        return c->writer;
}

static bool has(const char *text, const char *part)
{
        return strstr(text, part) != NULL;
}

static bool names_full(const char *text, unsigned node)
{
        return has(text, arena_printf(arena, "0x%016" PRIx64 "=full", port_of(node)->guid.v));
}

/* --- files, one after the other --- */

START_TEST(first_files)
{
        const char *adopt, *grant;

        begin(POLICY_1);
        ck_assert_uint_eq(control_due(c), USEC_INFINITY);
        read_files();
        adopt = write_file();
        ck_assert(has(adopt, "adopt") && !has(adopt, "0x8010"));
        signal_opensm();
        ck_assert_uint_eq(control_due(c), now + S + 5 * USEC_PER_MSEC); /* five endports */
        opensm_reads_file();
        n_gets = 0;
        look();
        ck_assert_uint_eq(n_gets, 18); /* NodeInfo of five SMAs; blocks of the five endports, and of the switch ports beside four
                                        * of them */
        grant = write_file();
        ck_assert(!has(grant, "grant") && has(grant, "=0x0010")); /* the policy's own file has no phase */
        signal_opensm();
        ck_assert_uint_eq(control_due(c), now + 50 * USEC_PER_MSEC);
        opensm_reads_file();
        n_gets = 0;
        look();
        ck_assert_uint_eq(n_gets, 5); /* of node1 and of the switch port beside it */
        ck_assert_int_eq(state(), CONTROL_WRITING_OPENSM);
        look(); /* all tables, at the end */
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        expect_logged(LOG_EVENT_APPLIED, "generation 1: carried out by OpenSM with 2 partition files in 1.1 s");
        ck_assert_uint_eq(n_sets, 0);
        ck_assert(holds(hosts[0], 0x8010) && !holds(hosts[1], 0x8010));
}
END_TEST

/* Nothing to change: the tables are read, and nothing else. */
START_TEST(nothing_to_do)
{
        begin_again(POLICY_1);
        read_files();
        ck_assert_int_eq(state(), CONTROL_IDLE);
        take_nothing();
        ck_assert_uint_eq(count_logged(LOG_EVENT_APPLIED), 0);
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
}
END_TEST

/* Bases that a port loses are removed first, by a file of their own. */
START_TEST(revoke_before_grant)
{
        const char *text;

        begin_again(POLICY_1);
        read_files();
        give_candidate(OPENSM, "version: 1\npartitions:\n  q:\n    pkey: 0x0011\n    members: {node2: full}\n", 0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        text = write_file();
        ck_assert(has(text, "revoke") && !has(text, "=0x0010") && !has(text, "=0x0011"));
        signal_opensm();
        opensm_reads_file();
        look();
        text = write_file();
        ck_assert(has(text, "=0x0011"));
        signal_opensm();
        opensm_reads_file();
        look();
        look();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(!holds(hosts[0], 0x8010) && holds(hosts[1], 0x8011));
}
END_TEST

/* Only the head of the file changes, and no table: OpenSM need not read it. */
START_TEST(another_generation_of_the_same)
{
        begin_again(POLICY_1);
        read_files();
        give_candidate(OPENSM "window: 7\n", POLICY_1, 0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        (void) write_file();
        ck_assert_int_eq(state(), CONTROL_IDLE);
        take_nothing();
        ck_assert_uint_eq(status()->in_force->number, 2);
}
END_TEST

/* OpenSM is signalled about changes that no table shows, as parameters of IPoIB. The writer does not wait for them. */
START_TEST(another_mtu)
{
        begin_again(POLICY_1);
        read_files();
        give_candidate(OPENSM,
                       "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    ipoib: {mtu: 4096}\n"
                       "    members: {node1: full}\n",
                       0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        ck_assert(has(write_file(), "mtu"));
        signal_opensm();
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
}
END_TEST

/* An entry that the leaf port drops carries no traffic, so no phase is needed; but OpenSM must read the file again to remove it. */
START_TEST(file_given_again)
{
        begin_again(POLICY_1);
        put_key(hosts[1], 9, 0x8055);
        read_files();
        give_candidate(OPENSM "sweep_interval: 20s\n", POLICY_1, 0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        ck_assert(!has(write_file(), "=0x0055"));
        signal_opensm();
        opensm_reads_file();
        wait_until_due(); /* no port is in the phase */
        look();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(!holds(hosts[1], 0x8055));
}
END_TEST

/* OpenSM does not know of one that passes and was added after it carried out the file: the first file has it, a later one removes
 * it. */
START_TEST(drift_is_told_first)
{
        begin_again(POLICY_1);
        read_files();
        until(CONTROL_IDLE);
        put_key(hosts[1], 9, 0x8055);
        f.nodes[leaf].ports[3].table[9].v = 0x8055; /* beside it */
        until(CONTROL_WRITING_OPENSM);
        read_files();
        ck_assert(has(write_file(), "=0x0055"));
        signal_opensm();
        opensm_reads_file();
        look();
        ck_assert(!has(write_file(), "=0x0055"));
}
END_TEST

/* A host that is down is in the file with what the policy gives it, because it may come up at any time. */
START_TEST(absent_host_is_named)
{
        char guid[32];

        begin_again(POLICY_1);
        read_files();
        fabsim_disconnect(&f, hosts[1], 1);
        give_candidate(OPENSM "sweep_interval: 20s\n", POLICY_1, 0);
        until(CONTROL_IDLE);
        give_candidate(OPENSM "sweep_interval: 21s\n", POLICY_2, 0);
        until(CONTROL_DISCOVERING);
        sweep();
        (void) snprintf(guid, sizeof(guid), "0x%016" PRIx64 "=full", port_of(hosts[1])->guid.v);
        ck_assert_msg(has(file_at(FILE_CONF)->bytes, guid), "%s is not in %s", guid, file_at(FILE_CONF)->bytes);
}
END_TEST

/* So is a port that was never seen, if the policy names it by its GUID. */
START_TEST(unseen_port_is_named)
{
        begin_again(POLICY_1);
        read_files();
        give_candidate(OPENSM "sweep_interval: 21s\n", POLICY_1 "  late: {pkey: 0x0020, members: {0x0002c9030bad0001: full}}\n", 0);
        until(CONTROL_DISCOVERING);
        sweep();
        ck_assert_msg(has(file_at(FILE_CONF)->bytes, "late=0x0020:\n    0x0002c9030bad0001=full; # a port that was never seen"), "%s",
                      file_at(FILE_CONF)->bytes);
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
}
END_TEST

/* --- OpenSM does not follow --- */

/* It hangs: pkeyd checks its process after each read, and gives up after 20 s and 10 ms for each port. The file stays: what OpenSM
 * did since the last read is not known, and the file before would undo it. */
START_TEST(hung)
{
        static const usec_t delays[] = {100, 200, 400, 800, 1000, 1000};
        usec_t began;
        unsigned n = 0;

        begin_again(POLICY_1);
        read_files();
        give_candidate(OPENSM, POLICY_2, 0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        ck_assert(has(write_file(), "=0x0010"));
        signal_opensm();
        began = now;
        for (;; n++) {
                look();
                expect_signal(0); /* does the process still exist? */
                give_signalled(0);
                if (state() != CONTROL_WRITING_OPENSM)
                        break;
                ck_assert_uint_eq(control_due(c) - now,
                                  delays[MIN(n, (unsigned) ELEMENTS(delays) - 1)] * USEC_PER_MSEC);
        }
        ck_assert_uint_gt(now - began, 20 * S + 50 * USEC_PER_MSEC);
        ck_assert_uint_lt(now - began, 22 * S);
        take_nothing();
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        expect_logged(LOG_EVENT_OPENSM_NOT_DONE,
                      "OpenSM did not carry out its partition file (grant): 1 P_Key table differs from it, "
                      "for example that of node2 mlx5_0/1; the file stays, and pkeyd continues with the next sweep; check that OpenSM reads "
                      FILE_CONF " (partition_config_file in opensm.conf)");
        ck_assert_str_eq(status()->text, last_logged(LOG_EVENT_OPENSM_NOT_DONE)->text);
        ck_assert_uint_eq(noted.n_unlocked > 0, true);
}
END_TEST

/* It carried out the file at one port, and not at the other: what it granted to the one is not revoked. */
START_TEST(hung_half_way)
{
        begin_again(POLICY_1);
        read_files();
        give_candidate(OPENSM, POLICY_3, 0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        (void) write_file();
        signal_opensm();
        out_of_reach = hosts[2];
        opensm_reads_file();
        give_up_on_opensm();
        take_nothing(); /* the file stays */
        expect_logged(LOG_EVENT_OPENSM_NOT_DONE,
                      "OpenSM did not carry out its partition file (grant): 1 P_Key table differs from it, for example that of node3 "
                      "mlx5_0/1; the file stays");
        out_of_reach = UINT32_MAX;
}
END_TEST

/* Not even the first file: an older one would change what the ports have. */
START_TEST(hung_in_the_first_phase)
{
        begin(POLICY_1);
        read_files();
        ck_assert(has(write_file(), "phase adopt"));
        signal_opensm();
        put_key(hosts[1], 5, 0x8033); /* after it was written */
        give_up_on_opensm();
        take_nothing();
        expect_logged(LOG_EVENT_OPENSM_NOT_DONE, "the file stays");
}
END_TEST

START_TEST(does_not_run)
{
        for (unsigned i = 0; i < 2; i++) {
                if (i == 0)
                        begin(POLICY_1);
                else
                        until(CONTROL_WRITING_OPENSM);
                read_files();
                (void) write_file(); /* the same phase again: the tables are as they were */
                expect_signal(SIGHUP);
                give_signalled(-ESRCH);
                ck_assert_int_eq(state(), CONTROL_IDLE);
                ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
                ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_NOT_NOTIFIED), 1);
        }
        expect_logged(LOG_EVENT_OPENSM_NOT_NOTIFIED,
                      "OpenSM could not be signalled to read its partition file: there is no OpenSM; pkeyd tries again");
        ck_assert_uint_eq(control_due(c), now + 10 * S);
}
END_TEST

/* POLICY_1 is in force; OpenSM was signalled to read the file that grants what POLICY_2 adds. */
static void signal_a_grant(void)
{
        begin_again(POLICY_1);
        read_files();
        give_candidate(OPENSM, POLICY_2, 0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        (void) write_file();
        signal_opensm();
}

START_TEST(ends_on_the_way)
{
        signal_a_grant();
        look();
        expect_signal(0);
        give_signalled(-ESRCH);
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        expect_logged(LOG_EVENT_OPENSM_NOT_NOTIFIED,
                      "OpenSM ended before it had carried out its partition file (grant): there is no");
        take_nothing(); /* the file stays */
}
END_TEST

static void take_defaults(void)
{
        for (unsigned n = 0; n < f.n_nodes; n++) {
                struct fabsim_port *p = &f.nodes[n].ports[n == leaf ? 0 : 1];

                memset(p->table, 0, sizeof(p->table));
                p->table[0].v = 0xffff;
        }
}

/* It dropped the file and used its default: the last good file is put back at once. */
START_TEST(falls_back)
{
        const char *good;

        begin_again(POLICY_1);
        read_files();
        good = arena_strdup(arena, file_at(FILE_CONF)->bytes);
        give_candidate(OPENSM, POLICY_2, 0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        (void) write_file();
        signal_opensm();
        take_defaults();
        look();
        ck_assert_str_eq(write_file(), good);
        signal_opensm();
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        expect_logged(LOG_EVENT_OPENSM_FELL_BACK,
                      "OpenSM dropped its partition file (grant): every port is a full member of the "
                      "default partition, and every other entry is gone; pkeyd puts the last good file back and "
                      "signals OpenSM to read it");
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FELL_BACK), 1);
        ck_assert_str_eq(status()->text, last_logged(LOG_EVENT_OPENSM_FELL_BACK)->text);
}
END_TEST

/* The first phase was carried out, OpenSM dropped the second: the file of the first is the last good one. */
START_TEST(falls_back_in_the_second_phase)
{
        const char *revoke;

        begin_again(POLICY_1);
        read_files();
        give_candidate(OPENSM, "version: 1\npartitions:\n  q:\n    pkey: 0x0011\n    members: {node2: full}\n", 0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        revoke = write_file();
        signal_opensm();
        opensm_reads_file();
        look();
        (void) write_file();
        signal_opensm();
        take_defaults();
        look();
        ck_assert_str_eq(write_file(), revoke);
}
END_TEST

/* Without a good file, one with the tables as they were is put back. */
START_TEST(falls_back_from_the_first_file)
{
        begin(POLICY_1);
        read_files();
        (void) write_file();
        signal_opensm();
        take_defaults();
        look();
        ck_assert(has(write_file(), "adopt"));
        expect_signal(SIGHUP);
        give_signalled(-ESRCH);
        expect_logged(LOG_EVENT_OPENSM_FELL_BACK, "is gone; pkeyd writes a file of the tables as they were and signals OpenSM to read it");
        expect_logged(LOG_EVENT_OPENSM_NOT_NOTIFIED, "OpenSM could not be signalled to read its partition file: there is no OpenSM");
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
}
END_TEST

START_TEST(falls_back_at_the_end)
{
        signal_a_grant();
        opensm_reads_file();
        look();
        take_defaults();
        look();
        take(CONTROL_WRITE_FILE);
        give_file_written(-ENOSPC);
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        expect_logged(LOG_EVENT_OPENSM_FELL_BACK, "OpenSM dropped its partition file (grant)");
        ck_assert(has(status()->text, FILE_CONF " cannot be written"));
}
END_TEST

/* It is reported that the fabric is open, even if nothing can be done about it. */
START_TEST(falls_back_while_the_store_fails)
{
        signal_a_grant();
        opensm_reads_file();
        look();
        take_defaults();
        store_r = -ENOSPC;
        look();
        take_nothing();
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        expect_logged(LOG_EVENT_OPENSM_FELL_BACK, "OpenSM dropped its partition file (grant)");
        ck_assert(has(status()->text, "pkeyd could not store what OpenSM would write next"));
        until(CONTROL_WRITING_OPENSM);
        read_files();
        take_nothing();
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FELL_BACK), 1); /* not again at each attempt */
}
END_TEST

/* It does not read what was put back, either. */
START_TEST(falls_back_and_stays_open)
{
        begin(POLICY_1);
        read_files();
        (void) write_file();
        signal_opensm();
        take_defaults();
        look();
        (void) write_file();
        signal_opensm();
        until(CONTROL_WRITING_OPENSM);
        read_files();
        expect_logged(LOG_EVENT_OPENSM_FELL_BACK, "pkeyd writes the file of the policy again");
}
END_TEST

/* OpenSM has not restored all tables before the next sweep: that a table is open still is not the work of another writer, which the
 * next file would repeat. */
START_TEST(falls_back_and_restores_some)
{
        signal_a_grant();
        take_defaults();
        look();
        (void) write_file();
        signal_opensm();
        out_of_reach = hosts[2];
        opensm_reads_file();
        f.nodes[leaf].ports[4].table[0].v = 0xffff; /* beside it */
        until(CONTROL_WRITING_OPENSM);
        read_files();
        ck_assert(!names_full(write_file(), hosts[2]));
}
END_TEST

/* It used its default before the sweep: what is open is closed at once, without phases. */
START_TEST(had_fallen_back)
{
        begin_again(POLICY_1);
        take_defaults();
        read_files();
        until(CONTROL_IDLE);
        give_candidate(OPENSM, POLICY_2, 0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        expect_logged(LOG_EVENT_OPENSM_FELL_BACK, "OpenSM fell back to its default partitions");
        expect_logged(LOG_EVENT_OPENSM_FELL_BACK, "pkeyd writes the file of the policy again");
        ck_assert(has(write_file(), "=0x0010"));
        signal_opensm();
        opensm_reads_file();
        look();
        look();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(holds(hosts[1], 0x8010));
}
END_TEST

/* It used its default while pkeyd did not run: the file in place shows that it had other partitions before. */
START_TEST(had_fallen_back_at_the_start)
{
        start(OPENSM, POLICY_1);
        sweep();
        c = control_free(c);
        forget_log();
        take_defaults();
        begin(POLICY_1);
        read_files();
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FELL_BACK), 1);
        ck_assert(has(write_file(), "=0x0010"));
}
END_TEST

#define EVERYBODY_FULL "version: 1\npartitions:\n  default:\n    pkey: 0x7fff\n    members: {ALL: full}\n"
#define ONE_IN_P EVERYBODY_FULL "  p:\n    pkey: 0x0010\n    members: {node1: full}\n"

/* Tables that were like OpenSM's default before it read the file prove nothing. It never had other partitions, so this is not
 * reported, either. */
START_TEST(defaults_before_say_nothing)
{
        take_defaults();
        begin(ONE_IN_P);
        read_files();
        ck_assert(has(write_file(), "=0x0010"));
        signal_opensm();
        look(); /* OpenSM is slow: the tables have not changed */
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FELL_BACK), 0);
        expect_signal(0);
        give_signalled(0);
        opensm_reads_file();
        look();
        look();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FELL_BACK), 0);
}
END_TEST

/* From a file that makes every port a full member to one that does not. */
static void lower_all(void)
{
        begin_again(EVERYBODY_FULL);
        read_files();
        until(CONTROL_IDLE);
        give_candidate(OPENSM, POLICY_1, 0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        ck_assert(has(write_file(), " phase lower "));
}

/* The file in place makes every port a full member, and nothing else. */
START_TEST(open_by_the_file_in_place)
{
        lower_all();
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FELL_BACK), 0);
}
END_TEST

static void lower_all_while_opensm_hangs(void)
{
        lower_all();
        signal_opensm();
        give_up_on_opensm();
}

/* All tables were open when the file was written, and OpenSM has not read it: no fallback. */
START_TEST(open_before_a_file_that_is_not_done)
{
        lower_all_while_opensm_hangs();
        until(CONTROL_WRITING_OPENSM);
        read_files();
        ck_assert(!has(write_file(), "=0x0010"));
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FELL_BACK), 0);
}
END_TEST

/* Nor after a restart of pkeyd: the file is marked as one of several phases. */
START_TEST(open_before_a_phase_at_the_start)
{
        lower_all_while_opensm_hangs();
        c = control_free(c);
        forget_log();
        begin(POLICY_1);
        read_files();
        ck_assert(!has(write_file(), "=0x0010"));
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FELL_BACK), 0);
}
END_TEST

/* Tables were not open when the file was written, and are now: OpenSM used its default, whether or not it carried out the file
 * before. */
START_TEST(open_since_a_file_that_is_not_done)
{
        signal_a_grant();
        give_up_on_opensm();
        take_defaults();
        until(CONTROL_WRITING_OPENSM);
        read_files();
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FELL_BACK), 1);
        ck_assert(has(write_file(), "=0x0010"));
}
END_TEST

/* ... or the file that was handed over does, where pkeyd has had more than one policy before. */
START_TEST(open_by_the_given_file)
{
        static const char given[] = "Default=0x7fff, ipoib: ALL=full;\n";

        take_defaults();
        put_file(FILE_CONF, given);
        begin(EVERYBODY_FULL);
        read_files();
        until(CONTROL_IDLE);
        put_file(COPY, given);
        give_candidate(OPENSM, POLICY_1, 0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_TAKEN), 0);
        ck_assert(has(write_file(), " phase adopt "));
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FELL_BACK), 0);
        expect_logged(LOG_EVENT_OPENSM_FILE_TAKEN,
                      "pkeyd manages " FILE_CONF " from now on; its previous content is in " COPY);
        until(CONTROL_IDLE);
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_TAKEN), 1);
}
END_TEST

/* ... but not where OpenSM cannot read that. */
START_TEST(open_by_a_broken_given_file)
{
        static const char given[] = "Default=0x7fff: node0001=full;\n";

        take_defaults();
        put_file(FILE_CONF, given);
        put_file(COPY, given);
        begin(POLICY_1);
        read_files();
        ck_assert(has(write_file(), "=0x0010"));
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_TAKEN), 1);
}
END_TEST

/* --- ownership of the file --- */

START_TEST(foreign_file)
{
        put_file(FILE_CONF, "Default=0x7fff, ipoib: ALL=full;\n");
        for (unsigned i = 0; i < 2; i++) {
                if (i == 0)
                        begin(POLICY_1);
                else
                        until(CONTROL_WRITING_OPENSM);
                read_files();
                ck_assert_int_eq(state(), CONTROL_IDLE);
                ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
                ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_FOREIGN), 1); /* not again */
                take_nothing();
        }
        expect_logged(LOG_EVENT_OPENSM_FILE_FOREIGN, FILE_CONF " was not written by pkeyd, so pkeyd does not replace it");
        expect_logged(LOG_EVENT_OPENSM_FILE_FOREIGN, "cp --backup=numbered " FILE_CONF " " COPY);
}
END_TEST

/* A copy with this name hands the file over; another copy does not. */
START_TEST(given_file)
{
        put_file(FILE_CONF, "Default=0x7fff, ipoib: ALL=full;\n");
        put_file(COPY, "Default=0x7fff, ipoib: ALL=limited;\n");
        begin(POLICY_1);
        read_files();
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_FOREIGN), 1);
        put_file(COPY, "Default=0x7fff, ipoib: ALL=full;\n");
        until(CONTROL_WRITING_OPENSM);
        read_files();
        ck_assert(has(write_file(), "adopt"));
        /* after that the problem would be reported again */
        until(CONTROL_IDLE);
}
END_TEST

#define OWNS_SOME "version: 1\nowns: [0x7fff, 0x0010-0x001f]\npartitions:\n  p:\n    pkey: 0x0010\n    members: {node1: full}\n"
#define THEIRS "\ntheirs=0x0e01,indx0,ipoib,mtu=5,rate=3,sl=0,scope=2,Q_Key=0xb1b,TClass=0,FlowLabel=0:\n"

/* Without its flags OpenSM would create no broadcast group for an unmanaged partition. */
START_TEST(foreign_partition_keeps_its_flags)
{
        static const char given[] = "Default=0x7fff: ALL=limited;\ntheirs=0x0e01,indx0,ipoib,mtu=5: ALL=full;\n"
                                    "p=0x10,ipoib: ALL;\n";

        put_key(hosts[1], 1, 0x8e01);
        put_file(FILE_CONF, given);
        put_file(COPY, given);
        start(OPENSM, OWNS_SOME);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(has(file_at(FILE_CONF)->bytes, THEIRS));
        ck_assert(has(file_at(FILE_CONF)->bytes, "\np=0x0010:\n")); /* the policy decides about partitions that it manages */
        give_candidate(OPENSM, OWNS_SOME "  q:\n    pkey: 0x0011\n    members: {node1: full}\n", 0);
        until(CONTROL_WRITING_OPENSM);
        sweep();
        ck_assert(has(file_at(FILE_CONF)->bytes, "=0x0011") && has(file_at(FILE_CONF)->bytes, THEIRS));
        put_file(FILE_CONF, "");
        until(CONTROL_WRITING_OPENSM);
        sweep();
        ck_assert(has(file_at(FILE_CONF)->bytes, "=0x0011") && has(file_at(FILE_CONF)->bytes, THEIRS));
}
END_TEST

/* Nor does it gain index 0 for members of which OpenSM's file does not put it there. */
START_TEST(foreign_partition_keeps_who_has_index0)
{
        const char *given = arena_printf(arena, "Default=0x7fff: ALL=limited;\ntheirs=0x0e01,indx0: 0x%016" PRIx64 "=full;\n"
                                         "theirs=0x0e01: 0x%016" PRIx64 "=full;\n", port_of(hosts[1])->guid.v, port_of(hosts[2])->guid.v);
        const char *first, *second;

        put_key(hosts[1], 1, 0x8e01);
        put_key(hosts[2], 1, 0x8e01);
        put_file(FILE_CONF, given);
        put_file(COPY, given);
        start(OPENSM, OWNS_SOME);
        sweep();
        first = arena_printf(arena, "\ntheirs=0x0e01,indx0:\n    0x%016" PRIx64 "=full;", port_of(hosts[1])->guid.v);
        second = arena_printf(arena, "\ntheirs=0x0e01:\n    0x%016" PRIx64 "=full;", port_of(hosts[2])->guid.v);
        ck_assert(has(file_at(FILE_CONF)->bytes, first));
        ck_assert(has(file_at(FILE_CONF)->bytes, second));
}
END_TEST

/* In an unmanaged partition the file keeps hosts that are down, and those that were never seen, at the hand-over and later. ALL is
 * every known host. */
START_TEST(foreign_partition_keeps_who_is_not_there)
{
        static const char format[] = "Default=0x7fff: ALL=limited;\ntheirs=0x0e01: 0x%016" PRIx64 "=full, 0x0002c9030bad0001=limited;\n"
                                     "all=0x0e02: ALL=full;\np=0x10: 0x0002c9030bad0002=full;\n";
        static const char late[] = "    0x0002c9030bad0001=limited; # a port that was never seen\n";
        char theirs[128], *given;

        start(OPENSM, OWNS_SOME);
        sweep();
        until(CONTROL_IDLE);
        given = arena_printf(arena, format, port_of(hosts[1])->guid.v);
        (void) snprintf(theirs, sizeof(theirs), "\ntheirs=0x0e01:\n    0x%016" PRIx64 "=full, # node2 mlx5_0/1\n",
                        port_of(hosts[1])->guid.v);
        fabsim_disconnect(&f, hosts[1], 1);
        put_file(FILE_CONF, given);
        put_file(COPY, given);
        for (int generation = 2; generation <= 3; generation++) {
                until(CONTROL_WRITING_OPENSM);
                sweep();
                ck_assert_int_eq(status()->last_result, SWEEP_DONE);
                ck_assert_msg(has(file_at(FILE_CONF)->bytes, theirs), "%s", file_at(FILE_CONF)->bytes);
                ck_assert(has(file_at(FILE_CONF)->bytes, late));
                ck_assert(strstr(strstr(file_at(FILE_CONF)->bytes, "all=0x0e02:"), theirs + strlen("\ntheirs=0x0e01:\n")) != NULL);
                ck_assert(!has(file_at(FILE_CONF)->bytes, "0x0002c9030bad0002")); /* the policy decides about partitions that it manages */
                give_candidate(OPENSM, OWNS_SOME "  q:\n    pkey: 0x0011\n    members: {node1: full}\n", 0);
        }
        expect_logged(LOG_EVENT_OPENSM_FILE_TAKEN, "the old file gave partition all (0x0e02), which pkeyd does not manage, to ALL ports");
}
END_TEST

#define OWNS_NO_DEFAULT "version: 1\nowns: 0x0010-0x001f\npartitions:\n  p:\n    pkey: 0x0010\n    members: {node1: full}\n"

/* OpenSM's default has a broadcast group of the default partition, which is lost when OpenSM restarts if the file does not have
 * it. */
START_TEST(foreign_default_keeps_its_group)
{
        static const char *const given[] = {NULL, "", "# none yet\n", "p=0x10: node1=full;\n"};
        static const char *const settings[] = {OPENSM, MIRROR};

        for (unsigned i = 0; i < ELEMENTS(given) * ELEMENTS(settings); i++) {
                if (given[i / 2]) {
                        put_file(FILE_CONF, given[i / 2]);
                        put_file(COPY, given[i / 2]);
                }
                start(settings[i % 2], OWNS_NO_DEFAULT);
                for (int generation = 1; generation <= 2; generation++) {
                        sweep();
                        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
                        ck_assert_msg(has(file_at(FILE_CONF)->bytes, "\nDefault=0x7fff,indx0,ipoib,mtu=4,rate=3,sl=0,scope=2,"
                                                                     "Q_Key=0xb1b,TClass=0,FlowLabel=0:\n"),
                                      "case %u: %s", i, file_at(FILE_CONF)->bytes);
                        give_candidate(settings[i % 2], OWNS_NO_DEFAULT "  q:\n    pkey: 0x0011\n    members: {node1: full}\n", 0);
                        until(i % 2 ? CONTROL_MIRRORING : CONTROL_WRITING_OPENSM);
                }
                teardown();
                setup();
        }
}
END_TEST

/* A policy without ipoib removes the group, but only when OpenSM restarts: reported once, with the line that keeps it. */
START_TEST(lost_group_is_reported)
{
        static const char given[] = "Default=0x7fff, ipoib: ALL=full;\nlab=0x10, ipoib: ALL=full;\nmore=0x11: mgid=ff12:401b::16\n"
                                    " ALL=full;\nout=0x12, ipoib: ALL=full;\n";
        static const struct {
                const char *given, *policy, *names; /* NULL: nothing is lost */
        } cases[] = {
                {NULL, POLICY_1, "partition default (0x7fff); the policy has no ipoib there"},
                {NULL, POLICY_1, "'default: {pkey: 0x7fff, ipoib: true}'"},
                {"# none\n", ONE_IN_P, "to keep it, add 'ipoib: true' to that partition"},
                {NULL, POLICY_1 "  default: {pkey: 0x7fff, ipoib: true, members: {ALL: full}}\n", NULL},
                {NULL, OWNS_NO_DEFAULT, NULL},
                {given, ONE_IN_P, "partitions default (0x7fff), p (0x0010); the"},
                {given, OWNS_NO_DEFAULT, "partition p (0x0010); the"},
        };

        for (unsigned i = 0; i < ELEMENTS(cases); i++) {
                unsigned n = cases[i].names ? 1 : 0;

                if (cases[i].given) {
                        put_file(FILE_CONF, cases[i].given);
                        put_file(COPY, cases[i].given);
                }
                start(i % 2 ? OPENSM : MIRROR, cases[i].policy);
                sweep();
                ck_assert_int_eq(status()->last_result, SWEEP_DONE);
                ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_GROUPS_END), n);
                if (n)
                        expect_logged(LOG_EVENT_OPENSM_GROUPS_END, cases[i].names);
                put_file(FILE_CONF, ""); /* a file that pkeyd wrote is known */
                until(i % 2 ? CONTROL_WRITING_OPENSM : CONTROL_MIRRORING);
                sweep();
                ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_GROUPS_END), n);
                teardown();
                setup();
        }
}
END_TEST

/* pkeyd never wrote a file at this new path, so none is missing; reported when a file is there. */
START_TEST(another_path)
{
        struct control_event none = {.kind = CONTROL_EVENT_FILES_READ,
                                     .files = {{.path = "/new.conf", .r = -ENOENT}, {.r = -ENOENT}}};
        const struct control_action *write;

        begin_again(POLICY_1);
        read_files();
        until(CONTROL_IDLE);
        give_candidate("mode: enforce\nwriter: opensm\nopensm: {partitions_conf: /new.conf, reload: \"pid:2\"}\n", POLICY_1, 0);
        until(CONTROL_WRITING_OPENSM);
        ck_assert_str_eq(take(CONTROL_READ_FILES)->files[0].path, "/new.conf");
        give(&none);
        write = take(CONTROL_WRITE_FILE);
        ck_assert_str_eq(write->files[0].path, "/new.conf");
        put_file("/new.conf", arena_strndup(arena, write->files[0].bytes, write->files[0].n));
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_BROKEN), 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_MOVED), 0);
        give_file_written(0);
        expect_logged(LOG_EVENT_OPENSM_FILE_MOVED, "partition file to /new.conf from now on, and leaves " FILE_CONF " as it is");
        sweep();
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_MOVED), 1);
}
END_TEST

static void edit(const char *old, const char *new)
{
        const char *text = file_at(FILE_CONF)->bytes, *at = strstr(text, old);

        ck_assert_msg(at != NULL, "'%s' is not in %s", old, text);
        put_file(FILE_CONF, arena_printf(arena, "%.*s%s%s", (int) (at - text), text, new, at + strlen(old)));
}

/* The meaning of a number depends on how OpenSM was built: pkeyd replaces no such file, neither one that was handed over nor its
 * own that was edited. */
START_TEST(file_with_a_binary_number)
{
        static const char given[] = "Default=0x7fff, ipoib: ALL=full;\na=0b11: ALL=full;\n";

        put_file(FILE_CONF, given);
        put_file(COPY, given);
        begin(POLICY_1);
        read_files();
        expect_logged(LOG_EVENT_OPENSM_FILE_FOREIGN, FILE_CONF " contains a binary number (0b...), which only an OpenSM built with "
                      "glibc 2.38 or later accepts, so pkeyd does not replace it; nothing is written; to resolve this, write the number "
                      "in hexadecimal");
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        ck_assert_str_eq(file_at(FILE_CONF)->bytes, given);
        /* OpenSM drops this one, however it was built */
        put_file(FILE_CONF, "a=0b11: ALL=full, node1=full;\n");
        put_file(COPY, "a=0b11: ALL=full, node1=full;\n");
        until(CONTROL_WRITING_OPENSM);
        read_files();
        ck_assert(has(write_file(), "adopt"));
        until(CONTROL_IDLE);
}
END_TEST

START_TEST(edited_file_with_a_binary_number)
{
        begin_again(POLICY_1);
        edit("=0x0010", "=0b10000");
        read_files();
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        expect_logged(LOG_EVENT_OPENSM_FILE_FOREIGN, FILE_CONF " was edited after pkeyd wrote it");
        take_nothing();
}
END_TEST

START_TEST(edited_file)
{
        begin_again(POLICY_1);
        edit("=full", "=limited");
        read_files();
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        expect_logged(LOG_EVENT_OPENSM_FILE_FOREIGN, FILE_CONF " was edited after pkeyd wrote it");
        /* the copy that is there may be the only one of the file before pkeyd */
        expect_logged(LOG_EVENT_OPENSM_FILE_FOREIGN, "cp --backup=numbered " FILE_CONF " " COPY);
        take_nothing();
}
END_TEST

/* POLICY_1 is in force; OpenSM carries out the first of two files. */
static void begin_two_phases(void)
{
        begin_again(POLICY_1);
        read_files();
        give_candidate(OPENSM, "version: 1\npartitions:\n  q:\n    pkey: 0x0011\n    members: {node2: full}\n", 0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        ck_assert(has(write_file(), "revoke"));
        signal_opensm();
}

/* The file of the next phase does not replace an edit, or a file that cannot be read: another sweep begins with it. */
START_TEST(edited_between_phases)
{
        for (unsigned is_unreadable = 0; is_unreadable < 2; is_unreadable++) {
                const char *edited;

                begin_two_phases();
                opensm_reads_file();
                if (is_unreadable)
                        file_at(FILE_CONF)->r = -EACCES;
                else
                        edit("=full", "=limited");
                edited = arena_strdup(arena, file_at(FILE_CONF)->bytes);
                look();
                ck_assert_uint_eq(control_due(c), 0);
                until(CONTROL_WRITING_OPENSM);
                read_files();
                ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
                expect_logged(is_unreadable ? LOG_EVENT_OPENSM_FILE_UNUSABLE : LOG_EVENT_OPENSM_FILE_FOREIGN,
                              is_unreadable ? "cannot be read" : "was edited after pkeyd wrote it");
                ck_assert_str_eq(file_at(FILE_CONF)->bytes, edited);
                teardown();
                setup();
        }
}
END_TEST

/* The edit made OpenSM drop the file: no file is put back over it. */
START_TEST(falls_back_from_an_edit)
{
        begin_two_phases();
        edit("    0x", "    node1, 0x");
        take_defaults();
        look();
        until(CONTROL_WRITING_OPENSM);
        read_files();
        ck_assert_str_eq(take(CONTROL_WRITE_FILE)->files[0].path, FILE_CONF ".refused");
        give_file_written(0);
        ck_assert(has(write_file(), "=0x0011"));
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FELL_BACK), 1);
}
END_TEST

/* OpenSM would drop the edited file, which opens the fabric: it is moved aside and replaced. */
START_TEST(file_that_opens_the_fabric)
{
        const struct control_action *a;
        struct fixture_file *file = file_at(FILE_CONF);

        begin_again(POLICY_1);
        edit("    0x", "    node1, 0x");
        file->bytes[file->n - 2] = '\0'; /* what follows is kept, too */
        read_files();
        a = take(CONTROL_WRITE_FILE);
        ck_assert_str_eq(a->files[0].path, FILE_CONF ".refused");
        ck_assert_uint_eq(a->files[0].n, file_at(FILE_CONF)->n);
        ck_assert_int_eq(memcmp(a->files[0].bytes, file_at(FILE_CONF)->bytes, a->files[0].n), 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_BROKEN), 0);
        give_file_written(0);
        expect_logged(LOG_EVENT_OPENSM_FILE_BROKEN, "pkeyd keeps the changed file as " FILE_CONF ".refused (beside the target, if the path is a link)");
        ck_assert(!has(write_file(), "node1, 0x"));
}
END_TEST

/* If no copy of it can be kept, it stays. */
START_TEST(cannot_be_put_aside)
{
        begin_again(POLICY_1);
        edit("    0x", "    node1, 0x");
        read_files();
        take(CONTROL_WRITE_FILE);
        give_file_written(-EROFS);
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        take_nothing();
        expect_logged(LOG_EVENT_OPENSM_FILE_BROKEN,
                      FILE_CONF " was changed so that OpenSM cannot read it and would make every port a full member of the default partition; "
                      "pkeyd does not replace it, because it cannot write a copy to " FILE_CONF ".refused (beside the target, if the path is a link): "
                      "Read-only file system; THE UNIT in");
        ck_assert_str_eq(status()->text, last_logged(LOG_EVENT_OPENSM_FILE_BROKEN)->text);
}
END_TEST

/* These contain nothing to preserve; but a file that this process wrote should not become one of them. */
START_TEST(damaged_files)
{
        static const char *const texts[] = {"is gone", "is empty", "was cut short"};

        for (unsigned i = 0; i < 3; i++) {
                struct fixture_file *file;

                begin_again(POLICY_1);
                file = file_at(FILE_CONF);
                if (i == 0)
                        file->r = -ENOENT;
                else
                        file->n = i == 1 ? 0 : file->n / 2;
                file->bytes[file->n] = '\0';
                read_files();
                expect_logged(LOG_EVENT_OPENSM_FILE_BROKEN, texts[i]);
                ck_assert(has(write_file(), "=0x0010"));
                teardown();
                setup();
        }
}
END_TEST

/* At the start an empty file counts as none. */
START_TEST(empty_at_the_start)
{
        put_file(FILE_CONF, "");
        begin(POLICY_1);
        read_files();
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_BROKEN), 0);
        ck_assert(has(write_file(), "adopt"));
}
END_TEST

START_TEST(unreadable_file)
{
        put_file(FILE_CONF, ""); /* it could not be read, which does not make it empty */
        file_at(FILE_CONF)->r = -EACCES;
        begin(POLICY_1);
        read_files();
        expect_logged(LOG_EVENT_OPENSM_FILE_UNUSABLE,
                      FILE_CONF " cannot be read: Permission denied; nothing is written");
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        take_nothing();
}
END_TEST

START_TEST(unwritable_file)
{
        begin(POLICY_1);
        read_files();
        take(CONTROL_WRITE_FILE);
        give_file_written(-EROFS);
        expect_logged(LOG_EVENT_OPENSM_FILE_UNUSABLE, FILE_CONF " cannot be written: Read-only file system");
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        take_nothing();
}
END_TEST

/* A problem that was solved is reported when it occurs again. */
START_TEST(problem_comes_again)
{
        for (unsigned i = 0; i < 3; i++) {
                if (i == 0)
                        begin(POLICY_1);
                else
                        until(CONTROL_WRITING_OPENSM);
                if (i == 1) {
                        sweep();
                        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
                        give_candidate(OPENSM "window: 9\n", POLICY_1, 0);
                        continue;
                }
                read_files();
                take(CONTROL_WRITE_FILE);
                give_file_written(-EROFS);
        }
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_UNUSABLE), 2);
}
END_TEST

/* ... and not as that of a job that ended early for another reason. */
START_TEST(problem_of_an_earlier_job)
{
        begin(POLICY_1);
        read_files();
        take(CONTROL_WRITE_FILE);
        give_file_written(-EROFS);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        (void) write_file();
        signal_opensm();
        give_candidate(OPENSM, POLICY_0, 0);
        opensm_reads_file();
        sweep();
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STOPPED], 1);
        ck_assert_str_eq(opensm_writer_problem(control_writer()), "");
}
END_TEST

/* What happened to the file and why it cannot be written are reported once each, not at every attempt, until the file is intact. */
START_TEST(damage_that_stays)
{
        for (unsigned broken = 0; broken < 2; broken++) {
                const char *good;

                begin_again(POLICY_1);
                good = arena_strdup(arena, file_at(FILE_CONF)->bytes);
                for (unsigned i = 0; i < 9; i++) {
                        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_BROKEN), (i + 2) / 3);
                        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_UNUSABLE), (i + 2) / 3);
                        put_file(FILE_CONF, i % 3 == 2 ? good : broken ? arena_printf(arena, "%s    node1, 0x1;\n", good) : "");
                        read_files();
                        if (i % 3 < 2) {
                                if (broken) {
                                        ck_assert_str_eq(take(CONTROL_WRITE_FILE)->files[0].path, FILE_CONF ".refused");
                                        give_file_written(0);
                                }
                                take(CONTROL_WRITE_FILE);
                                give_file_written(-EROFS);
                        }
                        until(CONTROL_WRITING_OPENSM);
                }
                teardown();
                setup();
        }
}
END_TEST

START_TEST(damage_to_a_mirror_that_stays)
{
        const char *good;

        start(MIRROR, POLICY_1);
        sweep();
        good = arena_strdup(arena, file_at(FILE_CONF)->bytes);
        for (unsigned i = 0; i < 6; i++) {
                put_file(FILE_CONF, i % 3 == 2 ? good : "");
                until(CONTROL_MIRRORING);
                read_files();
                if (i % 3 < 2) {
                        take(CONTROL_WRITE_FILE);
                        give_file_written(-EROFS);
                }
                ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_BROKEN), i / 3 + 1);
        }
}
END_TEST

/* No file can be written. OpenSM falls back, and falls back again after an admin has restarted it. */
START_TEST(fallback_that_stays)
{
        begin_again(POLICY_1);
        until(CONTROL_IDLE);
        for (unsigned i = 0; i < 6; i++) {
                take_defaults();
                if (i % 3 == 2) {
                        opensm_reads_file();
                        put_key(hosts[1], 9, 0x8055); /* pkeyd has something to write then, too */
                        f.nodes[leaf].ports[3].table[9].v = 0x8055;
                }
                until(CONTROL_WRITING_OPENSM);
                read_files();
                take(CONTROL_WRITE_FILE);
                give_file_written(-EROFS);
                ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FELL_BACK), i / 3 + 1);
                ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_UNUSABLE), 1);
        }
}
END_TEST

START_TEST(survey_fails)
{
        begin(POLICY_1);
        read_files();
        (void) write_file();
        signal_opensm();
        wait_until_due();
        take(CONTROL_RUN_STAGE);
        give_stage_end(-ENODEV);
        expect_logged(LOG_EVENT_SWEEP_FAILED, "the P_Key tables could not be read: No such device");
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
}
END_TEST

/* --- ended early --- */

/* Another policy arrives: no further file is written, the tables are read, and the next sweep continues from there. */
START_TEST(stopped_for_a_reload)
{
        begin(POLICY_1);
        read_files();
        (void) write_file();
        signal_opensm();
        opensm_reads_file();
        look();
        (void) write_file();
        signal_opensm();
        give_candidate(OPENSM, POLICY_0, 0);
        look(); /* the ports of the phase: OpenSM may still write what the next policy would not know of */
        expect_signal(0);
        give_signalled(0);
        opensm_reads_file();
        look();
        take_nothing();
        look(); /* all ports */
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STOPPED], 1);
        ck_assert_uint_eq(control_due(c), 0);
        until(CONTROL_WRITING_OPENSM);
        sweep();
        ck_assert(!holds(hosts[0], 0x8010));
        ck_assert_uint_eq(status()->in_force->number, 2);
}
END_TEST

START_TEST(stopped_before_a_phase)
{
        begin(POLICY_1);
        give_candidate(OPENSM, POLICY_0, 0);
        read_files();
        take_nothing();
        look();
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STOPPED], 1);
}
END_TEST

/* --- what pkeyd cannot see --- */

/* node1 leaves 0x0010, node3 joins it; with 0x0011 none of them has to do. */
#define BEFORE "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members: {node1: full, node2: full}\n"
#define AFTER                                                                                                          \
        "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members: {node2: full, node3: full}\n"                    \
        "  q:\n    pkey: 0x0011\n    members: {node2: full}\n"

static bool lose_tables(const struct mad_request *request, struct fabsim_place at)
{
        return request->attribute == SMP_ATTR_P_KEY_TABLE && at.node == out_of_reach;
}

/* Neither pkeyd nor OpenSM can reach its table. */
static void mute(unsigned node)
{
        out_of_reach = node;
        lose = lose_tables;
}

static void unmute(void)
{
        out_of_reach = UINT32_MAX;
        lose = NULL;
}

/* The last job held this base and no other; 0: it held none. */
static void expect_held(uint16_t base)
{
        const char *problem = opensm_writer_problem(control_writer());

        if (base)
                ck_assert(has(problem, arena_printf(arena, "held back: partition 0x%04x; ", base)));
        else
                ck_assert(!has(problem, "held back"));
}

/* Until the policy is carried out, except for what waits; node1 and node3 never hold the P_Key at the same time. */
static void carry_out(void)
{
        while (state() != CONTROL_IDLE) {
                ck_assert(!(holds(hosts[0], 0x8010) && holds(hosts[2], 0x8010)));
                if (waits())
                        answer();
                else
                        wait_until_due();
        }
}

/* It may still be a member, so no other host becomes one. Everything else continues, and so does this when it answers again. */
START_TEST(mute_before_the_sweep)
{
        begin_again(BEFORE);
        until(CONTROL_IDLE);
        mute(hosts[0]);
        give_candidate(OPENSM, AFTER, 0);
        until(CONTROL_WRITING_OPENSM);
        carry_out();
        ck_assert_int_eq(status()->last_result, SWEEP_PARTIAL);
        ck_assert(holds(hosts[0], 0x8010) && holds(hosts[1], 0x8010) && !holds(hosts[2], 0x8010));
        ck_assert(holds(hosts[1], 0x8011));
        expect_held(0x0010);
        expect_logged(LOG_EVENT_BASE_HELD, "generation 2: held back: partition 0x0010; pkeyd does not know what some ports hold");
        ck_assert_uint_eq(count_logged(LOG_EVENT_APPLIED), 0);
        for (unsigned i = 0; i < 2; i++) {
                until(CONTROL_WRITING_OPENSM);
                carry_out();
                ck_assert(!holds(hosts[2], 0x8010));
        }
        ck_assert_uint_eq(count_logged(LOG_EVENT_BASE_HELD), 2); /* of all bases, and of this one; not reported again */
        unmute();
        until(CONTROL_WRITING_OPENSM);
        carry_out();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(!holds(hosts[0], 0x8010) && holds(hosts[1], 0x8010) && holds(hosts[2], 0x8010));
        expect_held(0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_APPLIED), 1);
}
END_TEST

/* It stops answering when OpenSM was given the file that revokes its P_Key: the phase is not reached there. */
START_TEST(mute_on_the_way)
{
        begin_again(BEFORE);
        until(CONTROL_IDLE);
        give_candidate(OPENSM, AFTER, 0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        ck_assert(has(write_file(), "revoke"));
        mute(hosts[0]);
        carry_out();
        ck_assert_int_eq(status()->last_result, SWEEP_PARTIAL);
        ck_assert(holds(hosts[0], 0x8010) && !holds(hosts[2], 0x8010) && holds(hosts[1], 0x8011));
        expect_held(0x0010);
        until(CONTROL_WRITING_OPENSM);
        carry_out(); /* it is not known what it holds, only what the file gave it */
        ck_assert(!holds(hosts[2], 0x8010));
        unmute();
        until(CONTROL_WRITING_OPENSM);
        carry_out();
        ck_assert(!holds(hosts[0], 0x8010) && holds(hosts[2], 0x8010));
        expect_held(0);
}
END_TEST

/* It keeps the line of that file: what else the policy gives it waits until it is read. */
START_TEST(mute_on_the_way_gets_nothing_more)
{
        begin_again(BEFORE);
        until(CONTROL_IDLE);
        give_candidate(OPENSM, "version: 1\npartitions:\n  q:\n    pkey: 0x0011\n    members: {node1: full, node2: full}\n", 0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        ck_assert(has(write_file(), "revoke"));
        mute(hosts[0]);
        carry_out();
        ck_assert(holds(hosts[1], 0x8011));
        ck_assert(names_full(file_at(FILE_CONF)->bytes, hosts[1]) && !names_full(file_at(FILE_CONF)->bytes, hosts[0]));
}
END_TEST

/* It stops answering when it is given the P_Key: nothing is left to do, but it is not known whether it has it. */
START_TEST(mute_in_the_last_phase)
{
        begin_again(BEFORE);
        until(CONTROL_IDLE);
        give_candidate(OPENSM, AFTER, 0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        (void) write_file();
        signal_opensm();
        opensm_reads_file();
        look();
        ck_assert(has(write_file(), "=0x0011"));
        signal_opensm();
        mute(hosts[2]);
        opensm_reads_file();
        carry_out();
        ck_assert_int_eq(status()->last_result, SWEEP_PARTIAL);
        expect_held(0x0010);
        ck_assert_uint_eq(count_logged(LOG_EVENT_APPLIED), 0);
}
END_TEST

/* node1 was absent at discovery, and is back when OpenSM has taken long for the first file. The next one must not make a limited
 * member of node2, which node1 may talk to. */
START_TEST(back_between_two_files)
{
        for (unsigned late = 0; late < 2; late++) {
                start(OPENSM, "version: 1\npartitions:\n  p: {pkey: 0x0010, members: {node1: limited, node2: full}}\n"
                              "  q: {pkey: 0x0011, members: {node3: full}}\n");
                carry_out();
                fabsim_disconnect(&f, hosts[0], 1);
                until(CONTROL_DISCOVERING);
                until(CONTROL_LOCKING);
                give_candidate(OPENSM, "version: 1\npartitions:\n  p: {pkey: 0x0010, members: {node1: full, node2: limited}}\n", 0);
                until(CONTROL_WRITING_OPENSM);
                read_files();
                ck_assert(has(write_file(), "revoke"));
                signal_opensm();
                opensm_reads_file();
                now += late ? 9 * S : 0;
                fabsim_connect(&f, hosts[0], 1, leaf, 2);
                carry_out();
                ck_assert(!holds(hosts[2], 0x8011));
                ck_assert_int_eq(holds(hosts[1], 0x8010), late);
                teardown();
                setup();
        }
}
END_TEST

/* A leaf port that cannot be read counts like its host. */
static bool lose_leaf_table(const struct mad_request *request, struct fabsim_place at)
{
        return request->attribute == SMP_ATTR_P_KEY_TABLE && at.node == leaf && request->modifier >> 16 == 2;
}

START_TEST(mute_switch_port)
{
        begin_again(BEFORE);
        until(CONTROL_IDLE);
        out_of_reach = hosts[0];
        lose = lose_leaf_table;
        give_candidate(OPENSM, AFTER, 0);
        until(CONTROL_WRITING_OPENSM);
        carry_out();
        ck_assert(holds(hosts[0], 0x8010) && !holds(hosts[2], 0x8010) && holds(hosts[1], 0x8011));
        expect_held(0x0010);
}
END_TEST

static bool lose_description(const struct mad_request *request, struct fabsim_place at)
{
        return request->attribute == SMP_ATTR_NODE_DESCRIPTION && at.node == leaf;
}

/* A host holds an entry that its leaf port would drop, and the switch did not answer all discovery queries. With the first file
 * OpenSM would remove it from the host, or open the leaf port to it. */
START_TEST(first_file_waits_for_a_switch)
{
        for (unsigned mirrors = 0; mirrors < 2; mirrors++) {
                enum control_state writes = mirrors ? CONTROL_MIRRORING : CONTROL_WRITING_OPENSM;
                const char *text;

                put_key(hosts[1], 9, 0x8055);
                f.nodes[leaf].ports[1].table[0].v = 0xffff; /* with the head node, the only full member of the default one */
                start("mode: audit\nunmanaged: keep\n", POLICY_1); /* reads the tables */
                until(CONTROL_IDLE);
                lose = lose_description;
                f.sm = (struct fabsim_place) {mirrors ? hosts[2] : head, 1};
                give_candidate(OPENSM "unmanaged: keep\nrole: follow-sm\n", POLICY_1, 0);
                for (unsigned i = 0; i < 2; i++) {
                        until(writes);
                        read_files();
                        until(CONTROL_IDLE);
                        ck_assert_ptr_null(file_at(FILE_CONF)->bytes);
                        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_WAITS), 1);
                        expect_logged(LOG_EVENT_OPENSM_FILE_WAITS, FILE_CONF " is not written yet: the switch of node2 mlx5_0/1 did not");
                        ck_assert_int_eq(status()->last_result, mirrors ? SWEEP_PARTIAL : SWEEP_FAILED);
                }
                lose = NULL;
                give_candidate(OPENSM "unmanaged: keep\nrole: follow-sm\nwindow: 7\n", POLICY_1, 0);
                until(CONTROL_DISCOVERING);
                until(writes);
                read_files();
                text = write_file();
                ck_assert(has(text, "=0x0055"));
                teardown();
                setup();
        }
}
END_TEST

/* OpenSM used its default, but this is not known of the host that does not answer: what it may hold is not given to others. */
START_TEST(mute_when_it_fell_back)
{
        for (unsigned is_mute = 0; is_mute < 2; is_mute++) {
                const char *text;

                begin_again(BEFORE);
                until(CONTROL_IDLE);
                take_defaults();
                if (is_mute) {
                        put_key(hosts[0], 1, 0x8010);
                        mute(hosts[0]);
                }
                give_candidate(OPENSM, AFTER, 0);
                until(CONTROL_WRITING_OPENSM);
                read_files();
                expect_logged(LOG_EVENT_OPENSM_FELL_BACK, "pkeyd writes the file of the policy again");
                text = write_file();
                ck_assert_int_eq(names_full(text, hosts[2]), !is_mute);
                ck_assert(has(text, "=0x0011"));
                teardown();
                setup();
        }
}
END_TEST

/* What it may hold stays as in the file, whatever OpenSM can reach. */
START_TEST(mute_port_keeps_its_line)
{
        char line[64];

        begin_again(BEFORE);
        until(CONTROL_IDLE);
        mute(hosts[0]);
        (void) snprintf(line, sizeof(line), "0x%016" PRIx64 "=full, # node1", port_of(hosts[0])->guid.v);
        give_candidate(OPENSM, AFTER, 0);
        until(CONTROL_WRITING_OPENSM);
        carry_out();
        ck_assert_msg(has(file_at(FILE_CONF)->bytes, line), "%s is not in %s", line, file_at(FILE_CONF)->bytes);
}
END_TEST

/* A read before OpenSM had carried out its file found less in a table than the file gives. If that table cannot be read any more,
 * the next file gives what the last one gave: that of an edit, which reads nothing, and that of the next sweep. */
START_TEST(mute_after_a_look_on_the_way)
{
        for (unsigned edits = 0; edits < 2; edits++) {
                put_key(hosts[1], 9, 0x8055);
                start(OPENSM "unmanaged: keep\n", POLICY_1);
                until(CONTROL_WRITING_OPENSM);
                read_files();
                ck_assert(has(write_file(), "=0x0055"));
                signal_opensm();
                put_key(hosts[1], 9, 0);
                look();
                opensm_reads_file();
                mute(hosts[1]);
                carry_out();
                if (edits)
                        give_candidate(OPENSM "unmanaged: keep\n", POLICY_2, 0);
                until(CONTROL_WRITING_OPENSM);
                carry_out();
                ck_assert_msg(has(file_at(FILE_CONF)->bytes, "=0x0055"), "%s", file_at(FILE_CONF)->bytes);
                unmute();
                until(CONTROL_WRITING_OPENSM);
                carry_out();
                ck_assert(holds(hosts[1], 0x8055));
                teardown();
                setup();
        }
}
END_TEST

/* If what OpenSM may write cannot be stored, it would not be known after a crash: OpenSM is not given the file. */
START_TEST(store_fails)
{
        begin_again(BEFORE);
        until(CONTROL_IDLE);
        give_candidate(OPENSM, AFTER, 0);
        until(CONTROL_WRITING_OPENSM);
        store_r = -ENOSPC;
        read_files();
        take_nothing();
        store_r = 0;
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        ck_assert(!has(file_at(FILE_CONF)->bytes, "0x0011"));
        ck_assert_uint_ge(count_logged(LOG_EVENT_STATE_DIR), 1);
        /* by the policy in force now, not by the one before */
        ck_assert_uint_eq(status()->in_force->number, 2);
        ck_assert_uint_gt(status()->ports.differ, 0);
        ck_assert_uint_eq(status()->ports.right + status()->ports.differ, status()->ports.managed);
        ck_assert(
                strstr(status()->text, "pkeyd could not store what OpenSM would write next: No space left on device; " FILE_CONF));
        for (uint32_t i = 0; i < knowledge_n_records(c->knowledge); i++)
                ck_assert_uint_eq(knowledge_get(c->knowledge, i)->n_writes, 0);
        until(CONTROL_WRITING_OPENSM);
        carry_out();
        ck_assert(holds(hosts[2], 0x8010));
}
END_TEST

/* What a file may make OpenSM write is in the store before the file is in place. */
START_TEST(stored_before_the_file)
{
        begin_again(BEFORE);
        until(CONTROL_IDLE);
        give_candidate(OPENSM, AFTER, 0);
        until(CONTROL_WRITING_OPENSM);
        store_waits = true;
        read_files();
        ck_assert(writes_are_stored(take(CONTROL_STORE)->transaction, hosts[0]));
        take_nothing();
        give_stored(0);
        (void) take(CONTROL_WRITE_FILE);
}
END_TEST

/* LIDs moved while OpenSM was given a file: what other nodes hold does not show whether the phase was carried out. */
START_TEST(lids_move_on_the_way)
{
        begin_again(BEFORE);
        until(CONTROL_IDLE);
        give_candidate(OPENSM, AFTER, 0);
        until(CONTROL_WRITING_OPENSM);
        read_files();
        (void) write_file();
        signal_opensm();
        port_of(hosts[0])->lid.v = 5;
        port_of(hosts[2])->lid.v = 3;
        look();
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STALE], 1);
        until(CONTROL_DISCOVERING);
        until(CONTROL_WRITING_OPENSM);
        carry_out();
        ck_assert(!holds(hosts[0], 0x8010) && holds(hosts[2], 0x8010));
}
END_TEST

/* --- the mirror --- */

START_TEST(mirror)
{
        start(MIRROR, POLICY_1);
        until(CONTROL_MIRRORING);
        ck_assert(holds(hosts[0], 0x8010)); /* pkeyd writes the tables itself */
        read_files();
        ck_assert(has(write_file(), "=0x0010"));
        take_nothing(); /* no signal */
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        until(CONTROL_MIRRORING);
        read_files();
        take_nothing();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
}
END_TEST

/* OpenSM may read the mirror at any time: it admits no port before the tables do. (A mute host behind a closed filter would make
 * nothing wait.) */
START_TEST(mirror_of_what_is_held)
{
        for (unsigned is_mute = 0; is_mute < 2; is_mute++) {
                start(MIRROR "enforcement: off\n", BEFORE);
                sweep();
                if (is_mute)
                        mute(hosts[0]);
                give_candidate(MIRROR "enforcement: off\n", AFTER, 0);
                until(CONTROL_OPENING_PORT);
                until(CONTROL_DISCOVERING); /* the second sweep: it reads the tables */
                until(CONTROL_MIRRORING);
                read_files();
                if (waits())
                        (void) write_file();
                ck_assert_int_eq(names_full(file_at(FILE_CONF)->bytes, hosts[2]), !is_mute);
                teardown();
                setup();
        }
}
END_TEST

/* A file that pkeyd did not create is reported; pkeyd still writes the tables. */
START_TEST(mirror_of_a_foreign_file)
{
        usec_t began;

        put_file(FILE_CONF, "Default=0x7fff: ALL=full;\n");
        start(MIRROR, POLICY_1);
        until(CONTROL_MIRRORING);
        read_files();
        ck_assert_uint_eq(count_logged(LOG_EVENT_OPENSM_FILE_FOREIGN), 1);
        expect_logged(LOG_EVENT_OPENSM_FILE_FOREIGN, "pkeyd carries out the policy without it, and OpenSM may undo that");
        ck_assert_int_eq(status()->last_result, SWEEP_PARTIAL);
        ck_assert(has(status()->text, "OpenSM's file does not match the policy: " FILE_CONF) && has(status()->text, "ports verified"));
        ck_assert(holds(hosts[0], 0x8010));
        ck_assert_str_eq(file_at(FILE_CONF)->bytes, "Default=0x7fff: ALL=full;\n");
        began = now;
        until(CONTROL_MIRRORING); /* retried soon */
        ck_assert(now < began + 60 * S);
        put_file(FILE_CONF, "");
        read_files();
        ck_assert(has(write_file(), "=0x0010"));
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
}
END_TEST

/* The status and the answer to a reload have the command that the admin must run, however long the path is. */
START_TEST(mirror_with_the_longest_path)
{
        static const char foreign[] = "Default=0x7fff: ALL=full;\n";
        struct control_event files = {
                .kind = CONTROL_EVENT_FILES_READ, .files = { { .bytes = foreign, .n = sizeof(foreign) - 1 }, { .r = -ENOENT } },
        };
        char path[4096] = "/", *settings;
        const char *command;

        memset(path + 1, 'p', sizeof(path) - 2);
        settings = arena_printf(arena, "mode: enforce\nopensm: {mirror: %s}\n", path);
        command = arena_printf(arena, "pkeyctl import %s, then hand the file over to pkeyd: cp --backup=numbered %s %s.before-pkeyd; ",
                               path, path, path);
        start(ENFORCE, POLICY_1);
        sweep();
        give_candidate(settings, POLICY_1, 7);
        until(CONTROL_MIRRORING);
        files.files[0].path = files.files[1].path = take(CONTROL_READ_FILES)->files[0].path;
        ck_assert(strcmp(files.files[0].path, path) == 0);
        give(&files);
        until(CONTROL_IDLE);
        ck_assert(has(status()->text, command));
        ck_assert(has(status()->text, "ports verified"));
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert(strcmp(noted.answer, status()->text) == 0);
}
END_TEST

START_TEST(mirror_that_cannot_be_written)
{
        start(MIRROR, POLICY_1);
        until(CONTROL_MIRRORING);
        read_files();
        take(CONTROL_WRITE_FILE);
        give_file_written(-EROFS);
        ck_assert_int_eq(status()->last_result, SWEEP_PARTIAL);
        ck_assert(has(status()->text, "OpenSM's file does not match the policy: " FILE_CONF " cannot be written"));
}
END_TEST

START_TEST(no_mirror_in_audit_mode)
{
        start("mode: audit\nopensm: {mirror: " FILE_CONF "}\n", POLICY_1);
        sweep();
        ck_assert_ptr_null(file_at(FILE_CONF)->bytes);
}
END_TEST

/* A standby keeps the file ready for its own OpenSM, and signals no process. */
START_TEST(standby_mirrors)
{
        f.sm = (struct fabsim_place) {hosts[2], 1};
        start(OPENSM "role: follow-sm\n", POLICY_1);
        until(CONTROL_MIRRORING);
        read_files();
        ck_assert(has(write_file(), "=0x0010"));
        take_nothing();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(!holds(hosts[0], 0x8010));
}
END_TEST

/* The tables do not have the policy yet: it comes in force when they do. */
START_TEST(standby_with_a_foreign_file)
{
        put_file(FILE_CONF, "Default=0x7fff: ALL=full;\n");
        f.sm = (struct fabsim_place) {hosts[2], 1};
        start(OPENSM "role: follow-sm\n", POLICY_1);
        until(CONTROL_MIRRORING);
        read_files();
        ck_assert_uint_gt(status()->ports.differ, 0);
        expect_logged(LOG_EVENT_OPENSM_FILE_FOREIGN, "when this host takes over, OpenSM will follow this file, not the policy; to resolve this, convert it");
        ck_assert(!has(status()->text, "in force"));
}
END_TEST

/* --- opensm.conf --- */

/* opensm.conf names another file than the one that pkeyd writes. */
START_TEST(another_partition_file)
{
        put_file(FILE_OPENSM_CONF, "partition_config_file /etc/other.conf\n");
        start(OPENSM_WITH_CONF, POLICY_1);
        until(CONTROL_READING_CONF);
        ck_assert_str_eq(take(CONTROL_READ_FILES)->files[0].path, FILE_OPENSM_CONF);
        give(&(struct control_event) {.kind = CONTROL_EVENT_FILES_READ,
                                     .files = {{FILE_OPENSM_CONF, "partition_config_file /etc/other.conf\n", 38, 0}}});
        ck_assert_int_eq(status()->last_result, SWEEP_REFUSED);
        expect_logged(LOG_EVENT_FINDING,
                      "partition_config_file is /etc/other.conf, but the partition file in pkeyd.yaml is " FILE_CONF);
        ck_assert_ptr_null(status()->in_force);
}
END_TEST

START_TEST(unreadable_opensm_conf)
{
        start(OPENSM_WITH_CONF, POLICY_1);
        until(CONTROL_READING_CONF);
        answer();
        ck_assert_int_eq(status()->last_result, SWEEP_REFUSED);
        expect_logged(LOG_EVENT_FINDING, "No such file or directory");
}
END_TEST

START_TEST(conf_that_fits)
{
        put_file(FILE_OPENSM_CONF, "partition_config_file " FILE_CONF "\n");
        start(OPENSM_WITH_CONF, POLICY_1);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(holds(hosts[0], 0x8010));
}
END_TEST

/* Another candidate came while opensm.conf was read for the one before: that file does not count for it. */
START_TEST(conf_of_another_candidate)
{
        put_file(FILE_OPENSM_CONF, "partition_config_file " FILE_CONF "\n");
        start(OPENSM_WITH_CONF, POLICY_1);
        sweep();
        give_candidate("mode: enforce\nwriter: opensm\nopensm: {partitions_conf: " FILE_CONF ", reload: \"pid:2\", config: /etc/missing}\n",
                       POLICY_2, 3);
        until(CONTROL_READING_CONF);
        give_candidate(OPENSM_WITH_CONF, POLICY_3, 4);
        live_until(now + 60 * S);
        ck_assert_uint_eq(count_logged(LOG_EVENT_RELOAD_REFUSED), 0);
        ck_assert(holds(hosts[2], 0x8010));
}
END_TEST

#define BOTH "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members: {node1: both}\n"

START_TEST(both_without_the_option)
{
        start(OPENSM, BOTH);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_REFUSED);
        expect_logged(LOG_EVENT_FINDING, "node1 mlx5_0/1 should be both a full and a limited member of p (0x0010), but OpenSM makes it a full "
                      "member only");
        ck_assert_uint_eq(count_logged(LOG_EVENT_FINDING), 1);
}
END_TEST

START_TEST(both_with_the_option)
{
        put_file(FILE_OPENSM_CONF, "allow_both_pkeys TRUE\n");
        start(OPENSM_WITH_CONF, BOTH);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(holds(hosts[0], 0x8010) && holds(hosts[0], 0x0010));
}
END_TEST

/* Programs that use index 0 would be limited members. */
START_TEST(both_at_index_0)
{
        put_file(FILE_OPENSM_CONF, "allow_both_pkeys TRUE\n");
        start(OPENSM_WITH_CONF, BOTH "    index0: true\n");
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_REFUSED);
        expect_logged(LOG_EVENT_FINDING, "p has the membership 'both' in line 5, but its entry belongs at index 0, where OpenSM would put the "
                      "limited one of the two");
        ck_assert_uint_eq(count_logged(LOG_EVENT_FINDING), 1);
        give_candidate(OPENSM_WITH_CONF, BOTH "  default:\n    pkey: 0x7fff\n    members: {ALL: both}\n", 0);
        until(CONTROL_DISCOVERING);
        sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = {
                        first_files,
                        nothing_to_do,
                        revoke_before_grant,
                        another_generation_of_the_same,
                        another_mtu,
                        file_given_again,
                        drift_is_told_first,
                        absent_host_is_named,
                        unseen_port_is_named,
                        hung,
                        hung_half_way,
                        hung_in_the_first_phase,
                        does_not_run,
                        ends_on_the_way,
                        falls_back,
                        falls_back_in_the_second_phase,
                        falls_back_from_the_first_file,
                        falls_back_at_the_end, falls_back_while_the_store_fails, falls_back_and_restores_some,
                        falls_back_and_stays_open,
                        had_fallen_back,
                        had_fallen_back_at_the_start,
                        defaults_before_say_nothing,
                        open_by_the_file_in_place,
                        open_before_a_file_that_is_not_done,
                        open_before_a_phase_at_the_start,
                        open_since_a_file_that_is_not_done,
                        open_by_the_given_file,
                        open_by_a_broken_given_file,
                        foreign_file,
                        given_file,
                        foreign_partition_keeps_its_flags,
                        foreign_partition_keeps_who_has_index0,
                        foreign_partition_keeps_who_is_not_there,
                        foreign_default_keeps_its_group,
                        lost_group_is_reported,
                        another_path,
                        edited_file, file_with_a_binary_number, edited_file_with_a_binary_number,
                        edited_between_phases, falls_back_from_an_edit,
                        file_that_opens_the_fabric,
                        cannot_be_put_aside,
                        damaged_files,
                        empty_at_the_start,
                        unreadable_file,
                        unwritable_file,
                        problem_comes_again, problem_of_an_earlier_job, damage_that_stays, damage_to_a_mirror_that_stays,
                        fallback_that_stays,
                        survey_fails,
                        stopped_for_a_reload,
                        stopped_before_a_phase,
                        mute_before_the_sweep,
                        mute_on_the_way,
                        mute_on_the_way_gets_nothing_more,
                        mute_in_the_last_phase,
                        back_between_two_files,
                        mute_switch_port,
                        first_file_waits_for_a_switch,
                        mute_port_keeps_its_line,
                        mute_after_a_look_on_the_way,
                        mute_when_it_fell_back,
                        store_fails,
                        stored_before_the_file,
                        lids_move_on_the_way,
                        mirror,
                        mirror_of_what_is_held,
                        mirror_of_a_foreign_file,
                        mirror_with_the_longest_path,
                        mirror_that_cannot_be_written,
                        no_mirror_in_audit_mode,
                        standby_mirrors,
                        standby_with_a_foreign_file,
                        another_partition_file,
                        unreadable_opensm_conf,
                        conf_that_fits, conf_of_another_candidate,
                        both_without_the_option,
                        both_with_the_option, both_at_index_0,
        };

        return run_suite("OpenSM's file", tests, ELEMENTS(tests));
}
