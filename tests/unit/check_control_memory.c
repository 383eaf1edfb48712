/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory runs out at each allocation once: the sweep ends, and a later one does what this one should have done. */

#include <stdarg.h>
#include <stdlib.h>

#include "control_fixture.h"

/* Of what is tested; the one that fails. */
static unsigned n_allocations, failing;
/* Those in an arena count, too. Else only the few for which it grows. */
static bool count_in_arenas;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

static bool may_allocate(void)
{
        return !is_inside || ++n_allocations != failing;
}

void *__wrap_calloc(size_t n, size_t size)
{
        return may_allocate() ? __real_calloc(n, size) : NULL;
}

void *__wrap_malloc(size_t size)
{
        return may_allocate() ? __real_malloc(size) : NULL;
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
        return may_allocate() ? __real_reallocarray(p, n, size) : NULL;
}

void *__real_arena_alloc_array(struct arena *a, size_t n, size_t size);
void *__wrap_arena_alloc_array(struct arena *a, size_t n, size_t size);

void *__wrap_arena_alloc_array(struct arena *a, size_t n, size_t size)
{
        return !count_in_arenas || may_allocate() ? __real_arena_alloc_array(a, n, size) : NULL;
}

char *__wrap_arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

char *__wrap_arena_printf(struct arena *a, const char *format, ...)
{
        va_list ap;
        char *text;

        if (count_in_arenas && !may_allocate())
                return NULL;
        va_start(ap, format);
        text = arena_vprintf(a, format, ap);
        va_end(ap);
        return text;
}

/* A sweep whose end is reached in any case. */
static void one_sweep(void)
{
        until(CONTROL_OPENING_PORT);
        sweep();
}

static void check_tables(void)
{
        ck_assert_msg(holds(hosts[0], 0x8010), "allocation %u", failing);
        ck_assert_msg(holds(hosts[1], 0x8010), "allocation %u", failing);
        ck_assert_msg(!holds(hosts[2], 0x8010) && !holds(hosts[2], 0x8055), "allocation %u", failing);
}

/* A start, a reload, and as many sweeps as it takes. Returns whether an allocation failed. */
static bool run(const char *settings)
{
        n_allocations = 0;
        put_key(hosts[2], 1, 0x8055);
        put_file(FILE_OPENSM_CONF, "");
        start(settings, POLICY_1);
        for (unsigned i = 0; i < 9 && status()->last_result != SWEEP_DONE; i++)
                one_sweep();
        ck_assert_msg(!noted.exited && !status()->waiting, "allocation %u", failing);
        ck_assert_int_eq(give_candidate(settings, POLICY_2, 5), 0);
        for (unsigned i = 0; i < 9 && (status()->reload_pending || status()->last_result != SWEEP_DONE); i++)
                one_sweep();
        one_sweep(); /* what was answered may be waiting for this one */
        if (status()->last_result != SWEEP_DONE)
                one_sweep();
        ck_assert_msg(status()->last_result == SWEEP_DONE, "allocation %u", failing);
        ck_assert_uint_eq(noted.n_answers, 1);
        check_tables();
        return n_allocations >= failing;
}

static void fail_each(const char *settings, unsigned step, unsigned first)
{
        unsigned n = 0;

        for (failing = first; run(settings); failing += step, n++) {
                teardown();
                setup();
        }
        ck_assert_uint_gt(n, 20);
}

START_TEST(no_memory)
{
        fail_each(ENFORCE, 1, 1);
}
END_TEST

START_TEST(no_memory_for_pins)
{
        fail_each(ENFORCE "identity: pin\n", 2, 2);
}
END_TEST

START_TEST(no_memory_beside_another_head)
{
        fail_each(FOLLOW_SM, 2, 1);
}
END_TEST

START_TEST(no_memory_for_a_file)
{
        fail_each(OPENSM_WITH_CONF, 2, 1);
}
END_TEST

START_TEST(no_memory_for_a_mirror)
{
        fail_each(MIRROR, 2, 2);
}
END_TEST

/* --- the writer of OpenSM's file, with each allocation in an arena --------------------------------------------------- */

/* Answers the action of the writer. Returns whether an allocation failed, which the next call fails in turn. */
static bool answer_without_memory(unsigned n)
{
        n_allocations = 0;
        failing = n;
        count_in_arenas = true;
        answer();
        count_in_arenas = false;
        failing = 0;
        return n_allocations >= n;
}

/* A file that was handed over and that OpenSM reads does not count as one that it cannot read: pkeyd's first file has its entries,
 * or is not written. */
START_TEST(no_memory_for_a_file_that_was_handed_over)
{
        static const char given[] = "theirs=0x0e01: 0x0002c9030bad0001=full;\n";
        const struct control_action *write;
        bool failed = true;

        for (unsigned n = 1; failed; n++) {
                put_file(FILE_CONF, given);
                put_file(FILE_CONF ".before-pkeyd", given);
                start(OPENSM, "version: 1\nowns: [0x7fff, 0x0010]\npartitions:\n  p: {pkey: 0x0010, members: {node1: full}}\n");
                until(CONTROL_WRITING_OPENSM);
                failed = answer_without_memory(n);
                ck_assert(failed || state() == CONTROL_WRITING_OPENSM);
                if (state() == CONTROL_WRITING_OPENSM) {
                        write = take(CONTROL_WRITE_FILE);
                        ck_assert_msg(strstr(write->files[0].bytes, "\ntheirs=0x0e01:\n    0x0002c9030bad0001=full;"),
                                      "allocation %u: %s", n, write->files[0].bytes);
                }
                teardown();
                setup();
        }
}
END_TEST

/* A file that was edited so that OpenSM would drop it does not count as one that OpenSM reads, which stays in place. A copy is
 * written before it is replaced. */
START_TEST(no_memory_for_an_edited_file)
{
        bool failed = true;

        for (unsigned n = 1; failed; n++) {
                start(OPENSM, POLICY_1);
                sweep();
                put_file(FILE_CONF, arena_printf(arena, "%s    node1, 0x1;\n", file_at(FILE_CONF)->bytes));
                until(CONTROL_WRITING_OPENSM);
                failed = answer_without_memory(n);
                ck_assert(failed || state() == CONTROL_WRITING_OPENSM);
                ck_assert_msg(count_logged(LOG_EVENT_OPENSM_FILE_FOREIGN) == 0, "allocation %u", n);
                if (state() == CONTROL_IDLE)
                        expect_logged(LOG_EVENT_SWEEP_FAILED, FILE_CONF " could not be updated: Cannot allocate memory");
                if (state() == CONTROL_WRITING_OPENSM)
                        ck_assert_msg(take(CONTROL_WRITE_FILE)->files[0].path != NULL, "allocation %u", n);
                teardown();
                setup();
        }
}
END_TEST

/* A table that could not be compared counts as one that differs. */
START_TEST(no_memory_to_compare_tables)
{
        bool failed = true;
        unsigned n_probed = 0;

        for (unsigned n = 1; failed; n++) {
                start(OPENSM, POLICY_1);
                until(CONTROL_WRITING_OPENSM);
                for (unsigned i = 0; i < 3; i++) /* read, write, signal */
                        answer();
                wait_until_due();
                failed = answer_without_memory(n);
                if (is_next(CONTROL_SIGNAL_OPENSM)) {
                        n_probed++;
                        now += 30 * USEC_PER_SEC; /* the time of OpenSM is over */
                        answer();
                        expect_logged(LOG_EVENT_OPENSM_NOT_DONE, "(adopt): 1 P_Key table differs from it");
                }
                teardown();
                setup();
        }
        ck_assert_uint_gt(n_probed, 0);
}
END_TEST

START_TEST(no_memory_at_the_start)
{
        const struct control_config config = {.goal = CONTROL_SERVE, .program = "pkeyd"};

        for (failing = 1; !c; failing++) {
                n_allocations = 0;
                is_inside = true;
                c = control_new(&config);
                is_inside = false;
                ck_assert_uint_lt(failing, 100);
        }
        ck_assert_uint_gt(failing, 5);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = {
                        no_memory,
                        no_memory_for_pins,
                        no_memory_beside_another_head,
                        no_memory_for_a_file,
                        no_memory_for_a_mirror,
                        no_memory_for_a_file_that_was_handed_over,
                        no_memory_for_an_edited_file,
                        no_memory_to_compare_tables,
                        no_memory_at_the_start,
        };

        return run_suite("control without memory", tests, ELEMENTS(tests));
}
