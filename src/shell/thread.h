/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <pthread.h>

/* Starts a thread in which all signals are blocked, so that the event loop gets them. Returns 0 or negative errno. */
int thread_start(pthread_t *ret, void *(*function)(void *), void *argument);
