/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a sequence of Reports: a byte for the sender and the time, and the MAD; the last one may be
 * short. What comes out is a notice whose numbers can be, everything is counted once, and whatever is answered was a
 * Report and the answer is none. */
#include <stdlib.h>
#include <string.h>

#include "notices/notices.h"

#define SA_LID  7
#define STRIDE  (1 + MAD_SIZE)
#define FOREIGN 0x01
#define LATER   0x02
#define TAKE    0x04

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool condition)
{
        if (!condition)
                abort();
}

static void check_notice(const struct notice *n)
{
        require(n->trap >= NOTICE_P_KEY && n->trap <= NOTICE_SWITCH_P_KEY);
        require(n->issuer.v >= 1 && n->issuer.v <= LID_MAX_UNICAST && n->lid1.v <= LID_MAX_UNICAST);
        require(n->switch_lid.v <= LID_MAX_UNICAST && (n->trap == NOTICE_SWITCH_P_KEY || !n->has_switch_port));
        require(!n->has_switch_port || (n->switch_lid.v && n->switch_port));
        require(n->qp1 <= 0xffffff && n->qp2 <= 0xffffff);
        require(n->trap == NOTICE_Q_KEY || n->key <= UINT16_MAX);
}

static uint64_t take_all(struct notices *notices)
{
        struct notice notice;
        uint64_t n = 0;

        for (; notices_next(notices, &notice); n++)
                check_notice(&notice);
        return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        struct notices *notices = notices_new();
        struct mad_background_task stage = notices_task(notices);
        struct notices_status s;
        uint64_t answered = 0, foreign = 0, taken = 0;
        usec_t now = 1;

        require(notices != NULL);
        notices_set_sa(notices, now, &(struct notices_sa) { .lid.v = SA_LID }, false);
        for (size_t at = 0; at < n; at += STRIDE) {
                struct mad_frame frame = { .length = MIN(n - at - 1, (size_t) MAD_SIZE), .lid.v = SA_LID }, response;
                bool is_report;

                memcpy(frame.mad, data + at + 1, frame.length);
                frame.lid.v += data[at] & FOREIGN;
                now += data[at] & LATER ? 60 * USEC_PER_SEC : 1;
                is_report = mad_frame_is_report(&frame);
                if (stage.report(stage.state, now, &frame)) {
                        require(is_report && frame.lid.v == SA_LID && frame.length == MAD_SIZE);
                        mad_frame_make_report_response(&frame, &response);
                        require(!mad_frame_is_report(&response) && response.lid.v == SA_LID);
                        answered++;
                } else {
                        require(!is_report || frame.lid.v != SA_LID);
                        foreign += is_report;
                }
                if (data[at] & TAKE)
                        taken += take_all(notices);
        }
        taken += take_all(notices);
        notices_get_status(notices, &s);
        require(s.n_reports + s.n_malformed + s.n_others + s.n_repeated == answered && s.n_foreign == foreign);
        require(s.n_reports == taken + s.n_lost);
        (void) notices_free(notices);
        return 0;
}
