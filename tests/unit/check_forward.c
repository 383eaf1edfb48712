/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a caller gets whose request the other head node did not answer. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "etcd/etcd_mailbox.h"
#include "pkeyd/forward.h"

static struct etcd_mailbox_handlers mailbox;
static char refusal[512];

/* The linker's name for the function that forward_init() calls (ld --wrap). */
int __wrap_etcd_mailbox_new(sd_event *event, const struct etcd_config *config, const struct etcd_mailbox_handlers *handlers,
                            struct etcd_mailbox **ret);

int __wrap_etcd_mailbox_new(sd_event *event, const struct etcd_config *config, const struct etcd_mailbox_handlers *handlers,
                            struct etcd_mailbox **ret)
{
        (void) event;
        (void) config;
        mailbox = *handlers;
        *ret = NULL;
        return 0;
}

static void on_unanswered(uint64_t request, const char *why, void *userdata)
{
        (void) userdata;
        ck_assert_uint_eq(request, 7);
        ck_assert_str_eq(refusal, "");
        (void) snprintf(refusal, sizeof(refusal), "%s", why);
}

static const struct {
        int r;
        const char *reply, *words;
} cases[] = {
        { -ETIMEDOUT, NULL, "neither head node has answered the request" },
        { -EMSGSIZE, NULL, "the request is too large for etcd" },
        { 0, "{}", "the answer of the other head node cannot be understood" },
        { 0, "{", "the answer of the other head node cannot be understood" },
        { -EPROTO, NULL, "pkeyd cannot ask the other head node through etcd: the answer is not one of etcd" },
        { -EACCES, NULL, "pkeyd cannot ask the other head node through etcd: etcd denies access to this user" },
        { -ENOMEM, NULL, "pkeyd cannot ask the other head node through etcd: Cannot allocate memory" },
};

START_TEST(unanswered)
{
        static const struct forward_handlers handlers = { .unanswered = on_unanswered };
        static const struct control_status status;
        _cleanup_(forward_done) struct forward f = {};

        ck_assert_int_eq(forward_init(&f, NULL, NULL, &status, &handlers), 0);
        mailbox.answered(7, cases[_i].r, cases[_i].reply, mailbox.userdata);
        ck_assert_msg(strncmp(refusal, cases[_i].words, strlen(cases[_i].words)) == 0, "%s", refusal);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("forward");
        TCase *t = tcase_create("forward");
        SRunner *runner;
        int failed;

        tcase_add_loop_test(t, unanswered, 0, ELEMENTS(cases));
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
