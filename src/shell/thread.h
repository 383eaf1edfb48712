/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <pthread.h>

/* A thread in which all signals are blocked: they belong to the event loop. Returns 0 or negative errno. */
int thread_start(pthread_t *ret, void *(*function)(void *), void *argument);
