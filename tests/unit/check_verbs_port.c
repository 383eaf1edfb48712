/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which events of the kernel are passed on. libibverbs is replaced by one device, whose events come from a pipe. */

#include <check.h>
#include <endian.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <unistd.h>

#include "shell/verbs_port.h"

enum { IB = 1, ETHERNET, BROKEN, N_PORTS = BROKEN };

static struct ibv_device device;
static struct ibv_context context;
static int ends[2];
static struct verbs_event passed;
static unsigned n_passed;

/* --- libibverbs --------------------------------------------------------------------------------------------------- */

int access(const char *path, int mode)
{
        (void) path;
        (void) mode;
        return 0;
}

struct ibv_device **(ibv_get_device_list)(int *n)
{
        struct ibv_device **list = calloc(2, sizeof(*list));

        ck_assert_ptr_nonnull(list);
        list[0] = &device;
        *n = 1;
        return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
        free(list);
}

const char *ibv_get_device_name(struct ibv_device *d)
{
        return d->name;
}

__be64 ibv_get_device_guid(struct ibv_device *d)
{
        (void) d;
        return htobe64(0x900);
}

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
        context = (struct ibv_context) { .device = d, .async_fd = ends[0] };
        return &context;
}

int ibv_close_device(struct ibv_context *c)
{
        (void) c;
        return 0;
}

int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *ret)
{
        (void) c;
        *ret = (struct ibv_device_attr) { .phys_port_cnt = N_PORTS };
        return 0;
}

int (ibv_query_port)(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *ret)
{
        struct ibv_port_attr *attributes = (struct ibv_port_attr *) ret;

        (void) c;
        attributes->link_layer = port == ETHERNET ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
        return port == BROKEN ? EIO : 0;
}

int ibv_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *ret)
{
        (void) c;
        (void) index;
        ret->global.interface_id = htobe64(UINT64_C(0x900) + port);
        return 0;
}

int ibv_get_async_event(struct ibv_context *c, struct ibv_async_event *ret)
{
        return read(c->async_fd, ret, sizeof(*ret)) == sizeof(*ret) ? 0 : -1;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
        (void) event;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void take(const struct verbs_event *event, void *userdata)
{
        (void) userdata;
        passed = *event;
        n_passed++;
}

static void report(sd_event *loop, enum ibv_event_type type, int port)
{
        const struct ibv_async_event event = { .event_type = type, .element.port_num = port };

        n_passed = 0;
        ck_assert_int_eq(write(ends[1], &event, sizeof(event)), sizeof(event));
        ck_assert_int_ge(sd_event_run(loop, 0), 0);
}

/* RoCE ports have no place in an InfiniBand fabric; a port that cannot be queried may have one. */
START_TEST(events_of_ports)
{
        static const enum ibv_transport_type transports[] = { IBV_TRANSPORT_IB, IBV_TRANSPORT_IWARP };
        struct verbs_host *h;
        sd_event *loop;

        ck_assert_int_ge(sd_event_new(&loop), 0);
        ck_assert_int_eq(pipe(ends), 0);
        ck_assert_int_eq(verbs_host_new(loop, take, NULL, &h), 0);
        ck_assert_int_eq(verbs_host_scan(h), 0);
        for (size_t i = 0; i < ELEMENTS(transports); i++)
                for (int port = IB; port <= BROKEN; port++) {
                        device.transport_type = transports[i];
                        report(loop, IBV_EVENT_PORT_ACTIVE, port);
                        ck_assert_msg(n_passed == (port == BROKEN || (port == IB && i == 0)), "port %d of transport %zu", port, i);
                        ck_assert(n_passed == 0 || passed.kind == VERBS_PORT_ACTIVE);
                        ck_assert(n_passed == 0 || passed.port_guid.v == UINT64_C(0x900) + (unsigned) port);
                }
        report(loop, IBV_EVENT_SQ_DRAINED, IB);
        ck_assert_uint_eq(n_passed, 0);
        report(loop, IBV_EVENT_DEVICE_FATAL, 0);
        ck_assert_uint_eq(n_passed, 1);
        ck_assert(passed.kind == VERBS_DEVICE_FATAL && passed.port_guid.v == 0);
        verbs_host_free(h);
        sd_event_unref(loop);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("verbs_port");
        TCase *t = tcase_create("verbs_port");
        SRunner *runner;
        int failed;

        tcase_add_test(t, events_of_ports);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
