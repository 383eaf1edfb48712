/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * actions/: what control and its shells exchange.
 *
 *     event      what happened: from the shell to control
 *     action     what to do: from control to the shell
 *     snapshot   the fabric as it was read, which both may hold
 *
 * An action is data: a shell can carry it out on an event loop, blocking, or in virtual time, and a test can read it. Each action
 * that takes time is answered by one event, with its result or its error, so a shell has nothing to decide. A part of control that
 * gives actions of its own (opensm_writer/) knows no more of control than this folder.
 *
 * This folder does not know when an event leads to an action, or how an action is carried out.
 */

#include "actions/action.h"
#include "actions/event.h"
#include "actions/snapshot.h"
