/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The sockets at which the door listens: those that systemd passed, else those of rest.yaml. */

#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "rest/rest_conf.h"
#include "util/findings.h"

struct listeners;

/* The listener takes the accepted socket over. */
typedef void listeners_accepted_t(int fd, const struct sockaddr *address, socklen_t n_address, void *userdata);

/* Returns 0, -EBADMSG (findings say why), or another negative errno; *ret owned. */
int listeners_new(sd_event *event, const struct rest_conf *conf, listeners_accepted_t *accepted, void *userdata,
                  struct findings *findings, struct listeners **ret);
struct listeners *listeners_free(struct listeners *l);
DEFINE_CLEANUP(struct listeners *, listeners_free)

size_t listeners_n(const struct listeners *l);
/* Returns whether the sockets are systemd's, and `listen` of rest.yaml is ignored. */
bool listeners_are_from_systemd(const struct listeners *l);
