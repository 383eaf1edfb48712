/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/verbs_port.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <string.h>

#define MAX_DEVICES       256
#define MAX_PORTS         4096
#define MAX_EVENTS        64   /* read from one device before the loop serves others */

struct device {
        struct verbs_host *host;
        struct ibv_context *context;
        sd_event_source *source;
        char name[CA_NAME_SIZE];
        char path[IBV_SYSFS_PATH_MAX]; /* in sysfs */
        uint64_t node_guid;            /* network byte order */
        unsigned n_ports;
        bool counts_bad_p_keys;
        bool fatal;                    /* the device failed; the next scan closes it */
};

/* Port `number` of devices[device]. */
struct place {
        unsigned device, number;
};

struct verbs_host {
        sd_event *event;
        verbs_event_handler handler;
        void *userdata;
        struct device *devices[MAX_DEVICES];
        unsigned n_devices, n_closed;
        struct place ports[MAX_PORTS];
        size_t n_ports;
};

/* --- one device --------------------------------------------------------------------------------------------------- */

static struct device *device_close(struct device *d)
{
        if (!d)
                return NULL;
        sd_event_source_disable_unref(d->source);
        if (d->context)
                (void) ibv_close_device(d->context);
        free(d);
        return NULL;
}

static struct guid port_guid(struct device *d, unsigned number)
{
        union ibv_gid gid;

        if (ibv_query_gid(d->context, (uint8_t) number, 0, &gid) != 0)
                return (struct guid) {};
        return (struct guid) { be64toh(gid.global.interface_id) };
}

/* Old kernels do not report the link layer, and have InfiniBand only. */
static bool is_infiniband(const struct device *d, const struct ibv_port_attr *attributes)
{
        return d->context->device->transport_type == IBV_TRANSPORT_IB && attributes->link_layer != IBV_LINK_LAYER_ETHERNET;
}

/* False: pkeyd does not use this kind of event. */
static bool translate_event(enum ibv_event_type type, enum verbs_event_kind *ret)
{
        static const struct {
                enum ibv_event_type type;
                enum verbs_event_kind kind;
        } known[] = {
                { IBV_EVENT_PKEY_CHANGE, VERBS_P_KEY_CHANGE },
                { IBV_EVENT_LID_CHANGE, VERBS_LID_CHANGE },
                { IBV_EVENT_SM_CHANGE, VERBS_SM_CHANGE },
                { IBV_EVENT_CLIENT_REREGISTER, VERBS_CLIENT_REREGISTER },
                { IBV_EVENT_PORT_ACTIVE, VERBS_PORT_ACTIVE },
                { IBV_EVENT_PORT_ERR, VERBS_PORT_ERROR },
                { IBV_EVENT_DEVICE_FATAL, VERBS_DEVICE_FATAL },
        };

        for (size_t i = 0; i < ELEMENTS(known); i++)
                if (known[i].type == type) {
                        *ret = known[i].kind;
                        return true;
                }
        return false;
}

static void device_fail(struct device *d)
{
        struct verbs_event e = { .kind = VERBS_DEVICE_FATAL, .device = d->name };

        d->fatal = true;
        (void) sd_event_source_set_enabled(d->source, SD_EVENT_OFF);
        d->host->handler(&e, d->host->userdata);
}

static void pass_on(struct device *d, const struct ibv_async_event *event)
{
        struct verbs_event e = { .device = d->name };
        struct ibv_port_attr attributes = {};

        if (!translate_event(event->event_type, &e.kind))
                return;
        if (e.kind == VERBS_DEVICE_FATAL) {
                device_fail(d);
                return;
        }
        e.number = (unsigned) event->element.port_num;
        if (ibv_query_port(d->context, (uint8_t) e.number, &attributes) == 0 && !is_infiniband(d, &attributes))
                return;
        e.port_guid = port_guid(d, e.number);
        d->host->handler(&e, d->host->userdata);
}

/* If the descriptor fails, the device has failed. */
static int on_readable(sd_event_source *, int, uint32_t revents, void *userdata)
{
        struct device *d = userdata;
        struct ibv_async_event event;

        for (unsigned i = 0; i < MAX_EVENTS && !d->fatal; i++) {
                if (ibv_get_async_event(d->context, &event) != 0) {
                        if (errno == EAGAIN || errno == EINTR)
                                break;
                        device_fail(d);
                        return 0;
                }
                ibv_ack_async_event(&event);
                pass_on(d, &event);
        }
        if (!d->fatal && (revents & (EPOLLERR | EPOLLHUP)))
                device_fail(d);
        return 0;
}

static int listen_to(struct device *d)
{
        int fd = d->context->async_fd, flags = fcntl(fd, F_GETFL);

        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
                return -errno;
        return sd_event_add_io(d->host->event, &d->source, fd, EPOLLIN, on_readable, d);
}

/* Checked first, because libibverbs waits five seconds for udev to create the file or to change its mode. */
static int check_file(struct ibv_device *device)
{
        char path[IBV_SYSFS_NAME_MAX + sizeof("/dev/infiniband/")];

        (void) snprintf(path, sizeof(path), "/dev/infiniband/%s", device->dev_name);
        return access(path, R_OK | W_OK) < 0 ? -errno : 0;
}

static int device_open(struct verbs_host *h, struct ibv_device *from, struct device **ret)
{
        struct ibv_device_attr attributes;
        struct device *d;
        int r = check_file(from);

        if (r < 0)
                return r;
        d = calloc(1, sizeof(*d));
        if (!d)
                return -ENOMEM;
        d->host = h;
        (void) snprintf(d->name, sizeof(d->name), "%s", ibv_get_device_name(from));
        (void) snprintf(d->path, sizeof(d->path), "%s", from->ibdev_path);
        d->node_guid = ibv_get_device_guid(from);
        errno = 0;
        d->context = ibv_open_device(from);
        if (!d->context)
                r = errno > 0 ? -errno : -ENODEV;
        r = r ?: -ibv_query_device(d->context, &attributes);
        if (r == 0) {
                d->n_ports = attributes.phys_port_cnt;
                d->counts_bad_p_keys = attributes.device_cap_flags & IBV_DEVICE_BAD_PKEY_CNTR;
                r = h->event ? listen_to(d) : 0;
        }
        if (r < 0) {
                device_close(d);
                return r;
        }
        *ret = d;
        return 0;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

int verbs_host_new(sd_event *event, verbs_event_handler handler, void *userdata, struct verbs_host **ret)
{
        struct verbs_host *h = calloc(1, sizeof(*h));

        if (!h)
                return -ENOMEM;
        h->event = sd_event_ref(event);
        h->handler = handler;
        h->userdata = userdata;
        *ret = h;
        return 0;
}

struct verbs_host *verbs_host_free(struct verbs_host *h)
{
        if (!h)
                return NULL;
        for (unsigned i = 0; i < h->n_devices; i++)
                device_close(h->devices[i]);
        sd_event_unref(h->event);
        free(h);
        return NULL;
}

static bool is_same(const struct device *d, struct ibv_device *other)
{
        return !d->fatal && strcmp(d->name, ibv_get_device_name(other)) == 0 && d->node_guid == ibv_get_device_guid(other);
}

static void drop_gone(struct verbs_host *h, struct ibv_device **list, int n)
{
        unsigned kept = 0;

        for (unsigned i = 0; i < h->n_devices; i++) {
                bool is_there = false;

                for (int k = 0; k < n && !is_there; k++)
                        is_there = is_same(h->devices[i], list[k]);
                if (is_there)
                        h->devices[kept++] = h->devices[i];
                else
                        device_close(h->devices[i]);
        }
        h->n_devices = kept;
}

static bool is_open(const struct verbs_host *h, struct ibv_device *device)
{
        for (unsigned i = 0; i < h->n_devices; i++)
                if (is_same(h->devices[i], device))
                        return true;
        return false;
}

static void number_ports(struct verbs_host *h)
{
        h->n_ports = 0;
        for (unsigned i = 0; i < h->n_devices; i++)
                for (unsigned number = 1; number <= h->devices[i]->n_ports && h->n_ports < MAX_PORTS; number++)
                        h->ports[h->n_ports++] = (struct place) { i, number };
}

int verbs_host_scan(struct verbs_host *h)
{
        struct ibv_device **list;
        int n = 0, r, e;

        errno = 0;
        list = ibv_get_device_list(&n);
        r = list || errno == 0 ? -ENODEV : -errno;
        if (r == -ENOMEM)
                return r;
        drop_gone(h, list, list ? n : 0);
        h->n_closed = 0;
        for (int i = 0; list && i < n; i++) {
                if (is_open(h, list[i]))
                        continue;
                e = h->n_devices < MAX_DEVICES ? device_open(h, list[i], &h->devices[h->n_devices]) : -ENFILE;
                h->n_devices += e == 0;
                h->n_closed += e < 0;
                r = e < 0 ? e : r;
        }
        if (list)
                ibv_free_device_list(list);
        number_ports(h);
        return h->n_devices > 0 ? 0 : r;
}

unsigned verbs_host_n_closed(const struct verbs_host *h)
{
        return h->n_closed;
}

size_t verbs_host_n_ports(const struct verbs_host *h)
{
        return h->n_ports;
}

/* --- one port ----------------------------------------------------------------------------------------------------- */

/* From sysfs, since libibverbs has no call for it. */
static void read_description(const struct device *d, char ret[NODE_DESCRIPTION_SIZE + 1])
{
        char path[IBV_SYSFS_PATH_MAX + 16];
        FILE *f;
        size_t n = 0;

        (void) snprintf(path, sizeof(path), "%s/node_desc", d->path);
        f = fopen(path, "re");
        if (f) {
                n = fread(ret, 1, NODE_DESCRIPTION_SIZE, f);
                (void) fclose(f);
        }
        ret[n] = '\0';
}

static enum port_state port_state_of(enum ibv_port_state s)
{
        return s >= IBV_PORT_DOWN && s <= IBV_PORT_ACTIVE ? (enum port_state) s : PORT_STATE_NONE;
}

int verbs_host_query(struct verbs_host *h, size_t i, struct verbs_port *ret)
{
        const struct place *place = &h->ports[i];
        struct device *d = h->devices[place->device];
        struct ibv_port_attr attributes = {};
        int r;

        if (d->fatal)
                return -ENODEV;
        r = ibv_query_port(d->context, (uint8_t) place->number, &attributes);
        if (r != 0)
                return r > 0 ? -r : -EIO;
        *ret = (struct verbs_port) {
                .number = place->number,
                .node_guid.v = be64toh(d->node_guid),
                .is_infiniband = is_infiniband(d, &attributes),
                .state = port_state_of(attributes.state),
                .lid.v = attributes.lid,
                .sm_lid.v = attributes.sm_lid,
                .lmc = attributes.lmc,
                .n_p_keys = attributes.pkey_tbl_len,
                .has_bad_p_key_counter = d->counts_bad_p_keys,
                /* devices without the counter may leave any value there */
                .bad_p_key_counter = d->counts_bad_p_keys ? attributes.bad_pkey_cntr : 0,
        };
        memcpy(ret->device, d->name, sizeof(ret->device));
        ret->port_guid = port_guid(d, place->number);
        read_description(d, ret->description);
        return 0;
}

int verbs_host_read_table(struct verbs_host *h, size_t i, struct arena *a, struct p_key **ret, uint32_t *ret_n)
{
        struct device *d = h->devices[h->ports[i].device];
        struct p_key *entries;
        struct verbs_port port;
        int r = verbs_host_query(h, i, &port);

        if (r < 0)
                return r;
        if (port.n_p_keys == 0)
                return -ERANGE;
        entries = arena_new_array(a, struct p_key, port.n_p_keys);
        if (!entries)
                return -ENOMEM;
        for (int index = 0; index < port.n_p_keys; index++) {
                __be16 value;

                errno = 0;
                r = ibv_query_pkey(d->context, (uint8_t) port.number, index, &value);
                if (r != 0)
                        return errno > 0 ? -errno : -EIO;
                entries[index].v = be16toh(value);
        }
        *ret = entries;
        *ret_n = port.n_p_keys;
        return 0;
}

size_t verbs_host_find(struct verbs_host *h, struct guid guid)
{
        for (size_t i = 0; i < h->n_ports; i++) {
                struct device *d = h->devices[h->ports[i].device];

                if (guid.v != 0 && !d->fatal && port_guid(d, h->ports[i].number).v == guid.v)
                        return i;
        }
        return (size_t) -1;
}
